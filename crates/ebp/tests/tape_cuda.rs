//! The tape on a GPU against the CPU: every operation, forward and back, and whole training runs.
//! Without a GPU every test says why it is skipped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure here is a failed test, and a skipped one must be seen"
)]

#[path = "tape/mod.rs"]
mod cases;
#[path = "tape/training.rs"]
mod training;
mod twin;

use std::sync::OnceLock;

use ebp::Error;
use ebp::point::{CudaBackend, Precision};
use ebp::rng::Stream;
use ebp::tape::{AdamConfig, Device};
use ebp::tensor::Tensors;

use cases::Case;
use training::{Model, Small};

/// How far the two may be apart, relative to 1 + the largest magnitude: both round to f32, products
/// of matrices may be split into TF32 numbers that together hold as many digits, and `exp` and
/// `tanh` of the GPU err by 2 units in the last place.
const TOLERANCE: f64 = 2e-5;

/// The GPU, or the reason why it is not tested.
fn gpu() -> Option<&'static Device> {
    static GPU: OnceLock<Option<Device>> = OnceLock::new();
    let found = GPU.get_or_init(|| match CudaBackend::new(0, Precision::F32) {
        Ok(backend) => Some(Device::Cuda(backend)),
        Err(reason) => {
            eprintln!("SKIPPED, the tape is not tested on a GPU: {reason}");
            None
        }
    });
    found.as_ref()
}

#[track_caller]
fn assert_near(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    let largest = expected.iter().fold(0.0_f64, |largest, x| largest.max(f64::from(x.abs())));
    let bound = TOLERANCE * (1.0 + largest);
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - f64::from(expected)).abs();
        assert!(
            error <= bound,
            "{what}[{index}]: GPU {found}, CPU {expected}, error {error:e} > {bound:e}"
        );
    }
}

/// Runs every case on both; all that differ are named.
fn compare(cases: &[Case]) {
    let Some(gpu) = gpu() else { return };
    let differing = cases.iter().filter(|case| {
        let check = || {
            let found = case.run(gpu).unwrap_or_else(|e| panic!("{} on the GPU: {e}", case.name));
            let expected = case.run(&Device::default()).unwrap();
            assert_eq!(found.outputs.len(), expected.outputs.len());
            for (number, pair) in found.outputs.iter().zip(&expected.outputs).enumerate() {
                assert_near(&format!("{} output {number}", case.name), pair.0, pair.1);
            }
            for (number, pair) in found.gradients.iter().zip(&expected.gradients).enumerate() {
                assert_near(&format!("{} gradient {number}", case.name), pair.0, pair.1);
            }
            // No sum depends on which thread was first.
            let again = case.run(gpu).unwrap();
            let bits = |all: &[Vec<f32>]| -> Vec<u32> {
                all.iter().flatten().map(|x| x.to_bits()).collect()
            };
            assert_eq!(bits(&again.outputs), bits(&found.outputs), "{} again", case.name);
            assert_eq!(bits(&again.gradients), bits(&found.gradients), "{} again", case.name);
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err()
    });
    let differing: Vec<&str> = differing.map(|case| case.name.as_str()).collect();
    assert!(differing.is_empty(), "{} of {} cases: {differing:#?}", differing.len(), cases.len());
}

#[test]
fn entries_sums_rows_and_columns_agree() {
    compare(&cases::simple());
}

#[test]
fn laws_flows_cells_norms_and_attention_agree() {
    compare(&cases::models());
    compare(&cases::mixtures());
}

#[test]
fn networks_partitions_and_dynamics_agree() {
    compare(&cases::points());
}

/// Sums over a whole picture's places, in parts of rows on a GPU.
#[test]
fn convolutions_agree() {
    compare(&cases::convolutions());
}

#[test]
fn cases_larger_than_a_block_agree() {
    compare(&cases::large());
}

#[test]
fn random_numbers_have_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let draw = |device: &Device| {
        let mut tape = device.tape();
        let noise = tape.normals((333, 7), Stream::new(4, "noise")).unwrap();
        tape.download(noise).unwrap()
    };
    assert_eq!(draw(gpu), draw(&Device::default()));
}

#[track_caller]
fn assert_states_near(found: &Tensors, expected: &Tensors) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, tensor) in expected {
        match tensor.as_f32() {
            Some(expected) => assert_near(name, found[name].as_f32().unwrap(), expected),
            None => assert_eq!(&found[name], tensor, "{name}"),
        }
    }
}

#[test]
fn adam_and_its_average_agree_and_states_move_between_devices() {
    let Some(gpu) = gpu() else { return };
    for (average, limit) in [(None, None), (Some(0.9), Some(1.0))] {
        let config =
            AdamConfig { max_gradient_norm: limit, weight_decay: 0.1, ..AdamConfig::default() };
        let mut here = Small::new(4, config, average);
        let mut there = Small::on(gpu, 4, config, average);
        for step in 0..6 {
            let (a, b) = (here.step(step).unwrap(), there.step(step).unwrap());
            assert!((a - b).abs() < 1e-5 * (1.0 + a), "{a} {b}");
        }
        assert_states_near(&there.set.export().unwrap(), &here.set.export().unwrap());
        // A run may go on elsewhere.
        let mut state = there.set.export().unwrap();
        let mut moved = Small::new(7, config, average);
        moved.set.import(&mut state).unwrap();
        assert_eq!(moved.set.export().unwrap(), there.set.export().unwrap());
        moved.step(6).unwrap();
        there.step(6).unwrap();
        assert_states_near(&there.set.export().unwrap(), &moved.set.export().unwrap());
        there.set.use_average(true);
        moved.set.use_average(true);
        assert_near("average", &there.values(), &moved.values());
    }
}

#[test]
fn a_gradient_that_is_no_number_names_its_parameter_and_changes_nothing() {
    let Some(gpu) = gpu() else { return };
    let mut small = Small::on(gpu, 4, AdamConfig::default(), Some(0.9));
    small.step(0).unwrap();
    let before = small.set.export().unwrap();
    let mut tape = gpu.tape();
    tape.train(&small.set);
    let bias = tape.parameter(&small.bias).unwrap();
    let slopes = tape.upload(vec![1.0, f32::INFINITY, 2.0], (1, 3)).unwrap();
    let product = tape.multiply(bias, slopes).unwrap();
    let loss = tape.sum(product).unwrap();
    let gradients = tape.backward(loss).unwrap();
    match small.set.step(&gradients, 0.1).unwrap_err() {
        Error::NonFiniteGradient { parameter, index, .. } => {
            assert_eq!((parameter.as_str(), index), ("model.inner.bias", 1));
        }
        error => panic!("another error: {error}"),
    }
    assert_eq!(small.set.export().unwrap(), before);
}

/// Rounding of some 1e-6 grows from step to step: Adam's first steps are as long for a small
/// gradient as for a large one.
#[test]
fn whole_training_runs_agree() {
    let Some(gpu) = gpu() else { return };
    let (expected, _) = Model::on(&Device::default()).train(20);
    let (found, state) = Model::on(gpu).train(20);
    for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let bound = 1e-3 * (1.0 + expected.abs());
        assert!((found - expected).abs() < bound, "step {step}: {found} {expected}");
    }
    let (again, same) = Model::on(gpu).train(20);
    assert_eq!(again, found);
    assert!(same == state, "the same bytes from run to run");
}
