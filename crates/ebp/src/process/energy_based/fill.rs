//! Filling in what is missing by Langevin steps, the paper's way: known elements stay where they
//! are, the others follow ∇u of one θ ~ q(θ | context).
//!
//! ```text
//! x ← x + (η/2) ∇ₓ u(x, t; θ) + s_t ξ,   s_t = √η, falling to 0 over the second half
//! ```
//!
//! They start at the learned sampler's draws, or uniformly on the domain where there is none, and
//! are reflected at its walls. Without annealing the law of the end is exp u up to the steps' bias.

use std::sync::Arc;

use super::{Energy, EnergyBasedProcess};
use crate::point::{Bounds, Clip, Langevin, Motion, PointBatch};
use crate::process::task::count_locations;
use crate::rng::Stream;
use crate::sampler::{Followed, Places, Purpose};
use crate::{Error, IndexedSet, Result, SetOffsets};

/// How long and how far elements move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FillSettings {
    /// Steps.
    pub num_steps: usize,
    /// η.
    pub step_size: f64,
    /// Whether the noise falls to nothing over the second half.
    pub is_annealed: bool,
}

impl Default for FillSettings {
    /// 200 annealed steps of 10⁻³, whose noise has a standard deviation of 0.03.
    fn default() -> Self {
        Self { num_steps: 200, step_size: 1e-3, is_annealed: true }
    }
}

impl FillSettings {
    fn check(&self) -> Result<()> {
        if self.num_steps == 0 {
            return Err(Error::invalid("num_steps", "at least 1", self.num_steps));
        }
        if !(self.step_size > 0.0 && self.step_size.is_finite()) {
            return Err(Error::invalid("step_size", "positive and finite", self.step_size));
        }
        Ok(())
    }

    /// s_t.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn noise_scales(&self) -> Vec<f32> {
        let last = self.num_steps.saturating_sub(1).max(1) as f64;
        (0..self.num_steps)
            .map(|step| {
                let left = if self.is_annealed { 2.0 * (1.0 - step as f64 / last) } else { 1.0 };
                (self.step_size.sqrt() * left.min(1.0)) as f32
            })
            .collect()
    }
}

impl EnergyBasedProcess {
    /// `count` draws of the values at `locations` `[m, d_t]`, each of one θ, as `[count, m, d_x]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range, the context does not fit or the
    /// process is over a finite alphabet, whose values cannot move.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub fn fill(
        &self,
        context: &IndexedSet,
        locations: &[f64],
        count: usize,
        settings: &FillSettings,
        stream: Stream,
    ) -> Result<Vec<f64>> {
        settings.check()?;
        let dims = self.space.value_dim;
        let context = self.as_batch("context", context)?;
        let m = count_locations(locations, self.space.location_dim)?;
        if m == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let energy = self.element_network()?;
        let thetas = self.draw_latents(&context, count, stream.child(0))?;
        let seen = self.observed(&context)?;
        let narrow: Vec<f32> = locations.iter().map(|&t| t as f32).collect();
        let unknown = self.location_rows(seen.as_ref(), &narrow)?;
        let known = self.location_rows(seen.as_ref(), context.locations(0))?;
        let width = self.parts.num_features;
        let start = self.start((&unknown, m), &thetas, stream)?;
        // The whole set of every draw: the known elements, which are fixed, then the others.
        let (low, high) = (self.space.low, self.space.high);
        let mut elements = Vec::new();
        for values in start.chunks_exact(m * dims) {
            let fixed = context.values(0).chunks_exact(dims).zip(known.chunks_exact(width));
            for (value, row) in fixed {
                elements.extend_from_slice(value);
                elements.extend_from_slice(row);
            }
            for (value, row) in values.chunks_exact(dims).zip(unknown.chunks_exact(width)) {
                elements.extend(value.iter().map(|x| x.clamp(low, high)));
                elements.extend_from_slice(row);
            }
        }
        let size = context.size(0) + m;
        let is_fixed: Vec<bool> =
            (0..count * size).map(|row| row % size < context.size(0)).collect();
        let offsets = SetOffsets::uniform(count, size)?;
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: &thetas };
        let run = self.device.backend().langevin(
            &energy,
            &batch,
            &Langevin {
                step_sizes: &vec![settings.step_size as f32; settings.num_steps],
                noise_scales: &settings.noise_scales(),
                noise: stream.child(2),
                motion: Motion {
                    // A step no longer than a quarter of the domain.
                    clip: Clip::Elementwise(0.5 * (high - low) / settings.step_size as f32),
                    base_std_dev: self.config.base(),
                    bounds: Some(Bounds { low, high }),
                    is_fixed: Some(&is_fixed),
                },
            },
        )?;
        let width = energy.shape().element_dim();
        let moved = run.elements.chunks_exact(width).zip(&is_fixed).filter(|(_, fixed)| !**fixed);
        Ok(moved.flat_map(|(row, _)| &row[..dims]).map(|&x| f64::from(x)).collect())
    }

    /// Where the steps start, `[count, m, d_x]`.
    fn start(
        &self,
        (rows, m): (&[f32], usize),
        thetas: &[f32],
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let count = thetas.len() / self.config.latent_dim;
        let (Some(learned), Energy::Element(energy)) = (self.sampler(), &self.parts.energy) else {
            let mut values = vec![0.0; count * m * self.space.value_dim];
            stream.child(1).fill_uniform(0, 0, &mut values);
            let (low, high) = (self.space.low, self.space.high);
            for x in &mut values {
                *x = low + (high - low) * *x;
            }
            return Ok(values);
        };
        let mut tape = self.device.tape();
        tape.read(&self.parameters);
        tape.read(&learned.parameters);
        let theta = tape.upload(thetas.to_vec(), (count, self.config.latent_dim))?;
        let parameters = energy.calibrated(&mut tape, false)?;
        let width = self.parts.num_features;
        let places = Places {
            features: Some(tape.upload(rows.repeat(count), (count * m, width))?),
            offsets: Arc::new(SetOffsets::uniform(count, m)?),
        };
        let followed = Followed { energy, parameters, theta };
        let count = (1, Purpose::Use);
        let draws = learned.sampler.draw(&mut tape, followed, &places, count, stream.child(1))?;
        tape.download(draws.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_that_of_the_temperature_and_falls_in_the_second_half() {
        let settings = FillSettings { num_steps: 5, step_size: 0.04, is_annealed: true };
        let found = settings.noise_scales();
        for (found, expected) in found.iter().zip([0.2, 0.2, 0.2, 0.1, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        let constant = FillSettings { is_annealed: false, ..settings };
        assert!(constant.noise_scales().iter().all(|scale| (scale - 0.2).abs() < 1e-6));
        assert!(FillSettings { num_steps: 0, ..settings }.check().is_err());
        assert!(FillSettings { step_size: -1.0, ..settings }.check().is_err());
    }
}
