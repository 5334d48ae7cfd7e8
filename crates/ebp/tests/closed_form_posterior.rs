//! An energy-based process whose posterior is known: conjugate Gaussian sets, with weights set by hand.
//!
//! ```text
//! θ ~ N(0, 1),   f(x; θ) = −(x − θ)²/(2 s²),   q(θ | x) = N(x/(1 + s²), s²/(1 + s²))
//! ```
//!
//! f is a network of rectifiers in z = x − θ, the polygon through −z²/(2 s²) at knots h apart, which is
//! off by at most h²/(8 s²); the posterior's head is linear. So every density of one and two elements is
//! known, and Bayes' rule must hold: p(a) p(b | a) = p(b) p(a | b) = p(a, b).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::IndexedSet;
use ebp::experiment::consistency::{Pair, differences};
use ebp::metric::uniformity::Uniformity;
use ebp::point::{Activation, ContextAt, MlpConfig, MlpShape};
use ebp::process::neural::{NeuralProcess, NeuralProcessConfig};
use ebp::process::{EnergyBasedProcess, LatentProcess, PredictionRule, Predictive, Process};
use ebp::recipe::{EnergyBasedConfig, LatentAt, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::tensor::Tensor;

const SPREAD: f64 = 0.5;
const REACH: f64 = 4.0;
const KNOTS: usize = 200;
const LOG_TAU: f64 = 1.837_877_066_409_345_5;

fn config() -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 1,
        encoder_widths: vec![1],
        sees_size: false,
        head_widths: Vec::new(),
        energy_widths: vec![KNOTS],
        activation: Activation::Relu,
        latent_at: LatentAt::FirstLayer,
        location_frequencies: 0,
        num_draws: 4096,
        ..EnergyBasedConfig::default()
    }
}

/// The process, with q's standard deviation multiplied by `narrowing`.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn process(narrowing: f64) -> EnergyBasedProcess {
    let space = Space::regression(1, 1, (-6.0, 6.0));
    let mut process = EnergyBasedProcess::new(config(), space, 1, &Device::default()).unwrap();
    let shape = MlpShape::new(MlpConfig {
        value_dim: 1,
        location_dim: 1,
        context_dim: 1,
        hidden_widths: vec![KNOTS],
        output_dim: 1,
        activation: Activation::Relu,
        context_at: ContextAt::FirstLayer,
        activate_output: false,
    })
    .unwrap();
    let mut energy = vec![0.0_f32; shape.num_parameters()];
    let [first, last] = [&shape.layers()[0], &shape.layers()[1]];
    let knot = |j: usize| -REACH + 2.0 * REACH * j as f64 / KNOTS as f64;
    let value = |z: f64| -0.5 * (z / SPREAD).powi(2);
    let slope = |j: usize| (value(knot(j + 1)) - value(knot(j))) / (knot(1) - knot(0));
    for j in 0..KNOTS {
        // relu(x − θ − knot), with weights [outputs, inputs] over (x, t)
        energy[first.weight.start + 2 * j] = 1.0;
        energy[first.context_weight.clone().unwrap().start + j] = -1.0;
        energy[first.bias.start + j] = -knot(j) as f32;
        let bend = if j == 0 { slope(0) } else { slope(j) - slope(j - 1) };
        energy[last.weight.start + j] = bend as f32;
    }
    // Left of the first knot f would be flat: there z < −8 s, and its share of Z is below e⁻³⁰.
    energy[last.bias.start] = value(knot(0)) as f32;
    let gain = 1.0 / (1.0 + SPREAD * SPREAD);
    let std_dev = narrowing * SPREAD * gain.sqrt();
    let mut state = process.state().unwrap();
    let mut num_set = 0;
    for (name, tensor) in &mut state {
        let numbers: Vec<f32> = if name.ends_with("energy.elements") {
            energy.clone()
        } else if name.ends_with("posterior.elements") {
            // x + 10 over (x, t): positive, so that the rectifier after the maximum does nothing.
            vec![1.0, 0.0, 10.0]
        } else if name.ends_with("posterior.head") {
            vec![gain as f32, 0.0, (-10.0 * gain) as f32, std_dev.ln() as f32]
        } else {
            continue;
        };
        *tensor = Tensor::new(tensor.dims().to_vec(), numbers).unwrap();
        num_set += 1;
    }
    assert!(num_set >= 3, "{:?}", state.keys());
    process.restore(&state).unwrap();
    process
}

fn element(x: f64) -> IndexedSet {
    IndexedSet::new(1, 1, vec![0.0], vec![x]).unwrap()
}

fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
    -0.5 * ((x - mean).powi(2) / variance + variance.ln() + LOG_TAU)
}

/// h²/(8 s²) for f, as much again for log Z, and rounding of f32.
fn tolerance() -> f64 {
    let h = 2.0 * REACH / KNOTS as f64;
    2.0 * h * h / (8.0 * SPREAD * SPREAD) + 1e-3
}

#[test]
fn densities_of_one_and_two_elements_are_the_closed_forms() {
    let process = process(1.0);
    let nothing = IndexedSet::empty(1, 1).unwrap();
    let square = SPREAD * SPREAD;
    for (a, b) in [(0.3, -0.2), (1.2, 0.9), (-0.8, 0.1)] {
        // p(a) = N(a; 0, 1 + s²)
        let prior = process.condition(&nothing).unwrap();
        let found = prior.log_density(&element(a)).unwrap()[0];
        let exact = log_normal(a, 0.0, 1.0 + square);
        assert!(
            (found.value - exact).abs() < 4.0 * found.std_error + tolerance(),
            "{found:?} {exact}"
        );
        // p(b | a) = N(b; a/(1 + s²), s² + s²/(1 + s²))
        let given = process.condition(&element(a)).unwrap();
        let found = given.log_density(&element(b)).unwrap()[0];
        let exact_given = log_normal(b, a / (1.0 + square), square + square / (1.0 + square));
        let error = (found.value - exact_given).abs();
        assert!(error < 4.0 * found.std_error + tolerance(), "{found:?} {exact_given}");
        // p(a, b) = p(a) p(b | a)
        let both = IndexedSet::new(1, 1, vec![0.0, 0.0], vec![a, b]).unwrap();
        let joint = prior.log_joint(&both).unwrap().unwrap();
        let error = (joint.value - exact - exact_given).abs();
        assert!(error < 4.0 * joint.std_error + 2.0 * tolerance(), "{joint:?}");
        // Bayes' rule, both ways round.
        let pair = Pair { context: nothing.clone(), a: element(a), b: element(b) };
        let found = differences(&process, &pair).unwrap();
        assert!(found.order.abs() < 4.0 * found.error + 4.0 * tolerance(), "{found:?}");
    }
    // A posterior of half the width is no Bayes' rule: p(b | a) of surprising pairs is far too small.
    let narrow = self::process(0.3);
    let pair = Pair { context: nothing, a: element(1.5), b: element(-0.9) };
    let found = differences(&narrow, &pair).unwrap();
    assert!(found.joint.unwrap() > 0.3, "{found:?}");
}

#[test]
fn simulations_find_the_exact_posterior_and_only_it() {
    let nothing = IndexedSet::empty(1, 1).unwrap();
    let p_value = |narrowing: f64| {
        let process = process(narrowing);
        let position = |number: u64| {
            let stream = Stream::new(number, "simulation");
            process.latent_positions(&nothing, &[0.0], stream).unwrap()[0]
        };
        let found: Vec<f64> = (0..400).map(position).collect();
        Uniformity::of(&found, 20).unwrap().p_value
    };
    assert!(p_value(1.0) > 0.01);
    assert!(p_value(0.6) < 1e-4);
}

#[test]
fn a_temperature_divides_the_energy_and_nothing_else() {
    let process = process(1.0);
    let context = element(0.4);
    let target = element(0.9);
    let square = SPREAD * SPREAD;
    let plain = process.predict(&context, PredictionRule::Mixture).unwrap();
    let found = plain.log_densities_at(&target, &[1.0, 2.0]).unwrap();
    for (row, temperature) in found.iter().zip([1.0, 2.0]) {
        let at = process.predict_at(&context, PredictionRule::Mixture, temperature).unwrap();
        let direct = at.log_density(&target).unwrap()[0];
        assert!((row[0] - direct.value).abs() < 1e-3, "{row:?} {direct:?}");
        // exp(f/T) is a normal law of variance T s²; q(θ | a) stays as it is.
        let variance = temperature * square + square / (1.0 + square);
        let exact = log_normal(0.9, 0.4 / (1.0 + square), variance);
        let error = (direct.value - exact).abs();
        assert!(error < 4.0 * direct.std_error + tolerance(), "{direct:?} {exact}");
    }
    assert!(process.predict_at(&context, PredictionRule::Mixture, 0.0).is_err());
}

/// Given z a neural process is f = −(x − μ(t, z))²/(2σ(t, z)²): the same weights, with Z by quadrature
/// in place of the closed form and z removed by the mixture, are the same law.
#[test]
fn a_neural_process_is_the_energy_based_process_with_a_quadratic_energy() {
    for seed in [1, 5] {
        let config = NeuralProcessConfig::latent();
        let process = NeuralProcess::new(config, seed, &Device::default()).unwrap();
        let context = IndexedSet::new(1, 1, vec![-0.5, 0.7], vec![0.3, -0.6]).unwrap();
        let targets = IndexedSet::new(1, 1, vec![0.1, 1.4], vec![0.2, -0.5]).unwrap();
        let expected = process.condition(&context).unwrap().log_density(&targets).unwrap();
        // μ and σ of every draw: log p at μ itself is −log σ − ½ log 2π.
        let (count, stream) = (32, Stream::new(seed, "predictive"));
        let draws =
            |at: &IndexedSet| process.hypotheses(&context, at, 0.01, count, stream).unwrap();
        let means = draws(&targets).mean;
        for (i, expected) in expected.iter().enumerate() {
            let mut density = 0.0;
            for draw in 0..count {
                let mean = means[draw * 2 + i];
                let mut values = targets.values().to_vec();
                values[i] = mean;
                let at = IndexedSet::new(1, 1, targets.locations().to_vec(), values).unwrap();
                let std_dev = (-draws(&at).log_density[draw * 2 + i] - 0.5 * LOG_TAU).exp();
                let energy = |x: f64| -0.5 * ((x - mean) / std_dev).powi(2);
                // Midpoints over ±12 σ, 0.1 σ apart: exact to rounding for such integrands.
                let width = 0.1 * std_dev;
                let nodes = (0..240).map(|k| mean - 12.0 * std_dev + width * (f64::from(k) + 0.5));
                let partition: f64 = nodes.map(|x| energy(x).exp() * width).sum();
                density += energy(targets.value(i)[0]).exp() / partition / f64::from(32);
            }
            let error = (density.ln() - expected.value).abs();
            // σ was read off f32 numbers.
            assert!(error < 1e-5, "{density} {expected:?}");
        }
    }
}
