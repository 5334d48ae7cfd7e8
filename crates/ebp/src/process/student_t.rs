//! Student-t processes (Shah, Wilson and Ghahramani, 2014): Gaussian processes whose overall
//! scale is unknown, and learnt from the context.
//!
//! ```text
//! p(x | t) ∝ |K̃|^{−½} (1 + β/(ν − 2))^{−(ν + n)/2},   β = xᵀ K̃⁻¹ x,  K̃ = K + σ²I,  ν > 2
//! x* | x   : ν + n degrees of freedom, the Gaussian process's mean, and its covariance times
//!            (ν − 2 + β)/(ν − 2 + n)
//! ```
//!
//! K̃ is the covariance for every ν, and ν → ∞ gives the Gaussian process. A context that is
//! wilder than K̃ expects (β > n) widens predictions, a tamer one narrows them. The noise is part
//! of K̃, hence uncorrelated with the signal but not independent of it. Several outputs are
//! independent processes, each with its own scale.

use std::f64::consts::PI;
use std::sync::Mutex;

use super::covariance::Solved;
use super::exact::{ExactProcessConfig, Family, FitConfig, FitReport, Marginal, Model, Prediction};
use super::special::{digamma, ln_gamma_ratio};
use super::{ExactProcess, LogDensity, Predictive, Process, draw};
use crate::kernel::Kernel;
use crate::linalg::Matrix;
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// Student-t marginals with ν degrees of freedom.
#[derive(Clone, Copy, Debug)]
struct StudentT {
    degrees: f64,
}

impl Family for StudentT {
    fn log_parameters(&self) -> Vec<f64> {
        vec![(self.degrees - 2.0).ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Self {
        Self { degrees: 2.0 + log_parameters.iter().map(|p| p.exp()).sum::<f64>() }
    }

    fn marginal(&self, n: usize, log_determinant: f64, forms: &[f64]) -> Marginal {
        let (nu, n) = (self.degrees, n as f64);
        let mut value = 0.0;
        let mut by_degrees = 0.0;
        let mut scales = Vec::with_capacity(forms.len());
        for form in forms {
            value += log_density(nu, n, log_determinant, *form);
            // −2 ∂ log p/∂β = (ν + n)/(ν − 2 + β)
            let scale = (nu + n) / (nu - 2.0 + form);
            // ∂ log p/∂ν = ½ (ψ((ν+n)/2) − ψ(ν/2) − n/(ν−2) − ln(1 + β/(ν−2)) + s β/(ν−2))
            by_degrees += 0.5
                * (digamma(0.5 * (nu + n))
                    - digamma(0.5 * nu)
                    - n / (nu - 2.0)
                    - (form / (nu - 2.0)).ln_1p()
                    + scale * form / (nu - 2.0));
            scales.push(scale);
        }
        // d/d log(ν − 2) = (ν − 2) d/dν
        Marginal { value, scales, gradient: vec![(nu - 2.0) * by_degrees] }
    }
}

/// log p of n values with covariance K̃ and form β.
fn log_density(nu: f64, n: f64, log_determinant: f64, form: f64) -> f64 {
    // ln Γ((ν+n)/2) − ln Γ(ν/2) − (n/2) ln((ν−2)π) − ½ ln |K̃| − (ν+n)/2 ln(1 + β/(ν−2))
    ln_gamma_ratio(0.5 * (nu + n), 0.5 * nu)
        - 0.5 * n * ((nu - 2.0) * PI).ln()
        - 0.5 * log_determinant
        - 0.5 * (nu + n) * (form / (nu - 2.0)).ln_1p()
}

/// A Student-t process with observation noise.
///
/// ```
/// use ebp::kernel::Rbf;
/// use ebp::process::{ExactProcessConfig, StudentTProcess};
/// use ebp::IndexedSet;
///
/// let kernel = Box::new(Rbf::new(1.0, 1.0)?);
/// let process = StudentTProcess::new(kernel, &ExactProcessConfig::default(), 5.0)?;
/// let tame = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.1, 0.0])?;
/// let wild = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![4.0, -5.0])?;
/// let variance = |set| Ok::<_, ebp::Error>(process.posterior(set)?.predict(&[3.0])?.variance[0]);
/// assert!(variance(&wild)? > variance(&tame)?);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StudentTProcess {
    model: Model<StudentT>,
}

impl StudentTProcess {
    /// A process of mean 0 with ν `degrees_of_freedom`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a dimension is 0, the noise variance not positive, or ν not
    /// above 2, where there would be no covariance.
    pub fn new(
        kernel: Box<dyn Kernel>,
        config: &ExactProcessConfig,
        degrees_of_freedom: f64,
    ) -> Result<Self> {
        if !(degrees_of_freedom > 2.0 && degrees_of_freedom.is_finite()) {
            let expected = "above 2 and finite";
            return Err(Error::invalid("degrees_of_freedom", expected, degrees_of_freedom));
        }
        Ok(Self { model: Model::new(kernel, config, StudentT { degrees: degrees_of_freedom })? })
    }

    /// The process with the hyperparameters, ν among them, that maximise Σ log p over independent
    /// `sets`. The bounds of `config` hold for ν − 2 as well.
    ///
    /// # Errors
    ///
    /// As [`GaussianProcess::fit`](super::GaussianProcess::fit).
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

    /// Logarithms of the kernel's hyperparameters, of the noise variance and of ν − 2, in the
    /// units of the scaled values.
    pub fn log_parameters(&self) -> Vec<f64> {
        self.model.log_parameters()
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.model.covariance.kernel
    }

    /// ν.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.model.family.degrees
    }

    /// The law of further elements given `context`, with means and variances.
    ///
    /// # Errors
    ///
    /// As [`Process::condition`], and [`Error::NotPositiveDefinite`].
    pub fn posterior(&self, context: &IndexedSet) -> Result<StudentTPredictive<'_>> {
        let solved = self.model.solve(context, Matrix::default())?;
        let (nu, n) = (self.degrees_of_freedom(), context.len() as f64);
        // (ν − 2 + β_d)/(ν − 2 + n)
        let widenings =
            solved.forms.iter().map(|form| (nu - 2.0 + form) / (nu - 2.0 + n)).collect();
        Ok(StudentTPredictive {
            model: &self.model,
            locations: context.locations().to_vec(),
            solved,
            widenings,
            degrees: nu + n,
        })
    }
}

impl Process for StudentTProcess {
    fn name(&self) -> &'static str {
        "student-t"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.posterior(context)?))
    }
}

impl ExactProcess for StudentTProcess {
    fn log_marginal(&self, set: &IndexedSet) -> Result<f64> {
        self.model.log_marginal(set)
    }
}

/// A Student-t process given a context.
#[derive(Clone, Debug)]
pub struct StudentTPredictive<'a> {
    model: &'a Model<StudentT>,
    locations: Vec<f64>,
    solved: Solved,
    /// By output: the context's share in the variance.
    widenings: Vec<f64>,
    /// ν + n.
    degrees: f64,
}

impl StudentTPredictive<'_> {
    /// Means and variances (not squared scales) of noisy values at `locations` `[m, d_t]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `locations` is not a whole number of rows or not finite.
    pub fn predict(&self, locations: &[f64]) -> Result<Prediction> {
        self.model.check_locations(locations)?;
        let (means, variances) =
            self.model.covariance.moments(&self.locations, &self.solved, locations);
        let mut prediction = Prediction { mean: Vec::new(), variance: Vec::new() };
        for (j, variance) in variances.iter().enumerate() {
            for (d, std_dev) in self.model.std_devs.iter().enumerate() {
                prediction.mean.push(self.model.means[d] + std_dev * means.at(j, d));
                prediction.variance.push(std_dev * std_dev * self.widenings[d] * variance);
            }
        }
        Ok(prediction)
    }

    /// ν + n.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees
    }

    /// What had to be added to the diagonal of the context's covariance; 0 if all is well.
    pub fn jitter(&self) -> f64 {
        self.solved.cholesky.jitter()
    }
}

impl Predictive for StudentTPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        self.model.check(targets)?;
        let prediction = self.predict(targets.locations())?;
        let outputs = prediction.mean.iter().zip(&prediction.variance).zip(targets.values());
        let densities: Vec<f64> = outputs
            .map(|((mean, variance), x)| {
                log_density(self.degrees, 1.0, variance.ln(), (x - mean).powi(2) / variance)
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
                draw::fill_normal(output.child(0), 0, &mut noise);
                // x = μ + √((ν + n − 2)/χ²_{ν+n}) L ξ, where L Lᵀ is the covariance
                let chi_square = draw::chi_square(output.child(1), self.degrees);
                let spread = (self.widenings[d] * (self.degrees - 2.0) / chi_square).sqrt();
                let std_dev = self.model.std_devs[d];
                for (j, correlated) in factor.multiply_lower(&noise).into_iter().enumerate() {
                    draw[j * value_dim + d] =
                        self.model.means[d] + std_dev * (means.at(j, d) + spread * correlated);
                }
            }
        }
        Ok(draws)
    }
}
