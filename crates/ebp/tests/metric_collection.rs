//! Metrics of collections: against their definitions, under every exchange, and after every kill.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod metric;

use std::fs;

use ebp::metric::collection::{
    CollectionMetrics, CollectionOptions, NeighbourMetrics, PairCounts, evaluate,
};
use ebp::metric::distance::{ArrangedCloud, EmdMethod};
use ebp::rng::Stream;
use metric::{Points, arranged};

const OPTIONS: CollectionOptions<'_> =
    CollectionOptions { emd: Some(EmdMethod::Exact), cache: None, seed: 5 };

/// Ellipsoids of random axes and places; `spread` says how different they are.
fn collection(seed: u64, count: u32, spread: f64) -> Vec<Points> {
    let stream = Stream::new(seed, "collection");
    let normals = |step: u32, count: usize| -> Vec<f64> {
        let mut values = vec![0.0_f32; count];
        stream.fill_normal(step, 0, &mut values);
        values.into_iter().map(f64::from).collect()
    };
    let cloud = |number: u32| -> Points {
        // Of different sizes, with a small least common multiple for the twin.
        let size = 24 + 12 * (number as usize % 2);
        let shape = normals(2 * number, 6);
        let points = normals(2 * number + 1, 3 * size);
        let place = |(axis, &value): (usize, &f64)| {
            0.1 * value * (1.0 + spread * shape[axis]).abs() + 0.1 * spread * shape[axis + 3]
        };
        points.chunks_exact(3).map(|p| p.iter().enumerate().map(place).collect()).collect()
    };
    (0..count).map(cloud).collect()
}

fn arrange(collection: &[Points]) -> Vec<ArrangedCloud> {
    collection.iter().map(|points| arranged(points)).collect()
}

fn measure(samples: &[Points], references: &[Points]) -> CollectionMetrics {
    evaluate(&arrange(samples), &arrange(references), &OPTIONS, &mut |_| ()).unwrap()
}

fn values(metrics: &NeighbourMetrics) -> [f64; 3] {
    let NeighbourMetrics { matching_distance, coverage, one_nn_accuracy, .. } = metrics;
    [matching_distance.value, coverage.value, one_nn_accuracy.value]
}

fn assert_near(found: [f64; 3], expected: [f64; 3]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} against {expected}");
    }
}

#[test]
fn bounds_skip_pairs_and_change_no_answer() {
    let mut skipped = 0;
    for seed in 0..4 {
        let (samples, references) = (collection(seed, 9, 0.6), collection(seed + 50, 7, 0.5));
        let found = measure(&samples, &references);
        assert_near(
            values(&found.chamfer),
            metric::collection(&samples, &references, metric::chamfer),
        );
        let exact = metric::collection(&samples, &references, metric::exact);
        let emd = found.emd.unwrap();
        assert_near(values(&emd.metrics), exact);
        let PairCounts { all, solved, stopped, skipped: never } = emd.pairs;
        assert_eq!((all, solved + stopped + never), (16 * 15 / 2, all));
        skipped += never;
    }
    assert!(skipped > 50, "{skipped} pairs were skipped");
}

#[test]
fn every_method_is_offered_to_collections() {
    let (samples, references) = (collection(1, 4, 0.6), collection(2, 5, 0.5));
    let by = |method| {
        let options = CollectionOptions { emd: Some(method), ..OPTIONS };
        let found = evaluate(&arrange(&samples), &arrange(&references), &options, &mut |_| ());
        values(&found.unwrap().emd.unwrap().metrics)
    };
    // Of two orders of x and y the collection takes the one that begins with the smaller set, or
    // with the smaller coordinates.
    let oriented = |pick: fn((f64, f64)) -> f64| {
        move |x: &[Vec<f64>], y: &[Vec<f64>]| {
            let (a, b) = (arranged(x), arranged(y));
            let key = |cloud: &ArrangedCloud| (cloud.len(), cloud.points().to_vec());
            pick(if key(&a) <= key(&b) {
                metric::approxmatch(x, y)
            } else {
                metric::approxmatch(y, x)
            })
        }
    };
    let expected = metric::collection(&samples, &references, oriented(|(distance, _)| distance));
    let found = by(EmdMethod::Approxmatch);
    assert!((found[0] - expected[0]).abs() < 1e-6 && found[1..] == expected[1..]);
    let expected = metric::collection(&samples, &references, oriented(|(_, square)| square));
    let found = by(EmdMethod::Squared);
    assert!((found[0] - expected[0]).abs() < 1e-6 && found[1..] == expected[1..]);
    let exact = by(EmdMethod::Exact);
    assert!(by(EmdMethod::SINKHORN)[0] >= exact[0]);
}

#[test]
fn shuffled_collections_and_shuffled_points_give_the_same() {
    let (samples, references) = (collection(3, 8, 0.6), collection(4, 8, 0.6));
    let before = measure(&samples, &references);
    let mut turned = (samples.clone(), references.clone());
    turned.0.rotate_left(3);
    turned.1.reverse();
    let after = measure(&turned.0, &turned.1);
    assert_near(values(&before.chamfer), values(&after.chamfer));
    let metrics = |found: &CollectionMetrics| values(&found.emd.unwrap().metrics);
    assert_near(metrics(&before), metrics(&after));
    let divergence = |found: &CollectionMetrics| found.divergence.unwrap().divergence.value;
    assert!((divergence(&before) - divergence(&after)).abs() < 1e-12);
    // Points within sets: nothing changes at all, intervals and counts included.
    let shuffle = |points: &Points| points.iter().rev().cloned().collect();
    let (samples, references): (Vec<_>, Vec<_>) =
        (samples.iter().map(shuffle).collect(), references.iter().map(shuffle).collect());
    assert_eq!(measure(&samples, &references), before);
}

#[test]
fn swapped_collections_swap_what_the_definitions_swap() {
    let (samples, references) = (collection(5, 9, 0.7), collection(6, 6, 0.4));
    let (one, other) = (measure(&samples, &references), measure(&references, &samples));
    // The accuracy and the divergence know no sides.
    let accuracy = |metrics: NeighbourMetrics| metrics.one_nn_accuracy.value;
    assert!((accuracy(one.chamfer) - accuracy(other.chamfer)).abs() < 1e-15);
    let emd = |found: &CollectionMetrics| found.emd.unwrap().metrics;
    assert!((accuracy(emd(&one)) - accuracy(emd(&other))).abs() < 1e-15);
    let divergence = |found: &CollectionMetrics| found.divergence.unwrap().divergence.value;
    assert!((divergence(&one) - divergence(&other)).abs() < 1e-15);
    // The others ask the other side's question.
    assert_near(values(&emd(&other)), metric::collection(&references, &samples, metric::exact));
    assert!((emd(&one).matching_distance.value - emd(&other).matching_distance.value).abs() > 1e-6);
}

#[test]
fn copies_are_matched_covered_and_never_told_apart() {
    let sets = collection(7, 6, 0.6);
    let found = measure(&sets, &sets);
    // Everybody's nearest neighbour is its copy on the other side: accuracy 0.
    for metrics in [found.chamfer, found.emd.unwrap().metrics] {
        assert_near(values(&metrics), [0.0, 1.0, 0.0]);
    }
    assert!(found.divergence.unwrap().divergence.value.abs() < 1e-15);
    // Far away: everybody is told apart.
    let far: Vec<Points> = sets
        .iter()
        .map(|points| points.iter().map(|p| p.iter().map(|x| x + 10.0).collect()).collect())
        .collect();
    let found = measure(&far, &sets);
    assert!((found.chamfer.one_nn_accuracy.value - 1.0).abs() < 1e-15);
    assert!((found.chamfer.sample_accuracy.value - 1.0).abs() < 1e-15);
    assert!((found.chamfer.reference_accuracy.value - 1.0).abs() < 1e-15);
    // All far points fall into the last cell of the diagonal, where hardly anything else is.
    assert!(found.divergence.unwrap().divergence.value > 0.95);
}

#[test]
fn single_sets_have_no_neighbour_of_their_own() {
    let (sample, reference) = (collection(8, 1, 0.5), collection(9, 1, 0.5));
    let found = values(&measure(&sample, &reference).emd.unwrap().metrics);
    assert_near(found, [metric::exact(&sample[0], &reference[0]), 1.0, 0.0]);
    let nothing: &[ArrangedCloud] = &[];
    let error = evaluate(nothing, &arrange(&reference), &OPTIONS, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("samples"), "{error}");
}

#[test]
fn a_cache_cut_anywhere_gives_the_same_answer() {
    let (samples, references) = (collection(10, 6, 0.6), collection(11, 6, 0.5));
    let (samples, references) = (arrange(&samples), arrange(&references));
    let folder = tempfile::tempdir().unwrap();
    let options = CollectionOptions { cache: Some(folder.path()), ..OPTIONS };
    let run = || evaluate(&samples, &references, &options, &mut |_| ()).unwrap();
    let whole = run();
    assert_eq!(whole, evaluate(&samples, &references, &OPTIONS, &mut |_| ()).unwrap());
    let mut files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    let contents: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    for twelfth in 0..12 {
        for (path, bytes) in files.iter().zip(&contents) {
            fs::write(path, &bytes[..=bytes.len() * twelfth / 12]).unwrap();
        }
        assert_eq!(run(), whole);
        for (path, bytes) in files.iter().zip(&contents) {
            assert_eq!(fs::read(path).unwrap(), *bytes, "the file is complete again");
        }
    }
}

#[test]
fn threads_change_no_byte() {
    let (samples, references) = (collection(12, 7, 0.6), collection(13, 7, 0.5));
    let run = |count| {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
        threads.install(|| measure(&samples, &references))
    };
    assert_eq!(run(1), run(3));
}

/// Samples that crowd beside one reference: every sample has a sample nearest, and so has that
/// reference; the two others, far away, have a reference nearest.
#[test]
fn accuracies_of_the_two_kinds_are_told_apart() {
    let at = |x: f64| vec![vec![x, 0.0, 0.0]; 4];
    let samples: Vec<Points> = [0.0, 0.01, 0.02].map(at).to_vec();
    let references: Vec<Points> = [0.035, 10.0, 30.0].map(at).to_vec();
    let found = measure(&samples, &references).chamfer;
    assert!((found.sample_accuracy.value - 1.0).abs() < 1e-12, "{found:?}");
    assert!((found.reference_accuracy.value - 2.0 / 3.0).abs() < 1e-12, "{found:?}");
    assert!((found.one_nn_accuracy.value - 5.0 / 6.0).abs() < 1e-12, "{found:?}");
}
