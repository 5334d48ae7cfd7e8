//! The squared exponential with a length scale for every dimension: k = v exp(−Σ_d r_d²/(2ℓ_d²)).
//!
//! A dimension that does not matter gets a long ℓ_d (automatic relevance determination).

use super::{Kernel, Pairs, check_positive};
use crate::error::check_length;
use crate::{Error, Result};

/// k(t, t′) = v exp(−Σ_d (t − t′)_d²/(2ℓ_d²)).
#[derive(Clone, Debug, PartialEq)]
pub struct RbfArd {
    signal_variance: f64,
    length_scales: Vec<f64>,
}

impl RbfArd {
    /// From v and ℓ of every dimension.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if one is not positive and finite, or there is no dimension.
    pub fn new(signal_variance: f64, length_scales: &[f64]) -> Result<Self> {
        if length_scales.is_empty() {
            return Err(Error::invalid("length_scales", "one per dimension", "none"));
        }
        for &length_scale in length_scales {
            check_positive("length_scale", length_scale)?;
        }
        Ok(Self {
            signal_variance: check_positive("signal_variance", signal_variance)?,
            length_scales: length_scales.to_vec(),
        })
    }

    /// v.
    pub fn signal_variance(&self) -> f64 {
        self.signal_variance
    }

    /// ℓ of every dimension.
    pub fn length_scales(&self) -> &[f64] {
        &self.length_scales
    }

    /// k of one pair.
    fn value(&self, location: &[f64], other: &[f64]) -> f64 {
        let scaled = location.iter().zip(other).zip(&self.length_scales);
        let sum: f64 = scaled.map(|((a, b), scale)| ((a - b) / scale).powi(2)).sum();
        self.signal_variance * (-0.5 * sum).exp()
    }
}

impl Kernel for RbfArd {
    fn parameter_names(&self) -> Vec<&'static str> {
        let lengths = self.length_scales.iter().map(|_| "length_scale");
        std::iter::once("signal_variance").chain(lengths).collect()
    }

    fn log_parameters(&self) -> Vec<f64> {
        let lengths = self.length_scales.iter().map(|scale| scale.ln());
        std::iter::once(self.signal_variance.ln()).chain(lengths).collect()
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let count = 1 + self.length_scales.len();
        check_length("log_parameters", log_parameters.len(), count, || {
            "one per hyperparameter".into()
        })?;
        let parameters: Vec<f64> = log_parameters.iter().map(|log| log.exp()).collect();
        Ok(Box::new(Self::new(parameters[0], &parameters[1..])?))
    }

    fn variance(&self, _location: &[f64]) -> f64 {
        self.signal_variance
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        for (k, other) in out.iter_mut().zip(others.chunks_exact(location.len())) {
            *k = self.value(location, other);
        }
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        for (weight, other) in pairs.each() {
            // ∂k/∂log v = k,  ∂k/∂log ℓ_d = k r_d²/ℓ_d²
            let k = weight * self.value(pairs.location, other);
            gradient[0] += k;
            let scaled = pairs.location.iter().zip(other).zip(&self.length_scales);
            for (sum, ((a, b), scale)) in gradient[1..].iter_mut().zip(scaled) {
                *sum += k * ((a - b) / scale).powi(2);
            }
        }
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        for (weight, other) in pairs.each() {
            // ∂k/∂t_d = −k (t − t′)_d/ℓ_d²
            let k = weight * self.value(pairs.location, other);
            let scaled = pairs.location.iter().zip(other).zip(&self.length_scales);
            for (sum, ((a, b), scale)) in gradient.iter_mut().zip(scaled) {
                *sum -= k * (a - b) / (scale * scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rbf;
    use super::*;

    /// With equal length scales it is the kernel that has one, and so are its derivatives.
    #[test]
    fn equal_length_scales_are_one() {
        let (ard, rbf) = (RbfArd::new(1.3, &[0.7; 3]).unwrap(), Rbf::new(1.3, 0.7).unwrap());
        let (at, others) = ([0.2, -0.4, 1.0], [0.1, 0.3, 0.5, -1.0, 0.9, 0.4]);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
        ard.fill_row(&at, &others, &mut a);
        rbf.fill_row(&at, &others, &mut b);
        a.iter().zip(b).for_each(|(a, b)| close(*a, b));
        let (mut a, mut b) = ([0.0; 4], [0.0; 2]);
        let pairs = Pairs::new(&at, &others, &[0.5, 2.0]);
        ard.add_gradient(pairs, &mut a);
        rbf.add_gradient(pairs, &mut b);
        close(a[0], b[0]);
        close(a[1..].iter().sum(), b[1]);
        assert!(RbfArd::new(1.0, &[]).is_err() && RbfArd::new(1.0, &[0.0]).is_err());
    }
}
