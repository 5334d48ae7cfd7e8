//! The learned sampler q(x | t, θ): a hypernetwork that writes the planar flow of every element.

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use super::config::{AdeConfig, EnergyBasedConfig};
use crate::nn::{Parameters, PlanarTensors, PointModule, TensorBatch, planar_flow};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape, PointBackend};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// How much smaller the hypernetwork's last layer starts: flows begin near the identity.
const OUTPUT_SCALE: f32 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct Sampler {
    value_dim: usize,
    module: PointModule,
    parameters: Var,
}

impl Sampler {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        ade: &AdeConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let shape = MlpShape::new(MlpConfig {
            // What the hypernetwork reads is the location; it has no value.
            value_dim: config.location_features(),
            location_dim: 0,
            context_dim: config.latent_dim,
            hidden_widths: ade.hyper_widths.clone(),
            output_dim: ade.num_layers * (2 * config.value_dim + 1),
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        })?;
        let parameters = group.point_mlp("hypernetwork", &shape)?;
        let last = shape.layers()[shape.layers().len() - 1].weight.clone();
        super::scale_range(&parameters, last, OUTPUT_SCALE)?;
        let value_dim = config.value_dim;
        Ok(Self { value_dim, module: PointModule::new(shape, backend), parameters })
    }

    /// `num_draws` values per element, with their log-densities.
    pub(super) fn draw(
        &self,
        locations: &Tensor,
        theta: &Tensor,
        offsets: &SetOffsets,
        num_draws: usize,
        stream: Stream,
    ) -> Result<PlanarTensors> {
        let batch = TensorBatch {
            elements: locations,
            context: Some(theta),
            parameters: self.parameters.as_tensor(),
            offsets,
        };
        let layers = self.module.values(&batch)?;
        let shape = (offsets.num_elements(), num_draws, self.value_dim);
        let mut noise = vec![0.0; shape.0 * shape.1 * shape.2];
        stream.fill_normal(0, 0, &mut noise);
        planar_flow(&layers, &Tensor::from_vec(noise, shape, &Device::Cpu)?)
    }
}
