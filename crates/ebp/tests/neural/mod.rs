//! All trained processes behind one interface, and sets to train them on.

use std::f64::consts::TAU;

use ebp::IndexedSet;
use ebp::nn::{Record, Step};
use ebp::point::Activation;
use ebp::process::neural::{
    AttentionConfig, Deterministic, LatentConfig, NetworkConfig, NeuralProcess, NeuralProcessConfig,
};
use ebp::process::{Learner, Task, VariationalImplicitProcess, VariationalImplicitProcessConfig};
use ebp::rng::Stream;
use ebp::tape::{AdamConfig, Device};

/// The sizes of a test.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) location_dim: usize,
    pub(crate) value_dim: usize,
    pub(crate) width: usize,
    pub(crate) num_draws: usize,
}

pub(crate) const SMALL: Sizes = Sizes { location_dim: 1, value_dim: 1, width: 16, num_draws: 4 };

fn network(sizes: Sizes, learning_rate: f64) -> NetworkConfig {
    let Sizes { location_dim, value_dim, width, .. } = sizes;
    NetworkConfig {
        location_dim,
        value_dim,
        encoder_widths: vec![width],
        representation_dim: width,
        decoder_widths: vec![width, width],
        learning_rate,
        ..NetworkConfig::default()
    }
}

fn latent(sizes: Sizes) -> LatentConfig {
    LatentConfig { latent_dim: 4, num_draws: sizes.num_draws, ..LatentConfig::default() }
}

/// The learning rate of every process here.
const RATE: f64 = 1e-2;

fn process(config: NeuralProcessConfig, seed: u64) -> Box<dyn Learner> {
    Box::new(NeuralProcess::new(config, seed, &Device::default()).unwrap())
}

pub(crate) fn conditional(sizes: Sizes, seed: u64) -> Box<dyn Learner> {
    let config = NeuralProcessConfig::conditional();
    process(NeuralProcessConfig { network: network(sizes, RATE), ..config }, seed)
}

pub(crate) fn neural(sizes: Sizes, seed: u64, has_deterministic_path: bool) -> Box<dyn Learner> {
    let deterministic =
        if has_deterministic_path { Deterministic::Mean } else { Deterministic::Absent };
    let (network, latent) = (network(sizes, RATE), Some(latent(sizes)));
    process(NeuralProcessConfig { network, latent, deterministic }, seed)
}

pub(crate) fn attentive(sizes: Sizes, seed: u64, has_self_attention: bool) -> Box<dyn Learner> {
    let attention =
        AttentionConfig { num_heads: 4, embedding_widths: vec![sizes.width], has_self_attention };
    let (network, latent) = (network(sizes, RATE), Some(latent(sizes)));
    let deterministic = Deterministic::Attention(attention);
    process(NeuralProcessConfig { network, latent, deterministic }, seed)
}

pub(crate) fn implicit(sizes: Sizes, seed: u64) -> Box<dyn Learner> {
    let config = VariationalImplicitProcessConfig {
        location_dim: sizes.location_dim,
        value_dim: sizes.value_dim,
        hidden_widths: vec![sizes.width, sizes.width],
        activation: Activation::Tanh,
        num_functions: 8,
        learning_rate: RATE,
        adam: AdamConfig::default(),
        ..VariationalImplicitProcessConfig::default()
    };
    Box::new(VariationalImplicitProcess::new(config, seed, &Device::default()).unwrap())
}

/// Every process in every variant.
pub(crate) fn all(sizes: Sizes, seed: u64) -> Vec<Box<dyn Learner>> {
    vec![
        conditional(sizes, seed),
        neural(sizes, seed, false),
        neural(sizes, seed, true),
        attentive(sizes, seed, false),
        attentive(sizes, seed, true),
        implicit(sizes, seed),
    ]
}

/// A set of any dimensions with normal entries.
pub(crate) fn random_set(sizes: Sizes, n: usize, stream: Stream) -> IndexedSet {
    let draw = |count: usize, step| {
        let mut numbers = vec![0.0; count];
        stream.fill_normal(step, 0, &mut numbers);
        numbers.into_iter().map(f64::from).collect::<Vec<_>>()
    };
    let Sizes { location_dim, value_dim, .. } = sizes;
    IndexedSet::new(location_dim, value_dim, draw(n * location_dim, 0), draw(n * value_dim, 1))
        .unwrap()
}

/// What the value at a time is, before noise.
#[derive(Clone, Copy)]
pub(crate) enum Curve {
    /// sin 2t.
    Sine,
    /// sin 2t or cos 2t, by a fair coin per element.
    TwoBranches,
    /// sin(2t + φ), φ ~ U(0, 2π) per set.
    Phase,
}

/// A set of `n` elements: t ~ U(−2, 2), x = curve + 0.1 ε.
pub(crate) fn curve_set(curve: Curve, n: usize, stream: Stream) -> IndexedSet {
    let mut uniform = vec![0.0; 2 * n + 1];
    stream.child(0).fill_uniform(0, 0, &mut uniform);
    let mut noise = vec![0.0; n];
    stream.child(1).fill_normal(0, 0, &mut noise);
    let times: Vec<f64> = uniform[..n].iter().map(|&u| 4.0 * f64::from(u) - 2.0).collect();
    let values = times.iter().enumerate().map(|(i, t)| {
        let clean = match curve {
            Curve::TwoBranches if uniform[n + i] < 0.5 => (2.0 * t).cos(),
            Curve::Sine | Curve::TwoBranches => (2.0 * t).sin(),
            Curve::Phase => (2.0 * t + TAU * f64::from(uniform[2 * n])).sin(),
        };
        clean + 0.1 * f64::from(noise[i])
    });
    let values = values.collect();
    IndexedSet::new(1, 1, times, values).unwrap()
}

/// Trains on fresh batches of `num_sets` sets of 30, with contexts of 3 to 29; returns the record
/// of each step.
pub(crate) fn train(
    learner: &mut dyn Learner,
    curve: Curve,
    num_steps: u64,
    num_sets: u64,
) -> Vec<Record> {
    let data = Stream::new(1, "data");
    (0..num_steps)
        .map(|number| {
            let stream = data.child(number);
            let tasks: Vec<_> = (0..num_sets)
                .map(|set| {
                    let set = curve_set(curve, 30, stream.child(set));
                    Task::split(&set, 3..=29, stream.child(1000)).unwrap()
                })
                .collect();
            let stream = stream.child(1001);
            learner.learn(&tasks, &Step { number, num_steps, stream, learning_rate_factor: 1.0 })
        })
        .collect::<ebp::Result<_>>()
        .unwrap()
}

/// Mean log density of 30 fresh targets given 15 context elements, over `num_sets` sets: nats
/// per point.
pub(crate) fn evaluate(learner: &dyn Learner, curve: Curve, num_sets: u64) -> f64 {
    let stream = Stream::new(2, "test");
    let mut sum = 0.0;
    for set in 0..num_sets {
        let all = curve_set(curve, 45, stream.child(set));
        let context = all.select(&(0..15).collect::<Vec<_>>());
        let target = all.select(&(15..45).collect::<Vec<_>>());
        let densities = learner.condition(&context).unwrap().log_density(&target).unwrap();
        sum += densities.iter().map(|density| density.value).sum::<f64>();
    }
    sum / (30 * num_sets) as f64
}
