//! The predictive law of a variational implicit process, in closed form.

use std::ops::Range;

use super::VariationalImplicitProcess;
use super::regression::{Cholesky, Features, Posterior, dot};
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{LogDensity, Predictive};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

const LOG_TWO_PI: f64 = 1.837_877_066_409_345_3;

/// The law of further elements, given a context:
///
/// ```text
/// x | t, C ~ N(m + W B⁻¹b, W B⁻¹ Wᵀ + σ² I)
/// ```
#[derive(Debug)]
pub(super) struct ImplicitPredictive<'a> {
    process: &'a VariationalImplicitProcess,
    posterior: Posterior,
    noise_std_dev: f64,
}

impl<'a> ImplicitPredictive<'a> {
    pub(super) fn new(
        process: &'a VariationalImplicitProcess,
        posterior: Posterior,
    ) -> Result<Self> {
        Ok(Self { noise_std_dev: process.noise_std_dev()?, process, posterior })
    }
}

impl ImplicitPredictive<'_> {
    /// log N of the numbers `range` of `values` together.
    fn log_normal(&self, features: &Features, values: &[f64], range: Range<usize>) -> f64 {
        let d = range.len();
        let rows: Vec<&[f64]> = range.clone().map(|i| features.row(i)).collect();
        // W B⁻¹ Wᵀ + σ² I
        let mut covariance = vec![0.0; d * d];
        for (i, row) in rows.iter().enumerate() {
            let solved = self.posterior.covariance_times(row);
            for (entry, other) in covariance[i * d..].iter_mut().zip(&rows) {
                *entry = dot(&solved, other);
            }
            covariance[i * d + i] += self.noise_std_dev * self.noise_std_dev;
        }
        let factor = Cholesky::new(covariance, d);
        let mut residual: Vec<f64> = range
            .zip(&rows)
            .map(|(i, row)| values[i] - features.mean[i] - dot(row, &self.posterior.mean))
            .collect();
        factor.solve_lower(&mut residual);
        // log N = −½ [d log 2π + log |Σ| + ‖L⁻¹(x − mean)‖²]
        -0.5 * (d as f64 * LOG_TWO_PI + factor.log_determinant() + dot(&residual, &residual))
    }
}

impl Predictive for ImplicitPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let config = &self.process.config;
        check_dimensions("targets", targets, config.location_dim, config.value_dim)?;
        let features = self.process.features(targets.locations())?;
        let d = config.value_dim;
        let density = |index: usize| {
            let value = self.log_normal(&features, targets.values(), index * d..(index + 1) * d);
            LogDensity { value, std_error: 0.0 }
        };
        Ok((0..targets.len()).map(density).collect())
    }

    fn log_joint(&self, targets: &IndexedSet) -> Result<Option<LogDensity>> {
        let config = &self.process.config;
        check_dimensions("targets", targets, config.location_dim, config.value_dim)?;
        let features = self.process.features(targets.locations())?;
        let value = self.log_normal(&features, targets.values(), 0..targets.values().len());
        Ok(Some(LogDensity { value, std_error: 0.0 }))
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let config = &self.process.config;
        count_locations(locations, config.location_dim)?;
        let features = self.process.features(locations)?;
        let mut coefficients = vec![0.0; config.num_functions];
        let mut noise = vec![0.0; features.mean.len()];
        let mut draws = Vec::with_capacity(count * noise.len());
        for number in 0..count as u64 {
            let stream = stream.child(number);
            stream.child(0).fill_normal(0, 0, &mut coefficients);
            stream.child(1).fill_normal(0, 0, &mut noise);
            // x = m + W a + σ ε,  a ~ N(B⁻¹b, B⁻¹)
            let a = self.posterior.draw(&coefficients);
            draws.extend(features.mean.iter().zip(&noise).enumerate().map(|(row, (mean, &e))| {
                mean + dot(features.row(row), &a) + self.noise_std_dev * f64::from(e)
            }));
        }
        Ok(draws)
    }
}
