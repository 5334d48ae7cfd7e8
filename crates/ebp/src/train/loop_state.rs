//! Where a run stands: steps taken, rollbacks, the last good state.

use std::fmt::Display;

use super::{BestIs, Event, Session, TrainerConfig};
use crate::checkpoint::{Best, Checkpoint, CheckpointMeta, Rollback};
use crate::tensor::{TensorValues, Tensors};
use crate::{Error, Result};

/// A number that is not finite.
#[derive(Debug)]
pub(super) struct Divergence {
    /// The step that made it.
    pub(super) step: u64,
    /// Its name.
    pub(super) quantity: String,
    /// Its value, in words.
    pub(super) found: String,
}

impl Divergence {
    pub(super) fn new(quantity: impl Into<String>, found: impl Display, step: u64) -> Self {
        Self { step, quantity: quantity.into(), found: found.to_string() }
    }

    /// Tells a step that diverged from one that failed, whose error is handed on.
    pub(super) fn from_error(error: Error, step: u64) -> Result<Self> {
        match error.divergence() {
            Some((quantity, found)) => Ok(Self::new(quantity, found, step)),
            None => Err(error),
        }
    }
}

/// Where a run stands.
#[derive(Debug)]
pub(super) struct LoopState {
    /// What the next checkpoint will say.
    pub(super) meta: CheckpointMeta,
    /// The last good state, to which a rollback returns.
    pub(super) milestone: Checkpoint,
    /// Step and number of rollbacks of the last checkpoint.
    saved: Option<(u64, u64)>,
}

impl LoopState {
    pub(super) fn new(meta: CheckpointMeta, milestone: Checkpoint) -> Self {
        Self { meta, milestone, saved: None }
    }

    pub(super) fn num_rollbacks(&self) -> u64 {
        self.meta.rollbacks.len() as u64
    }

    /// Whether a checkpoint holds the present state.
    pub(super) fn is_saved(&self) -> bool {
        self.saved == Some((self.meta.step, self.num_rollbacks()))
    }

    pub(super) fn mark_saved(&mut self) {
        self.saved = Some((self.meta.step, self.num_rollbacks()));
    }

    /// Writes a checkpoint, if there is a place for it, and says so.
    pub(super) fn save<T: ?Sized>(
        &mut self,
        tensors: Tensors,
        config: &TrainerConfig,
        session: &mut Session<'_, T>,
    ) -> Result<()> {
        let Some(store) = session.store else { return Ok(()) };
        let checkpoint = Checkpoint { state: tensors, meta: self.meta.clone() };
        let path = store.save(&checkpoint, config.checkpoint_every)?;
        self.mark_saved();
        let (step, place) = (self.meta.step, (self.meta.step, self.num_rollbacks()));
        let is_best =
            self.meta.best.as_ref().is_some_and(|best| (best.step, best.num_rollbacks) == place);
        session.observer.observe(&Event::Checkpoint { step, path: &path, is_best })
    }

    /// Takes note of an evaluation and says whether it is the best so far.
    pub(super) fn update_best(&mut self, value: f64, best_is: BestIs) -> bool {
        let is_better = best_is.is_better(value, self.meta.best.as_ref().map(|best| best.value));
        if is_better {
            let num_rollbacks = self.num_rollbacks();
            self.meta.best = Some(Best { step: self.meta.step, num_rollbacks, value });
        }
        is_better
    }

    /// Goes back to the milestone with half the learning rate.
    pub(super) fn roll_back(&mut self, divergence: &Divergence) -> Rollback {
        self.meta.learning_rate_factor *= 0.5;
        self.meta.step = self.milestone.meta.step;
        // An evaluation of the step that diverged has no checkpoint to point at.
        if self.meta.best.as_ref().is_some_and(|best| best.step > divergence.step) {
            self.meta.best.clone_from(&self.milestone.meta.best);
        }
        let rollback = Rollback {
            from_step: divergence.step,
            to_step: self.meta.step,
            quantity: divergence.quantity.clone(),
            found: divergence.found.clone(),
            learning_rate_factor: self.meta.learning_rate_factor,
        };
        self.meta.rollbacks.push(rollback.clone());
        rollback
    }
}

/// The first number of a state that is NaN or infinite, with the name of its tensor.
pub(super) fn first_non_finite(state: &Tensors) -> Option<(String, f64)> {
    state.iter().find_map(|(name, tensor)| {
        let found = match tensor.values() {
            TensorValues::F32(all) => all.iter().find(|x| !x.is_finite()).copied().map(f64::from),
            TensorValues::F64(all) => all.iter().find(|x| !x.is_finite()).copied(),
            TensorValues::I64(_) => None,
        };
        Some((name.clone(), found?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_are_divergence_and_other_errors_are_not() {
        let error = Error::NonFinite { field: "score", index: 3, value: f32::NAN, remedy: "rest" };
        let divergence = Divergence::from_error(error, 7).unwrap();
        assert_eq!((divergence.quantity.as_str(), divergence.found.as_str()), ("score", "NaN"));
        assert!(Divergence::from_error(Error::invalid("a", "b", "c"), 7).is_err());
    }
}
