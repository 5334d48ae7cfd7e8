//! Training on the GPU against training on the CPU. On a machine without a GPU every test says why it is skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ebp::batch::TaskBatch;
use ebp::nn::Step;
use ebp::point::{Activation, CudaBackend, Precision};
use ebp::process::EnergyBasedProcess;
use ebp::recipe::{EnergyBasedConfig, LatentAt, PerturbationConfig, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::tensor::Tensor;

/// The GPU, or a printed reason.
fn gpu() -> Option<Device> {
    static GPU: OnceLock<Result<CudaBackend, String>> = OnceLock::new();
    let found =
        GPU.get_or_init(|| CudaBackend::new(0, Precision::F32).map_err(|error| error.to_string()));
    match found {
        Ok(backend) => Some(Device::Cuda(backend.clone())),
        Err(reason) => {
            eprintln!("SKIPPED, no GPU is tested: {reason}");
            None
        }
    }
}

fn config() -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 8,
        encoder_widths: vec![64, 128, 96],
        head_widths: vec![48, 32],
        energy_widths: vec![64, 48],
        input_scale: 4.0,
        num_proposals: 256,
        encoder_points: 300,
        likelihood_points: 200,
        learning_rate: 2e-3,
        learning_rate_warm_up: 10,
        kl_warm_up: 10,
        average_decay: 0.95,
        perturbation: PerturbationConfig { share: 0.5, ..PerturbationConfig::default() },
        ..EnergyBasedConfig::points()
    }
}

/// A ring around the z axis of a radius and a size that follow from `number`.
fn ring(number: u64) -> Vec<f32> {
    let stream = Stream::new(number, "ring");
    let mut draws = vec![0.0; 2 * (180 + 37 * usize::try_from(number % 5).unwrap())];
    stream.fill_uniform(0, 0, &mut draws);
    let radius = 0.5 + 0.7 * stream.child(1).normal(0, 0).abs().min(1.0);
    let point = |u: &[f32]| {
        let (sine, cosine) = (std::f32::consts::TAU * u[0]).sin_cos();
        [radius * cosine, radius * sine, 0.1 * (u[1] - 0.5)]
    };
    draws.chunks_exact(2).flat_map(point).collect()
}

struct Run {
    process: EnergyBasedProcess,
    next: u64,
}

impl Run {
    fn new(config: &EnergyBasedConfig, device: &Device) -> Self {
        let space = Space::points(3, 2.0);
        Self {
            process: EnergyBasedProcess::new(config.clone(), space, 7, device).unwrap(),
            next: 0,
        }
    }

    /// What the next step says, by name.
    fn step(&mut self) -> BTreeMap<&'static str, f64> {
        let sets: Vec<Vec<f32>> = (0..6).map(|place| ring((6 * self.next + place) % 24)).collect();
        let sets: Vec<&[f32]> = sets.iter().map(Vec::as_slice).collect();
        let stream = Stream::new(3, "steps").child(self.next);
        let step = Step { number: self.next, num_steps: 400, stream, learning_rate_factor: 1.0 };
        self.next += 1;
        let tasks = TaskBatch::whole(self.process.point_sets(&sets).unwrap());
        let batch = self.process.batch_maker().prepare(&tasks, &step).unwrap();
        self.process.learn(&batch, &step).unwrap().into_iter().collect()
    }

    fn state(&self) -> BTreeMap<String, Vec<f32>> {
        let numbers = |tensor: &Tensor| tensor.as_f32().map(<[f32]>::to_vec);
        let state = self.process.state().unwrap();
        state.iter().filter_map(|(name, tensor)| Some((name.clone(), numbers(tensor)?))).collect()
    }
}

/// ‖found − expected‖ / ‖expected‖
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    let pairs = || found.iter().zip(expected).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let error: f64 = pairs().map(|(a, b)| (a - b).powi(2)).sum();
    (error / pairs().map(|(_, b)| b * b).sum::<f64>().max(1e-300)).sqrt()
}

/// Settings that go through every branch of a step.
fn variants() -> Vec<EnergyBasedConfig> {
    let other = EnergyBasedConfig {
        encoder_widths: vec![32],
        head_widths: vec![],
        energy_widths: vec![31, 17],
        activation: Activation::Tanh,
        latent_at: LatentAt::FirstLayer,
        temperature: 0.3,
        latent_dim: 5,
        max_gradient_norm: 0.01,
        weight_decay: 0.1,
        ..config()
    };
    vec![config(), other]
}

/// After one step Adam's first moment is a tenth of the gradient: everything before it was right.
#[test]
fn the_first_step_has_the_gradient_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for config in variants() {
        let mut there = Run::new(&config, &gpu);
        let mut here = Run::new(&config, &Device::default());
        assert!(there.process.device().is_gpu() && !here.process.device().is_gpu());
        let (found, expected) = (there.step(), here.step());
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, expected) in &expected {
            let error = (found[name] - expected).abs() / expected.abs().max(1e-3);
            assert!(error < 1e-4, "{name}: {} and {expected}", found[name]);
        }
        let (found, expected) = (there.state(), here.state());
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, expected) in expected {
            let distance = distance(&found[&name], &expected);
            // Where a gradient is all rounding Adam's first step goes either way.
            let bound = if name.starts_with("adam") { 1e-5 } else { 1e-4 };
            assert!(distance < bound, "{name}: {distance:e}");
        }
    }
}

/// A GPU with little room works in chunks, which cut through sets, and finds the same gradient.
#[test]
fn chunks_change_the_gradient_by_rounding_only() {
    let Some(gpu) = gpu() else { return };
    let small = CudaBackend::new(0, Precision::F32).unwrap();
    small.limit_memory(1 << 20).unwrap();
    let mut whole = Run::new(&config(), &gpu);
    let mut cut = Run::new(&config(), &Device::Cuda(small));
    let (expected, found) = (whole.step(), cut.step());
    assert!((expected["loss"] - found["loss"]).abs() < 1e-5, "{expected:?} {found:?}");
    let (expected, found) = (whole.state(), cut.state());
    for (name, expected) in expected.iter().filter(|(name, _)| name.starts_with("adam")) {
        let distance = distance(&found[name], expected);
        assert!(distance < 1e-5, "{name}: {distance:e}");
    }
}

/// Both learn, and say the same about it: the curves differ by less than the steps' own noise.
#[test]
fn curves_of_both_devices_agree() {
    let Some(gpu) = gpu() else { return };
    let curve = |device: &Device| -> (Vec<f64>, f64) {
        let mut run = Run::new(&config(), device);
        let nats: Vec<f64> = (0..300).map(|_| run.step()["nats"]).collect();
        run.process.use_average();
        let held_out: Vec<Vec<f32>> = (24..40).map(ring).collect();
        let sets: Vec<&[f32]> = held_out.iter().map(Vec::as_slice).collect();
        let record = run
            .process
            .evaluate(&run.process.point_sets(&sets).unwrap(), Stream::new(1, "held out"))
            .unwrap();
        (nats, record.iter().find(|(name, _)| *name == "nats").unwrap().1)
    };
    let (found, held_out) = curve(&gpu);
    let (expected, expected_held_out) = curve(&Device::default());
    let tail = |nats: &[f64]| {
        let tail = &nats[nats.len() - 100..];
        let mean = tail.iter().sum::<f64>() / 100.0;
        let variance = tail.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 99.0;
        (mean, variance.sqrt())
    };
    let ((found, _), (expected, noise)) = (tail(&found), tail(&expected));
    eprintln!(
        "{found:.4} {expected:.4} ± {noise:.4}, held out {held_out:.4} {expected_held_out:.4}"
    );
    assert!((found - expected).abs() < 4.0 * noise / 10.0, "{found} {expected} ± {noise}");
    assert!((held_out - expected_held_out).abs() < 0.5 * noise, "{held_out} {expected_held_out}");
}

/// Bits do not depend on who looked in between, nor on a restart.
#[test]
fn looking_and_restarting_change_no_bit() {
    let Some(gpu) = gpu() else { return };
    let mut straight = Run::new(&config(), &gpu);
    for _ in 0..6 {
        straight.step();
    }
    let mut watched = Run::new(&config(), &gpu);
    for _ in 0..3 {
        watched.step();
        watched.process.use_average();
        let set = ring(30);
        let sets = watched.process.point_sets(&[&set]).unwrap();
        watched.process.evaluate(&sets, Stream::new(1, "look")).unwrap();
    }
    watched.process.use_parameters();
    let saved = watched.process.state().unwrap();
    let mut restarted = Run::new(&config(), &gpu);
    restarted.step();
    restarted.process.restore(&saved).unwrap();
    restarted.next = 3;
    for _ in 3..6 {
        restarted.step();
    }
    assert_eq!(straight.state(), restarted.state());
}

/// A step whose numbers are not finite is an error and leaves the parameters alone.
#[test]
fn a_step_that_overflows_is_an_error_and_changes_nothing() {
    let Some(gpu) = gpu() else { return };
    let mut run = Run::new(&config(), &gpu);
    run.step();
    let mut state = run.process.state().unwrap();
    let name = "parameters/model.energy.elements";
    let dims = state[name].dims().to_vec();
    let huge = vec![1e30; dims.iter().product()];
    let huge = Tensor::new(dims, huge).unwrap();
    state.insert(name.into(), huge);
    run.process.restore(&state).unwrap();
    let before = run.state();
    let set = ring(1);
    let step = Step {
        number: 1,
        num_steps: 10,
        stream: Stream::new(1, "overflow"),
        learning_rate_factor: 1.0,
    };
    let tasks = TaskBatch::whole(run.process.point_sets(&[&set]).unwrap());
    let batch = run.process.batch_maker().prepare(&tasks, &step).unwrap();
    let error = run.process.learn(&batch, &step).unwrap_err().to_string();
    assert!(error.contains("finite"), "{error}");
    assert_eq!(before, run.state());
}
