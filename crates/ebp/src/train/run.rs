//! The one driver: what every training run does around its model.
//!
//! [`Plan`] is what decides a run's bytes, [`Surroundings`] what does not: the folder, the
//! observers, the wish to stop. A folder that holds the run already goes on from its newest
//! checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{
    Evaluation, Event, Existing, Observer, Outcome, RunDescription, RunDirectory, Session,
    Trainable, Trainer, TrainerConfig,
};
use crate::checkpoint::{Checkpoint, CheckpointMeta};
use crate::config::differing_keys;
use crate::exchange::Ranks;
use crate::files::{read_json, write_json};
use crate::tensor::Tensors;
use crate::{Error, Result};

/// Seconds of training so far, beside the run.
pub(super) const SECONDS_FILE: &str = "seconds.json";

/// What is trained and how.
#[derive(Debug)]
pub struct Plan<'a, T: ?Sized> {
    /// The resolved settings as TOML.
    pub config: String,
    /// Keys of `config` that may differ from those of the run that is resumed.
    pub changeable: Vec<String>,
    /// Settings of the loop.
    pub trainer: TrainerConfig,
    /// Seed of all random numbers.
    pub seed: u64,
    /// What to measure on the way.
    pub evaluations: Vec<Evaluation<'a, T>>,
    /// Numbers that belong to the model, such as the scales of its data.
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// A state to start from in place of the model's own, such as trained weights.
    pub start: Option<Tensors>,
}

/// Where a run is kept and who watches it.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Folder of the run; without one nothing is kept.
    pub directory: Option<PathBuf>,
    /// What to do if it holds a run.
    pub existing: Existing,
    /// The processes that train together, if there are several: only the first keeps the run and is watched.
    pub ranks: Option<Arc<Ranks>>,
    /// Who is told, beside the files of the folder.
    pub observer: &'a mut dyn Observer,
    /// Once it is true, the run saves its state and ends.
    pub stop: Option<&'a AtomicBool>,
    /// Where it computes, for `run.json`.
    pub device: String,
    /// The program, for `run.json`.
    pub program: Program,
}

/// What a run's folder says about the program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Commit it was built from, where known.
    pub commit: Option<String>,
    /// The command line, program first.
    pub arguments: Vec<String>,
    /// Seconds since 1970, for TensorBoard's axis of time; without it there is no file for it.
    pub start_time: Option<f64>,
}

/// A run that took all its steps.
#[derive(Debug)]
pub struct Finished {
    /// What it has become.
    pub checkpoint: Checkpoint,
    /// Seconds of training, those before an interruption among them.
    pub seconds: f64,
}

/// Trains `model` as planned.
///
/// # Errors
///
/// [`Error::Interrupted`] if it was asked to stop, with everything saved; [`Error::Occupied`] or
/// [`Error::Refused`] if the folder, the settings or the start do not allow the run; otherwise as
/// [`Trainer::run`].
pub fn run_training<T>(
    model: &mut T,
    plan: Plan<'_, T>,
    mut around: Surroundings<'_>,
) -> Result<Finished>
where
    T: Trainable + ?Sized,
{
    let is_first = around.ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0);
    if !is_first {
        around.directory = None;
    }
    let trainer = Trainer::new(plan.trainer.clone(), plan.seed)?;
    // Before anything is written.
    trainer.check_cut(model)?;
    if let Some(start) = &plan.start {
        check_fits(&model.state()?, start)?;
        model.restore(start)?;
    }
    let directory = match &around.directory {
        Some(path) => Some(RunDirectory::open(path, around.existing)?),
        None => None,
    };
    let mut stopwatch = Stopwatch::new(around.directory.as_deref());
    let (mut metrics, mut tensorboard, mut store) = (None, None, None);
    if let Some(directory) = &directory {
        check_same_config(directory, &plan.config, &plan.changeable)?;
        let Program { commit, arguments, start_time } = around.program;
        let description = RunDescription {
            version: env!("CARGO_PKG_VERSION").into(),
            commit,
            device: around.device,
            threads: rayon::current_num_threads(),
            seed: plan.seed,
            arguments,
        };
        directory.describe(&plan.config, &description)?;
        let every = plan.trainer.record_every;
        store = Some(directory.checkpoints(plan.trainer.num_kept)?);
        metrics = Some(directory.metrics(every)?);
        if let Some(time) = start_time {
            tensorboard = Some(directory.tensorboard(every, time)?);
        }
    }
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    observers.extend(metrics.iter_mut().map(|metrics| metrics as &mut dyn Observer));
    observers.extend(tensorboard.iter_mut().map(|board| board as &mut dyn Observer));
    observers.push(&mut stopwatch);
    if is_first {
        observers.push(around.observer);
    }
    let session = Session {
        store: store.as_ref(),
        evaluations: plan.evaluations,
        observer: &mut observers,
        stop: around.stop,
        ranks: around.ranks.as_deref(),
        config: plan.config.clone(),
        numbers: plan.numbers.clone(),
    };
    match trainer.run(model, session)? {
        Outcome::Interrupted { step } => Err(Error::Interrupted { step }),
        Outcome::Finished { step } => {
            let meta = CheckpointMeta {
                step,
                seed: plan.seed,
                config: plan.config,
                numbers: plan.numbers,
                ..CheckpointMeta::default()
            };
            let checkpoint = Checkpoint { state: model.state()?, meta };
            Ok(Finished { checkpoint, seconds: stopwatch.seconds() })
        }
    }
}

/// Seconds that the training in a run's folder took; `None` where they were not kept.
pub fn seconds_of_training(directory: &Path) -> Option<f64> {
    Some(read_json::<Seconds>(&directory.join(SECONDS_FILE))?.seconds)
}

/// A run goes on with the settings it began with.
fn check_same_config(directory: &RunDirectory, config: &str, changeable: &[String]) -> Result<()> {
    let Some(before) = directory.config()? else { return Ok(()) };
    let mut keys = differing_keys(&before, config)?;
    keys.retain(|key| !changeable.contains(key));
    if keys.is_empty() {
        return Ok(());
    }
    let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    Err(Error::refused(format!(
        "the run in `{}` was begun with other settings: {} changed",
        directory.path().display(),
        keys.join(", ")
    ))
    .with_help("resume with the same settings, or begin a new run in another folder"))
}

/// That weights are those of a network of the same sizes.
fn check_fits(own: &Tensors, start: &Tensors) -> Result<()> {
    let wrong = |reason: String| {
        let message = format!("the weights to start from do not fit these settings: {reason}");
        Err(Error::refused(message))
    };
    for (name, tensor) in own {
        match start.get(name) {
            None => return wrong(format!("they have no `{name}`")),
            Some(found) if found.dims() != tensor.dims() => {
                return wrong(format!(
                    "`{name}` must be of shape {:?}, found {:?}",
                    tensor.dims(),
                    found.dims()
                ));
            }
            Some(_) => {}
        }
    }
    match start.keys().find(|name| !own.contains_key(*name)) {
        None => Ok(()),
        Some(name) => wrong(format!("these have no `{name}`")),
    }
}

/// The time of training, kept with every checkpoint so that an interruption does not forget it.
#[derive(Debug)]
struct Stopwatch {
    path: Option<PathBuf>,
    before: f64,
    started: Instant,
}

/// The file of a [`Stopwatch`].
#[derive(Serialize, Deserialize)]
struct Seconds {
    seconds: f64,
}

impl Stopwatch {
    fn new(directory: Option<&Path>) -> Self {
        let path = directory.map(|directory| directory.join(SECONDS_FILE));
        Self { path, before: 0.0, started: Instant::now() }
    }

    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }
}

impl Observer for Stopwatch {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        match (event, &self.path) {
            (Event::Started { step, .. }, path) => {
                let before = path.as_deref().and_then(read_json::<Seconds>);
                self.before = before.filter(|_| *step > 0).map_or(0.0, |before| before.seconds);
                self.started = Instant::now();
            }
            (Event::Checkpoint { .. }, Some(path)) => {
                write_json(path, &Seconds { seconds: self.seconds() })?;
            }
            _ => {}
        }
        Ok(())
    }
}
