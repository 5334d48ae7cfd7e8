//! Stochastic processes: laws of values at locations, conditioned on some of them.
//!
//! Every model of measurements answers the same two questions through [`Process`] and
//! [`Predictive`], whatever is inside: how likely is this value at that place, and what values
//! could there be. Processes whose finite marginals are known in closed form also implement
//! [`ExactProcess`].

pub mod bruno;
mod covariance;
mod draw;
mod energy_based;
mod exact;
mod gaussian;
pub mod gplvm;
pub mod hidden_locations;
mod hypotheses;
mod implicit;
mod lbfgs;
mod learner;
mod neighbours;
pub mod neural;
mod parametric;
mod pareto;
mod picture;
mod rounds;
mod set_energy;
pub(crate) mod special;
mod standardised;
pub mod statistician;
mod student_t;
mod task;

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::rng::Stream;
use crate::{IndexedSet, Result};

pub use energy_based::{
    BagEvidence, BagPredictive, Batch, BatchMaker, BoundedPartition, DenoiseSettings, DrawReport,
    DrawSettings, DrawTally, EnergyBasedPredictive, EnergyBasedProcess, FillSettings, LatentCodes,
    LevelsPredictive, PartitionBounds, PointMethod, PointStart, PointsPredictive, PredictionRule,
    Rendered, Rendering, ScoreSettings, SetScore,
};
pub(crate) use energy_based::{ENCODED_AT_ONCE, num_draw_groups};
pub use exact::{ExactProcessConfig, FitConfig, FitReport, Prediction};
pub use gaussian::{GaussianPredictive, GaussianProcess};
pub use hypotheses::{Hypotheses, LatentProcess};
pub use implicit::{VariationalImplicitProcess, VariationalImplicitProcessConfig};
pub use lbfgs::Stop;
pub(crate) use lbfgs::{Evaluation, Limits, minimise};
pub use learner::{Learner, Preparation, Prepared, Preparer};
pub use neighbours::neighbour_density;
pub use parametric::Parametric;
pub use pareto::{HOLDS as PARETO_HOLDS, pareto_shape};
pub use picture::{LEVEL_CELL, cut_picture, picture_task};
pub(crate) use rounds::{Finish, draw_in_rounds, log_mass_in_rounds};
pub use set_energy::{
    GeneratorKind, GuessTarget, Interaction, Refining, SetBase, SetEnergyConfig, SetEnergyProcess,
    SetEstimator, SizeLaw, SummaryPooling,
};
pub use standardised::{Standardised, StandardisedPredictive};
pub use student_t::{StudentTPredictive, StudentTProcess};
pub use task::Task;

/// A law of values at locations, ready to be conditioned.
pub trait Process: Debug + Send + Sync {
    /// The name under which results are reported, such as `gp`.
    fn name(&self) -> &'static str;

    /// The law of further elements once those of `context` are known. The order of the context's
    /// elements does not matter, nor does their number; it may be empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the context's dimensions are not
    /// those of the process.
    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>>;
}

/// The law of further elements, given a context.
pub trait Predictive: Debug {
    /// log p(x | t, context) of each element of `targets` on its own, in nats per element.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the targets' dimensions are not
    /// those of the process.
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>>;

    /// log p(x₁, …, xₘ | t₁, …, tₘ, context) of all `targets` together; `None` where the process has no
    /// law of several elements.
    ///
    /// # Errors
    ///
    /// As [`log_density`](Self::log_density).
    fn log_joint(&self, _targets: &IndexedSet) -> Result<Option<LogDensity>> {
        Ok(None)
    }

    /// Joint draws of the values at `locations` `[m, d_t]`, as `[count, m, d_x]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if `locations` is not a whole number
    /// of rows.
    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>>;
}

/// A log density, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogDensity {
    /// log p in nats.
    pub value: f64,
    /// Standard error of `value`; 0 where it is exact or by quadrature.
    pub std_error: f64,
}

impl LogDensity {
    /// log of the mean of exp, with its standard error by the delta method: for weights w of mean
    /// w̄, se(log w̄) ≈ sd(w) / (√K w̄). One term is exact.
    pub(crate) fn of_mean(terms: &[f64]) -> Self {
        let count = terms.len() as f64;
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if terms.len() < 2 || !largest.is_finite() {
            // max passes over NaN; a sum does not.
            let value = if terms.iter().any(|term| term.is_nan()) { f64::NAN } else { largest };
            return Self { value, std_error: 0.0 };
        }
        let weights: Vec<f64> = terms.iter().map(|term| (term - largest).exp()).collect();
        let mean = weights.iter().sum::<f64>() / count;
        let squares: f64 = weights.iter().map(|w| (w - mean).powi(2)).sum();
        let std_error = (squares / (count - 1.0) / count).sqrt() / mean;
        Self { value: largest + mean.ln(), std_error }
    }
}

/// A process whose joint densities are known in closed form.
pub trait ExactProcess: Process {
    /// log p(x₁, …, xₙ | t₁, …, tₙ).
    ///
    /// # Errors
    ///
    /// As [`Process::condition`].
    fn log_marginal(&self, set: &IndexedSet) -> Result<f64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_mean_comes_with_its_error() {
        // Weights 1 and 3 (shifted far down): mean 2, sd √2, standard error 1, relative ½.
        let found = LogDensity::of_mean(&[-1000.0, -1000.0 + 3_f64.ln()]);
        assert!((found.value - (2_f64.ln() - 1000.0)).abs() < 1e-9);
        assert!((found.std_error - 0.5).abs() < 1e-12);
        assert_eq!(LogDensity::of_mean(&[-3.0]), LogDensity { value: -3.0, std_error: 0.0 });
        let nothing = LogDensity::of_mean(&[f64::NEG_INFINITY; 2]);
        assert!(nothing.value < f64::MIN && nothing.std_error == 0.0);
        for terms in [&[f64::NAN][..], &[f64::NAN; 2], &[f64::NAN, 0.0, 1.0]] {
            assert!(LogDensity::of_mean(terms).value.is_nan());
        }
    }
}
