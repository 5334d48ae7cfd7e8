//! Gaussian processes: every finite set of values is jointly normal.
//!
//! ```text
//! log p(x | t) = −½ xᵀ K̃⁻¹ x − ½ log |K̃| − (n/2) log 2π,   K̃ = K + σ²I
//! x* | x ~ N(K*ᵀ K̃⁻¹ x,  k̃(t*, t*) − K*ᵀ K̃⁻¹ K*)
//! ```
//!
//! Exact, at n³ operations a set: comfortable to some thousand elements. It is the energy-based
//! process with f = −(x − θᵀφ(t))²/(2σ²) and θ ~ N(0, I), as the tests verify by integration; its
//! predictions have one mode, whatever the data.

use std::sync::Mutex;

use super::covariance::Solved;
use super::exact::{ExactProcessConfig, Family, FitConfig, FitReport, Marginal, Model, Prediction};
use super::{ExactProcess, LogDensity, Predictive, Process, draw};
use crate::kernel::Kernel;
use crate::linalg::Matrix;
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// log 2π.
const LOG_TAU: f64 = 1.837_877_066_409_345_5;

/// Normal marginals.
#[derive(Clone, Copy, Debug)]
struct Gaussian;

impl Family for Gaussian {
    fn log_parameters(&self) -> Vec<f64> {
        Vec::new()
    }

    fn with_log_parameters(&self, _log_parameters: &[f64]) -> Self {
        Self
    }

    fn marginal(&self, n: usize, log_determinant: f64, forms: &[f64]) -> Marginal {
        // log p = Σ_d −½ (β_d + log |K̃| + n log 2π)
        let constant = log_determinant + n as f64 * LOG_TAU;
        let value = forms.iter().map(|form| -0.5 * (form + constant)).sum();
        Marginal { value, scales: vec![1.0; forms.len()], gradient: Vec::new() }
    }
}

/// A Gaussian process with observation noise.
///
/// ```
/// use ebp::kernel::Rbf;
/// use ebp::process::{ExactProcessConfig, FitConfig, GaussianProcess};
/// use ebp::IndexedSet;
/// use ebp::rng::Stream;
///
/// let times: Vec<f64> = (0..20).map(|i| 0.3 * f64::from(i)).collect();
/// let values = times.iter().map(|t| t.sin()).collect();
/// let set = IndexedSet::new(1, 1, times, values)?;
/// let start = GaussianProcess::new(Box::new(Rbf::new(1.0, 1.0)?), &ExactProcessConfig::default())?;
/// let (process, report) =
///     start.fit(std::slice::from_ref(&set), &FitConfig::default(), Stream::new(1, "fit"))?;
/// assert_eq!(report.jitter, 0.0);
/// let prediction = process.posterior(&set)?.predict(&[2.5])?;
/// assert!((prediction.mean[0] - 2.5_f64.sin()).abs() < 1e-2);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GaussianProcess {
    model: Model<Gaussian>,
}

impl GaussianProcess {
    /// A process of mean 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a dimension is 0 or the noise
    /// variance not positive.
    pub fn new(kernel: Box<dyn Kernel>, config: &ExactProcessConfig) -> Result<Self> {
        Ok(Self { model: Model::new(kernel, config, Gaussian)? })
    }

    /// The process with the hyperparameters that maximise Σ log p over independent `sets`. The
    /// present ones are the first start; `stream` moves the others.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the sets have other dimensions or no
    /// elements, or `config` is out of range;
    /// [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite) if no start has a
    /// covariance with a factor.
    pub fn fit(
        &self,
        sets: &[IndexedSet],
        config: &FitConfig,
        stream: Stream,
    ) -> Result<(Self, FitReport)> {
        let (model, report) = self.model.fit(sets, config, stream)?;
        Ok((Self { model }, report))
    }

    /// Σ log p over independent `sets`, and its gradient with respect to
    /// [`log_parameters`](Self::log_parameters).
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn log_marginal_gradient(&self, sets: &[IndexedSet]) -> Result<(f64, Vec<f64>)> {
        let found = self.model.evaluate(sets, &Mutex::default())?;
        Ok((found.value, found.gradient))
    }

    /// Logarithms of the kernel's hyperparameters and of the noise variance, in the units of the
    /// scaled values.
    pub fn log_parameters(&self) -> Vec<f64> {
        self.model.log_parameters()
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.model.covariance.kernel
    }

    /// The law of further elements given `context`, with means and variances.
    ///
    /// # Errors
    ///
    /// As [`Process::condition`], and
    /// [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite).
    pub fn posterior(&self, context: &IndexedSet) -> Result<GaussianPredictive<'_>> {
        let solved = self.model.solve(context, Matrix::default())?;
        Ok(GaussianPredictive {
            model: &self.model,
            locations: context.locations().to_vec(),
            solved,
        })
    }
}

impl Process for GaussianProcess {
    fn name(&self) -> &'static str {
        "gp"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.posterior(context)?))
    }
}

impl ExactProcess for GaussianProcess {
    fn log_marginal(&self, set: &IndexedSet) -> Result<f64> {
        self.model.log_marginal(set)
    }
}

/// A Gaussian process given a context.
#[derive(Clone, Debug)]
pub struct GaussianPredictive<'a> {
    model: &'a Model<Gaussian>,
    locations: Vec<f64>,
    solved: Solved,
}

impl GaussianPredictive<'_> {
    /// Means and variances of noisy values at `locations` `[m, d_t]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if `locations` is not a whole number of
    /// rows or not finite.
    pub fn predict(&self, locations: &[f64]) -> Result<Prediction> {
        self.model.check_locations(locations)?;
        let (means, variances) =
            self.model.covariance.moments(&self.locations, &self.solved, locations);
        let mut prediction = Prediction { mean: Vec::new(), variance: Vec::new() };
        for (j, variance) in variances.iter().enumerate() {
            for (d, std_dev) in self.model.std_devs.iter().enumerate() {
                prediction.mean.push(self.model.means[d] + std_dev * means.at(j, d));
                prediction.variance.push(std_dev * std_dev * variance);
            }
        }
        Ok(prediction)
    }

    /// What had to be added to the diagonal of the context's covariance; 0 if all is well.
    pub fn jitter(&self) -> f64 {
        self.solved.cholesky.jitter()
    }
}

impl Predictive for GaussianPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        self.model.check(targets)?;
        let prediction = self.predict(targets.locations())?;
        let outputs = prediction.mean.iter().zip(&prediction.variance).zip(targets.values());
        // −½ ((x − μ)²/v + log v + log 2π)
        let densities: Vec<f64> = outputs
            .map(|((mean, variance), x)| {
                -0.5 * ((x - mean).powi(2) / variance + variance.ln() + LOG_TAU)
            })
            .collect();
        Ok(densities
            .chunks_exact(self.model.value_dim())
            .map(|outputs| LogDensity { value: outputs.iter().sum(), std_error: 0.0 })
            .collect())
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        self.model.check_locations(locations)?;
        let (means, factor) =
            self.model.covariance.joint(&self.locations, &self.solved, locations)?;
        let (m, value_dim) = (means.num_rows(), means.num_columns());
        let mut draws = vec![0.0; count * m * value_dim];
        let mut noise = vec![0.0; m];
        for (number, draw) in draws.chunks_exact_mut((m * value_dim).max(1)).enumerate() {
            for d in 0..value_dim {
                let output = stream.child((number * value_dim + d) as u64);
                draw::fill_normal(output, 0, &mut noise);
                let std_dev = self.model.std_devs[d];
                for (j, correlated) in factor.multiply_lower(&noise).into_iter().enumerate() {
                    // x = μ + L ξ
                    draw[j * value_dim + d] =
                        self.model.means[d] + std_dev * (means.at(j, d) + correlated);
                }
            }
        }
        Ok(draws)
    }
}
