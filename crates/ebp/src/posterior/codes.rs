//! The second level of the latent: a code for every cell of a coarse grid, given θ.
//!
//! ```text
//! θ ~ q(θ | set),   z ~ q(z | θ, set) = N(μ, diag σ²),   (μ, log σ) = ρ₂([θ, h])
//! ```
//!
//! As with θ, the law given the context is the prior of the law given all. θ says which digit or
//! face it is, z where its strokes and shades run. Where the posterior tells cells apart, ρ₂ is one
//! network for all of them, and h is what is known of the cell.

use std::sync::Arc;

use super::{Posterior, Reading};
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::recipe::EnergyBasedConfig;
use crate::tape::{Gaussian, Group, Tape, Var};
use crate::{Result, SetOffsets};

#[derive(Clone, Debug)]
pub(crate) struct LocalPosterior {
    num_cells: usize,
    local_dim: usize,
    least_log_std_dev: f32,
    layers: Dense,
}

impl LocalPosterior {
    /// `None` where there is no second level.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        posterior: &Posterior,
        group: &mut Group<'_>,
    ) -> Result<Option<Self>> {
        let ((across, down), of_cell) = posterior.cells(config);
        let (num_cells, local_dim) = (across * down, config.local_dim);
        if local_dim == 0 {
            return Ok(None);
        }
        let (known, cells) = match of_cell {
            Some(width) => (width, 1),
            None => (posterior.num_pooled(), num_cells),
        };
        let layers = DenseConfig {
            inputs: config.latent_dim + known,
            hidden: &config.head_widths,
            outputs: 2 * cells * local_dim,
            activation: config.head_activation,
            weights: Initialiser::FanIn,
            output_scale: 1.0,
        };
        let layers = Dense::new(group, "head", &layers)?;
        let least_log_std_dev = config.least_log_std_dev;
        Ok(Some(Self { num_cells, local_dim, least_log_std_dev, layers }))
    }

    /// q(z | θ, set), all cells side by side, from θ and what the posterior read of the set.
    pub(crate) fn read(&self, tape: &mut Tape, theta: Var, reading: &Reading) -> Result<Gaussian> {
        let sets = tape.shape(theta).0;
        let (both, width) = match reading.cells {
            Some(cells) => {
                let offsets = Arc::new(SetOffsets::uniform(sets, self.num_cells)?);
                let theta = tape.spread(theta, &offsets)?;
                (tape.concat(&[theta, cells])?, self.local_dim)
            }
            None => (tape.concat(&[theta, reading.pooled])?, self.num_cells * self.local_dim),
        };
        let out = self.layers.forward(tape, both)?;
        let mean = tape.columns(out, 0, width)?;
        let log_std_dev = tape.columns(out, width, width)?;
        let log_std_dev = super::clamp_log_std_dev(tape, log_std_dev, self.least_log_std_dev)?;
        let shape = (sets, self.num_cells * self.local_dim);
        let (mean, log_std_dev) = (tape.reshape(mean, shape)?, tape.reshape(log_std_dev, shape)?);
        Ok(Gaussian { mean, log_std_dev })
    }
}

impl Reading {
    /// What was found in one set, for `count` draws.
    pub(crate) fn tiled(&self, tape: &mut Tape, count: usize) -> Result<Self> {
        let cells = match self.cells {
            Some(cells) => Some(tape.tile(cells, count)?),
            None => None,
        };
        let law = Gaussian {
            mean: tape.tile(self.law.mean, count)?,
            log_std_dev: tape.tile(self.law.log_std_dev, count)?,
        };
        let features = tape.tile(self.features, count)?;
        Ok(Self { features, pooled: tape.tile(self.pooled, count)?, cells, law })
    }
}
