//! What Gaussian and Student-t processes share: scaled values, marginals of sets, fitting, and
//! predictions.
//!
//! Both have elliptical finite marginals: log p depends on values through β_d = x_dᵀ K̃⁻¹ x_d
//! alone. A [`Family`] says how; [`EllipticalProcess`] and [`EllipticalPredictive`] do the rest.

mod predictive;

use std::fmt::Debug;
use std::sync::Mutex;

use rayon::prelude::*;

pub(super) use self::predictive::EllipticalPredictive;
use super::covariance::{Covariance, Solved, Workspace};
use super::lbfgs::{Evaluation, Limits, Minimum, Stop, minimise};
use super::{ExactProcess, Predictive, Process, draw};
use crate::error::check_length;
use crate::kernel::Kernel;
use crate::linalg::Matrix;
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// The dimensions and the noise of an exact process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactProcessConfig {
    /// d_t: numbers per location.
    pub location_dim: usize,
    /// d_x: numbers per value. Outputs are independent and share the kernel.
    pub value_dim: usize,
    /// σ²: variance of the observation noise, positive.
    pub noise_variance: f64,
}

impl Default for ExactProcessConfig {
    fn default() -> Self {
        Self { location_dim: 1, value_dim: 1, noise_variance: 0.01 }
    }
}

/// How to fit hyperparameters. The function maximised is log p per value, in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitConfig {
    /// Whether values are first shifted and scaled, output by output, to mean 0 and variance 1
    /// over all sets: a fitted constant mean, and hyperparameters of order 1. Densities and
    /// predictions stay in the units of the data.
    pub standardise: bool,
    /// Further starts beside the present hyperparameters: each log θ moved by a normal of
    /// standard deviation 2. The best optimum is kept.
    pub num_restarts: usize,
    /// Stops a start after so many evaluations of log p and its gradient.
    pub max_evaluations: usize,
    /// Stops where no |∂/∂log θ| exceeds this.
    pub gradient_tolerance: f64,
    /// Stops where a step brings less than this, relative to max(1, |log p|).
    pub value_tolerance: f64,
    /// The least value of any hyperparameter.
    pub lower_bound: f64,
    /// The greatest.
    pub upper_bound: f64,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            standardise: true,
            num_restarts: 0,
            max_evaluations: 200,
            gradient_tolerance: 1e-5,
            value_tolerance: 1e-10,
            lower_bound: 1e-5,
            upper_bound: 1e5,
        }
    }
}

impl FitConfig {
    /// Those of the search, whose parameters are logarithms.
    fn limits(&self) -> Limits {
        Limits {
            bounds: [self.lower_bound.ln(), self.upper_bound.ln()],
            max_evaluations: self.max_evaluations,
            gradient_tolerance: self.gradient_tolerance,
            value_tolerance: self.value_tolerance,
        }
    }

    fn check(&self) -> Result<()> {
        if self.max_evaluations == 0 {
            return Err(Error::invalid("max_evaluations", "at least 1", 0));
        }
        if !(self.lower_bound > 0.0 && self.lower_bound < self.upper_bound) {
            let found = format!("{} and {}", self.lower_bound, self.upper_bound);
            return Err(Error::invalid("lower_bound", "positive and below upper_bound", found));
        }
        Ok(())
    }
}

/// What a fit found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitReport {
    /// Σ over sets of log p at the fitted hyperparameters, in the units of the data.
    pub log_marginal: f64,
    /// Evaluations of log p and its gradient, all starts together.
    pub num_evaluations: usize,
    /// Accepted steps of the best start.
    pub num_steps: usize,
    /// Why the best start ended.
    pub stop: Stop,
    /// Which start was best; 0 is the one from the present hyperparameters.
    pub best_start: usize,
    /// The largest jitter that a covariance needed there; 0 if all is well.
    pub jitter: f64,
}

/// Means and variances of values at locations, in the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Row-major `[m, d_x]`.
    pub mean: Vec<f64>,
    /// Row-major `[m, d_x]`, with the observation noise.
    pub variance: Vec<f64>,
}

/// How log p depends on log |K̃| and the forms β_d. Not to be implemented outside of this crate.
pub trait Family: Clone + Debug + Send + Sync {
    /// The name under which results are reported.
    const NAME: &'static str;

    /// The family's own parameters on the real line; none for the Gaussian.
    fn log_parameters(&self) -> Vec<f64>;

    /// With other values of those.
    fn with_log_parameters(&self, log_parameters: &[f64]) -> Self;

    /// The same parameters by name, as they are.
    fn parameters(&self) -> Vec<(&'static str, f64)>;

    /// log p of n numbers of one output with covariance K̃ and form β.
    fn log_density(&self, n: f64, log_determinant: f64, form: f64) -> f64;

    /// log p of n elements; all outputs together.
    fn marginal(&self, n: usize, log_determinant: f64, forms: &[f64]) -> Marginal;

    /// The family of further values once n elements with forms β_d are known, and what multiplies
    /// the variance of each output.
    fn conditioned(&self, n: usize, forms: &[f64]) -> (Self, Vec<f64>);

    /// Fills `noise` with standard normals and returns what multiplies them all.
    fn draw(&self, stream: Stream, noise: &mut [f64]) -> f64;
}

/// log p and its derivatives with respect to what it depends on.
#[derive(Clone, Debug)]
pub struct Marginal {
    /// log p.
    pub value: f64,
    /// s_d = −2 ∂ log p/∂β_d.
    pub scales: Vec<f64>,
    /// With respect to the family's own parameters.
    pub gradient: Vec<f64>,
}

/// A covariance, a family, and the units of the values: see
/// [`GaussianProcess`](super::GaussianProcess) and [`StudentTProcess`](super::StudentTProcess).
#[derive(Clone, Debug)]
pub struct EllipticalProcess<F> {
    covariance: Covariance,
    pub(in crate::process) family: F,
    means: Vec<f64>,
    std_devs: Vec<f64>,
}

impl<F: Family> EllipticalProcess<F> {
    pub(in crate::process) fn from_family(
        kernel: Box<dyn Kernel>,
        config: &ExactProcessConfig,
        family: F,
    ) -> Result<Self> {
        let ExactProcessConfig { location_dim, value_dim, noise_variance } = *config;
        for (field, dim) in [("location_dim", location_dim), ("value_dim", value_dim)] {
            if dim == 0 {
                return Err(Error::invalid(field, "at least 1", dim));
            }
        }
        if !(noise_variance > 0.0 && noise_variance.is_finite()) {
            return Err(Error::invalid("noise_variance", "positive and finite", noise_variance));
        }
        Ok(Self {
            covariance: Covariance { kernel: kernel.into(), noise_variance, location_dim },
            family,
            means: vec![0.0; value_dim],
            std_devs: vec![1.0; value_dim],
        })
    }

    fn value_dim(&self) -> usize {
        self.means.len()
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.covariance.kernel
    }

    /// Logarithms of the kernel's hyperparameters, of the noise variance and of the family's own
    /// (ν − 2 of the Student-t process), in the units of the scaled values.
    pub fn log_parameters(&self) -> Vec<f64> {
        [self.covariance.log_parameters(), self.family.log_parameters()].concat()
    }

    /// All hyperparameters by name, the kernel's, the noise variance and the family's own, in the units of
    /// the scaled values.
    pub fn hyperparameters(&self) -> Vec<(&'static str, f64)> {
        let kernel = self.kernel();
        let own = kernel.log_parameters().into_iter().map(f64::exp);
        let mut all: Vec<_> = kernel.parameter_names().into_iter().zip(own).collect();
        all.push(("noise_variance", self.covariance.noise_variance));
        all.extend(self.family.parameters());
        all
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Self> {
        let num_family = self.family.log_parameters().len();
        let (of_covariance, of_family) = log_parameters.split_at(log_parameters.len() - num_family);
        Ok(Self {
            covariance: self.covariance.with_log_parameters(of_covariance)?,
            family: self.family.with_log_parameters(of_family),
            ..self.clone()
        })
    }

    /// Everything that a fit decides: means, standard deviations, then
    /// [`log_parameters`](Self::log_parameters).
    pub fn fitted_numbers(&self) -> Vec<f64> {
        [self.means.clone(), self.std_devs.clone(), self.log_parameters()].concat()
    }

    /// The process with what [`fitted_numbers`](Self::fitted_numbers) gave.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] if there are more or fewer numbers; [`Error::InvalidValue`] if one leaves the
    /// range of f64.
    pub fn with_fitted_numbers(&self, numbers: &[f64]) -> Result<Self> {
        let (dim, expected) = (self.value_dim(), self.fitted_numbers().len());
        check_length("fitted numbers", numbers.len(), expected, || {
            format!("2 x value_dim {dim} and the hyperparameters")
        })?;
        let mut fitted = self.with_log_parameters(&numbers[2 * dim..])?;
        fitted.means = numbers[..dim].to_vec();
        fitted.std_devs = numbers[dim..2 * dim].to_vec();
        Ok(fitted)
    }

    fn check(&self, set: &IndexedSet) -> Result<()> {
        let dims = [
            ("location_dim", self.covariance.location_dim, set.location_dim()),
            ("value_dim", self.value_dim(), set.value_dim()),
        ];
        for (field, expected, found) in dims {
            if expected != found {
                return Err(Error::invalid(
                    field,
                    format!("{expected}, as the process has"),
                    found,
                ));
            }
        }
        Ok(())
    }

    fn check_locations(&self, locations: &[f64]) -> Result<()> {
        let dim = self.covariance.location_dim;
        if !locations.len().is_multiple_of(dim) {
            let expected = format!("whole rows of {dim} numbers");
            return Err(Error::invalid("locations", expected, locations.len()));
        }
        match locations.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(i) => Err(Error::invalid(format!("locations[{i}]"), "finite", locations[i])),
        }
    }

    /// (x − mean)/std_dev, output by output, as columns.
    fn scaled(&self, values: &[f64]) -> Matrix {
        let mut matrix = Matrix::from_rows(self.value_dim(), values);
        for (d, (mean, std_dev)) in self.means.iter().zip(&self.std_devs).enumerate() {
            matrix.column_mut(d).iter_mut().for_each(|x| *x = (*x - mean) / std_dev);
        }
        matrix
    }

    /// log |dx/d scaled| of one element: Σ_d log std_dev_d.
    fn log_scale(&self) -> f64 {
        self.std_devs.iter().map(|s| s.ln()).sum()
    }

    fn solve(&self, set: &IndexedSet, storage: Matrix) -> Result<Solved> {
        self.check(set)?;
        self.covariance.solve(set.locations(), self.scaled(set.values()), storage)
    }

    /// Σ log p over independent `sets`, and its gradient with respect to
    /// [`log_parameters`](Self::log_parameters).
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn log_marginal_gradient(&self, sets: &[IndexedSet]) -> Result<(f64, Vec<f64>)> {
        let found = self.evaluate(sets, &Mutex::default())?;
        Ok((found.value, found.gradient))
    }

    /// Σ log p over independent sets, its gradient with respect to
    /// [`log_parameters`](Self::log_parameters), and the largest jitter.
    fn evaluate(
        &self,
        sets: &[IndexedSet],
        workspaces: &Mutex<Vec<Workspace>>,
    ) -> Result<Evaluation> {
        let of_set = |set: &IndexedSet| {
            // A poisoned pool only means that memory is not reused.
            let space = workspaces.lock().ok().and_then(|mut pool| pool.pop()).unwrap_or_default();
            let solved = self.solve(set, space.storage)?;
            let jitter = solved.cholesky.jitter();
            let marginal = self.family.marginal(set.len(), solved.log_determinant, &solved.forms);
            let (mut gradient, space) =
                self.covariance.gradient(set.locations(), solved, &marginal.scales, space.scratch);
            if let Ok(mut pool) = workspaces.lock() {
                pool.push(space);
            }
            gradient.extend(marginal.gradient);
            let value = marginal.value - set.len() as f64 * self.log_scale();
            Ok(Evaluation { value, gradient, jitter })
        };
        let parts: Vec<Evaluation> = sets.par_iter().map(of_set).collect::<Result<_>>()?;
        let num_parameters = self.log_parameters().len();
        let mut total = Evaluation { value: 0.0, gradient: vec![0.0; num_parameters], jitter: 0.0 };
        for part in parts {
            total.value += part.value;
            total.gradient.iter_mut().zip(part.gradient).for_each(|(sum, g)| *sum += g);
            total.jitter = total.jitter.max(part.jitter);
        }
        Ok(total)
    }

    /// The process with the hyperparameters, the family's own among them, that maximise Σ log p over
    /// independent `sets`. The present ones are the first start; `stream` moves the others. The
    /// bounds of `config` hold for all of them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the sets have other dimensions or no elements, or `config` is out
    /// of range; [`Error::NotPositiveDefinite`] if no start has a covariance with a factor.
    pub fn fit(
        &self,
        sets: &[IndexedSet],
        config: &FitConfig,
        stream: Stream,
    ) -> Result<(Self, FitReport)> {
        config.check()?;
        sets.iter().try_for_each(|set| self.check(set))?;
        let num_values = sets.iter().map(|set| set.values().len()).sum::<usize>() as f64;
        if num_values == 0.0 {
            return Err(Error::invalid("sets", "at least one element to fit to", "none"));
        }
        let model = if config.standardise { self.standardised(sets) } else { self.clone() };
        let workspaces = Mutex::new(Vec::new());
        // −log p per value
        let objective = |log_parameters: &[f64]| {
            let mut found =
                model.with_log_parameters(log_parameters)?.evaluate(sets, &workspaces)?;
            found.value /= -num_values;
            found.gradient.iter_mut().for_each(|g| *g /= -num_values);
            Ok(found)
        };
        let limits = config.limits();
        let start = self.log_parameters();
        let mut best: Option<(usize, Minimum)> = None;
        let mut failure = None;
        let mut num_evaluations = 0;
        for number in 0..=config.num_restarts {
            let mut moved = start.clone();
            if number > 0 {
                let mut noise = vec![0.0; start.len()];
                draw::fill_normal(stream.child(number as u64), 0, &mut noise);
                moved.iter_mut().zip(noise).for_each(|(p, z)| *p += 2.0 * z);
            }
            match minimise(&moved, &limits, objective) {
                Ok(minimum) => {
                    num_evaluations += minimum.num_evaluations;
                    let is_better = best
                        .as_ref()
                        .is_none_or(|(_, least)| minimum.evaluation.value < least.evaluation.value);
                    if is_better {
                        best = Some((number, minimum));
                    }
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let Some((best_start, minimum)) = best else {
            return Err(failure.unwrap_or_else(|| Error::invalid("num_restarts", "finite", "none")));
        };
        let report = FitReport {
            log_marginal: -num_values * minimum.evaluation.value,
            num_evaluations,
            num_steps: minimum.num_steps,
            stop: minimum.stop,
            best_start,
            jitter: minimum.evaluation.jitter,
        };
        Ok((model.with_log_parameters(&minimum.parameters)?, report))
    }

    /// With the means and standard deviations of the outputs over all sets; an output that does
    /// not vary keeps scale 1.
    fn standardised(&self, sets: &[IndexedSet]) -> Self {
        let mut model = self.clone();
        for d in 0..self.value_dim() {
            let column = || {
                sets.iter()
                    .flat_map(|set| set.values().chunks_exact(self.value_dim()))
                    .map(|x| x[d])
            };
            let count = column().count() as f64;
            let mean = column().sum::<f64>() / count;
            let std_dev = (column().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
            model.means[d] = mean;
            model.std_devs[d] = if std_dev > 0.0 { std_dev } else { 1.0 };
        }
        model
    }
}

impl<F: Family> EllipticalProcess<F> {
    /// The law of further elements given `context`, with means and variances.
    ///
    /// # Errors
    ///
    /// As [`Process::condition`], and [`Error::NotPositiveDefinite`].
    pub fn posterior(&self, context: &IndexedSet) -> Result<EllipticalPredictive<'_, F>> {
        let solved = self.solve(context, Matrix::default())?;
        let (family, widenings) = self.family.conditioned(context.len(), &solved.forms);
        let locations = context.locations().to_vec();
        Ok(EllipticalPredictive { process: self, family, widenings, locations, solved })
    }
}

impl<F: Family> Process for EllipticalProcess<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.posterior(context)?))
    }
}

impl<F: Family> ExactProcess for EllipticalProcess<F> {
    fn log_marginal(&self, set: &IndexedSet) -> Result<f64> {
        let solved = self.solve(set, Matrix::default())?;
        let marginal = self.family.marginal(set.len(), solved.log_determinant, &solved.forms);
        Ok(marginal.value - set.len() as f64 * self.log_scale())
    }
}
