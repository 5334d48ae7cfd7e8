//! The second level of the latent: a code for every cell of a coarse grid, given θ.
//!
//! ```text
//! θ ~ q(θ | set),   z ~ q(z | θ, set) = N(μ, diag σ²),   (μ, log σ) = ρ₂([θ, h])
//! ```
//!
//! As with θ, the law given the context is the prior of the law given all. θ says which digit or
//! face it is, z where its strokes and shades run.

use candle_core::Tensor;

use super::config::DiscreteConfig;
use super::posterior::{LOG_STD_DEV, dense};
use crate::Result;
use crate::nn::{Initialiser, Linear, Parameters, linear};
use crate::process::energy_based::Gaussians;

#[derive(Clone, Debug)]
pub(super) struct LocalPosterior {
    /// Numbers of z.
    size: usize,
    layers: Vec<Linear>,
}

impl LocalPosterior {
    /// `num_pooled` is the size of h; `None` if there is one level only.
    pub(super) fn new(
        config: &DiscreteConfig,
        num_pooled: usize,
        group: &Parameters,
    ) -> Result<Option<Self>> {
        let size = config.num_local();
        if size == 0 {
            return Ok(None);
        }
        let mut layers = Vec::new();
        let mut inputs = config.latent_dim + num_pooled;
        for (number, &width) in config.head_widths.iter().chain([&(2 * size)]).enumerate() {
            let group = group.group(&number.to_string());
            layers.push(linear(&group, inputs, width, Initialiser::FanIn)?);
            inputs = width;
        }
        Ok(Some(Self { size, layers }))
    }

    /// q(z | θ, set), where `pooled` is what the first level read of the set.
    pub(super) fn encode(&self, theta: &Tensor, pooled: &Tensor) -> Result<Gaussians> {
        let out = dense(&self.layers, Tensor::cat(&[theta, pooled], 1)?)?;
        let (low, high) = LOG_STD_DEV;
        Ok(Gaussians {
            mean: out.narrow(1, 0, self.size)?,
            log_std_dev: out.narrow(1, self.size, self.size)?.clamp(low, high)?,
        })
    }
}
