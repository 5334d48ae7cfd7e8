//! Denoising score matching: no log Z.
//!
//! ```text
//! x̃ = x + σ ξ,   loss = mean ½ σ_min² ‖ ∇u(x̃; θ) + ξ/σ ‖²,   σ one of several
//! ```
//!
//! E[−ξ/σ | x̃] is the score of the data's law, smoothed by the mixture of the noises; so u becomes
//! its logarithm wherever x̃ may fall, up to a constant that nothing fixes. Far from all data u is
//! whatever the network makes of it.

use candle_core::{Device, Tensor};

use super::UnconditionalProcess;
use super::batch::Batch;
use crate::Result;
use crate::nn::TensorBatch;
use crate::rng::Stream;

impl UnconditionalProcess {
    /// The loss above, in the graph. `calibrated` are the parameters of f/τ.
    pub(super) fn denoising_loss(
        &self,
        batch: &Batch,
        theta: &Tensor,
        calibrated: &Tensor,
        stream: Stream,
    ) -> Result<Tensor> {
        let dim = self.config.value_dim;
        let n = batch.offsets.num_elements();
        let noises = &self.config.score_noises;
        let (mut noise, mut choice) = (vec![0.0; n * dim], vec![0.0; n]);
        stream.child(0).fill_normal(0, 0, &mut noise);
        stream.child(1).fill_uniform(0, 0, &mut choice);
        let inverse = 1.0 / (self.config.base_std_dev * self.config.base_std_dev);
        let (mut moved, mut targets) = (batch.points.clone(), vec![0.0; n * dim]);
        for (row, choice) in choice.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let index = ((choice * noises.len() as f32) as usize).min(noises.len() - 1);
            for place in row * dim..(row + 1) * dim {
                moved[place] += noises[index] * noise[place];
                // ∇f = −ξ/σ + x̃/s₀², where u = f − ‖x‖²/(2 s₀²).
                targets[place] = inverse * moved[place] - noise[place] / noises[index];
            }
        }
        let elements = Tensor::from_vec(moved, (n, dim), &Device::Cpu)?;
        let targets = Tensor::from_vec(targets, (n, dim), &Device::Cpu)?;
        let score = self.networks.energy()?.module.score(&TensorBatch {
            elements: &elements,
            context: Some(theta),
            parameters: calibrated,
            offsets: &batch.offsets,
        })?;
        let least = noises.iter().copied().fold(f32::INFINITY, f32::min);
        let squares = (score - targets)?.sqr()?.sum(1)?.mean_all()?;
        Ok((squares * f64::from(0.5 * least * least))?)
    }
}
