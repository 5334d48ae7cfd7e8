//! Proves that every bad input is answered by a typed error that names the field, says what was
//! expected and what was found, and that nothing panics: wrong lengths of every buffer, numbers
//! that are not finite, widths of zero, settings outside their range, results that overflow.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod twin;

use case::{Case, Spec, backends};
use ebp::point::cpu::SimdLevel;
use ebp::point::{
    Activation, Bounds, CandidateValues, Candidates, Clip, Cotangent, CpuBackend,
    DynamicsCotangent, Langevin, Leapfrog, LogWeights, MlpConfig, MlpShape, Motion, PointBackend,
    PointBatch, PointMlp, Pooled, Pooling, ScoreCotangent, Wanted,
};
use ebp::rng::Stream;
use ebp::{Error, Result, SetOffsets};

/// An energy on two sets of 2 and 3 elements, d_x = 2, d_t = 1, context 3.
fn energy() -> Case {
    Case::draw(&Spec { sizes: vec![2, 3], ..Spec::default() }).unwrap()
}

/// Asserts a wrong length of a field whose name ends in `field`.
#[track_caller]
fn assert_wrong_length<T>(result: Result<T>, name: &str, wanted: usize, given: usize) {
    match result.err().expect(name) {
        Error::WrongLength { field, expected, found, meaning } => {
            assert!(field.ends_with(name), "{field} is not {name}");
            assert_eq!((expected, found), (wanted, given), "{field}");
            assert!(!meaning.is_empty());
        }
        other => panic!("{name}: {other}"),
    }
}

/// Asserts a number that is not finite, at `at`, in a field whose name ends in `field`.
#[track_caller]
fn assert_non_finite<T>(result: Result<T>, name: &str, at: usize) {
    match result.err().expect(name) {
        Error::NonFinite { field, index, value, remedy } => {
            assert!(field.ends_with(name), "{field} is not {name}");
            assert_eq!(index, at, "{field}");
            assert!(!value.is_finite() && !remedy.is_empty());
        }
        other => panic!("{name}: {other}"),
    }
}

/// Asserts a value outside its range, in a field whose name ends in `field`.
#[track_caller]
fn assert_invalid<T>(result: Result<T>, name: &str, shown: &str) {
    match result.err().expect(name) {
        Error::InvalidValue { field, expected, found } => {
            assert!(field.ends_with(name), "{field} is not {name}");
            assert!(!expected.is_empty());
            assert_eq!(found, shown, "{field}");
        }
        other => panic!("{name}: {other}"),
    }
}

fn langevin<'a>(
    step_sizes: &'a [f32],
    noise_scales: &'a [f32],
    motion: Motion<'a>,
) -> Langevin<'a> {
    Langevin { step_sizes, noise_scales, noise: Stream::new(1, "noise"), motion }
}

/// An operation on a batch, its result thrown away.
type Operation = Box<dyn Fn(&PointMlp, &PointBatch<'_>) -> Result<()>>;

/// Every operation on the batch of [`energy`], with arguments that fit it.
fn operations(backend: &'static dyn PointBackend) -> Vec<(&'static str, Operation)> {
    let pooled = Pooled { pooling: Pooling::Max, values: vec![0.0; 2], critical: vec![0, 2] };
    let steps =
        |f: fn(&'static dyn PointBackend, &PointMlp, &PointBatch<'_>, Motion<'_>) -> Result<()>| {
            move |m: &PointMlp, b: &PointBatch<'_>| f(backend, m, b, Motion::default())
        };
    let values = [0.5; 10];
    let cotangent = DynamicsCotangent { values: &[0.5; 10], momentum: None, kinetic: None };
    vec![
        ("values", Box::new(move |m, b| backend.values(m, b).map(drop))),
        ("set_sums", Box::new(move |m, b| backend.set_sums(m, b).map(drop))),
        (
            "backward",
            Box::new(move |m, b| {
                backend.backward(m, b, Cotangent::PerSet(&[1.0; 2]), Wanted::ALL).map(drop)
            }),
        ),
        ("score", Box::new(move |m, b| backend.score(m, b).map(drop))),
        (
            "score_backward",
            Box::new(move |m, b| {
                let cotangent = ScoreCotangent { score: &values, values: None };
                backend.score_backward(m, b, cotangent, Wanted::ALL).map(drop)
            }),
        ),
        ("langevin", Box::new(steps(run_langevin))),
        (
            "langevin_backward",
            Box::new(move |m, b| {
                let langevin = langevin(&[0.1], &[0.1], Motion::default());
                backend.langevin_backward(m, b, &langevin, cotangent).map(drop)
            }),
        ),
        ("leapfrog", Box::new(steps(run_leapfrog))),
        (
            "leapfrog_backward",
            Box::new(move |m, b| {
                let leapfrog = Leapfrog { step_sizes: &[0.1], motion: Motion::default() };
                backend.leapfrog_backward(m, b, &values, &leapfrog, cotangent).map(drop)
            }),
        ),
        ("pool", Box::new(move |m, b| backend.pool(m, b, Pooling::Max).map(drop))),
        (
            "pool_backward",
            Box::new(move |m, b| {
                let cotangent = &[1.0; 2];
                backend.pool_backward(m, b, &pooled, cotangent, Wanted::ALL).map(drop)
            }),
        ),
    ]
}

fn run_langevin(
    b: &'static dyn PointBackend,
    m: &PointMlp,
    x: &PointBatch<'_>,
    motion: Motion<'_>,
) -> Result<()> {
    b.langevin(m, x, &langevin(&[0.1], &[0.1], motion)).map(drop)
}

fn run_leapfrog(
    b: &'static dyn PointBackend,
    m: &PointMlp,
    x: &PointBatch<'_>,
    motion: Motion<'_>,
) -> Result<()> {
    b.leapfrog(m, x, &[0.5; 10], &Leapfrog { step_sizes: &[0.1], motion }).map(drop)
}

/// Elements and context of the wrong length or not finite, for every operation. The first loop
/// shows that the same calls succeed when nothing is wrong.
#[test]
fn every_operation_checks_its_batch() {
    let case = energy();
    for backend in backends() {
        for (name, operation) in operations(backend) {
            let run = |batch: &PointBatch<'_>| operation(&case.mlp, batch);
            run(&case.batch()).expect(name);

            let short = PointBatch { elements: &case.elements[..14], ..case.batch() };
            assert_wrong_length(run(&short), "elements", 15, 14);
            let context = case.context.repeat(2);
            let long = PointBatch { context: &context, ..case.batch() };
            assert_wrong_length(run(&long), "context", 6, 12);
            let offsets = SetOffsets::from_sizes([2, 4]).unwrap();
            let more = PointBatch { offsets: &offsets, ..case.batch() };
            assert_wrong_length(run(&more), "elements", 18, 15);

            for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut elements = case.elements.clone();
                elements[13] = value;
                let bad = PointBatch { elements: &elements, ..case.batch() };
                assert_non_finite(run(&bad), "elements", 13);
                let mut context = case.context.clone();
                context[4] = value;
                let bad = PointBatch { context: &context, ..case.batch() };
                assert_non_finite(run(&bad), "context", 4);
            }
        }
    }
}

#[test]
fn scores_and_dynamics_need_one_output() {
    let config = MlpConfig { output_dim: 2, ..Spec::default().config };
    let case = Case::draw(&Spec { config, sizes: vec![2, 3], seed: 1, ..Spec::default() }).unwrap();
    for backend in backends() {
        for (name, operation) in operations(backend) {
            if ["score", "langevin", "leapfrog"].iter().any(|kind| name.starts_with(kind)) {
                assert_invalid(operation(&case.mlp, &case.batch()), "output_dim", "2");
            }
        }
        let candidates = Candidates {
            values: CandidateValues::Shared(&[0.5; 4]),
            num_candidates: 2,
            locations: &[0.5; 5],
            offsets: &case.offsets,
            context: &case.context,
            log_weights: LogWeights::Zero,
        };
        assert_invalid(backend.log_partition(&case.mlp, &candidates), "output_dim", "2");
        let gradients = backend.log_partition_backward(
            &case.mlp,
            &candidates,
            &[0.5; 5],
            &[1.0; 5],
            Wanted::ALL,
        );
        assert_invalid(gradients, "output_dim", "2");
    }
}

#[test]
fn cotangents_are_checked() {
    let case = energy();
    let (mlp, batch) = (&case.mlp, &case.batch());
    let mut nan = [0.5; 10];
    nan[7] = f32::NAN;
    for backend in backends() {
        let backward = |c| backend.backward(mlp, batch, c, Wanted::ALL);
        assert_wrong_length(backward(Cotangent::PerElement(&[1.0; 4])), "cotangent", 5, 4);
        assert_wrong_length(backward(Cotangent::PerSet(&[1.0; 5])), "cotangent", 2, 5);
        assert_non_finite(backward(Cotangent::PerElement(&nan[3..8])), "cotangent", 4);
        assert_non_finite(backward(Cotangent::PerSet(&nan[6..8])), "cotangent", 1);

        let score = |score, values| {
            let cotangent = ScoreCotangent { score, values };
            backend.score_backward(mlp, batch, cotangent, Wanted::WEIGHTS)
        };
        assert_wrong_length(score(&[1.0; 5], None), "score", 10, 5);
        assert_wrong_length(score(&[1.0; 10], Some(&[1.0; 6])), "values", 5, 6);
        assert_non_finite(score(&nan, None), "score", 7);
        assert_non_finite(score(&[1.0; 10], Some(&nan[4..9])), "values", 3);

        let langevin = langevin(&[0.1], &[0.1], Motion::default());
        let langevin = |values, momentum, kinetic| {
            let cotangent = DynamicsCotangent { values, momentum, kinetic };
            backend.langevin_backward(mlp, batch, &langevin, cotangent)
        };
        assert_wrong_length(langevin(&[1.0; 15], None, None), "values", 10, 15);
        assert_wrong_length(langevin(&[1.0; 10], None, Some(&[1.0; 2])), "kinetic", 5, 2);
        assert_invalid(langevin(&[1.0; 10], Some(&[1.0; 10]), None), "momentum", "a value");
        assert_non_finite(langevin(&nan, None, None), "values", 7);
        assert_non_finite(langevin(&[1.0; 10], None, Some(&nan[5..])), "kinetic", 2);

        let leapfrog = Leapfrog { step_sizes: &[0.1], motion: Motion::default() };
        let leapfrog = |values, momentum, kinetic| {
            let cotangent = DynamicsCotangent { values, momentum, kinetic };
            backend.leapfrog_backward(mlp, batch, &[0.5; 10], &leapfrog, cotangent)
        };
        assert_wrong_length(leapfrog(&[1.0; 9], None, None), "values", 10, 9);
        assert_wrong_length(leapfrog(&[1.0; 10], Some(&[1.0; 5]), None), "momentum", 10, 5);
        assert_invalid(leapfrog(&[1.0; 10], None, Some(&[1.0; 5])), "kinetic", "a value");
        assert_non_finite(leapfrog(&[1.0; 10], Some(&nan), None), "momentum", 7);
    }
}

#[test]
fn pools_check_their_critical_rows_and_cotangent() {
    let case = energy();
    for backend in backends() {
        let run = |critical: &[u32], cotangent: &[f32]| {
            let critical = critical.to_vec();
            let pooled = Pooled { pooling: Pooling::Max, values: vec![0.0; 2], critical };
            let batch = case.batch();
            backend.pool_backward(&case.mlp, &batch, &pooled, cotangent, Wanted::ALL)
        };
        run(&[1, 4], &[1.0; 2]).unwrap();
        assert_wrong_length(run(&[1], &[1.0; 2]), "critical", 2, 1);
        assert_wrong_length(run(&[1, 4], &[1.0; 3]), "cotangent", 2, 3);
        assert_non_finite(run(&[1, 4], &[1.0, f32::NAN]), "cotangent", 1);
        // Row 5 does not exist, row 1 is not of the second set.
        for (critical, shown) in [([1, 5], "5"), ([1, 1], "1"), ([u32::MAX, 4], "4294967295")] {
            let error = run(&critical, &[1.0; 2]).unwrap_err();
            let Error::InvalidValue { field, found, .. } = error else { panic!("{error}") };
            assert!(field.contains("critical"), "{field}");
            assert_eq!(found, shown);
        }
    }
}

#[test]
fn dynamics_check_their_settings() {
    let case = energy();
    let (mlp, batch) = (&case.mlp, &case.batch());
    for backend in backends() {
        for run in [run_langevin, run_leapfrog] {
            let run = |motion| run(backend, mlp, batch, motion);
            let clip = |clip| run(Motion { clip, ..Motion::default() });
            assert_invalid(clip(Clip::Elementwise(0.0)), "clip", "0");
            assert_invalid(clip(Clip::Norm(-1.0)), "clip", "-1");
            assert_invalid(clip(Clip::Norm(f32::NAN)), "clip", "NaN");
            assert_invalid(clip(Clip::Elementwise(f32::INFINITY)), "clip", "inf");
            let base = |s| run(Motion { base_std_dev: Some(s), ..Motion::default() });
            assert_invalid(base(0.0), "base_std_dev", "0");
            assert_invalid(base(-2.0), "base_std_dev", "-2");
            assert_invalid(base(f32::NAN), "base_std_dev", "NaN");
            let walls =
                |low, high| run(Motion { bounds: Some(Bounds { low, high }), ..Motion::default() });
            assert_invalid(walls(1.0, 1.0), "bounds", "[1, 1]");
            assert_invalid(walls(2.0, -2.0), "bounds", "[2, -2]");
            assert_invalid(walls(f32::NAN, 1.0), "bounds", "[NaN, 1]");
            assert_invalid(walls(0.0, f32::INFINITY), "bounds", "[0, inf]");
            let mask = Motion { is_fixed: Some(&[true; 4]), ..Motion::default() };
            assert_wrong_length(run(mask), "is_fixed", 5, 4);
        }
        let run = |sizes: &[f32], scales: &[f32]| {
            backend.langevin(mlp, batch, &langevin(sizes, scales, Motion::default()))
        };
        assert_wrong_length(run(&[0.1, 0.1], &[0.1]), "noise_scales", 2, 1);
        assert_non_finite(run(&[0.1, f32::NAN], &[0.1; 2]), "step_sizes", 1);
        assert_non_finite(run(&[0.1], &[f32::INFINITY]), "noise_scales", 0);
        let run = |momentum: &[f32], step_sizes: &[f32]| {
            let leapfrog = Leapfrog { step_sizes, motion: Motion::default() };
            backend.leapfrog(mlp, batch, momentum, &leapfrog)
        };
        assert_wrong_length(run(&[0.5; 15], &[0.1]), "momentum", 10, 15);
        assert_non_finite(run(&[f32::NAN; 10], &[0.1]), "momentum", 0);
        assert_non_finite(run(&[0.5; 10], &[f32::NEG_INFINITY]), "step_sizes", 0);
    }
}

#[test]
fn candidates_are_checked() {
    let case = energy();
    let (values, locations, weights) = ([0.5; 30], [0.5; 5], [0.0; 15]);
    let good = Candidates {
        values: CandidateValues::PerAnchor(&values),
        num_candidates: 3,
        locations: &locations,
        offsets: &case.offsets,
        context: &case.context,
        log_weights: LogWeights::PerAnchor(&weights),
    };
    let (mut bad_values, mut bad_weights) = (values, weights);
    (bad_values[29], bad_weights[14]) = (f32::NAN, f32::INFINITY);
    for backend in backends() {
        let forward = |c: Candidates<'_>| backend.log_partition(&case.mlp, &c).map(drop);
        let backward = |c: Candidates<'_>| {
            let (given, cotangent) = (&[0.5; 5], &[1.0; 5]);
            backend.log_partition_backward(&case.mlp, &c, given, cotangent, Wanted::ALL).map(drop)
        };
        for run in [&forward as &dyn Fn(Candidates<'_>) -> Result<()>, &backward] {
            run(good).unwrap();
            assert_invalid(run(Candidates { num_candidates: 0, ..good }), "num_candidates", "0");
            let with = |values| Candidates { values, ..good };
            assert_wrong_length(run(with(CandidateValues::Shared(&values))), "values", 6, 30);
            let short = CandidateValues::PerAnchor(&values[..29]);
            assert_wrong_length(run(with(short)), "values", 30, 29);
            assert_non_finite(run(with(CandidateValues::PerAnchor(&bad_values))), "values", 29);
            let with = |locations| Candidates { locations, ..good };
            assert_wrong_length(run(with(&[0.5; 15])), "locations", 5, 15);
            assert_non_finite(run(with(&[f32::NAN; 5])), "locations", 0);
            let with = |log_weights| Candidates { log_weights, ..good };
            assert_wrong_length(run(with(LogWeights::Shared(&weights))), "log_weights", 3, 15);
            let short = LogWeights::PerAnchor(&weights[1..]);
            assert_wrong_length(run(with(short)), "log_weights", 15, 14);
            let infinite = LogWeights::PerAnchor(&bad_weights);
            assert_non_finite(run(with(infinite)), "log_weights", 14);
            let with = |context| Candidates { context, ..good };
            assert_wrong_length(run(with(&[])), "context", 6, 0);
            assert_non_finite(run(with(&[f32::NAN; 6])), "context", 0);
        }
        let run = |given: &[f32], cotangent: &[f32]| {
            backend.log_partition_backward(&case.mlp, &good, given, cotangent, Wanted::ALL)
        };
        assert_wrong_length(run(&[0.5; 4], &[1.0; 5]), "log_partition", 5, 4);
        assert_wrong_length(run(&[0.5; 5], &[1.0; 15]), "cotangent", 5, 15);
        assert_non_finite(run(&[0.5; 5], &[f32::NAN; 5]), "cotangent", 0);
        assert_non_finite(run(&[f32::NAN; 5], &[1.0; 5]), "log_partition", 0);
        // Without any candidate of positive weight there is no log partition.
        let nothing = LogWeights::Shared(&[f32::NEG_INFINITY; 3]);
        assert_non_finite(forward(Candidates { log_weights: nothing, ..good }), "log partition", 0);
    }
}

#[test]
fn shapes_and_parameters_are_checked() {
    let config = || Spec::default().config;
    let shape = |config| MlpShape::new(config);
    assert_invalid(shape(MlpConfig { value_dim: 0, ..config() }), "value_dim", "0");
    assert_invalid(shape(MlpConfig { output_dim: 0, ..config() }), "output_dim", "0");
    assert_invalid(shape(MlpConfig { location_dim: 5000, ..config() }), "location_dim", "5000");
    assert_invalid(shape(MlpConfig { context_dim: 4097, ..config() }), "context_dim", "4097");
    let hidden_widths = vec![8, 0, 8];
    assert_invalid(shape(MlpConfig { hidden_widths, ..config() }), "hidden_widths[1]", "0");
    let activation = Activation::LeakyRelu { slope: 1.0 };
    assert_invalid(shape(MlpConfig { activation, ..config() }), "slope", "1");

    let shape = shape(config()).unwrap();
    let count = shape.num_parameters();
    let network = |parameters| PointMlp::new(shape.clone(), parameters);
    assert_wrong_length(network(vec![0.0; count - 1]), "parameters", count, count - 1);
    let mut parameters = vec![0.0; count];
    parameters[11] = f32::NAN;
    assert_non_finite(network(parameters), "parameters", 11);
}

/// Finite parameters of 1e30 whose products are not: every operation says so.
#[test]
fn overflow_is_an_error_and_not_an_answer() {
    let case = energy();
    let parameters = vec![1e30; case.mlp.parameters().len()];
    let wild = PointMlp::new(case.mlp.shape().clone(), parameters).unwrap();
    for backend in backends() {
        for (name, operation) in operations(backend) {
            let error = operation(&wild, &case.batch()).expect_err(name);
            assert!(matches!(error, Error::NonFinite { .. }), "{name}: {error}");
        }
    }
}

/// An element at 1e25 is a number, the square of its velocity is not one in f32.
#[test]
fn an_overflow_of_the_kinetic_energy_is_an_error() {
    let case = energy();
    for backend in backends() {
        let langevin = langevin(&[0.1], &[1e25], Motion::default());
        let error = backend.langevin(&case.mlp, &case.batch(), &langevin).expect_err("langevin");
        assert!(matches!(error, Error::NonFinite { .. }), "{error}");
        let leapfrog = Leapfrog { step_sizes: &[1e-20], motion: Motion::default() };
        let error = backend
            .leapfrog(&case.mlp, &case.batch(), &[1e25; 10], &leapfrog)
            .expect_err("leapfrog");
        assert!(matches!(error, Error::NonFinite { .. }), "{error}");
    }
}

#[test]
fn an_instruction_set_is_taken_only_if_the_machine_has_it() {
    let available = SimdLevel::available();
    for level in [SimdLevel::Portable, SimdLevel::Avx2, SimdLevel::Avx512] {
        let backend = CpuBackend::with_simd(level);
        if available.contains(&level) {
            assert_eq!(backend.unwrap().simd(), level);
        } else {
            assert_invalid(backend, "simd", level.name());
        }
    }
    assert_eq!(Some(&CpuBackend::new().simd()), available.last());
}
