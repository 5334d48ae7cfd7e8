//! What the processes learn: as much as a Gaussian per location can say, and no more.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]
#![allow(dead_code, reason = "the shared module serves another test file too")]

mod neural;

use ebp::process::Learner;
use neural::{Curve, SMALL, Sizes, attentive, conditional, evaluate, implicit, train};

/// The negative entropy of N(0, 0.1²): −½ log(2πe · 0.01) = 0.8837 nats per point.
const SINE: f64 = 0.8837;
/// The same of the two branches, by quadrature.
const TWO_BRANCHES: f64 = 0.265;
/// How far below it the best Gaussian per location stays.
const GAUSSIAN_EXCESS: f64 = 0.78;

const SIZES: Sizes = Sizes { width: 32, ..SMALL };

fn learners() -> [Box<dyn Learner>; 4] {
    [
        conditional(SIZES, 1),
        neural::neural(SIZES, 1, false),
        attentive(SIZES, 1, false),
        implicit(SIZES, 1),
    ]
}

#[test]
fn a_single_curve_is_learnt_to_its_noise() {
    for mut process in learners() {
        train(process.as_mut(), Curve::Sine, 300, 8);
        let found = evaluate(process.as_ref(), Curve::Sine, 20);
        // 600 points: a standard error of √(½/600) = 0.03 on top of what training leaves.
        assert!(found > SINE - 0.25 && found < SINE + 0.12, "{}: {found}", process.name());
    }
}

#[test]
fn two_branches_are_out_of_reach() {
    for mut process in learners() {
        train(process.as_mut(), Curve::TwoBranches, 150, 8);
        let excess = TWO_BRANCHES - evaluate(process.as_ref(), Curve::TwoBranches, 40);
        assert!(excess > 0.7 && excess < GAUSSIAN_EXCESS + 0.3, "{}: {excess}", process.name());
    }
}
