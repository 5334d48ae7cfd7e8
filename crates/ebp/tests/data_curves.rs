//! The families of curves: draws against densities, densities against one, predictions against
//! laws.

use ebp::IndexedSet;
use ebp::data::CurveFamily;
use ebp::rng::Stream;

fn stream() -> Stream {
    Stream::new(20, "curves")
}

/// Trapezoid over the family's range of values.
fn integrate(family: CurveFamily, density: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = family.value_range();
    let count = 2000;
    let step = (high - low) / f64::from(count);
    (0..=count).map(|k| density(low + step * f64::from(k))).sum::<f64>() * step
}

#[test]
fn densities_integrate_to_one() {
    for family in CurveFamily::ALL {
        let drawn = family.draw(stream(), 1, 6).unwrap();
        let bayes = family.bayes(&drawn.set).unwrap();
        for t in [-1.99, -0.7, 0.0, 1.2] {
            let law = integrate(family, |x| drawn.law.log_density(t, x).exp());
            assert!((law - 1.0).abs() < 1e-9, "{family:?} at {t}: {law}");
            let predictive = integrate(family, |x| bayes.log_density(t, x).exp());
            assert!((predictive - 1.0).abs() < 1e-5, "{family:?} at {t}: {predictive}");
        }
    }
}

/// The mean of −log p over draws is the floor, within 4 standard errors.
#[test]
fn draws_cost_the_floor() {
    for family in CurveFamily::ALL {
        let num_sets = 400;
        let costs: Vec<f64> = (0..num_sets)
            .map(|number| {
                let drawn = family.draw(stream(), number, 50).unwrap();
                let elements = drawn.set.locations().iter().zip(drawn.set.values());
                -elements.map(|(&t, &x)| drawn.law.log_density(t, x)).sum::<f64>() / 50.0
            })
            .collect();
        let (mean, error) = mean_and_error(&costs);
        let floor = family.floor();
        assert!((mean - floor).abs() < 4.0 * error, "{family:?}: {mean} ± {error}, floor {floor}");
        assert!(error < 0.01, "{family:?}: the test sees something");
    }
}

/// χ² of the positions u = ∫^x p, which are uniform if the draws follow the density.
#[test]
fn draws_follow_the_density() {
    for family in CurveFamily::ALL {
        let drawn = family.draw(stream(), 5, 4000).unwrap();
        let mut positions = Vec::new();
        for (&t, &x) in drawn.set.locations().iter().zip(drawn.set.values()) {
            let modes = drawn.law.modes(t);
            // u = mean_b Φ((x − m_b)/σ)
            let u =
                modes.iter().map(|m| normal_cdf((x - m) / 0.1)).sum::<f64>() / modes.len() as f64;
            positions.push(u);
        }
        positions.sort_by(f64::total_cmp);
        let below = |k: u32| positions.partition_point(|&u| u < f64::from(k) / 20.0) as f64;
        // χ² with 19 degrees of freedom: mean 19, standard deviation √38.
        let chi: f64 = (0..20).map(|k| (below(k + 1) - below(k) - 200.0).powi(2) / 200.0).sum();
        assert!(chi < 19.0 + 4.0 * 38_f64.sqrt(), "{family:?}: {chi}");
        let t = drawn.set.locations();
        let mean = t.iter().sum::<f64>() / t.len() as f64;
        // Var U(−2, 2) = 4/3
        assert!(mean.abs() < 4.0 * (4.0 / 3.0 / 4000.0_f64).sqrt(), "{family:?}: {mean}");
    }
}

/// Across sets a draw of the process has mean 0, variance 1 + σ² and the kernel's covariance.
#[test]
fn the_process_has_the_kernels_covariance() {
    let num_sets = 4000_u32;
    let (mut products, mut squares) = (Vec::new(), Vec::new());
    for number in 0..num_sets {
        let law = CurveFamily::Gp.draw(stream(), u64::from(number), 0).unwrap().law;
        let (a, b) = (law.modes(-1.9)[0], law.modes(-1.4)[0]);
        products.push(a * b);
        squares.push(a * a);
    }
    // k(−1.9, −1.4) = exp(−½)
    let (covariance, error) = mean_and_error(&products);
    assert!((covariance - (-0.5_f64).exp()).abs() < 4.0 * error, "{covariance} ± {error}");
    let (variance, error) = mean_and_error(&squares);
    assert!((variance - 1.0).abs() < 4.0 * error, "{variance} ± {error}");
}

/// E log p(x | latent) ≥ E log p(x | context), and more context does not hurt.
#[test]
fn the_best_prediction_lies_between_law_and_prior_and_gains_from_context() {
    for family in [CurveFamily::Gp, CurveFamily::Phase] {
        let num_sets = 120;
        let gain = |short: usize, long: usize| {
            let gains: Vec<f64> = (0..num_sets)
                .map(|number| {
                    let drawn = family.draw(stream(), number, 40 + 20).unwrap();
                    let cost = |n: usize| {
                        let context = drawn.set.select(&(0..n).collect::<Vec<_>>());
                        let bayes = family.bayes(&context).unwrap();
                        -(40..60)
                            .map(|i| {
                                bayes.log_density(drawn.set.location(i)[0], drawn.set.value(i)[0])
                            })
                            .sum::<f64>()
                            / 20.0
                    };
                    cost(short) - cost(long)
                })
                .collect();
            mean_and_error(&gains)
        };
        for (short, long) in [(0, 5), (5, 40)] {
            let (mean, error) = gain(short, long);
            assert!(mean > 4.0 * error, "{family:?} {short} → {long}: {mean} ± {error}");
        }
    }
}

#[test]
fn a_long_context_tells_the_phase() {
    let drawn = CurveFamily::Phase.draw(stream(), 9, 200).unwrap();
    let bayes = CurveFamily::Phase.bayes(&drawn.set).unwrap();
    for t in [-1.5, 0.0, 0.8] {
        let mode = drawn.law.modes(t)[0];
        let difference = bayes.log_density(t, mode) - drawn.law.log_density(t, mode);
        assert!(difference.abs() < 0.05, "{difference} at {t}");
    }
    let wrong = IndexedSet::empty(2, 1).unwrap();
    assert!(CurveFamily::Phase.bayes_log_density(&wrong, 0.0, 0.0).is_err());
}

/// Φ(z) by the trapezoidal rule from −9, exact to 10⁻⁸.
fn normal_cdf(z: f64) -> f64 {
    if z < -8.0 {
        return 0.0;
    }
    if z > 8.0 {
        return 1.0;
    }
    let count = 400;
    let step = (z + 9.0) / f64::from(count);
    let density = |y: f64| (-0.5 * y * y).exp() / std::f64::consts::TAU.sqrt();
    let inner: f64 = (1..count).map(|k| density(-9.0 + step * f64::from(k))).sum();
    step * (inner + 0.5 * density(z))
}

fn mean_and_error(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
