//! Point patterns against spatstat, dppy, closed forms and balance equations.
//!
//! Reference values: `tools/reference/point_patterns.R` (R 4.2.2, spatstat.model 3.2-1, spatstat.explore 3.0-6,
//! spatstat.random 3.1-3) and `tools/reference/dpp.py` (dppy 0.3.3, NumPy 2.4.6).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::f64::consts::PI;

use ebp::experiment::outcome::judge;
use ebp::model::{Data, Device, Model, Settings, TrainOptions};
use ebp::pattern::{
    ChainSettings, DppKernel, Ensemble, Envelope, Events, Family, Gibbs, Hawkes, Interaction,
    LikelihoodSettings, Pattern, Regression, Residual, StationaryDpp, Summary, Trend, Window,
    exponential_test, fit, log_partition, maximum_likelihood, simulate,
};
use ebp::rng::Stream;

/// Ripley's (1977) centres of 42 cells in a unit square: `cells` of spatstat, file `cells.dat`.
const CELLS: [[f64; 2]; 42] = [
    [0.35, 0.025],
    [0.487, 0.087],
    [0.637, 0.05],
    [0.775, 0.025],
    [0.825, 0.125],
    [0.087, 0.187],
    [0.237, 0.15],
    [0.4, 0.162],
    [0.575, 0.212],
    [0.737, 0.237],
    [0.062, 0.362],
    [0.212, 0.337],
    [0.325, 0.287],
    [0.45, 0.287],
    [0.65, 0.362],
    [0.9, 0.262],
    [0.337, 0.462],
    [0.462, 0.425],
    [0.6, 0.475],
    [0.8, 0.387],
    [0.938, 0.4],
    [0.15, 0.5],
    [0.35, 0.6],
    [0.562, 0.575],
    [0.725, 0.512],
    [0.862, 0.525],
    [0.987, 0.512],
    [0.062, 0.75],
    [0.175, 0.65],
    [0.337, 0.75],
    [0.462, 0.75],
    [0.525, 0.65],
    [0.737, 0.687],
    [0.862, 0.637],
    [0.237, 0.787],
    [0.637, 0.812],
    [0.775, 0.85],
    [0.9, 0.775],
    [0.175, 0.912],
    [0.35, 0.962],
    [0.462, 0.9],
    [0.625, 0.95],
];

fn cells() -> Pattern {
    Pattern::new(Window::unit(), CELLS.to_vec()).unwrap()
}

fn family(interaction: Interaction) -> Family {
    Family { trend: Trend::Constant, interaction }
}

fn chain() -> ChainSettings {
    ChainSettings::for_points(20)
}

fn strauss(beta: f64, gamma: f64, radius: f64) -> Gibbs {
    let family = family(Interaction::Strauss { radius });
    Gibbs::new(family, Window::unit(), vec![beta.ln(), gamma.ln()]).unwrap()
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (square / (n * (n - 1.0))).sqrt())
}

/// Coefficients and log pseudolikelihood of `ppm`; Newton's methods of both end within 10⁻⁷.
#[test]
fn pseudolikelihood_fits_are_those_of_spatstat() {
    let cases: [(Interaction, Trend, &[f64], f64); 7] = [
        (Interaction::None, Trend::Constant, &[3.737_669_618], 114.982_124),
        (
            Interaction::None,
            Trend::LogLinear,
            &[3.712_738_311, 0.228_960_172_9, -0.186_354_43],
            115.134_342_4,
        ),
        (
            Interaction::Strauss { radius: 0.1 },
            Trend::Constant,
            &[7.037_146_952, -5.293_950_168],
            152.415_067_3,
        ),
        (
            Interaction::Strauss { radius: 0.1 },
            Trend::LogLinear,
            &[7.524_563_545, -0.306_321_395_6, -0.641_019_522_9, -5.327_988_587],
            152.759_930_5,
        ),
        (Interaction::HardCore { radius: 0.08 }, Trend::Constant, &[5.533_877_889], 149.617_970_3),
        (
            Interaction::StraussHardCore { radius: 0.12, hard_core: 0.08 },
            Trend::Constant,
            &[7.769_439_19, -1.712_053_575],
            162.230_215_2,
        ),
        (
            Interaction::Geyer { radius: 0.12, saturation: 2.0 },
            Trend::Constant,
            &[7.428_042_148, -1.469_212_723],
            62.995_569_79,
        ),
    ];
    for (interaction, trend, coefficients, value) in cases {
        let family = Family { trend, interaction };
        let found = fit(&family, &[cells()], Regression::Pseudolikelihood).unwrap();
        for (a, b) in found.model.coefficients().iter().zip(coefficients) {
            assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{interaction:?}: {a} {b}");
        }
        assert!((found.objective - value).abs() < 1e-6 * value, "{interaction:?}: {found:?}");
    }
}

/// spatstat counts areas on a grid, ours are exact: its coefficients are good to a few per cent of their
/// standard errors, 0.52 and 3.6.
#[test]
fn the_area_interaction_is_near_spatstats_grid() {
    let family = family(Interaction::Area { radius: 0.06 });
    let found = fit(&family, &[cells()], Regression::Pseudolikelihood).unwrap();
    let [a, b] = found.model.coefficients() else { panic!("two coefficients") };
    assert!(
        (a - 7.647_154).abs() < 0.05 * 0.516_8 && (b + 22.943_56).abs() < 0.06 * 3.593,
        "{a} {b}"
    );
}

/// `ppm(quadscheme.logi(cells, grid), method = "logi")` with the same dummy points.
#[test]
fn logistic_fits_are_those_of_spatstat() {
    let family = family(Interaction::Strauss { radius: 0.1 });
    let found = fit(&family, &[cells()], Regression::Logistic).unwrap();
    let [a, b] = found.model.coefficients() else { panic!("two coefficients") };
    assert!((a - 7.848_225_825).abs() < 1e-6 && (b + 6.135_021_91).abs() < 1e-6, "{a} {b}");
}

/// `Kest`, `pcf`, `Gest` and `Fest` of cells. pcf interpolates a density on a grid; Fest measures distances
/// between pixels of 1/400, where F is at most 11 steep.
#[test]
fn summaries_are_those_of_spatstat() {
    let at = [0.0537, 0.1037, 0.1537];
    let cases = [
        (Summary::K, [0.0, 0.001_303_853_6, 0.065_372_222_3], 1e-9),
        (Summary::PairCorrelation, [0.0, 0.444_864_81, 1.848_849_7], 1e-3),
        (Summary::Nearest, [0.0, 0.060_606_061, 1.0], 1e-8),
        (Summary::EmptySpace, [0.401_744_1, 0.991_205_26, 1.0], 11.0 / 400.0),
    ];
    for (summary, expected, tolerance) in cases {
        let found = summary.of(&cells(), &at).unwrap();
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < tolerance, "{}: {found:?} {expected:?}", summary.name());
        }
    }
}

/// ℓ = n log β − β |W| for a constant intensity, and the closed integral of a trend.
#[test]
fn poisson_likelihoods_are_closed_forms() {
    let constant = Gibbs::new(family(Interaction::None), Window::unit(), vec![3.0]).unwrap();
    let expected = 42.0 * 3.0 - 3_f64.exp();
    assert!((constant.poisson_log_likelihood(&cells()).unwrap() - expected).abs() < 1e-10);
    let trend = Family { trend: Trend::LogLinear, interaction: Interaction::None };
    let model = Gibbs::new(trend, Window::unit(), vec![3.0, 0.7, -1.2]).unwrap();
    let sum: f64 = CELLS.iter().map(|[x, y]| 3.0 + 0.7 * x - 1.2 * y).sum();
    let integral = 3_f64.exp() * (0.7_f64.exp_m1() / 0.7) * ((-1.2_f64).exp_m1() / -1.2);
    let found = model.poisson_log_likelihood(&cells()).unwrap();
    assert!((found - (sum - integral)).abs() < 1e-10);
}

#[test]
fn strauss_with_gamma_one_is_poisson() {
    let model = strauss(42.0, 1.0, 0.1);
    for value in model.intensities(&cells(), &Window::unit().grid(5, 5)) {
        assert!((value - 42.0).abs() < 1e-9);
    }
    // Its normaliser too: log Z = β |W|.
    let effort = LikelihoodSettings {
        num_patterns: 800,
        num_chains: 8,
        num_rounds: 1,
        ..Default::default()
    };
    let (log_z, error) = log_partition(&model, 42, &effort, Stream::new(1, "z")).unwrap();
    assert!((log_z - 42.0).abs() < 4.0 * error && error < 1.0, "{log_z} {error}");
}

/// Any order of the points, and any number of them: λ is the ratio of densities.
#[test]
fn densities_do_not_know_an_order_and_intensities_are_their_ratios() {
    let interactions = [
        Interaction::Strauss { radius: 0.2 },
        Interaction::Geyer { radius: 0.2, saturation: 3.0 },
        Interaction::Area { radius: 0.15 },
        Interaction::Pairwise { reach: 0.3, num_knots: 4 },
    ];
    for interaction in interactions {
        let family = family(interaction);
        let coefficients = (0..family.num_coefficients()).map(|j| 0.3 * (j as f64 - 1.5)).collect();
        let model = Gibbs::new(family, Window::unit(), coefficients).unwrap();
        for count in [1, 2, 7, 20] {
            let points = CELLS[..count].to_vec();
            let order = Stream::new(1, "order").permutation(count);
            let mixed = order.iter().map(|&i| points[i]).collect();
            let pattern = Pattern::new(Window::unit(), points.clone()).unwrap();
            let mixed = Pattern::new(Window::unit(), mixed).unwrap();
            let density = model.log_density_up_to_constant(&pattern);
            let other = model.log_density_up_to_constant(&mixed);
            assert!((density - other).abs() < 1e-10, "{interaction:?}");
            let fewer = Pattern::new(Window::unit(), points[1..].to_vec()).unwrap();
            let ratio = density - model.log_density_up_to_constant(&fewer);
            assert!((model.intensity(&fewer, points[0]).ln() - ratio).abs() < 1e-10);
            assert!((model.intensities_of_points(&pattern)[0].ln() - ratio).abs() < 1e-10);
        }
    }
}

/// Georgii, Nguyen and Zessin: E Σ h(x, X∖x) = E ∫ λ(u, X) h(u, X) du, with h = 1 and h = exp(−t(u, X)); the
/// integral by 12 × 12 places shifted at random, which is unbiased.
#[test]
fn simulated_patterns_balance() {
    let models = [
        strauss(60.0, 0.4, 0.1),
        Gibbs::new(
            family(Interaction::Geyer { radius: 0.08, saturation: 1.0 }),
            Window::unit(),
            vec![3.2, 0.5],
        )
        .unwrap(),
        Gibbs::new(family(Interaction::Area { radius: 0.06 }), Window::unit(), vec![3.2, 1.0])
            .unwrap(),
    ];
    for model in models {
        let chain = ChainSettings { num_steps: 8000, most_points: 2000, ..chain() };
        let drawn = simulate(&model, 150, &chain, Stream::new(5, "balance")).unwrap();
        let theta = model.coefficients()[1];
        let base = model.coefficients()[0];
        for power in [0.0, 1.0] {
            // exp(−t) is a function of λ itself, since log λ = base + θ t.
            let h = |intensity: f64| (-power * (intensity.ln() - base) / theta).exp();
            let gaps: Vec<f64> = drawn
                .iter()
                .enumerate()
                .map(|(number, pattern)| {
                    let points = model.intensities_of_points(pattern);
                    let sum: f64 = points.iter().map(|&l| h(l)).sum();
                    let mut shift = [0.0_f32; 2];
                    Stream::new(6, "shift").fill_uniform(0, 2 * number as u64, &mut shift);
                    let wrap = |x: f64, s: f32| (x + f64::from(s)).fract();
                    let places: Vec<[f64; 2]> = Window::unit()
                        .grid(12, 12)
                        .into_iter()
                        .map(|[x, y]| [wrap(x, shift[0]), wrap(y, shift[1])])
                        .collect();
                    let values = model.intensities(pattern, &places);
                    sum - values.iter().map(|&l| l * h(l)).sum::<f64>() / values.len() as f64
                })
                .collect();
            let (mean, error) = mean_and_error(&gaps);
            assert!(mean.abs() < 4.0 * error, "{:?} {power}: {mean} {error}", model.family());
        }
    }
}

/// Two points in a window that one pair fills: P(n) ∝ β^n/n! γ^{n(n−1)/2}, in closed form.
#[test]
fn numbers_of_points_have_their_law_where_all_are_neighbours() {
    let model = strauss(2.0, 0.3, 2.0);
    let chain = ChainSettings { num_steps: 300, most_points: 100, ..chain() };
    let drawn = simulate(&model, 4000, &chain, Stream::new(2, "small")).unwrap();
    let weights: Vec<f64> = (0..12_i32)
        .map(|n| {
            let factorial: f64 = (1..=n).map(f64::from).product();
            2_f64.powi(n) / factorial * 0.3_f64.powi(n * (n - 1) / 2)
        })
        .collect();
    let total: f64 = weights.iter().sum();
    for (n, weight) in weights.iter().enumerate().take(4) {
        let share = weight / total;
        let found = drawn.iter().filter(|p| p.points().len() == n).count() as f64 / 4000.0;
        let error = (share * (1.0 - share) / 4000.0).sqrt();
        assert!((found - share).abs() < 4.0 * error, "{n}: {found} {share}");
    }
}

/// 1,000 patterns of `rStrauss` (exact): count 54.693 (0.188), K(0.05) 0.003069 (0.000043), K(0.1) 0.023030
/// (0.000114). Ours: 200 patterns; three standard errors of both together.
#[test]
fn strauss_patterns_are_those_of_spatstat() {
    let chain = ChainSettings { num_steps: 20_000, most_points: 3000, ..chain() };
    let drawn =
        simulate(&strauss(100.0, 0.3, 0.07), 200, &chain, Stream::new(1, "strauss")).unwrap();
    let row = |pattern: &Pattern| {
        let k = Summary::K.of(pattern, &[0.05, 0.1]).unwrap();
        [pattern.points().len() as f64, k[0], k[1]]
    };
    let rows: Vec<[f64; 3]> = drawn.iter().map(row).collect();
    let golden = [(54.693, 0.188_144), (0.003_069, 0.000_043), (0.023_03, 0.000_114)];
    for (column, (expected, other)) in golden.into_iter().enumerate() {
        let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        let (mean, error) = mean_and_error(&values);
        assert!(
            (mean - expected).abs() < 3.0 * f64::hypot(error, other),
            "{column}: {mean} {error}"
        );
    }
}

#[test]
fn simulation_does_not_depend_on_threads() {
    let draw = || {
        let chain = ChainSettings { num_steps: 2000, most_points: 1000, ..chain() };
        simulate(&strauss(50.0, 0.5, 0.1), 5, &chain, Stream::new(3, "threads")).unwrap()
    };
    let one = rayon_pool(1).install(draw);
    assert_eq!(one, rayon_pool(4).install(draw));
}

fn rayon_pool(count: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap()
}

/// The maximum likelihood of many patterns is near what they were drawn with.
#[test]
fn maximum_likelihood_finds_the_coefficients() {
    let truth = strauss(80.0, 0.4, 0.08);
    let chain = ChainSettings { num_steps: 15_000, most_points: 2000, ..chain() };
    let drawn = simulate(&truth, 12, &chain, Stream::new(9, "truth")).unwrap();
    let start = fit(truth.family(), &drawn, Regression::Pseudolikelihood).unwrap().model;
    let effort = LikelihoodSettings {
        num_patterns: 400,
        num_chains: 8,
        num_rounds: 4,
        ..Default::default()
    };
    let found = maximum_likelihood(&start, &drawn, &effort, Stream::new(1, "mc")).unwrap();
    for (j, (a, b)) in found.model.coefficients().iter().zip(truth.coefficients()).enumerate() {
        let error = found.standard_errors[j].hypot(found.monte_carlo_errors[j]);
        assert!((a - b).abs() < 3.0 * error && error < 0.4, "{j}: {a} {b} {error}");
    }
}

#[test]
fn residuals_of_a_fit_without_interaction_sum_to_nothing() {
    let found = fit(&family(Interaction::None), &[cells()], Regression::Pseudolikelihood).unwrap();
    for kind in [Residual::Raw, Residual::Inverse, Residual::Pearson] {
        let sum: f64 = kind.of_quadrats(&found.model, &cells(), 3).unwrap().iter().sum();
        assert!(sum.abs() < 1e-9, "{kind:?} {sum}");
    }
}

/// Patterns of the model itself have uniform p-values: 40 of them, none out of place.
#[test]
fn envelopes_hold_what_was_drawn_from_the_model() {
    let model = Gibbs::new(family(Interaction::None), Window::unit(), vec![40_f64.ln()]).unwrap();
    let chain = ChainSettings { num_steps: 1, most_points: 1000, ..chain() };
    let all = simulate(&model, 40 * 20, &chain, Stream::new(8, "envelope")).unwrap();
    let distances: Vec<f64> = (1..=20).map(|k| 0.01 * f64::from(k)).collect();
    let values: Vec<f64> = all
        .chunks_exact(20)
        .map(|group| {
            Envelope::new(Summary::L, &group[..1], &group[1..], &distances).unwrap().p_value
        })
        .collect();
    let (mean, _) = mean_and_error(&values);
    // Uniform on 1/20, …, 1: mean 0.525, standard deviation √((20² − 1)/12)/20.
    let error = (399.0_f64 / 12.0).sqrt() / 20.0 / 40_f64.sqrt();
    assert!((mean - 0.525).abs() < 4.0 * error, "{mean}");
    let clustered = Envelope::new(Summary::L, &[cells()], &all[..99], &distances).unwrap();
    assert!(clustered.p_value < 0.02, "cells are regular: {}", clustered.p_value);
}

fn ensemble() -> Ensemble {
    let quality = |i: usize| 0.6 + 0.1 * i as f64;
    let entry = |i: usize, j: usize| {
        let away = i as f64 - j as f64;
        (-away * away / 8.0).exp() * quality(i) * quality(j)
    };
    let kernel = (0..36).map(|place| entry(place / 6, place % 6)).collect();
    Ensemble::new(kernel, 6).unwrap()
}

/// `dpp.py`.
#[test]
fn finite_dpps_have_dppys_likelihoods() {
    let law = ensemble();
    let golden: [(&[usize], f64); 5] = [
        (&[], -2.456_547_475_831),
        (&[2], -2.902_834_578_459),
        (&[0, 5], -3.289_510_683_619),
        (&[1, 2, 4], -5.965_144_043_596),
        (&[0, 2, 3, 5], -7.265_736_534_943),
    ];
    for (subset, expected) in golden {
        assert!((law.log_likelihood(subset).unwrap() - expected).abs() < 1e-8, "{subset:?}");
    }
    let of_size = law.log_likelihood_of_size(&[1, 2, 4]).unwrap();
    assert!((of_size + 3.728_768_432_621).abs() < 1e-8, "{of_size}");
    let inclusion = [
        0.198_401_527_411,
        0.205_603_496_489,
        0.222_420_799_63,
        0.243_118_560_869,
        0.274_907_298_233,
        0.413_820_574_507,
    ];
    for (a, b) in law.inclusion().iter().zip(inclusion) {
        assert!((a - b).abs() < 1e-8, "{a} {b}");
    }
    // All subsets, and all of one size, have probability 1 together.
    let subsets =
        (0..64_usize).map(|bits| (0..6).filter(|i| bits >> i & 1 == 1).collect::<Vec<_>>());
    let total: f64 = subsets.clone().map(|s| law.log_likelihood(&s).unwrap().exp()).sum();
    assert!((total - 1.0).abs() < 1e-10);
    let threes = subsets.filter(|s| s.len() == 3);
    let total: f64 = threes.map(|s| law.log_likelihood_of_size(&s).unwrap().exp()).sum();
    assert!((total - 1.0).abs() < 1e-10);
}

/// Frequencies of items and of whole subsets, three standard errors; dppy's own frequencies of 20,000 draws
/// in `dpp.py` are as near.
#[test]
fn finite_dpps_are_sampled_with_their_probabilities() {
    let law = ensemble();
    let count = 20_000_u64;
    let stream = Stream::new(1, "dpp");
    let check = |found: usize, share: f64, what: &str| {
        let (n, found) = (count as f64, found as f64 / count as f64);
        let error = (share * (1.0 - share) / n).sqrt();
        assert!((found - share).abs() < 3.0 * error, "{what}: {found} {share}");
    };
    let drawn: Vec<Vec<usize>> = (0..count).map(|k| law.sample(stream.child(k))).collect();
    for (item, share) in law.inclusion().into_iter().enumerate() {
        let found = drawn.iter().filter(|s| s.contains(&item)).count();
        check(found, share, "item");
    }
    for subset in [vec![], vec![2], vec![0, 5]] {
        let found = drawn.iter().filter(|s| **s == subset).count();
        check(found, law.log_likelihood(&subset).unwrap().exp(), "subset");
    }
    let drawn: Vec<Vec<usize>> =
        (0..count).map(|k| law.sample_of_size(3, stream.child(count + k)).unwrap()).collect();
    assert!(drawn.iter().all(|subset| subset.len() == 3));
    for subset in [vec![1, 2, 4], vec![0, 3, 5]] {
        let found = drawn.iter().filter(|s| **s == subset).count();
        check(found, law.log_likelihood_of_size(&subset).unwrap().exp(), "three");
    }
}

/// Wilks (1938): 2 n (ℓ at the maximum − ℓ of the truth) is χ² of as many degrees as L has free entries, 21,
/// whose standard deviation is √42; and every entry is within four of its standard errors. From a kernel that
/// is nearly diagonal the climb finds the same maximum.
#[test]
fn kernels_are_learned_to_within_their_errors() {
    let law = ensemble();
    let stream = Stream::new(2, "subsets");
    let count = 4000;
    let subsets: Vec<Vec<usize>> = (0..count).map(|k| law.sample(stream.child(k))).collect();
    let found = Ensemble::fit(&subsets, 6).unwrap();
    let of_truth = subsets.iter().map(|subset| law.log_likelihood(subset).unwrap()).sum::<f64>();
    let gain = 2.0 * (count as f64 * found.log_likelihood - of_truth);
    assert!(gain > 0.0 && (gain - 21.0).abs() < 4.0 * 42_f64.sqrt(), "{gain}");
    assert!(found.log_likelihood >= found.start_log_likelihood);
    let errors = found.law.standard_errors(&subsets).unwrap();
    let entry = |i: usize, j: usize| found.law.kernel()[6 * i + j];
    for i in 0..6 {
        for j in 0..6 {
            // The signs of items are free: those of the truth have a positive first row.
            let turned = entry(i, j) * entry(0, i).signum() * entry(0, j).signum();
            let (expected, error) = (law.kernel()[6 * i + j], errors[6 * i + j]);
            assert!(
                (turned - expected).abs() < 4.0 * error,
                "{i} {j}: {turned} {expected} {error}"
            );
            assert!(error < 0.2, "{i} {j}: {error}");
        }
    }
    let entry = |place: usize| if place.is_multiple_of(7) { 0.51 } else { 0.01 };
    let diagonal = Ensemble::new((0..36).map(entry).collect(), 6).unwrap();
    let again = diagonal.learned(&subsets).unwrap();
    assert!((again.log_likelihood - found.log_likelihood).abs() < 1e-7, "{again:?} {found:?}");
    assert!(Ensemble::fit(&[], 6).is_err() && Ensemble::fit(&[vec![6]], 6).is_err());
}

/// E n = ρ |W| and the pair correlation 1 − R², told by K: K(r) = π r² − ½ π α² (1 − exp(−2 r²/α²)). The
/// periodic process is stationary on the torus, so that pairs are counted there.
#[test]
fn gaussian_dpps_have_their_intensity_and_pairs() {
    let (rho, alpha) = (50.0, 0.06);
    let model = StationaryDpp::new(DppKernel::Gaussian, 1.0, [rho, alpha], Window::unit()).unwrap();
    let radius = 0.08_f64;
    let (mut counts, mut pairs) = (Vec::new(), Vec::new());
    for number in 0..150 {
        let pattern = model.simulate(Stream::new(1, "gauss").child(number)).unwrap();
        let points = pattern.points();
        counts.push(points.len() as f64);
        let wrapped = |a: f64, b: f64| (a - b).abs().min(1.0 - (a - b).abs());
        let close =
            |a: &[f64; 2], b: &[f64; 2]| wrapped(a[0], b[0]).hypot(wrapped(a[1], b[1])) < radius;
        let found: usize = points
            .iter()
            .enumerate()
            .map(|(i, a)| points[..i].iter().filter(|b| close(a, b)).count())
            .sum();
        pairs.push(2.0 * found as f64);
    }
    let (mean, error) = mean_and_error(&counts);
    assert!((mean - rho).abs() < 4.0 * error, "{mean} {error}");
    let k = PI * radius * radius
        - 0.5 * PI * alpha * alpha * -(-2.0 * radius * radius / (alpha * alpha)).exp_m1();
    let (mean, error) = mean_and_error(&pairs);
    assert!((mean - rho * rho * k).abs() < 4.0 * error, "{mean} {} {error}", rho * rho * k);
}

/// The likelihood of one point of a process on the torus: exp(Σ log(1 − φ)) Σ φ/(1 − φ)/|W|; and scales that
/// are right have more of it than wrong ones.
#[test]
fn dpp_likelihoods_prefer_the_truth() {
    let limit = StationaryDpp::greatest_scale(DppKernel::Gaussian, 1.0, 50.0);
    let truth = [50.0, 0.6 * limit];
    let model = StationaryDpp::new(DppKernel::Gaussian, 1.0, truth, Window::unit()).unwrap();
    let drawn: Vec<Pattern> =
        (0..12).map(|k| model.simulate(Stream::new(3, "fit").child(k)).unwrap()).collect();
    let found = StationaryDpp::fit(DppKernel::Gaussian, 1.0, &drawn).unwrap();
    let error = found.scale_error.unwrap();
    assert!((found.model.parameters()[1] - truth[1]).abs() < 3.0 * error, "{found:?}");
    assert!((found.model.parameters()[0] - 50.0).abs() < 3.0 * found.intensity_error);
    let twice = Pattern::new(Window::unit(), vec![[0.5, 0.5]; 2]).unwrap();
    assert!(model.log_likelihood(&twice).unwrap() < f64::MIN);
}

/// The recursion against the double sum, and gradients against differences.
#[test]
fn hawkes_likelihoods_equal_their_double_sum() {
    let law = Hawkes { background: 0.7, branching: 0.5, decay: 1.6 };
    let events = law.simulate(60.0, Stream::new(1, "hawkes")).unwrap();
    let slow = |law: &Hawkes| {
        let rates = events.times().iter().map(|&t| law.intensity(&events, t).ln());
        let brought = |t: &f64| law.branching * (1.0 - (-law.decay * (60.0 - t)).exp());
        rates.sum::<f64>() - 60.0 * law.background - events.times().iter().map(brought).sum::<f64>()
    };
    let (value, gradient) = law.log_likelihood(&events);
    assert!((value - slow(&law)).abs() < 1e-9, "{value}");
    let step = 1e-5;
    let sides = [[step, 0.0, 0.0], [0.0, step, 0.0], [0.0, 0.0, step]];
    for ([a, b, c], expected) in sides.into_iter().zip(gradient) {
        let at = |sign: f64| {
            slow(&Hawkes {
                background: law.background + sign * a,
                branching: law.branching + sign * b,
                decay: law.decay + sign * c,
            })
        };
        let found = (at(1.0) - at(-1.0)) / (2.0 * step);
        assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{found} {expected}");
    }
    // Λ of all gaps and of what follows is ∫ λ.
    let total: f64 = law.rescaled_gaps(&events).iter().sum();
    let rates: f64 = events.times().iter().map(|&t| law.intensity(&events, t).ln()).sum();
    let last = events.times().last().unwrap();
    let left: f64 = events
        .times()
        .iter()
        .map(|t| (-law.decay * (last - t)).exp() - (-law.decay * (60.0 - t)).exp())
        .sum();
    let after = law.background * (60.0 - last) + law.branching * left;
    assert!((rates - total - after - value).abs() < 1e-9);
}

#[test]
fn hawkes_fits_find_the_truth_and_rescale_time() {
    let law = Hawkes { background: 0.5, branching: 0.6, decay: 2.0 };
    // Twelve series: the mean of each coefficient within four of its standard errors.
    let series: Vec<Events> = (0..12)
        .map(|number| law.simulate(400.0, Stream::new(2, "hawkes").child(number)).unwrap())
        .collect();
    let fits: Vec<Hawkes> =
        series.iter().map(|events| Hawkes::fit(events).unwrap().model).collect();
    let coefficients = |h: &Hawkes| [h.background, h.branching, h.decay];
    for (number, truth) in coefficients(&law).into_iter().enumerate() {
        let found: Vec<f64> = fits.iter().map(|h| coefficients(h)[number]).collect();
        let (mean, error) = mean_and_error(&found);
        assert!((mean - truth).abs() < 4.0 * error && error < 0.2, "{mean} {truth} {error}");
    }
    let (events, found) = (&series[0], &fits[0]);
    // Under the truth the test accepts; a Poisson process of the same rate is refused.
    assert!(exponential_test(&law.rescaled_gaps(events)).1 > 0.01);
    let rate = events.times().len() as f64 / 400.0;
    let poisson = Hawkes { background: rate, branching: 1e-9, decay: 1.0 };
    assert!(exponential_test(&poisson.rescaled_gaps(events)).1 < 1e-6);
    // Any unit of time gives the same process.
    let slower = Events::new(events.times().iter().map(|t| 100.0 * t).collect(), 40_000.0).unwrap();
    let again = Hawkes::fit(&slower).unwrap();
    assert!((again.model.branching - found.branching).abs() < 1e-4, "{again:?}");
}

#[test]
fn bad_input_is_an_error_that_says_what_to_do() {
    let window = Window::unit();
    let message = |result: ebp::Result<ebp::pattern::Fit>| {
        let error = result.unwrap_err();
        format!("{error} {}", error.help().unwrap_or_default())
    };
    assert!(Pattern::new(window, vec![[f64::NAN, 0.5]]).is_err());
    assert!(Pattern::new(window, vec![[0.5, 1.001]]).is_err());
    let empty = Pattern::new(window, Vec::new()).unwrap();
    let poisson = family(Interaction::None);
    let text = message(fit(&poisson, std::slice::from_ref(&empty), Regression::Pseudolikelihood));
    assert!(text.contains("no points"), "{text}");
    assert!(fit(&poisson, &[], Regression::Pseudolikelihood).is_err());
    let twice = Pattern::new(window, vec![[0.5, 0.5], [0.5, 0.5], [0.2, 0.9]]).unwrap();
    assert_eq!(twice.num_duplicates(), 1);
    let core = family(Interaction::HardCore { radius: 0.05 });
    let text = message(fit(&core, &[twice], Regression::Pseudolikelihood));
    assert!(text.contains("1 duplicate"), "{text}");
    let narrow = family(Interaction::Strauss { radius: 0.05 });
    let text = message(fit(&narrow, &[cells()], Regression::Pseudolikelihood));
    assert!(text.contains("lengthen it"), "{text}");
    let wide = family(Interaction::Strauss { radius: 0.6 });
    let text = message(fit(&wide, &[cells()], Regression::Pseudolikelihood));
    assert!(text.contains("edge of its window"), "{text}");
    let chain = ChainSettings::for_points(10);
    let error = simulate(&strauss(10.0, 1.5, 0.1), 1, &chain, Stream::new(1, "x")).unwrap_err();
    assert!(error.help().unwrap().contains("geyer"));
    let attracting = Gibbs::new(
        family(Interaction::Pairwise { reach: 0.5, num_knots: 2 }),
        window,
        vec![5.0, 2.0, 2.0],
    )
    .unwrap();
    let error = simulate(&attracting, 1, &chain, Stream::new(1, "x")).unwrap_err();
    assert!(error.to_string().contains("grew beyond"), "{error}");
    assert!(Gibbs::new(poisson, window, vec![f64::NAN]).is_err());
    assert!(
        Gibbs::new(family(Interaction::Strauss { radius: -1.0 }), window, vec![0.0; 2]).is_err()
    );
    assert!(Events::new(vec![1.0, 1.0], 3.0).is_err());
    assert!(Events::new(vec![1.0], 0.5).is_err());
    assert!(
        Hawkes { background: 1.0, branching: 1.0, decay: 1.0 }
            .simulate(1.0, Stream::new(1, "x"))
            .is_err()
    );
    assert!(Ensemble::new(vec![1.0, 2.0, 2.0, 1.0], 2).is_err());
    assert!(ensemble().sample_of_size(7, Stream::new(1, "x")).is_err());
    assert!(ensemble().log_likelihood(&[1, 1]).is_err());
    assert!(Summary::K.of(&cells(), &[0.2, 0.1]).is_err());
}

/// Every preset goes from settings to a model, a report and pictures, twice to the same bits, and takes new
/// patterns from it.
#[test]
fn presets_train_report_and_sample() {
    let changes = ["data.num_patterns=2", "evaluation.num_errors=4", "evaluation.num_envelope=3"];
    for preset in
        ["poisson", "strauss", "hardcore", "geyer", "area", "pairwise", "deepsets", "dpp", "hawkes"]
    {
        let settings = Settings::preset(preset, &changes).unwrap();
        let data = Data::load(&settings).unwrap();
        let train = || Model::train_on(settings.clone(), &data, TrainOptions::default()).unwrap();
        let model = train();
        assert_eq!(model.name(), preset);
        let findings = judge(&model, &data, &Device::cpu()).unwrap();
        let report = serde_json::to_value(&findings.report).unwrap();
        assert!(report["coefficients"][0]["truth"].is_number(), "{report}");
        let has = |key: &str| report[key].is_number();
        assert!(has("log_likelihood") != has("log_pseudolikelihood"), "{report}");
        assert!(!findings.pictures.is_empty());
        let again = judge(&train(), &data, &Device::cpu()).unwrap();
        let other = serde_json::to_value(&again.report).unwrap();
        assert_eq!(report["coefficients"], other["coefficients"]);
        let folder = tempfile::tempdir().unwrap();
        let patterns = model.patterns().unwrap();
        let counts = patterns.write_samples(folder.path(), 2, Stream::new(1, "new")).unwrap();
        assert_eq!(counts.len(), 2);
        if preset == "strauss" {
            let source = format!("data.source={:?}", folder.path().display().to_string());
            let settings = Settings::preset("poisson", &[source]).unwrap();
            assert!(matches!(Data::load(&settings), Ok(Data::Patterns(_))));
        }
        assert!(model.curves().is_err());
    }
    for change in ["method=logistic", "interaction.trend=true", "data.num_patterns=0"] {
        let settings = Settings::preset("dpp", &[change]).unwrap();
        assert!(Data::load(&settings).is_err(), "{change}");
    }
}
