//! The negative log-likelihood of sets as one number of the graph.

use candle_core::Tensor;

use super::{PointModule, wanted};
use crate::nn::host::{HostView, Reversal, Reverse, empty, record};
use crate::point::{
    CandidateValues, Candidates, Gradients, Likelihood, LogWeights, PointBatch, Wanted,
};
use crate::{Result, SetOffsets};

/// Sets and candidates for log Z of each: constants but for context and parameters.
#[derive(Clone, Copy, Debug)]
pub struct LikelihoodSets<'a> {
    /// All elements, `[total, d_x]`; there are no locations.
    pub elements: &'a [f32],
    /// Which rows belong to which set.
    pub offsets: &'a SetOffsets,
    /// K proposals of every set, `[sets, K, d_x]`.
    pub candidates: &'a [f32],
    /// ω of each, `[sets, K]`.
    pub log_weights: &'a [f32],
    /// One context per set, `[sets, context_dim]`.
    pub context: &'a Tensor,
    /// The flat parameters, `[num_parameters]`.
    pub parameters: &'a Tensor,
}

/// What [`PointModule::likelihood`] gives back.
#[derive(Clone, Debug)]
pub struct LikelihoodTensors {
    /// mean_s (log Σₖ exp(fₖ + ωₖ) − mean_i f), a scalar in the graph.
    pub nats: Tensor,
    /// f at every candidate without ω, `[sets, K]`.
    pub candidate_values: Vec<f32>,
}

impl PointModule {
    /// The mean over sets of log Z less the mean of f over the set's elements, differentiable
    /// with respect to context and parameters. The gradient is found with the value: a device
    /// runs every row forward once.
    ///
    /// # Errors
    ///
    /// As [`log_partition`](Self::log_partition).
    pub fn likelihood(&self, sets: &LikelihoodSets<'_>) -> Result<LikelihoodTensors> {
        let num_sets = sets.offsets.num_sets();
        let context = self.checked_context(Some(sets.context), sets.offsets)?;
        let parameters = self.checked_parameters(sets.parameters)?;
        let call = self.call(&parameters, sets.offsets)?;
        let nothing = empty(0)?;
        let found = {
            let context = HostView::new("context", &context)?;
            // One anchor per set: the set itself.
            let anchors = SetOffsets::uniform(num_sets, 1)?;
            let candidates = Candidates {
                values: CandidateValues::PerAnchor(sets.candidates),
                num_candidates: sets.log_weights.len() / num_sets,
                locations: &[],
                offsets: &anchors,
                context: &context,
                log_weights: LogWeights::PerAnchor(sets.log_weights),
            };
            let batch =
                PointBatch { elements: sets.elements, offsets: sets.offsets, context: &context };
            let [context, parameters] = [sets.context, sets.parameters].map(Tensor::track_op);
            let wanted = Wanted { elements: false, ..wanted([false, context, parameters]) };
            self.backend().likelihood(&call.mlp, &batch, &candidates, wanted)?
        };
        let Likelihood { log_partition, candidate_values, means, gradients } = found;
        let terms = log_partition.iter().zip(&means);
        let sum: f64 = terms.map(|(log_z, mean)| f64::from(*log_z) - f64::from(*mean)).sum();
        #[expect(clippy::cast_possible_truncation, reason = "tensors are f32")]
        let nats = (sum / num_sets as f64) as f32;
        let arguments = [&nothing, &context, &parameters];
        let nats = record(vec![nats], (), arguments, ReverseLikelihood(gradients))?;
        Ok(LikelihoodTensors { nats, candidate_values })
    }
}

struct ReverseLikelihood(Gradients);

impl Reverse for ReverseLikelihood {
    fn name(&self) -> &'static str {
        "point-likelihood"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let scale = reversal.cotangent[0];
        let scaled = |gradient: &Option<Vec<f32>>| {
            gradient.as_ref().map(|gradient| gradient.iter().map(|g| scale * g).collect())
        };
        Ok([None, scaled(&self.0.context), scaled(&self.0.parameters)])
    }
}
