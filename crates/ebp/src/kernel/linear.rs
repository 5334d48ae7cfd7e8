//! Linear trends and unknown levels: k = v t·t′ and k = v.

use super::{Kernel, Pairs, check_positive, from_logarithms};
use crate::Result;

/// k(t, t′) = v t·t′: linear functions through 0 with slopes of variance v.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    slope_variance: f64,
}

/// k(t, t′) = v: one level for all, of variance v.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    level_variance: f64,
}

impl Linear {
    /// From v.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if it is not positive and finite.
    pub fn new(slope_variance: f64) -> Result<Self> {
        Ok(Self { slope_variance: check_positive("slope_variance", slope_variance)? })
    }
}

impl Constant {
    /// From v.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if it is not positive and finite.
    pub fn new(level_variance: f64) -> Result<Self> {
        Ok(Self { level_variance: check_positive("level_variance", level_variance)? })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Kernel for Linear {
    fn parameter_names(&self) -> Vec<&'static str> {
        vec!["slope_variance"]
    }

    fn log_parameters(&self) -> Vec<f64> {
        vec![self.slope_variance.ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let [slope_variance] = from_logarithms(log_parameters)?;
        Ok(Box::new(Self::new(slope_variance)?))
    }

    fn variance(&self, location: &[f64]) -> f64 {
        self.slope_variance * dot(location, location)
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        for (k, other) in out.iter_mut().zip(others.chunks_exact(location.len())) {
            *k = self.slope_variance * dot(location, other);
        }
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        for (weight, other) in pairs.each() {
            gradient[0] += weight * self.slope_variance * dot(pairs.location, other);
        }
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        for (weight, other) in pairs.each() {
            // ∂k/∂t = v t′
            let factor = weight * self.slope_variance;
            gradient.iter_mut().zip(other).for_each(|(sum, b)| *sum += factor * b);
        }
    }
}

impl Kernel for Constant {
    fn parameter_names(&self) -> Vec<&'static str> {
        vec!["level_variance"]
    }

    fn log_parameters(&self) -> Vec<f64> {
        vec![self.level_variance.ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let [level_variance] = from_logarithms(log_parameters)?;
        Ok(Box::new(Self::new(level_variance)?))
    }

    fn variance(&self, _location: &[f64]) -> f64 {
        self.level_variance
    }

    fn fill_row(&self, _location: &[f64], _others: &[f64], out: &mut [f64]) {
        out.fill(self.level_variance);
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        gradient[0] += self.level_variance * pairs.weights.iter().sum::<f64>();
    }

    fn add_location_gradient(&self, _pairs: Pairs<'_>, _gradient: &mut [f64]) {}
}
