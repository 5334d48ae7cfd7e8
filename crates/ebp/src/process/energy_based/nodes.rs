//! log Z(t; θ) for predictions: u at nodes that cover the value's domain, one in each cell.
//!
//! One-dimensional values get the midpoint rule, which for smooth densities converges faster than
//! any power of the cells' width; its error is judged by the rule with half as many nodes.
//! More dimensions get one random node per cell, and the standard error of a mean of weights.

use std::collections::BTreeMap;

use super::EnergyBasedProcess;
use crate::linalg::log_sum_exp;
use crate::partition::stratified;
use crate::point::{CandidateValues, Candidates, LogPartition, LogWeights, PointMlp};
use crate::recipe::Space;
use crate::rng::Stream;
use crate::tape::DrawDomain;
use crate::{Result, SetOffsets};

/// Nodes of one-dimensional values.
const NUM_MIDPOINTS: usize = 256;
/// About so many nodes of others.
const NUM_RANDOM: usize = 10_000;
/// So many values of f are held at once.
const MOST_VALUES: usize = 1 << 22;

/// Nodes that cover the domain.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    values: Vec<f32>,
    /// log of a cell's volume, and the base measure of each node.
    log_weights: Vec<f32>,
    pub(super) count: usize,
    dims: usize,
    low: f32,
    width: f32,
    per_dim: usize,
}

impl Nodes {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "networks compute in f32, and cells are counted"
    )]
    pub(super) fn new(space: &Space, domain: DrawDomain) -> Self {
        let (low, high, dims) = (space.low, space.high, space.value_dim);
        let (values, per_dim) = if dims == 1 {
            let width = (high - low) / NUM_MIDPOINTS as f32;
            let middle = |node: usize| low + (node as f32 + 0.5) * width;
            ((0..NUM_MIDPOINTS).map(middle).collect(), NUM_MIDPOINTS)
        } else {
            let stream = Stream::new(0, "prediction nodes");
            let found = stratified(1, NUM_RANDOM, dims, (low, high), stream);
            let per_dim = (found.num_candidates as f64).powf(1.0 / dims as f64).round() as usize;
            (found.values, per_dim)
        };
        let width = (high - low) / per_dim as f32;
        let volume = dims as f32 * width.ln();
        let log_weights = values.chunks_exact(dims).map(|x| volume + domain.base(x)).collect();
        let count = values.len() / dims;
        Self { values, log_weights, count, dims, low, width, per_dim }
    }

    pub(super) fn points(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dims)
    }

    /// f + ω of the nodes, from f.
    pub(super) fn exponents(&self, f: &[f32]) -> Vec<f64> {
        f.iter().zip(&self.log_weights).map(|(f, w)| f64::from(*f) + f64::from(*w)).collect()
    }

    /// f/T + ω of the nodes, from f.
    pub(super) fn exponents_at(&self, f: &[f32], temperature: f64) -> Vec<f64> {
        let pairs = f.iter().zip(&self.log_weights);
        pairs.map(|(f, w)| f64::from(*f) / temperature + f64::from(*w)).collect()
    }

    /// A place in a cell, from uniforms.
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

    /// log Z with its error, from f + ω of the nodes.
    pub(super) fn integrate(&self, exponents: &[f64]) -> (f64, f64) {
        let total = log_sum_exp(exponents);
        if self.dims == 1 {
            let every_other: Vec<f64> = exponents.iter().copied().step_by(2).collect();
            let coarse = log_sum_exp(&every_other) + std::f64::consts::LN_2;
            return (total, (total - coarse).abs());
        }
        // sd(w) / (√K mean w), which ignores that cells cannot cluster: too large rather than small.
        let k = exponents.len() as f64;
        let squares: f64 = exponents.iter().map(|e| (2.0 * (e - total)).exp()).sum();
        let variance = (squares * k - 1.0).max(0.0);
        (total, (variance / k).sqrt())
    }
}

/// The different locations among those asked for, as rows.
pub(super) struct Distinct {
    features: Vec<f32>,
    num_features: usize,
    pub(super) count: usize,
    /// Which of them each target has.
    pub(super) of_target: Vec<usize>,
}

impl Distinct {
    /// `features` `[n, width]` of targets; equal rows are one place.
    pub(super) fn new(features: &[f32], num_features: usize) -> Self {
        let mut numbers: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let mut kept = Vec::new();
        let of_target = features
            .chunks_exact(num_features)
            .map(|row| {
                let next = numbers.len();
                *numbers.entry(row.iter().map(|t| t.to_bits()).collect()).or_insert_with(|| {
                    kept.extend_from_slice(row);
                    next
                })
            })
            .collect();
        Self { features: kept, num_features, count: numbers.len(), of_target }
    }
}

/// f at all nodes of some places, under every θ.
pub(super) struct Chunk {
    pub(super) start: usize,
    pub(super) len: usize,
    partition: LogPartition,
    num_nodes: usize,
}

impl Chunk {
    /// f of the nodes at a place under a draw of θ.
    pub(super) fn values(&self, draw: usize, place: usize) -> &[f32] {
        let anchor = draw * self.len + place - self.start;
        &self.partition.values[anchor * self.num_nodes..][..self.num_nodes]
    }

    pub(super) fn holds(&self, place: usize) -> bool {
        (self.start..self.start + self.len).contains(&place)
    }
}

/// Visits all places, as many at once as memory should hold.
pub(super) fn for_each_chunk(
    process: &EnergyBasedProcess,
    energy: &PointMlp,
    (nodes, distinct): (&Nodes, &Distinct),
    thetas: &[f32],
    mut visit: impl FnMut(&Chunk) -> Result<()>,
) -> Result<()> {
    let num_draws = thetas.len() / process.config().latent_dim;
    let most = (MOST_VALUES / (num_draws * nodes.count)).max(1);
    let backend = process.device().backend();
    let mut start = 0;
    while start < distinct.count {
        let len = most.min(distinct.count - start);
        let width = distinct.num_features;
        let features = &distinct.features[start * width..(start + len) * width];
        let partition = backend.log_partition(
            energy,
            &Candidates {
                values: CandidateValues::Shared(&nodes.values),
                num_candidates: nodes.count,
                locations: &features.repeat(num_draws),
                offsets: &SetOffsets::uniform(num_draws, len)?,
                context: thetas,
                log_weights: LogWeights::Shared(&nodes.log_weights),
            },
        )?;
        visit(&Chunk { start, len, partition, num_nodes: nodes.count })?;
        start += len;
    }
    Ok(())
}
