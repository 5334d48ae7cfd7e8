//! Predictions draw by draw of a latent: what a model of pictures is judged by.

use super::Process;
use crate::linalg::log_sum_exp;
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// A process whose further elements are independent once its latent is drawn.
pub trait LatentProcess: Process {
    /// What `count` draws of the latent given `context` say about each of `targets`.
    ///
    /// `cell` is the width of a cell of the quantised values, the same in every coordinate, on
    /// [−1, 1].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a set does not fit the process.
    fn hypotheses(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses>;

    /// log p of the cells of all `targets` together, by `count` draws: a lower bound in expectation.
    ///
    /// ```text
    /// log mean_k p(x_T | θ_k, C) q(θ_k | C) / r(θ_k),    θ_k ~ r
    /// ```
    ///
    /// Here r is q(θ | C). Processes that know q(θ | C and T) draw from that, where p(x_T | θ) is large,
    /// and the bound is far closer with as many draws.
    ///
    /// # Errors
    ///
    /// As [`hypotheses`](Self::hypotheses).
    fn log_joint_mass(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<f64> {
        let found = self.hypotheses(context, targets, cell, count, stream)?;
        Ok(log_mean_of_draws(&found.log_mass, targets.len(), &vec![0.0; count]))
    }
}

/// log mean_k exp(Σ_i log p_ki + ω_k), of log p `[draws, m]`.
pub(super) fn log_mean_of_draws(log_mass: &[f64], m: usize, log_weights: &[f64]) -> f64 {
    let draws = log_mass.chunks_exact(m.max(1)).zip(log_weights);
    let terms: Vec<f64> = draws.map(|(draw, weight)| draw.iter().sum::<f64>() + weight).collect();
    log_sum_exp(&terms) - (terms.len() as f64).ln()
}

/// What draws of a latent say about m targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypotheses {
    /// log of the probability of the cell in which each target lies, `[count, m]`.
    pub log_mass: Vec<f64>,
    /// log of the density at each target, `[count, m]`.
    pub log_density: Vec<f64>,
    /// Mean of the law at each target, `[count, m, d_x]`.
    pub mean: Vec<f64>,
}

/// ½ log 2π.
const LOG_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// log P(low < z < high) of a standard normal; the interval must not be empty.
pub(super) fn log_normal_mass(low: f64, high: f64) -> f64 {
    // The upper tail keeps digits that the lower one loses.
    let (low, high) = if low + high < 0.0 { (-high, -low) } else { (low, high) };
    if low < FAR {
        let mass = if low <= 0.0 {
            1.0 - upper_tail(high) - upper_tail(-low)
        } else {
            upper_tail(low) - upper_tail(high)
        };
        // A cell far narrower than σ: density times width.
        if high - low < 1e-3 {
            let middle = 0.5 * (low + high);
            return -0.5 * middle * middle - LOG_ROOT_TWO_PI + (high - low).ln();
        }
        return mass.ln();
    }
    let [tail, beyond] = [low, high].map(log_far_tail);
    tail + (-(beyond - tail).exp()).ln_1p()
}

/// Where P(z > x) comes near the smallest f64, and the series below is exact to 10⁻⁹ of it.
const FAR: f64 = 30.0;

/// log P(z > x) for x ≥ 30: φ(x)/x (1 − 1/x² + 3/x⁴ − 15/x⁶).
fn log_far_tail(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::NEG_INFINITY;
    }
    let y = 1.0 / (x * x);
    let series = -y * (1.0 - y * (3.0 - 15.0 * y));
    -0.5 * x * x - LOG_ROOT_TWO_PI - x.ln() + series.ln_1p()
}

/// P(z > x) of a standard normal.
fn upper_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_of_cells_agree_with_known_values() {
        // tools/reference/normal_mass.py, SciPy 1.17.1.
        let cases = [
            (-1.0, 1.0, -0.381_715_146_302_126),
            (0.0, f64::INFINITY, -std::f64::consts::LN_2),
            (1.5, 1.6, -4.422_189_715_550_41),
            (-3.0, -2.9, -7.569_568_013_807_489),
            (6.0, f64::INFINITY, -20.736_768_949_974_71),
            (6.0, 6.5, -20.778_326_599_127_098),
            (-9.2, -9.0, -43.800_816_960_096_59),
        ];
        for (low, high, expected) in cases {
            let found = log_normal_mass(low, high);
            assert!((found - expected).abs() < 1e-11, "{low} {high}: {found} {expected}");
        }
        // All cells together, for a narrow and a wide law.
        for std_dev in [0.01, 0.3, 5.0] {
            let edge = |k: usize| match k {
                0 => f64::NEG_INFINITY,
                256 => f64::INFINITY,
                k => (k as f64 / 128.0 - 1.0 - 0.1) / std_dev,
            };
            let total: f64 = (0..256).map(|k| log_normal_mass(edge(k), edge(k + 1)).exp()).sum();
            assert!((total - 1.0).abs() < 1e-9, "{std_dev}: {total}");
        }
        // Both sides of where the series takes over.
        let [near, far] = [29.999_999, 30.000_001].map(|low| log_normal_mass(low, f64::INFINITY));
        assert!((near - far - 30.033_3 * 2e-6).abs() < 1e-8, "{near} {far}");
        assert!(log_normal_mass(100.0, 101.0) < -5000.0);
        assert!(log_normal_mass(-101.0, -100.0).is_finite());
    }
}
