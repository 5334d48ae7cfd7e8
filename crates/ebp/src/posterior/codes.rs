//! The second level of the latent: a code for every cell of a coarse grid, given θ.
//!
//! ```text
//! θ ~ q(θ | set),   z ~ q(z | θ, set) = N(μ, diag σ²),   (μ, log σ) = ρ₂([θ, h])
//! ```
//!
//! As with θ, the law given the context is the prior of the law given all. θ says which digit or
//! face it is, z where its strokes and shades run.

use crate::Result;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::recipe::EnergyBasedConfig;
use crate::tape::{Gaussian, Group, Tape, Var};

#[derive(Clone, Debug)]
pub(crate) struct LocalPosterior {
    size: usize,
    least_log_std_dev: f32,
    layers: Dense,
}

impl LocalPosterior {
    /// `None` where there is no second level.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        num_pooled: usize,
        group: &mut Group<'_>,
    ) -> Result<Option<Self>> {
        let size = config.local_dim * config.local_side * config.local_side;
        if size == 0 {
            return Ok(None);
        }
        let layers = DenseConfig {
            inputs: config.latent_dim + num_pooled,
            hidden: &config.head_widths,
            outputs: 2 * size,
            activation: config.head_activation,
            weights: Initialiser::FanIn,
            output_scale: 1.0,
        };
        let layers = Dense::new(group, "head", &layers)?;
        Ok(Some(Self { size, least_log_std_dev: config.least_log_std_dev, layers }))
    }

    /// q(z | θ, set), all cells side by side, from θ and what the posterior read of the set.
    pub(crate) fn read(&self, tape: &mut Tape, theta: Var, pooled: Var) -> Result<Gaussian> {
        let both = tape.concat(&[theta, pooled])?;
        let out = self.layers.forward(tape, both)?;
        let mean = tape.columns(out, 0, self.size)?;
        let log_std_dev = tape.columns(out, self.size, self.size)?;
        let log_std_dev = super::clamp_log_std_dev(tape, log_std_dev, self.least_log_std_dev)?;
        Ok(Gaussian { mean, log_std_dev })
    }
}
