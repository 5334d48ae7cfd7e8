//! Parameters of a Dirichlet law from what it has drawn (Minka, 2000).
//!
//! ```text
//! from E log θ     Newton: gradient g_k = N (ψ(Σα) − ψ(α_k)) + s_k, Hessian diag(−N ψ′(α_k)) + N ψ′(Σα) 1 1ᵀ,
//!                  inverted in linear time: Δ_k = (g_k − b)/h_k, b = Σ(g/h) / (1/z + Σ 1/h)
//! from counts      fixed point: α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(n_d + Σα) − ψ(Σα)]
//! ```
//!
//! Differences of ψ by a whole number are sums of 1/(α + j), so that a histogram of the counts gives a
//! round of the fixed point in the time of its largest count (Wallach, 2008).

use crate::process::special::{digamma, trigamma};

/// No parameter becomes smaller: a topic that nobody uses keeps a little.
const SMALLEST: f64 = 1e-5;
/// Newton's rounds at most.
const NEWTON_ROUNDS: usize = 50;
/// Newton ends when no parameter moves by more than this share of itself.
const SMALL_STEP: f64 = 1e-8;

/// α that maximises N (ln Γ(Σα) − Σ ln Γ(α_k)) + Σ (α_k − 1) s_k, where s_k is the sum of E log θ_k over
/// `count` draws.
pub(super) fn newton(alpha: &mut [f64], log_sums: &[f64], count: f64) {
    for _ in 0..NEWTON_ROUNDS {
        let sum: f64 = alpha.iter().sum();
        let gradient: Vec<f64> = alpha
            .iter()
            .zip(log_sums)
            .map(|(a, s)| count * (digamma(sum) - digamma(*a)) + s)
            .collect();
        let curvature: Vec<f64> = alpha.iter().map(|a| -count * trigamma(*a)).collect();
        let z = count * trigamma(sum);
        let ratios: f64 = gradient.iter().zip(&curvature).map(|(g, h)| g / h).sum();
        let b = ratios / (1.0 / z + curvature.iter().map(|h| 1.0 / h).sum::<f64>());
        let mut largest = 0.0_f64;
        for ((a, g), h) in alpha.iter_mut().zip(&gradient).zip(&curvature) {
            // At most to a third or to three times: Newton overshoots 0 from far away.
            let new = (*a - (g - b) / h).clamp(*a / 3.0, *a * 3.0).max(SMALLEST);
            largest = largest.max((new / *a - 1.0).abs());
            *a = new;
        }
        if largest < SMALL_STEP {
            break;
        }
    }
}

/// The one number of a symmetric law of `dim` entries, from the sum of all E log of `count` draws.
pub(super) fn newton_symmetric(eta: f64, log_sum: f64, dim: f64, count: f64) -> f64 {
    let mut eta = eta;
    for _ in 0..NEWTON_ROUNDS {
        let gradient = count * dim * (digamma(dim * eta) - digamma(eta)) + log_sum;
        let curvature = count * dim * (dim * trigamma(dim * eta) - trigamma(eta));
        let new = (eta - gradient / curvature).clamp(eta / 3.0, eta * 3.0).max(SMALLEST);
        let moved = (new / eta - 1.0).abs();
        eta = new;
        if moved < SMALL_STEP {
            break;
        }
    }
    eta
}

/// Σ_n h_n (ψ(n + a) − ψ(a)) of a histogram h of counts.
pub(super) fn digamma_differences(histogram: &[u64], a: f64) -> f64 {
    let (mut difference, mut sum) = (0.0, 0.0);
    for (n, &times) in histogram.iter().enumerate() {
        sum += times as f64 * difference;
        difference += 1.0 / (a + n as f64);
    }
    sum
}

/// Some rounds of the fixed point for α: `counts[k]` is the histogram of n_dk, `lengths` that of n_d.
pub(super) fn fixed_point(
    alpha: &mut [f64],
    counts: &[Vec<u64>],
    lengths: &[u64],
    num_rounds: usize,
) {
    for _ in 0..num_rounds {
        let below = digamma_differences(lengths, alpha.iter().sum());
        if below <= 0.0 {
            return;
        }
        for (a, histogram) in alpha.iter_mut().zip(counts) {
            *a = (*a * digamma_differences(histogram, *a) / below).max(SMALLEST);
        }
    }
}

/// The same for the one number of a symmetric law of `dim` entries: `counts` over all draws and entries.
pub(super) fn fixed_point_symmetric(
    eta: f64,
    counts: &[u64],
    lengths: &[u64],
    dim: f64,
    num_rounds: usize,
) -> f64 {
    (0..num_rounds).fold(eta, |eta, _| {
        let below = dim * digamma_differences(lengths, dim * eta);
        if below > 0.0 {
            (eta * digamma_differences(counts, eta) / below).max(SMALLEST)
        } else {
            eta
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E log θ_k of Dirichlet(α) is ψ(α_k) − ψ(Σα): its own parameters maximise the likelihood.
    #[test]
    fn newton_finds_the_law_whose_logs_it_is_given() {
        let truth = [0.03, 0.7, 2.0, 0.2];
        let sum = digamma(truth.iter().sum());
        let logs: Vec<f64> = truth.iter().map(|a| 50.0 * (digamma(*a) - sum)).collect();
        let mut found = [1.0; 4];
        newton(&mut found, &logs, 50.0);
        for (found, truth) in found.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 1e-6, "{found} {truth}");
        }
        let one = 3.0 * 40.0 * (digamma(0.02) - digamma(0.8));
        let found = newton_symmetric(1.0, one, 40.0, 3.0);
        assert!((found / 0.02 - 1.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn differences_of_digamma_by_whole_numbers() {
        let expected = 2.0 * (digamma(3.3) - digamma(0.3)) + digamma(1.3) - digamma(0.3);
        assert!((digamma_differences(&[5, 1, 0, 2], 0.3) - expected).abs() < 1e-13);
    }

    /// The fixed point is where the likelihood of the counts has no slope in log α: by differences.
    #[test]
    fn the_fixed_point_is_a_maximum() {
        let documents = [[4_usize, 0, 1], [0, 6, 2], [3, 3, 0], [9, 0, 0], [0, 2, 1]];
        let histogram = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut histogram = vec![0; 20];
            numbers.for_each(|n| histogram[n] += 1);
            histogram
        };
        let counts: Vec<Vec<u64>> =
            (0..3).map(|k| histogram(&mut documents.iter().map(|d| d[k]))).collect();
        let lengths = histogram(&mut documents.iter().map(|d| d.iter().sum()));
        let mut alpha = [1.0; 3];
        fixed_point(&mut alpha, &counts, &lengths, 20_000);
        let likelihood = |alpha: &[f64]| -> f64 {
            let sum: f64 = alpha.iter().sum();
            let one = |d: &[usize; 3]| -> f64 {
                let n: usize = d.iter().sum();
                let parts = d
                    .iter()
                    .zip(alpha)
                    .map(|(&n, a)| libm::lgamma(a + n as f64) - libm::lgamma(*a));
                libm::lgamma(sum) - libm::lgamma(sum + n as f64) + parts.sum::<f64>()
            };
            documents.iter().map(one).sum()
        };
        for k in 0..3 {
            let moved = |by: f64| {
                let mut alpha = alpha;
                alpha[k] *= by.exp();
                likelihood(&alpha)
            };
            let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            assert!(slope.abs() < 1e-5, "{k}: {slope}");
        }
    }
}
