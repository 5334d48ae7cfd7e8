//! log Z of every anchor over candidate values.

use candle_core::{Device, Tensor};

use super::{Call, PointModule, by_argument, wanted};
use crate::nn::host::{HostView, Reversal, Reverse, checked, record};
use crate::point::{CandidateValues, Candidates, LogWeights};
use crate::{Error, Result, SetOffsets};

/// Candidate values to evaluate against anchors: [`Candidates`] and parameters, as tensors.
#[derive(Clone, Copy, Debug)]
pub struct TensorCandidates<'a> {
    /// The candidate values: proposals `[anchors, K, d_x]`, or a list for all anchors `[K, d_x]`.
    pub values: &'a Tensor,
    /// One context per set, `[sets, context_dim]`; `None` if and only if `context_dim` is 0.
    pub context: Option<&'a Tensor>,
    /// The flat parameters, `[num_parameters]`.
    pub parameters: &'a Tensor,
    /// t of each anchor, `[anchors, d_t]`, a constant; `None` if and only if `d_t` is 0.
    pub locations: Option<&'a Tensor>,
    /// ω, added to f before the log-sum-exp, `[anchors, K]` or `[K]`, a constant; `None` for zero.
    pub log_weights: Option<&'a Tensor>,
    /// Which anchors belong to which set.
    pub offsets: &'a SetOffsets,
}

/// What [`PointModule::log_partition`] gives back.
#[derive(Clone, Debug)]
pub struct LogPartitionTensors {
    /// log Σₖ exp(fₖ + ωₖ), `[anchors]`, in the graph.
    pub log_partition: Tensor,
    /// f at every candidate without ω, `[anchors, K]`, a constant: for effective sample sizes
    /// and for resampling.
    pub values: Tensor,
}

impl PointModule {
    /// log Σₖ exp(f(xₖ, t; c) + ωₖ) of every anchor, differentiable with respect to candidate
    /// values, context and parameters.
    ///
    /// # Shapes
    ///
    /// See [`TensorCandidates`] and [`LogPartitionTensors`].
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values); [`Error::InvalidValue`] if `locations` or `log_weights` track
    /// gradients, which would be lost.
    pub fn log_partition(&self, candidates: &TensorCandidates<'_>) -> Result<LogPartitionTensors> {
        let num_anchors = candidates.offsets.num_elements();
        let config = self.shape().config();
        let (num_candidates, is_shared) = match *candidates.values.dims() {
            [k, _] => (k, true),
            [_, k, _] => (k, false),
            ref dims => {
                return Err(Error::invalid(
                    "candidates.values",
                    "[anchors, K, d_x] or [K, d_x]",
                    format!("shape {dims:?}"),
                ));
            }
        };
        let expected = [num_anchors, num_candidates, config.value_dim];
        let expected = if is_shared { &expected[1..] } else { &expected[..] };
        let values = checked("candidates.values", candidates.values, expected)?;
        let context = self.checked_context(candidates.context, candidates.offsets)?;
        let parameters = self.checked_parameters(candidates.parameters)?;
        let constants = Constants {
            num_candidates,
            is_shared,
            locations: match candidates.locations {
                Some(tensor) => {
                    let expected = [num_anchors, config.location_dim];
                    constant("candidates.locations", tensor, &expected)?
                }
                None => Vec::new(),
            },
            log_weights: match candidates.log_weights {
                None => OwnedLogWeights::Zero,
                Some(tensor) if tensor.rank() == 1 => OwnedLogWeights::Shared(constant(
                    "candidates.log_weights",
                    tensor,
                    &[num_candidates],
                )?),
                Some(tensor) => OwnedLogWeights::PerAnchor(constant(
                    "candidates.log_weights",
                    tensor,
                    &[num_anchors, num_candidates],
                )?),
            },
        };
        let reverse =
            ReverseLogPartition { call: self.call(&parameters, candidates.offsets)?, constants };
        let run = {
            let values = HostView::new("candidates.values", &values)?;
            let context = HostView::new("context", &context)?;
            let candidates = reverse.candidates(&values, &context);
            reverse.call.backend.log_partition(&reverse.call.mlp, &candidates)?
        };
        let arguments = [&values, &context, &parameters];
        let shape = (num_anchors, num_candidates);
        Ok(LogPartitionTensors {
            log_partition: record(run.log_partition, num_anchors, arguments, reverse)?,
            values: Tensor::from_vec(run.values, shape, &Device::Cpu)?,
        })
    }
}

fn constant(field: &str, tensor: &Tensor, expected: &[usize]) -> Result<Vec<f32>> {
    if tensor.track_op() {
        return Err(Error::invalid(
            field,
            "detached, since no gradient flows into it",
            "a tensor that tracks gradients",
        ));
    }
    let tensor = checked(field, tensor, expected)?;
    Ok(HostView::new(field, &tensor)?.to_vec())
}

/// The parts of [`Candidates`] that are no arguments of the graph.
struct Constants {
    num_candidates: usize,
    is_shared: bool,
    locations: Vec<f32>,
    log_weights: OwnedLogWeights,
}

enum OwnedLogWeights {
    Zero,
    PerAnchor(Vec<f32>),
    Shared(Vec<f32>),
}

struct ReverseLogPartition {
    call: Call,
    constants: Constants,
}

impl ReverseLogPartition {
    fn candidates<'a>(&'a self, values: &'a [f32], context: &'a [f32]) -> Candidates<'a> {
        let Constants { num_candidates, is_shared, locations, log_weights } = &self.constants;
        Candidates {
            values: if *is_shared {
                CandidateValues::Shared(values)
            } else {
                CandidateValues::PerAnchor(values)
            },
            num_candidates: *num_candidates,
            locations,
            offsets: &self.call.offsets,
            context,
            log_weights: match log_weights {
                OwnedLogWeights::Zero => LogWeights::Zero,
                OwnedLogWeights::PerAnchor(weights) => LogWeights::PerAnchor(weights),
                OwnedLogWeights::Shared(weights) => LogWeights::Shared(weights),
            },
        }
    }
}

impl Reverse for ReverseLogPartition {
    fn name(&self) -> &'static str {
        "point-log-partition"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let Call { backend, mlp, .. } = &self.call;
        let [values, context, _] = reversal.arguments;
        let candidates = self.candidates(values, context);
        let (result, cotangent) = (reversal.result, reversal.cotangent);
        backend
            .log_partition_backward(mlp, &candidates, result, cotangent, wanted(reversal.wanted))
            .map(by_argument)
    }
}
