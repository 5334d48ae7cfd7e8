//! The learned sampler q(x | t, θ): a hypernetwork that writes the planar flow of every element, or
//! an LSTM that draws blocks of them, and dynamics along the energy's gradient.
//!
//! Blocks are those of the targets in their order. The last one of a set is filled up with its last
//! target, and what is drawn too many is dropped.

use std::sync::Arc;

use candle_core::{Tensor, Var};

use super::config::EnergyBasedConfig;
use super::dynamics::{DynamicsLayers, Surroundings};
use super::energy::Energy;
use super::targets::Targets;
use crate::Result;
use crate::nn::{Mode, Parameters, PointModule, TensorBatch, normals, planar_flow};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape, PointBackend};
use crate::process::SamplerKind;
use crate::process::block::{BlockGenerator, BlockParts};
use crate::rng::Stream;

/// The flow's standard normal is stretched to this share of the domain's width, so that its draws
/// reach all of it before anything is learned: what the first draws miss, the energy raises
/// unopposed.
const BASE_SHARE: f64 = 0.25;

/// How much smaller the hypernetwork's last layer starts: flows begin near the identity.
const OUTPUT_SCALE: f32 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct Sampler {
    value_dim: usize,
    /// Middle of the domain, and the unit of the flow.
    centre: f64,
    unit: f64,
    generator: Generator,
    dynamics: Option<DynamicsLayers>,
}

#[derive(Clone, Debug)]
enum Generator {
    Flow { hypernetwork: PointModule, parameters: Var },
    Block(Box<BlockGenerator>),
}

/// Draws for every target, in the order of the targets.
pub(super) struct Draws {
    /// `[n · draws, d_x]`, in the graph.
    pub(super) values: Tensor,
    /// L of every draw, `[n · draws]`, in the graph: log q without dynamics, and what takes its
    /// place with them (`dynamics.rs`).
    pub(super) log_density: Tensor,
}

impl Sampler {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let sampler = &config.sampler;
        let generator = match sampler.kind {
            SamplerKind::Flow => Self::flow(config, group, backend)?,
            SamplerKind::Block => {
                let parts = BlockParts {
                    value_dim: config.value_dim,
                    location_dim: config.location_features(),
                    latent_dim: config.latent_dim,
                    block_elements: sampler.block_elements,
                    widths: &sampler.block_widths,
                    state: sampler.block_state,
                };
                Generator::Block(Box::new(BlockGenerator::new(&parts, &group.group("block"))?))
            }
        };
        let dynamics = DynamicsLayers::new(sampler, config.value_dim, &group.group("dynamics"))?;
        let (low, high) = (f64::from(config.value_domain.0), f64::from(config.value_domain.1));
        Ok(Self {
            value_dim: config.value_dim,
            centre: 0.5 * (low + high),
            unit: BASE_SHARE * (high - low),
            generator,
            dynamics,
        })
    }

    fn flow(
        config: &EnergyBasedConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Generator> {
        let sampler = &config.sampler;
        let shape = MlpShape::new(MlpConfig {
            // What the hypernetwork reads is the location; it has no value.
            value_dim: config.location_features(),
            location_dim: 0,
            context_dim: config.latent_dim,
            hidden_widths: sampler.hyper_widths.clone(),
            output_dim: sampler.num_layers * (2 * config.value_dim + 1),
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        })?;
        let parameters = group.point_mlp("hypernetwork", &shape)?;
        let last = shape.layers()[shape.layers().len() - 1].weight.clone();
        super::scale_range(&parameters, last, OUTPUT_SCALE)?;
        Ok(Generator::Flow { hypernetwork: PointModule::new(shape, backend), parameters })
    }

    /// `num_draws` values per target, differentiable with respect to the sampler's parameters.
    /// `energy_parameters` are those of f/τ, constants.
    pub(super) fn draw(
        &self,
        (energy, energy_parameters): (&Energy, &Tensor),
        targets: &Targets,
        theta: &Tensor,
        (num_draws, mode): (usize, Mode),
        stream: Stream,
    ) -> Result<Draws> {
        let (values, log_density) = match &self.generator {
            Generator::Flow { hypernetwork, parameters } => {
                let layers = hypernetwork.values(&TensorBatch {
                    elements: &targets.locations,
                    context: Some(theta),
                    parameters: parameters.as_tensor(),
                    offsets: &targets.offsets,
                })?;
                let n = targets.offsets.num_elements();
                let noise = normals((n, num_draws, self.value_dim), stream.child(0))?;
                let flow = planar_flow(&layers, &noise)?;
                (flow.values.flatten(0, 1)?, flow.log_density.flatten_all()?)
            }
            Generator::Block(block) => {
                draw_blocks(block, targets, theta, (num_draws, mode), stream.child(0))?
            }
        };
        // x = centre + unit · y,  log q(x) = log q(y) − d log unit
        let values = values.affine(self.unit, self.centre)?;
        let log_density = (log_density - self.value_dim as f64 * self.unit.ln())?;
        let Some(dynamics) = &self.dynamics else { return Ok(Draws { values, log_density }) };
        let surroundings = Surroundings {
            energy,
            parameters: energy_parameters,
            locations: Some(&targets.repeated_locations(num_draws)?),
            base_std_dev: None,
            theta,
            offsets: &targets.repeated_offsets(num_draws)?,
        };
        let moved = dynamics.run(&surroundings, &values, &log_density, stream.child(1))?;
        Ok(Draws { values: moved.values, log_density: moved.log_density })
    }
}

/// Values `[n · draws, d]` and their log q, `[n · draws]`, target by target.
fn draw_blocks(
    block: &BlockGenerator,
    targets: &Targets,
    theta: &Tensor,
    (num_draws, mode): (usize, Mode),
    stream: Stream,
) -> Result<(Tensor, Tensor)> {
    let (offsets, k) = (&targets.offsets, block.block_elements());
    let sets = offsets.num_sets();
    let num_blocks = (0..sets).map(|set| offsets.size(set).div_ceil(k)).max().unwrap_or(0);
    let slots = num_blocks * k;
    let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    // Which target stands in every slot of every set.
    let mut filled = Vec::with_capacity(sets * slots);
    // Where the draws of every target are found among [sets, draws, slots].
    let mut found = Vec::with_capacity(offsets.num_elements() * num_draws);
    for set in 0..sets {
        let range = offsets.range(set);
        filled.extend((0..slots).map(|slot| number((range.start + slot).min(range.end - 1))));
        for slot in 0..range.len() {
            let draws = 0..num_draws;
            found.extend(draws.map(|draw| number((set * num_draws + draw) * slots + slot)));
        }
    }
    let filled = Tensor::new(filled, theta.device())?;
    let found = Tensor::new(found, theta.device())?;
    let features = targets.locations.dim(1)?;
    let locations = targets.locations.index_select(&filled, 0)?;
    let rows = sets * num_draws;
    let repeated = |tensor: Tensor| -> Result<Tensor> {
        let width = tensor.dim(1)?;
        let wide = tensor.unsqueeze(1)?.expand((sets, num_draws, width))?;
        Ok(wide.contiguous()?.reshape((rows, width))?)
    };
    let locations = repeated(locations.reshape((sets, slots * features))?)?;
    let locations = locations.reshape((rows, num_blocks, k * features))?;
    let theta = repeated(theta.clone())?;
    let (values, log_density) = block.draw(&theta, Some(&locations), num_blocks, mode, stream)?;
    let values = values.flatten(0, 1)?.index_select(&found, 0)?;
    Ok((values, log_density.flatten_all()?.index_select(&found, 0)?))
}
