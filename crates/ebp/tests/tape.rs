//! Every operation of the tape on the CPU: outputs against plain f64 twins, gradients against
//! central differences of the twins, and what the tape refuses.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

#[path = "tape/mod.rs"]
mod cases;
mod twin;

use std::sync::Arc;

use ebp::SetOffsets;
use ebp::tape::{Choice, Convolution, Device};

#[test]
fn entries_sums_rows_and_columns_agree_with_their_formulas() {
    cases::simple().iter().for_each(cases::Case::check_on_the_cpu);
}

#[test]
fn laws_flows_cells_norms_and_attention_agree_with_their_formulas() {
    cases::models().iter().for_each(cases::Case::check_on_the_cpu);
}

#[test]
fn mixtures_agree_with_their_formulas() {
    cases::mixtures().iter().for_each(cases::Case::check_on_the_cpu);
}

#[test]
fn convolutions_agree_with_their_formulas() {
    cases::convolutions().iter().for_each(cases::Case::check_on_the_cpu);
}

#[test]
fn networks_partitions_and_dynamics_agree_with_their_formulas() {
    cases::points().iter().for_each(cases::Case::check_on_the_cpu);
}

/// A share of exactly one has log mass exactly zero, and tiny shares stay finite.
#[test]
fn a_certain_symbol_has_no_surprise() {
    let mut tape = Device::default().tape();
    let potentials = tape.upload(vec![500.0, -500.0, 0.0, 0.0, -500.0, 500.0], (2, 3)).unwrap();
    let mass = tape.log_mass(potentials, &Arc::new(vec![0, 0])).unwrap();
    assert_eq!(tape.download(mass).unwrap(), [0.0, -500.0]);
}

#[test]
fn a_detached_value_is_a_constant() {
    let mut tape = Device::default().tape();
    let x = tape.upload(vec![1.0, 2.0], (1, 2)).unwrap();
    let detached = tape.detach(x);
    let sum = tape.sum(detached).unwrap();
    let error = tape.backward(sum).unwrap_err().to_string();
    assert!(error.contains("a function of a trained parameter"), "{error}");
}

/// What does not fit is refused, and never a panic.
#[test]
fn shapes_that_do_not_fit_are_refused() {
    let mut tape = Device::default().tape();
    let x = tape.upload(vec![0.0; 6], (2, 3)).unwrap();
    let y = tape.upload(vec![0.0; 6], (3, 2)).unwrap();
    let offsets = Arc::new(SetOffsets::from_sizes([2, 2]).unwrap());
    let choice = Arc::new(Choice::new(5, vec![4]).unwrap());
    let stream = ebp::rng::Stream::new(0, "none");
    let errors = [
        tape.add(x, y).unwrap_err(),
        tape.reshape(x, (4, 2)).unwrap_err(),
        tape.columns(x, 2, 2).unwrap_err(),
        tape.columns(x, usize::MAX, 2).unwrap_err(),
        tape.concat(&[x, y]).unwrap_err(),
        tape.set_sums(x, &offsets).unwrap_err(),
        tape.spread(y, &offsets).unwrap_err(),
        tape.gather(x, &choice).unwrap_err(),
        tape.scale_from(x, 7, 2.0).unwrap_err(),
        tape.log_mass(x, &Arc::new(vec![0])).unwrap_err(),
        tape.log_mass(x, &Arc::new(vec![0, 3])).unwrap_err(),
        tape.lstm_cell(x, y).unwrap_err(),
        tape.planar(x, 2, 4, stream).unwrap_err(),
        tape.planar(x, 1, 0, stream).unwrap_err(),
        tape.clamp(x, 1.0, 0.0).unwrap_err(),
        tape.weight_figures(x, Some(y), None).unwrap_err(),
        tape.weight_figures(x, None, Some(y)).unwrap_err(),
        tape.upload(vec![0.0; 5], (2, 3)).unwrap_err(),
        Choice::new(2, vec![2]).unwrap_err(),
        tape.convolve(x, y, Convolution::new((1, 2), 1, 1).unwrap()).unwrap_err(),
        tape.convolve(x, y, Convolution::new((3, 1), 3, 1).unwrap()).unwrap_err(),
        tape.convolve_transposed(x, y, Convolution::new((5, 1), 3, 2).unwrap()).unwrap_err(),
        Convolution::new((0, 2), 3, 1).unwrap_err(),
        Convolution::new((2, 2), 4, 1).unwrap_err(),
        Convolution::new((2, 2), 17, 1).unwrap_err(),
        Convolution::new((2, 2), 3, 4).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains(" must "), "{error}");
    }
}

/// Matrices without columns pass through: a network without context, a part that is empty.
#[test]
fn empty_parts_pass_through() {
    let mut tape = Device::default().tape();
    let x = tape.upload(vec![1.0, 2.0], (2, 1)).unwrap();
    let nothing = tape.upload(Vec::new(), (2, 0)).unwrap();
    let both = tape.concat(&[nothing, x]).unwrap();
    assert_eq!(tape.download(both).unwrap(), [1.0, 2.0]);
    let cut = tape.columns(both, 1, 0).unwrap();
    assert_eq!(tape.shape(cut), (2, 0));
}
