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
        let chosen: Vec<usize> = uniforms
            .iter()
            .map(|uniform| ((uniform * size as f32) as usize).min(size - 1))
            .collect();
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
        let candidates = self.energy.log_potential(tape, (changed, None), &layout)?;
        let candidates = tape.reshape(candidates, (num_sets, count))?;
        let log_weights = tape.upload(found.log_weights, (num_sets, count))?;
        let logs = tape.add(candidates, log_weights)?;
        let log_partition = tape.log_sum_exp(logs)?;
        let nats = tape.subtract(log_partition, u)?;
        tape.mean(nats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetOffsets;
    use crate::process::{SetBase, SetEnergyConfig};
    use crate::tape::Device;

    /// log ∫ exp u(y, x₂, …) dy − u(x) by the trapezoid rule, averaged over all i, against the mean of many
    /// estimates.
    #[test]
    fn it_is_the_integral_over_one_element() {
        let config = SetEnergyConfig {
            element_dim: 1,
            summary_widths: vec![8, 4],
            energy_widths: vec![8],
            num_candidates: 400,
            base: SetBase::Gaussian,
            energy_components: 4,
            ..SetEnergyConfig::default()
        };
        let process = SetEnergyProcess::new(config, 3, &Device::default()).unwrap();
        let set = [0.3_f32, -0.8, 1.1];
        let one = SetOffsets::uniform(1, 3).unwrap();
        let own = process.log_potentials(&set, &one).unwrap()[0];
        let u = f64::from(own);
        let (count, half) = (2001, 3.0_f32);
        let offsets = SetOffsets::uniform(count, 3).unwrap();
        let expected = (0..3).map(|i| {
            let sets = (0..count).flat_map(|k| {
                let mut changed = set;
                changed[i] = half * (2.0 * k as f32 / (count - 1) as f32 - 1.0);
                changed
            });
            let sets: Vec<f32> = sets.collect();
            let all = process.log_potentials(&sets, &offsets).unwrap();
            let cell = 2.0 * f64::from(half) / (count - 1) as f64;
            let sum: f64 = all.iter().map(|&u| f64::from(u).exp() * cell).sum();
            (sum.ln() - u) / 3.0
        });
        let expected: f64 = expected.sum();
        // The same set many times over: each draws its own i and its own candidates.
        let many = 3000;
        let mut tape = process.parameters.device().tape();
        tape.read(&process.parameters);
        let sets = set.repeat(many);
        let potentials = tape.upload(vec![own; many], (many, 1)).unwrap();
        let stream = Stream::new(4, "one of many");
        let found = process.given_others(&mut tape, (&sets, potentials), 3, stream).unwrap();
        let found = f64::from(tape.download(found).unwrap()[0]);
        // Which i is drawn: a standard deviation of at most 1 nat over √3000; candidates: 1/√400 of a nat each,
        // a bias of half its square.
        assert!((found - expected).abs() < 4.0 * 0.02 + 0.002, "{found} {expected}");
    }
}
