//! What the processes learn: as much as a Gaussian per location can say, and no more.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]
#![allow(dead_code, reason = "the shared module serves another test file too")]

mod neural;

use neural::{
    Curve, Learner, SMALL, Sizes, attentive, conditional, defaults, evaluate, implicit, train,
};

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
        train(process.as_mut(), Curve::Sine, 300, 8, 1e-2);
        let found = evaluate(process.as_ref(), Curve::Sine, 20);
        // 600 points: a standard error of √(½/600) = 0.03 on top of what training leaves.
        assert!(found > SINE - 0.25 && found < SINE + 0.12, "{}: {found}", process.name());
    }
}

#[test]
fn two_branches_are_out_of_reach() {
    for mut process in learners() {
        train(process.as_mut(), Curve::TwoBranches, 150, 8, 1e-2);
        let excess = TWO_BRANCHES - evaluate(process.as_ref(), Curve::TwoBranches, 40);
        assert!(excess > 0.7 && excess < GAUSSIAN_EXCESS + 0.3, "{}: {excess}", process.name());
    }
}

/// The default settings at full length; run it with `--release -- --ignored --nocapture` to see
/// seconds and nats per point.
#[test]
#[ignore = "half a minute in the release profile"]
#[allow(clippy::print_stderr, reason = "a measurement, run by hand")]
fn default_settings_reach_what_a_gaussian_can() {
    // The implicit process has one σ for all locations: its best variance on two branches is
    // 0.01 + E(sin 2t − cos 2t)²/4 = 0.26, and −½ log(2πe · 0.26) = −0.745.
    for (curve, bests) in
        [(Curve::Sine, [SINE; 4]), (Curve::TwoBranches, [-0.515, -0.515, -0.515, -0.745])]
    {
        for (mut process, best) in defaults(1).into_iter().zip(bests) {
            let start = std::time::Instant::now();
            let rate = if process.name() == "vip" { 1e-2 } else { 3e-3 };
            train(process.as_mut(), curve, 1000, 16, rate);
            let seconds = start.elapsed().as_secs_f64();
            let found = evaluate(process.as_ref(), curve, 60);
            eprintln!("{}: {seconds:.1} s, {found:.3} of {best} nats", process.name());
            assert!((found - best).abs() < 0.08, "{}: {found}", process.name());
        }
    }
}
