//! The conditional energy-based process: a stochastic process by its properties, and one that
//! learns two peaks where a Gaussian can only have one.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use ebp::IndexedSet;
use ebp::nn::Step;
use ebp::process::{
    EnergyBasedProcess, FillSettings, LatentProcess, Learner, PredictionRule, Predictive, Process,
    Task,
};
use ebp::recipe::{
    Dynamics, EnergyBasedConfig, Estimator, PosteriorPooling, ProposalConfig, SamplerConfig,
    SamplerKind, Space, TrainingMode,
};
use ebp::rng::Stream;
use ebp::tape::Device;

fn space() -> Space {
    Space::regression(1, 1, (-3.0, 3.0))
}

fn process(config: EnergyBasedConfig) -> EnergyBasedProcess {
    process_on(config, space())
}

fn process_on(config: EnergyBasedConfig, space: Space) -> EnergyBasedProcess {
    EnergyBasedProcess::new(config, space, 5, &Device::default()).unwrap()
}

/// n points of sin 2t or cos 2t, by a fair coin, with noise of standard deviation 0.1.
fn sines(stream: Stream, n: usize) -> IndexedSet {
    let (mut uniforms, mut normals) = (vec![0.0; 2 * n], vec![0.0; n]);
    stream.child(0).fill_uniform(0, 0, &mut uniforms);
    stream.child(1).fill_normal(0, 0, &mut normals);
    let locations: Vec<f64> = uniforms[..n].iter().map(|u| 4.0 * f64::from(*u) - 2.0).collect();
    let values = (0..n).map(|i| {
        let t = 2.0 * locations[i];
        let mean = if uniforms[n + i] < 0.5 { t.sin() } else { t.cos() };
        mean + 0.1 * f64::from(normals[i])
    });
    IndexedSet::new(1, 1, locations.clone(), values.collect()).unwrap()
}

fn task(stream: Stream, n: usize, num_context: usize) -> Task {
    let set = sines(stream, n);
    let context: Vec<_> = (0..num_context).collect();
    let target: Vec<_> = (num_context..n).collect();
    Task { context: set.select(&context), target: set.select(&target) }
}

fn train(process: &mut EnergyBasedProcess, steps: std::ops::Range<u64>, num_steps: u64) {
    for number in steps {
        let stream = Stream::new(9, "train").child(number);
        let tasks: Vec<_> =
            (0..8_u32).map(|i| task(stream.child(u64::from(i)), 30, 3 + i as usize)).collect();
        let settings =
            Step { number, num_steps, stream: stream.child(99), learning_rate_factor: 1.0 };
        Learner::learn(process, &tasks, &settings).unwrap();
    }
}

fn variants() -> Vec<EnergyBasedConfig> {
    let base = EnergyBasedConfig {
        energy_widths: vec![20, 17],
        encoder_widths: vec![19, 24],
        ..EnergyBasedConfig::default()
    };
    let poolings = [
        PosteriorPooling::Max,
        PosteriorPooling::Mean,
        PosteriorPooling::Sum,
        PosteriorPooling::MaxAndMean,
    ];
    poolings
        .into_iter()
        .map(|pooling| EnergyBasedConfig { pooling, value_frequencies: 2, ..base.clone() })
        .collect()
}

/// x from one end of the domain to the other at one location.
fn line(t: f64, n: usize) -> (IndexedSet, f64) {
    let width = 6.0 / n as f64;
    let values = (0..n).map(|i| -3.0 + (i as f64 + 0.5) * width).collect();
    (IndexedSet::new(1, 1, vec![t; n], values).unwrap(), width)
}

#[test]
fn predictive_densities_integrate_to_one_for_any_number_of_context_elements() {
    for config in variants() {
        let process = process(config);
        for num_context in [0, 1, 2, 40] {
            let context = sines(Stream::new(1, "context"), num_context);
            for prediction in [PredictionRule::Mixture, PredictionRule::Geometric] {
                let (grid, width) = line(0.3, 1000);
                let predictive = process.predict(&context, prediction).unwrap();
                let densities = predictive.log_density(&grid).unwrap();
                let mass: f64 = densities.iter().map(|d| d.value.exp() * width).sum();
                // Two quadratures of a smooth density, 256 and 1000 midpoints.
                assert!((mass - 1.0).abs() < 1e-3, "{num_context} {prediction:?}: {mass}");
            }
        }
    }
}

#[test]
fn the_order_of_the_context_does_not_matter() {
    for config in variants() {
        let process = process(config);
        let context = sines(Stream::new(2, "context"), 25);
        let shuffled: Vec<_> = (0..25).map(|i| (7 * i + 3) % 25).collect();
        let (grid, _) = line(-1.1, 50);
        let of =
            |context: &IndexedSet| process.condition(context).unwrap().log_density(&grid).unwrap();
        for (a, b) in of(&context).iter().zip(of(&context.select(&shuffled))) {
            // Sums in another order: f32 rounding of a few dozen terms.
            assert!((a.value - b.value).abs() < 1e-4, "{a:?} {b:?}");
        }
    }
}

/// The single best Gaussian per location lies 0.78 nats above the floor −0.265; a process that
/// passes half of that has found both branches.
#[test]
fn a_short_training_finds_both_branches() {
    let mut process = process(EnergyBasedConfig::default());
    train(&mut process, 0..250, 250);
    process.use_average();
    let context = sines(Stream::new(3, "context"), 15);
    let targets = sines(Stream::new(4, "targets"), 400);
    let predictive = process.condition(&context).unwrap();
    let densities = predictive.log_density(&targets).unwrap();
    let nats = -densities.iter().map(|d| d.value).sum::<f64>() / 400.0;
    assert!(nats < -0.265 + 0.39, "{nats} nats per point");

    // Draws follow the density: the share above 0 where the branches lie at ±0.7 is near half.
    let t = 3.0 * std::f64::consts::FRAC_PI_8; // sin 2t = −cos 2t = 0.707
    let draws = predictive.sample(&[t], 2000, Stream::new(5, "draws")).unwrap();
    let (grid, width) = line(t, 1000);
    let upper: f64 = predictive
        .log_density(&grid)
        .unwrap()
        .iter()
        .zip(grid.values())
        .filter(|(_, x)| **x > 0.0)
        .map(|(d, _)| d.value.exp() * width)
        .sum();
    let share = draws.iter().filter(|x| **x > 0.0).count() as f64 / 2000.0;
    let std_error = (upper * (1.0 - upper) / 2000.0).sqrt();
    assert!((share - upper).abs() < 4.0 * std_error + 1e-3, "{share} drawn, {upper} by density");
    assert!((0.3..0.7).contains(&upper), "mass of the upper branch {upper}");
}

fn small_sampler(dynamics: Dynamics) -> SamplerConfig {
    SamplerConfig {
        hyper_widths: vec![32],
        num_layers: 4,
        num_draws: 8,
        dynamics,
        num_dynamics_steps: 2,
        ..SamplerConfig::default()
    }
}

/// The learned sampler stands in for log Z: its energy must describe the data far better than
/// the flat start, 1.8 nats over the domain of length six.
#[test]
fn adversarial_training_learns_too() {
    let mut process = process(EnergyBasedConfig {
        estimator: Estimator::Ade,
        learning_rate: 3e-3,
        gradient_penalty: 1e-3,
        sampler: small_sampler(Dynamics::None),
        ..EnergyBasedConfig::default()
    });
    train(&mut process, 0..60, 60);
    let context = sines(Stream::new(3, "context"), 15);
    let targets = sines(Stream::new(4, "targets"), 200);
    let densities = process.condition(&context).unwrap().log_density(&targets).unwrap();
    let nats = -densities.iter().map(|d| d.value).sum::<f64>() / 200.0;
    assert!(nats < 1.2, "{nats} nats per point");
    assert_eq!(process.name(), "ebp-ade");
}

/// While the effective share of draws is too small the sampler learns alone; in the first steps, and where
/// any share is enough, the model learns too.
#[test]
fn the_energy_waits_for_its_sampler() {
    let parameters = |process: &EnergyBasedProcess, part: &str| {
        let state = process.state().unwrap();
        let own = state.into_iter().filter(|(name, _)| name.starts_with(part));
        own.collect::<Vec<_>>()
    };
    for (wait_below, number, is_waiting) in [(1.0, 60, true), (1.0, 0, false), (0.0, 60, false)] {
        let mut process = process(EnergyBasedConfig {
            estimator: Estimator::Ade,
            sampler: SamplerConfig { wait_below, ..small_sampler(Dynamics::None) },
            ..EnergyBasedConfig::default()
        });
        let parts = ["parameters/model", "parameters/sampler"];
        let before = parts.map(|part| parameters(&process, part));
        assert!(before.iter().all(|part| !part.is_empty()));
        train(&mut process, number..number + 1, 100);
        let after = parts.map(|part| parameters(&process, part));
        assert_eq!(before[0] == after[0], is_waiting, "{wait_below} at step {number}");
        assert_ne!(before[1], after[1], "the sampler learns in every step");
    }
}

#[test]
fn an_interrupted_run_goes_on_bit_for_bit() {
    let base = EnergyBasedConfig {
        encoder_widths: vec![16],
        energy_widths: vec![16, 16],
        ..EnergyBasedConfig::default()
    };
    let ade = |dynamics| EnergyBasedConfig {
        estimator: Estimator::Ade,
        sampler: small_sampler(dynamics),
        ..base.clone()
    };
    let block = |dynamics| {
        let mut config = ade(dynamics);
        config.sampler = config.sampler.as_published();
        // Blocks that do not divide the targets.
        (config.sampler.kind, config.sampler.block_elements) = (SamplerKind::Block, 4);
        config.sampler.block_widths = vec![8, 8];
        config.sampler.block_state = 6;
        config
    };
    let flow = |dynamics| {
        let mut config = ade(dynamics);
        config.sampler = SamplerConfig { kind: SamplerKind::Flow, ..config.sampler.as_published() };
        config
    };
    let configs = [
        flow(Dynamics::None),
        flow(Dynamics::Langevin),
        EnergyBasedConfig { mode: TrainingMode::FullSet, ..base.clone() },
        EnergyBasedConfig { spectral_norm: true, temperature: 0.1, ..base.clone() },
        EnergyBasedConfig { gradient_penalty: 1e-3, ..ade(Dynamics::None) },
        ade(Dynamics::Langevin),
        ade(Dynamics::Hamiltonian),
        ade(Dynamics::GeneralizedHamiltonian),
        block(Dynamics::None),
        block(Dynamics::Langevin),
        EnergyBasedConfig { proposal: ProposalConfig::around(), ..base.clone() },
        EnergyBasedConfig {
            proposal: ProposalConfig { sampler_share: 0.5, ..ProposalConfig::default() },
            estimator: Estimator::Importance,
            ..ade(Dynamics::Langevin)
        },
    ];
    for config in configs {
        let mut whole = process(config.clone());
        train(&mut whole, 0..6, 6);
        let mut first = process(config.clone());
        train(&mut first, 0..3, 6);
        let mut second = process(config);
        second.restore(&first.state().unwrap()).unwrap();
        train(&mut second, 3..6, 6);
        let (expected, found) = (whole.state().unwrap(), second.state().unwrap());
        assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
        for (name, tensor) in &expected {
            assert_eq!(tensor, &found[name], "{name}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let (config, nowhere) = (EnergyBasedConfig::default(), Space::regression(1, 1, (1.0, 1.0)));
    let error = EnergyBasedProcess::new(config, nowhere, 0, &Device::default()).unwrap_err();
    assert_eq!(error.to_string(), "`value domain` must be finite with low < high, found [1, 1]");
    let mut process = process(EnergyBasedConfig::default());
    let context = IndexedSet::new(2, 1, vec![0.0; 2], vec![0.0]).unwrap();
    let error = process.condition(&context).unwrap_err().to_string();
    assert!(error.contains("`context` must be locations of 1 and values of 1"), "{error}");
    let settings =
        Step { number: 0, num_steps: 1, stream: Stream::new(0, "step"), learning_rate_factor: 1.0 };
    let error = Learner::learn(&mut process, &[], &settings).unwrap_err().to_string();
    assert_eq!(error, "`tasks` must be at least one, found 0");
}

/// Every step moves every step size: the dynamics are part of what is learned.
#[test]
fn the_sampler_learns_its_step_sizes() {
    for dynamics in [Dynamics::Langevin, Dynamics::Hamiltonian, Dynamics::GeneralizedHamiltonian] {
        let mut process = process(EnergyBasedConfig {
            estimator: Estimator::Ade,
            sampler: small_sampler(dynamics),
            ..EnergyBasedConfig::default()
        });
        let sizes = |process: &EnergyBasedProcess| {
            let name = "parameters/sampler.dynamics.log_step_sizes";
            process.state().unwrap()[name].as_f32().unwrap().to_vec()
        };
        let before = sizes(&process);
        train(&mut process, 0..2, 10);
        let after = sizes(&process);
        assert!(
            before.iter().zip(&after).all(|(a, b)| (a - b).abs() > 1e-6),
            "{dynamics:?}: {after:?}"
        );
    }
}

/// Two dimensions: the density is normalised by sampling and says how well.
#[test]
fn values_of_two_dimensions_are_normalised_within_the_stated_error() {
    let config = EnergyBasedConfig {
        num_proposals: 36,
        energy_widths: vec![12],
        ..EnergyBasedConfig::default()
    };
    let process = process_on(config, Space::regression(2, 2, (-3.0, 3.0)));
    let context = IndexedSet::new(2, 2, vec![0.1, 0.2], vec![0.3, -0.4]).unwrap();
    let per_side = 60;
    let width = 6.0 / f64::from(per_side);
    let mut values = Vec::new();
    for row in 0..per_side {
        for column in 0..per_side {
            values.extend([row, column].map(|cell| -3.0 + (f64::from(cell) + 0.5) * width));
        }
    }
    let count = values.len() / 2;
    let grid = IndexedSet::new(2, 2, [0.5, -0.5].repeat(count), values).unwrap();
    for rule in [PredictionRule::Mixture, PredictionRule::Geometric] {
        let predictive = process.predict(&context, rule).unwrap();
        let densities = predictive.log_density(&grid).unwrap();
        let mass: f64 = densities.iter().map(|d| d.value.exp() * width * width).sum();
        let error = densities.iter().map(|d| d.std_error).fold(0.0, f64::max);
        assert!(error > 0.0 && error < 0.1, "{error}");
        assert!((mass - 1.0).abs() < 4.0 * error, "{mass} ± {error}");
    }
    let predictive = process.condition(&context).unwrap();
    let draws = predictive.sample(&[0.5, -0.5], 4000, Stream::new(1, "draws")).unwrap();
    let densities = predictive.log_density(&grid).unwrap();
    for axis in 0..2 {
        let mean: f64 = densities
            .iter()
            .enumerate()
            .map(|(i, d)| d.value.exp() * width * width * grid.value(i)[axis])
            .sum();
        let found = draws.chunks_exact(2).map(|x| x[axis]).sum::<f64>() / 4000.0;
        // A standard deviation of at most 3 over 4000 draws, four times; cells are 0.06 wide.
        assert!((found - mean).abs() < 4.0 * 3.0 / 4000_f64.sqrt() + 0.03, "{found} {mean}");
    }
}

/// Langevin steps without annealing end in exp u: the mean of many short chains against the exact
/// mean of the same law, θ included; from a learned sampler's draws and from noise.
#[test]
fn steps_with_known_elements_fixed_follow_the_law_given_them() {
    let kinds =
        [None, Some(SamplerKind::Mixture), Some(SamplerKind::Flow), Some(SamplerKind::Block)];
    for kind in kinds {
        let mut config = EnergyBasedConfig {
            energy_widths: vec![16],
            encoder_widths: vec![16],
            input_scale: 2.0,
            ..EnergyBasedConfig::default()
        };
        if let Some(kind) = kind {
            config.estimator = Estimator::Ade;
            let published = small_sampler(Dynamics::None).as_published();
            config.sampler = SamplerConfig { kind, ..published };
        }
        let process = process_on(config, Space::regression(1, 1, (-1.0, 1.0)));
        let context = IndexedSet::new(1, 1, vec![-0.5, 0.1, 0.9], vec![0.5, -0.5, 0.2]).unwrap();
        let settings = FillSettings { num_steps: 100, step_size: 0.02, is_annealed: false };
        let (count, stream) = (700, Stream::new(4, "fill"));
        let locations = [0.3, -1.2];
        let found = process.fill(&context, &locations, count, &settings, stream).unwrap();
        assert_eq!(found.len(), count * locations.len());
        assert!(found.iter().all(|x| (-1.0..=1.0).contains(x)));
        let asked = IndexedSet::new(1, 1, locations.to_vec(), vec![0.0; 2]).unwrap();
        let cell = 2.0 / 256.0;
        let exact = process.hypotheses(&context, &asked, cell, count, stream.child(9)).unwrap();
        for place in 0..2 {
            let moments = |values: &[f64]| {
                let own: Vec<f64> = values.iter().skip(place).step_by(2).copied().collect();
                let mean = own.iter().sum::<f64>() / count as f64;
                let square: f64 = own.iter().map(|x| (x - mean).powi(2)).sum();
                (mean, (square / count as f64 / count as f64).sqrt())
            };
            let ((drawn, error), (expected, other)) = (moments(&found), moments(&exact.mean));
            let error = error.hypot(other);
            // Steps of 0.02 are off by about as much as they are long.
            assert!((drawn - expected).abs() < 4.0 * error + 0.02, "{kind:?}: {drawn} {expected}");
        }
        // Any number of known elements, in any order.
        let nothing = IndexedSet::empty(1, 1).unwrap();
        assert_eq!(process.fill(&nothing, &[0.0], 2, &settings, stream).unwrap().len(), 2);
        let turned = context.select(&[2, 0, 1]);
        let one = |set: &IndexedSet| process.fill(set, &[0.4], 1, &settings, stream).unwrap()[0];
        assert!((one(&context) - one(&turned)).abs() < 1e-3);
        let wrong = FillSettings { num_steps: 0, ..settings };
        assert!(process.fill(&context, &[0.0], 1, &wrong, stream).is_err());
    }
}
