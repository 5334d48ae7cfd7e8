//! Proves the twin: every gradient it gives is the finite difference of the value it gives, first
//! and second order, through Langevin and leapfrog steps, log partitions and pools. Central
//! differences in f64 with h = 1e-5 err by O(h²) = 1e-10 times a third derivative of order at most
//! a hundred, plus rounding 1e-16/h = 1e-11; hence the tolerance 1e-7 (1 + max |gradient|).

mod case;
mod twin;

use case::{ACTIVATIONS, Case, Spec, largest};
use ebp::point::{
    Activation, Bounds, CandidateValues, Candidates, Clip, ContextAt, LogWeights, MlpConfig,
    MlpShape, Motion, PointMlp, Pooling,
};
use ebp::rng::Stream;
use twin::{Anchors, LangevinPlan, LeapfrogPlan, Network, Sets, dot, widen};

const H: f64 = 1e-5;
/// A step h in any variable must not cross a kink, a clip limit or a wall.
const CLEARANCE: f64 = 1e-3;

/// Compares `gradient` with central differences of `loss` at `point`, entry by entry.
#[track_caller]
fn check(what: &str, point: &[f64], gradient: &[f64], loss: impl Fn(&[f64]) -> f64) {
    assert_eq!(point.len(), gradient.len(), "{what}: length");
    let tolerance = 1e-7 * (1.0 + largest(gradient));
    let mut nudged = point.to_vec();
    for (j, &analytic) in gradient.iter().enumerate() {
        nudged[j] = point[j] + H;
        let above = loss(&nudged);
        nudged[j] = point[j] - H;
        let below = loss(&nudged);
        nudged[j] = point[j];
        let numeric = (above - below) / (2.0 * H);
        let error = (analytic - numeric).abs();
        assert!(error < tolerance, "{what}[{j}]: {analytic} against {numeric}");
    }
}

/// Checks all three gradients of a loss of network and sets.
#[track_caller]
fn check_all(
    what: &str,
    (network, sets): (&Network, &Sets),
    gradients: &twin::Gradients,
    loss: impl Fn(&Network, &Sets) -> f64,
) {
    check(&format!("{what}: parameters"), &network.parameters, &gradients.parameters, |w| {
        loss(&Network { parameters: w.to_vec(), ..network.clone() }, sets)
    });
    check(&format!("{what}: context"), &sets.context, &gradients.context, |c| {
        loss(network, &Sets { context: c.to_vec(), ..sets.clone() })
    });
    check(&format!("{what}: elements"), &sets.elements, &gradients.elements, |x| {
        loss(network, &Sets { elements: x.to_vec(), ..sets.clone() })
    });
}

/// Small networks of every depth, activation and way of the context.
fn specs(output_dim: usize) -> Vec<Spec> {
    let mut specs = Vec::new();
    for activation in ACTIVATIONS {
        for (k, widths) in [vec![], vec![6], vec![7, 5], vec![5, 6, 4]].into_iter().enumerate() {
            let config = MlpConfig {
                hidden_widths: widths,
                context_at: [ContextAt::FirstLayer, ContextAt::EveryLayer][k % 2],
                activate_output: k % 3 == 1,
                activation,
                output_dim,
                ..Spec::default().config
            };
            specs.push(Spec { config, sizes: vec![2, 1], seed: k as u64 });
        }
    }
    specs
}

fn draw(spec: &Spec) -> (Network, Sets, Case) {
    let case = Case::draw_where(spec, |network, sets, i| {
        let trace = network.forward(sets.row(i), sets.context_of(i));
        network.kink_distance(&trace) > CLEARANCE
    })
    .expect("a small network is easily kept from its kinks");
    (case.network(), case.sets(), case)
}

/// f = 3 max(2x − t + c + 0.5, 0) − 1 by hand at x = 1, t = 0.5, c = 0.25: z = 2.25, f = 5.75,
/// ∂f/∂(weight, context weight, bias, output weight, output bias) = (3, 1.5; 0.75; 3; 2.25; 1).
#[test]
fn the_twin_agrees_with_a_calculation_by_hand() {
    let shape = MlpShape::new(MlpConfig {
        value_dim: 1,
        location_dim: 1,
        context_dim: 1,
        hidden_widths: vec![1],
        ..MlpConfig::default()
    })
    .unwrap();
    let network = Network::new(&PointMlp::new(shape, vec![2., -1., 1., 0.5, 3., -1.]).unwrap());
    let offsets = ebp::SetOffsets::from_sizes([1]).unwrap();
    let sets = Sets { elements: vec![1.0, 0.5], offsets, context: vec![0.25] };
    // Every number here is a short binary fraction, so equality is exact.
    assert_eq!(network.values(&sets), [5.75]);
    assert_eq!(network.score(&sets), [6.0]);
    let gradients = network.backward(&sets, &[1.0]);
    assert_eq!(gradients.parameters, [3.0, 1.5, 0.75, 3.0, 2.25, 1.0]);
    assert_eq!(gradients.context, [3.0]);
    assert_eq!(gradients.elements, [6.0, -3.0]);
}

#[test]
fn first_order_gradients_are_finite_differences() {
    for spec in specs(2) {
        let (network, sets, case) = draw(&spec);
        let cotangent = widen(&case.normals("cotangent", 3 * 2));
        let gradients = network.backward(&sets, &cotangent);
        check_all(&format!("{:?}", spec.config), (&network, &sets), &gradients, |network, sets| {
            dot(&network.values(sets), &cotangent)
        });
    }
}

#[test]
fn scores_are_finite_differences() {
    for spec in specs(1) {
        let (network, sets, _) = draw(&spec);
        let (d, dx) = (network.shape.element_dim(), network.value_dim());
        let mut padded = vec![0.0; sets.elements.len()];
        for (row, score) in padded.chunks_mut(d).zip(network.score(&sets).chunks(dx)) {
            row[..dx].copy_from_slice(score);
        }
        check(&format!("{:?}", spec.config), &sets.elements, &padded, |x| {
            // Locations are not part of the score: they are taken from the unmoved sets.
            let mut moved = sets.clone();
            for (to, from) in moved.elements.chunks_mut(d).zip(x.chunks(d)) {
                to[..dx].copy_from_slice(&from[..dx]);
            }
            network.values(&moved).iter().sum()
        });
    }
}

#[test]
fn second_order_gradients_are_finite_differences() {
    for spec in specs(1) {
        let (network, sets, case) = draw(&spec);
        let (v, u) = (widen(&case.like_values("v")), widen(&case.per_element("u")));
        let gradients = network.score_backward(&sets, &v, &u);
        check_all(&format!("{:?}", spec.config), (&network, &sets), &gradients, |network, sets| {
            dot(&network.score(sets), &v) + dot(&network.values(sets), &u)
        });
    }
}

/// For piecewise linear σ ∇ₓ f does not depend on x, t or c almost everywhere: what is left of
/// the gradient is that of Σ u f. With smooth σ the second-order terms are there.
#[test]
fn piecewise_linear_networks_have_no_second_order_terms_in_elements_and_context() {
    for spec in specs(1).into_iter().filter(|spec| !spec.config.hidden_widths.is_empty()) {
        let (network, sets, case) = draw(&spec);
        let (v, u) = (widen(&case.like_values("v")), widen(&case.per_element("u")));
        let full = network.score_backward(&sets, &v, &u);
        let first_order = network.backward(&sets, &u);
        let differs = |a: &[f64], b: &[f64]| a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-12);
        let is_smooth = !spec.config.activation.is_piecewise_linear();
        assert_eq!(differs(&full.elements, &first_order.elements), is_smooth, "{spec:?}");
        assert_eq!(differs(&full.context, &first_order.context), is_smooth, "{spec:?}");
        assert!(differs(&full.parameters, &first_order.parameters), "{spec:?}");
    }
}

/// Every clip, with and without base measure, walls and fixed elements. The walls at ±0.7 are
/// met often by elements of standard deviation one, and cross both reflection and clamping.
fn motions() -> Vec<Motion<'static>> {
    const IS_FIXED: &[bool] = &[false, true, false, false];
    let bounds = Some(Bounds { low: -0.7, high: 0.7 });
    vec![
        Motion::default(),
        Motion { base_std_dev: Some(0.8), ..Motion::default() },
        Motion { clip: Clip::Elementwise(0.4), base_std_dev: Some(1.5), ..Motion::default() },
        Motion { clip: Clip::Norm(0.5), is_fixed: Some(IS_FIXED), ..Motion::default() },
        Motion { clip: Clip::Norm(3.0), base_std_dev: Some(2.0), bounds, ..Motion::default() },
        Motion {
            clip: Clip::Elementwise(0.6),
            bounds,
            is_fixed: Some(IS_FIXED),
            ..Motion::default()
        },
    ]
}

fn dynamics_specs() -> Vec<Spec> {
    specs(1).into_iter().map(|spec| Spec { sizes: vec![3, 1], ..spec }).collect()
}

/// Checks the gradient with respect to the values x, `[total, d_x]`, locations held.
#[track_caller]
fn check_values(network: &Network, grad_values: &[f64], sets: &Sets, loss: impl Fn(&Sets) -> f64) {
    let (d, dx) = (network.shape.element_dim(), network.value_dim());
    let values: Vec<_> = sets.elements.chunks(d).flat_map(|row| row[..dx].to_vec()).collect();
    check("x₀", &values, grad_values, |x| {
        let mut moved = sets.clone();
        for (to, from) in moved.elements.chunks_mut(d).zip(x.chunks(dx)) {
            to[..dx].copy_from_slice(from);
        }
        loss(&moved)
    });
}

#[test]
fn langevin_gradients_are_finite_differences() {
    let mut clamped = 0;
    for (spec, motion) in
        dynamics_specs().iter().flat_map(|s| motions().into_iter().map(move |m| (s, m)))
    {
        let plan = LangevinPlan {
            step_sizes: vec![0.3, 0.2, 0.4],
            noise_scales: vec![0.5, 0.0, 0.3],
            noise: Stream::new(spec.seed, "noise"),
            motion,
        };
        let case = Case::draw_where(spec, |network, sets, i| {
            network.langevin_distance(sets, &plan, i) > CLEARANCE
        })
        .expect("clear");
        let (network, sets) = (case.network(), case.sets());
        let lambda = widen(&case.like_values("lambda"));
        // One κ per set, so that the loss can be written with the sums per set.
        let kappa = widen(&case.normals("kappa", 2));
        let loss = |sets: &Sets, plan: &LangevinPlan<'_>| {
            let run = network.langevin(sets, plan);
            let dx = network.value_dim();
            let x: Vec<_> = run
                .elements
                .chunks(network.shape.element_dim())
                .flat_map(|r| r[..dx].to_vec())
                .collect();
            let kinetic = |s: usize| run.kinetic[s * 3..(s + 1) * 3].iter().sum::<f64>();
            dot(&x, &lambda) + kappa[0] * kinetic(0) + kappa[1] * kinetic(1)
        };
        let per_element = [kappa[0], kappa[0], kappa[0], kappa[1]];
        let gradients = network.langevin_backward(&sets, &plan, &lambda, &per_element);
        clamped += gradients.values.iter().filter(|g| **g == 0.0).count();
        check_values(&network, &gradients.values, &sets, |sets| loss(sets, &plan));
        check("context", &sets.context, &gradients.context, |c| {
            loss(&Sets { context: c.to_vec(), ..sets.clone() }, &plan)
        });
        check("step sizes", &plan.step_sizes, &gradients.step_sizes, |eta| {
            loss(&sets, &LangevinPlan { step_sizes: eta.to_vec(), ..plan.clone() })
        });
    }
    assert!(clamped > 0, "no draw met the clamp after a reflection");
}

#[test]
fn leapfrog_gradients_are_finite_differences() {
    for (spec, motion) in
        dynamics_specs().iter().flat_map(|s| motions().into_iter().map(move |m| (s, m)))
    {
        let plan = LeapfrogPlan { step_sizes: vec![0.3, 0.5, 0.4], motion };
        let momentum = |count| widen(&case::normals(spec.seed, "momentum", count));
        let case = Case::draw_where(spec, |network, sets, i| {
            let momentum = momentum(4 * network.value_dim());
            network.leapfrog_distance(sets, &momentum, &plan, i) > CLEARANCE
        })
        .expect("clear");
        let (network, sets) = (case.network(), case.sets());
        let dx = network.value_dim();
        let momentum = momentum(4 * dx);
        let lambda = widen(&case.like_values("lambda"));
        let mu = widen(&case.like_values("mu"));
        let loss = |sets: &Sets, momentum: &[f64], plan: &LeapfrogPlan<'_>| {
            let run = network.leapfrog(sets, momentum, plan);
            let x: Vec<_> = run
                .elements
                .chunks(network.shape.element_dim())
                .flat_map(|r| r[..dx].to_vec())
                .collect();
            dot(&x, &lambda) + dot(&run.momentum, &mu)
        };
        let gradients = network.leapfrog_backward(&sets, &momentum, &plan, (&lambda, &mu));
        check_values(&network, &gradients.values, &sets, |sets| loss(sets, &momentum, &plan));
        check("v₀", &momentum, &gradients.momentum, |v| loss(&sets, v, &plan));
        check("context", &sets.context, &gradients.context, |c| {
            loss(&Sets { context: c.to_vec(), ..sets.clone() }, &momentum, &plan)
        });
        check("step sizes", &plan.step_sizes, &gradients.step_sizes, |eta| {
            loss(&sets, &momentum, &LeapfrogPlan { step_sizes: eta.to_vec(), ..plan.clone() })
        });
    }
}

#[test]
fn log_partition_gradients_are_finite_differences() {
    let activations = [Activation::Silu, Activation::Tanh, Activation::Softplus];
    for (seed, activation) in activations.into_iter().enumerate() {
        let config = MlpConfig { activation, ..Spec::default().config };
        let spec = Spec { config, sizes: vec![2, 1], seed: seed as u64 };
        let case = Case::draw(&spec).unwrap();
        let (k, network) = (4, case.network());
        let locations = case.normals("locations", 3);
        let cotangent = widen(&case.normals("cotangent", 3));
        let mut per_anchor = case.normals("log weights", 3 * k);
        per_anchor[1] = f32::NEG_INFINITY;
        let values = case.normals("candidates", 3 * k * 2);
        let pairs = [
            (CandidateValues::PerAnchor(&values), LogWeights::PerAnchor(&per_anchor)),
            (CandidateValues::PerAnchor(&values), LogWeights::Zero),
            (CandidateValues::Shared(&values[..k * 2]), LogWeights::Shared(&per_anchor[..k])),
        ];
        for (values, log_weights) in pairs {
            let anchors = Anchors::new(&Candidates {
                values,
                num_candidates: k,
                locations: &locations,
                offsets: &case.offsets,
                context: &case.context,
                log_weights,
            });
            let loss = |network: &Network, anchors: &Anchors| {
                dot(&network.log_partition(anchors).0, &cotangent)
            };
            let gradients = network.log_partition_backward(&anchors, &cotangent);
            check("parameters", &network.parameters, &gradients.parameters, |w| {
                loss(&Network { parameters: w.to_vec(), ..network.clone() }, &anchors)
            });
            check("context", &anchors.context, &gradients.context, |c| {
                loss(&network, &Anchors { context: c.to_vec(), ..anchors.clone() })
            });
            check("candidates", &anchors.values, &gradients.elements, |x| {
                loss(&network, &Anchors { values: x.to_vec(), ..anchors.clone() })
            });
        }
    }
}

#[test]
fn pool_gradients_are_finite_differences() {
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        for spec in specs(3) {
            let (network, sets, case) = draw(&spec);
            let cotangent = widen(&case.normals("cotangent", 2 * 3));
            let (_, critical) = network.pool(&sets, pooling);
            let gradients = network.pool_backward(&sets, pooling, &critical, &cotangent);
            let what = format!("{pooling:?} {:?}", spec.config);
            check_all(&what, (&network, &sets), &gradients, |network, sets| {
                dot(&network.pool(sets, pooling).0, &cotangent)
            });
        }
    }
}
