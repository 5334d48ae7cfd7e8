//! Settings of the learned sampler of clouds.

use serde::{Deserialize, Serialize};

use crate::process::{Dynamics, SamplerKind};
use crate::{Error, Result};

/// How the noise of Langevin steps changes from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSchedule {
    /// It stays (the paper).
    Constant,
    /// It falls to zero along a line.
    Annealed,
}

/// Settings of the learned sampler: a flow or a block LSTM, then dynamics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudSamplerConfig {
    /// What draws first.
    pub kind: SamplerKind,
    /// Planar layers of the flow.
    pub num_layers: usize,
    /// Hidden widths of the network that writes the flow from θ.
    pub hyper_widths: Vec<usize>,
    /// Points of a block.
    pub block_points: usize,
    /// Widths of the network between LSTM and a block's points.
    pub block_widths: Vec<usize>,
    /// Width of the LSTM.
    pub block_state: usize,
    /// What follows.
    pub dynamics: Dynamics,
    /// T, how many steps of it.
    pub num_dynamics_steps: usize,
    /// η of every step at the start of training; each is learned.
    pub step_size: f64,
    /// s, the standard deviation of the Langevin noise.
    pub noise: f64,
    /// How the noise changes from step to step.
    pub noise_schedule: NoiseSchedule,
    /// ∇ₓ of the log density is clamped to this, coordinate by coordinate.
    pub clip: f64,
    /// Draws per set in a training step; a block LSTM draws whole blocks.
    pub num_draws: usize,
    /// Updates of the sampler per update of the energy.
    pub updates_per_step: usize,
    /// The sampler's learning rate.
    pub learning_rate: f64,
    /// The sampler's β₁.
    pub beta1: f64,
    /// The sampler's learning rate never falls below this share of its start.
    pub learning_rate_floor: f64,
}

impl Default for CloudSamplerConfig {
    fn default() -> Self {
        Self {
            kind: SamplerKind::Flow,
            num_layers: 24,
            hyper_widths: vec![256, 256],
            block_points: 512,
            block_widths: vec![64, 128, 512],
            block_state: 256,
            dynamics: Dynamics::Langevin,
            num_dynamics_steps: 20,
            step_size: 1e-3,
            noise: 0.0316,
            noise_schedule: NoiseSchedule::Constant,
            clip: 100.0,
            num_draws: 512,
            updates_per_step: 1,
            learning_rate: 5e-4,
            beta1: 0.5,
            learning_rate_floor: 0.3,
        }
    }
}

impl CloudSamplerConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, found) in [
            ("sampler.num_layers", self.num_layers),
            ("sampler.block_points", self.block_points),
            ("sampler.block_widths", self.block_widths.len()),
            ("sampler.block_state", self.block_state),
            ("sampler.num_dynamics_steps", self.num_dynamics_steps),
            ("sampler.updates_per_step", self.updates_per_step),
            ("sampler.num_draws", self.num_draws),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        for (field, found) in [
            ("sampler.step_size", self.step_size),
            ("sampler.noise", self.noise),
            ("sampler.clip", self.clip),
            ("sampler.learning_rate", self.learning_rate),
        ] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        if !(0.0..=1.0).contains(&self.learning_rate_floor) {
            let found = self.learning_rate_floor;
            return Err(Error::invalid("sampler.learning_rate_floor", "in [0, 1]", found));
        }
        Ok(())
    }
}
