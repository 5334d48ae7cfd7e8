//! Training of unconditional processes on clouds.

use std::sync::Arc;

use super::ahead::Ahead;
use super::{Record, Step, Trainable};
use crate::data::Clouds;
use crate::process::{BatchMaker, CloudBatch, UnconditionalProcess};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// A process and the clouds it learns from. Batches are prepared ahead, beside the networks' work.
#[derive(Debug)]
pub struct CloudTraining {
    process: UnconditionalProcess,
    source: Arc<Source>,
    ahead: Ahead<CloudBatch>,
}

/// Where batches come from: no parameter of the process is in here.
#[derive(Debug)]
struct Source {
    clouds: Clouds,
    batch_size: usize,
    seed: u64,
    maker: BatchMaker,
}

impl CloudTraining {
    /// `clouds` are standardised; `seed` decides the order in which they come.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the dimension is not the process's, a number is not finite, or
    /// `batch_size` is 0.
    pub fn new(
        process: UnconditionalProcess,
        clouds: Clouds,
        batch_size: usize,
        seed: u64,
    ) -> Result<Self> {
        if batch_size == 0 {
            return Err(Error::invalid("batch_size", "at least 1", batch_size));
        }
        let expected = process.config().value_dim;
        if clouds.dim() != expected {
            let expected = format!("of {expected} numbers a point");
            return Err(Error::invalid("clouds", expected, clouds.dim()));
        }
        clouds.check_finite()?;
        let maker = process.batch_maker();
        let ahead = Ahead::new(process.learns_on_device());
        let source = Arc::new(Source { clouds, batch_size, seed, maker });
        Ok(Self { process, source, ahead })
    }

    /// The process.
    pub fn process(&self) -> &UnconditionalProcess {
        &self.process
    }

    /// The process, to be changed.
    pub fn process_mut(&mut self) -> &mut UnconditionalProcess {
        &mut self.process
    }

    /// The process alone.
    pub fn into_process(self) -> UnconditionalProcess {
        self.process
    }
}

impl Source {
    fn prepare(&self, step: &Step) -> Result<CloudBatch> {
        let members = self.members(step.number);
        let sets: Vec<&[f32]> = members.iter().map(|&set| self.clouds.cloud(set)).collect();
        self.maker.prepare(&sets, step)
    }

    /// The clouds of step `number`: epoch after epoch in drawn orders, without a break between.
    fn members(&self, number: u64) -> Vec<usize> {
        let count = self.clouds.num_clouds();
        let first = number * self.batch_size as u64;
        let mut order = (u64::MAX, Vec::new());
        (first..first + self.batch_size as u64)
            .map(|place| {
                let epoch = place / count as u64;
                if order.0 != epoch {
                    let stream = Stream::new(self.seed, "order of clouds").child(epoch);
                    order = (epoch, stream.permutation(count));
                }
                #[expect(clippy::cast_possible_truncation, reason = "below count")]
                let place = (place % count as u64) as usize;
                order.1[place]
            })
            .collect()
    }
}

impl Trainable for CloudTraining {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let batch = match self.ahead.take(step) {
            Some(batch) => batch?,
            None => self.source.prepare(step)?,
        };
        self.process.learn_from(batch, step)
    }

    fn foresee(&mut self, next: &Step) {
        let (source, next) = (Arc::clone(&self.source), *next);
        self.ahead.begin(next, move || source.prepare(&next));
    }

    fn state(&self) -> Result<Tensors> {
        self.process.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.restore(state)
    }
}
