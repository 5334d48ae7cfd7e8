//! Who is nearest to whom: all that the metrics of collections ask about distances.
//!
//! Every cloud needs the nearest one of the other collection and the nearest other one of its own.
//! If all distances are known, that is a matter of looking. The exact earth mover's distance is
//! expensive, and most pairs are obviously not nearest: [`search`] starts with a cheap lower bound of
//! every pair and lets every cloud ask for its most promising pair, round by round. A pair is
//! computed only while its bound is below what one of its two clouds has already found, and only
//! until the dual prices of the solver show that it is above. Every answer is exact all the same.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::{Result, Share};

use super::super::distance::{ArrangedCloud, Bounded, exact_emd_watched, exact_emd_within};
use super::Watch;
use super::pairs::{Kept, Pairs, oriented};
use super::projection::{Shadows, directions};
use super::share::Memory;
use super::store::{Known, PairStore, Record};

/// Pairs that are computed between two appends to the store.
const BATCH: usize = 32;

/// A neighbour and its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Neighbour {
    pub(super) index: usize,
    pub(super) distance: f64,
}

/// The nearest clouds of every cloud.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Neighbours {
    /// The nearest other one of the same collection; `None` if there is no other.
    pub(super) own: Vec<Option<Neighbour>>,
    /// The nearest of the other collection.
    pub(super) other: Vec<Option<Neighbour>>,
}

/// What became of the pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// All pairs.
    pub all: usize,
    /// Those whose distance was computed.
    pub solved: usize,
    /// Those whose computation was stopped by a bound.
    pub stopped: usize,
    /// Those that were not begun, because a bound said enough.
    pub skipped: usize,
}

impl Neighbours {
    /// From what is known; `num_samples` clouds belong to the first collection.
    pub(super) fn new(pairs: &Pairs, num_clouds: usize, num_samples: usize) -> Self {
        let (mut own, mut other) = (vec![None; num_clouds], vec![None; num_clouds]);
        for i in 0..num_clouds {
            for j in (0..num_clouds).filter(|&j| j != i) {
                let Some(distance) = pairs.value(i, j) else { continue };
                let is_own = (i < num_samples) == (j < num_samples);
                let best: &mut Option<Neighbour> = if is_own { &mut own[i] } else { &mut other[i] };
                // The first of equals stays.
                if best.is_none_or(|best| distance < best.distance) {
                    *best = Some(Neighbour { index: j, distance });
                }
            }
        }
        Self { own, other }
    }

    /// The distance to beat for a pair to matter to cloud `i`.
    fn limit(&self, i: usize, is_own: bool) -> f64 {
        let best = if is_own { &self.own[i] } else { &self.other[i] };
        best.map_or(f64::INFINITY, |best| best.distance)
    }
}

/// What is searched.
pub(super) struct Search<'a> {
    /// Samples and references.
    pub(super) clouds: &'a [&'a ArrangedCloud],
    pub(super) num_samples: usize,
    /// Lower bounds that are known already, by pairs.
    pub(super) bounds: &'a Pairs,
    /// Whose neighbours are wanted: those of a share, or all.
    pub(super) share: Option<Share>,
    /// Where a share keeps the highest bounds that the solver looked at.
    pub(super) highest: Option<PairStore>,
}

/// Finds all neighbours by the exact earth mover's distance. What is remembered is not believed at once
/// but asked for again in the same order, so that a run that was killed, or that others worked for, ends
/// with the same answers, counts and files.
pub(super) fn search(
    search: Search<'_>,
    memory: &Memory,
    kept: &mut Kept,
    watch: Watch<'_>,
) -> Result<(Neighbours, PairCounts)> {
    let Search { clouds, num_samples, bounds, share, mut highest } = search;
    let num_clouds = clouds.len();
    let lower = lower_bounds(clouds, bounds);
    loop {
        let pairs = &kept.pairs;
        let neighbours = Neighbours::new(pairs, num_clouds, num_samples);
        let question =
            Question { num_samples, share, lower: &lower, pairs, neighbours: &neighbours };
        let (wanted, num_open) = question.wanted(num_clouds);
        watch(pairs.len() - num_open, pairs.len());
        if wanted.is_empty() {
            let counts = count(pairs, num_clouds);
            return Ok((neighbours, counts));
        }
        let limit = |(i, j): (usize, usize)| {
            let is_own = (i < num_samples) == (j < num_samples);
            neighbours.limit(i, is_own).max(neighbours.limit(j, is_own))
        };
        for batch in wanted.chunks(BATCH) {
            let seen = Mutex::new(Vec::new());
            let work = |(i, j): (usize, usize)| {
                let (x, y) = oriented(clouds[i], clouds[j]);
                if highest.is_none() {
                    return Ok(known(exact_emd_within(x, y, limit((i, j)))?));
                }
                let (found, bound) = exact_emd_watched(x, y, limit((i, j)))?;
                let record = Record::new(i, j, Known::Value(bound, 0.0));
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(record);
                Ok(known(found))
            };
            kept.compute(batch, |pair| memory.answer(pair, limit(pair)), work)?;
            if let Some(highest) = &mut highest {
                let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
                seen.sort_unstable_by_key(|record: &Record| (record.first, record.second));
                highest.append(&seen)?;
            }
        }
    }
}

fn known(found: Bounded) -> Known {
    match found {
        Bounded::Exact { value, gap } => Known::Value(value, gap),
        Bounded::Above(bound) => Known::AtLeast(bound),
    }
}

/// The best cheap bound of every pair.
fn lower_bounds(clouds: &[&ArrangedCloud], bounds: &Pairs) -> Pairs {
    let num_clouds = clouds.len();
    let directions = clouds.first().map_or_else(Vec::new, |cloud| directions(cloud.dim()));
    let shadows: Vec<Shadows> =
        clouds.par_iter().map(|cloud| Shadows::new(cloud, &directions)).collect();
    let all: Vec<(usize, usize)> = Pairs::all(num_clouds).collect();
    let best: Vec<f64> = all
        .par_iter()
        .map(|&(i, j)| {
            let known = match bounds.get(i, j) {
                Some(Known::Value(_, bound) | Known::AtLeast(bound)) => bound * (1.0 - 1e-12),
                None => 0.0,
            };
            let apart = clouds[i].centroid().iter().zip(clouds[j].centroid());
            let centroids = apart.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
            known.max(centroids * (1.0 - 1e-12)).max(shadows[i].bound(&shadows[j]))
        })
        .collect();
    let mut lower = Pairs::new(num_clouds, &[]);
    for (&(i, j), bound) in all.iter().zip(best) {
        lower.set(i, j, Known::AtLeast(bound));
    }
    lower
}

struct Question<'a> {
    num_samples: usize,
    share: Option<Share>,
    lower: &'a Pairs,
    pairs: &'a Pairs,
    neighbours: &'a Neighbours,
}

impl Question<'_> {
    /// The pair's best bound; infinite if its value is known.
    fn bound(&self, i: usize, j: usize) -> f64 {
        let cheap = match self.lower.get(i, j) {
            Some(Known::AtLeast(bound) | Known::Value(bound, _)) => bound,
            None => 0.0,
        };
        match self.pairs.get(i, j) {
            None => cheap,
            Some(Known::AtLeast(bound)) => bound.max(cheap),
            Some(Known::Value(..)) => f64::INFINITY,
        }
    }

    /// For every cloud and each collection the most promising pair that could still be nearest, each
    /// pair once and in order; and how many pairs could.
    fn wanted(&self, num_clouds: usize) -> (Vec<(usize, usize)>, usize) {
        let asks = |i: usize| self.share.is_none_or(|share| share.has(i));
        let asked = |i: usize| {
            let mut best = [(f64::INFINITY, None); 2];
            let mut num_open = 0;
            for j in (0..num_clouds).filter(|&j| j != i) {
                let is_own = (i < self.num_samples) == (j < self.num_samples);
                let bound = self.bound(i, j);
                let is_open = bound < self.neighbours.limit(i, is_own);
                // An open pair is counted by the first cloud that needs it.
                let is_open_there = bound < self.neighbours.limit(j, is_own);
                num_open += usize::from(is_open && (i < j || !is_open_there || !asks(j)));
                let best = &mut best[usize::from(is_own)];
                if is_open && bound < best.0 {
                    *best = (bound, Some((i.min(j), i.max(j))));
                }
            }
            (best, num_open)
        };
        let askers: Vec<usize> = (0..num_clouds).filter(|&i| asks(i)).collect();
        let answers: Vec<_> = askers.into_par_iter().map(asked).collect();
        let num_open = answers.iter().map(|(_, num_open)| num_open).sum();
        let mut wanted: Vec<_> = answers
            .iter()
            .flat_map(|(best, _)| best.iter().filter_map(|(_, pair)| *pair))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        (wanted, num_open)
    }
}

fn count(pairs: &Pairs, num_clouds: usize) -> PairCounts {
    let mut counts = PairCounts { all: pairs.len(), ..PairCounts::default() };
    for (i, j) in Pairs::all(num_clouds) {
        match pairs.get(i, j) {
            Some(Known::Value(..)) => counts.solved += 1,
            Some(Known::AtLeast(_)) => counts.stopped += 1,
            None => counts.skipped += 1,
        }
    }
    counts
}
