//! log Σ_k exp(f_k + ω_k) over the candidates of every anchor, and its gradients.

use ebp::SetOffsets;
use ebp::point::{CandidateValues, Candidates, LogWeights};

use super::{Gradients, Network, Sets, add_to, widen};

/// [`Candidates`] in f64, with shared values and weights left shared.
#[derive(Clone, Debug)]
pub(crate) struct Anchors {
    /// `[anchors, K, d_x]`, or `[K, d_x]` if shared.
    pub(crate) values: Vec<f64>,
    pub(crate) is_shared: bool,
    pub(crate) num_candidates: usize,
    /// `[anchors, d_t]`
    pub(crate) locations: Vec<f64>,
    pub(crate) offsets: SetOffsets,
    pub(crate) context: Vec<f64>,
    /// `[anchors, K]`, always written out.
    pub(crate) log_weights: Vec<f64>,
}

impl Anchors {
    pub(crate) fn new(candidates: &Candidates<'_>) -> Self {
        let (anchors, k) = (candidates.offsets.num_elements(), candidates.num_candidates);
        let (values, is_shared) = match candidates.values {
            CandidateValues::PerAnchor(values) => (values, false),
            CandidateValues::Shared(values) => (values, true),
        };
        let log_weights = match candidates.log_weights {
            LogWeights::Zero => vec![0.0; anchors * k],
            LogWeights::PerAnchor(weights) => widen(weights),
            LogWeights::Shared(weights) => widen(weights).repeat(anchors),
        };
        Self {
            values: widen(values),
            is_shared,
            num_candidates: k,
            locations: widen(candidates.locations),
            offsets: candidates.offsets.clone(),
            context: widen(candidates.context),
            log_weights,
        }
    }

    /// Which row of `values` candidate `k` of `anchor` is.
    fn value_row(&self, anchor: usize, k: usize) -> usize {
        if self.is_shared { k } else { anchor * self.num_candidates + k }
    }

    /// Every pair of anchor and candidate written out as an element [x, t] of its anchor's set.
    pub(crate) fn written_out(&self, network: &Network) -> Sets {
        let (dx, dt) = (network.value_dim(), network.shape.config().location_dim);
        let mut elements = Vec::new();
        for anchor in 0..self.offsets.num_elements() {
            for k in 0..self.num_candidates {
                let row = self.value_row(anchor, k);
                elements.extend_from_slice(&self.values[row * dx..(row + 1) * dx]);
                elements.extend_from_slice(&self.locations[anchor * dt..(anchor + 1) * dt]);
            }
        }
        let sizes =
            (0..self.offsets.num_sets()).map(|s| self.offsets.size(s) * self.num_candidates);
        let offsets = SetOffsets::from_sizes(sizes).expect("sets of anchors are not empty");
        Sets { elements, offsets, context: self.context.clone() }
    }
}

impl Network {
    /// log Z_a = log Σ_k exp(f_ak + ω_ak), `[anchors]`, and f `[anchors, K]`.
    pub(crate) fn log_partition(&self, anchors: &Anchors) -> (Vec<f64>, Vec<f64>) {
        let k = anchors.num_candidates;
        let values = self.values(&anchors.written_out(self));
        let log_partition = values
            .chunks(k)
            .zip(anchors.log_weights.chunks(k))
            .map(|(f, w)| {
                let logits: Vec<_> = f.iter().zip(w).map(|(f, w)| f + w).collect();
                let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                largest + logits.iter().map(|l| (l - largest).exp()).sum::<f64>().ln()
            })
            .collect();
        (log_partition, values)
    }

    /// Gradients of Σ_a cotangent_a log Z_a: ∂ log Z_a / ∂f_ak = exp(f_ak + ω_ak − log Z_a), and
    /// from there as for any element. `elements` is ∂L/∂x, summed over anchors where shared, and
    /// `locations` is ∂L/∂t, summed over an anchor's candidates.
    pub(crate) fn log_partition_backward(&self, anchors: &Anchors, cotangent: &[f64]) -> Gradients {
        let k = anchors.num_candidates;
        let (dx, d) = (self.value_dim(), self.shape.element_dim());
        let (log_partition, values) = self.log_partition(anchors);
        let weights: Vec<_> = (0..values.len())
            .map(|j| {
                let share = (values[j] + anchors.log_weights[j] - log_partition[j / k]).exp();
                cotangent[j / k] * share
            })
            .collect();
        let rows = self.backward(&anchors.written_out(self), &weights);
        let mut elements = vec![0.0; anchors.values.len()];
        let mut locations = vec![0.0; anchors.locations.len()];
        for (j, row) in rows.elements.chunks(d).enumerate() {
            let (anchor, at) = (j / k, anchors.value_row(j / k, j % k));
            add_to(&mut elements[at * dx..(at + 1) * dx], &row[..dx]);
            add_to(&mut locations[anchor * (d - dx)..(anchor + 1) * (d - dx)], &row[dx..]);
        }
        Gradients { elements, locations, ..rows }
    }
}
