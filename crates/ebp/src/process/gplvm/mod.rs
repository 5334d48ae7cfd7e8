//! Gaussian-process latent variable models (Lawrence, 2004): rows of a table at locations that nobody
//! measured, found from the table alone.
//!
//! ```text
//! point      max over t:   log p(x | t) = Σ_d log N(x_d; 0, K(t₁, …, tₙ) + σ²I),   d over columns
//! bayesian   q(t) = ∏ N(μᵢ, Sᵢ) against p(t) = N(0, I): a lower bound of log p(x)   (`bayesian.rs`)
//! ```
//!
//! In the paper's terms: a Gaussian process with a point estimate of its index variables under an
//! improper uniform prior. Given locations, further values are those of a Gaussian process, and a new
//! row finds its location by maximising its own density (`conditional.rs`).
//!
//! n³ operations an evaluation for the point estimate, n m² for m inducing points of the Bayesian one.

mod bayesian;
mod conditional;
mod point;
mod principal;
mod psi;

use std::fmt::Debug;

pub use bayesian::BayesianGplvm;
pub use conditional::{Conditional, Embedding};
pub use point::Gplvm;
pub use principal::principal_components;

use super::lbfgs::{Evaluation, Limits, Stop, minimise};
use crate::{Error, IndexedSet, Result};

/// Latents and logarithms stay within this: kernels are constant long before.
const FARTHEST: f64 = 60.0;

/// A model of rows with latent locations that is fitted by climbing one function of its parameters.
pub trait LatentMap: Debug + Sized {
    /// Everything that a fit decides, as real numbers.
    fn parameters(&self) -> Vec<f64>;

    /// The same model with other values of those.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] if there are more or fewer, [`Error::InvalidValue`] if one leaves its range.
    fn with_parameters(&self, parameters: &[f64]) -> Result<Self>;

    /// What is maximised, log p(x | t) or its bound, with its gradient.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] if a covariance cannot be factorised.
    fn objective(&self) -> Result<Objective>;

    /// Rows at latent locations: the estimates, or the means.
    fn rows(&self) -> &IndexedSet;

    /// The latent locations `[n, q]`.
    fn latents(&self) -> &[f64] {
        self.rows().locations()
    }

    /// q.
    fn latent_dim(&self) -> usize {
        self.rows().location_dim()
    }

    /// The rows `[n, d]`.
    fn values(&self) -> &[f64] {
        self.rows().values()
    }

    /// d.
    fn value_dim(&self) -> usize {
        self.rows().value_dim()
    }

    /// ℓ of every latent dimension, as the squared exponential part of the kernel has them.
    fn length_scales(&self) -> Vec<f64>;

    /// The law of a row at a location, given all rows.
    ///
    /// # Errors
    ///
    /// As [`objective`](Self::objective).
    fn conditional(&self) -> Result<Conditional>;

    /// Climbs for at most `max_evaluations` evaluations.
    ///
    /// # Errors
    ///
    /// As [`objective`](Self::objective), at the start; later failures only shorten a step.
    fn climbed(&self, max_evaluations: usize) -> Result<(Self, Climb)> {
        let limits = Limits {
            bounds: [-FARTHEST, FARTHEST],
            max_evaluations,
            gradient_tolerance: 1e-7,
            value_tolerance: 1e-11,
        };
        // Per number of the table, so that tolerances mean the same for every size.
        let share = 1.0 / self.values().len().max(1) as f64;
        let minimum = minimise(&self.parameters(), &limits, |parameters| {
            let found = self.with_parameters(parameters)?.objective()?;
            let gradient = found.gradient.iter().map(|slope| -share * slope).collect();
            Ok(Evaluation { value: -share * found.value, gradient, jitter: found.jitter })
        })?;
        let climb = Climb {
            value: -minimum.evaluation.value / share,
            num_evaluations: minimum.num_evaluations,
            stop: minimum.stop,
            jitter: minimum.evaluation.jitter,
        };
        Ok((self.with_parameters(&minimum.parameters)?, climb))
    }
}

/// A function value with its gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// In nats, of all numbers of the table.
    pub value: f64,
    /// By [`LatentMap::parameters`].
    pub gradient: Vec<f64>,
    /// What had to be added to a covariance's diagonal; 0 if all is well.
    pub jitter: f64,
}

/// What climbing found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Climb {
    /// The objective where it ended.
    pub value: f64,
    /// Evaluations of it and its gradient.
    pub num_evaluations: usize,
    /// Why it ended.
    pub stop: Stop,
    /// The jitter there.
    pub jitter: f64,
}

/// That `values` are whole rows of `value_dim` finite numbers, at least two, and more than latent dimensions.
fn check_table(values: &[f64], value_dim: usize, latent_dim: usize) -> Result<usize> {
    for (field, dim) in [("value_dim", value_dim), ("latent_dim", latent_dim)] {
        if dim == 0 {
            return Err(Error::invalid(field, "at least 1", dim));
        }
    }
    if !values.len().is_multiple_of(value_dim) {
        let expected = format!("whole rows of {value_dim} numbers");
        return Err(Error::invalid("values", expected, format!("{} numbers", values.len())));
    }
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        let field = format!("values[{}][{}]", place / value_dim, place % value_dim);
        return Err(Error::invalid(field, "finite", values[place]));
    }
    let num_rows = values.len() / value_dim;
    if num_rows < 2 {
        return Err(Error::invalid("rows", "at least 2", num_rows));
    }
    if latent_dim >= num_rows {
        let expected = format!("below {num_rows}, the number of rows");
        return Err(Error::invalid("latent_dim", expected, latent_dim));
    }
    Ok(num_rows)
}
