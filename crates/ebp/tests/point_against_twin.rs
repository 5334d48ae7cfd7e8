//! Judges the CPU backend by the slow f64 twin: values, sums, gradients, scores and their
//! gradients, pools and log partitions, on every instruction set of this machine, over random
//! widths, depths, activations, contexts and ragged set sizes. Dynamics are in
//! `dynamics_against_twin.rs`; the tolerance is explained at `case::TOLERANCE`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod twin;

use case::strategy::{for_all, large_specs, numerous_specs, specs};
use case::{
    ACTIVATIONS, Case, Spec, TOLERANCE, assert_close, assert_gradients_close, backends, largest,
};
use ebp::point::{
    CandidateValues, Candidates, ContextAt, Cotangent, Gradients, LogWeights, MlpConfig, Pooling,
    ScoreCotangent, Wanted,
};
use proptest::prelude::*;
use twin::{Anchors, widen};

/// All eight ways to want gradients; a case uses one, chosen by its seed, besides all.
fn some_wanted(seed: u64) -> Wanted {
    Wanted {
        parameters: seed & 1 != 0,
        context: seed & 2 != 0,
        elements: seed & 4 != 0,
        locations: seed & 8 != 0,
    }
}

/// What is wanted is there, what is not is `None`.
#[track_caller]
fn assert_as_wanted(gradients: &Gradients, wanted: Wanted) {
    assert_eq!(gradients.parameters.is_some(), wanted.parameters);
    assert_eq!(gradients.context.is_some(), wanted.context);
    assert_eq!(gradients.elements.is_some(), wanted.elements);
}

fn check_values(spec: &Spec) -> Option<()> {
    let case = Case::draw(spec)?;
    let (network, sets) = (case.network(), case.sets());
    let (values, sums) = (network.values(&sets), network.set_sums(&sets));
    for backend in backends() {
        let found = backend.values(&case.mlp, &case.batch()).unwrap();
        assert_close((backend, "values"), &found, &values);
        let found = backend.set_sums(&case.mlp, &case.batch()).unwrap();
        assert_close((backend, "set sums"), &found, &sums);
    }
    Some(())
}

fn check_backward(spec: &Spec) -> Option<()> {
    let case = Case::draw(spec)?;
    let (network, sets, shape) = (case.network(), case.sets(), case.mlp.shape());
    let outputs = case.config().output_dim;
    let values = network.values(&sets);
    let per_element = case.normals("cotangent", sets.offsets.num_elements() * outputs);
    let per_set = case.normals("cotangent", sets.offsets.num_sets() * outputs);
    let written_out: Vec<_> = (0..sets.offsets.num_elements())
        .flat_map(|i| {
            let set = sets.offsets.set_of(i);
            widen(&per_set[set * outputs..(set + 1) * outputs])
        })
        .collect();
    let pairs = [
        (Cotangent::PerElement(&per_element), network.backward(&sets, &widen(&per_element))),
        (Cotangent::PerSet(&per_set), network.backward(&sets, &written_out)),
    ];
    for backend in backends() {
        for (cotangent, expected) in &pairs {
            for wanted in [Wanted::ALL, some_wanted(spec.seed)] {
                let found = backend.backward(&case.mlp, &case.batch(), *cotangent, wanted).unwrap();
                assert_close((backend, "values"), &found.values, &values);
                assert_as_wanted(&found.gradients, wanted);
                assert_gradients_close(backend, &found.gradients, expected, shape);
            }
        }
    }
    Some(())
}

fn check_score(spec: &Spec) -> Option<()> {
    let case = Case::draw(spec)?;
    let (network, sets) = (case.network(), case.sets());
    let (values, score) = (network.values(&sets), network.score(&sets));
    for backend in backends() {
        let found = backend.score(&case.mlp, &case.batch()).unwrap();
        assert_close((backend, "values"), &found.values, &values);
        assert_close((backend, "score"), &found.score, &score);
    }
    Some(())
}

fn check_score_backward(spec: &Spec) -> Option<()> {
    let case = Case::draw(spec)?;
    let (network, sets) = (case.network(), case.sets());
    let (v, u) = (case.like_values("v"), case.per_element("u"));
    let zero = vec![0.0; u.len()];
    for (u, u64s) in [(Some(&u[..]), widen(&u)), (None, zero)] {
        let expected = network.score_backward(&sets, &widen(&v), &u64s);
        let cotangent = ScoreCotangent { score: &v, values: u };
        for backend in backends() {
            for wanted in [Wanted::ALL, some_wanted(spec.seed)] {
                let found =
                    backend.score_backward(&case.mlp, &case.batch(), cotangent, wanted).unwrap();
                assert_as_wanted(&found, wanted);
                assert_gradients_close(backend, &found, &expected, case.mlp.shape());
            }
        }
    }
    Some(())
}

/// A maximum's critical row may differ from the twin's where two rows nearly tie; but the value
/// there must be the maximum up to rounding, and the gradient must be that of the named rows.
fn check_pool(spec: &Spec) -> Option<()> {
    let case = Case::draw(spec)?;
    let (network, sets) = (case.network(), case.sets());
    let outputs = case.config().output_dim;
    let values = network.values(&sets);
    let cotangent = case.normals("cotangent", sets.offsets.num_sets() * outputs);
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        let (expected, _) = network.pool(&sets, pooling);
        for backend in backends() {
            let pooled = backend.pool(&case.mlp, &case.batch(), pooling).unwrap();
            assert_close((backend, pooling), &pooled.values, &expected);
            let critical: Vec<_> = pooled.critical.iter().map(|&row| row as usize).collect();
            assert_eq!(critical.len(), if pooling == Pooling::Max { expected.len() } else { 0 });
            for (at, &row) in critical.iter().enumerate() {
                assert!(sets.offsets.range(at / outputs).contains(&row), "row {row} of {at}");
                let attained = values[row * outputs + at % outputs];
                let tie = TOLERANCE * (1.0 + largest(&expected));
                assert!(expected[at] - attained <= tie, "{attained} is not {}", expected[at]);
            }
            let expected = network.pool_backward(&sets, pooling, &critical, &widen(&cotangent));
            for wanted in [Wanted::ALL, some_wanted(spec.seed)] {
                let batch = case.batch();
                let found =
                    backend.pool_backward(&case.mlp, &batch, &pooled, &cotangent, wanted).unwrap();
                assert_as_wanted(&found, wanted);
                let what = (backend, pooling);
                assert_gradients_close(what, &found, &expected, case.mlp.shape());
            }
        }
    }
    Some(())
}

/// Anchors take the place of elements: the case's sizes are numbers of anchors per set.
fn check_log_partition(spec: &Spec, k: usize) -> Option<()> {
    let case = Case::draw(spec)?;
    let network = case.network();
    let (dx, dt) = (case.config().value_dim, case.config().location_dim);
    let anchors = case.offsets.num_elements();
    let locations = case.normals("locations", anchors * dt);
    let values = case.normals("candidates", anchors * k * dx);
    let mut weights = case.normals("log weights", anchors * k);
    // A weight of zero, unless it is the only one.
    if k > 1 {
        weights[k - 1] = f32::NEG_INFINITY;
    }
    let cotangent = case.normals("cotangent", anchors);
    let pairs = [
        (CandidateValues::PerAnchor(&values), LogWeights::PerAnchor(&weights)),
        (CandidateValues::PerAnchor(&values), LogWeights::Zero),
        (CandidateValues::PerAnchor(&values), LogWeights::Shared(&weights[..k])),
        (CandidateValues::Shared(&values[..k * dx]), LogWeights::PerAnchor(&weights)),
        (CandidateValues::Shared(&values[..k * dx]), LogWeights::Shared(&weights[..k])),
    ];
    // One pair per case, chosen by the seed, as the twin evaluates every candidate by itself.
    let (values, log_weights) = pairs[usize::try_from(spec.seed % 5).unwrap()];
    let candidates = Candidates {
        values,
        num_candidates: k,
        locations: &locations,
        offsets: &case.offsets,
        context: &case.context,
        log_weights,
    };
    let twins = Anchors::new(&candidates);
    let all = twins.written_out(&network);
    let is_clear = |i| {
        let trace = network.forward(all.row(i), all.context_of(i));
        network.kink_distance(&trace) > case::CLEARANCE / 10.0
    };
    if !(0..anchors * k).all(is_clear) {
        return None;
    }
    let (log_partition, f) = network.log_partition(&twins);
    let expected = network.log_partition_backward(&twins, &widen(&cotangent));
    for backend in backends() {
        let found = backend.log_partition(&case.mlp, &candidates).unwrap();
        assert_close((backend, "log partition"), &found.log_partition, &log_partition);
        assert_close((backend, "candidates' values"), &found.values, &f);
        for wanted in [Wanted::ALL, some_wanted(spec.seed)] {
            let given = &found.log_partition;
            let found = backend
                .log_partition_backward(&case.mlp, &candidates, given, &cotangent, wanted)
                .unwrap();
            assert_as_wanted(&found, wanted);
            assert_eq!(found.locations.is_some(), wanted.locations);
            assert_gradients_close(backend, &found, &expected, case.mlp.shape());
        }
    }
    Some(())
}

#[test]
fn values_and_sums() {
    for_all(100, file!(), &specs(1_usize..=20), |spec| check_values(&spec));
}

#[test]
fn gradients() {
    for_all(80, file!(), &specs(1_usize..=20), |spec| check_backward(&spec));
}

#[test]
fn scores() {
    for_all(100, file!(), &specs(Just(1)), |spec| check_score(&spec));
}

#[test]
fn gradients_of_scores() {
    for_all(80, file!(), &specs(Just(1)), |spec| check_score_backward(&spec));
}

#[test]
fn pools() {
    for_all(60, file!(), &specs(1_usize..=20), |spec| check_pool(&spec));
}

#[test]
fn log_partitions() {
    let num_candidates = prop_oneof![3 => 1_usize..=9, 1 => Just(24), 1 => Just(50)];
    for_all(80, file!(), &(specs(Just(1)), num_candidates), |(mut spec, k)| {
        // A few anchors with K candidates each are as many evaluations as elements elsewhere.
        spec.sizes.iter_mut().for_each(|size| *size = 1 + *size % 5);
        check_log_partition(&spec, k)
    });
}

#[test]
fn large_networks() {
    for spec in large_specs(1) {
        check_score(&spec).unwrap();
        check_score_backward(&spec).unwrap();
    }
    for spec in large_specs(3) {
        check_values(&spec).unwrap();
        check_backward(&spec).unwrap();
        check_pool(&spec).unwrap();
    }
}

#[test]
fn numerous_elements() {
    for spec in numerous_specs(1) {
        check_score(&spec).unwrap();
        check_score_backward(&spec).unwrap();
        // The elements are anchors here, each with three candidates.
        let sizes = spec.sizes.iter().map(|size| size.div_ceil(3)).collect();
        check_log_partition(&Spec { sizes, ..spec }, 3).unwrap();
    }
    // The last batch has more tiles than a call is divided into.
    let config = MlpConfig { hidden_widths: vec![4], output_dim: 2, ..Spec::default().config };
    let huge = Spec { config, sizes: vec![100, 60_000], seed: 2, ..Spec::default() };
    for spec in numerous_specs(2).iter().chain([&huge]) {
        check_values(spec).unwrap();
        check_backward(spec).unwrap();
        check_pool(spec).unwrap();
    }
}

/// |z| of a hundred, where an exponential overflows, and everything in between. A z that large is
/// itself rounded by nearly 1e-5, so the elements are not larger still.
#[test]
fn the_tails_of_smooth_activations() {
    for (activation, context_at) in ACTIVATIONS[2..]
        .iter()
        .flat_map(|a| [ContextAt::FirstLayer, ContextAt::EveryLayer].map(|c| (*a, c)))
    {
        for (spread, widths) in [(4.0, vec![40]), (40.0, vec![40]), (15.0, vec![20, 5])] {
            let config = MlpConfig {
                activate_output: widths.len() > 1,
                hidden_widths: widths,
                activation,
                context_at,
                ..Spec::default().config
            };
            let spec = Spec { config, sizes: vec![100], spread, seed: 1 };
            check_values(&spec).unwrap();
            check_backward(&spec).unwrap();
            check_score(&spec).unwrap();
            check_score_backward(&spec).unwrap();
        }
    }
}
