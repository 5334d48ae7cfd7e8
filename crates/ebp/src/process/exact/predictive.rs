//! Predictions of exact processes.
//!
//! ```text
//! x* | x : mean K*ᵀ K̃⁻¹ x, covariance w (k̃(t*, t*) − K*ᵀ K̃⁻¹ K*),  w = 1 for Gaussian processes
//! ```

use super::{EllipticalProcess, Family, Prediction};
use crate::linalg::Matrix;
use crate::process::covariance::Solved;
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// A Gaussian or Student-t process given a context.
#[derive(Clone, Debug)]
pub struct EllipticalPredictive<'a, F> {
    pub(super) process: &'a EllipticalProcess<F>,
    /// Of further values.
    pub(in crate::process) family: F,
    /// By output: the context's share in the variance.
    pub(super) widenings: Vec<f64>,
    pub(super) locations: Vec<f64>,
    pub(super) solved: Solved,
}

impl<F: Family> EllipticalPredictive<'_, F> {
    /// Means and variances of noisy values at `locations` `[m, d_t]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if `locations` is not a whole number of rows or not finite.
    pub fn predict(&self, locations: &[f64]) -> Result<Prediction> {
        self.process.check_locations(locations)?;
        let EllipticalProcess { covariance, means: offsets, std_devs, .. } = self.process;
        let (means, variances) = covariance.moments(&self.locations, &self.solved, locations);
        let mut prediction = Prediction { mean: Vec::new(), variance: Vec::new() };
        for (j, variance) in variances.iter().enumerate() {
            for (d, std_dev) in std_devs.iter().enumerate() {
                prediction.mean.push(offsets[d] + std_dev * means.at(j, d));
                prediction.variance.push(std_dev * std_dev * self.widenings[d] * variance);
            }
        }
        Ok(prediction)
    }

    /// What had to be added to the diagonal of the context's covariance; 0 if all is well.
    pub fn jitter(&self) -> f64 {
        self.solved.cholesky.jitter()
    }
}

impl<F: Family> Predictive for EllipticalPredictive<'_, F> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        self.process.check(targets)?;
        let prediction = self.predict(targets.locations())?;
        let outputs = prediction.mean.iter().zip(&prediction.variance).zip(targets.values());
        let densities: Vec<f64> = outputs
            .map(|((mean, variance), x)| {
                self.family.log_density(1.0, variance.ln(), (x - mean).powi(2) / variance)
            })
            .collect();
        Ok(densities
            .chunks_exact(self.process.value_dim())
            .map(|outputs| LogDensity { value: outputs.iter().sum(), std_error: 0.0 })
            .collect())
    }

    fn log_joint(&self, targets: &IndexedSet) -> Result<Option<LogDensity>> {
        self.process.check(targets)?;
        let EllipticalProcess { covariance, means: offsets, std_devs, .. } = self.process;
        let (means, factor) =
            covariance.joint(&self.locations, &self.solved, targets.locations())?;
        let (m, value_dim) = (means.num_rows(), means.num_columns());
        let mut residuals = Matrix::zeros(m, value_dim);
        for d in 0..value_dim {
            for (j, entry) in residuals.column_mut(d).iter_mut().enumerate() {
                *entry = (targets.value(j)[d] - offsets[d]) / std_devs[d] - means.at(j, d);
            }
        }
        factor.solve_lower(&mut residuals);
        let mut value = 0.0;
        for (d, (widening, std_dev)) in self.widenings.iter().zip(std_devs).enumerate() {
            let form: f64 = residuals.column(d).iter().map(|z| z * z).sum();
            // The covariance is w s² times that of the standardised Gaussian.
            let scale = m as f64 * (widening.ln() + 2.0 * std_dev.ln());
            let log_determinant = factor.log_determinant() + scale;
            value += self.family.log_density(m as f64, log_determinant, form / widening);
        }
        Ok(Some(LogDensity { value, std_error: 0.0 }))
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        self.process.check_locations(locations)?;
        let EllipticalProcess { covariance, means: offsets, std_devs, .. } = self.process;
        let (means, factor) = covariance.joint(&self.locations, &self.solved, locations)?;
        let (m, value_dim) = (means.num_rows(), means.num_columns());
        let mut draws = vec![0.0; count * m * value_dim];
        let mut noise = vec![0.0; m];
        for (number, draw) in draws.chunks_exact_mut((m * value_dim).max(1)).enumerate() {
            for d in 0..value_dim {
                let output = stream.child((number * value_dim + d) as u64);
                // x = μ + r √w L ξ, where L Lᵀ is the Gaussian covariance
                let spread = self.family.draw(output, &mut noise) * self.widenings[d].sqrt();
                for (j, correlated) in factor.multiply_lower(&noise).into_iter().enumerate() {
                    draw[j * value_dim + d] =
                        offsets[d] + std_devs[d] * (means.at(j, d) + spread * correlated);
                }
            }
        }
        Ok(draws)
    }
}
