//! The squared exponential: k = v exp(−r²/(2ℓ²)), whose functions have all derivatives.

use super::{Kernel, Pairs, add_differences, check_positive, from_logarithms, squared_distances};
use crate::Result;

/// k(t, t′) = v exp(−‖t − t′‖²/(2ℓ²)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rbf {
    signal_variance: f64,
    length_scale: f64,
}

impl Rbf {
    /// From v and ℓ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if one is not positive and finite.
    pub fn new(signal_variance: f64, length_scale: f64) -> Result<Self> {
        Ok(Self {
            signal_variance: check_positive("signal_variance", signal_variance)?,
            length_scale: check_positive("length_scale", length_scale)?,
        })
    }
}

impl Kernel for Rbf {
    fn parameter_names(&self) -> Vec<&'static str> {
        vec!["signal_variance", "length_scale"]
    }

    fn log_parameters(&self) -> Vec<f64> {
        vec![self.signal_variance.ln(), self.length_scale.ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let [signal_variance, length_scale] = from_logarithms(log_parameters)?;
        Ok(Box::new(Self::new(signal_variance, length_scale)?))
    }

    fn variance(&self, _location: &[f64]) -> f64 {
        self.signal_variance
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        let scale = -0.5 / (self.length_scale * self.length_scale);
        for (k, r2) in out.iter_mut().zip(squared_distances(location, others)) {
            // k = v exp(−r²/(2ℓ²))
            *k = self.signal_variance * (scale * r2).exp();
        }
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let scale = 1.0 / (self.length_scale * self.length_scale);
        let (mut by_variance, mut by_length) = (0.0, 0.0);
        for (weight, r2) in pairs.weights.iter().zip(pairs.squares()) {
            // ∂k/∂log v = k,  ∂k/∂log ℓ = k r²/ℓ²
            let s = scale * r2;
            let k = weight * (-0.5 * s).exp();
            by_variance += k;
            by_length += k * s;
        }
        gradient[0] += self.signal_variance * by_variance;
        gradient[1] += self.signal_variance * by_length;
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let scale = 1.0 / (self.length_scale * self.length_scale);
        let distances = squared_distances(pairs.location, pairs.others);
        // ∂k/∂t = −k (t − t′)/ℓ²
        let factors =
            pairs.weights.iter().zip(distances).map(|(weight, r2)| {
                -weight * self.signal_variance * scale * (-0.5 * scale * r2).exp()
            });
        add_differences(pairs.location, pairs.others, factors, gradient);
    }
}
