//! Training: one loop for every model.

use std::collections::BTreeMap;
use std::fmt::Debug;

use candle_core::Tensor;

use crate::Result;
use crate::rng::Stream;

/// What a training run trains: a model with its optimisers and averages.
///
/// A step is a pure function of the state, the step's number and the stream, so that a run which
/// was interrupted and restored goes on exactly as one that was not.
pub trait Trainable: Debug {
    /// Draws a batch from `stream`, updates the model once and says what happened: named numbers
    /// in the order in which they should be shown, losses first.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`](crate::Error::NonFinite) or
    /// [`Error::NonFiniteGradient`](crate::Error::NonFiniteGradient) if the step diverged; the
    /// state is then spoilt and must be restored.
    fn step(&mut self, step: &Step) -> Result<Record>;

    /// Everything that a later step depends on: parameters, buffers, optimisers, averages.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be read.
    fn state(&self) -> Result<BTreeMap<String, Tensor>>;

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does
    /// not fit or is not known.
    fn restore(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()>;
}

/// Which step to take, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// From 0.
    pub number: u64,
    /// Of how many, for schedules.
    pub num_steps: u64,
    /// All randomness of the step.
    pub stream: Stream,
    /// Multiplies every learning rate; below 1 after a rollback.
    pub learning_rate_factor: f64,
}

/// Named numbers of one step, in the order in which they should be shown.
pub type Record = Vec<(&'static str, f64)>;
