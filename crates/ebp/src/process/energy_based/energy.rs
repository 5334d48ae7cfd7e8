//! The energy f(x, t; θ), and its parameters in the forms that training and predictions need.

use std::sync::Arc;

use candle_core::{Tensor, Var};

use super::config::EnergyBasedConfig;
use crate::Result;
use crate::nn::{Mode, Parameters, PointModule, SpectralNorm};
use crate::point::{MlpConfig, MlpShape, PointBackend};
use crate::rng::Stream;

/// Power iterations before the first step; afterwards one per step is enough.
const FIRST_ITERATIONS: usize = 30;

#[derive(Debug)]
pub(in crate::process) struct Energy {
    pub(in crate::process) module: PointModule,
    variable: Var,
    spectral_norm: Option<SpectralNorm>,
    temperature: f64,
}

/// What an energy is made of.
pub(in crate::process) struct EnergyParts {
    pub(in crate::process) mlp: MlpConfig,
    /// How much larger the first layer's weights of the element start.
    pub(in crate::process) input_scale: f32,
    /// The standard deviation of the first layer's biases at the start, in units of that of its
    /// weights of the element: 0 puts all kinks through the origin.
    pub(in crate::process) bias_scale: f32,
    pub(in crate::process) has_spectral_norm: bool,
    /// τ.
    pub(in crate::process) temperature: f64,
}

impl Energy {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let parts = EnergyParts {
            mlp: config.energy(),
            input_scale: config.input_scale,
            bias_scale: 0.0,
            has_spectral_norm: config.spectral_norm,
            temperature: config.temperature,
        };
        Self::from_parts(parts, group, backend)
    }

    pub(in crate::process) fn from_parts(
        parts: EnergyParts,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let shape = MlpShape::new(parts.mlp)?;
        let variable = group.point_mlp("elements", &shape)?;
        super::scale_range(&variable, shape.layers()[0].weight.clone(), parts.input_scale)?;
        if parts.bias_scale > 0.0 {
            spread_biases(&variable, &shape, parts.bias_scale, group.stream("first biases"))?;
        }
        let spectral_norm = if parts.has_spectral_norm {
            let norm = SpectralNorm::for_mlp(&group.group("spectral_norm"), &shape)?;
            norm.iterate(variable.as_tensor(), FIRST_ITERATIONS)?;
            Some(norm)
        } else {
            None
        };
        let module = PointModule::new(shape, backend);
        Ok(Self { module, variable, spectral_norm, temperature: parts.temperature })
    }

    /// The parameters of f, in the graph.
    pub(in crate::process) fn parameters(&self, mode: Mode) -> Result<Tensor> {
        match &self.spectral_norm {
            Some(norm) => norm.normalise(self.variable.as_tensor(), mode),
            None => Ok(self.variable.as_tensor().clone()),
        }
    }

    /// The parameters of f/τ, whose exponential is the density: the output layer divided by τ.
    pub(in crate::process) fn calibrated(&self, parameters: &Tensor) -> Result<Tensor> {
        if (self.temperature - 1.0).abs() < f64::EPSILON {
            return Ok(parameters.clone());
        }
        let layers = self.module.shape().layers();
        let start = layers[layers.len() - 1].weight.start;
        let output = parameters.narrow(0, start, parameters.dim(0)? - start)?;
        Ok(Tensor::cat(&[parameters.narrow(0, 0, start)?, (output / self.temperature)?], 0)?)
    }
}

/// First-layer biases as large as the weights beside them times `scale`, so that the units' kinks
/// lie all over the domain.
fn spread_biases(variable: &Var, shape: &MlpShape, scale: f32, stream: Stream) -> Result<()> {
    let layer = &shape.layers()[0];
    let mut flat = variable.as_tensor().to_vec1::<f32>()?;
    let square: f32 = flat[layer.weight.clone()].iter().map(|w| w * w).sum();
    let std_dev = (square / layer.weight.len() as f32).sqrt();
    let biases = &mut flat[layer.bias.clone()];
    stream.fill_normal(0, 0, biases);
    for bias in biases {
        *bias *= scale * std_dev;
    }
    let length = flat.len();
    variable.set(&Tensor::from_vec(flat, length, variable.device())?)?;
    Ok(())
}
