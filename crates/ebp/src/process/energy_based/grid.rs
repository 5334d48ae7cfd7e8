//! Cells over the domain, chosen by rough values of u, and resampling by weights.

use crate::rng::Stream;
use crate::{Error, Result};

/// What cells get beside exp(u/2), as a share of all proposals.
const EVERYWHERE: f64 = 0.03;
/// The temperature at which the coarse values choose cells.
const COARSE_TEMPERATURE: f64 = 2.0;

/// Places `[count, d]` of one set, and log r of each.
pub(super) type Proposed = (Vec<f32>, Vec<f64>);

/// Weighted places of one set.
pub(super) struct Weighted {
    pub(super) values: Vec<f32>,
    pub(super) log_weights: Vec<f64>,
}

/// Cubes that fill the domain.
pub(super) struct CoarseGrid {
    pub(super) dim: usize,
    pub(super) half: f32,
    pub(super) cells: usize,
}

impl CoarseGrid {
    pub(super) fn num_cells(&self) -> usize {
        self.cells.pow(u32::try_from(self.dim).unwrap_or(3))
    }

    fn width(&self) -> f32 {
        2.0 * self.half / self.cells as f32
    }

    /// The lower corner of a cell.
    fn corner(&self, mut cell: usize, axis: usize) -> f32 {
        for _ in 0..axis {
            cell /= self.cells;
        }
        (cell % self.cells) as f32 * self.width() - self.half
    }

    /// One random place in every cell, `[cells, d]`.
    pub(super) fn places(&self, stream: Stream) -> Vec<f32> {
        let mut places = vec![0.0; self.num_cells() * self.dim];
        stream.fill_uniform(0, 0, &mut places);
        for (cell, place) in places.chunks_exact_mut(self.dim).enumerate() {
            for (axis, x) in place.iter_mut().enumerate() {
                *x = self.corner(cell, axis) + *x * self.width();
            }
        }
        places
    }

    /// `count` places in cells chosen by `u`, and log r of each.
    pub(super) fn propose(&self, u: &[f64], count: usize, stream: Stream) -> Proposed {
        let largest = u.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let tempered: Vec<f64> =
            u.iter().map(|u| ((u - largest) / COARSE_TEMPERATURE).exp()).collect();
        let sum: f64 = tempered.iter().sum();
        let everywhere = EVERYWHERE / tempered.len() as f64;
        let shares: Vec<f64> =
            tempered.iter().map(|t| (1.0 - EVERYWHERE) * t / sum + everywhere).collect();
        let volume = f64::from(self.width()).powi(i32::try_from(self.dim).unwrap_or(3));
        let mut uniforms = vec![0.0; count * self.dim];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let mut log_densities = Vec::with_capacity(count);
        for (place, cell) in
            uniforms.chunks_exact_mut(self.dim).zip(systematic(&shares, count, stream.child(1)))
        {
            for (axis, x) in place.iter_mut().enumerate() {
                *x = self.corner(cell, axis) + *x * self.width();
            }
            log_densities.push((shares[cell] / volume).ln());
        }
        (uniforms, log_densities)
    }
}

/// `count` numbers, number i about `count · shares[i]` times: one draw moves a comb over the sums.
pub(super) fn systematic(shares: &[f64], count: usize, stream: Stream) -> Vec<usize> {
    let mut start = [0.0];
    stream.fill_uniform(0, 0, &mut start);
    let total: f64 = shares.iter().sum();
    let mut chosen = Vec::with_capacity(count);
    let (mut sum, mut index) = (shares[0], 0);
    for tooth in 0..count {
        let place = (tooth as f64 + f64::from(start[0])) / count as f64 * total;
        while sum <= place && index + 1 < shares.len() {
            index += 1;
            sum += shares[index];
        }
        chosen.push(index);
    }
    chosen
}

/// `count` of the places by their weights, in a drawn order.
pub(super) fn resample(weighted: &Weighted, dim: usize, count: usize, stream: Stream) -> Vec<f32> {
    let largest = weighted.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = weighted.log_weights.iter().map(|w| (w - largest).exp()).collect();
    let chosen = systematic(&weights, count, stream.child(0));
    crate::data::mesh::shuffled(count, stream.child(1))
        .into_iter()
        .flat_map(|place| &weighted.values[chosen[place] * dim..(chosen[place] + 1) * dim])
        .copied()
        .collect()
}

/// The first `count` places that are kept, each with probability w/max w, and the share kept. The
/// largest weight seen stands in for the largest there is.
pub(super) fn reject(
    weighted: &Weighted,
    dim: usize,
    count: usize,
    stream: Stream,
) -> Result<(Vec<f32>, f64)> {
    let largest = weighted.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut draws = vec![0.0; weighted.log_weights.len()];
    stream.fill_uniform(0, 0, &mut draws);
    let is_kept =
        |(log_weight, draw): (&f64, &f32)| f64::from(*draw) < (log_weight - largest).exp();
    let kept: Vec<bool> = weighted.log_weights.iter().zip(&draws).map(is_kept).collect();
    let places = weighted.values.chunks_exact(dim).zip(&kept);
    let points: Vec<f32> = places
        .filter(|(_, is_kept)| **is_kept)
        .take(count)
        .flat_map(|(place, _)| place.iter().copied())
        .collect();
    let num_kept = kept.iter().filter(|is_kept| **is_kept).count();
    if num_kept < count {
        let expected = format!("enough for {count} points to be kept");
        let found = format!("{num_kept} of {} kept", kept.len());
        return Err(Error::invalid("proposals_per_point", expected, found));
    }
    Ok((points, num_kept as f64 / kept.len() as f64))
}

/// (Σ w)²/Σ w².
pub(super) fn effective(log_weights: &[f64]) -> f64 {
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = log_weights.iter().map(|w| (w - largest).exp());
    let (sum, squares) = weights.fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
    sum * sum / squares
}
