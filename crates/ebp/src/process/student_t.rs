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

use super::draw;
use super::exact::{EllipticalPredictive, EllipticalProcess, ExactProcessConfig, Family, Marginal};
use super::special::{digamma, ln_gamma_ratio};
use crate::kernel::Kernel;
use crate::rng::Stream;
use crate::{Error, Result};

/// Student-t marginals with ν degrees of freedom.
#[derive(Clone, Copy, Debug)]
pub struct StudentT {
    pub(super) degrees: f64,
}

impl Family for StudentT {
    const NAME: &'static str = "student-t";

    fn log_parameters(&self) -> Vec<f64> {
        vec![(self.degrees - 2.0).ln()]
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Self {
        Self { degrees: 2.0 + log_parameters.iter().map(|p| p.exp()).sum::<f64>() }
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![("degrees_of_freedom", self.degrees)]
    }

    fn log_density(&self, n: f64, log_determinant: f64, form: f64) -> f64 {
        let nu = self.degrees;
        // ln Γ((ν+n)/2) − ln Γ(ν/2) − (n/2) ln((ν−2)π) − ½ ln |K̃| − (ν+n)/2 ln(1 + β/(ν−2))
        ln_gamma_ratio(0.5 * (nu + n), 0.5 * nu)
            - 0.5 * n * ((nu - 2.0) * PI).ln()
            - 0.5 * log_determinant
            - 0.5 * (nu + n) * (form / (nu - 2.0)).ln_1p()
    }

    fn marginal(&self, n: usize, log_determinant: f64, forms: &[f64]) -> Marginal {
        let (nu, n) = (self.degrees, n as f64);
        let mut value = 0.0;
        let mut by_degrees = 0.0;
        let mut scales = Vec::with_capacity(forms.len());
        for form in forms {
            value += self.log_density(n, log_determinant, *form);
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

    fn conditioned(&self, n: usize, forms: &[f64]) -> (Self, Vec<f64>) {
        let (nu, n) = (self.degrees, n as f64);
        // (ν − 2 + β_d)/(ν − 2 + n)
        let widenings = forms.iter().map(|form| (nu - 2.0 + form) / (nu - 2.0 + n)).collect();
        (Self { degrees: nu + n }, widenings)
    }

    fn draw(&self, stream: Stream, noise: &mut [f64]) -> f64 {
        draw::fill_normal(stream.child(0), 0, noise);
        // √((ν − 2)/χ²_ν)
        ((self.degrees - 2.0) / draw::chi_square(stream.child(1), self.degrees)).sqrt()
    }
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
pub type StudentTProcess = EllipticalProcess<StudentT>;

/// A Student-t process given a context.
pub type StudentTPredictive<'a> = EllipticalPredictive<'a, StudentT>;

impl EllipticalProcess<StudentT> {
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
        Self::from_family(kernel, config, StudentT { degrees: degrees_of_freedom })
    }

    /// ν.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.family.degrees
    }
}

impl EllipticalPredictive<'_, StudentT> {
    /// ν + n.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.family.degrees
    }
}
