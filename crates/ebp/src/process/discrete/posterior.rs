//! q(θ | context): elements to a vector, the vector to a diagonal Gaussian.
//!
//! ```text
//! h = [Σᵢ (a[tᵢ] + xᵢ b[tᵢ]) √(places / n)   or   pool_i φ(xᵢ, tᵢ),  log n],    (μ, log σ) = ρ(h)
//! ```

use std::sync::Arc;

use candle_core::{Device, Module, Tensor, Var};
use rayon::prelude::*;

use super::config::{DiscreteConfig, PosteriorForm};
use super::observed::Observed;
use crate::nn::{Initialiser, Linear, Parameters, PointModule, TensorBatch, linear};
use crate::point::{MlpShape, PointBackend};
use crate::process::energy_based::{Gaussians, push_features};
use crate::{Result, SetOffsets};

/// The range of log σ: a spike or a plain would stop all learning.
pub(super) const LOG_STD_DEV: (f32, f32) = (-6.0, 2.0);

#[derive(Clone, Debug)]
pub(super) struct Posterior {
    config: DiscreteConfig,
    elements: Elements,
    /// ρ: linear layers with SiLU between them.
    head: Vec<Linear>,
}

#[derive(Clone, Debug)]
enum Elements {
    /// [a, b] of every place, and a bias.
    Table(Linear),
    Network {
        module: PointModule,
        parameters: Var,
    },
}

/// What was read from sets.
pub(super) struct Reading {
    /// h, `[sets, num_pooled]`; 0 for sets without elements.
    pub(super) pooled: Tensor,
    /// q(θ | set).
    pub(super) law: Gaussians,
}

impl Posterior {
    pub(super) fn new(
        config: &DiscreteConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let elements = match config.posterior {
            PosteriorForm::Table => {
                let inputs = config.grid.num_places() * (1 + config.channels);
                let width = config.pooled_width();
                let table = linear(&group.group("table"), inputs, width, Initialiser::He)?;
                Elements::Table(table)
            }
            PosteriorForm::DeepSets => {
                let shape = MlpShape::new(config.encoder())?;
                let parameters = group.point_mlp("elements", &shape)?;
                Elements::Network { module: PointModule::new(shape, backend), parameters }
            }
        };
        let widths: Vec<usize> = std::iter::once(config.num_pooled())
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
        Ok(Self { config: config.clone(), elements, head })
    }

    /// h and q(θ | set) of every set; an empty one leaves the prior N(0, I).
    pub(super) fn read(&self, sets: &[&Observed]) -> Result<Reading> {
        let k = self.config.latent_dim;
        let pooled = match &self.elements {
            Elements::Table(table) => self.sum(table, sets)?.silu()?,
            Elements::Network { module, parameters } => self.pool(module, parameters, sets)?,
        };
        let sizes: Vec<f32> = sets.iter().map(|set| (set.count.max(1) as f32).ln() - 4.0).collect();
        let sizes = Tensor::from_vec(sizes, (sets.len(), 1), &Device::Cpu)?;
        let pooled = Tensor::cat(&[&pooled, &sizes], 1)?;
        // An empty context says nothing: h = 0, μ = 0, σ = 1.
        let told = has_elements(sets)?;
        let out = dense(&self.head, pooled.clone())?.broadcast_mul(&told)?;
        let (low, high) = LOG_STD_DEV;
        let law = Gaussians {
            mean: out.narrow(1, 0, k)?,
            log_std_dev: out.narrow(1, k, k)?.clamp(low, high)?,
        };
        Ok(Reading { pooled: pooled.broadcast_mul(&told)?, law })
    }

    fn sum(&self, table: &Linear, sets: &[&Observed]) -> Result<Tensor> {
        let (places, channels) = (self.config.grid.num_places(), self.config.channels);
        let width = places * (1 + channels);
        let mut rows = vec![0.0; sets.len() * width];
        rows.par_chunks_mut(width).zip(sets).for_each(|(row, set)| {
            let scale = (places as f32 / set.count.max(1) as f32).sqrt();
            let brightness = set.brightness(&self.config);
            for (place, _) in set.is_known.iter().enumerate().filter(|(_, known)| **known) {
                let cell = &mut row[place * (1 + channels)..][..=channels];
                cell[0] = scale;
                for (to, x) in cell[1..].iter_mut().zip(&brightness[place * channels..]) {
                    *to = scale * x;
                }
            }
        });
        Ok(table.forward(&Tensor::from_vec(rows, (sets.len(), width), &Device::Cpu)?)?)
    }

    fn pool(&self, module: &PointModule, parameters: &Var, sets: &[&Observed]) -> Result<Tensor> {
        let config = &self.config;
        let mut elements = Vec::new();
        let mut sizes = Vec::with_capacity(sets.len());
        for set in sets {
            sizes.push(set.count.max(1));
            let known = set.is_known.iter().enumerate().filter(|(_, known)| **known);
            let first = known.clone().next().is_none().then_some((0, &false));
            for (place, _) in known.chain(first) {
                // A set without elements gets one that is not used.
                let symbols = &set.symbols[place * config.channels..][..config.channels];
                elements.extend(symbols.iter().map(|&symbol| config.value(symbol)));
                let location = config.grid.location(place);
                push_features(&location, config.location_frequencies, &mut elements);
            }
        }
        let offsets = SetOffsets::from_sizes(sizes)?;
        let shape = (offsets.num_elements(), module.shape().element_dim());
        let elements = Tensor::from_vec(elements, shape, &Device::Cpu)?;
        let batch = TensorBatch {
            elements: &elements,
            context: None,
            parameters: parameters.as_tensor(),
            offsets: &offsets,
        };
        let parts = config.pooling.poolings().iter().map(|&pooling| module.pool(&batch, pooling));
        Ok(Tensor::cat(&parts.collect::<Result<Vec<_>>>()?, 1)?)
    }
}

/// 1 for sets with elements and 0 for those without, `[sets, 1]`.
pub(super) fn has_elements(sets: &[&Observed]) -> Result<Tensor> {
    let told: Vec<f32> = sets.iter().map(|set| f32::from(u8::from(set.count > 0))).collect();
    Ok(Tensor::from_vec(told, (sets.len(), 1), &Device::Cpu)?)
}

/// Linear layers with SiLU between them.
pub(super) fn dense(layers: &[Linear], input: Tensor) -> Result<Tensor> {
    let mut out = input;
    for (number, layer) in layers.iter().enumerate() {
        out = layer.forward(&if number == 0 { out } else { out.silu()? })?;
    }
    Ok(out)
}
