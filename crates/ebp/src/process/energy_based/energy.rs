//! The energy f(x, t; θ), and its parameters in the forms that training and predictions need.

use std::sync::Arc;

use candle_core::{Tensor, Var};

use super::config::EnergyBasedConfig;
use crate::Result;
use crate::nn::{Mode, Parameters, PointModule, SpectralNorm};
use crate::point::{MlpShape, PointBackend};

/// Power iterations before the first step; afterwards one per step is enough.
const FIRST_ITERATIONS: usize = 30;

#[derive(Debug)]
pub(super) struct Energy {
    pub(super) module: PointModule,
    variable: Var,
    spectral_norm: Option<SpectralNorm>,
    temperature: f64,
}

impl Energy {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let shape = MlpShape::new(config.energy())?;
        let variable = group.point_mlp("elements", &shape)?;
        super::scale_range(&variable, shape.layers()[0].weight.clone(), config.input_scale)?;
        let spectral_norm = if config.spectral_norm {
            let norm = SpectralNorm::for_mlp(&group.group("spectral_norm"), &shape)?;
            norm.iterate(variable.as_tensor(), FIRST_ITERATIONS)?;
            Some(norm)
        } else {
            None
        };
        let module = PointModule::new(shape, backend);
        Ok(Self { module, variable, spectral_norm, temperature: config.temperature })
    }

    /// The parameters of f, in the graph.
    pub(super) fn parameters(&self, mode: Mode) -> Result<Tensor> {
        match &self.spectral_norm {
            Some(norm) => norm.normalise(self.variable.as_tensor(), mode),
            None => Ok(self.variable.as_tensor().clone()),
        }
    }

    /// The parameters of f/τ, whose exponential is the density: the output layer divided by τ.
    pub(super) fn calibrated(&self, parameters: &Tensor) -> Result<Tensor> {
        let layers = self.module.shape().layers();
        let start = layers[layers.len() - 1].weight.start;
        let output = parameters.narrow(0, start, parameters.dim(0)? - start)?;
        Ok(Tensor::cat(&[parameters.narrow(0, 0, start)?, (output / self.temperature)?], 0)?)
    }
}
