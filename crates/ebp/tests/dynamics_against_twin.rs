//! Judges Langevin and leapfrog steps of the CPU backend, and the gradients through them, by the
//! slow f64 twin, on every instruction set: with every clip, with and without base measure, walls
//! and fixed elements. Elements whose path comes near a kink, a clip limit or a wall are drawn
//! anew, since there f32 and f64 may rightly part.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod twin;

use case::strategy::{for_all, large_specs, numerous_specs, specs};
use case::{CLEARANCE, Case, Spec, assert_close, backends};
use ebp::point::{
    Bounds, Clip, DynamicsCotangent, DynamicsGradients, Langevin, Leapfrog, Motion, PointBackend,
};
use ebp::rng::Stream;
use proptest::prelude::*;
use proptest::sample::select;
use twin::{LangevinPlan, LeapfrogPlan, widen};

/// A run without its borrowed parts.
#[derive(Clone, Debug)]
struct Plan {
    step_sizes: Vec<f32>,
    noise_scales: Vec<f32>,
    clip: Clip,
    base_std_dev: Option<f32>,
    bounds: Option<Bounds>,
    /// Every element whose number is a multiple of this is fixed.
    fixed_every: Option<usize>,
}

impl Plan {
    fn is_fixed(&self, total: usize) -> Option<Vec<bool>> {
        self.fixed_every.map(|every| (0..total).map(|i| i % every == 0).collect())
    }

    fn motion<'a>(&self, is_fixed: Option<&'a [bool]>) -> Motion<'a> {
        let Self { clip, base_std_dev, bounds, .. } = *self;
        Motion { clip, base_std_dev, bounds, is_fixed }
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let steps = prop::collection::vec((0.01_f32..0.3, select(&[0.0_f32, 0.05, 0.3][..])), 0..=4);
    let clip = prop_oneof![
        Just(Clip::Off),
        (0.05_f32..1.0).prop_map(Clip::Elementwise),
        (0.05_f32..1.5).prop_map(Clip::Norm),
    ];
    let base = select(&[None, Some(0.7_f32), Some(2.5)][..]);
    // Elements of standard deviation one meet walls at ±0.8 often, and those beyond the
    // reflection's reach are clamped.
    let bounds = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Bounds { low: -0.8, high: 0.8 })),
        1 => Just(Some(Bounds { low: -1.5, high: 2.5 })),
    ];
    let fixed_every =
        prop_oneof![2 => Just(None), 1 => Just(Some(1)), 3 => (2_usize..=4).prop_map(Some)];
    (steps, clip, base, bounds, fixed_every).prop_map(
        |(steps, clip, base_std_dev, bounds, fixed_every)| {
            let (step_sizes, noise_scales) = steps.into_iter().unzip();
            Plan { step_sizes, noise_scales, clip, base_std_dev, bounds, fixed_every }
        },
    )
}

#[track_caller]
fn assert_dynamics_gradients_close(
    backend: &dyn PointBackend,
    found: &DynamicsGradients,
    expected: &twin::DynamicsGradients,
) {
    assert_close((backend, "gradient of x₀"), &found.values, &expected.values);
    assert_close((backend, "gradient of v₀"), &found.momentum, &expected.momentum);
    assert_close((backend, "gradient of step sizes"), &found.step_sizes, &expected.step_sizes);
    assert_close((backend, "gradient of context"), &found.context, &expected.context);
}

fn check_langevin(spec: &Spec, plan: &Plan) -> Option<()> {
    let is_fixed = plan.is_fixed(spec.sizes.iter().sum());
    let motion = plan.motion(is_fixed.as_deref());
    let noise = Stream::new(spec.seed, "noise");
    let twins = LangevinPlan {
        step_sizes: widen(&plan.step_sizes),
        noise_scales: widen(&plan.noise_scales),
        noise,
        motion,
    };
    let case = Case::draw_where(spec, |network, sets, i| {
        network.langevin_distance(sets, &twins, i) > CLEARANCE
    })?;
    let (network, sets) = (case.network(), case.sets());
    let langevin =
        Langevin { step_sizes: &plan.step_sizes, noise_scales: &plan.noise_scales, noise, motion };
    let (lambda, kappa) = (case.like_values("lambda"), case.per_element("kappa"));
    let zero = vec![0.0; kappa.len()];
    let run = network.langevin(&sets, &twins);
    let backward = network.langevin_backward(&sets, &twins, &widen(&lambda), &widen(&kappa));
    let without = network.langevin_backward(&sets, &twins, &widen(&lambda), &zero);
    for backend in backends() {
        let found = backend.langevin(&case.mlp, &case.batch(), &langevin).unwrap();
        assert_close((backend, "elements"), &found.elements, &run.elements);
        assert_close((backend, "values"), &found.values, &run.values);
        assert_close((backend, "score"), &found.score, &run.score);
        assert_close((backend, "kinetic"), &found.kinetic, &run.kinetic);
        assert_close((backend, "final"), &found.final_alignment, &run.final_alignment);
        assert_close((backend, "alignment"), &found.kinetic_alignment, &run.kinetic_alignment);
        for (kinetic, expected) in [(Some(&kappa[..]), &backward), (None, &without)] {
            let cotangent = DynamicsCotangent { values: &lambda, momentum: None, kinetic };
            let found =
                backend.langevin_backward(&case.mlp, &case.batch(), &langevin, cotangent).unwrap();
            assert_dynamics_gradients_close(backend, &found, expected);
        }
    }
    Some(())
}

fn check_leapfrog(spec: &Spec, plan: &Plan) -> Option<()> {
    let total: usize = spec.sizes.iter().sum();
    let is_fixed = plan.is_fixed(total);
    let motion = plan.motion(is_fixed.as_deref());
    let twins = LeapfrogPlan { step_sizes: widen(&plan.step_sizes), motion };
    let momentum = case::normals(spec.seed, "momentum", total * spec.config.value_dim);
    let momentum64 = widen(&momentum);
    let case = Case::draw_where(spec, |network, sets, i| {
        network.leapfrog_distance(sets, &momentum64, &twins, i) > CLEARANCE
    })?;
    let (network, sets) = (case.network(), case.sets());
    let leapfrog = Leapfrog { step_sizes: &plan.step_sizes, motion };
    let (lambda, mu) = (case.like_values("lambda"), case.like_values("mu"));
    let zero = vec![0.0; mu.len()];
    let run = network.leapfrog(&sets, &momentum64, &twins);
    let gradients =
        |mu: &[f64]| network.leapfrog_backward(&sets, &momentum64, &twins, (&widen(&lambda), mu));
    let (backward, without) = (gradients(&widen(&mu)), gradients(&zero));
    for backend in backends() {
        let found = backend.leapfrog(&case.mlp, &case.batch(), &momentum, &leapfrog).unwrap();
        assert_close((backend, "elements"), &found.elements, &run.elements);
        assert_close((backend, "momentum"), &found.momentum, &run.momentum);
        assert_close((backend, "values"), &found.values, &run.values);
        assert_close((backend, "score"), &found.score, &run.score);
        assert_close((backend, "kinetic"), &found.kinetic, &run.kinetic);
        for (momenta, expected) in [(Some(&mu[..]), &backward), (None, &without)] {
            let cotangent = DynamicsCotangent { values: &lambda, momentum: momenta, kinetic: None };
            let found = backend
                .leapfrog_backward(&case.mlp, &case.batch(), &momentum, &leapfrog, cotangent)
                .unwrap();
            assert_dynamics_gradients_close(backend, &found, expected);
        }
    }
    Some(())
}

#[test]
fn langevin() {
    for_all(100, file!(), &(specs(Just(1)), plans()), |(spec, plan)| check_langevin(&spec, &plan));
}

#[test]
fn leapfrog() {
    for_all(100, file!(), &(specs(Just(1)), plans()), |(spec, plan)| check_leapfrog(&spec, &plan));
}

#[test]
fn large_networks_and_numerous_elements() {
    let plan = Plan {
        step_sizes: vec![0.1, 0.2],
        noise_scales: vec![0.1, 0.0],
        clip: Clip::Norm(0.3),
        base_std_dev: Some(1.5),
        bounds: Some(Bounds { low: -2.0, high: 2.0 }),
        fixed_every: Some(5),
    };
    for spec in large_specs(1).iter().chain(&numerous_specs(1)) {
        check_langevin(spec, &plan).unwrap();
        check_leapfrog(spec, &plan).unwrap();
    }
}
