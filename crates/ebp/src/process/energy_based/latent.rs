//! q(θ | context): Deep Sets to a diagonal Gaussian.
//!
//! ```text
//! h = pool_i φ(xᵢ, tᵢ),   (μ, log σ) = ρ([h, log n]),   θ = μ + σ ξ
//! ```

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};
use candle_nn::Module;

use super::config::EnergyBasedConfig;
use super::features::Rows;
use crate::nn::{Initialiser, Linear, Parameters, PointModule, TensorBatch, linear, normals};
use crate::point::{MlpShape, PointBackend};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Diagonal Gaussians over θ, one per set.
#[derive(Clone, Debug)]
pub(in crate::process) struct Gaussians {
    /// μ, `[sets, k]`.
    pub(in crate::process) mean: Tensor,
    /// log σ, `[sets, k]`.
    pub(in crate::process) log_std_dev: Tensor,
}

impl Gaussians {
    /// N(0, I) for every set.
    pub(in crate::process) fn standard(num_sets: usize, latent_dim: usize) -> Result<Self> {
        let zeros = Tensor::zeros((num_sets, latent_dim), candle_core::DType::F32, &Device::Cpu)?;
        Ok(Self { mean: zeros.clone(), log_std_dev: zeros })
    }

    /// θ = μ + σ ξ, `[sets, k]`, differentiable with respect to μ and σ.
    pub(in crate::process) fn draw(&self, stream: Stream) -> Result<Tensor> {
        let noise = normals(self.mean.dims2()?, stream)?;
        Ok((&self.mean + (self.log_std_dev.exp()? * noise)?)?)
    }

    /// KL(self ‖ prior) in nats, coordinate by coordinate, `[sets, k]`:
    /// log σ₀ − log σ + (σ² + (μ − μ₀)²) / (2 σ₀²) − ½.
    pub(in crate::process) fn kl_terms(&self, prior: &Self) -> Result<Tensor> {
        let log_ratio = (&prior.log_std_dev - &self.log_std_dev)?;
        let variance = (&self.log_std_dev * 2.0)?.exp()?;
        let precision = (&prior.log_std_dev * -2.0)?.exp()?;
        let squares = (variance + (&self.mean - &prior.mean)?.sqr()?)?;
        Ok((log_ratio + (squares * precision)?.affine(0.5, -0.5)?)?)
    }
}

/// The network that makes q(θ | context).
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    config: EnergyBasedConfig,
    module: PointModule,
    parameters: Var,
    /// ρ: linear layers with SiLU between them.
    head: Vec<Linear>,
}

impl Posterior {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let shape = MlpShape::new(config.encoder())?;
        let parameters = group.point_mlp("elements", &shape)?;
        let pooled = config.pooling.poolings().len() * shape.config().output_dim;
        let widths: Vec<usize> = std::iter::once(pooled + 1)
            .chain(config.head_widths.iter().copied())
            .chain([2 * config.latent_dim])
            .collect();
        let group = group.group("head");
        let head = widths
            .windows(2)
            .enumerate()
            .map(|(layer, widths)| {
                linear(&group.group(&layer.to_string()), widths[0], widths[1], Initialiser::FanIn)
            })
            .collect::<Result<_>>()?;
        let module = PointModule::new(shape, backend);
        Ok(Self { config: config.clone(), module, parameters, head })
    }

    /// q(θ | set) of every set; an empty one leaves the prior N(0, I).
    pub(super) fn encode(&self, sets: &[&IndexedSet]) -> Result<Gaussians> {
        let k = self.config.latent_dim;
        let filled: Vec<_> = sets.iter().copied().filter(|set| !set.is_empty()).collect();
        if filled.is_empty() {
            return Gaussians::standard(sets.len(), k);
        }
        let rows = Rows::new(
            filled.iter().copied(),
            self.config.value_frequencies,
            self.config.location_frequencies,
        )?;
        let shape = (rows.offsets.num_elements(), self.module.shape().element_dim());
        let elements = Tensor::from_vec(rows.elements, shape, &Device::Cpu)?;
        let batch = TensorBatch {
            elements: &elements,
            context: None,
            parameters: self.parameters.as_tensor(),
            offsets: &rows.offsets,
        };
        let mut parts = Vec::new();
        for &pooling in self.config.pooling.poolings() {
            parts.push(self.module.pool(&batch, pooling)?);
        }
        let sizes: Vec<f32> = filled.iter().map(|set| (set.len() as f32).ln()).collect();
        parts.push(Tensor::from_vec(sizes, (filled.len(), 1), &Device::Cpu)?);
        let mut out = Tensor::cat(&parts, 1)?;
        for (number, layer) in self.head.iter().enumerate() {
            out = layer.forward(&if number == 0 { out } else { out.silu()? })?;
        }
        let mean = out.narrow(1, 0, k)?;
        // σ between e⁻⁶ and e²: a spike or a plain would stop all learning.
        let log_std_dev = out.narrow(1, k, k)?.clamp(-6.0_f32, 2.0_f32)?;
        if filled.len() == sets.len() {
            return Ok(Gaussians { mean, log_std_dev });
        }
        spread(sets, &Gaussians { mean, log_std_dev }, k)
    }
}

/// Puts the prior where a set was empty.
fn spread(sets: &[&IndexedSet], found: &Gaussians, latent_dim: usize) -> Result<Gaussians> {
    let prior = Gaussians::standard(1, latent_dim)?;
    let (mut mean, mut log_std_dev, mut next) = (Vec::new(), Vec::new(), 0);
    for set in sets {
        let (from, row) = if set.is_empty() { (&prior, 0) } else { (found, next) };
        next += usize::from(!set.is_empty());
        mean.push(from.mean.narrow(0, row, 1)?);
        log_std_dev.push(from.log_std_dev.narrow(0, row, 1)?);
    }
    Ok(Gaussians { mean: Tensor::cat(&mean, 0)?, log_std_dev: Tensor::cat(&log_std_dev, 0)? })
}
