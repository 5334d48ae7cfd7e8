//! A model whose integrals are known, and one with random weights against plain sums.

use super::*;
use crate::process::Process as _;
use crate::tensor::{Tensor, TensorValues};

fn small() -> HiddenLocationConfig {
    HiddenLocationConfig {
        latent_dim: 1,
        num_fine_nodes: 2,
        location_frequencies: 0,
        hidden_width: 1,
        num_hidden: 1,
        num_cells: 400,
        half_width: 8.0,
        base_std_dev: 1.0,
        ..HiddenLocationConfig::default()
    }
}

/// f(x, t) = w silu(x + 80 t): at t = ½ it is w(x + 40) to rounding, at t = −½ nothing. With base measure
/// N(0, 1) and t on these two nodes,
///
/// ```text
/// p(x | t = ½) = N(w, 1),   p(x | t = −½) = N(0, 1),   p(x) = ½ N(x; w, 1) + ½ N(x; 0, 1)
/// ```
///
/// θ plays no part, and with all weights of the encoder 0 it has q = p.
fn two_humps(slope: f32) -> HiddenLocationProcess {
    let mut process = HiddenLocationProcess::new(small(), 1, 1, &Device::default()).unwrap();
    let mut state = process.state().unwrap();
    for (name, tensor) in &mut state {
        let TensorValues::F32(values) = tensor.values() else { continue };
        let mut values = vec![0.0; values.len()];
        if name.ends_with("/energy.elements") {
            let layers = process.density.energy_shape().layers();
            values[layers[0].weight.clone()].copy_from_slice(&[1.0, 80.0]);
            values[layers[1].weight.start] = slope;
        }
        *tensor = Tensor::new(tensor.dims().to_vec(), values).unwrap();
    }
    process.restore(&state).unwrap();
    process
}

fn log_humps(x: f64, slope: f64) -> f64 {
    let normal = |mean: f64| (-0.5 * (x - mean).powi(2)).exp() / std::f64::consts::TAU.sqrt();
    (0.5 * normal(slope) + 0.5 * normal(0.0)).ln()
}

/// The value of a set's log-likelihood: a sum of logarithms of two humps, with nothing left to chance.
#[test]
fn a_set_of_two_humps_has_its_closed_form() {
    let process = two_humps(1.5);
    let set = [-1.0_f32, 0.3, 2.0, 1.1, -0.4];
    let expected: f64 = set.iter().map(|&x| log_humps(f64::from(x), 1.5)).sum();
    let found = process.score(&set, 3, Stream::new(1, "score")).unwrap();
    // f is of the order of 60, whose last digit in f32 is 4e-6.
    assert!((found.log_density.value - expected).abs() < 1e-4, "{found:?} {expected}");
    assert!(found.log_density.std_error < 1e-4 && (found.effective_draws - 3.0).abs() < 1e-3);
    // One element given others, which say nothing here.
    let known = IndexedSet::new(0, 1, Vec::new(), vec![0.3, 2.0]).unwrap();
    let asked = IndexedSet::new(0, 1, Vec::new(), vec![1.1]).unwrap();
    let predicted = process.condition(&known).unwrap().log_density(&asked).unwrap()[0];
    assert!((predicted.value - log_humps(1.1, 1.5)).abs() < 1e-4, "{predicted:?}");
    // p(t = ½ | x) is 1/(1 + exp(−(1.5 x − 1.125))), and its divergence from ½ what x says of t.
    for (x, found) in set.iter().zip(process.location_nats(&set).unwrap()) {
        let share = 1.0 / (1.0 + (-(1.5 * f64::from(*x) - 1.125)).exp());
        let term = |p: f64| p * (2.0 * p).ln();
        assert!((found - term(share) - term(1.0 - share)).abs() < 1e-4, "{x}: {found}");
    }
}

/// Draws have the moments of the closed form: mean w/2, variance 1 + w²/4.
#[test]
fn draws_follow_two_humps() {
    let process = two_humps(1.5);
    let count = 4000;
    let drawn = process.sample(2, count / 2, Stream::new(3, "draws")).unwrap();
    let mean = drawn.iter().map(|&x| f64::from(x)).sum::<f64>() / count as f64;
    let variance = drawn.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count as f64;
    let expected = 1.0 + 1.5 * 1.5 / 4.0;
    let error = (expected / count as f64).sqrt();
    assert!((mean - 0.75).abs() < 4.0 * error, "{mean}");
    // The kurtosis of two equal humps is below 3.
    let error = expected * (2.0 / count as f64).sqrt();
    assert!((variance - expected).abs() < 4.0 * error, "{variance}");
}

/// With random weights: p(set) by plain sums over θ, t and x of the network's values, against importance
/// sampling, in any order; and what a step of training estimates against the same sums.
#[test]
fn a_set_s_likelihood_is_the_triple_integral() {
    let config = HiddenLocationConfig {
        num_fine_nodes: 9,
        location_frequencies: 1,
        hidden_width: 6,
        num_cells: 60,
        half_width: 4.0,
        ..small()
    };
    let process = HiddenLocationProcess::new(config, 1, 5, &Device::default()).unwrap();
    let network = process.density.network(&process.parameters).unwrap();
    let set = [0.4_f32, -0.9, 0.1];
    let potential = |x: f32, t: f32, theta: f32| -> f64 {
        let mut element = vec![x];
        crate::energy::push_features(&[t], 1, &mut element);
        let offsets = SetOffsets::uniform(1, 1).unwrap();
        let batch =
            crate::point::PointBatch { elements: &element, offsets: &offsets, context: &[theta] };
        let values = crate::point::PointBackend::values(
            &crate::point::CpuBackend::default(),
            &network,
            &batch,
        );
        f64::from(values.unwrap()[0]) - 0.5 * f64::from(x * x)
    };
    let nodes: Vec<f32> = (0..9).map(|j| (2 * j + 1) as f32 / 9.0 - 1.0).collect();
    let cells: Vec<f32> = (0..60).map(|c| (2 * c + 1) as f32 / 15.0 - 4.0).collect();
    let log_width = (8.0_f64 / 60.0).ln();
    let given_theta = |theta: f32| -> Vec<f64> {
        let log_z: Vec<f64> = nodes
            .iter()
            .map(|&t| {
                let logs: Vec<f64> = cells.iter().map(|&y| potential(y, t, theta)).collect();
                log_sum_exp(&logs) + log_width
            })
            .collect();
        let element = |&x: &f32| {
            let logs: Vec<f64> = nodes
                .iter()
                .zip(&log_z)
                .map(|(&t, log_z)| potential(x, t, theta) - log_z)
                .collect();
            log_sum_exp(&logs) - 9_f64.ln()
        };
        set.iter().map(element).collect()
    };
    let terms: Vec<f64> = (0..60)
        .map(|place| {
            let theta = 0.2 * (f64::from(place) + 0.5) - 6.0;
            let prior = -0.5 * theta * theta - 0.5 * std::f64::consts::TAU.ln() + 0.2_f64.ln();
            #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
            let elements = given_theta(theta as f32);
            elements.iter().sum::<f64>() + prior
        })
        .collect();
    let expected = log_sum_exp(&terms);
    let found = process.score(&set, 4000, Stream::new(2, "score")).unwrap().log_density;
    assert!((found.value - expected).abs() < 4.0 * found.std_error + 1e-3, "{found:?} {expected}");
    assert!(found.std_error < 0.05, "{found:?}");
    let mixed = [set[2], set[0], set[1]];
    let again = process.score(&mixed, 4000, Stream::new(2, "score")).unwrap().log_density;
    assert!((again.value - found.value).abs() < 1e-4, "{again:?} {found:?}");

    // A step's estimate, with drawn nodes and candidates, at θ = 0.3.
    let mut tape = process.tape();
    let theta = tape.upload(vec![0.3], (1, 1)).unwrap();
    let offsets = Arc::new(SetOffsets::uniform(1, 3).unwrap());
    let nodes = process.density.nodes(200, 1, Some(Stream::new(1, "nodes")));
    let candidates = process.density.candidates(&set, &offsets, 4000, Stream::new(1, "values"));
    let asked = Asked { values: &set, offsets: &offsets, theta, nodes: &nodes };
    let flat = process.density.parameters(&mut tape, false).unwrap();
    let step = process.density.log_densities(&mut tape, flat, &asked, candidates).unwrap();
    let step = tape.download(step.log_density).unwrap();
    for (found, expected) in step.iter().zip(given_theta(0.3)) {
        // 4,000 candidates, of which at least a tenth count: 4/√400; the rule of nine nodes is coarser.
        assert!((f64::from(*found) - expected).abs() < 0.2, "{step:?} {expected}");
    }
}

/// Steps of training bring down the bound on sets of one hump whose place differs from set to set.
#[test]
fn steps_bring_the_bound_down() {
    let config = HiddenLocationConfig { hidden_width: 16, num_candidates: 32, ..small() };
    let mut process = HiddenLocationProcess::new(config, 1, 3, &Device::default()).unwrap();
    let sets = |number: u64| -> Vec<f32> {
        let stream = Stream::new(number, "sets");
        let mut values = vec![0.0; 4 * 6 + 4];
        stream.fill_normal(0, 0, &mut values);
        (0..24).map(|i| 0.1 * values[i] + values[24 + i / 6]).collect()
    };
    let mut nats = Vec::new();
    for number in 0..150 {
        let stream = Stream::new(9, "step").child(number);
        let step = Step { number, num_steps: 150, stream, learning_rate_factor: 1.0 };
        nats.push(process.learn(sets(number), 6, &step).unwrap()[0].1);
    }
    let mean = |nats: &[f64]| nats.iter().sum::<f64>() / nats.len() as f64;
    let (first, last) = (mean(&nats[..20]), mean(&nats[130..]));
    assert!(last < first - 0.5, "{first} {last}");
    assert!(process.learn(vec![9.0; 6], 6, &step_zero()).is_err(), "outside of the domain");
}

fn step_zero() -> Step {
    Step { number: 0, num_steps: 1, stream: Stream::new(1, "s"), learning_rate_factor: 1.0 }
}
