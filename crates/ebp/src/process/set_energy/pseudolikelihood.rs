//! One element given all others, a conditional likelihood whose log Z is an integral over one element:
//!
//! ```text
//! −log p(xᵢ | x₋ᵢ) = log ∫ exp u(x₋ᵢ, y) dy − u(x),     ∫ … ≈ Σ_k w(y_k) exp u(x₋ᵢ, y_k)
//! ```
//!
//! Candidates y lie in the cells of a box and around xᵢ at three scales, weighed by the density of them all
//! (`partition/around.rs`), so a spike of u at the data gains nothing. One i of every set, drawn anew in
//! every step, is as good as all of them over time.
//!
//! Besag's pseudolikelihood: consistent, and sharp from the first steps, as each candidate differs from the
//! data in d numbers and not in n d. What sets there are, as a whole, it hears of only through their
//! neighbours; draws of whole sets (`learn.rs`) say that.

use super::SetEnergyProcess;
use super::energy::Layout;
use crate::Result;
use crate::partition::around;
use crate::rng::Stream;
use crate::tape::{Tape, Var};

/// The box, in standard deviations of the base measure: it must hold the data.
const HALF_WIDTH: f64 = 2.0;
/// Standard deviations of candidates around an element, as shares of the box's width.
const WIDTHS: [f32; 3] = [0.004, 0.012, 0.04];

impl SetEnergyProcess {
    /// The mean of −log p(xᵢ | x₋ᵢ) over sets, one i of each, `[1, 1]`; `u` is that of the sets.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times a count is one of the numbers below it; networks compute in f32"
    )]
    pub(super) fn given_others(
        &self,
        tape: &mut Tape,
        (sets, u): (&[f32], Var),
        size: usize,
        stream: Stream,
    ) -> Result<Var> {
        let dims = self.config.element_dim;
        let num_sets = sets.len() / (size * dims);
        let mut uniforms = vec![0.0; num_sets];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let chosen: Vec<usize> =
            uniforms.iter().map(|uniform| ((uniform * size as f32) as usize).min(size - 1)).collect();
        let anchors: Vec<f32> = sets
            .chunks_exact(size * dims)
            .zip(&chosen)
            .flat_map(|(set, &i)| set[i * dims..][..dims].to_vec())
            .collect();
        let half = (HALF_WIDTH * self.config.base_std_dev) as f32;
        let box_of = (-half, half);
        let found =
            around(&anchors, (dims, self.config.num_candidates), box_of, &WIDTHS, stream.child(1));
        let count = found.num_candidates;
        let mut changed = Vec::with_capacity(sets.len() * count);
        let own = found.values.chunks_exact(count * dims);
        for ((set, &i), candidates) in sets.chunks_exact(size * dims).zip(&chosen).zip(own) {
            for candidate in candidates.chunks_exact(dims) {
                let start = changed.len();
                changed.extend_from_slice(set);
                changed[start + i * dims..][..dims].copy_from_slice(candidate);
            }
        }
        let layout = Layout::uniform(num_sets * count, size)?;
        let changed = tape.upload(changed, (num_sets * count * size, dims))?;
        let candidates = self.energy.log_potential(tape, changed, &layout)?;
        let candidates = tape.reshape(candidates, (num_sets, count))?;
        let log_weights = tape.upload(found.log_weights, (num_sets, count))?;
        let logs = tape.add(candidates, log_weights)?;
        let log_partition = tape.log_sum_exp(logs)?;
        let nats = tape.subtract(log_partition, u)?;
        tape.mean(nats)
    }
}
