//! Draws of a Gaussian process as functions, and its exact posterior.
//!
//! The kernel k(t, t′) = exp(−(t − t′)²/(2ℓ²)) with ℓ = 0.5 is a sum of products,
//!
//! ```text
//! k(t, t′) = Σ_m φ_m(t) φ_m(t′),    φ_m(t) = exp(−t²/(2ℓ²)) (t/ℓ)^m / √m!
//! ```
//!
//! so g(t) = Σ_m w_m φ_m(t) with w_m ~ N(0, 1) is a draw that can be read at every location, which
//! a joint draw at the elements' own locations could not. The squares φ_m(t)² are Poisson
//! probabilities of mean (t/ℓ)² ≤ 16 on |t| ≤ 2, and beyond the 64 terms kept lie less than 10⁻¹⁶
//! of them: below rounding, the draw is exact.

use crate::rng::Stream;
use crate::{IndexedSet, Result};

use super::NOISE_STD_DEV;
use super::cholesky::Cholesky;
use super::law::log_normal;

/// ℓ
pub(super) const LENGTH_SCALE: f64 = 0.5;
const NUM_FEATURES: usize = 64;

/// One draw g.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    weights: Vec<f64>,
}

impl Function {
    pub(super) fn draw(stream: Stream) -> Self {
        let mut weights = [0.0; NUM_FEATURES];
        stream.fill_normal(0, 0, &mut weights);
        Self { weights: weights.iter().map(|&w| f64::from(w)).collect() }
    }

    /// g(t) = Σ_m w_m φ_m(t)
    pub(super) fn value(&self, t: f64) -> f64 {
        self.weights.iter().zip(features(t)).map(|(w, phi)| w * phi).sum()
    }
}

/// φ₀(t), φ₁(t), …
fn features(t: f64) -> impl Iterator<Item = f64> {
    let z = t / LENGTH_SCALE;
    let mut phi = (-0.5 * z * z).exp();
    (1..=NUM_FEATURES).map(move |m| {
        let current = phi;
        phi *= z / (m as f64).sqrt();
        current
    })
}

/// k(t, t′)
fn kernel(a: f64, b: f64) -> f64 {
    let z = (a - b) / LENGTH_SCALE;
    (-0.5 * z * z).exp()
}

/// The exact law of a value at a further location.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    locations: Vec<f64>,
    chol_xx: Cholesky,
    /// K̃⁻¹ x
    weights: Vec<f64>,
}

impl Posterior {
    pub(super) fn new(context: &IndexedSet) -> Result<Self> {
        let locations = context.locations().to_vec();
        // K̃ = K + σ² I = L Lᵀ
        let chol_xx = Cholesky::new(locations.len(), |i, j| {
            let noise = if i == j { NOISE_STD_DEV * NOISE_STD_DEV } else { 0.0 };
            kernel(locations[i], locations[j]) + noise
        })?;
        let weights = chol_xx.solve_transposed(&chol_xx.solve(context.values()));
        Ok(Self { locations, chol_xx, weights })
    }

    /// Mean k_tᵀ K̃⁻¹ x_context and variance 1 + σ² − k_tᵀ K̃⁻¹ k_t.
    pub(super) fn moments(&self, t: f64) -> (f64, f64) {
        let k_t: Vec<f64> = self.locations.iter().map(|&s| kernel(t, s)).collect();
        let mean: f64 = k_t.iter().zip(&self.weights).map(|(k, w)| k * w).sum();
        let explained: f64 = self.chol_xx.solve(&k_t).iter().map(|v| v * v).sum();
        (mean, (1.0 - explained).max(0.0) + NOISE_STD_DEV * NOISE_STD_DEV)
    }

    /// log N of x with those moments.
    pub(super) fn log_density(&self, t: f64, x: f64) -> f64 {
        let (mean, variance) = self.moments(t);
        log_normal(x - mean, variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_reproduce_the_kernel() {
        for a in [-2.0, -1.3, 0.0, 0.4, 2.0] {
            for b in [-2.0, 0.1, 0.5, 1.9] {
                let sum: f64 = features(a).zip(features(b)).map(|(x, y)| x * y).sum();
                assert!((sum - kernel(a, b)).abs() < 1e-14, "k({a}, {b})");
            }
        }
    }

    /// One observation (s, y): mean k y/(1 + σ²), variance 1 + σ² − k²/(1 + σ²).
    #[test]
    fn the_posterior_of_one_observation_is_the_closed_form() {
        let context = IndexedSet::new(1, 1, vec![0.3], vec![0.8]).unwrap();
        let posterior = Posterior::new(&context).unwrap();
        let (t, x) = (0.7, 0.2);
        let k = kernel(t, 0.3);
        let total = 1.0 + NOISE_STD_DEV * NOISE_STD_DEV;
        let expected = log_normal(x - k * 0.8 / total, (total - k * k / total).sqrt());
        assert!((posterior.log_density(t, x) - expected).abs() < 1e-12);
    }
}
