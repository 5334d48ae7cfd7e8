//! candle-nn's layers, as we construct them, against plain loops.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use candle_core::{Device, ModuleT, Tensor, Var};
use ebp::nn::{BatchNormConfig, Initialiser, Parameters, RNN, batch_norm, lstm};
use ebp::rng::Stream;

fn random(dims: &[usize], name: &str) -> Tensor {
    let law = Initialiser::Normal { mean: 0.5, std_dev: 1.0 };
    Tensor::from_vec(law.draw(dims, Stream::new(5, name)).unwrap(), dims, &Device::Cpu).unwrap()
}

fn wide(tensor: &Tensor) -> Vec<f64> {
    let values: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
    values.into_iter().map(f64::from).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The LSTM's formulas for one row, in f64.
struct PlainLstm {
    hidden: usize,
    weight_input: Vec<f64>,
    weight_hidden: Vec<f64>,
    bias: Vec<f64>,
}

impl PlainLstm {
    fn step(&self, x: &[f64], h: &mut Vec<f64>, c: &mut [f64]) {
        let dot = |weights: &[f64], row: usize, x: &[f64]| -> f64 {
            weights[row * x.len()..][..x.len()].iter().zip(x).map(|(w, x)| w * x).sum()
        };
        let gate = |row: usize| {
            dot(&self.weight_input, row, x) + dot(&self.weight_hidden, row, h) + self.bias[row]
        };
        let gates: Vec<f64> = (0..4 * self.hidden).map(gate).collect();
        let n = self.hidden;
        for k in 0..n {
            c[k] = sigmoid(gates[n + k]) * c[k] + sigmoid(gates[k]) * gates[2 * n + k].tanh();
        }
        *h = (0..n).map(|k| sigmoid(gates[3 * n + k]) * c[k].tanh()).collect();
    }
}

#[test]
fn the_lstm_follows_the_plain_loop() {
    let (batch, length, inputs, hidden) = (3, 5, 2, 4);
    let parameters = Parameters::new(8);
    let layer = lstm(&parameters, inputs, hidden).unwrap();
    let get = |name: &str| wide(&parameters.get(name).unwrap());
    let plain = PlainLstm {
        hidden,
        weight_input: get("weight_ih_l0"),
        weight_hidden: get("weight_hh_l0"),
        bias: get("bias_ih_l0").iter().zip(get("bias_hh_l0")).map(|(a, b)| a + b).collect(),
    };
    let input = random(&[batch, length, inputs], "input");
    let states = layer.seq(&input).unwrap();
    let found = wide(&layer.states_to_tensor(&states).unwrap());
    let input = wide(&input);
    for row in 0..batch {
        let (mut h, mut c) = (vec![0.0; hidden], vec![0.0; hidden]);
        for time in 0..length {
            let at = (row * length + time) * inputs;
            plain.step(&input[at..at + inputs], &mut h, &mut c);
            let at = (row * length + time) * hidden;
            for (found, expected) in found[at..at + hidden].iter().zip(&h) {
                assert!((found - expected).abs() < 1e-6, "row {row} time {time}");
            }
        }
    }
}

/// Differences every entry of `variable` and compares with candle's gradient.
///
/// f32 losses of order one carry errors of about 1e-6; with h = 1e-2 that is 1e-4 in the
/// quotient, and the curvature adds h² = 1e-4.
fn check_gradient(name: &str, variable: &Var, loss: impl Fn() -> Tensor) {
    let gradients = loss().backward().unwrap();
    let gradient = wide(gradients.get(variable).unwrap());
    let (start, h) = (variable.as_detached_tensor().copy().unwrap(), 1e-2);
    for index in 0..gradient.len() {
        let value = |shift: f32| {
            let mut moved: Vec<f32> = start.flatten_all().unwrap().to_vec1().unwrap();
            moved[index] += shift;
            let moved = Tensor::from_vec(moved, start.dims(), &Device::Cpu).unwrap();
            variable.set(&moved).unwrap();
            wide(&loss())[0]
        };
        let expected = (value(h) - value(-h)) / (2.0 * f64::from(h));
        let error = (gradient[index] - expected).abs();
        assert!(error < 2e-3 * (1.0 + expected.abs()), "{name}[{index}]: {expected} ± {error}");
    }
    variable.set(&start).unwrap();
}

#[test]
fn the_lstm_passes_gradients_through_time() {
    let parameters = Parameters::new(8);
    let layer = lstm(&parameters, 2, 3).unwrap();
    let input = Var::from_tensor(&random(&[2, 4, 2], "input")).unwrap();
    let direction = random(&[2, 4, 3], "direction");
    let loss = || {
        let output = layer.states_to_tensor(&layer.seq(&input).unwrap()).unwrap();
        (output * &direction).unwrap().sum_all().unwrap()
    };
    check_gradient("input", &input, loss);
    assert_eq!(parameters.trained_variables().len(), 4);
    for (name, variable) in parameters.trained_variables() {
        check_gradient(&name, &variable, loss);
    }
}

#[test]
fn batch_norm_keeps_running_statistics_that_survive_a_checkpoint() {
    let parameters = Parameters::new(8);
    let config = BatchNormConfig { momentum: 0.25, ..BatchNormConfig::default() };
    let layer = batch_norm(&parameters.group("norm"), 3, config).unwrap();
    let input = random(&[6, 3], "input");
    let output = wide(&layer.forward_t(&input, true).unwrap());
    let x = wide(&input);
    for feature in 0..3 {
        let column =
            |values: &[f64]| -> Vec<f64> { (0..6).map(|row| values[row * 3 + feature]).collect() };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / 6.0;
        let (inputs, outputs) = (column(&x), column(&output));
        let centre = mean(&inputs);
        let variance = mean(&inputs.iter().map(|x| (x - centre).powi(2)).collect::<Vec<_>>());
        for (x, y) in inputs.iter().zip(&outputs) {
            assert!((y - (x - centre) / (variance + 1e-5).sqrt()).abs() < 1e-5);
        }
        // Running values: mean 0 and variance 1 at the start, the unbiased variance enters.
        let get = |name: &str| wide(&parameters.get(name).unwrap())[feature];
        assert!((get("norm.running_mean") - 0.25 * centre).abs() < 1e-6);
        assert!((get("norm.running_var") - (0.75 + 0.25 * variance * 1.2)).abs() < 1e-6);
    }

    assert_eq!(parameters.num_trained(), 6);
    let expected = wide(&layer.forward_t(&input, false).unwrap());
    let restored = Parameters::new(9);
    let layer = batch_norm(&restored.group("norm"), 3, config).unwrap();
    restored.import(&parameters.export().unwrap()).unwrap();
    assert_eq!(wide(&layer.forward_t(&input, false).unwrap()), expected);
}

#[test]
fn batch_norm_passes_gradients_through_the_statistics() {
    let parameters = Parameters::new(8);
    let layer = batch_norm(&parameters, 2, BatchNormConfig::default()).unwrap();
    let input = Var::from_tensor(&random(&[5, 2], "input")).unwrap();
    let direction = random(&[5, 2], "direction");
    let loss = || (layer.forward_t(&input, true).unwrap() * &direction).unwrap().sum_all().unwrap();
    check_gradient("input", &input, loss);
    for (name, variable) in parameters.trained_variables() {
        check_gradient(&name, &variable, loss);
    }
}
