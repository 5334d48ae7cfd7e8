//! The slow obvious twin of the point primitive: plain loops over elements, layers and units, in
//! f64, with the formula above each loop. It shares no code with the backends; only σ and its
//! derivatives come from the library, since their f64 formulas are the definition.
//!
//! `point_derivatives.rs` proves the twin against finite differences, and `point_against_twin.rs`
//! and `dynamics_against_twin.rs` then judge the backends by it. Everything is f64 and public, so
//! that a finite difference can nudge any parameter, element, context, step size or momentum.

#![allow(dead_code, reason = "every test file uses its own part of the twin")]

mod dynamics;
mod motion;
mod network;
mod partition;
mod pooling;

pub(crate) use dynamics::{DynamicsGradients, LangevinPlan, LeapfrogPlan};
pub(crate) use network::{Gradients, Network, Sets};
pub(crate) use partition::Anchors;

/// f32 to f64, number by number.
pub(crate) fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// ⟨a, b⟩
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// a ← a + b
pub(crate) fn add_to(a: &mut [f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
}
