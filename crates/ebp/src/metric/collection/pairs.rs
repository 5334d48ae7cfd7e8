//! All pairs of a list of clouds, each once, and what is known about them.
//!
//! Samples come first, references after them; a pair is (i, j) with i < j. Distances between
//! clouds do not depend on who is called first: whichever comes first by size and coordinates is x.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::Result;

use super::super::distance::{
    ArrangedCloud, EmdMethod, GpuDistances, Matching, NearestNeighbours, emd,
};
use super::Watch;
use super::store::{Known, PairStore, Record};

/// Pairs that are computed between two appends to the store, on the CPU and on a GPU.
const BATCH: usize = 64;
const GPU_BATCH: usize = 2048;

/// The distances that need every pair's value: Chamfer, and the earth mover's distance by methods
/// without bounds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    Chamfer,
    Emd(EmdMethod),
}

impl Measure {
    /// The GPU, if there is one and it knows this distance.
    pub(super) fn gpu<'a>(
        self,
        gpu: Option<GpuDistances<'a>>,
        clouds: &[&ArrangedCloud],
    ) -> Option<GpuDistances<'a>> {
        let is_known = match self {
            Self::Chamfer => true,
            Self::Emd(method) => Matching::of(method).is_some(),
        };
        gpu.filter(|gpu| is_known && clouds.first().is_some_and(|cloud| gpu.takes(cloud.dim())))
    }
}

/// What is known about every pair.
#[derive(Debug)]
pub(super) struct Pairs {
    num_clouds: usize,
    known: Vec<Option<Known>>,
}

impl Pairs {
    pub(super) fn new(num_clouds: usize, records: &[Record]) -> Self {
        let mut pairs =
            Self { num_clouds, known: vec![None; num_clouds * num_clouds.saturating_sub(1) / 2] };
        for record in records {
            let (first, second) = (record.first as usize, record.second as usize);
            if first < second && second < num_clouds {
                pairs.set(first, second, record.known);
            }
        }
        pairs
    }

    /// The place of (i, j) in row-major order of the upper triangle.
    fn place(&self, first: usize, second: usize) -> usize {
        let (i, j) = if first < second { (first, second) } else { (second, first) };
        i * (2 * self.num_clouds - i - 1) / 2 + (j - i - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn get(&self, first: usize, second: usize) -> Option<Known> {
        self.known[self.place(first, second)]
    }

    pub(super) fn set(&mut self, first: usize, second: usize, known: Known) {
        let place = self.place(first, second);
        self.known[place] = Some(known);
    }

    /// The value of a pair, if it is known.
    pub(super) fn value(&self, first: usize, second: usize) -> Option<f64> {
        match self.get(first, second) {
            Some(Known::Value(value, _)) => Some(value),
            _ => None,
        }
    }

    /// Every pair, in order.
    pub(super) fn all(num_clouds: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..num_clouds).flat_map(move |i| (i + 1..num_clouds).map(move |j| (i, j)))
    }
}

/// What is known, in memory and on disk.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) pairs: Pairs,
    pub(super) store: Option<PairStore>,
}

impl Kept {
    /// Computes every pair of `wanted` that is not known yet, on `gpu` if it can.
    pub(super) fn fill(
        &mut self,
        clouds: &[&ArrangedCloud],
        wanted: impl Iterator<Item = (usize, usize)>,
        measure: Measure,
        gpu: Option<GpuDistances<'_>>,
        watch: Watch<'_>,
    ) -> Result<()> {
        let (known, missing): (Vec<_>, Vec<_>) =
            wanted.partition(|&(i, j)| self.pairs.get(i, j).is_some());
        let num_pairs = known.len() + missing.len();
        let mut num_done = known.len();
        watch(num_done, num_pairs);
        let gpu = measure.gpu(gpu, clouds);
        for batch in missing.chunks(if gpu.is_some() { GPU_BATCH } else { BATCH }) {
            match gpu {
                Some(gpu) => self.keep(batch, on_gpu(gpu, clouds, batch, measure)?)?,
                None => self.compute(
                    batch,
                    |_| None,
                    |(i, j)| {
                        let (x, y) = oriented(clouds[i], clouds[j]);
                        Ok(match measure {
                            Measure::Chamfer => of_nearest(&NearestNeighbours::between(x, y)?),
                            Measure::Emd(method) => {
                                let found = emd(x, y, method)?;
                                Known::Value(found.value, found.gap.unwrap_or(0.0))
                            }
                        })
                    },
                )?,
            }
            num_done += batch.len();
            watch(num_done, num_pairs);
        }
        Ok(())
    }

    /// Keeps what was found about new pairs.
    fn keep(&mut self, batch: &[(usize, usize)], found: Vec<Known>) -> Result<()> {
        let mut new = Vec::with_capacity(batch.len());
        for (&(i, j), known) in batch.iter().zip(found) {
            self.pairs.set(i, j, known);
            new.push(Record::new(i, j, known));
        }
        match &mut self.store {
            Some(store) => store.append(&new),
            None => Ok(()),
        }
    }

    /// Computes a batch of pairs on all threads, unless they are `remembered`, and keeps what was found.
    pub(super) fn compute(
        &mut self,
        batch: &[(usize, usize)],
        remembered: impl Fn((usize, usize)) -> Option<Known>,
        work: impl Fn((usize, usize)) -> Result<Known> + Sync,
    ) -> Result<()> {
        let mut new = Vec::new();
        for &(i, j) in batch {
            match remembered((i, j)) {
                Some(known) => self.pairs.set(i, j, known),
                None => new.push((i, j)),
            }
        }
        let found: Result<Vec<Known>> = new.par_iter().map(|&pair| work(pair)).collect();
        self.keep(&new, found?)
    }
}

fn of_nearest(nearest: &NearestNeighbours) -> Known {
    Known::Value(nearest.chamfer(super::CHAMFER), nearest.emd_bound())
}

/// The distances of a batch, each pair in the order that [`oriented`] gives it.
fn on_gpu(
    gpu: GpuDistances<'_>,
    clouds: &[&ArrangedCloud],
    batch: &[(usize, usize)],
    measure: Measure,
) -> Result<Vec<Known>> {
    let ordered: Vec<(usize, usize)> = batch
        .iter()
        .map(|&(i, j)| {
            let (x, _) = oriented(clouds[i], clouds[j]);
            if std::ptr::eq(x, clouds[i]) { (i, j) } else { (j, i) }
        })
        .collect();
    let matching = match measure {
        Measure::Chamfer => None,
        Measure::Emd(method) => Matching::of(method),
    };
    Ok(match matching {
        None => gpu.nearest(clouds, &ordered)?.par_iter().map(of_nearest).collect(),
        Some(matching) => {
            let values = gpu.matchings(clouds, &ordered, matching)?;
            values.into_iter().map(|value| Known::Value(value, 0.0)).collect()
        }
    })
}

/// The two clouds in an order that depends on their points alone.
pub(super) fn oriented<'a>(
    a: &'a ArrangedCloud,
    b: &'a ArrangedCloud,
) -> (&'a ArrangedCloud, &'a ArrangedCloud) {
    let by_points = || {
        let different = a.points().iter().zip(b.points()).map(|(x, y)| x.total_cmp(y));
        different.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    // The smaller cloud has the rows: bids are made by rows.
    if a.len().cmp(&b.len()).then_with(by_points).is_le() { (a, b) } else { (b, a) }
}
