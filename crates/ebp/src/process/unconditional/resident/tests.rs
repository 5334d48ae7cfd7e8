//! Who has the newest numbers: a device that only counts stands in for one that learns.

use std::sync::Mutex;

use super::*;
use crate::point::{CpuBackend, ResidentBatch};
use crate::rng::Stream;

/// Every step adds 1 to all parameters and sets the rest to known numbers.
#[derive(Debug, Default)]
struct Counting {
    state: Mutex<ResidentState>,
    num_loads: Mutex<usize>,
    /// What the next step finds not finite.
    non_finite: Mutex<Option<(usize, f32)>>,
}

#[derive(Debug)]
struct Learner(Arc<Counting>);

#[derive(Debug)]
struct Sent {
    device: Arc<Counting>,
    sets: usize,
}

impl ResidentLearner for Learner {
    fn load(&self, state: &ResidentState) -> Result<()> {
        *self.0.state.lock().unwrap() = state.clone();
        *self.0.num_loads.lock().unwrap() += 1;
        Ok(())
    }

    fn save(&self) -> Result<ResidentState> {
        Ok(self.0.state.lock().unwrap().clone())
    }

    fn send(&self, batch: &ResidentBatch<'_>) -> Result<Box<dyn SentBatch>> {
        Ok(Box::new(Sent { device: Arc::clone(&self.0), sets: batch.offsets.num_sets() }))
    }
}

impl SentBatch for Sent {
    fn learn(self: Box<Self>, step: &ResidentStep) -> Result<ResidentReport> {
        assert_eq!(step.kl_weights.len(), self.sets);
        let mut state = self.device.state.lock().unwrap();
        state.parameters.iter_mut().for_each(|w| *w += 1.0);
        state.first.fill(2.0);
        state.second.fill(3.0);
        state.average.fill(4.0);
        state.num_steps += 1;
        Ok(ResidentReport {
            log_partition: vec![1.5; self.sets],
            means: vec![0.5; self.sets],
            kl: vec![3.0; self.sets],
            unit_kl: vec![1.0, 0.0],
            shares: vec![[8.0, 0.25, 0.125]; self.sets],
            gradient_norm: 5.0,
            non_finite: *self.device.non_finite.lock().unwrap(),
        })
    }
}

fn process(config: &UnconditionalConfig) -> (UnconditionalProcess, Arc<Counting>) {
    let device = Arc::<Counting>::default();
    let learner: Arc<dyn ResidentLearner> = Arc::new(Learner(Arc::clone(&device)));
    let cpu = Arc::new(CpuBackend::new());
    let mut process = UnconditionalProcess::new(config.clone(), 1, cpu).unwrap();
    let model = process.parameters().unwrap().group("model");
    let resident = Resident::on(config, &model, |_| Ok(Some(learner))).unwrap();
    process.networks.learn_on(resident);
    (process, device)
}

fn small() -> UnconditionalConfig {
    UnconditionalConfig {
        latent_dim: 2,
        encoder_widths: vec![5, 7],
        head_widths: vec![3],
        energy_widths: vec![6, 5],
        num_proposals: 32,
        ..UnconditionalConfig::default()
    }
}

fn learn(process: &mut UnconditionalProcess) -> Result<Record> {
    let set: Vec<f32> = (0..30).map(|i| (0.1 * i as f32).sin()).collect();
    let stream = Stream::new(1, "step");
    let step = Step { number: 0, num_steps: 10, stream, learning_rate_factor: 1.0 };
    process.learn(&[&set, &set[..15]], &step)
}

/// All numbers of a part of the state, by name.
fn part(process: &UnconditionalProcess, part: &str, end: &str) -> Vec<(String, Vec<f32>)> {
    let state = process.state().unwrap();
    let chosen = state.iter().filter(|(name, _)| name.starts_with(part) && name.ends_with(end));
    chosen.map(|(name, tensor)| (name.clone(), tensor.as_f32().unwrap().to_vec())).collect()
}

#[test]
fn whoever_asks_gets_what_the_device_learned() {
    let (mut process, device) = process(&small());
    let before = part(&process, "parameters/", "");
    let record = learn(&mut process).unwrap();
    learn(&mut process).unwrap();
    assert_eq!(*device.num_loads.lock().unwrap(), 1, "numbers stay on the device");
    let after = part(&process, "parameters/", "");
    assert_eq!(before.len(), after.len());
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let expected: Vec<f32> = before.iter().map(|w| w + 1.0 + 1.0).collect();
        assert_eq!(&expected, after, "{name}");
    }
    for (where_it_is, end, expected) in
        [("adam/", ".first_moment", 2.0), ("adam/", ".second_moment", 3.0), ("average/", "", 4.0)]
    {
        let found = part(&process, where_it_is, end);
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|(_, numbers)| numbers.iter().all(|x| x.to_bits() == f32::to_bits(expected)))
        );
    }
    let state = process.state().unwrap();
    let counts = state.iter().filter(|(name, _)| name.ends_with(".num_steps"));
    assert!(counts.clone().count() == before.len());
    assert!(counts.clone().all(|(_, count)| count.as_integer() == Some(2)));

    let value = |name: &str| record.iter().find(|(key, _)| *key == name).unwrap().1;
    assert_eq!((value("kl"), value("gradient_norm")), (3.0, 5.0));
    assert_eq!((value("active_units"), value("effective_candidates")), (1.0, 8.0));
    assert_eq!((value("near_share"), value("largest_share")), (0.25, 0.125));
}

#[test]
fn averages_and_restored_states_go_to_the_device_and_back() {
    let (mut process, device) = process(&small());
    let saved = process.state().unwrap();
    learn(&mut process).unwrap();
    process.use_average().unwrap();
    let energy = process.calibrated_mlp().unwrap();
    assert!(energy.parameters().iter().all(|w| (w - 4.0).abs() < 1e-6), "averages are used");
    // Back to the parameters for the next step, which begins where the last one ended.
    learn(&mut process).unwrap();
    assert_eq!(*device.num_loads.lock().unwrap(), 2);
    let first = device.state.lock().unwrap().parameters[0];

    process.restore(&saved).unwrap();
    learn(&mut process).unwrap();
    let again = device.state.lock().unwrap();
    assert!((again.parameters[0] - (first - 1.0)).abs() < 1e-6);
    assert_eq!(again.num_steps, 1);
}

#[test]
fn an_entry_that_is_not_finite_is_named_by_its_parameter() {
    let (mut process, device) = process(&small());
    learn(&mut process).unwrap();
    // The parts lie in the order of their names, at multiples of 64 numbers.
    let names: Vec<String> = part(&process, "average/", "").into_iter().map(|(n, _)| n).collect();
    let place = names.iter().position(|name| name.ends_with("head.0.weight")).unwrap();
    let start: usize = part(&process, "average/", "")[..place]
        .iter()
        .map(|(_, numbers)| numbers.len().next_multiple_of(ALIGNMENT))
        .sum();
    *device.non_finite.lock().unwrap() = Some((start + 4, f32::NAN));
    let error = learn(&mut process).unwrap_err().to_string();
    assert!(error.contains("model.encoder.head.0.weight") && error.contains('4'), "{error}");
}

#[test]
fn other_kinds_of_steps_stay_on_the_host() {
    let kinds = [
        UnconditionalConfig { spectral_norm: true, ..small() },
        UnconditionalConfig { estimator: CloudEstimator::ScoreMatching, ..small() },
    ];
    for config in kinds {
        let (mut process, device) = process(&config);
        assert!(!process.learns_on_device());
        learn(&mut process).unwrap();
        assert_eq!(*device.num_loads.lock().unwrap(), 0);
    }
    assert!(process(&small()).0.learns_on_device());
}
