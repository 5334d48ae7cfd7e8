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

use super::draw;
use super::exact::{EllipticalPredictive, EllipticalProcess, ExactProcessConfig, Family, Marginal};
use crate::Result;
use crate::kernel::Kernel;
use crate::rng::Stream;

/// log 2π.
const LOG_TAU: f64 = 1.837_877_066_409_345_5;

/// Normal marginals.
#[derive(Clone, Copy, Debug)]
pub struct Gaussian;

impl Family for Gaussian {
    const NAME: &'static str = "gp";

    fn log_parameters(&self) -> Vec<f64> {
        Vec::new()
    }

    fn with_log_parameters(&self, _log_parameters: &[f64]) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn log_density(&self, n: f64, log_determinant: f64, form: f64) -> f64 {
        // −½ (β + log |K̃| + n log 2π)
        -0.5 * (form + log_determinant + n * LOG_TAU)
    }

    fn marginal(&self, n: usize, log_determinant: f64, forms: &[f64]) -> Marginal {
        let of_output = |form: &f64| self.log_density(n as f64, log_determinant, *form);
        let value = forms.iter().map(of_output).sum();
        Marginal { value, scales: vec![1.0; forms.len()], gradient: Vec::new() }
    }

    fn conditioned(&self, _n: usize, forms: &[f64]) -> (Self, Vec<f64>) {
        (Self, vec![1.0; forms.len()])
    }

    fn draw(&self, stream: Stream, noise: &mut [f64]) -> f64 {
        draw::fill_normal(stream, 0, noise);
        1.0
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
pub type GaussianProcess = EllipticalProcess<Gaussian>;

/// A Gaussian process given a context.
pub type GaussianPredictive<'a> = EllipticalPredictive<'a, Gaussian>;

impl EllipticalProcess<Gaussian> {
    /// A process of mean 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a dimension is 0 or the noise
    /// variance not positive.
    pub fn new(kernel: Box<dyn Kernel>, config: &ExactProcessConfig) -> Result<Self> {
        Self::from_family(kernel, config, Gaussian)
    }
}
