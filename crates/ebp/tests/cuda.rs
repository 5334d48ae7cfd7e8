//! The GPU against the CPU, at sizes of real work. On a machine without a GPU every test says why
//! it is skipped. The small cases of `point_against_twin` and `dynamics_against_twin` judge the GPU
//! too, where there is one; dynamics are in `cuda_dynamics.rs`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

mod gpu;

use std::time::{Duration, Instant};

use ebp::SetOffsets;
use ebp::metric::collection::{CollectionOptions, evaluate, evaluate_on};
use ebp::metric::distance::{
    ArrangedCloud, EmdMethod, GpuDistances, Matching, NearestNeighbours, emd,
};
use ebp::point::cuda::KernelWork;
use ebp::point::{
    Activation, CandidateValues, Candidates, Cotangent, CpuBackend, CudaBackend, Gradients,
    Langevin, LogWeights, Motion, PointBackend, Pooling, Precision, ScoreCotangent, Wanted,
};
use ebp::rng::Stream;
use gpu::{Work, assert_near, gpu, normals};

/// Every gradient that is there is near, and the same ones are there.
#[track_caller]
fn assert_gradients_near(found: Gradients, expected: Gradients, bound: f64) {
    for (what, found, expected) in [
        ("parameters", found.parameters, expected.parameters),
        ("context", found.context, expected.context),
        ("elements", found.elements, expected.elements),
        ("locations", found.locations, expected.locations),
    ] {
        assert_eq!(found.is_some(), expected.is_some(), "{what}");
        assert_near(what, &found.unwrap_or_default(), &expected.unwrap_or_default(), bound);
    }
}

/// What a training step asks for, on both devices; `bound` for all of it. Prints what was found and
/// returns the error of values.
fn compare(gpu: &CudaBackend, work: &Work, bound: f64) -> f64 {
    let (cpu, batch) = (CpuBackend::new(), work.batch());
    let outputs = work.mlp.shape().config().output_dim;
    let total = work.offsets.num_elements();
    let cotangent = normals("cotangent", total * outputs);
    let run = |backend: &dyn PointBackend| {
        backend.backward(&work.mlp, &batch, Cotangent::PerElement(&cotangent), Wanted::ALL).unwrap()
    };
    let (found, expected) = (run(gpu), run(&cpu));
    let of_values = assert_near("values", &found.values, &expected.values, bound);
    let precision = gpu.precision().name();
    eprintln!("{precision}: values differ from the CPU's by {of_values:.1e} of their size");
    let (found, expected) = (found.gradients, expected.gradients);
    let both = [
        ("parameters", found.parameters, expected.parameters),
        ("context", found.context, expected.context),
        ("elements", found.elements, expected.elements),
    ];
    for (what, found, expected) in both {
        let error = assert_near(what, &found.unwrap(), &expected.unwrap(), bound);
        eprintln!("{precision}: gradients of {what} by {error:.1e}");
    }
    of_values
}

#[test]
fn gradients_of_real_networks_agree_with_the_cpu_in_f32() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    compare(&gpu, &Work::new(&[512, 512, 256], 1, Activation::Silu), 1e-5);
    compare(&gpu, &Work::new(&[128, 256, 256], 512, Activation::Softplus), 1e-5);
}

/// A GPU with little room works in chunks of rows, which cut through sets.
#[test]
fn chunks_change_rounding_only() {
    let Some(whole) = gpu(Precision::F32) else { return };
    let cut = CudaBackend::new(0, Precision::F32).unwrap();
    cut.limit_memory(3 << 20).unwrap();
    let work = Work::new(&[64, 48], 24, Activation::Silu);
    compare(&cut, &work, 1e-5);
    let batch = work.batch();
    let cotangent = normals("chunks", work.offsets.num_sets() * 24);
    let pools = |gpu: &CudaBackend, pooling: Pooling| {
        let pooled = gpu.pool(&work.mlp, &batch, pooling).unwrap();
        let back = gpu.pool_backward(&work.mlp, &batch, &pooled, &cotangent, Wanted::ALL).unwrap();
        (pooled, back)
    };
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        let ((expected, whole), (found, cut)) = (pools(&whole, pooling), pools(&cut, pooling));
        assert_near("pooled", &found.values, &expected.values, 1e-6);
        assert_eq!(found.critical, expected.critical);
        assert_near("elements", &cut.elements.unwrap(), &whole.elements.unwrap(), 1e-5);
        assert_near("parameters", &cut.parameters.unwrap(), &whole.parameters.unwrap(), 1e-5);
        assert_near("context", &cut.context.unwrap(), &whole.context.unwrap(), 1e-5);
    }
    let scalar = Work::new(&[64, 48], 1, Activation::Silu);
    let moved = |gpu: &CudaBackend| {
        let langevin = Langevin {
            motion: Motion::default(),
            step_sizes: &[1e-2; 5],
            noise_scales: &[0.1; 5],
            noise: Stream::new(3, "chunks"),
        };
        gpu.langevin(&scalar.mlp, &scalar.batch(), &langevin).unwrap()
    };
    let (found, expected) = (moved(&cut), moved(&whole));
    assert_near("moved", &found.elements, &expected.elements, 1e-6);
    assert_near("kinetic", &found.kinetic, &expected.kinetic, 1e-5);
}

/// Rounded factors err by up to 2⁻¹¹ and 2⁻⁸; through four layers and back some three times that. An
/// error far below would mean that nothing was rounded.
#[test]
fn tensor_cores_err_by_their_rounding_and_no_more() {
    for (precision, least, most) in [(Precision::Tf32, 5e-5, 3e-3), (Precision::Bf16, 8e-4, 3e-2)] {
        let Some(gpu) = gpu(precision) else { return };
        let error = compare(&gpu, &Work::new(&[512, 512, 256], 1, Activation::Silu), most);
        assert!(error > least, "{}: {error:e}, more than {least:e} expected", precision.name());
    }
}

#[test]
fn pools_find_the_same_rows() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let work = Work::new(&[128, 256], 512, Activation::Silu);
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        let expected = CpuBackend::new().pool(&work.mlp, &work.batch(), pooling).unwrap();
        let found = gpu.pool(&work.mlp, &work.batch(), pooling).unwrap();
        assert_near("pooled", &found.values, &expected.values, 1e-5);
        let differing = found.critical.iter().zip(&expected.critical).filter(|(a, b)| a != b);
        // Rounding may decide a near tie: one in a thousand.
        assert!(differing.count() * 1000 <= expected.critical.len(), "{pooling:?}");
        let cotangent = normals("pool", expected.values.len());
        let gradient = |backend: &dyn PointBackend| {
            let batch = work.batch();
            let back = backend.pool_backward(&work.mlp, &batch, &expected, &cotangent, Wanted::ALL);
            back.unwrap().parameters.unwrap()
        };
        assert_near("gradient", &gradient(&gpu), &gradient(&CpuBackend::new()), 1e-5);
    }
}

/// Candidates of their own and shared ones, at places of their own; with what reaches the places.
#[test]
fn log_partitions_agree() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let small = CudaBackend::new(0, Precision::F32).unwrap();
    small.limit_memory(4 << 20).unwrap();
    for location_dim in [0, 2] {
        let work = Work::at(location_dim, &[256, 128], 1, Activation::Silu);
        let (sets, k) = (work.offsets.num_sets(), 300);
        let offsets = SetOffsets::from_sizes([3, 1, 7, 2, 1, 4]).unwrap();
        let anchors = offsets.num_elements();
        let values = normals("candidates", anchors * k * 3);
        let weights = normals("weights", anchors * k);
        let locations = normals("locations", anchors * location_dim);
        let cotangent = normals("cotangent", anchors);
        assert_eq!(offsets.num_sets(), sets);
        for (values, log_weights) in [
            (CandidateValues::PerAnchor(&values), LogWeights::PerAnchor(&weights)),
            (CandidateValues::PerAnchor(&values), LogWeights::Zero),
            (CandidateValues::Shared(&values[..k * 3]), LogWeights::Shared(&weights[..k])),
        ] {
            let candidates = Candidates {
                values,
                num_candidates: k,
                locations: &locations,
                offsets: &offsets,
                context: &work.context,
                log_weights,
            };
            let run = |backend: &dyn PointBackend| {
                let found = backend.log_partition(&work.mlp, &candidates).unwrap();
                let back = backend.log_partition_backward(
                    &work.mlp,
                    &candidates,
                    &found.log_partition,
                    &cotangent,
                    Wanted::ALL,
                );
                (found, back.unwrap())
            };
            let (expected, expected_back) = run(&CpuBackend::new());
            for gpu in [&gpu, &small] {
                let (found, back) = run(gpu);
                assert_near("log Z", &found.log_partition, &expected.log_partition, 1e-5);
                assert_near("values", &found.values, &expected.values, 1e-5);
                assert_gradients_near(back, expected_back.clone(), 1e-5);
            }
        }
    }
}

/// Sets with one anchor or several, whole and in chunks.
#[test]
fn likelihoods_agree() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let small = CudaBackend::new(0, Precision::F32).unwrap();
    small.limit_memory(8 << 20).unwrap();
    let work = Work::new(&[512, 512, 256], 1, Activation::Silu);
    let k = 300;
    for sizes in [[1; 6], [1, 2, 1, 3, 1, 1]] {
        let offsets = SetOffsets::from_sizes(sizes).unwrap();
        let anchors = offsets.num_elements();
        let values = normals("candidates", anchors * k * 3);
        let weights = normals("weights", anchors * k);
        let candidates = Candidates {
            values: CandidateValues::PerAnchor(&values),
            num_candidates: k,
            locations: &[],
            offsets: &offsets,
            context: &work.context,
            log_weights: LogWeights::PerAnchor(&weights),
        };
        for wanted in [Wanted::WEIGHTS, Wanted::NOTHING] {
            let run = |backend: &dyn PointBackend| {
                backend.likelihood(&work.mlp, &work.batch(), &candidates, wanted).unwrap()
            };
            let expected = run(&CpuBackend::new());
            for gpu in [&gpu, &small] {
                let found = run(gpu);
                assert_near("log Z", &found.log_partition, &expected.log_partition, 1e-5);
                let (of_candidates, known) = (&found.candidate_values, &expected.candidate_values);
                assert_near("values", of_candidates, known, 1e-5);
                assert_near("means", &found.means, &expected.means, 1e-5);
                assert_gradients_near(found.gradients, expected.gradients.clone(), 2e-5);
            }
        }
    }
}

/// Scores and what is learned from them, at places; whole and in chunks.
#[test]
fn scores_and_their_gradients_agree() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let small = CudaBackend::new(0, Precision::F32).unwrap();
    small.limit_memory(2 << 20).unwrap();
    let work = Work::at(2, &[48, 32], 1, Activation::Silu);
    let total = work.offsets.num_elements();
    let (score, values) = (normals("score", total * 3), normals("values", total));
    for values in [Some(&values[..]), None] {
        let run = |backend: &dyn PointBackend| {
            let cotangent = ScoreCotangent { score: &score, values };
            let found = backend.score(&work.mlp, &work.batch()).unwrap();
            let back = backend.score_backward(&work.mlp, &work.batch(), cotangent, Wanted::ALL);
            (found, back.unwrap())
        };
        let (expected, expected_back) = run(&CpuBackend::new());
        for gpu in [&gpu, &small] {
            let (found, back) = run(gpu);
            assert_near("values", &found.values, &expected.values, 1e-5);
            assert_near("score", &found.score, &expected.score, 1e-5);
            assert_gradients_near(back, expected_back.clone(), 2e-5);
        }
    }
}

/// The same call gives the same bits: no sum depends on the order of threads.
#[test]
fn a_call_repeated_gives_the_same_bits() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let work = Work::new(&[256, 256], 1, Activation::Silu);
    let score = normals("score", work.elements.len());
    let run = || {
        let cotangent = ScoreCotangent { score: &score, values: None };
        let back = gpu.score_backward(&work.mlp, &work.batch(), cotangent, Wanted::ALL).unwrap();
        back.parameters.unwrap()
    };
    assert_eq!(run(), run());
}

#[test]
fn the_time_of_kernels_is_part_of_the_whole() {
    let Some(gpu) = gpu(Precision::Tf32) else { return };
    let work = Work::new(&[512, 512, 256], 1, Activation::Relu);
    let score = || gpu.score(&work.mlp, &work.batch());
    let begin = Instant::now();
    let (measured, kernels) = gpu.measure_kernels(score).unwrap();
    let whole = begin.elapsed();
    assert!(kernels.time > Duration::ZERO && kernels.time < whole, "{kernels:?} of {whole:?}");
    // At least a product and an activation for each of three layers.
    assert!(kernels.launches >= 6, "{kernels:?}");
    assert_eq!(measured.score, score().unwrap().score);
    assert_eq!(gpu.measure_kernels(|| Ok(())).unwrap().1, KernelWork::default());
}

#[test]
fn a_missing_gpu_is_named() {
    let error = CudaBackend::new(4096, Precision::F32).unwrap_err().to_string();
    assert!(error.starts_with("cannot use the GPU: "), "{error}");
    assert!(error.contains("--device cpu"), "{error}");
}

/// Clouds of a few sizes, whose coordinates are f32 numbers.
fn clouds(dim: usize) -> Vec<ArrangedCloud> {
    [1, 700, 2048, 1500, 2048]
        .iter()
        .enumerate()
        .map(|(number, &size)| {
            let points = normals(&format!("cloud {number}"), size * dim);
            let points: Vec<f64> = points.iter().map(|x| f64::from(0.3 * x)).collect();
            ArrangedCloud::new(dim, &points).unwrap()
        })
        .collect()
}

#[test]
fn nearest_points_are_those_of_the_cpu_to_the_last_bit() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let gpu = GpuDistances::new(&gpu);
    for dim in [1, 2, 3, 5] {
        let clouds = clouds(dim);
        let clouds: Vec<&ArrangedCloud> = clouds.iter().collect();
        let pairs = [(0, 1), (1, 2), (2, 1), (3, 4), (4, 0), (2, 2)];
        for (found, (x, y)) in gpu.nearest(&clouds, &pairs).unwrap().iter().zip(pairs) {
            let expected = NearestNeighbours::between(clouds[x], clouds[y]).unwrap();
            assert_eq!(found.squared_from_x(), expected.squared_from_x(), "{dim}: {x} {y}");
            assert_eq!(found.squared_from_y(), expected.squared_from_y(), "{dim}: {x} {y}");
        }
    }
}

/// Both are f32 within and agree with f64 to 10⁻⁶ nearly always; see `approxmatch.rs` for the rest.
#[test]
fn soft_matchings_agree() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let gpu = GpuDistances::new(&gpu);
    for dim in [2, 3] {
        let clouds = clouds(dim);
        let clouds: Vec<&ArrangedCloud> = clouds.iter().collect();
        let pairs = [(0, 1), (1, 2), (2, 1), (3, 4)];
        for (matching, method) in
            [(Matching::Distances, EmdMethod::Approxmatch), (Matching::Squares, EmdMethod::Squared)]
        {
            let found = gpu.matchings(&clouds, &pairs, matching).unwrap();
            for (found, (x, y)) in found.iter().zip(pairs) {
                let expected = emd(clouds[x], clouds[y], method).unwrap().value;
                let error = (found - expected).abs() / expected;
                assert!(error < 1e-4, "{dim}: {x} {y}: {found} {expected} {error:e}");
            }
        }
    }
}

#[test]
fn collections_are_judged_the_same() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let (samples, references) = (clouds(3), clouds(3).split_off(1));
    let options = CollectionOptions { emd: Some(EmdMethod::Exact), cache: None, seed: 1 };
    let expected = evaluate(&samples, &references, &options, &mut |_| ()).unwrap();
    let device = Some(GpuDistances::new(&gpu));
    let found = evaluate_on(device, &samples, &references, &options, &mut |_| ()).unwrap();
    assert_eq!(found, expected);
}
