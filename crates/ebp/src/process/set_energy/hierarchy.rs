//! A first guess with a hidden variable: z ~ N(0, I) for the set, elements independent given z.
//!
//! The density of such a set is an integral over z. As with momenta, the target is extended in place
//! of solving it: with any law r(z | x),
//!
//! ```text
//! E_q[ log q(z) + log q(x | z) − log r(z | x) − u(x) ] ≥ −log Z,
//! ```
//!
//! with equality where q(x) is the model and r the posterior of z. r is a Deep Sets encoder with a
//! diagonal Gaussian, trained with the generator. It is no part of the model: the energy never sees z.

use std::sync::Arc;

use candle_core::{D, Module, Tensor, Var};

use super::config::SetEnergyConfig;
use super::generator::{DrawnSets, ElementLaw};
use crate::nn::{Initialiser, Linear, Parameters, PointModule, TensorBatch, linear, normals};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape, PointBackend, Pooling};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// log √(2π)
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;
/// |log σ| of r stays below this.
const LARGEST_LOG_STD_DEV: f64 = 4.0;

#[derive(Debug)]
pub(super) struct Hierarchy {
    dim: usize,
    hidden_dim: usize,
    input_scale: f64,
    first: Linear,
    law: ElementLaw,
    encoder: PointModule,
    encoder_weights: Var,
    head: Linear,
}

impl Hierarchy {
    pub(super) fn new(
        config: &SetEnergyConfig,
        group: &Parameters,
        backend: &Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let (dim, hidden_dim) = (config.element_dim, config.hidden_dim);
        let width = config.generator_width;
        let shape = MlpShape::new(MlpConfig {
            value_dim: dim,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: vec![width],
            output_dim: width,
            activation: Activation::Silu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        })?;
        let encoder_weights = group.point_mlp("encoder", &shape)?;
        Ok(Self {
            dim,
            hidden_dim,
            input_scale: config.input_scale,
            first: linear(&group.group("first"), hidden_dim, width, Initialiser::He)?,
            law: ElementLaw::new(config, 1, width, &group.group("law"))?,
            encoder: PointModule::new(shape, Arc::clone(backend)),
            encoder_weights,
            head: linear(&group.group("head"), width, 2 * hidden_dim, Initialiser::Xavier)?,
        })
    }

    /// `num_sets` sets of `size` elements, with log q(z) + log q(x | z).
    pub(super) fn draw(&self, num_sets: usize, size: usize, stream: Stream) -> Result<DrawnSets> {
        let hidden = normals((num_sets, self.hidden_dim), stream.child(0))?;
        let noise = normals((num_sets, size, self.dim), stream.child(1))?;
        let (elements, density) = self.law.draw(&self.first.forward(&hidden)?.silu()?, &noise)?;
        let constant = self.hidden_dim as f64 * LOG_ROOT_TAU;
        let of_hidden = ((hidden.sqr()?.sum(1)? * -0.5)? - constant)?;
        Ok(DrawnSets {
            elements: elements.reshape((num_sets * size, self.dim))?,
            log_density: (density.sum(1)? + of_hidden)?,
            hidden: Some(hidden),
        })
    }

    /// log r(z | x) of every set, `[sets]`.
    pub(super) fn log_posterior(
        &self,
        hidden: &Tensor,
        elements: &Tensor,
        offsets: &SetOffsets,
    ) -> Result<Tensor> {
        let elements = &(elements * self.input_scale)?;
        let parameters = self.encoder_weights.as_tensor();
        let batch = TensorBatch { elements, context: None, parameters, offsets };
        let pooled = self.encoder.pool(&batch, Pooling::Mean)?;
        let out = self.head.forward(&pooled.silu()?)?;
        let mean = out.narrow(D::Minus1, 0, self.hidden_dim)?;
        let log_std_dev = out.narrow(D::Minus1, self.hidden_dim, self.hidden_dim)?;
        let log_std_dev = ((log_std_dev / LARGEST_LOG_STD_DEV)?.tanh()? * LARGEST_LOG_STD_DEV)?;
        let white = ((hidden - mean)? / log_std_dev.exp()?)?;
        let terms = ((white.sqr()? * -0.5)? - log_std_dev)?.sum(1)?;
        Ok((terms - self.hidden_dim as f64 * LOG_ROOT_TAU)?)
    }
}
