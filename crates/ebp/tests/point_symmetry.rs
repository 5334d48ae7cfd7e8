//! Proves what must not matter: the order of a set's elements, which other sets are in the batch,
//! how many elements a set has, the instruction set, and the number of threads (there to the
//! last bit).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod twin;

use case::operations::{Answers, of_an_energy, of_any_network};
use case::strategy::{for_all, specs};
use case::{ACTIVATIONS, Case, Spec, assert_close, backends};
use ebp::point::{Activation, MlpConfig, PointBackend, PointBatch, PointMlp, Pooling};
use ebp::{Error, SetOffsets};
use proptest::prelude::*;
use twin::widen;

/// Row `order[i]` of an array with `total` rows, for every i.
fn permuted(rows: &[f32], order: &[usize]) -> Vec<f32> {
    let d = rows.len() / order.len();
    order.iter().flat_map(|&i| rows[i * d..(i + 1) * d].to_vec()).collect()
}

/// Within each set: reversed and rotated by a third, so that every element moves to another lane
/// and, in large sets, to another tile.
fn shuffled_within_sets(offsets: &SetOffsets) -> Vec<usize> {
    let mut order = Vec::new();
    for set in 0..offsets.num_sets() {
        let mut rows: Vec<_> = offsets.range(set).rev().collect();
        let third = rows.len() / 3;
        rows.rotate_left(third);
        order.extend(rows);
    }
    order
}

#[test]
fn sums_and_pools_ignore_the_order_of_elements_and_scores_follow_it() {
    for_all(24, file!(), &specs(Just(1)), |spec| {
        let case = Case::draw(&spec)?;
        let order = shuffled_within_sets(&case.offsets);
        let elements = permuted(&case.elements, &order);
        let batch = PointBatch { elements: &elements, ..case.batch() };
        for backend in backends() {
            let sums = |batch| backend.set_sums(&case.mlp, batch).unwrap();
            assert_close("sums", &sums(&batch), &widen(&sums(&case.batch())));
            for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
                let pool = |batch| backend.pool(&case.mlp, batch, pooling).unwrap().values;
                assert_close(pooling, &pool(&batch), &widen(&pool(&case.batch())));
            }
            let score = |batch| backend.score(&case.mlp, batch).unwrap();
            let (found, straight) = (score(&batch), score(&case.batch()));
            let expected = widen(&permuted(&straight.score, &order));
            assert_close("score", &found.score, &expected);
            let expected = widen(&permuted(&straight.values, &order));
            assert_close("values", &found.values, &expected);
        }
        Some(())
    });
}

#[test]
fn a_set_alone_gives_what_it_gives_in_a_batch() {
    for_all(24, file!(), &specs(Just(1)), |spec| {
        let case = Case::draw(&spec)?;
        let (d, k) = (case.mlp.shape().element_dim(), case.config().context_dim);
        for backend in backends() {
            let sums = backend.set_sums(&case.mlp, &case.batch()).unwrap();
            let score = backend.score(&case.mlp, &case.batch()).unwrap().score;
            let pooled = backend.pool(&case.mlp, &case.batch(), Pooling::Max).unwrap();
            for set in 0..case.offsets.num_sets() {
                let rows = case.offsets.range(set);
                let dx = case.config().value_dim;
                let alone = PointBatch {
                    elements: &case.elements[rows.start * d..rows.end * d],
                    offsets: &SetOffsets::from_sizes([rows.len()]).unwrap(),
                    context: &case.context[set * k..(set + 1) * k],
                };
                let found = backend.set_sums(&case.mlp, &alone).unwrap();
                assert_close("sum", &found, &widen(&sums[set..=set]));
                let found = backend.score(&case.mlp, &alone).unwrap().score;
                assert_close("score", &found, &widen(&score[rows.start * dx..rows.end * dx]));
                let found = backend.pool(&case.mlp, &alone, Pooling::Max).unwrap();
                assert_close("max", &found.values, &widen(&pooled.values[set..=set]));
            }
        }
        Some(())
    });
}

/// The first n elements have the first n values, and their sum is the sum of those, for every n.
#[test]
fn sets_may_have_any_number_of_elements() {
    let spec = Spec { sizes: vec![130], ..Spec::default() };
    let case = Case::draw(&spec).unwrap();
    let d = case.mlp.shape().element_dim();
    let context = &case.context;
    for backend in backends() {
        let all = widen(&backend.values(&case.mlp, &case.batch()).unwrap());
        for n in 1..=130 {
            let offsets = SetOffsets::from_sizes([n]).unwrap();
            let batch =
                PointBatch { elements: &case.elements[..n * d], offsets: &offsets, context };
            let values = backend.values(&case.mlp, &batch).unwrap();
            assert_close((backend, n), &values, &all[..n]);
            let sum = backend.set_sums(&case.mlp, &batch).unwrap();
            assert_close((backend, n), &sum, &[all[..n].iter().sum()]);
        }
    }
}

#[test]
fn an_empty_set_is_refused() {
    let error = SetOffsets::from_sizes([3, 0, 2]).unwrap_err();
    assert!(matches!(error, Error::EmptySet { set: 1, num_sets: 3 }), "{error}");
}

/// Where outputs tie, the first row wins, also among the portions of a large set that threads take:
/// here every row is the same element.
#[test]
fn the_first_of_equal_elements_is_critical() {
    for activation in ACTIVATIONS {
        let config = MlpConfig { output_dim: 19, activation, ..Spec::default().config };
        let spec = Spec { config, sizes: vec![1, 700, 7], ..Spec::default() };
        let mut case = Case::draw(&spec).unwrap();
        let row = case.elements[..3].to_vec();
        case.elements = row.repeat(708);
        for backend in backends() {
            let pooled = backend.pool(&case.mlp, &case.batch(), Pooling::Max).unwrap();
            let expected = [[0_u32; 19], [1; 19], [701; 19]].concat();
            assert_eq!(pooled.critical, expected, "{backend:?} {activation:?}");
        }
    }
}

/// Rows that differ before σ and are all 0 after it tie too.
#[test]
fn the_first_row_is_critical_where_a_rectified_output_is_dead() {
    let config = MlpConfig {
        output_dim: 19,
        activation: Activation::Relu,
        activate_output: true,
        ..Spec::default().config
    };
    let case = Case::draw(&Spec { config, sizes: vec![1, 60, 7], ..Spec::default() }).unwrap();
    let shape = case.mlp.shape().clone();
    let mut parameters = case.mlp.parameters().to_vec();
    parameters[shape.layers()[2].bias.clone()].fill(-100.0);
    let mlp = PointMlp::new(shape, parameters).unwrap();
    for backend in backends() {
        let pooled = backend.pool(&mlp, &case.batch(), Pooling::Max).unwrap();
        assert!(pooled.values.iter().all(|v| *v == 0.0), "{backend:?}");
        let expected = [[0_u32; 19], [1; 19], [61; 19]].concat();
        assert_eq!(pooled.critical, expected, "{backend:?}");
    }
}

/// Cases large enough to be shared among threads, with sets of very different sizes.
fn shared_out(config: MlpConfig) -> Case {
    let sizes = vec![903, 1, 64, 557, 2, 2, 30, 97, 5, 5, 5, 5, 5, 129];
    Case::draw(&Spec { config, sizes, seed: 3, ..Spec::default() }).unwrap()
}

fn all_answers(backend: &dyn PointBackend, energy: &Case, encoder: &Case) -> Answers {
    let mut answers = of_an_energy(backend, energy);
    answers.extend(of_any_network(backend, encoder));
    answers
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    for activation in [Activation::Relu, Activation::Silu] {
        let energy = shared_out(MlpConfig { activation, ..Spec::default().config });
        let hidden_widths = vec![20, 33];
        let config =
            MlpConfig { activation, output_dim: 18, hidden_widths, ..Spec::default().config };
        let encoder = shared_out(config);
        for backend in backends() {
            let in_pool = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| all_answers(backend, &energy, &encoder))
            };
            let expected = in_pool(1);
            for threads in [2, 3] {
                for ((name, found), (_, expected)) in in_pool(threads).iter().zip(&expected) {
                    let same = found.len() == expected.len()
                        && found.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{name} on {threads} threads, {backend:?}, {activation:?}");
                }
            }
        }
    }
}

/// Instruction sets may round differently, and no more. Smooth σ, so that no kink lies between
/// them; which row is critical may differ at a near tie.
#[test]
fn instruction_sets_agree() {
    for activation in &ACTIVATIONS[2..] {
        let activation = *activation;
        let energy = shared_out(MlpConfig { activation, ..Spec::default().config });
        let config = MlpConfig { activation, output_dim: 18, ..Spec::default().config };
        let encoder = shared_out(config);
        let answers: Vec<_> =
            backends().into_iter().map(|backend| all_answers(backend, &energy, &encoder)).collect();
        for other in &answers[1..] {
            for ((name, found), (_, expected)) in other.iter().zip(&answers[0]) {
                if !name.ends_with("critical rows") {
                    assert_close(name, found, &widen(expected));
                }
            }
        }
    }
}
