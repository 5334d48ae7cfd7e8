//! The loop: resumed, interrupted, rolled back and stopped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod toy;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ebp::checkpoint::{Checkpoint, CheckpointMeta, CheckpointStore, Holds, META_FILE, STATE_FILE};
use ebp::train::{
    BestIs, Evaluation, Event, Metrics, Observer, OnDivergence, Outcome, Session, Silent, Step,
    Trainable, Trainer, TrainerConfig,
};
use ebp::{Error, Result};

use crate::toy::{Fault, Toy};

const SEED: u64 = 5;

fn config() -> TrainerConfig {
    TrainerConfig { num_steps: 60, checkpoint_every: 10, ..TrainerConfig::default() }
}

fn rolling_back() -> TrainerConfig {
    TrainerConfig { on_divergence: OnDivergence::Rollback, max_rollbacks: 2, ..config() }
}

/// Keeps what happened, and raises a flag after a chosen step.
#[derive(Debug, Default)]
struct Witness {
    events: Vec<String>,
    stop_after: Option<u64>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Watch<'a> {
    witness: &'a mut Vec<String>,
    stop_after: Option<u64>,
    stop: &'a AtomicBool,
}

impl Observer for Watch<'_> {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Step(numbers) if Some(numbers.step) == self.stop_after => {
                self.stop.store(true, Ordering::Relaxed);
            }
            Event::Step(_) => {}
            Event::Checkpoint { step, is_best, .. } => {
                let best = if *is_best { " best" } else { "" };
                self.witness.push(format!("saved {step}{best}"));
            }
            Event::RolledBack { rollback, .. } => {
                self.witness.push(format!("back {} {}", rollback.from_step, rollback.to_step));
            }
            Event::Damaged(error) => self.witness.push(format!("damaged {error}")),
            Event::Started { step, .. } => self.witness.push(format!("started {step}")),
            Event::Interrupted { step } => self.witness.push(format!("interrupted {step}")),
            Event::Finished { step } => self.witness.push(format!("finished {step}")),
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}

/// Which steps go wrong, and how.
type FaultAt = fn(&Step) -> Fault;

/// One process of a run in `folder`.
fn run(
    folder: &Path,
    config: &TrainerConfig,
    fault: fn(&Step) -> Fault,
    witness: &mut Witness,
) -> (Toy, Result<Outcome>) {
    let mut model = Toy::new(SEED).unwrap();
    model.fault = fault;
    let store = CheckpointStore::open(folder.join("checkpoints"), config.num_kept).unwrap();
    let mut metrics = Metrics::open(&folder.join("metrics.jsonl"), config.record_every).unwrap();
    let Witness { events, stop_after, stop } = witness;
    stop.store(false, Ordering::Relaxed);
    let mut watch = Watch { witness: events, stop_after: *stop_after, stop };
    let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics, &mut watch];
    let evaluation = Evaluation::new(15, |model: &mut Toy, _: &Step| {
        Ok(vec![("error".to_owned(), model.error()?)])
    });
    let session = Session {
        store: Some(&store),
        evaluations: vec![evaluation.unwrap()],
        stop: Some(stop),
        config: "toy".into(),
        ..Session::new(&mut observers)
    };
    let outcome = Trainer::new(config.clone(), SEED).unwrap().run(&mut model, session);
    (model, outcome)
}

fn last_files(folder: &Path) -> Vec<Vec<u8>> {
    let checkpoints = folder.join("checkpoints");
    let name = fs::read_to_string(checkpoints.join("last")).unwrap();
    let last = checkpoints.join(name.trim());
    vec![
        fs::read(last.join(STATE_FILE)).unwrap(),
        fs::read(last.join(META_FILE)).unwrap(),
        fs::read(folder.join("metrics.jsonl")).unwrap(),
    ]
}

fn last_meta(folder: &Path) -> ebp::checkpoint::CheckpointMeta {
    Checkpoint::load(&folder.join("checkpoints/last")).unwrap().meta
}

#[test]
fn the_toy_learns_without_any_files() {
    let mut model = Toy::new(SEED).unwrap();
    let config = TrainerConfig { num_steps: 400, ..config() };
    let trainer = Trainer::new(config, SEED).unwrap();
    let outcome = trainer.run(&mut model, Session::new(&mut Silent)).unwrap();
    assert_eq!(outcome, Outcome::Finished { step: 400 });
    assert!(model.error().unwrap() < 0.1, "{}", model.error().unwrap());
    // The trait object works as well.
    let mut other = Toy::new(SEED).unwrap();
    let object: &mut dyn Trainable = &mut other;
    trainer.run(object, Session::new(&mut Silent)).unwrap();
    assert_eq!(format!("{:?}", model.state()), format!("{:?}", other.state()));
}

/// Weights have no moments to go on with: nothing is trained, and nothing is told to have begun.
#[test]
fn weights_are_not_trained_further() {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path().join("checkpoints"), 1).unwrap();
    let meta = CheckpointMeta {
        seed: SEED,
        holds: Holds::Weights(BTreeMap::new()),
        ..CheckpointMeta::default()
    };
    let state = Toy::new(SEED).unwrap().state().unwrap();
    store.save(&Checkpoint { state, meta }, 1).unwrap();
    let mut witness = Witness::default();
    let (_, outcome) = run(folder.path(), &config(), |_| Fault::None, &mut witness);
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("found weights only"), "{message}");
    assert!(witness.events.is_empty(), "{:?}", witness.events);
}

#[test]
fn an_interruption_at_any_step_changes_no_byte() {
    let whole = tempfile::tempdir().unwrap();
    let mut witness = Witness::default();
    run(whole.path(), &config(), |_| Fault::None, &mut witness).1.unwrap();
    assert_eq!(witness.events[..3], ["started 0", "saved 0", "saved 10"]);
    assert_eq!(witness.events.last().unwrap(), "finished 60");
    for stop_after in [0, 8, 9, 10, 33, 58] {
        let parts = tempfile::tempdir().unwrap();
        let mut witness = Witness { stop_after: Some(stop_after), ..Witness::default() };
        let outcome = run(parts.path(), &config(), |_| Fault::None, &mut witness).1.unwrap();
        assert_eq!(outcome, Outcome::Interrupted { step: stop_after + 1 });
        assert_eq!(last_meta(parts.path()).step, stop_after + 1);
        witness = Witness::default();
        run(parts.path(), &config(), |_| Fault::None, &mut witness).1.unwrap();
        assert_eq!(witness.events[0], format!("started {}", stop_after + 1));
        assert_eq!(last_files(parts.path()), last_files(whole.path()));
    }
}

#[test]
fn a_damaged_checkpoint_costs_steps_and_no_byte() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(whole.path(), &config(), |_| Fault::None, &mut Witness::default()).1.unwrap();
    let mut witness = Witness { stop_after: Some(33), ..Witness::default() };
    run(parts.path(), &config(), |_| Fault::None, &mut witness).1.unwrap();
    let newest = parts.path().join("checkpoints/step-000000000034");
    fs::write(newest.join(STATE_FILE), b"cut").unwrap();
    witness = Witness::default();
    run(parts.path(), &config(), |_| Fault::None, &mut witness).1.unwrap();
    assert!(witness.events[0].starts_with("damaged `"), "{:?}", witness.events);
    assert!(witness.events[0].contains("step-000000000034"), "{:?}", witness.events);
    assert_eq!(witness.events[1], "started 30");
    assert_eq!(last_files(parts.path()), last_files(whole.path()));
}

/// Once, at step 27.
fn once(step: &Step) -> Fault {
    let is_first = step.learning_rate_factor > 0.9;
    if step.number == 27 && is_first { Fault::Record } else { Fault::None }
}

#[test]
fn a_rollback_goes_back_halves_the_rate_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut witness = Witness::default();
    let outcome = run(folder.path(), &rolling_back(), once, &mut witness).1.unwrap();
    assert_eq!(outcome, Outcome::Finished { step: 60 });
    assert!(witness.events.contains(&"back 27 20".to_owned()), "{:?}", witness.events);
    let meta = last_meta(folder.path());
    assert!((meta.learning_rate_factor - 0.5).abs() < f64::EPSILON);
    assert_eq!(meta.rollbacks.len(), 1);
    assert_eq!((meta.rollbacks[0].from_step, meta.rollbacks[0].to_step), (27, 20));
    assert_eq!(
        (meta.rollbacks[0].quantity.as_str(), meta.rollbacks[0].found.as_str()),
        ("loss", "NaN")
    );

    // Each step once, and between 19 and 20 the line of the rollback.
    let text = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<_> = lines.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    let expected: Vec<_> = (0..20).chain([20]).chain(20..60).collect();
    assert_eq!(steps, expected);
    assert_eq!(lines[20]["rollback"], 1);
    assert_eq!(lines[20]["from_step"], 27);
    assert!(lines[21]["loss"].is_number() && lines[30]["error"].is_number());
}

#[test]
fn noise_is_fresh_after_a_rollback() {
    let (calm, rolled) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(calm.path(), &config(), |_| Fault::None, &mut Witness::default()).1.unwrap();
    run(rolled.path(), &rolling_back(), once, &mut Witness::default()).1.unwrap();
    let line = |folder: &Path, number: usize| {
        let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
        text.lines().nth(number).unwrap().to_owned()
    };
    assert_eq!(line(calm.path(), 19), line(rolled.path(), 19));
    // Step 20 starts from the same state: another loss means other data.
    assert_ne!(line(calm.path(), 20), line(rolled.path(), 21));
}

#[test]
fn rollback_and_interruption_together_change_no_byte() {
    let whole = tempfile::tempdir().unwrap();
    run(whole.path(), &rolling_back(), once, &mut Witness::default()).1.unwrap();
    for stop_after in [20, 24, 26] {
        let parts = tempfile::tempdir().unwrap();
        let mut witness = Witness { stop_after: Some(stop_after), ..Witness::default() };
        let outcome = run(parts.path(), &rolling_back(), once, &mut witness).1.unwrap();
        assert_eq!(outcome, Outcome::Interrupted { step: stop_after + 1 });
        run(parts.path(), &rolling_back(), once, &mut Witness::default()).1.unwrap();
        assert_eq!(last_files(parts.path()), last_files(whole.path()), "{stop_after}");
    }
}

#[test]
fn every_kind_of_divergence_is_caught() {
    let cases: [(FaultAt, &str, &str, u64); 3] = [
        (|step| if step.number == 25 { Fault::Record } else { Fault::None }, "loss", "NaN", 25),
        (
            |step| if step.number == 25 { Fault::Gradient } else { Fault::None },
            "gradient of slope",
            "inf",
            25,
        ),
        // A parameter spoilt in the step before a checkpoint is found when it is saved.
        (
            |step| if step.number == 29 { Fault::State } else { Fault::None },
            "parameters/model.slope",
            "NaN",
            29,
        ),
    ];
    for (fault, quantity, found, step) in cases {
        let folder = tempfile::tempdir().unwrap();
        let (model, outcome) = run(folder.path(), &config(), fault, &mut Witness::default());
        let error = outcome.unwrap_err();
        let message = error.to_string();
        let expected = format!("step {step} diverged: `{quantity}` must be finite, found {found}");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.contains("the checkpoint of step 20 is kept"), "{message}");
        assert!(message.contains("`on_divergence`"), "{message}");
        assert!(model.error().unwrap().is_finite(), "the model is back in its last good state");
        assert_eq!(last_meta(folder.path()).step, 20);
    }
}

#[test]
fn rollbacks_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let always: fn(&Step) -> Fault =
        |step| if step.number == 25 { Fault::Record } else { Fault::None };
    let error = run(folder.path(), &rolling_back(), always, &mut Witness::default()).1.unwrap_err();
    assert!(matches!(error, Error::Diverged { step: 25, .. }), "{error:?}");
    assert!(error.to_string().contains("all 2 rollbacks are spent"), "{error}");
    let meta = last_meta(folder.path());
    assert_eq!((meta.step, meta.rollbacks.len()), (20, 2));
    assert!((meta.learning_rate_factor - 0.25).abs() < f64::EPSILON);
    let text = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("rollback")).count(), 2);
}

#[test]
fn the_best_checkpoint_is_chosen_by_the_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let config = TrainerConfig {
        best_quantity: Some("error".into()),
        best_is: BestIs::Lowest,
        num_steps: 40,
        ..config()
    };
    let mut witness = Witness::default();
    run(folder.path(), &config, |_| Fault::None, &mut witness).1.unwrap();
    // The error falls all the way: 15, 30, and 40, the last.
    let best: Vec<_> = witness.events.iter().filter(|event| event.ends_with("best")).collect();
    assert_eq!(best, ["saved 15 best", "saved 30 best", "saved 40 best"]);
    assert_eq!(Checkpoint::load(&folder.path().join("checkpoints/best")).unwrap().meta.step, 40);

    let folder = tempfile::tempdir().unwrap();
    let config = TrainerConfig { best_is: BestIs::Highest, ..config };
    run(folder.path(), &config, |_| Fault::None, &mut Witness::default()).1.unwrap();
    assert_eq!(Checkpoint::load(&folder.path().join("checkpoints/best")).unwrap().meta.step, 15);

    let folder = tempfile::tempdir().unwrap();
    let config = TrainerConfig { best_quantity: Some("eror".into()), ..config };
    let error = run(folder.path(), &config, |_| Fault::None, &mut Witness::default()).1;
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with("`best_quantity` must be one of"), "{message}");
}

#[test]
fn another_seed_and_empty_intervals_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &config(), |_| Fault::None, &mut Witness::default()).1.unwrap();
    let store = CheckpointStore::open(folder.path().join("checkpoints"), 2).unwrap();
    let mut silent = Silent;
    let session = Session { store: Some(&store), ..Session::new(&mut silent) };
    let trainer = Trainer::new(config(), SEED + 1).unwrap();
    let message = trainer.run(&mut Toy::new(SEED).unwrap(), session).unwrap_err().to_string();
    assert_eq!(message, "`seed` must be 5, found 6");
    let config = TrainerConfig { checkpoint_every: 0, ..config() };
    assert!(Trainer::new(config, SEED).is_err());
}
