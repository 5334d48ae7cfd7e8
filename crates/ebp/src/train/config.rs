//! Settings of a training run that are not the model's.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Settings of a [`Trainer`](super::Trainer).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainerConfig {
    /// How many steps to take.
    pub num_steps: u64,
    /// A checkpoint after so many steps, and one at the start and the end. A rollback goes to the
    /// newest of these.
    pub checkpoint_every: u64,
    /// How many of the newest checkpoints to keep; the best one is kept in addition.
    pub num_kept: usize,
    /// The record of one in so many steps is written to the files of the run.
    pub record_every: u64,
    /// What to do when a number is not finite.
    pub on_divergence: OnDivergence,
    /// After so many rollbacks the run stops.
    pub max_rollbacks: u64,
    /// The quantity of the evaluations by which the best checkpoint is chosen.
    pub best_quantity: Option<String>,
    /// Which value of `best_quantity` is the best.
    pub best_is: BestIs,
    /// How many shards every step is cut into, to be computed by as many devices or processes at most. The
    /// result depends on it, and not on who computes them. It is written where it is not 1.
    #[serde(skip_serializing_if = "is_whole")]
    pub shards: usize,
}

/// Whether steps are not cut.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_whole(shards: &usize) -> bool {
    *shards == 1
}

/// What to do when a step yields a number that is NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDivergence {
    /// End the run with an error; the last good checkpoint is kept.
    Stop,
    /// Go back to the last good state, halve the learning rates and go on with fresh noise.
    Rollback,
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BestIs {
    /// The smaller one, as of losses and distances.
    Lowest,
    /// The larger one, as of likelihoods and accuracies.
    Highest,
}

impl BestIs {
    /// Whether `value` is better than the best one so far.
    pub(super) fn is_better(self, value: f64, best: Option<f64>) -> bool {
        value.is_finite()
            && best.is_none_or(|best| match self {
                Self::Lowest => value < best,
                Self::Highest => value > best,
            })
    }
}

impl Default for TrainerConfig {
    /// 10 000 steps, a checkpoint every 1000 of which two are kept, every record written, an end
    /// at the first number that is not finite (after 5 rollbacks if those are chosen).
    fn default() -> Self {
        Self {
            num_steps: 10_000,
            checkpoint_every: 1000,
            num_kept: 2,
            record_every: 1,
            on_divergence: OnDivergence::Stop,
            max_rollbacks: 5,
            best_quantity: None,
            best_is: BestIs::Lowest,
            shards: 1,
        }
    }
}

impl TrainerConfig {
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a setting that is 0.
    pub(super) fn check(&self) -> Result<()> {
        let positive = [
            ("checkpoint_every", self.checkpoint_every),
            ("num_kept", self.num_kept as u64),
            ("record_every", self.record_every),
            ("shards", self.shards as u64),
        ];
        match positive.iter().find(|(_, value)| *value == 0) {
            Some((field, value)) => Err(Error::invalid(*field, "at least 1", value)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_be_better_than_the_first_but_nan() {
        assert!(BestIs::Lowest.is_better(3.0, None));
        assert!(!BestIs::Lowest.is_better(f64::NAN, None));
        assert!(BestIs::Lowest.is_better(2.0, Some(3.0)));
        assert!(!BestIs::Lowest.is_better(3.0, Some(3.0)));
        assert!(BestIs::Highest.is_better(4.0, Some(3.0)));
        assert!(!BestIs::Highest.is_better(f64::INFINITY, Some(3.0)));
    }
}
