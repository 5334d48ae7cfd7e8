//! What a run tells those who watch it. The library itself never prints.

use std::fmt::Debug;
use std::path::Path;

use super::Record;
use crate::checkpoint::Rollback;
use crate::{Error, Result};

/// Something that happened in a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A checkpoint cannot be used and was set aside; an older one is used in its place.
    Damaged(&'a Error),
    /// The run begins, or goes on.
    Started {
        /// The number of the first step to take.
        step: u64,
        /// Of how many.
        num_steps: u64,
        /// How often the run was rolled back so far.
        num_rollbacks: u64,
    },
    /// A step was taken.
    Step(StepNumbers<'a>),
    /// A checkpoint was written.
    Checkpoint {
        /// After how many steps.
        step: u64,
        /// Its folder.
        path: &'a Path,
        /// Whether it is the best so far.
        is_best: bool,
    },
    /// A step diverged and the run went back.
    RolledBack {
        /// From where to where, and why.
        rollback: &'a Rollback,
        /// How often this has happened, with this time.
        num_rollbacks: u64,
    },
    /// The run was asked to stop and its state is saved.
    Interrupted {
        /// After how many steps.
        step: u64,
    },
    /// All steps are taken.
    Finished {
        /// How many.
        step: u64,
    },
}

/// The numbers of one step.
#[derive(Clone, Copy, Debug)]
pub struct StepNumbers<'a> {
    /// The step's number, from 0.
    pub step: u64,
    /// Of how many.
    pub num_steps: u64,
    /// What the step said.
    pub record: &'a Record,
    /// What the evaluations after it said; empty if none was due.
    pub evaluation: &'a [(String, f64)],
}

impl StepNumbers<'_> {
    /// All names and numbers, those of the step first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        let record = self.record.iter().map(|(name, value)| (*name, *value));
        record.chain(self.evaluation.iter().map(|(name, value)| (name.as_str(), *value)))
    }

    /// Whether a file that keeps one record in `record_every` keeps this one. Evaluations and the
    /// last step are always kept.
    pub fn is_kept(&self, record_every: u64) -> bool {
        let num_taken = self.step + 1;
        num_taken.is_multiple_of(record_every)
            || num_taken == self.num_steps
            || !self.evaluation.is_empty()
    }
}

/// One who watches a run.
pub trait Observer: Debug {
    /// Takes note of what happened.
    ///
    /// # Errors
    ///
    /// Whatever makes it pointless to go on, such as a full disk; the run ends with it.
    fn observe(&mut self, event: &Event<'_>) -> Result<()>;
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn observe(&mut self, _: &Event<'_>) -> Result<()> {
        Ok(())
    }
}

/// All of them, in order.
impl Observer for Vec<&mut dyn Observer> {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        self.iter_mut().try_for_each(|observer| observer.observe(event))
    }
}
