//! Noise-free steps that carry points of a noisy set back to where they are likely.
//!
//! ```text
//! x ← x + (η_t/2) clip( ∇u(x; θ) + (x̃ − x)/s² ),   θ = μ(current set), encoded anew every so often
//! ```
//!
//! x̃ is where a point was found and s how far it may have been moved (without s the points run
//! together on the ridges of u). Step sizes fall, so that points first travel and then settle.

use super::EnergyBasedProcess;
use crate::point::{PointBatch, PointMlp};
use crate::{Error, Result, SetOffsets};

/// How sets are denoised, in units of the standardised data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenoiseSettings {
    /// T.
    pub num_steps: usize,
    /// η of the first step; the last one is a hundredth of it.
    pub step_size: f32,
    /// The longest way of a point in one step.
    pub longest_move: f32,
    /// s, the standard deviation of the noise; `None` to forget where points were found.
    pub noise: Option<f32>,
    /// θ is encoded anew after so many steps.
    pub encode_every: usize,
}

impl Default for DenoiseSettings {
    fn default() -> Self {
        Self { num_steps: 20, step_size: 1e-2, longest_move: 0.1, noise: None, encode_every: 2 }
    }
}

/// The last step as a share of the first.
const LAST_STEP: f32 = 0.01;

impl EnergyBasedProcess {
    /// A set of standardised points `[n, d]`, denoised. Points that `is_fixed` marks stay. With
    /// `theta` that code is used throughout, in place of the set's own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting or length does not fit.
    pub fn denoise(
        &self,
        points: &[f32],
        is_fixed: Option<&[bool]>,
        theta: Option<&[f32]>,
        settings: &DenoiseSettings,
    ) -> Result<Vec<f32>> {
        let dim = self.space.value_dim;
        let n = points.len() / dim;
        if is_fixed.is_some_and(|fixed| fixed.len() != n) {
            return Err(Error::invalid(
                "is_fixed",
                format!("one per point, {n}"),
                "another number",
            ));
        }
        if settings.encode_every == 0 {
            return Err(Error::invalid("encode_every", "at least 1", 0));
        }
        let mlp = self.element_network()?;
        let mut moved = points.to_vec();
        let mut code = match theta {
            Some(theta) => theta.to_vec(),
            None => self.encode(&self.point_sets(&[points])?)?.mean,
        };
        let last = settings.num_steps.max(2) - 1;
        let mut way = vec![0.0_f32; dim];
        for step in 0..settings.num_steps {
            if theta.is_none() && step > 0 && step % settings.encode_every == 0 {
                code = self.encode(&self.point_sets(&[&moved])?)?.mean;
            }
            let share = LAST_STEP.powf(step as f32 / last as f32);
            let gradient = self.gradient(&mlp, &moved, &code)?;
            for row in 0..n {
                if is_fixed.is_some_and(|fixed| fixed[row]) {
                    continue;
                }
                let places = row * dim..(row + 1) * dim;
                for (way, place) in way.iter_mut().zip(places.clone()) {
                    let back = match settings.noise {
                        Some(noise) => (points[place] - moved[place]) / (noise * noise),
                        None => 0.0,
                    };
                    *way = 0.5 * share * settings.step_size * (gradient[place] + back);
                }
                let length = way.iter().map(|way| way * way).sum::<f32>().sqrt();
                let shorten = (settings.longest_move / length.max(f32::MIN_POSITIVE)).min(1.0);
                for (x, way) in moved[places].iter_mut().zip(&way) {
                    *x += shorten * way;
                }
            }
        }
        Ok(moved)
    }

    /// ∇u at every point.
    fn gradient(&self, mlp: &PointMlp, points: &[f32], theta: &[f32]) -> Result<Vec<f32>> {
        let offsets = SetOffsets::from_sizes([points.len() / self.space.value_dim])?;
        let batch = PointBatch { elements: points, offsets: &offsets, context: theta };
        let found = self.device.backend().score(mlp, &batch)?;
        let inverse = self.config.base().map_or(0.0, |std_dev| 1.0 / (std_dev * std_dev));
        Ok(found.score.iter().zip(points).map(|(g, x)| g - inverse * x).collect())
    }
}
