//! Proves the twin: every gradient it gives is the finite difference of the value it gives, first
//! and second order, of elements, sets, log partitions and pools. Dynamics are in
//! `dynamics_derivatives.rs`; the tolerance is explained in `case/differences.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod twin;

use case::differences::{CLEARANCE, check, specs};
use case::{Case, Spec};
use ebp::point::{
    Activation, CandidateValues, Candidates, LogWeights, MlpConfig, MlpShape, PointMlp, Pooling,
};
use twin::{Anchors, Network, Sets, dot, widen};

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

#[test]
fn log_partition_gradients_are_finite_differences() {
    let activations = [Activation::Silu, Activation::Tanh, Activation::Softplus];
    for (seed, activation) in activations.into_iter().enumerate() {
        let config = MlpConfig { activation, ..Spec::default().config };
        let spec = Spec { config, sizes: vec![2, 1], seed: seed as u64, ..Spec::default() };
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
            check("locations", &anchors.locations, &gradients.locations, |t| {
                loss(&network, &Anchors { locations: t.to_vec(), ..anchors.clone() })
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
