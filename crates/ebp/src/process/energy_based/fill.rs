//! Filling in what is missing by Langevin steps, the paper's way: known elements stay where they
//! are, the others follow ∇u of one θ ~ q(θ | context).
//!
//! ```text
//! x ← x + (η/2) ∇ₓ u(x, t; θ) + s_t ξ,   u = f/τ,   s_t = √η, falling to 0 over the second half
//! ```
//!
//! They start at the learned sampler's draws, or uniformly on the domain where there is none, and
//! are reflected at its walls. Without annealing the law of the end is exp u up to the steps' bias.

use candle_core::Tensor;

use super::features::push_features;
use super::latent::Gaussians;
use super::targets::Targets;
use super::{EnergyBasedProcess, Result};
use crate::nn::Mode;
use crate::point::{Bounds, Clip, Langevin, Motion, PointBatch, PointMlp};
use crate::process::task::{check_dimensions, count_locations};
use crate::rng::Stream;
use crate::{Error, IndexedSet, SetOffsets};

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
    pub(crate) fn check(&self) -> Result<()> {
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
    pub(crate) fn noise_scales(&self) -> Vec<f32> {
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
    /// [`Error::InvalidValue`] if a setting is outside its range or the context does not fit.
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
        let config = self.config();
        let (dims, frequencies) = (config.value_dim, config.location_frequencies);
        check_dimensions("context", context, config.location_dim, dims)?;
        let m = count_locations(locations, config.location_dim)?;
        if m == 0 || count == 0 {
            return Ok(Vec::new());
        }
        let posterior = self.posterior.encode(&[context])?;
        let repeated = Gaussians {
            mean: posterior.mean.repeat((count, 1))?,
            log_std_dev: posterior.log_std_dev.repeat((count, 1))?,
        };
        let theta = repeated.draw(stream.child(0))?;
        let parameters = self.energy.parameters(Mode::Evaluate)?;
        let calibrated = self.energy.calibrated(&parameters)?.detach();
        let start = self.start(locations, &theta, &calibrated, stream)?;

        // The whole set of every draw: the known elements, which are fixed, then the others.
        let (low, high) = config.value_domain;
        let mut elements = Vec::new();
        for values in start.chunks_exact(m * dims) {
            for index in 0..context.len() {
                elements.extend(context.value(index).iter().map(|&x| x as f32));
                push_features(context.location(index), frequencies, &mut elements);
            }
            let rows = values.chunks_exact(dims).zip(locations.chunks_exact(config.location_dim));
            for (value, location) in rows {
                elements.extend(value.iter().map(|x| x.clamp(low, high)));
                push_features(location, frequencies, &mut elements);
            }
        }
        let size = context.len() + m;
        let is_fixed: Vec<bool> = (0..count * size).map(|row| row % size < context.len()).collect();
        let energy =
            PointMlp::new(self.energy.module.shape().clone(), calibrated.to_vec1::<f32>()?)?;
        let thetas = theta.flatten_all()?.to_vec1::<f32>()?;
        let offsets = SetOffsets::uniform(count, size)?;
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: &thetas };
        let run = self.energy.module.backend().langevin(
            &energy,
            &batch,
            &Langevin {
                step_sizes: &vec![settings.step_size as f32; settings.num_steps],
                noise_scales: &settings.noise_scales(),
                noise: stream.child(2),
                motion: Motion {
                    // A step no longer than a quarter of the domain.
                    clip: Clip::Elementwise(0.5 * (high - low) / settings.step_size as f32),
                    bounds: Some(Bounds { low, high }),
                    is_fixed: Some(&is_fixed),
                    ..Motion::default()
                },
            },
        )?;
        let width = self.energy.module.shape().element_dim();
        let moved = run.elements.chunks_exact(width).zip(&is_fixed).filter(|(_, fixed)| !**fixed);
        Ok(moved.flat_map(|(row, _)| &row[..dims]).map(|&x| f64::from(x)).collect())
    }

    /// Where the steps start, `[count, m, d_x]`.
    fn start(
        &self,
        locations: &[f64],
        theta: &Tensor,
        calibrated: &Tensor,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let config = self.config();
        let (m, dims) = (locations.len() / config.location_dim, config.value_dim);
        let count = theta.dim(0)?;
        if let Some((sampler, _)) = &self.sampler {
            let asked = IndexedSet::new(
                config.location_dim,
                dims,
                locations.to_vec(),
                vec![0.0; m * dims],
            )?;
            let targets = Targets::new(&vec![&asked; count], config.location_frequencies)?;
            let energy = (&self.energy, calibrated);
            let draws =
                sampler.draw(energy, &targets, theta, (1, Mode::Evaluate), stream.child(1))?;
            return Ok(draws.values.flatten_all()?.to_vec1()?);
        }
        let (low, high) = config.value_domain;
        let mut values = vec![0.0; count * m * dims];
        stream.child(1).fill_uniform(0, 0, &mut values);
        for x in &mut values {
            *x = low + (high - low) * *x;
        }
        Ok(values)
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
