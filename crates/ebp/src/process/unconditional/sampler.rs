//! The learned sampler q(x | θ): a generator (`flow.rs`, `process/block.rs`), then dynamics along ∇u.
//!
//! For Langevin steps with constant noise and for Hamiltonian ones the draws carry L with
//! E exp(u(x) − L) = Z (see the dynamics of the conditional process). Where the noise is annealed
//! to zero there is no such density, and L is that of the generator alone.

use candle_core::{Tensor, Var};

use super::config::UnconditionalConfig;
use super::flow::FlowGenerator;
use super::sampler_config::{CloudSamplerConfig, NoiseSchedule};
use crate::nn::{Initialiser, LangevinSettings, Mode, Parameters, TensorBatch};
use crate::point::{Clip, Motion};
use crate::process::block::{BlockGenerator, BlockParts};
use crate::process::energy_based::dynamics::{DynamicsLayers, Surroundings};
use crate::process::energy_based::energy::Energy;
use crate::process::{Dynamics, SamplerConfig, SamplerKind};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

#[derive(Debug)]
pub(super) struct CloudSampler {
    config: CloudSamplerConfig,
    base_std_dev: f32,
    generator: Generator,
    motion: Moving,
}

#[derive(Debug)]
enum Generator {
    Flow(FlowGenerator),
    Block(Box<BlockGenerator>),
}

#[derive(Debug)]
enum Moving {
    Not,
    /// log η_t, `[T]`.
    Langevin(Var),
    Hamiltonian(DynamicsLayers),
}

/// Draws of several sets, `count` each.
pub(super) struct CloudDraws {
    /// `[sets · count, d]`, in the graph.
    pub(super) values: Tensor,
    /// L, `[sets · count]`, in the graph; for Langevin steps the mean over a set stands at each
    /// of its draws.
    pub(super) log_density: Tensor,
    pub(super) offsets: SetOffsets,
}

impl CloudSampler {
    pub(super) fn new(config: &UnconditionalConfig, group: &Parameters) -> Result<Self> {
        let sampler = config.sampler.clone();
        let generator = match sampler.kind {
            SamplerKind::Flow => Generator::Flow(FlowGenerator::new(config, &group.group("flow"))?),
            SamplerKind::Block => {
                let parts = BlockParts {
                    value_dim: config.value_dim,
                    location_dim: 0,
                    latent_dim: config.latent_dim,
                    block_elements: sampler.block_points,
                    widths: &sampler.block_widths,
                    state: sampler.block_state,
                };
                Generator::Block(Box::new(BlockGenerator::new(&parts, &group.group("block"))?))
            }
        };
        let dynamics = group.group("dynamics");
        let motion = match sampler.dynamics {
            Dynamics::None => Moving::Not,
            Dynamics::Langevin => {
                #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
                let start = Initialiser::Constant(sampler.step_size.ln() as f32);
                let shape = [sampler.num_dynamics_steps];
                Moving::Langevin(dynamics.trained("log_step_sizes", &shape, start)?)
            }
            kind => {
                let settings = SamplerConfig {
                    dynamics: kind,
                    num_dynamics_steps: sampler.num_dynamics_steps,
                    step_size: sampler.step_size,
                    clip: sampler.clip,
                    ..SamplerConfig::default()
                };
                match DynamicsLayers::new(&settings, config.value_dim, &dynamics)? {
                    Some(layers) => Moving::Hamiltonian(layers),
                    None => Moving::Not,
                }
            }
        };
        Ok(Self { config: sampler, base_std_dev: config.base_std_dev, generator, motion })
    }

    /// Whether every draw has a density of its own.
    pub(super) fn has_densities(&self) -> bool {
        matches!(self.generator, Generator::Flow(_)) && !matches!(self.motion, Moving::Langevin(_))
    }

    /// About `count` points for each row of `theta` (a block LSTM draws whole blocks),
    /// differentiable with respect to the sampler. `parameters` are those of f/τ, constants.
    pub(super) fn draw(
        &self,
        (energy, parameters): (&Energy, &Tensor),
        theta: &Tensor,
        count: usize,
        mode: Mode,
        stream: Stream,
    ) -> Result<CloudDraws> {
        let (values, log_density) = match &self.generator {
            Generator::Flow(flow) => flow.draw(theta, count, stream.child(0))?,
            Generator::Block(block) => {
                let num_blocks = count.div_ceil(block.block_elements());
                let (values, log_density) =
                    block.draw(theta, None, num_blocks, mode, stream.child(0))?;
                (values.flatten(0, 1)?, log_density.flatten_all()?)
            }
        };
        let num_sets = theta.dim(0)?;
        let offsets = SetOffsets::uniform(num_sets, values.dim(0)? / num_sets)?;
        let (values, log_density) = match &self.motion {
            Moving::Not => (values, log_density),
            Moving::Langevin(log_step_sizes) => {
                let batch = TensorBatch {
                    elements: &values,
                    context: Some(theta),
                    parameters,
                    offsets: &offsets,
                };
                self.langevin(energy, &batch, log_step_sizes, &log_density, stream.child(1))?
            }
            Moving::Hamiltonian(layers) => {
                let surroundings = Surroundings {
                    energy,
                    parameters,
                    locations: None,
                    base_std_dev: Some(self.base_std_dev),
                    theta,
                    offsets: &offsets,
                };
                let moved = layers.run(&surroundings, &values, &log_density, stream.child(1))?;
                (moved.values, moved.log_density)
            }
        };
        Ok(CloudDraws { values, log_density, offsets })
    }

    /// T steps in one operation. L = log q₀ + Σ_t (‖v_t‖² − ‖s ξ_t‖²)/(2 s²), the noise's part
    /// replaced by its mean T d s².
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn langevin(
        &self,
        energy: &Energy,
        batch: &TensorBatch<'_>,
        log_step_sizes: &Var,
        log_density: &Tensor,
        stream: Stream,
    ) -> Result<(Tensor, Tensor)> {
        let steps = self.config.num_dynamics_steps;
        let noise = self.config.noise;
        let is_annealed = self.config.noise_schedule == NoiseSchedule::Annealed;
        let noise_scales: Vec<f32> = (0..steps)
            .map(|t| {
                if is_annealed {
                    noise * (steps - 1 - t) as f64 / (steps.max(2) - 1) as f64
                } else {
                    noise
                }
            })
            .map(|scale| scale as f32)
            .collect();
        let settings = LangevinSettings {
            noise_scales: &noise_scales,
            noise: stream,
            motion: Motion {
                clip: Clip::Elementwise(self.config.clip as f32),
                base_std_dev: Some(self.base_std_dev),
                ..Motion::default()
            },
        };
        let run = energy.module.langevin(batch, &log_step_sizes.exp()?, &settings)?;
        if is_annealed {
            return Ok((run.elements, log_density.clone()));
        }
        let (num_sets, dim) = (batch.offsets.num_sets(), batch.elements.dim(1)?);
        let count = batch.offsets.num_elements() / num_sets;
        let kinetic = (run.kinetic / count as f64)?;
        let gained = kinetic.affine(0.5 / (noise * noise), -0.5 * (steps * dim) as f64)?;
        let gained = gained.unsqueeze(1)?.broadcast_as((num_sets, count))?.flatten_all()?;
        Ok((run.elements, (log_density + gained)?))
    }
}
