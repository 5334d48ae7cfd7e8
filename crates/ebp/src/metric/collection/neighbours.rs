//! Who is nearest to whom: all that the metrics of collections ask about distances.
//!
//! Every cloud needs the nearest one of the other collection and the nearest other one of its own.
//! If all distances are known, that is a matter of looking. The exact earth mover's distance is
//! expensive, and most pairs are obviously not nearest: [`search`] starts with a cheap lower bound of
//! every pair and lets every cloud ask for its most promising pair, round by round. A pair is
//! computed only while its bound is below what one of its two clouds has already found, and only
//! until the dual prices of the solver show that it is above. Every answer is exact all the same.

use rayon::prelude::*;

use crate::Result;

use super::super::distance::{ArrangedCloud, Bounded, exact_emd_within};
use super::Watch;
use super::pairs::{Kept, Pairs, oriented};
use super::projection::{Shadows, directions};
use super::store::Known;

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

/// Finds all neighbours by the exact earth mover's distance. `bounds` are lower bounds that are
/// known already, by pairs.
pub(super) fn search(
    clouds: &[&ArrangedCloud],
    num_samples: usize,
    bounds: &Pairs,
    kept: &mut Kept,
    watch: Watch<'_>,
) -> Result<(Neighbours, PairCounts)> {
    let num_clouds = clouds.len();
    // What is kept from an earlier run is not believed at once but asked for again in the same
    // order, so that a run that was killed ends with the same answers, counts and files.
    let cached = std::mem::replace(&mut kept.pairs, Pairs::new(num_clouds, &[]));
    let lower = lower_bounds(clouds, bounds);
    loop {
        let pairs = &kept.pairs;
        let neighbours = Neighbours::new(pairs, num_clouds, num_samples);
        let question = Question { num_samples, lower: &lower, pairs, neighbours: &neighbours };
        let (wanted, num_open) = question.wanted(num_clouds);
        watch(pairs.len() - num_open, pairs.len());
        if wanted.is_empty() {
            let counts = count(pairs, num_clouds);
            return Ok((neighbours, counts));
        }
        for batch in wanted.chunks(BATCH) {
            kept.compute(batch, &cached, |(i, j)| {
                let is_own = (i < num_samples) == (j < num_samples);
                let limit = neighbours.limit(i, is_own).max(neighbours.limit(j, is_own));
                let (x, y) = oriented(clouds[i], clouds[j]);
                Ok(match exact_emd_within(x, y, limit)? {
                    Bounded::Exact { value, gap } => Known::Value(value, gap),
                    Bounded::Above(bound) => Known::AtLeast(bound),
                })
            })?;
        }
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
        let asked = |i: usize| {
            let mut best = [(f64::INFINITY, None); 2];
            let mut num_open = 0;
            for j in (0..num_clouds).filter(|&j| j != i) {
                let is_own = (i < self.num_samples) == (j < self.num_samples);
                let bound = self.bound(i, j);
                let is_open = bound < self.neighbours.limit(i, is_own);
                // An open pair is counted by the first cloud that needs it.
                let is_open_there = bound < self.neighbours.limit(j, is_own);
                num_open += usize::from(is_open && (i < j || !is_open_there));
                let best = &mut best[usize::from(is_own)];
                if is_open && bound < best.0 {
                    *best = (bound, Some((i.min(j), i.max(j))));
                }
            }
            (best, num_open)
        };
        let answers: Vec<_> = (0..num_clouds).into_par_iter().map(asked).collect();
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
