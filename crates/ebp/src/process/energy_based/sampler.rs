//! The learned sampler q(x | t, θ): a hypernetwork that writes the planar flow of every element,
//! and dynamics along the energy's gradient.

use std::sync::Arc;

use candle_core::{Tensor, Var};

use super::config::EnergyBasedConfig;
use super::dynamics::{DynamicsLayers, Surroundings};
use super::energy::Energy;
use super::targets::Targets;
use crate::Result;
use crate::nn::{Parameters, PointModule, TensorBatch, normals, planar_flow};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape, PointBackend};
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
    module: PointModule,
    parameters: Var,
    dynamics: Option<DynamicsLayers>,
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
        let dynamics = DynamicsLayers::new(sampler, config.value_dim, &group.group("dynamics"))?;
        let (low, high) = (f64::from(config.value_domain.0), f64::from(config.value_domain.1));
        Ok(Self {
            value_dim: config.value_dim,
            centre: 0.5 * (low + high),
            unit: BASE_SHARE * (high - low),
            module: PointModule::new(shape, backend),
            parameters,
            dynamics,
        })
    }

    /// `num_draws` values per target, differentiable with respect to the sampler's parameters.
    /// `energy_parameters` are those of f/τ, constants.
    pub(super) fn draw(
        &self,
        (energy, energy_parameters): (&Energy, &Tensor),
        targets: &Targets,
        theta: &Tensor,
        num_draws: usize,
        stream: Stream,
    ) -> Result<Draws> {
        let layers = self.module.values(&TensorBatch {
            elements: &targets.locations,
            context: Some(theta),
            parameters: self.parameters.as_tensor(),
            offsets: &targets.offsets,
        })?;
        let shape = (targets.offsets.num_elements(), num_draws, self.value_dim);
        let flow = planar_flow(&layers, &normals(shape, stream.child(0))?)?;
        // x = centre + unit · y,  log q(x) = log q(y) − d log unit
        let values = flow.values.reshape((shape.0 * num_draws, self.value_dim))?;
        let values = values.affine(self.unit, self.centre)?;
        let log_unit = self.value_dim as f64 * self.unit.ln();
        let log_density = (flow.log_density.flatten_all()? - log_unit)?;
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
