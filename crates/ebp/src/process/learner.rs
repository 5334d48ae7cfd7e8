//! Processes that learn.
//!
//! A step of a network reads a batch that depends on nothing but tasks and the step: a [`Preparer`]
//! makes it of f32 numbers, on any thread, while the step before computes. Processes in closed form
//! read tasks with all their digits.
//!
//! ```text
//! TaskBatch ── Preparer::prepare ── batch ── Learner::learn_prepared     a step ahead
//! [Task] ─────────────── Learner::learn                                  both at once
//! ```

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Process, Task};
use crate::batch::TaskBatch;
use crate::exchange::Seat;
use crate::nn::{Record, Step};
use crate::tensor::Tensors;
use crate::{Error, Result};

/// A process that learns from tasks, one step at a time.
pub trait Learner: Process {
    /// Updates the process once and says what happened: named numbers, losses first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a task does not fit, [`Error::NonFinite`] or
    /// [`Error::NonFiniteGradient`] if the step diverged.
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record> {
        let Some(preparation) = self.preparation() else {
            let found = "neither batches nor `learn`";
            return Err(Error::invalid("learner", "one that learns from tasks", found));
        };
        let batch = preparation.prepare(&Task::batch(tasks)?, step)?;
        self.learn_prepared(batch, step)
    }

    /// Who makes batches ahead of their steps; `None` if a step must see its tasks.
    fn preparation(&self) -> Option<Preparation> {
        None
    }

    /// As [`learn`](Self::learn), from a batch that [`preparation`](Self::preparation) made for the
    /// same step.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn), and if the batch was made by another kind of learner.
    fn learn_prepared(&mut self, batch: Prepared, _step: &Step) -> Result<Record> {
        Err(Error::invalid("batch", "none, since this learner prepares none", format!("{batch:?}")))
    }

    /// Lets every later step be one of all shards of a circle; the batches of
    /// [`learn_prepared`](Self::learn_prepared) are then those of one shard.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the process takes no steps along gradients that could be added.
    fn join(&mut self, _seat: &Arc<Seat>) -> Result<()> {
        let message = format!("steps of `{}` cannot be cut into shards", self.name());
        Err(Error::refused(message).with_help("leave `train.shards` at 1 and name one device"))
    }

    /// Whether steps are taken on a GPU: more threads may then prepare.
    fn learns_on_gpu(&self) -> bool {
        false
    }

    /// Predicts with averages of the parameters from now on, if the process keeps any; learning
    /// takes up the parameters themselves again.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
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

    /// Draws of a latent that predictions average over from now on, at least one; nothing where there is
    /// no latent to draw.
    fn set_num_draws(&mut self, _count: usize) {}

    /// What a fit to all sets at once found, by name: its hyperparameters in standardised units, and
    /// `evaluations`, how often it went through the sets. Nothing where networks learn.
    fn fitted(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    fn state(&self) -> Result<Tensors>;

    /// Takes back what [`state`](Self::state) gave: learning goes on bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming an entry that is missing, does not fit or is not known.
    fn restore(&mut self, state: &Tensors) -> Result<()>;
}

/// Makes the batch of a step from its tasks: a pure function that no parameter of the process
/// enters.
pub trait Preparer: Send + Sync + 'static {
    /// What a step reads.
    type Batch: Send + 'static;

    /// The batch of `step`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a task does not fit.
    fn prepare(&self, tasks: &TaskBatch, step: &Step) -> Result<Self::Batch>;
}

/// A [`Preparer`] whose kind of batch only its learner knows.
#[derive(Clone)]
pub struct Preparation(Arc<Prepare>);

type Prepare = dyn Fn(&TaskBatch, &Step) -> Result<Prepared> + Send + Sync;

impl fmt::Debug for Preparation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Preparation")
    }
}

impl Preparation {
    /// Forgets the kind of the batches.
    pub fn new(preparer: impl Preparer) -> Self {
        Self(Arc::new(move |tasks, step| Ok(Prepared::new(preparer.prepare(tasks, step)?))))
    }

    /// The batch of `step`.
    ///
    /// # Errors
    ///
    /// As [`Preparer::prepare`].
    pub fn prepare(&self, tasks: &TaskBatch, step: &Step) -> Result<Prepared> {
        (self.0)(tasks, step)
    }
}

/// A batch whose kind only its learner knows.
pub struct Prepared(Box<dyn Any + Send>);

impl fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a prepared batch")
    }
}

impl Prepared {
    /// Forgets the kind of a batch.
    pub fn new(batch: impl Any + Send) -> Self {
        Self(Box::new(batch))
    }

    /// The batch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it is of another kind.
    pub fn take<B: 'static>(self) -> Result<B> {
        let wrong = |_| Error::invalid("batch", std::any::type_name::<B>(), "another kind");
        self.0.downcast().map(|batch| *batch).map_err(wrong)
    }
}
