//! Points on their way from noise to a set of given θ, to be looked at:
//!
//! ```text
//! x₀ ~ uniform,   x ← x + (η_t/2) ∇u(x; θ) + s_t √η_t ξ,   η_t = 10⁻² · 0.05^(t/T),   s_t: 1, at the end falling to 0
//! ```
//!
//! A picture of how an energy pulls points to a shape, and no way to draw from its law: steps are few, and
//! points stay in the part of the shape that they came to. [`EnergyBasedProcess::draw_points`] draws.

use super::EnergyBasedProcess;
use crate::point::{Clip, Langevin, Motion, PointBatch};
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// η at the beginning, in squared standard deviations of the data: steps of a tenth of one …
const FIRST_STEP: f32 = 1e-2;
/// … and what remains of it at the end, where it is that of [`DrawSettings`](super::DrawSettings).
const LAST_SHARE: f32 = 0.05;
/// Steps between two frames.
const STEPS_PER_FRAME: usize = 6;
/// From this share of the way on noise falls to nothing, so that surfaces get sharp.
const COOLING: f32 = 0.7;
/// A step's drift is at most half of this: far from the data gradients are of any size.
const LONGEST_DRIFT: f32 = 0.4;

impl EnergyBasedProcess {
    /// `num_frames` looks at `num_points` points of each θ of `theta` `[sets, k]`, the first at noise: each
    /// `[sets, num_points, d]`, points in one order in all of them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a number is 0 or `theta` does not fit; [`Error::NonFinite`] if a point
    /// leaves the numbers.
    pub fn points_from_noise(
        &self,
        theta: &[f32],
        num_points: usize,
        num_frames: usize,
        stream: Stream,
    ) -> Result<Vec<Vec<f32>>> {
        for (field, found, least) in [("num_points", num_points, 1), ("num_frames", num_frames, 2)]
        {
            if found < least {
                return Err(Error::invalid(field, format!("at least {least}"), found));
            }
        }
        let mlp = self.element_network()?;
        let num_sets = theta.len() / self.config.latent_dim;
        let offsets = SetOffsets::uniform(num_sets, num_points)?;
        let half = self.space.high;
        let mut points = vec![0.0; num_sets * num_points * self.space.value_dim];
        stream.child(0).fill_uniform(0, 0, &mut points);
        for x in &mut points {
            *x = half * (2.0 * *x - 1.0);
        }
        let num_steps = (num_frames - 1) * STEPS_PER_FRAME;
        let share = |step: usize| step as f32 / num_steps as f32;
        let mut frames = vec![points.clone()];
        for frame in 1..num_frames {
            let steps = (frame - 1) * STEPS_PER_FRAME..frame * STEPS_PER_FRAME;
            let sizes: Vec<f32> =
                steps.clone().map(|step| FIRST_STEP * LAST_SHARE.powf(share(step))).collect();
            let cold = |step: usize| ((1.0 - share(step + 1)) / (1.0 - COOLING)).min(1.0);
            let scales: Vec<f32> =
                steps.zip(&sizes).map(|(step, size)| cold(step) * size.sqrt()).collect();
            let langevin = Langevin {
                step_sizes: &sizes,
                noise_scales: &scales,
                noise: stream.child(frame as u64),
                motion: Motion { clip: Clip::Norm(LONGEST_DRIFT / sizes[0]), ..self.motion() },
            };
            let batch = PointBatch { elements: &points, offsets: &offsets, context: theta };
            points = self.device.backend().langevin(&mlp, &batch, &langevin)?.elements;
            frames.push(points.clone());
        }
        Ok(frames)
    }
}
