//! Proves the dynamics of the CPU backend against closed forms: the stationary variance of
//! Langevin steps, reversal, order and volume of leapfrog steps, walls that keep the uniform law,
//! elements that stay fixed, and the documented places of the noise.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod twin;

use case::{Case, Spec, assert_close, backends, normals};
use ebp::SetOffsets;
use ebp::point::{
    Activation, Bounds, Clip, DynamicsCotangent, Langevin, Leapfrog, MlpConfig, MlpShape, Motion,
    PointBatch, PointMlp,
};
use ebp::rng::Stream;
use twin::{LeapfrogPlan, Sets, widen};

/// A network with f = 0 everywhere, without context and locations.
fn flat_network(value_dim: usize) -> PointMlp {
    let shape = MlpShape::new(MlpConfig {
        value_dim,
        context_dim: 0,
        hidden_widths: vec![3],
        ..MlpConfig::default()
    })
    .unwrap();
    let parameters = vec![0.0; shape.num_parameters()];
    PointMlp::new(shape, parameters).unwrap()
}

fn quiet(step_sizes: &[f32]) -> Langevin<'_> {
    Langevin {
        step_sizes,
        noise_scales: &[],
        noise: Stream::new(1, "noise"),
        motion: Motion::default(),
    }
}

/// A smooth energy in a wide bowl, for leapfrog steps: tanh network plus N(0, 1) base measure.
fn bowl(value_dim: usize, size: usize) -> (Case, Motion<'static>) {
    let config = MlpConfig { value_dim, activation: Activation::Tanh, ..Spec::default().config };
    let case = Case::draw(&Spec { config, sizes: vec![size], seed: 8, ..Spec::default() }).unwrap();
    (case, Motion { base_std_dev: Some(1.0), ..Motion::default() })
}

/// x′ = (1 − η/2) x + √η ξ has the stationary variance η / (1 − (1 − η/2)²) = 1/(1 − η/4). The
/// standard error of the variance of n normals is √(2/n) of it. Correlation with the start decays
/// as (1 − η/2)^t, after 40 steps 1e-5. ‖v‖² = (η²/4) x² + η ξ² − … has mean η + (η²/4) Var x.
#[test]
fn langevin_on_a_quadratic_energy_has_its_closed_form_variance() {
    let (eta, num_steps, n) = (0.5_f32, 40, 1 << 16);
    let mlp = flat_network(1);
    let offsets = SetOffsets::from_sizes([n]).unwrap();
    let elements = vec![0.0; n];
    let langevin = Langevin {
        step_sizes: &vec![eta; num_steps],
        noise_scales: &vec![eta.sqrt(); num_steps],
        noise: Stream::new(4, "stationary"),
        motion: Motion { base_std_dev: Some(1.0), ..Motion::default() },
    };
    let eta = f64::from(eta);
    let expected = 1.0 / (1.0 - eta / 4.0);
    let relative_error = (2.0 / n as f64).sqrt();
    for backend in backends() {
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: &[] };
        let run = backend.langevin(&mlp, &batch, &langevin).unwrap();
        let mean_of =
            |power| run.elements.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / n as f64;
        let variance = mean_of(2);
        assert!(mean_of(1).abs() < 4.0 * (expected / n as f64).sqrt(), "mean {}", mean_of(1));
        assert!(
            (variance / expected - 1.0).abs() < 4.0 * relative_error,
            "variance {variance}, expected {expected}"
        );
        // v is normal, so its square has the same relative standard error.
        let kinetic = f64::from(run.kinetic[num_steps - 1]) / n as f64;
        let expected = eta + eta * eta / 4.0 * expected;
        assert!((kinetic / expected - 1.0).abs() < 4.0 * relative_error, "kinetic {kinetic}");
    }
}

/// One step from zero without drift is the noise itself, at index i·d_x + k of its step.
#[test]
fn noise_stands_at_its_documented_places() {
    let (n, dx) = (101, 3);
    let mlp = flat_network(dx);
    let offsets = SetOffsets::from_sizes([40, 1, 60]).unwrap();
    let elements = vec![0.0; n * dx];
    let stream = Stream::new(9, "places");
    for (step, noise_scales) in [(0, vec![1.0]), (2, vec![0.0, 0.0, 1.0])] {
        let step_sizes = vec![0.3; noise_scales.len()];
        let langevin =
            Langevin { noise_scales: &noise_scales, noise: stream, ..quiet(&step_sizes) };
        let mut expected = vec![0.0; n * dx];
        stream.fill_normal(step, 0, &mut expected);
        for backend in backends() {
            let batch = PointBatch { elements: &elements, offsets: &offsets, context: &[] };
            let run = backend.langevin(&mlp, &batch, &langevin).unwrap();
            assert_eq!(run.elements, expected, "{backend:?}");
        }
    }
}

/// Langevin without steps, with steps of size zero, and leapfrog with either: nothing moves, and
/// f and ∇u at the end are those at the start.
#[test]
fn no_steps_and_zero_steps_leave_everything_in_place() {
    let (case, motion) = bowl(2, 30);
    let dx = case.config().value_dim;
    let momentum = case.like_values("momentum");
    for backend in backends() {
        let start = backend.score(&case.mlp, &case.batch()).unwrap();
        let values = case.elements.chunks(dx + 1).flat_map(|row| row[..dx].to_vec());
        let base: Vec<_> =
            start.score.iter().zip(values).map(|(s, x)| f64::from(*s) - f64::from(x)).collect();
        for steps in [0, 3] {
            let zero = vec![0.0; steps];
            let langevin = Langevin { noise_scales: &zero, motion, ..quiet(&zero) };
            let run = backend.langevin(&case.mlp, &case.batch(), &langevin).unwrap();
            assert_eq!(run.elements, case.elements);
            assert_eq!(run.kinetic, zero);
            assert_eq!(run.kinetic_alignment, zero);
            assert_eq!(run.final_alignment.len(), steps);
            assert_close("f", &run.values, &widen(&start.values));
            assert_close("∇u", &run.score, &base);

            let leapfrog = Leapfrog { step_sizes: &zero, motion };
            let run = backend.leapfrog(&case.mlp, &case.batch(), &momentum, &leapfrog).unwrap();
            assert_eq!(run.elements, case.elements);
            assert_eq!(run.momentum, momentum);
            let kinetic = widen(&momentum).iter().map(|v| v * v).sum();
            assert_close("‖v‖²", &run.kinetic, &[kinetic]);
            assert_close("f", &run.values, &widen(&start.values));
            assert_close("∇u", &run.score, &base);
        }
    }
}

#[test]
fn fixed_elements_stay_and_the_others_do_not_notice() {
    let (case, free) = bowl(2, 53);
    let is_fixed: Vec<_> = (0..53).map(|i| i % 3 == 1).collect();
    let motion = Motion { is_fixed: Some(&is_fixed), ..free };
    let momentum = case.like_values("momentum");
    let sizes = [0.2, 0.3, 0.1];
    for backend in backends() {
        let langevin = |motion| {
            let langevin = Langevin { noise_scales: &[0.5; 3], motion, ..quiet(&sizes) };
            backend.langevin(&case.mlp, &case.batch(), &langevin).unwrap().elements
        };
        let leapfrog = |motion| {
            let leapfrog = Leapfrog { step_sizes: &sizes, motion };
            backend.leapfrog(&case.mlp, &case.batch(), &momentum, &leapfrog).unwrap().elements
        };
        let runs = [(langevin(motion), langevin(free)), (leapfrog(motion), leapfrog(free))];
        for (found, without) in &runs {
            for (i, fixed) in is_fixed.iter().enumerate() {
                let row = i * 3..(i + 1) * 3;
                let expected = if *fixed { &case.elements } else { without };
                assert_eq!(found[row.clone()], expected[row.clone()], "{backend:?} element {i}");
                assert_ne!(without[row.clone()], case.elements[row], "element {i} is not moved");
            }
        }
    }
}

/// By hand, on a flat energy with η = 1, walls at ±1: 0.75 + 0.5 = 1.25 is reflected to 0.75 and
/// its momentum turned; −0.5 − 4 = −4.5 is reflected to 2.5, clamped to 1, and turned; 0.25 is
/// free. All numbers are exact.
#[test]
fn walls_reflect_by_the_stated_rule() {
    let mlp = flat_network(1);
    let offsets = SetOffsets::from_sizes([3]).unwrap();
    let bounds = Some(Bounds { low: -1.0, high: 1.0 });
    let motion = Motion { bounds, ..Motion::default() };
    let batch = PointBatch { elements: &[0.75, -0.5, 0.0], offsets: &offsets, context: &[] };
    let leapfrog = Leapfrog { step_sizes: &[1.0], motion };
    for backend in backends() {
        let run = backend.leapfrog(&mlp, &batch, &[0.5, -4.0, 0.25], &leapfrog).unwrap();
        assert_eq!(run.elements, [0.75, 1.0, 0.25]);
        assert_eq!(run.momentum, [-0.5, 4.0, 0.25]);
        let cotangent =
            DynamicsCotangent { values: &[1.0; 3], momentum: Some(&[3.0; 3]), kinetic: None };
        let found = backend
            .leapfrog_backward(&mlp, &batch, &[0.5, -4.0, 0.25], &leapfrog, cotangent)
            .unwrap();
        // ∂L/∂x₀ = slope, ∂L/∂v₀ = 3 sign + η slope, ∂L/∂η = Σ slope v.
        assert_eq!(found.values, [-1.0, 0.0, 1.0]);
        assert_eq!(found.momentum, [-4.0, -3.0, 4.0]);
        assert_eq!(found.step_sizes, [-0.25]);
    }
}

/// Noise between reflecting walls keeps the uniform law: E x² = 1/3 on [−1, 1], with
/// Var x² = 1/5 − 1/9 = 4/45. Clamping instead would put a share of the elements on the walls.
#[test]
fn walls_hold_elements_and_keep_the_uniform_law() {
    let n = 1 << 14;
    let mlp = flat_network(2);
    let offsets = SetOffsets::from_sizes([n]).unwrap();
    let mut elements = vec![0.0; 2 * n];
    Stream::new(2, "uniform").fill_uniform(0, 0, &mut elements);
    for x in &mut elements {
        *x = 2.0 * *x - 1.0;
    }
    // Noise of 0.3 is within the reflection's reach of 2: 6.7 standard deviations.
    let noise_scales = [0.3; 20];
    let bounds = Some(Bounds { low: -1.0, high: 1.0 });
    let motion = Motion { bounds, ..Motion::default() };
    let batch = PointBatch { elements: &elements, offsets: &offsets, context: &[] };
    for backend in backends() {
        let langevin = Langevin { noise_scales: &noise_scales, motion, ..quiet(&[0.1; 20]) };
        let run = backend.langevin(&mlp, &batch, &langevin).unwrap();
        let distances = || run.elements.iter().map(|x| 1.0 - x.abs());
        assert!(distances().all(|d| d >= 0.0), "{backend:?}: an element left the box");
        // About 2^-24 of the positions are exactly on a wall, none of 2^15 expected.
        assert!(distances().filter(|d| *d == 0.0).count() < 3, "{backend:?}: stuck to the wall");
        let count = run.elements.len() as f64;
        let second = run.elements.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / count;
        let standard_error = (4.0 / 45.0 / count).sqrt();
        assert!((second - 1.0 / 3.0).abs() < 4.0 * standard_error, "second moment {second}");
        // Steps far beyond the box are clamped, and still inside.
        let wild = Langevin { noise_scales: &[50.0; 20], motion, ..quiet(&[0.1; 20]) };
        let run = backend.langevin(&mlp, &batch, &wild).unwrap();
        assert!(run.elements.iter().all(|x| x.abs() <= 1.0), "{backend:?}");
    }
}

/// T steps, turn, T steps: back at the start with the momentum turned, walls included. Twenty
/// steps of rounding stay within ten times the usual tolerance; the twin returns to 1e-12.
#[test]
fn leapfrog_reverses() {
    let (case, free) = bowl(2, 30);
    let bounds = Some(Bounds { low: -2.5, high: 2.5 });
    let steps = [0.1; 20];
    let momentum = case.like_values("momentum");
    let turned = |v: &[f32]| v.iter().map(|v| -v).collect::<Vec<_>>();
    for motion in [free, Motion { bounds, ..free }] {
        let inside: Vec<_> = case.elements.iter().map(|x| x.clamp(-2.4, 2.4)).collect();
        let batch = PointBatch { elements: &inside, ..case.batch() };
        let leapfrog = Leapfrog { step_sizes: &steps, motion };
        for backend in backends() {
            let there = backend.leapfrog(&case.mlp, &batch, &momentum, &leapfrog).unwrap();
            let end = PointBatch { elements: &there.elements, ..batch };
            let back =
                backend.leapfrog(&case.mlp, &end, &turned(&there.momentum), &leapfrog).unwrap();
            let moved = there.elements.iter().zip(&inside).any(|(a, b)| (a - b).abs() > 0.5);
            assert!(moved, "the run goes nowhere");
            let tenth = |values: &[f32]| values.iter().map(|v| v / 10.0).collect::<Vec<_>>();
            assert_close("x₀", &tenth(&back.elements), &widen(&tenth(&inside)));
            assert_close("−v₀", &tenth(&back.momentum), &widen(&tenth(&turned(&momentum))));
        }
        let plan = LeapfrogPlan { step_sizes: widen(&steps), motion };
        let (network, sets) = (case.network(), Sets::new(&batch));
        let there = network.leapfrog(&sets, &widen(&momentum), &plan);
        let end = Sets { elements: there.elements, ..sets.clone() };
        let back: Vec<_> = there.momentum.iter().map(|v| -v).collect();
        let back = network.leapfrog(&end, &back, &plan);
        for (found, expected) in back.elements.iter().zip(&sets.elements) {
            assert!((found - expected).abs() < 1e-12, "{found} against {expected}");
        }
    }
}

/// The energy −u + ‖v‖²/2 errs by O(η²) over a fixed time: half the step, a quarter of the error
/// (rms over the elements).
#[test]
fn leapfrog_has_order_two() {
    let (case, motion) = bowl(2, 40);
    let momentum = case.like_values("momentum");
    let (network, sets) = (case.network(), case.sets());
    // H per element from f, the rows [x, t] and v.
    let energies = |f: &[f64], rows: &[f64], v: &[f64]| -> Vec<f64> {
        let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        (0..f.len())
            .map(|i| {
                -f[i] + squares(&rows[3 * i..3 * i + 2]) / 2.0 + squares(&v[2 * i..2 * i + 2]) / 2.0
            })
            .collect()
    };
    let start = energies(&network.values(&sets), &sets.elements, &widen(&momentum));
    let rms = |end: &[f64]| {
        let squares: f64 = end.iter().zip(&start).map(|(a, b)| (a - b).powi(2)).sum();
        (squares / start.len() as f64).sqrt()
    };
    let twin_error = |steps: usize| {
        let plan = LeapfrogPlan { step_sizes: vec![1.6 / steps as f64; steps], motion };
        let run = network.leapfrog(&sets, &widen(&momentum), &plan);
        rms(&energies(&run.values, &run.elements, &run.momentum))
    };
    let ratio = twin_error(32) / twin_error(64);
    assert!((ratio - 4.0).abs() < 0.05, "the twin's error falls by {ratio}");
    for backend in backends() {
        let error = |steps: usize| {
            let step_sizes = vec![1.6 / steps as f32; steps];
            let leapfrog = Leapfrog { step_sizes: &step_sizes, motion };
            let run = backend.leapfrog(&case.mlp, &case.batch(), &momentum, &leapfrog).unwrap();
            rms(&energies(&widen(&run.values), &widen(&run.elements), &widen(&run.momentum)))
        };
        // Coarser steps, so that the error stands far above f32 rounding.
        let ratio = error(8) / error(16);
        assert!((ratio - 4.0).abs() < 0.3, "{backend:?}: the error falls by {ratio}");
    }
}

/// The Jacobian of (x₀, v₀) ↦ (x_T, v_T) of one-dimensional elements has determinant 1, walls or
/// not: its rows are the gradients for the cotangents (1, 0) and (0, 1).
#[test]
fn leapfrog_preserves_volume() {
    let (case, free) = bowl(1, 25);
    let bounds = Some(Bounds { low: -1.5, high: 1.5 });
    let momentum = normals(1, "momentum", 25);
    let (one, zero) = (vec![1.0; 25], vec![0.0; 25]);
    for motion in [free, Motion { bounds, ..free }] {
        let leapfrog = Leapfrog { step_sizes: &[0.2, 0.3, 0.25, 0.2], motion };
        for backend in backends() {
            let row = |values, momenta| {
                let cotangent =
                    DynamicsCotangent { values, momentum: Some(momenta), kinetic: None };
                backend
                    .leapfrog_backward(&case.mlp, &case.batch(), &momentum, &leapfrog, cotangent)
                    .unwrap()
            };
            let (x, v) = (row(&one, &zero), row(&zero, &one));
            let determinants: Vec<_> = (0..25)
                .map(|i| x.values[i] * v.momentum[i] - x.momentum[i] * v.values[i])
                .collect();
            assert_close((backend, motion.bounds), &determinants, &[1.0; 25]);
        }
    }
}

/// What [`LangevinRun`](ebp::point::LangevinRun) says of its alignments for piecewise linear σ:
/// ∂ Σ f(x_T)/∂η_t is half the final one, ∂ Σ ‖v_t‖²/∂η_t is the kinetic one.
#[test]
fn alignments_are_gradients_of_step_sizes_for_piecewise_linear_networks() {
    let config = MlpConfig { activation: Activation::Relu, ..Spec::default().config };
    let case = Case::draw(&Spec { config, sizes: vec![20], seed: 6, ..Spec::default() }).unwrap();
    let motion = Motion { clip: Clip::Elementwise(0.1), ..Motion::default() };
    let steps = [0.1, 0.2, 0.1];
    let langevin = Langevin { noise_scales: &[0.05; 3], motion, ..quiet(&steps) };
    for backend in backends() {
        let run = backend.langevin(&case.mlp, &case.batch(), &langevin).unwrap();
        let gradient = |values: &[f32], kinetic| {
            let cotangent = DynamicsCotangent { values, momentum: None, kinetic };
            backend
                .langevin_backward(&case.mlp, &case.batch(), &langevin, cotangent)
                .unwrap()
                .step_sizes
        };
        let half: Vec<_> = run.final_alignment.iter().map(|a| f64::from(*a) / 2.0).collect();
        assert_close("final", &gradient(&run.score, None), &half);
        // The step moves later v only through x, on which g does not depend.
        let zero = vec![0.0; run.score.len()];
        let kinetic = gradient(&zero, Some(&[1.0; 20]));
        assert_close("kinetic", &kinetic, &widen(&run.kinetic_alignment));
    }
}
