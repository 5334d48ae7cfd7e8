//! Batches of a cache: ragged sets without padding, in an order that is a pure function of seed and
//! epoch.
//!
//! Epoch e visits the sets in the permutation drawn from (seed, e). With `num_points` every set is
//! thinned to that many elements, drawn anew each epoch without replacement; smaller sets stay
//! whole. The numbers are normalised by the cache's record and, if asked, turned and jittered.
//! Pictures become sets of pixels `[value, location]`, see [`pixels`](super::pixels). Batches are built on a second thread while the last one is being used.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

use super::augment::Augmentation;
use super::cache::{Cache, Numbers, Split};
use super::mesh::{drawn, shuffled};
use super::pixels::Grid;

/// Batches that wait at most: one in use, one ready, one being built.
const WAITING: usize = 2;

/// How batches are made.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchConfig {
    /// Sets of a batch; the last one of an epoch may be smaller.
    pub batch_size: usize,
    /// Elements of each set at most; `None` takes all.
    pub num_points: Option<usize>,
    /// The elements to draw from, by their places in a set. PointFlow trains on the first 10,000 of
    /// 15,000; `None` is all of them.
    pub points_from: Option<Range<usize>>,
    /// What is done to every cloud.
    pub augmentation: Augmentation,
    /// Seed of order, thinning and augmentation.
    pub seed: u64,
    /// Whether the sets come in a drawn order; otherwise in that of the cache.
    pub is_shuffled: bool,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            batch_size: 32,
            num_points: None,
            points_from: None,
            augmentation: Augmentation::default(),
            seed: 0,
            is_shuffled: true,
        }
    }
}

/// Sets of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Which sets of the cache.
    pub sets: Vec<usize>,
    /// Their elements, normalised, `[total, dim]` with [`Batches::dim`].
    pub elements: Vec<f32>,
    /// Where each of them begins and ends.
    pub offsets: SetOffsets,
    /// Their labels.
    pub labels: Vec<Option<u32>>,
}

/// Makes the batches of a split.
#[derive(Clone, Debug)]
pub struct Batches {
    cache: Arc<Cache>,
    members: Arc<Vec<usize>>,
    config: BatchConfig,
    /// Where pixels stand, if the sets are pictures.
    grid: Option<Grid>,
}

impl Batches {
    /// Of one split of a cache.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the split is empty or a setting does not fit the data; pictures are
    /// not turned or jittered.
    pub fn new(cache: Arc<Cache>, split: Split, config: BatchConfig) -> Result<Self> {
        let members = cache.members(split);
        if members.is_empty() {
            return Err(Error::invalid("split", "one with sets", split.name()));
        }
        let grid = match cache.meta().numbers {
            Numbers::F32 => None,
            Numbers::U8 => Some(Grid::of_cache(&cache)?),
        };
        if grid.is_some() && config.augmentation != Augmentation::default() {
            let found = format!("{:?}", config.augmentation);
            return Err(Error::invalid("augmentation", "none for pictures", found));
        }
        if config.batch_size == 0 || config.num_points == Some(0) {
            return Err(Error::invalid("batch_size and num_points", "at least 1", 0));
        }
        config.augmentation.check(cache.meta().dim)?;
        if let Some(range) = &config.points_from {
            let smallest = members.iter().map(|&set| cache.offsets().size(set)).min().unwrap_or(0);
            if range.start >= range.end || range.start >= smallest {
                let expected = format!("a range that begins below {smallest}, the smallest set");
                return Err(Error::invalid("points_from", expected, format!("{range:?}")));
            }
        }
        Ok(Self { cache, members: Arc::new(members), config, grid })
    }

    /// Numbers of an element: d_x + d_t.
    pub fn dim(&self) -> usize {
        self.grid.as_ref().map_or(self.cache.meta().dim, Grid::dim)
    }

    /// How many of them are values, d_x; the rest are locations.
    pub fn value_dim(&self) -> usize {
        self.cache.meta().value_dim
    }

    /// Batches of an epoch.
    pub fn num_batches(&self) -> usize {
        self.members.len().div_ceil(self.config.batch_size)
    }

    /// The sets of an epoch in their order.
    pub fn order(&self, epoch: u64) -> Vec<usize> {
        if !self.config.is_shuffled {
            return self.members.to_vec();
        }
        let stream = Stream::new(self.config.seed, "order").child(epoch);
        shuffled(self.members.len(), stream).into_iter().map(|place| self.members[place]).collect()
    }

    /// Batch `number` of an epoch, whatever was asked for before.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no such batch.
    pub fn batch(&self, epoch: u64, number: usize) -> Result<Batch> {
        let order = self.order(epoch);
        let sets = order.chunks(self.config.batch_size).nth(number);
        let Some(sets) = sets else {
            let expected = format!("below {}", self.num_batches());
            return Err(Error::invalid("number", expected, number));
        };
        self.build(epoch, sets)
    }

    /// All batches of an epoch, built ahead on a second thread.
    pub fn epoch(&self, epoch: u64) -> Epoch {
        let (sender, receiver) = sync_channel(WAITING - 1);
        let maker = self.clone();
        thread::spawn(move || {
            for sets in maker.order(epoch).chunks(maker.config.batch_size) {
                // The reader may have gone away before the epoch's end.
                if sender.send(maker.build(epoch, sets)).is_err() {
                    return;
                }
            }
        });
        Epoch { receiver }
    }

    fn build(&self, epoch: u64, sets: &[usize]) -> Result<Batch> {
        let dim = self.dim();
        let mut elements = Vec::new();
        let mut sizes = Vec::with_capacity(sets.len());
        let thin = Stream::new(self.config.seed, "thin").child(epoch);
        let change = Stream::new(self.config.seed, "augment").child(epoch);
        for &set in sets {
            let start = elements.len();
            let source = match &self.grid {
                Some(grid) => Source::Picture(self.cache.picture(set), grid),
                None => Source::Numbers(self.cache.set(set), dim),
            };
            let mut places = 0..self.cache.offsets().size(set);
            if let Some(range) = &self.config.points_from {
                let end = range.end.min(places.end);
                places = range.start.min(end)..end;
            }
            match self.config.num_points {
                Some(count) if count < places.len() => {
                    for index in drawn(places.len(), count, thin.child(set as u64)) {
                        let place = places.start + index;
                        source.push(place..place + 1, &mut elements);
                    }
                }
                _ => source.push(places, &mut elements),
            }
            let part = &mut elements[start..];
            if self.grid.is_none() {
                self.cache.affine(set).apply(part);
            }
            self.config.augmentation.apply(part, change.child(set as u64));
            sizes.push(part.len() / dim);
        }
        Ok(Batch {
            sets: sets.to_vec(),
            elements,
            offsets: SetOffsets::from_sizes(sizes)?,
            labels: sets.iter().map(|&set| self.cache.label(set)).collect(),
        })
    }
}

/// One set of a cache.
enum Source<'a> {
    /// Its numbers, and how many an element has.
    Numbers(&'a [f32], usize),
    Picture(&'a [u8], &'a Grid),
}

impl Source<'_> {
    /// Appends the elements that stand in these places.
    #[inline]
    fn push(&self, places: Range<usize>, elements: &mut Vec<f32>) {
        match self {
            Self::Numbers(numbers, dim) => {
                elements.extend_from_slice(&numbers[places.start * dim..places.end * dim]);
            }
            Self::Picture(picture, grid) => grid.push(picture, places, elements),
        }
    }
}

/// The batches of one epoch.
#[derive(Debug)]
pub struct Epoch {
    receiver: Receiver<Result<Batch>>,
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.receiver.recv().ok()
    }
}
