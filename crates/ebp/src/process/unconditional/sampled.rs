//! Clouds as the learned sampler draws them, without the energy's correction.

use candle_core::{Device, Tensor};

use super::UnconditionalProcess;
use crate::nn::Mode;
use crate::rng::Stream;
use crate::{Error, Result};

/// Sets whose points are drawn together.
const DRAWN_AT_ONCE: usize = 32;

impl UnconditionalProcess {
    /// Whether a sampler was trained beside the energy.
    pub fn has_sampler(&self) -> bool {
        self.sampler.is_some()
    }

    /// `num_points` points of the learned sampler for each θ of `theta` `[sets, k]`, as
    /// `[sets, num_points, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no sampler.
    pub fn draw_from_sampler(
        &self,
        theta: &[f32],
        num_points: usize,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let Some((sampler, _)) = &self.sampler else {
            return Err(Error::invalid("model", "one with a learned sampler", "none"));
        };
        let (k, dim) = (self.config.latent_dim, self.config.value_dim);
        let parameters = self.energy.parameters(Mode::Evaluate)?.detach();
        let calibrated = self.energy.calibrated(&parameters)?.detach();
        let mut points = Vec::new();
        for (number, theta) in theta.chunks(DRAWN_AT_ONCE * k).enumerate() {
            let theta = Tensor::from_slice(theta, (theta.len() / k, k), &Device::Cpu)?;
            let energy = (&self.energy, &calibrated);
            let stream = stream.child(number as u64);
            let draws = sampler.draw(energy, &theta, num_points, Mode::Evaluate, stream)?;
            let values = draws.values.detach().flatten_all()?.to_vec1::<f32>()?;
            // Whole blocks may be more than was asked for.
            for set in values.chunks_exact(draws.offsets.size(0) * dim) {
                points.extend_from_slice(&set[..num_points * dim]);
            }
        }
        Ok(points)
    }
}
