//! Training: one loop for every model.
//!
//! ```text
//! Trainable ── Trainer ── Event → Observer   metrics, TensorBoard, a progress bar
//!                 │
//!          CheckpointStore                   where it goes on after an interruption
//! ```
//!
//! A [`Trainer`] takes the steps of a [`Trainable`], saves its state every so often, and watches
//! for numbers that are not finite. A run that was stopped, killed or rolled back is bit for bit
//! the run that its seed and configuration describe, because a step depends on nothing but the
//! state, its number and its stream. [`RunDirectory`] is the folder where all of it is kept.

mod ahead;
mod clouds;
mod config;
mod loop_state;
mod metrics;
mod observer;
mod pictures;
mod regression;
mod replicas;
mod run;
mod run_directory;
mod set_energies;
mod tasks;
mod tensorboard;
mod topics;
mod trainer;

use std::fmt::Debug;

pub use self::clouds::CloudTraining;
pub use self::config::{BestIs, OnDivergence, TrainerConfig};
pub use self::metrics::Metrics;
pub use self::observer::{Event, Observer, Silent, StepNumbers};
pub use self::pictures::{PictureTaskConfig, PictureTasks, Pictures};
pub use self::regression::{CurveTasks, Regression, TaskConfig, TaskSource};
pub use self::replicas::{Replicas, Shardable};
pub use self::run::{Finished, Plan, Program, Surroundings, run_training, seconds_of_training};
pub use self::run_directory::{Existing, RunDescription, RunDirectory};
pub use self::set_energies::{SetSource, SetTraining};
pub use self::tasks::{TaskTraining, Tasks};
pub use self::tensorboard::TensorBoard;
pub use self::topics::TopicTraining;
pub use self::trainer::{Evaluation, Outcome, Session, Trainer};
use crate::Result;
pub use crate::nn::{Record, Step};
use crate::tensor::Tensors;

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

    /// Says which step follows the one that is about to be taken, if nothing comes in between. A
    /// model may begin to prepare what that step reads; nothing else may depend on it.
    fn foresee(&mut self, _next: &Step) {}

    /// Makes what `step` reads before it is taken, and waits for it: whoever times a step may then
    /// leave that out. A model that has nothing to prepare does nothing.
    ///
    /// # Errors
    ///
    /// Those of [`step`](Self::step) that its batch has.
    fn prepare(&mut self, _step: &Step) -> Result<()> {
        Ok(())
    }

    /// How many shards a step is cut into: 1 unless it is made for more.
    fn num_shards(&self) -> usize {
        1
    }

    /// Everything that a later step depends on: parameters, buffers, optimisers, averages.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    fn state(&self) -> Result<Tensors>;

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does
    /// not fit or is not known.
    fn restore(&mut self, state: &Tensors) -> Result<()>;
}
