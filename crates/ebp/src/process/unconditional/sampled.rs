//! Draws of the learned sampler as places with weights, which the energy corrects.

use candle_core::{Device, Tensor};

use super::UnconditionalProcess;
use super::grid::Weighted;
use super::points::PointStart;
use crate::nn::Mode;
use crate::point::{PointBatch, PointMlp};
use crate::rng::Stream;
use crate::{Error, Result};

impl UnconditionalProcess {
    /// Whether a sampler was trained beside the energy.
    pub fn has_sampler(&self) -> bool {
        self.sampler.is_some()
    }

    /// `count` draws for each θ of `theta`, with log exp(u)/q; all weights are equal where they
    /// are taken as they are.
    pub(super) fn sampler_weighted(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        count: usize,
        start: PointStart,
        stream: Stream,
    ) -> Result<Vec<Weighted>> {
        let Some((sampler, _)) = &self.sampler else {
            return Err(Error::invalid("start", "the grid, as no sampler was trained", "sampler"));
        };
        if start != PointStart::Sampler && !sampler.has_densities() {
            let expected = "sampler or grid, as this sampler's draws have no density each";
            return Err(Error::invalid("start", expected, format!("{start:?}")));
        }
        let (k, dim) = (self.config.latent_dim, self.config.value_dim);
        let parameters =
            Tensor::from_slice(mlp.parameters(), mlp.parameters().len(), &Device::Cpu)?;
        let codes = Tensor::from_slice(theta, (theta.len() / k, k), &Device::Cpu)?;
        let energy = (self.networks.energy()?, &parameters);
        let draws = sampler.draw(energy, &codes, count, Mode::Evaluate, stream)?;
        let values = draws.values.detach().flatten_all()?.to_vec1::<f32>()?;
        let log_densities = draws.log_density.detach().to_vec1::<f32>()?;
        let batch = PointBatch { elements: &values, offsets: &draws.offsets, context: theta };
        let f = self.networks.backend().values(mlp, &batch)?;
        let half = self.config.half_width;
        let weigh = |row: usize| {
            let x = &values[row * dim..(row + 1) * dim];
            if start == PointStart::Sampler {
                return 0.0;
            }
            let is_inside = x.iter().all(|x| x.abs() <= half);
            let log_weight = f64::from(f[row] + self.base(x) - log_densities[row]);
            if is_inside { log_weight } else { f64::NEG_INFINITY }
        };
        Ok((0..theta.len() / k)
            .map(|set| {
                // Whole blocks may be more than was asked for.
                let first = draws.offsets.range(set).start;
                Weighted {
                    values: values[first * dim..(first + count) * dim].to_vec(),
                    log_weights: (first..first + count).map(weigh).collect(),
                }
            })
            .collect())
    }
}
