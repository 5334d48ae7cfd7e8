//! log Z(t; θ) for predictions: f at nodes that cover the value's domain, one in each cell.
//!
//! One-dimensional values get the midpoint rule, which for smooth densities converges faster than
//! any power of the cells' width; its error is judged by the rule with half as many nodes.
//! More dimensions get one random node per cell, and the standard error of a mean of weights.

use std::collections::BTreeMap;

use super::EnergyBasedProcess;
use super::features::push_features;
use super::proposal::stratified;
use crate::linalg::log_sum_exp;
use crate::point::{CandidateValues, Candidates, LogPartition, LogWeights, PointMlp};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// Nodes of a one-dimensional value.
const NUM_MIDPOINTS: usize = 256;
/// About as many nodes of a value with more dimensions.
const NUM_RANDOM: usize = 10_000;
/// The most values of f that are held at once.
const MOST_VALUES: usize = 1 << 22;

/// One node in each cell of a grid over the domain.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    /// `[K, d_x]`.
    values: Vec<f32>,
    pub(super) count: usize,
    dims: usize,
    low: f32,
    /// Of a cell, the same for every coordinate.
    width: f32,
    /// Cells per coordinate.
    per_dim: usize,
}

impl Nodes {
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn new((low, high): (f32, f32), dims: usize) -> Self {
        if dims == 1 {
            let width = (high - low) / NUM_MIDPOINTS as f32;
            let values = (0..NUM_MIDPOINTS).map(|node| low + (node as f32 + 0.5) * width).collect();
            return Self { values, count: NUM_MIDPOINTS, dims, low, width, per_dim: NUM_MIDPOINTS };
        }
        let stream = Stream::new(0, "prediction nodes");
        let proposals = stratified(1, NUM_RANDOM, dims, (low, high), stream);
        let count = proposals.num_candidates;
        let per_dim = (count as f64).powf(1.0 / dims as f64).round();
        let width = (high - low) / per_dim as f32;
        #[expect(clippy::cast_sign_loss, reason = "a count")]
        let per_dim = per_dim as usize;
        Self { values: proposals.values, count, dims, low, width, per_dim }
    }

    /// All nodes.
    pub(super) fn points(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dims)
    }

    /// log of the volume of a cell.
    pub(super) fn log_weight(&self) -> f32 {
        self.dims as f32 * self.width.ln()
    }

    /// A point of cell number `cell`; `uniforms` has a number in [0, 1) per coordinate.
    pub(super) fn point_in_cell(
        &self,
        cell: usize,
        uniforms: impl Iterator<Item = f64>,
    ) -> impl Iterator<Item = f64> {
        let (low, width, per_dim) = (f64::from(self.low), f64::from(self.width), self.per_dim);
        let mut rest = cell;
        uniforms.take(self.dims).map(move |u| {
            let digit = rest % per_dim;
            rest /= per_dim;
            low + (digit as f64 + u) * width
        })
    }

    /// log ∫ exp, given the exponents at all nodes, and the error to be expected.
    pub(super) fn integrate(&self, exponents: &[f64]) -> (f64, f64) {
        let log_weight = f64::from(self.log_weight());
        let total = log_sum_exp(exponents);
        if self.dims == 1 {
            let every_other: Vec<f64> = exponents.iter().copied().step_by(2).collect();
            let coarse = log_sum_exp(&every_other) + std::f64::consts::LN_2;
            return (total + log_weight, (total - coarse).abs());
        }
        // sd(w) / (√K mean w), which ignores that cells cannot cluster: too large rather than small.
        let k = exponents.len() as f64;
        let squares: f64 = exponents.iter().map(|e| (2.0 * (e - total)).exp()).sum();
        let variance = (squares * k - 1.0).max(0.0);
        (total + log_weight, (variance / k).sqrt())
    }
}

/// Locations without repetition, and which one each target has.
pub(super) struct Distinct {
    /// Features, `[count, num_features]`.
    features: Vec<f32>,
    num_features: usize,
    pub(super) count: usize,
    pub(super) of_target: Vec<usize>,
}

impl Distinct {
    pub(super) fn new(process: &EnergyBasedProcess, locations: &[f64]) -> Self {
        let config = process.config();
        let mut numbers: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let mut features = Vec::new();
        let of_target = locations
            .chunks_exact(config.location_dim)
            .map(|location| {
                let key = location.iter().map(|t| t.to_bits()).collect();
                let next = numbers.len();
                *numbers.entry(key).or_insert_with(|| {
                    push_features(location, config.location_frequencies, &mut features);
                    next
                })
            })
            .collect();
        let num_features = config.location_features();
        Self { features, num_features, count: numbers.len(), of_target }
    }
}

/// f at all nodes for some of the distinct locations.
pub(super) struct Chunk {
    /// The first of them, and how many.
    pub(super) start: usize,
    pub(super) len: usize,
    partition: LogPartition,
    num_nodes: usize,
}

impl Chunk {
    /// f at all nodes at a distinct location, under a draw of θ.
    pub(super) fn exponents(&self, draw: usize, place: usize) -> &[f32] {
        let anchor = draw * self.len + place - self.start;
        &self.partition.values[anchor * self.num_nodes..][..self.num_nodes]
    }

    /// Whether the location belongs to this chunk.
    pub(super) fn holds(&self, place: usize) -> bool {
        (self.start..self.start + self.len).contains(&place)
    }
}

/// Calls `visit` with f at all nodes for every draw of θ (`thetas`, `[num_draws, k]`), some of the
/// distinct locations at a time, so that memory stays bounded.
pub(super) fn for_each_chunk(
    process: &EnergyBasedProcess,
    energy: &PointMlp,
    nodes: &Nodes,
    thetas: &[f32],
    distinct: &Distinct,
    mut visit: impl FnMut(&Chunk) -> Result<()>,
) -> Result<()> {
    let num_draws = thetas.len() / process.config().latent_dim;
    let most = (MOST_VALUES / (num_draws * nodes.count)).max(1);
    let log_weights = vec![nodes.log_weight(); nodes.count];
    let mut start = 0;
    while start < distinct.count {
        let len = most.min(distinct.count - start);
        let width = distinct.num_features;
        let features = &distinct.features[start * width..(start + len) * width];
        let locations = features.repeat(num_draws);
        let offsets = SetOffsets::uniform(num_draws, len)?;
        let partition = process.energy.module.backend().log_partition(
            energy,
            &Candidates {
                values: CandidateValues::Shared(&nodes.values),
                num_candidates: nodes.count,
                locations: &locations,
                offsets: &offsets,
                context: thetas,
                log_weights: LogWeights::Shared(&log_weights),
            },
        )?;
        visit(&Chunk { start, len, partition, num_nodes: nodes.count })?;
        start += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gaussian_is_integrated_in_one_and_two_dimensions_within_the_stated_error() {
        let log_two_pi = std::f64::consts::TAU.ln();
        for dims in [1, 2, 3] {
            let nodes = Nodes::new((-6.0, 6.0), dims);
            let exponents: Vec<f64> = nodes
                .values
                .chunks_exact(dims)
                .map(|x| -0.5 * x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>())
                .collect();
            let (found, error) = nodes.integrate(&exponents);
            let expected = 0.5 * dims as f64 * log_two_pi;
            assert!((found - expected).abs() <= 3.0 * error + 1e-6, "{dims}: {found} ± {error}");
            assert!(error < 0.2, "{dims}: {error}");
        }
    }

    #[test]
    fn every_cell_holds_its_node() {
        let nodes = Nodes::new((-2.0, 3.0), 2);
        for cell in [0, 17, nodes.count - 1] {
            let corner: Vec<f64> = nodes.point_in_cell(cell, [0.0, 0.0].into_iter()).collect();
            let node = &nodes.values[2 * cell..][..2];
            for (corner, x) in corner.iter().zip(node) {
                let inside = f64::from(*x) - corner;
                assert!((-1e-5..=f64::from(nodes.width) + 1e-5).contains(&inside), "{inside}");
            }
        }
    }
}
