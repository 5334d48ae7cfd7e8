//! Latent variable models by Gaussian processes: against GPy, against differences, and what they learn.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::process::gplvm::{BayesianGplvm, Gplvm, LatentMap, principal_components};
use ebp::process::{ExactProcess, Process};
use ebp::rng::Stream;
use ebp::{Error, IndexedSet};

const N: usize = 12;

/// The formulas of `tools/reference/gplvm.py`: latents, values, S, inducing points.
fn formulas() -> [Vec<f64>; 4] {
    let index = |count: usize| (0..count).map(|i| i as f64);
    [
        index(2 * N).map(|i| (1.3 * i + 0.2).sin()).collect(),
        index(3 * N).map(|i| (0.7 * i + 0.1 * i.powf(1.1)).cos()).collect(),
        index(2 * N).map(|i| 0.05 + 0.04 * (1.0 + i.cos())).collect(),
        index(10).map(|i| (0.9 * i + 1.0).sin()).collect(),
    ]
}

fn logs(numbers: &[f64]) -> Vec<f64> {
    numbers.iter().map(|x| x.ln()).collect()
}

/// GPy's exact processes have 1e-8 more noise than they say.
const NOISE: f64 = 0.05 + 1e-8;

fn point(extra: bool) -> Gplvm {
    let [latents, values, ..] = formulas();
    let start = Gplvm::new(latents.clone(), 2, values, 3, [extra; 2], NOISE).unwrap();
    let mut hyper = vec![1.3, 0.7, 1.1];
    if extra {
        hyper.extend([0.4, 0.2]);
    }
    hyper.push(NOISE);
    start.with_parameters(&[latents, logs(&hyper)].concat()).unwrap()
}

fn bayesian() -> BayesianGplvm {
    let [latents, values, variances, inducing] = formulas();
    let start = BayesianGplvm::new(latents.clone(), 2, values, 3, 5, 0.05).unwrap();
    let hyper = logs(&[1.3, 0.7, 1.1, 0.05]);
    start.with_parameters(&[latents, logs(&variances), inducing, hyper].concat()).unwrap()
}

/// GPy 1.15.0 by `tools/reference/gplvm.py`: values, and derivatives by the first location.
#[test]
fn marginals_and_slopes_equal_gpy() {
    let cases = [
        (false, -23.216_270_886_621_253, [4.412_143_832_297_616, -0.894_275_949_958_529_8]),
        (true, -23.911_495_655_901_433, [4.413_329_838_365_656, -1.107_177_704_986_581_6]),
    ];
    for (extra, expected, slopes) in cases {
        let model = point(extra);
        let found = model.objective().unwrap();
        assert!((found.value - expected).abs() < 1e-9, "{} {expected}", found.value);
        assert!((model.log_marginal().unwrap() - expected).abs() < 1e-9);
        for (a, b) in found.gradient.iter().zip(slopes) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }
}

/// The same of the bound; by the first mean and the first inducing point.
#[test]
fn the_bound_and_its_slopes_equal_gpy() {
    let model = bayesian();
    let found = model.objective().unwrap();
    let expected = -165.249_374_269_569_67;
    assert!((found.value - expected).abs() < 1e-6, "{} {expected}", found.value);
    assert_eq!(found.value.to_bits(), model.bound().unwrap().to_bits());
    // Differences of GPy's bound with steps of 1e-5: rounding over the step, 1e-13 · 165/1e-5.
    let by_mean = [14.181_88, -7.172_213];
    let by_inducing = [-16.224_167, -3.999_822];
    let places = found.gradient.iter().zip(by_mean);
    for (a, b) in places.chain(found.gradient[4 * N..].iter().zip(by_inducing)) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

/// Central differences err by h² times a third derivative and by rounding over h: with h = 1e-5 and
/// values of some hundred, 1e-7 of them.
fn check_slopes(model: &impl LatentMap) {
    let (at, found) = (model.parameters(), model.objective().unwrap());
    for (place, slope) in found.gradient.iter().enumerate() {
        let h = 1e-5;
        let moved = |step: f64| {
            let mut parameters = at.clone();
            parameters[place] += step;
            model.with_parameters(&parameters).unwrap().objective().unwrap().value
        };
        let expected = (moved(h) - moved(-h)) / (2.0 * h);
        let error = (slope - expected).abs();
        assert!(error < 2e-5 * (1.0 + expected.abs()), "{place}: {slope} {expected}");
    }
}

#[test]
fn slopes_equal_differences_by_every_parameter() {
    check_slopes(&point(false));
    check_slopes(&point(true));
    check_slopes(&bayesian());
}

/// With z at the locations themselves and S → 0 the bound is the marginal less KL: the sparse
/// approximation is exact where every location has its inducing point.
#[test]
fn the_bound_is_the_marginal_where_nothing_is_approximated() {
    let [latents, values, ..] = formulas();
    let hyper = logs(&[1.3, 0.7, 1.1, 0.05]);
    let s = 1e-9;
    let start = BayesianGplvm::new(latents.clone(), 2, values.clone(), 3, N, 0.05).unwrap();
    let parameters = [latents.clone(), logs(&[s; 2 * N]), latents.clone(), hyper.clone()].concat();
    let bound = start.with_parameters(&parameters).unwrap().bound().unwrap();
    let kl: f64 = latents.iter().map(|m| 0.5 * (m * m + s - s.ln() - 1.0)).sum();
    let exact = Gplvm::new(latents.clone(), 2, values, 3, [false; 2], 0.05).unwrap();
    let exact = exact.with_parameters(&[latents, hyper].concat()).unwrap();
    // The jitter of 1e-8 over the noise of 0.05, for 12 rows of 3.
    let error = (bound + kl - exact.log_marginal().unwrap()).abs();
    assert!(error < 1e-4, "{error}");
}

/// Exchangeable: rows in another order are as likely, and their slopes go with them.
#[test]
fn the_order_of_rows_does_not_matter() {
    let [latents, values, ..] = formulas();
    let order = [7, 3, 10, 0, 5, 1, 9, 2, 8, 4, 6, 11];
    let mixed = |numbers: &[f64], width: usize| -> Vec<f64> {
        order.iter().flat_map(|&i| numbers[i * width..][..width].to_vec()).collect()
    };
    let model = |t: Vec<f64>, x: Vec<f64>| Gplvm::new(t, 2, x, 3, [false; 2], 0.1).unwrap();
    let first = model(latents.clone(), values.clone()).objective().unwrap();
    let second = model(mixed(&latents, 2), mixed(&values, 3)).objective().unwrap();
    assert!((first.value - second.value).abs() < 1e-10 * first.value.abs());
    for (row, &i) in order.iter().enumerate() {
        assert!((second.gradient[2 * row] - first.gradient[2 * i]).abs() < 1e-9);
    }
}

/// A circle in twelve columns by way of sines, with noise.
fn circle(n: usize) -> Vec<f64> {
    let mut noise = vec![0.0_f32; 12 * n];
    Stream::new(3, "noise").fill_normal(0, 0, &mut noise);
    let angles: Vec<f64> = (0..n).map(|i| std::f64::consts::TAU * i as f64 / n as f64).collect();
    let value = |i: usize, d: usize| {
        let phase = 0.5 * d as f64;
        (angles[i] + phase).sin()
            + 0.3 * (2.0 * angles[i] - phase).cos()
            + 0.05 * f64::from(noise[12 * i + d])
    };
    let values = (0..n).flat_map(|i| (0..12).map(move |d| (i, d))).map(|(i, d)| value(i, d));
    values.collect()
}

/// How far, in places along the circle, a row's nearest neighbour among the latents is at most.
fn farthest_neighbour(latents: &[f64]) -> usize {
    let n = latents.len() / 2;
    let far = |i: usize, j: usize| {
        (0..2).map(|d| (latents[2 * i + d] - latents[2 * j + d]).powi(2)).sum::<f64>()
    };
    let steps = |i: usize| {
        let others = (0..n).filter(|&j| j != i);
        let nearest = others.min_by(|&a, &b| far(i, a).total_cmp(&far(i, b))).unwrap();
        let apart = i.abs_diff(nearest);
        apart.min(n - apart)
    };
    (0..n).map(steps).max().unwrap()
}

#[test]
fn both_find_a_circle_and_place_new_rows_on_it() {
    let n = 40;
    let values = circle(n);
    let (start, _) = principal_components(&values, 12, 2).unwrap();
    let fitted = Gplvm::new(start.clone(), 2, values.clone(), 12, [false; 2], 0.1).unwrap();
    let before = fitted.log_marginal().unwrap();
    let (fitted, climb) = fitted.climbed(150).unwrap();
    assert!(climb.value > before + 100.0, "{} {before}", climb.value);
    assert!((fitted.log_marginal().unwrap() - climb.value).abs() < 1e-8 * climb.value.abs());
    // Neighbours are 0.4 apart in the table, its noise moves a difference by 0.05 √24 = 0.24: the next
    // but one may be nearest, the third never.
    assert!(farthest_neighbour(fitted.latents()) <= 2);
    let sparse = BayesianGplvm::new(start, 2, values.clone(), 12, 15, 0.1).unwrap();
    let (sparse, climb) = sparse.climbed(150).unwrap();
    assert!(climb.value > -1e3 && climb.value < fitted.log_marginal().unwrap());
    assert!(farthest_neighbour(sparse.latents()) <= 2);
    // A row of the table comes back to where it is; a new one between its neighbours.
    for conditional in [fitted.conditional().unwrap(), sparse.conditional().unwrap()] {
        let found = conditional.embed(&values[12 * 5..][..12]).unwrap();
        let predicted = conditional.predict(&found.latent).unwrap();
        let error: f64 =
            predicted.mean.iter().zip(&values[60..72]).map(|(a, b)| (a - b).powi(2)).sum();
        // 12 numbers with a standard deviation of 0.05.
        assert!((error / 12.0).sqrt() < 0.1, "{error}");
    }
}

#[test]
fn values_at_latent_locations_are_a_gaussian_process() {
    let model = point(false);
    let rows = IndexedSet::new(2, 3, model.latents().to_vec(), model.values().to_vec()).unwrap();
    let marginal = model.process().log_marginal(&rows).unwrap();
    assert!((marginal - model.log_marginal().unwrap()).abs() < 1e-10);
    let at = IndexedSet::new(2, 3, vec![0.1, -0.3], vec![0.2, 0.4, -0.6]).unwrap();
    let nothing = IndexedSet::empty(2, 3).unwrap();
    let found = model.condition(&nothing).unwrap().log_density(&at).unwrap()[0].value;
    let conditional = model.conditional().unwrap();
    let expected = conditional.log_density(at.value(0), at.location(0)).unwrap();
    assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    // Told the row itself, it is more likely; consistent: log p(a, b) = log p(a) + log p(b | a).
    let told = model.condition(&at).unwrap().log_density(&at).unwrap()[0].value;
    assert!(told > found);
    assert!(model.condition(&IndexedSet::empty(1, 3).unwrap()).is_err());
}

#[test]
fn bad_tables_are_refused_with_what_is_wrong() {
    let message = |error: Error| error.to_string();
    let table = |values: Vec<f64>, latent_dim: usize| {
        let latents = vec![0.5; values.len() / 2 * latent_dim];
        Gplvm::new(latents, latent_dim, values, 2, [false; 2], 0.1).map(|_| ())
    };
    assert!(message(table(vec![1.0, f64::NAN, 2.0, 1.0], 1).unwrap_err()).contains("values[0][1]"));
    assert!(message(table(vec![1.0, 2.0], 1).unwrap_err()).contains("at least 2"));
    assert!(message(table(vec![1.0; 6], 3).unwrap_err()).contains("below 3, the number of rows"));
    assert!(message(table(vec![1.0; 6], 0).unwrap_err()).contains("length_scales"));
    let inducing = BayesianGplvm::new(vec![0.0; 3], 1, vec![1.0; 6], 2, 4, 0.1).unwrap_err();
    assert!(message(inducing).contains("1 to 3"));
    let noise = BayesianGplvm::new(vec![0.0; 3], 1, vec![1.0; 6], 2, 2, 0.0).unwrap_err();
    assert!(message(noise).contains("noise_variance"));
    let model = point(false);
    assert!(model.with_parameters(&[0.0]).is_err());
    let conditional = model.conditional().unwrap();
    assert!(conditional.embed(&[1.0]).is_err());
    assert!(conditional.embed(&[1.0, f64::NAN, 0.0]).is_err());
}
