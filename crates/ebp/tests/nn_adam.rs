//! Adam against numbers by hand and against a plain loop.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use candle_core::{Device, Tensor, Var};
use ebp::nn::{Adam, AdamConfig, Initialiser, Parameters};
use ebp::rng::Stream;
use ebp::{Error, Result};

fn values(variable: &Var) -> Vec<f32> {
    variable.flatten_all().unwrap().to_vec1().unwrap()
}

/// A loss whose gradient with respect to `variable` is `gradient`.
fn linear_loss(variable: &Var, gradient: &[f32]) -> Tensor {
    let slope = Tensor::from_slice(gradient, variable.dims(), &Device::Cpu).unwrap();
    (variable.as_tensor() * slope).unwrap().sum_all().unwrap()
}

fn step(adam: &mut Adam, variable: &Var, gradient: &[f32], learning_rate: f64) -> Result<f64> {
    let gradients = linear_loss(variable, gradient).backward()?;
    Ok(adam.step(&gradients, learning_rate)?.gradient_norm)
}

/// The formulas of the paper, written down in f64.
struct PlainAdam {
    config: AdamConfig,
    weights: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    num_steps: i32,
}

impl PlainAdam {
    fn step(&mut self, gradient: &[f32], learning_rate: f64) {
        let AdamConfig { beta1, beta2, denominator_floor, weight_decay, max_gradient_norm } =
            self.config;
        let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        let scale = max_gradient_norm.map_or(1.0, |limit| (limit / norm).min(1.0));
        self.num_steps += 1;
        for (i, &g) in gradient.iter().enumerate() {
            let g = scale * f64::from(g);
            self.first[i] = beta1 * self.first[i] + (1.0 - beta1) * g;
            self.second[i] = beta2 * self.second[i] + (1.0 - beta2) * g * g;
            let mean = self.first[i] / (1.0 - beta1.powi(self.num_steps));
            let square = self.second[i] / (1.0 - beta2.powi(self.num_steps));
            self.weights[i] -= learning_rate * weight_decay * self.weights[i];
            self.weights[i] -= learning_rate * mean / (square.sqrt() + denominator_floor);
        }
    }
}

/// The first step has length η in the direction of −sign g, whatever the gradient's size.
/// Second step by hand, β = (0.9, 0.99), g = 1 then 3:
/// m̂ = (0.09 + 0.3)/0.19 = 2.0526316, v̂ = (0.0099 + 0.09)/0.0199 = 5.0201005,
/// m̂/√v̂ = 0.9161251.
#[test]
fn the_first_steps_are_those_computed_by_hand() {
    let parameters = Parameters::new(1);
    let w = parameters.trained("w", &[2], Initialiser::Zeros).unwrap();
    let config = AdamConfig { beta2: 0.99, ..AdamConfig::default() };
    let mut adam = Adam::new(&parameters, config).unwrap();
    let norm = step(&mut adam, &w, &[1.0, -200.0], 0.1).unwrap();
    assert!((norm - 200.0025_f64).abs() < 1e-4, "{norm}");
    let after = values(&w);
    assert!((after[0] + 0.1).abs() < 1e-7 && (after[1] - 0.1).abs() < 1e-7, "{after:?}");
    step(&mut adam, &w, &[3.0, 0.0], 0.1).unwrap();
    assert!((values(&w)[0] + 0.191_612_51).abs() < 1e-7, "{:?}", values(&w));
}

#[test]
fn a_hundred_steps_follow_the_plain_loop() {
    let plain = AdamConfig::default();
    let configs = [
        plain,
        AdamConfig { beta1: 0.0, ..plain },
        AdamConfig { beta1: 0.5, beta2: 0.9, weight_decay: 0.1, ..plain },
        AdamConfig { max_gradient_norm: Some(2.0), ..plain },
        AdamConfig { beta2: 0.0, denominator_floor: 1e-3, ..plain },
    ];
    for config in configs {
        let parameters = Parameters::new(1);
        let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };
        let w = parameters.trained("w", &[3, 7], law).unwrap();
        let mut adam = Adam::new(&parameters, config).unwrap();
        let start = values(&w);
        let mut reference = PlainAdam {
            config,
            weights: start.iter().map(|&x| f64::from(x)).collect(),
            first: vec![0.0; 21],
            second: vec![0.0; 21],
            num_steps: 0,
        };
        let stream = Stream::new(2, "gradient");
        for number in 0..100 {
            let mut gradient = [0.0; 21];
            stream.fill_normal(number, 0, &mut gradient);
            let learning_rate = 0.01 / f64::from(number + 1).sqrt();
            step(&mut adam, &w, &gradient, learning_rate).unwrap();
            reference.step(&gradient, learning_rate);
        }
        // 100 steps of at most a few 0.01, each rounded to f32 in a weight of order one.
        for (found, expected) in values(&w).iter().zip(&reference.weights) {
            assert!((f64::from(*found) - expected).abs() < 2e-5, "{config:?} {found} {expected}");
        }
    }
}

#[test]
fn a_restored_optimiser_continues_bit_for_bit() {
    let parameters = Parameters::new(1);
    let w = parameters.trained("w", &[4], Initialiser::Ones).unwrap();
    let config = AdamConfig::default();
    let mut adam = Adam::new(&parameters, config).unwrap();
    for _ in 0..3 {
        step(&mut adam, &w, &[1.0, 2.0, -3.0, 0.1], 0.1).unwrap();
    }
    let (state, weights) = (adam.export().unwrap(), parameters.export().unwrap());
    step(&mut adam, &w, &[0.3, -0.1, 0.2, 5.0], 0.1).unwrap();
    let expected = values(&w);

    let restored = Parameters::new(99);
    let w = restored.trained("w", &[4], Initialiser::Zeros).unwrap();
    restored.import(&weights).unwrap();
    let mut adam = Adam::new(&restored, config).unwrap();
    adam.import(&state).unwrap();
    step(&mut adam, &w, &[0.3, -0.1, 0.2, 5.0], 0.1).unwrap();
    assert_eq!(values(&w), expected);

    let mut damaged = state.clone();
    damaged.remove("w.second_moment");
    let message = adam.import(&damaged).unwrap_err().to_string();
    assert!(message.starts_with("`w.second_moment` must be a saved"), "{message}");
    let mut excess = state;
    excess.insert("x.num_steps".into(), ebp::tensor::Tensor::integer(1));
    assert!(adam.import(&excess).is_err());
}

#[test]
fn a_non_finite_gradient_is_named_and_nothing_moves() {
    let parameters = Parameters::new(1);
    let a = parameters.trained("a", &[2], Initialiser::Ones).unwrap();
    let b = parameters.trained("b", &[3], Initialiser::Ones).unwrap();
    let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
    let before = adam.export().unwrap()["a.first_moment"].as_f32().unwrap().to_vec();
    let loss = linear_loss(&a, &[1.0, 1.0]) + linear_loss(&b, &[1.0, f32::NAN, 1.0]);
    let error = adam.step(&loss.unwrap().backward().unwrap(), 0.1).unwrap_err();
    assert!(
        matches!(&error, Error::NonFiniteGradient { parameter, index: 1, .. } if parameter == "b"),
        "{error}"
    );
    assert_eq!(values(&a), [1.0, 1.0]);
    assert_eq!(adam.export().unwrap()["a.first_moment"].as_f32().unwrap().to_vec(), before);
}

#[test]
fn an_optimiser_moves_its_own_group_only() {
    let parameters = Parameters::new(1);
    let energy = parameters.group("energy").trained("w", &[2], Initialiser::Ones).unwrap();
    let sampler = parameters.group("sampler").trained("w", &[2], Initialiser::Ones).unwrap();
    let idle = parameters.group("energy").trained("idle", &[2], Initialiser::Ones).unwrap();
    let mut adam = Adam::new(&parameters.group("energy"), AdamConfig::default()).unwrap();
    let loss = (linear_loss(&energy, &[1.0, 1.0]) + linear_loss(&sampler, &[5.0, 5.0])).unwrap();
    let done = adam.step(&loss.backward().unwrap(), 0.1).unwrap();
    assert_eq!(done.num_updated, 1);
    assert!((done.gradient_norm - 2_f64.sqrt()).abs() < 1e-7);
    assert!(values(&energy)[0] < 1.0);
    assert_eq!([values(&sampler), values(&idle)].concat(), [1.0; 4]);

    let unrelated = linear_loss(&sampler, &[1.0, 1.0]).backward().unwrap();
    assert!(adam.step(&unrelated, 0.1).is_err());
    assert!(Adam::new(&parameters.group("absent"), AdamConfig::default()).is_err());
    let wrong = AdamConfig { beta1: 1.0, ..AdamConfig::default() };
    let message = Adam::new(&parameters, wrong).unwrap_err().to_string();
    assert_eq!(message, "`beta1` must be in [0, 1), found 1");
}
