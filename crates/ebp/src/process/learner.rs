//! Processes that learn.

use super::{Process, Task};
use crate::Result;
use crate::nn::{Record, Step};
use crate::tensor::Tensors;

/// A process that learns from tasks, one step at a time.
pub trait Learner: Process {
    /// Updates the process once and says what happened: named numbers, losses first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a task does not fit,
    /// [`Error::NonFinite`](crate::Error::NonFinite) or
    /// [`Error::NonFiniteGradient`](crate::Error::NonFiniteGradient) if the step diverged.
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record>;

    /// Predicts with averages of the parameters from now on, if the process keeps any; learning
    /// takes up the parameters themselves again.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be exchanged.
    fn use_average(&mut self) -> Result<()> {
        Ok(())
    }

    /// Predicts with the parameters themselves again.
    ///
    /// # Errors
    ///
    /// As [`use_average`](Self::use_average).
    fn use_parameters(&mut self) -> Result<()> {
        Ok(())
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be read.
    fn state(&self) -> Result<Tensors>;

    /// Takes back what [`state`](Self::state) gave: learning goes on bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does
    /// not fit or is not known.
    fn restore(&mut self, state: &Tensors) -> Result<()>;
}
