//! The negative log-likelihood of sets and its gradient, in one pass over points and candidates:
//!
//! ```text
//! L = mean_s ( mean_{a in s} log Σₖ exp(f(yₐₖ) + ωₐₖ)  −  mean_{i in s} f(xᵢ) )
//! ```
//!
//! Its cotangents are known before any value is: a device need not run the network forward a
//! second time to find the gradient.

use super::operations::Operations;
use super::{Candidates, Cotangent, Gradients, PointBatch, PointMlp, Wanted};
use crate::{Error, Result, SetOffsets};

/// What is found about sets and their candidates.
#[derive(Clone, Debug)]
pub struct Likelihood<Array = Vec<f32>> {
    /// log Σₖ exp(f + ω), `[anchors]`.
    pub log_partition: Array,
    /// f at every candidate, without ω, `[anchors, K]`.
    pub candidate_values: Array,
    /// The mean of f over the elements of each set, `[sets]`.
    pub means: Array,
    /// ∂L/∂w and ∂L/∂c, where wanted; never those of elements.
    pub gradients: Gradients<Array>,
}

/// 1 over (number of sets · size of the set), for every set.
pub(super) fn shares(offsets: &SetOffsets) -> Vec<f32> {
    let sets = offsets.num_sets();
    (0..sets).map(|set| 1.0 / (sets * offsets.size(set)) as f32).collect()
}

/// [`shares`] of each set's anchors.
pub(super) fn anchor_shares(offsets: &SetOffsets) -> Vec<f32> {
    let of_sets = shares(offsets).into_iter().enumerate();
    of_sets.flat_map(|(set, share)| std::iter::repeat_n(share, offsets.size(set))).collect()
}

/// Means of values `[total]` over sets.
fn means(values: &[f32], offsets: &SetOffsets) -> Vec<f32> {
    let mean = |set: usize| {
        let range = offsets.range(set);
        let size = range.len() as f64;
        values[range].iter().map(|&f| f64::from(f)).sum::<f64>() / size
    };
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    (0..offsets.num_sets()).map(|set| mean(set) as f32).collect()
}

/// Batch and candidates are of the same sets.
pub(super) fn check(batch: &PointBatch<'_>, candidates: &Candidates<'_>) -> Result<()> {
    let (expected, found) = (batch.offsets.num_sets(), candidates.offsets.num_sets());
    if expected != found {
        return Err(Error::invalid("candidates.offsets", format!("of {expected} sets"), found));
    }
    if batch.context != candidates.context {
        return Err(Error::invalid("candidates.context", "that of the elements", "another one"));
    }
    Ok(())
}

/// By the other operations, for a device without an own way.
pub(super) fn composed<O: Operations + ?Sized>(
    operations: &O,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    candidates: &Candidates<'_>,
    wanted: Wanted,
) -> Result<Likelihood> {
    let partition = operations.log_partition(mlp, candidates)?;
    let (log_partition, candidate_values) = (partition.log_partition, partition.values);
    if !wanted.parameters && !wanted.context {
        let means = means(&operations.values(mlp, batch)?, batch.offsets);
        let gradients = Gradients::default();
        return Ok(Likelihood { log_partition, candidate_values, means, gradients });
    }
    let upward = anchor_shares(candidates.offsets);
    let mut gradients =
        operations.log_partition_backward(mlp, candidates, &log_partition, &upward, wanted)?;
    let downward: Vec<f32> = shares(batch.offsets).into_iter().map(|share| -share).collect();
    let backward = operations.backward(mlp, batch, Cotangent::PerSet(&downward), wanted)?;
    let means = means(&backward.values, batch.offsets);
    let more = backward.gradients;
    for (sum, more) in
        [(&mut gradients.parameters, more.parameters), (&mut gradients.context, more.context)]
    {
        if let (Some(sum), Some(more)) = (sum, more) {
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum += more;
            }
        }
    }
    Ok(Likelihood { log_partition, candidate_values, means, gradients })
}
