//! Steps that are cut into shards, computed by several replicas of a model.
//!
//! ```text
//! replica 0 (its device)   shard 0, shard 1   in turns
//! replica 1 (its device)   shard 2, shard 3   in turns, beside replica 0
//! ```
//!
//! Every shard has a copy of the model and takes every optimiser step with the mean gradient of all
//! (`exchange`), so that the copies never differ. A shard has threads of its own, because it waits for others
//! in the middle of a step; threads of shards that wait do nothing.
//!
//! Limits: a copy of parameters and optimiser for every shard, not for every replica. Gradients pass through
//! the host.

use std::fmt::Debug;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Record, Step, Trainable};
use crate::exchange::{Circle, Ranks, Seat, Shard};
use crate::tensor::Tensors;
use crate::{Error, Result};

/// A model whose steps can be cut.
pub trait Shardable: Trainable + Send {
    /// Lets every later step be one of all shards of a circle.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the model takes no steps along gradients that could be added.
    fn join(&mut self, seat: &Arc<Seat>) -> Result<()>;
}

/// Copies of a model, one for each shard of this process.
#[derive(Debug)]
pub struct Replicas<T> {
    first: T,
    /// `None` where steps are not cut: the model takes them as it is.
    cut: Option<Cut<T>>,
}

#[derive(Debug)]
struct Cut<T> {
    place: Place,
    others: Vec<(T, Place)>,
}

/// Where a shard computes and meets the others.
#[derive(Debug)]
struct Place {
    seat: Arc<Seat>,
    threads: ThreadPool,
}

impl Place {
    fn new(seat: Arc<Seat>, num_threads: usize) -> Result<Self> {
        let threads = ThreadPoolBuilder::new().num_threads(num_threads).build();
        let threads = threads.map_err(|error| {
            Error::failed(format!("cannot start the threads of a shard: {error}"))
                .with_help("ask for fewer threads or fewer shards")
        })?;
        Ok(Self { seat, threads })
    }

    fn build<T: Shardable>(&self, build: &(impl Build<T> + ?Sized)) -> Result<T> {
        // How many threads prepare batches depends on how many compute.
        let mut model = self.threads.install(|| build(self.seat.shard(), self.seat.replica()))?;
        model.join(&self.seat)?;
        Ok(model)
    }

    fn step<T: Shardable>(&self, model: &mut T, step: &Step) -> Result<Record> {
        self.seat.take_step(|| model.step(&self.own(step)))
    }

    /// The step of this shard.
    fn own(&self, step: &Step) -> Step {
        Step { stream: self.seat.shard().stream(step.stream), ..*step }
    }
}

/// Makes the model of a shard on a replica of a number.
trait Build<T>: Fn(Shard, usize) -> Result<T> + Sync {}

impl<T, F: Fn(Shard, usize) -> Result<T> + Sync> Build<T> for F {}

impl<T: Shardable> Replicas<T> {
    /// This process's part of `count` shards, dealt to `num_replicas` replicas; `build` makes the model of a
    /// shard on the replica of that number. With one shard in all there is one model, which learns as if alone.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are fewer shards than replicas or processes; what `build` says;
    /// [`Error::Refused`] if steps of this model cannot be cut.
    pub fn new(
        count: usize,
        num_replicas: usize,
        ranks: Option<Arc<Ranks>>,
        build: impl Fn(Shard, usize) -> Result<T> + Sync,
    ) -> Result<Self> {
        let own = ranks.as_ref().map_or(Ok(0..count), |ranks| ranks.own(count))?;
        if own.len() < num_replicas {
            let all = num_replicas * ranks.as_ref().map_or(1, |ranks| ranks.size());
            let expected = format!("at least {all}, one for each device that computes");
            return Err(Error::invalid("train.shards", expected, count));
        }
        if count == 1 {
            return Ok(Self { first: build(Shard::WHOLE, 0)?, cut: None });
        }
        let num_threads = (rayon::current_num_threads() / num_replicas.max(1)).max(1);
        let mut seats = Circle::seats(count, num_replicas, ranks)?.into_iter();
        let Some(seat) = seats.next() else {
            return Err(Error::invalid("train.shards", "at least 1", 0));
        };
        let place = Place::new(seat, num_threads)?;
        let first = place.build(&build)?;
        let others = seats
            .map(|seat| {
                let place = Place::new(seat, num_threads)?;
                Ok((place.build(&build)?, place))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { first, cut: Some(Cut { place, others }) })
    }

    /// The model of the first shard; those of all are the same.
    pub fn first(&self) -> &T {
        &self.first
    }

    /// The same, to be changed for a while.
    pub fn first_mut(&mut self) -> &mut T {
        &mut self.first
    }
}

/// All shards at once; what the first of `models` says, as do all.
fn step_all<'a, T: Shardable>(
    (model, place): (&'a mut T, &'a Place),
    mut others: impl Iterator<Item = (&'a mut T, &'a Place)>,
    step: &'a Step,
) -> Result<Record> {
    let mut said = Ok(Record::new());
    // The next ones begin from within, before this thread waits for any.
    place.threads.in_place_scope(|scope| {
        let said = &mut said;
        scope.spawn(move |_| *said = place.step(model, step));
        if let Some(next) = others.next() {
            let others: &mut dyn Iterator<Item = _> = &mut others;
            // All say the same.
            drop(step_all(next, others, step));
        }
    });
    said
}

impl<T: Shardable> Trainable for Replicas<T> {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let Some(Cut { place, others }) = &mut self.cut else { return self.first.step(step) };
        let others = others.iter_mut().map(|(model, place)| (model, &*place));
        step_all((&mut self.first, place), others, step)
    }

    fn foresee(&mut self, next: &Step) {
        let Some(Cut { place, others }) = &mut self.cut else { return self.first.foresee(next) };
        self.first.foresee(&place.own(next));
        for (model, place) in others {
            model.foresee(&place.own(next));
        }
    }

    fn prepare(&mut self, step: &Step) -> Result<()> {
        let Some(Cut { place, others }) = &mut self.cut else { return self.first.prepare(step) };
        self.first.prepare(&place.own(step))?;
        others.iter_mut().try_for_each(|(model, place)| model.prepare(&place.own(step)))
    }

    fn num_shards(&self) -> usize {
        self.cut.as_ref().map_or(1, |cut| cut.place.seat.shard().count())
    }

    fn state(&self) -> Result<Tensors> {
        self.first.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.first.restore(state)?;
        let Some(cut) = &mut self.cut else { return Ok(()) };
        cut.others.iter_mut().try_for_each(|(model, _)| model.restore(state))
    }
}
