//! Gradient penalty and spectral normalisation hold the slope of an energy of points that learns against a
//! sampler; what a step of that game records is what it says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::cast_possible_truncation, reason = "places for a network in f32")]

use ebp::IndexedSet;
use ebp::nn::{Record, Step};
use ebp::process::{EnergyBasedProcess, Learner, Task};
use ebp::recipe::{EnergyBasedConfig, Estimator, NegativePhase, SamplerConfig, SamplerKind, Space};
use ebp::rng::Stream;
use ebp::tape::Device;

const NUM_STEPS: u64 = 60;

/// Points on a circle of radius 1 in space, with noise 0.02 off it: a sharp law.
fn circle(stream: Stream, n: usize) -> Vec<f64> {
    let (mut uniforms, mut normals) = (vec![0.0; n], vec![0.0; 3 * n]);
    stream.child(0).fill_uniform(0, 0, &mut uniforms);
    stream.child(1).fill_normal(0, 0, &mut normals);
    let mut points = Vec::with_capacity(3 * n);
    for (u, noise) in uniforms.iter().zip(normals.chunks_exact(3)) {
        let (sine, cosine) = (std::f64::consts::TAU * f64::from(*u)).sin_cos();
        let place = [cosine, sine, 0.0];
        points.extend(place.iter().zip(noise).map(|(x, noise)| x + 0.02 * f64::from(*noise)));
    }
    points
}

fn config() -> EnergyBasedConfig {
    EnergyBasedConfig {
        estimator: Estimator::Ade,
        latent_dim: 2,
        encoder_widths: vec![16],
        head_widths: vec![],
        energy_widths: vec![32, 32],
        input_scale: 5.0,
        likelihood_points: 32,
        encoder_points: 32,
        learning_rate: 1e-2,
        learning_rate_warm_up: 0,
        average_decay: 0.5,
        sampler: SamplerConfig {
            hyper_widths: vec![16],
            num_components: 16,
            num_draws: 64,
            learning_rate: 1e-2,
            ..SamplerConfig::points()
        },
        ..EnergyBasedConfig::points()
    }
}

/// A process after some steps, and what the last one recorded.
fn trained(config: EnergyBasedConfig) -> (EnergyBasedProcess, Record) {
    let space = Space::points(3, 2.0);
    let mut process = EnergyBasedProcess::new(config, space, 3, &Device::default()).unwrap();
    let mut last = Vec::new();
    for number in 0..NUM_STEPS {
        let stream = Stream::new(1, "training").child(number);
        let tasks: Vec<Task> = (0..4)
            .map(|set| {
                let set = IndexedSet::new(0, 3, vec![], circle(stream.child(set), 32)).unwrap();
                Task { context: set.select(&[]), target: set }
            })
            .collect();
        let stream = stream.child(9);
        let step = Step { number, num_steps: NUM_STEPS, stream, learning_rate_factor: 1.0 };
        last = Learner::learn(&mut process, &tasks, &step).unwrap();
    }
    (process, last)
}

/// Root mean square and largest ‖∇ₓf‖ near the data at θ = 0, by central differences.
fn slopes(process: &EnergyBasedProcess) -> (f64, f64) {
    let h = 1e-3;
    let s0 = f64::from(config().base_std_dev);
    let places = circle(Stream::new(7, "places"), 200);
    let f = |at: &[f64]| -> Vec<f64> {
        let points: Vec<f32> = at.iter().map(|&x| x as f32).collect();
        let u = process.log_potentials(&points, &[0.0, 0.0]).unwrap();
        let rows = at.chunks_exact(3).map(|x| x.iter().map(|x| x * x).sum::<f64>());
        u.iter().zip(rows).map(|(&u, square)| f64::from(u) + 0.5 * square / (s0 * s0)).collect()
    };
    let mut squares = vec![0.0; 200];
    for axis in 0..3 {
        let moved = |by: f64| -> Vec<f64> {
            let moves = places.iter().enumerate();
            f(&moves.map(|(i, x)| if i % 3 == axis { x + by } else { *x }).collect::<Vec<_>>())
        };
        for (square, (high, low)) in squares.iter_mut().zip(moved(h).iter().zip(moved(-h))) {
            *square += ((high - low) / (2.0 * h)).powi(2);
        }
    }
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    (mean.sqrt(), squares.iter().fold(0.0_f64, |a, b| a.max(*b)).sqrt())
}

fn number(record: &Record, name: &str) -> f64 {
    record.iter().find(|(own, _)| *own == name).unwrap().1
}

/// SiLU is nowhere steeper than 1.1, and two hidden layers and the last one have singular values of at most 1 as well
/// as one power iteration a step knows them.
#[test]
fn spectral_norm_bounds_the_slope_of_a_cloud() {
    let (free, _) = trained(config());
    let (held, _) = trained(EnergyBasedConfig { spectral_norm: true, ..config() });
    let bound = 1.1_f64.powi(2);
    let ((_, free), (_, held)) = (slopes(&free), slopes(&held));
    assert!(free > 2.0 * bound, "{free}: without it the energy is steep");
    assert!(held < 1.1 * bound, "{held}");
}

#[test]
fn a_gradient_penalty_flattens_the_energy_of_a_cloud() {
    for negative_phase in [NegativePhase::Weighted, NegativePhase::Plain] {
        let config = || {
            let mut config = config();
            config.sampler.negative_phase = negative_phase;
            config
        };
        let (free, _) = trained(config());
        let (held, _) = trained(EnergyBasedConfig { gradient_penalty: 1.0, ..config() });
        let ((free, _), (held, _)) = (slopes(&free), slopes(&held));
        assert!(held < 0.5 * free, "{negative_phase:?}: {held} and {free}");
    }
}

/// β₁ of both players, and how often the sampler learns.
#[test]
fn rates_of_the_game_are_settings() {
    let state = |change: &dyn Fn(&mut EnergyBasedConfig)| {
        let mut config = config();
        change(&mut config);
        let (process, _) = trained(config);
        process.state().unwrap()
    };
    let part = |state: &ebp::tensor::Tensors, name: &str| {
        let own = state.iter().filter(|(own, _)| own.starts_with(name));
        own.map(|(name, tensor)| (name.clone(), tensor.as_f32().unwrap_or(&[]).to_vec()))
            .collect::<Vec<_>>()
    };
    let usual = state(&|_| ());
    for change in [
        (|config: &mut EnergyBasedConfig| config.beta1 = 0.0) as fn(&mut EnergyBasedConfig),
        |config| config.sampler.beta1 = 0.0,
        |config| config.sampler.updates_per_step = 2,
    ] {
        let other = state(&change);
        assert_ne!(part(&usual, "parameters/"), part(&other, "parameters/"));
    }
}

/// Without the weight of KL a plain game's loss is the gap turned around, a weighted one's the nats; the slack is
/// never negative.
#[test]
fn what_is_recorded_fits_together() {
    for kind in [SamplerKind::Mixture, SamplerKind::Flow] {
        let mut config = EnergyBasedConfig { kl_weight: 0.0, ..config() };
        if kind == SamplerKind::Flow {
            config.sampler = SamplerConfig { kind, num_layers: 2, ..config.sampler.as_published() };
        }
        let (_, record) = trained(config);
        let (loss, expected) = match kind {
            SamplerKind::Flow => (number(&record, "loss"), -number(&record, "gap")),
            _ => (number(&record, "loss"), number(&record, "nats")),
        };
        // The gap is a difference of differences of numbers below 10 in f32.
        assert!((loss - expected).abs() < 1e-4, "{record:?}");
        assert!((0.0..=1.0).contains(&number(&record, "effective_share")), "{record:?}");
        // Jensen: E[L − u] + log E exp(u − L) ≥ 0, also for the average over draws.
        assert!(number(&record, "slack") > -1e-4, "{record:?}");
        assert!(number(&record, "sampler_loss").is_finite(), "{record:?}");
    }
}
