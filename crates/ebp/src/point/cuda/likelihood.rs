//! The negative log-likelihood of sets with its gradient: every row runs forward once, and both
//! directions share one sum.

use super::buffer::Buffer;
use super::candidates::{Part, chunks};
use super::device::Device;
use super::inputs::{DeviceBatch, DeviceCandidates, DeviceCotangent, DeviceMlp};
use super::launch::flat;
use super::network::{Keep, Network};
use super::values::of_chunk;
use super::whole::Whole;
use crate::Result;
use crate::point::{Likelihood, Wanted};

impl Device {
    /// The parts of L = mean_s (mean_a log Σₖ exp(f + ω) − mean_i f), and its gradients with respect
    /// to parameters and context where wanted.
    pub(crate) fn likelihood(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        candidates: &DeviceCandidates<'_>,
        wanted: Wanted,
    ) -> Result<Likelihood<Buffer>> {
        let num_sets = batch.sets.num_sets();
        let network = Network::new(self, mlp, batch.context, num_sets)?;
        let sums = network.sums(wanted)?;
        let keep = if sums.is_some() { Keep::Slopes } else { Keep::Output };
        let (anchors, k) = (candidates.sets.num_elements(), candidates.num_candidates);

        let upward = self.anchor_shares(candidates)?;
        let mut log_partition = Whole::new(self, anchors);
        let mut candidate_values = Whole::new(self, anchors * k);
        for chunk in chunks(&network, candidates, keep) {
            let part = Part::new(&network, candidates, &chunk)?;
            let trace = network.forward(&part.rows, keep)?;
            let log_sums = part.log_sums(self, &trace.output)?;
            if sums.is_some() {
                let given = upward.view(chunk.rows.start, chunk.rows.len());
                let g = part.cotangents(self, &trace.output, (&log_sums, &given))?;
                network.backward(&part.rows, &trace, Some(&g), sums.as_ref(), false)?;
            }
            log_partition.put(chunk.rows.start, log_sums)?;
            candidate_values.put(chunk.rows.start * k, trace.output)?;
        }

        let downward = batch.sets.shares(self, -1.0)?;
        let means = self.zeros::<f32>(num_sets)?;
        for chunk in batch.sets.chunks(network.rows_at_once(keep)) {
            let rows = network.rows(batch.elements, batch.sets, &chunk)?;
            let trace = network.forward(&rows, keep)?;
            rows.add_sums(self, (&trace.output, 1), &means)?;
            if sums.is_some() {
                let per_set = DeviceCotangent::PerSet(&downward);
                let g = of_chunk(self, (&chunk, &rows), 1, per_set)?;
                network.backward(&rows, &trace, Some(&g), sums.as_ref(), false)?;
            }
        }
        batch.sets.over_sizes(self, &means, &means)?;
        Ok(Likelihood {
            log_partition: log_partition.done(),
            candidate_values: candidate_values.done(),
            means,
            gradients: network.finish(sums)?,
        })
    }

    /// ∂L/∂log Z of every anchor: 1 / (sets · anchors of its set).
    fn anchor_shares(&self, candidates: &DeviceCandidates<'_>) -> Result<Buffer> {
        let (sets, anchors) = (candidates.sets, candidates.sets.num_elements());
        let shares = sets.shares(self, 1.0)?;
        if anchors == sets.num_sets() {
            return Ok(shares);
        }
        let (out, set) = (self.buffer::<f32>(anchors)?, sets.set_of_row());
        self.kernels.spread(self, flat(anchors), &shares, Some(set), &out, anchors as u64, 1)?;
        Ok(out)
    }
}
