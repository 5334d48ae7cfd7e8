//! Parameters of the tape: Adam with its average, saving and restoring, threads, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

#[path = "tape/training.rs"]
mod training;

use ebp::Error;
use ebp::rng::Stream;
use ebp::tape::{AdamConfig, Device, Initialiser, ParameterBuilder, ParameterSet, check_taken};
use ebp::tensor::{Tensor, Tensors};

use training::{Model, Small};

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn normal(step: u64, name: &str, index: usize) -> f64 {
    f64::from(Stream::new(step, name).normal(0, index as u64))
}

#[test]
fn adam_and_its_average_agree_with_a_plain_loop() {
    let config = AdamConfig {
        weight_decay: 0.1,
        max_gradient_norm: Some(2.0),
        beta1: 0.5,
        ..AdamConfig::default()
    };
    let mut small = Small::new(4, config, Some(0.9));
    let mut w: Vec<f64> = small.values()[..18].iter().copied().map(f64::from).collect();
    let (mut m, mut v) = (vec![0.0; 18], vec![0.0; 18]);
    // Σ 0.9ᵀ⁻ᵗ w_t and Σ 0.9ᵀ⁻ᵗ: what parameters were before the first step does not count.
    let (mut weighted, mut weight) = (vec![0.0; 18], 0.0);
    for step in 0..12_u64 {
        let gradient: Vec<f64> = (0..18)
            .map(|i| {
                if i < 15 {
                    w[i] - normal(step, "target", i)
                } else {
                    normal(step, "slope", i - 15)
                }
            })
            .collect();
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let found = small.step(step).unwrap();
        assert!((found - norm).abs() < 1e-5 * norm, "{found} {norm}");
        let scale = (2.0 / norm).min(1.0);
        let t = i32::try_from(step + 1).unwrap();
        weight = 0.9 * weight + 1.0;
        for i in 0..18 {
            let g = scale * gradient[i];
            m[i] = 0.5 * m[i] + 0.5 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            let (first, second) =
                (m[i] / (1.0 - 0.5_f64.powi(t)), v[i] / (1.0 - 0.999_f64.powi(t)));
            w[i] -= 0.05 * 0.1 * w[i] + 0.05 * first / (second.sqrt() + 1e-8);
            weighted[i] = 0.9 * weighted[i] + w[i];
        }
        let found = small.values();
        for i in 0..18 {
            assert!(
                (f64::from(found[i]) - w[i]).abs() < 1e-5,
                "step {step}: {} {}",
                found[i],
                w[i]
            );
        }
    }
    let trained = small.values();
    small.set.use_average(true);
    let found = small.values();
    for i in 0..18 {
        let average: f64 = weighted[i] / weight;
        assert!((f64::from(found[i]) - average).abs() < 1e-5, "{} {average}", found[i]);
    }
    // Buffers have no average: 1.5 to the number of steps.
    assert!((found[18] - 1.5_f32.powi(12)).abs() < 1e-2);
    small.set.use_average(true);
    small.set.use_average(false);
    assert_eq!(bits(&small.values()), bits(&trained));
}

#[test]
fn a_step_leaves_the_average_and_trains_the_parameters() {
    let config = AdamConfig::default();
    let (mut one, mut other) = (Small::new(4, config, Some(0.9)), Small::new(4, config, Some(0.9)));
    one.step(0).unwrap();
    other.step(0).unwrap();
    // Somebody looked at the average in between.
    one.set.use_average(true);
    one.step(1).unwrap();
    other.step(1).unwrap();
    assert_eq!(bits(&one.values()), bits(&other.values()));
    assert_eq!(one.set.export().unwrap(), other.set.export().unwrap());
}

#[test]
fn a_restored_set_goes_on_bit_by_bit() {
    for average in [None, Some(0.9)] {
        let config = AdamConfig { max_gradient_norm: Some(1.0), ..AdamConfig::default() };
        let mut whole = Small::new(4, config, average);
        for step in 0..3 {
            whole.step(step).unwrap();
        }
        // What is used at the moment must not matter.
        whole.set.use_average(true);
        let mut state = whole.set.export().unwrap();
        whole.set.use_average(false);
        let mut restored = Small::new(99, config, average);
        assert_ne!(bits(&restored.values()), bits(&whole.values()));
        restored.set.import(&mut state).unwrap();
        assert!(state.is_empty(), "{state:?}");
        check_taken(&state).unwrap();
        assert_eq!(restored.set.export().unwrap(), whole.set.export().unwrap());
        for step in 3..6 {
            let (a, b) = (whole.step(step).unwrap(), restored.step(step).unwrap());
            assert_eq!(a.to_bits(), b.to_bits());
        }
        assert_eq!(bits(&restored.values()), bits(&whole.values()));
        assert_eq!(restored.set.export().unwrap(), whole.set.export().unwrap());
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused_by_name_and_changes_nothing() {
    let config = AdamConfig::default();
    let mut trained = Small::new(4, config, Some(0.9));
    trained.step(0).unwrap();
    let state = trained.set.export().unwrap();
    let names: Vec<String> = state.keys().cloned().collect();
    assert_eq!(names.len(), 2 * 4 + 1 + 1, "{names:?}");
    let refused = |state: &mut Tensors| {
        let mut fresh = Small::new(5, config, Some(0.9));
        let (before, kept) = (fresh.set.export().unwrap(), state.clone());
        let message = fresh.set.import(state).unwrap_err().to_string();
        assert_eq!(fresh.set.export().unwrap(), before, "the set is as it was");
        assert_eq!(*state, kept, "the state is as it was");
        message
    };
    for name in &names {
        let mut missing = state.clone();
        missing.remove(name);
        assert!(refused(&mut missing).contains(&format!("`{name}`")), "{name}");
        let mut misshapen = state.clone();
        misshapen.insert(name.clone(), Tensor::new(vec![5, 3], vec![0.0; 15]).unwrap());
        assert!(refused(&mut misshapen).contains(&format!("`{name}`")), "{name}");
    }
    let mut unknown = state;
    unknown.insert("parameters/other".into(), Tensor::integer(1));
    Small::new(5, config, Some(0.9)).set.import(&mut unknown).unwrap();
    let message = check_taken(&unknown).unwrap_err().to_string();
    assert!(message.contains("`parameters/other`"), "{message}");
}

#[test]
fn a_gradient_that_is_no_number_names_its_parameter_and_changes_nothing() {
    let mut small = Small::new(4, AdamConfig::default(), Some(0.9));
    small.step(0).unwrap();
    let before = small.set.export().unwrap();
    for (slope, expected) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut tape = Device::default().tape();
        tape.train(&small.set);
        let bias = tape.parameter(&small.bias).unwrap();
        let slopes = tape.upload(vec![1.0, slope, 2.0], (1, 3)).unwrap();
        let product = tape.multiply(bias, slopes).unwrap();
        let loss = tape.sum(product).unwrap();
        let gradients = tape.backward(loss).unwrap();
        let error = small.set.step(&gradients, 0.1).unwrap_err();
        let Error::NonFiniteGradient { parameter, index, value } = &error else {
            panic!("another error: {error}");
        };
        assert_eq!((parameter.as_str(), *index), ("model.inner.bias", 1));
        assert_eq!(value.to_string(), expected);
        assert_eq!(small.set.export().unwrap(), before);
    }
}

#[test]
fn names_are_used_once_and_settings_have_ranges() {
    let mut builder = ParameterBuilder::new(1);
    builder.group("a").trained("w", &[2], Initialiser::Ones).unwrap();
    let error = builder.group("a").buffer("w", &[2], Initialiser::Ones).unwrap_err();
    assert!(error.to_string().contains("a.w"), "{error}");
    let refused = |config: AdamConfig, average: Option<f32>| {
        let mut builder = ParameterBuilder::new(1);
        builder.group("a").trained("w", &[2], Initialiser::Ones).unwrap();
        ParameterSet::new(builder, &Device::default(), config, average).unwrap_err().to_string()
    };
    let plain = AdamConfig::default();
    assert!(refused(AdamConfig { beta1: 1.0, ..plain }, None).contains("beta1"));
    assert!(refused(AdamConfig { weight_decay: -1.0, ..plain }, None).contains("weight_decay"));
    let short = AdamConfig { max_gradient_norm: Some(0.0), ..plain };
    assert!(refused(short, None).contains("max_gradient_norm"));
    assert!(refused(plain, Some(1.0)).contains("average_decay"));
}

#[test]
fn steps_give_the_same_bytes_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Model::on(&Device::default()).train(3).1)
    };
    let (one, four) = (run(1), run(4));
    assert_eq!(one.len(), four.len());
    for (name, tensor) in &one {
        let values = |tensor: &Tensor| tensor.as_f32().map(bits);
        assert_eq!(values(tensor), values(&four[name]), "{name}");
    }
}
