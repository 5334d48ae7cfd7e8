//! Gaussian and Student-t processes: closed forms, derivatives, exchangeability, consistency,
//! draws and fits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::IndexedSet;
use ebp::kernel::{Kernel, Matern, Periodic, Rbf, Smoothness, Sum};
use ebp::process::{
    ExactProcess, ExactProcessConfig, FitConfig, GaussianProcess, Prediction, Process, Stop,
    StudentTProcess,
};
use ebp::rng::Stream;

const LOG_TAU: f64 = 1.837_877_066_409_345_5;

fn config(location_dim: usize, value_dim: usize, noise_variance: f64) -> ExactProcessConfig {
    ExactProcessConfig { location_dim, value_dim, noise_variance }
}

fn rbf(signal_variance: f64, length_scale: f64) -> Box<dyn Kernel> {
    Box::new(Rbf::new(signal_variance, length_scale).unwrap())
}

/// n elements that look random, in any dimensions.
fn set(location_dim: usize, value_dim: usize, n: u32, seed: f64) -> IndexedSet {
    let rough = |count: usize, scale: f64| {
        (0..count).map(|i| scale * (12.9898 * (i as f64 + seed)).sin()).collect::<Vec<f64>>()
    };
    let n = n as usize;
    let (locations, values) = (rough(n * location_dim, 2.5), rough(n * value_dim, 1.2));
    IndexedSet::new(location_dim, value_dim, locations, values).unwrap()
}

fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found}, expected {expected}");
}

/// One of each, with the gradient that their common trait does not offer.
enum Exact {
    Gaussian(GaussianProcess),
    StudentT(StudentTProcess),
}

impl Exact {
    fn both(kernel: impl Fn() -> Box<dyn Kernel>, config: &ExactProcessConfig) -> [Self; 2] {
        [
            Self::Gaussian(GaussianProcess::new(kernel(), config).unwrap()),
            Self::StudentT(StudentTProcess::new(kernel(), config, 5.3).unwrap()),
        ]
    }

    fn process(&self) -> &dyn ExactProcess {
        match self {
            Self::Gaussian(process) => process,
            Self::StudentT(process) => process,
        }
    }

    fn gradient(&self, sets: &[IndexedSet]) -> (f64, Vec<f64>) {
        match self {
            Self::Gaussian(process) => process.log_marginal_gradient(sets).unwrap(),
            Self::StudentT(process) => process.log_marginal_gradient(sets).unwrap(),
        }
    }

    fn predict(&self, context: &IndexedSet, locations: &[f64]) -> Prediction {
        match self {
            Self::Gaussian(process) => process.posterior(context).unwrap().predict(locations),
            Self::StudentT(process) => process.posterior(context).unwrap().predict(locations),
        }
        .unwrap()
    }

    fn log_parameters(&self) -> Vec<f64> {
        match self {
            Self::Gaussian(process) => process.log_parameters(),
            Self::StudentT(process) => process.log_parameters(),
        }
    }

    /// The same process with other hyperparameters, built from scratch.
    fn rebuilt(&self, log_parameters: &[f64], config: &ExactProcessConfig) -> Self {
        let rebuild = |kernel: &dyn Kernel| {
            let num = kernel.log_parameters().len();
            let config =
                ExactProcessConfig { noise_variance: log_parameters[num].exp(), ..*config };
            (kernel.with_log_parameters(&log_parameters[..num]).unwrap(), config)
        };
        match self {
            Self::Gaussian(process) => {
                let (kernel, config) = rebuild(process.kernel());
                Self::Gaussian(GaussianProcess::new(kernel, &config).unwrap())
            }
            Self::StudentT(process) => {
                let (kernel, config) = rebuild(process.kernel());
                let degrees = 2.0 + log_parameters.last().unwrap().exp();
                Self::StudentT(StudentTProcess::new(kernel, &config, degrees).unwrap())
            }
        }
    }
}

fn kernels() -> Vec<fn() -> Box<dyn Kernel>> {
    vec![
        || rbf(1.4, 0.8),
        || Box::new(Matern::new(Smoothness::Half, 0.7, 1.1).unwrap()),
        || Box::new(Matern::new(Smoothness::ThreeHalves, 0.7, 1.1).unwrap()),
        || Box::new(Matern::new(Smoothness::FiveHalves, 0.7, 1.1).unwrap()),
        || Box::new(Periodic::new(1.2, 0.9, 2.6).unwrap()),
        || Box::new(Sum::new(rbf(0.5, 2.0), Box::new(Periodic::new(1.2, 0.9, 2.6).unwrap()))),
    ]
}

/// Two points with K̃ = [a k; k a]: |K̃| = a² − k², β = (a x₁² − 2 k x₁ x₂ + a x₂²)/|K̃|.
#[test]
fn two_points_by_hand() {
    let (variance, noise, distance) = (1.5, 0.2, 0.7_f64);
    let (x1, x2) = (0.8, -0.3);
    let (a, k) = (variance + noise, variance * (-0.5 * distance * distance).exp());
    let determinant = a * a - k * k;
    let form = (a * x1 * x1 - 2.0 * k * x1 * x2 + a * x2 * x2) / determinant;
    let data = IndexedSet::new(1, 1, vec![1.0, 1.0 + distance], vec![x1, x2]).unwrap();
    let first = data.select(&[0]);
    let config = config(1, 1, noise);

    let gaussian = GaussianProcess::new(rbf(variance, 1.0), &config).unwrap();
    let expected = -0.5 * (form + determinant.ln()) - LOG_TAU;
    assert_close(gaussian.log_marginal(&data).unwrap(), expected, 1e-14, "log p");
    let prediction = gaussian.posterior(&first).unwrap().predict(data.location(1)).unwrap();
    assert_close(prediction.mean[0], k / a * x1, 1e-15, "mean");
    assert_close(prediction.variance[0], a - k * k / a, 1e-15, "variance");

    // ν = 4: Γ(3)/Γ(2) = 2, and the first point has β₁ = x₁²/a.
    let student_t = StudentTProcess::new(rbf(variance, 1.0), &config, 4.0).unwrap();
    let expected = 2_f64.ln()
        - (2.0 * std::f64::consts::PI).ln()
        - 0.5 * determinant.ln()
        - 3.0 * (1.0 + form / 2.0).ln();
    assert_close(student_t.log_marginal(&data).unwrap(), expected, 1e-14, "Student-t log p");
    let posterior = student_t.posterior(&first).unwrap();
    let prediction = posterior.predict(data.location(1)).unwrap();
    let widening = (2.0 + x1 * x1 / a) / 3.0;
    assert_close(posterior.degrees_of_freedom(), 5.0, 0.0, "degrees");
    assert_close(prediction.mean[0], k / a * x1, 1e-15, "Student-t mean");
    assert_close(prediction.variance[0], widening * (a - k * k / a), 1e-15, "Student-t variance");
}

/// Five-point differences, in every hyperparameter, over sets of several sizes (none among them)
/// and two outputs. The truncation error is h⁴/30 times fifth derivatives, 10⁹ for the period, hence
/// 10⁻⁸; log p of order 10² with a condition number of order 10² is rounded by 10⁻¹², over h the same.
#[test]
fn gradients_equal_differences() {
    let config = config(2, 2, 0.1);
    let sets = [set(2, 2, 9, 0.3), set(2, 2, 0, 0.0), set(2, 2, 1, 4.0), set(2, 2, 20, 7.7)];
    for kernel in kernels() {
        for exact in Exact::both(kernel, &config) {
            let at = exact.log_parameters();
            let (value, gradient) = exact.gradient(&sets);
            let total = |exact: &Exact| -> f64 {
                sets.iter().map(|set| exact.process().log_marginal(set).unwrap()).sum()
            };
            assert_close(total(&exact), value, 1e-11, "value");
            assert_eq!(gradient.len(), at.len());
            for (p, analytic) in gradient.iter().enumerate() {
                let h = 1e-4;
                let shifted = |step: f64| {
                    let mut moved = at.clone();
                    moved[p] += step;
                    total(&exact.rebuilt(&moved, &config))
                };
                let (near, far) = (shifted(h) - shifted(-h), shifted(2.0 * h) - shifted(-2.0 * h));
                let numeric = (8.0 * near - far) / (12.0 * h);
                let what = format!("{} parameter {p}", exact.process().name());
                assert_close(*analytic, numeric, 1e-7, &what);
            }
        }
    }
}

#[test]
fn the_order_of_elements_does_not_matter() {
    let config = config(2, 2, 0.1);
    let data = set(2, 2, 17, 1.1);
    let shuffled = data.select(&[9, 3, 16, 0, 12, 7, 1, 14, 5, 2, 11, 8, 15, 4, 13, 6, 10]);
    let new = set(2, 2, 3, 5.0);
    for kernel in kernels() {
        for exact in Exact::both(kernel, &config) {
            let log_marginal = |set| exact.process().log_marginal(set).unwrap();
            assert_close(log_marginal(&shuffled), log_marginal(&data), 1e-11, "log p");
            let predict = |set| exact.predict(set, new.locations());
            let (a, b) = (predict(&data), predict(&shuffled));
            for j in 0..6 {
                assert_close(a.mean[j], b.mean[j], 1e-12, "mean");
                assert_close(a.variance[j], b.variance[j], 1e-12, "variance");
            }
        }
    }
}

/// p(x₁, …, xₙ) = ∏ᵢ p(xᵢ | x₁, …, xᵢ₋₁): as each factor integrates to one over xᵢ, leaving out
/// the last element is marginalising it.
#[test]
fn the_chain_rule_holds_from_no_element_on() {
    let config = config(2, 2, 0.1);
    let data = set(2, 2, 12, 2.2);
    for kernel in kernels() {
        for exact in Exact::both(kernel, &config) {
            let mut sum = 0.0;
            for n in 0..data.len() {
                let context = data.select(&(0..n).collect::<Vec<_>>());
                let log_marginal = exact.process().log_marginal(&context).unwrap();
                assert_close(log_marginal, sum, 1e-11, "log p");
                let predictive = exact.process().condition(&context).unwrap();
                let density = predictive.log_density(&data.select(&[n])).unwrap()[0];
                assert_close(density.std_error, 0.0, 0.0, "exact");
                sum += density.value;
            }
        }
    }
}

/// ∫ p(x₁, x₂) dx₂ = p(x₁), with x₂ = tan u to reach the tails of the Student-t law; the
/// trapezoidal rule converges geometrically for the periodic integrand.
#[test]
fn marginalising_an_element_leaves_it_out() {
    let data = set(1, 1, 2, 0.9);
    for exact in Exact::both(|| rbf(1.0, 3.0), &config(1, 1, 0.2)) {
        let process = exact.process();
        let num = 400;
        let step = std::f64::consts::PI / f64::from(num);
        let integral: f64 = (1..num)
            .map(|i| {
                let u = -0.5 * std::f64::consts::PI + step * f64::from(i);
                let values = vec![data.values()[0], u.tan()];
                let pair = IndexedSet::new(1, 1, data.locations().to_vec(), values).unwrap();
                step * process.log_marginal(&pair).unwrap().exp() / u.cos().powi(2)
            })
            .sum();
        let alone = process.log_marginal(&data.select(&[0])).unwrap();
        assert_close(integral.ln(), alone, 1e-8, process.name());
    }
}

#[test]
fn without_a_context_the_process_is_at_its_prior() {
    let empty = IndexedSet::empty(1, 2).unwrap();
    for exact in Exact::both(|| rbf(1.5, 1.0), &config(1, 2, 0.25)) {
        assert_close(exact.process().log_marginal(&empty).unwrap(), 0.0, 0.0, "log p of nothing");
        let prior = exact.predict(&empty, &[3.0]);
        assert_eq!((prior.mean, prior.variance), (vec![0.0; 2], vec![1.75; 2]));
        let predictive = exact.process().condition(&empty).unwrap();
        assert!(predictive.log_density(&empty).unwrap().is_empty());
        assert!(predictive.sample(&[], 3, Stream::new(1, "none")).unwrap().is_empty());
        assert_eq!(predictive.sample(&[0.0, 1.0], 3, Stream::new(1, "s")).unwrap().len(), 12);
    }
}

/// Each output alone, added up: outputs are independent.
#[test]
fn outputs_are_independent() {
    let data = set(1, 2, 8, 0.4);
    let output = |d: usize| {
        let values = data.values().chunks_exact(2).map(|x| x[d]).collect();
        IndexedSet::new(1, 1, data.locations().to_vec(), values).unwrap()
    };
    let pairs = Exact::both(|| rbf(1.0, 1.0), &config(1, 2, 0.1));
    let singles = Exact::both(|| rbf(1.0, 1.0), &config(1, 1, 0.1));
    for (pair, single) in pairs.iter().zip(&singles) {
        let apart = (0..2).map(|d| single.process().log_marginal(&output(d)).unwrap()).sum();
        assert_close(pair.process().log_marginal(&data).unwrap(), apart, 1e-12, "log p");
    }
}

#[test]
fn repeated_locations_without_noise_get_a_reported_jitter() {
    let data = IndexedSet::new(1, 1, vec![1.0; 6], vec![0.5; 6]).unwrap();
    let process = GaussianProcess::new(rbf(1.0, 1.0), &config(1, 1, 1e-30)).unwrap();
    let posterior = process.posterior(&data).unwrap();
    assert!(posterior.jitter() > 0.0 && posterior.jitter() <= 1e-8, "{}", posterior.jitter());
    let prediction = posterior.predict(&[1.0]).unwrap();
    assert_close(prediction.mean[0], 0.5, 1e-6, "mean");
    assert!(prediction.variance[0] > 0.0 && prediction.variance[0] < 1e-6);
    let noisy = GaussianProcess::new(rbf(1.0, 1.0), &config(1, 1, 1e-2)).unwrap();
    assert_close(noisy.posterior(&data).unwrap().jitter(), 0.0, 0.0, "jitter");
}

/// ν → ∞: log p differs by (β² − 2β(n + 2) + n(n + 2))/(4ν) to first order.
#[test]
fn many_degrees_of_freedom_give_the_gaussian_process() {
    let data = set(1, 1, 10, 0.2);
    let config = config(1, 1, 0.1);
    let gaussian = GaussianProcess::new(rbf(1.0, 1.0), &config).unwrap();
    let student_t = StudentTProcess::new(rbf(1.0, 1.0), &config, 1e8).unwrap();
    let expected = gaussian.log_marginal(&data).unwrap();
    let found = student_t.log_marginal(&data).unwrap();
    assert!((found - expected).abs() < 1e-4, "{found} {expected}");
}

/// Means, variances and a covariance of 20 000 draws, within 4 standard errors. A Student-t
/// variable has kurtosis 3 (ν − 2)/(ν − 4), which its 12 context points keep near 3.
#[test]
fn draws_have_the_predicted_moments() {
    let count = 20_000;
    let context = set(1, 2, 12, 0.6);
    let locations = [0.1, 0.3, 4.0];
    for exact in Exact::both(|| rbf(1.0, 1.0), &config(1, 2, 0.05)) {
        let prediction = exact.predict(&context, &locations);
        let predictive = exact.process().condition(&context).unwrap();
        let draws = predictive.sample(&locations, count, Stream::new(8, "draws")).unwrap();
        let degrees = 5.3 + 12.0;
        let kurtosis = 3.0 * (degrees - 2.0) / (degrees - 4.0);
        for j in 0..6 {
            let (mean, variance) = (prediction.mean[j], prediction.variance[j]);
            let centred = draws.chunks_exact(6).map(|draw| draw[j] - mean);
            let sum: f64 = centred.clone().sum();
            let squares: f64 = centred.map(|x| x * x).sum();
            let n = count as f64;
            assert_close(sum / n, 0.0, 4.0 * (variance / n).sqrt(), "mean");
            let std_error = variance * ((kurtosis - 1.0) / n).sqrt();
            assert_close(squares / n, variance, 4.0 * std_error, "variance");
        }
        // Fewer draws are the first of many.
        let few = predictive.sample(&locations, 2, Stream::new(8, "draws")).unwrap();
        assert_eq!(few, draws[..12]);
    }
}

/// Neighbouring draws must move together as the kernel says: from the prior, cov = k.
#[test]
fn joint_draws_are_correlated_as_the_kernel_says() {
    let count = 20_000;
    let empty = IndexedSet::empty(1, 1).unwrap();
    for exact in Exact::both(|| rbf(1.0, 1.0), &config(1, 1, 0.1)) {
        let predictive = exact.process().condition(&empty).unwrap();
        let draws = predictive.sample(&[0.0, 0.8], count, Stream::new(9, "joint")).unwrap();
        let covariance = draws.chunks_exact(2).map(|x| x[0] * x[1]).sum::<f64>() / count as f64;
        let k = (-0.32_f64).exp();
        // Var(x y) = (κ/3)(1 + 2ρ²)σ⁴ − k², κ/3 = (ν − 2)/(ν − 4) ≤ 2.54 for ν = 5.3
        let spread = 2.54 * (1.21 + 2.0 * k * k) - k * k;
        let std_error = (spread / count as f64).sqrt();
        assert_close(covariance, k, 4.0 * std_error, exact.process().name());
    }
}

/// Data drawn from a known process: the fit ends where the gradient vanishes, above the truth, and
/// two independent sets count as their sum.
#[test]
fn fits_climb_to_a_stationary_point_above_the_truth() {
    let config = config(1, 1, 0.05);
    let truth = GaussianProcess::new(rbf(1.7, 0.6), &config).unwrap();
    let times: Vec<f64> = (0..60).map(|i| 0.1 * f64::from(i)).collect();
    let empty = IndexedSet::empty(1, 1).unwrap();
    let draws = truth.condition(&empty).unwrap().sample(&times, 3, Stream::new(4, "fit")).unwrap();
    let sets: Vec<IndexedSet> = draws
        .chunks_exact(60)
        .map(|values| IndexedSet::new(1, 1, times.clone(), values.to_vec()).unwrap())
        .collect();
    let fit_config = FitConfig { standardise: false, num_restarts: 2, ..FitConfig::default() };
    let at_truth = truth.log_marginal_gradient(&sets).unwrap().0;

    let start = GaussianProcess::new(rbf(1.0, 1.0), &ExactProcessConfig::default()).unwrap();
    let (fitted, report) = start.fit(&sets, &fit_config, Stream::new(1, "restart")).unwrap();
    let (value, gradient) = fitted.log_marginal_gradient(&sets).unwrap();
    assert_close(report.log_marginal, value, 1e-9, "reported log p");
    assert!(value > at_truth, "{value} above {at_truth}");
    assert!(gradient.iter().all(|g| g.abs() < 180.0 * 1e-3), "{gradient:?} {report:?}");
    assert!(matches!(report.stop, Stop::Gradient | Stop::Value), "{report:?}");
    assert!(report.num_evaluations < 150, "{report:?}");
    for (found, expected) in fitted.log_parameters().iter().zip(truth.log_parameters()) {
        assert_close(*found, expected, 0.7, "hyperparameter");
    }
    let again = start.fit(&sets, &fit_config, Stream::new(1, "restart")).unwrap().1;
    assert_eq!(report, again);

    let start = StudentTProcess::new(rbf(1.0, 1.0), &config, 5.0).unwrap();
    let (fitted, report) = start.fit(&sets, &fit_config, Stream::new(1, "restart")).unwrap();
    assert!(report.log_marginal > at_truth - 1.0, "{report:?}");
    assert!(fitted.degrees_of_freedom() > 5.0, "Gaussian data: {}", fitted.degrees_of_freedom());
}

/// y = 3 + 10 x has the density of x divided by 10; standardising makes both fits the same.
#[test]
fn standardising_keeps_densities_in_the_units_of_the_data() {
    let data = set(1, 1, 25, 0.8);
    let values = data.values().iter().map(|x| 3.0 + 10.0 * x).collect();
    let moved = IndexedSet::new(1, 1, data.locations().to_vec(), values).unwrap();
    let start = GaussianProcess::new(rbf(1.0, 1.0), &ExactProcessConfig::default()).unwrap();
    let fit = |set: &IndexedSet| {
        let sets = std::slice::from_ref(set);
        start.fit(sets, &FitConfig::default(), Stream::new(1, "none")).unwrap()
    };
    let ((plain, plain_report), (scaled, scaled_report)) = (fit(&data), fit(&moved));
    let expected = plain_report.log_marginal - 25.0 * 10_f64.ln();
    assert_close(scaled_report.log_marginal, expected, 1e-6, "log p");
    assert_close(scaled.log_marginal(&moved).unwrap(), scaled_report.log_marginal, 1e-9, "log p");
    let a = plain.posterior(&data).unwrap().predict(&[0.5]).unwrap();
    let b = scaled.posterior(&moved).unwrap().predict(&[0.5]).unwrap();
    assert_close(b.mean[0], 3.0 + 10.0 * a.mean[0], 1e-5, "mean");
    assert_close(b.variance[0], 100.0 * a.variance[0], 1e-4, "variance");
    // A constant has no scale of its own.
    let constant = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![2.0, 2.0]).unwrap();
    assert!(fit(&constant).1.log_marginal.is_finite());
}

/// Large enough for several threads inside one factorisation.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let data = set(1, 1, 400, 0.1);
    let process = GaussianProcess::new(rbf(1.0, 0.2), &config(1, 1, 0.1)).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| process.log_marginal_gradient(std::slice::from_ref(&data)).unwrap())
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn mistakes_are_refused_with_their_place() {
    let process = GaussianProcess::new(rbf(1.0, 1.0), &config(2, 1, 0.1)).unwrap();
    let message = process.log_marginal(&set(1, 1, 3, 0.0)).unwrap_err().to_string();
    assert_eq!(message, "`location_dim` must be 2, as the process has, found 1");
    let empty = IndexedSet::empty(2, 1).unwrap();
    let posterior = process.posterior(&empty).unwrap();
    assert!(posterior.predict(&[1.0]).unwrap_err().to_string().contains("whole rows of 2"));
    assert!(posterior.predict(&[1.0, f64::NAN]).is_err());
    let fit = |sets: &[IndexedSet], config: FitConfig| {
        process.fit(sets, &config, Stream::new(1, "none")).unwrap_err().to_string()
    };
    assert!(fit(&[empty], FitConfig::default()).contains("at least one element"));
    let reversed = FitConfig { lower_bound: 2.0, upper_bound: 1.0, ..FitConfig::default() };
    assert!(fit(&[set(2, 1, 3, 0.0)], reversed).contains("below upper_bound"));
    assert!(GaussianProcess::new(rbf(1.0, 1.0), &config(0, 1, 0.1)).is_err());
    assert!(GaussianProcess::new(rbf(1.0, 1.0), &config(1, 1, 0.0)).is_err());
    assert!(StudentTProcess::new(rbf(1.0, 1.0), &config(1, 1, 0.1), 2.0).is_err());
}
