//! Training on clouds.

use std::sync::{Arc, Mutex, PoisonError};

use super::ahead::Ahead;
use super::{Record, Shardable, Step, Trainable};
use crate::batch::{SetBatch, TaskBatch};
use crate::data::CloudSource;
use crate::exchange::{Seat, Shard};
use crate::process::{Batch, BatchMaker, EnergyBasedProcess};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// A process and the clouds it learns from. Batches are prepared ahead, beside the networks' work.
#[derive(Debug)]
pub struct CloudTraining {
    process: EnergyBasedProcess,
    source: Arc<Source>,
    ahead: Ahead<Batch>,
}

/// Where batches come from: no parameter of the process is in here.
#[derive(Debug)]
struct Source {
    clouds: CloudSource,
    /// Of a whole step.
    batch_size: usize,
    shard: Shard,
    seed: u64,
    maker: BatchMaker,
    /// The order of the epoch that was asked for last: drawing it takes a while where sets are many.
    order: Mutex<Option<(u64, Arc<Vec<usize>>)>>,
}

impl CloudTraining {
    /// `clouds` are standardised, in memory or in a cache, from where they are read step by step;
    /// `seed` decides the order in which they come.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the dimension is not the process's, a number is not finite, or
    /// `batch_size` is 0.
    pub fn new(
        process: EnergyBasedProcess,
        clouds: impl Into<CloudSource>,
        batch_size: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::of_shard(process, clouds, batch_size, seed, Shard::WHOLE)
    }

    /// The same for one shard of every step, which has its part of the step's `batch_size` clouds.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if not all shards get as many.
    pub fn of_shard(
        process: EnergyBasedProcess,
        clouds: impl Into<CloudSource>,
        batch_size: usize,
        seed: u64,
        shard: Shard,
    ) -> Result<Self> {
        let clouds = clouds.into();
        if batch_size == 0 {
            return Err(Error::invalid("batch_size", "at least 1", batch_size));
        }
        shard.part_of("batch_size", batch_size)?;
        let expected = process.space().value_dim;
        if clouds.dim() != expected {
            let expected = format!("of {expected} numbers a point");
            return Err(Error::invalid("clouds", expected, clouds.dim()));
        }
        // All shards have the same clouds, of which one look is enough.
        if shard.index() == 0 {
            clouds.check_finite()?;
        }
        let maker = process.batch_maker();
        let ahead = Ahead::new(process.device().is_gpu());
        let order = Mutex::new(None);
        let source = Arc::new(Source { clouds, batch_size, shard, seed, maker, order });
        Ok(Self { process, source, ahead })
    }

    /// The process.
    pub fn process(&self) -> &EnergyBasedProcess {
        &self.process
    }

    /// The process, to be changed.
    pub fn process_mut(&mut self) -> &mut EnergyBasedProcess {
        &mut self.process
    }

    /// The process alone.
    pub fn into_process(self) -> EnergyBasedProcess {
        self.process
    }
}

impl Source {
    fn prepare(&self, step: &Step) -> Result<Batch> {
        let mut sets = SetBatch::new(0, self.clouds.dim());
        for set in self.members(step.number) {
            sets.push(&[], &self.clouds.set(set))?;
        }
        self.maker.prepare(&TaskBatch::whole(sets), step)
    }

    /// The clouds of step `number`: epoch after epoch in drawn orders, without a break between. Shards have
    /// theirs one after the other.
    fn members(&self, number: u64) -> Vec<usize> {
        let count = self.clouds.num_sets();
        let own = self.batch_size / self.shard.count();
        let first = number * self.batch_size as u64 + (self.shard.index() * own) as u64;
        (first..first + own as u64)
            .map(|place| {
                #[expect(clippy::cast_possible_truncation, reason = "below count")]
                let within = (place % count as u64) as usize;
                self.order(place / count as u64)[within]
            })
            .collect()
    }

    fn order(&self, epoch: u64) -> Arc<Vec<usize>> {
        let mut known = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((found, order)) if *found == epoch => Arc::clone(order),
            _ => {
                let stream = Stream::new(self.seed, "order of clouds").child(epoch);
                let order = Arc::new(stream.permutation(self.clouds.num_sets()));
                *known = Some((epoch, Arc::clone(&order)));
                order
            }
        }
    }
}

impl Trainable for CloudTraining {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let batch = self.ahead.take_or(step, || self.source.prepare(step))?;
        self.process.learn(&batch, step)
    }

    fn foresee(&mut self, next: &Step) {
        let (source, next) = (Arc::clone(&self.source), *next);
        self.ahead.begin(next, move || source.prepare(&next));
    }

    fn prepare(&mut self, step: &Step) -> Result<()> {
        let batch = self.source.prepare(step)?;
        self.ahead.keep(*step, batch);
        Ok(())
    }

    fn state(&self) -> Result<Tensors> {
        self.process.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.restore(state)
    }
}

impl Shardable for CloudTraining {
    fn join(&mut self, seat: &Arc<Seat>) -> Result<()> {
        self.process.join(seat);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetOffsets;
    use crate::data::Clouds;
    use crate::recipe::{EnergyBasedConfig, Space};
    use crate::tape::Device;

    fn training(seed: u64) -> CloudTraining {
        of_shard(seed, Shard::WHOLE)
    }

    fn of_shard(seed: u64, shard: Shard) -> CloudTraining {
        let config = EnergyBasedConfig {
            encoder_widths: vec![2],
            head_widths: vec![],
            energy_widths: vec![2],
            ..EnergyBasedConfig::points()
        };
        let space = Space::points(1, 3.2);
        let process = EnergyBasedProcess::new(config, space, 1, &Device::default()).unwrap();
        let offsets = SetOffsets::uniform(6, 1).unwrap();
        let names = (0..6).map(|number| number.to_string()).collect();
        let clouds = Clouds::new(1, vec![0.0; 6], offsets, names).unwrap();
        CloudTraining::of_shard(process, clouds, 4, seed, shard).unwrap()
    }

    #[test]
    fn shards_have_the_clouds_of_the_whole_step() {
        let whole = training(3).source.members(5);
        for count in [1, 2, 4] {
            let shards = (0..count).map(|index| of_shard(3, Shard::new(index, count).unwrap()));
            let found: Vec<usize> = shards.flat_map(|shard| shard.source.members(5)).collect();
            assert_eq!(found, whole, "{count}");
        }
    }

    /// Six clouds, four a step: three steps are two epochs, each of which has every cloud once.
    #[test]
    fn all_clouds_come_before_one_comes_again() {
        let visited = |seed: u64, first: u64| -> Vec<usize> {
            let training = training(seed);
            (first..first + 3).flat_map(|number| training.source.members(number)).collect()
        };
        let all = visited(1, 0);
        for epoch in all.chunks(6) {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5], "{all:?}");
        }
        assert_ne!(all[..6], all[6..], "every epoch has an order of its own");
        assert_ne!(all, visited(2, 0), "and so has every seed");
        // The order of a step depends on its number alone, whatever was asked for before.
        let training = training(1);
        let _ = training.source.members(7);
        assert_eq!(training.source.members(1), all[4..8]);
    }
}
