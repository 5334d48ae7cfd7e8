//! MacKay's periodic kernel: functions that repeat with period p along every axis.
//!
//! ```text
//! k = v exp(−2 Σ_d sin²(u_d)/ℓ²),    u_d = π (t − t′)_d/p
//! ```
//!
//! In one dimension this is scikit-learn's `ExpSineSquared`. In more, that one takes sin² of the
//! Euclidean distance, which is not positive definite; the sum over axes is a product of kernels
//! and hence is.

use std::f64::consts::PI;

use super::{Kernel, Pairs, check_positive, from_logarithms};
use crate::Result;

/// k(t, t′) = v exp(−2 Σ_d sin²(π (t − t′)_d/p)/ℓ²).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periodic {
    signal_variance: f64,
    length_scale: f64,
    period: f64,
}

impl Periodic {
    /// From v, ℓ (in units of the sine, not of the locations) and p.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if one is not positive and finite.
    pub fn new(signal_variance: f64, length_scale: f64, period: f64) -> Result<Self> {
        Ok(Self {
            signal_variance: check_positive("signal_variance", signal_variance)?,
            length_scale: check_positive("length_scale", length_scale)?,
            period: check_positive("period", period)?,
        })
    }
}

impl Kernel for Periodic {
    fn parameter_names(&self) -> Vec<&'static str> {
        vec!["signal_variance", "length_scale", "period"]
    }

    fn log_parameters(&self) -> Vec<f64> {
        vec![self.signal_variance.ln(), self.length_scale.ln(), self.period.ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let [signal_variance, length_scale, period] = from_logarithms(log_parameters)?;
        Ok(Box::new(Self::new(signal_variance, length_scale, period)?))
    }

    fn variance(&self, _location: &[f64]) -> f64 {
        self.signal_variance
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        let (frequency, scale) = (PI / self.period, -2.0 / (self.length_scale * self.length_scale));
        for (k, other) in out.iter_mut().zip(others.chunks_exact(location.len())) {
            let mut squares = 0.0;
            for (a, b) in other.iter().zip(location) {
                // |t − t′|, so that k(t, t′) and k(t′, t) are equal to the last bit
                let sine = (frequency * (a - b).abs()).sin();
                squares += sine * sine;
            }
            // k = v exp(−2 Σ sin² u/ℓ²)
            *k = self.signal_variance * (scale * squares).exp();
        }
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let (frequency, scale) = (PI / self.period, 2.0 / (self.length_scale * self.length_scale));
        let mut sums = [0.0; 3];
        for (weight, other) in pairs.each() {
            let (mut squares, mut slopes) = (0.0, 0.0);
            for (a, b) in other.iter().zip(pairs.location) {
                let u = frequency * (a - b).abs();
                let (sine, cosine) = u.sin_cos();
                squares += sine * sine;
                slopes += u * sine * cosine;
            }
            // ∂k/∂log ℓ = k · 4 Σ sin² u/ℓ²,  ∂k/∂log p = k · 4 Σ u sin u cos u/ℓ²
            let k = weight * (-scale * squares).exp();
            sums[0] += k;
            sums[1] += k * 2.0 * scale * squares;
            sums[2] += k * 2.0 * scale * slopes;
        }
        for (gradient, sum) in gradient.iter_mut().zip(sums) {
            *gradient += self.signal_variance * sum;
        }
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let (frequency, scale) = (PI / self.period, 2.0 / (self.length_scale * self.length_scale));
        let mut row = vec![0.0; pairs.weights.len()];
        self.fill_row(pairs.location, pairs.others, &mut row);
        for ((weight, other), k) in pairs.each().zip(row) {
            for ((sum, a), b) in gradient.iter_mut().zip(pairs.location).zip(other) {
                // ∂k/∂t = −k (4π/(p ℓ²)) sin u cos u, and 2 sin u cos u = sin 2u
                *sum -= weight * k * scale * frequency * (2.0 * frequency * (a - b)).sin();
            }
        }
    }
}
