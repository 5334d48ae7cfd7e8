//! Training of topic models, whose batches are made ahead where they read any.

use super::ahead::Ahead;
use super::{Record, Step, Trainable};
use crate::Result;
use crate::process::Prepared;
use crate::tensor::Tensors;
use crate::topic::{Batches, TopicLearner, TopicModel};

/// A topic model and what it reads.
pub struct TopicTraining {
    learner: Box<dyn TopicLearner>,
    batches: Option<Batches>,
    ahead: Ahead<Prepared>,
}

impl std::fmt::Debug for TopicTraining {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TopicTraining {{ learner: {:?} }}", self.learner)
    }
}

impl TopicTraining {
    /// Takes the steps of `learner`.
    pub fn new(learner: Box<dyn TopicLearner>) -> Self {
        let (batches, ahead) = (learner.batches(), Ahead::new(learner.learns_on_gpu()));
        Self { learner, batches, ahead }
    }

    /// What has been learned so far.
    ///
    /// # Errors
    ///
    /// As [`TopicLearner::model`].
    pub fn model(&self) -> Result<Box<dyn TopicModel>> {
        self.learner.model()
    }
}

impl Trainable for TopicTraining {
    fn step(&mut self, step: &Step) -> Result<Record> {
        match &self.batches {
            Some(make) => {
                let batch = self.ahead.take_or(step, || make(step))?;
                self.learner.step_on(batch, step)
            }
            None => self.learner.step(step),
        }
    }

    fn foresee(&mut self, next: &Step) {
        if let Some(make) = &self.batches {
            let (make, next) = (make.clone(), *next);
            self.ahead.begin(next, move || make(&next));
        }
    }

    fn prepare(&mut self, step: &Step) -> Result<()> {
        if let Some(make) = &self.batches {
            self.ahead.keep(*step, make(step)?);
        }
        Ok(())
    }

    fn state(&self) -> Result<Tensors> {
        self.learner.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.learner.restore(state)
    }
}
