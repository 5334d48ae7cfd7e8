//! f(x, t; θ) of every symbol, channel by channel.
//!
//! ```text
//! log p(x | t, θ) = Σ_c [ f_c(x_c | x_1, …, x_{c−1}, t; θ) − log Σ_k exp f_c(k | …) ]
//! ```

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use super::config::{DiscreteConfig, EnergyForm};
use crate::nn::{
    Parameters, PointModule, TensorBatch, TensorCandidates, categorical_log_mass, softmax_rows,
};
use crate::point::{
    CandidateValues, Candidates, LogWeights, MlpShape, PointBackend, PointBatch, PointMlp,
};
use crate::process::energy_based::{push_features, scale_range};
use crate::{Result, SetOffsets};

#[derive(Debug)]
pub(super) struct Energy {
    config: DiscreteConfig,
    channels: Vec<Channel>,
    /// What describes each symbol to a network over elements, `[levels, features]`.
    symbols: Tensor,
}

#[derive(Debug)]
struct Channel {
    module: PointModule,
    variable: Var,
}

/// Targets as networks read them: `num_features` numbers each, without the known channels.
pub(super) struct Targets<'a> {
    pub(super) rows: &'a [f32],
    pub(super) num_features: usize,
    /// Further numbers that are in the graph, `[n, width]`; only for [`Energy::log_mass`].
    pub(super) attended: Option<&'a Tensor>,
    pub(super) offsets: &'a SetOffsets,
}

impl Energy {
    pub(super) fn new(
        config: &DiscreteConfig,
        num_features: usize,
        group: &Parameters,
        backend: &Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let channels = (0..config.channels)
            .map(|channel| {
                let shape =
                    MlpShape::new(config.network(num_features + config.known_features(channel)))?;
                let variable = group.point_mlp(&channel.to_string(), &shape)?;
                scale_range(&variable, shape.layers()[0].weight.clone(), config.input_scale)?;
                if config.energy == EnergyForm::Levels {
                    start_embedding(&shape, &variable)?;
                }
                Ok(Channel { module: PointModule::new(shape, Arc::clone(backend)), variable })
            })
            .collect::<Result<_>>()?;
        let mut symbols = Vec::new();
        for symbol in 0..u32::try_from(config.levels).unwrap_or(0) {
            let value = f64::from(config.value(symbol));
            push_features(&[value], config.value_frequencies, &mut symbols);
        }
        let width = symbols.len() / config.levels;
        let symbols = Tensor::from_vec(symbols, (config.levels, width), &Device::Cpu)?;
        Ok(Self { config: config.clone(), channels, symbols })
    }

    /// log p of the symbols `[n, channels]` of every target, `[n]`, in the graph of θ.
    pub(super) fn log_mass(
        &self,
        targets: &Targets<'_>,
        symbols: &[u32],
        theta: &Tensor,
    ) -> Result<Tensor> {
        let n = targets.offsets.num_elements();
        let mut total: Option<Tensor> = None;
        for (number, channel) in self.channels.iter().enumerate() {
            let told = |index: usize, c: usize| {
                self.config.value(symbols[index * self.config.channels + c])
            };
            let rows = self.tensor_rows(targets, number, told)?;
            let chosen: Vec<u32> =
                symbols.iter().skip(number).step_by(self.config.channels).copied().collect();
            let found = match self.config.energy {
                EnergyForm::Levels => {
                    let values = channel.module.values(&TensorBatch {
                        elements: &rows,
                        context: Some(theta),
                        parameters: channel.variable.as_tensor(),
                        offsets: targets.offsets,
                    })?;
                    categorical_log_mass(&values, &chosen)?
                }
                EnergyForm::Element => {
                    self.element_log_mass(channel, &rows, &chosen, theta, targets.offsets)?
                }
            };
            total = Some(match total {
                Some(sum) => (sum + found)?,
                None => found,
            });
        }
        match total {
            Some(total) => Ok(total),
            // `check` refuses processes without channels.
            None => Ok(Tensor::zeros(n, candle_core::DType::F32, &Device::Cpu)?),
        }
    }

    /// f(x) − log Σ_k exp f(k) with a network over (x, t).
    fn element_log_mass(
        &self,
        channel: &Channel,
        rows: &Tensor,
        chosen: &[u32],
        theta: &Tensor,
        offsets: &SetOffsets,
    ) -> Result<Tensor> {
        let chosen = Tensor::new(chosen, &Device::Cpu)?;
        let own = self.symbols.index_select(&chosen, 0)?;
        let values = channel.module.values(&TensorBatch {
            elements: &Tensor::cat(&[&own, rows], 1)?,
            context: Some(theta),
            parameters: channel.variable.as_tensor(),
            offsets,
        })?;
        let partition = channel.module.log_partition(&TensorCandidates {
            values: &self.symbols,
            context: Some(theta),
            parameters: channel.variable.as_tensor(),
            locations: Some(rows),
            log_weights: None,
            offsets,
        })?;
        Ok((values.squeeze(1)? - partition.log_partition)?)
    }

    /// The probabilities of all symbols of a channel, `[n, levels]`, where the channels before it
    /// have the values that `known(target, channel)` says.
    pub(super) fn shares(
        &self,
        number: usize,
        targets: &Targets<'_>,
        theta: &[f32],
        known: impl Fn(usize, usize) -> f32,
    ) -> Result<Vec<f32>> {
        let channel = &self.channels[number];
        let rows = self.channel_rows(targets, number, known);
        let flat = channel.variable.as_tensor().to_vec1::<f32>()?;
        let mlp = PointMlp::new(channel.module.shape().clone(), flat)?;
        let backend = channel.module.backend();
        let mut values = match self.config.energy {
            EnergyForm::Levels => {
                let batch =
                    PointBatch { elements: &rows, offsets: targets.offsets, context: theta };
                backend.values(&mlp, &batch)?
            }
            EnergyForm::Element => {
                let symbols = self.symbols.flatten_all()?.to_vec1::<f32>()?;
                let candidates = Candidates {
                    values: CandidateValues::Shared(&symbols),
                    num_candidates: self.config.levels,
                    locations: &rows,
                    offsets: targets.offsets,
                    context: theta,
                    log_weights: LogWeights::Zero,
                };
                backend.log_partition(&mlp, &candidates)?.values
            }
        };
        softmax_rows(&mut values, self.config.levels);
        Ok(values)
    }

    /// The same as [`channel_rows`](Self::channel_rows) in the graph, with what was attended to.
    fn tensor_rows(
        &self,
        targets: &Targets<'_>,
        channel: usize,
        known: impl Fn(usize, usize) -> f32,
    ) -> Result<Tensor> {
        let n = targets.offsets.num_elements();
        let tensor = |rows: Vec<f32>| {
            let width = rows.len() / n;
            Tensor::from_vec(rows, (n, width), &Device::Cpu)
        };
        let Some(attended) = targets.attended else {
            return Ok(tensor(self.channel_rows(targets, channel, known))?);
        };
        let own = tensor(targets.rows.to_vec())?;
        if channel == 0 {
            return Ok(Tensor::cat(&[&own, attended], 1)?);
        }
        let nothing = Targets { rows: &[], num_features: 0, ..*targets };
        let known = tensor(self.channel_rows(&nothing, channel, known))?;
        Ok(Tensor::cat(&[&own, attended, &known], 1)?)
    }

    /// The targets' rows, each with the features of the channels before `channel`.
    fn channel_rows(
        &self,
        targets: &Targets<'_>,
        channel: usize,
        known: impl Fn(usize, usize) -> f32,
    ) -> Vec<f32> {
        if channel == 0 {
            return targets.rows.to_vec();
        }
        let width = targets.num_features + self.config.known_features(channel);
        let mut rows = Vec::with_capacity(targets.offsets.num_elements() * width);
        for index in 0..targets.offsets.num_elements() {
            let own = index * targets.num_features..(index + 1) * targets.num_features;
            rows.extend_from_slice(&targets.rows[own]);
            let values: Vec<f64> = (0..channel).map(|c| f64::from(known(index, c))).collect();
            push_features(&values, self.config.value_frequencies, &mut rows);
        }
        rows
    }
}

/// e(x): cosines of rising frequency over the levels, and no bias.
fn start_embedding(shape: &MlpShape, variable: &Var) -> Result<()> {
    let layer = &shape.layers()[shape.layers().len() - 1];
    let mut flat = variable.as_tensor().to_vec1::<f32>()?;
    let scale = (2.0 / layer.inputs as f32).sqrt();
    let weights = flat[layer.weight.clone()].chunks_exact_mut(layer.inputs);
    for (level, row) in weights.enumerate() {
        let angle = std::f32::consts::PI * (level as f32 + 0.5) / layer.outputs as f32;
        for (frequency, weight) in row.iter_mut().enumerate() {
            *weight = scale * ((frequency + 1) as f32 * angle).cos();
        }
    }
    let length = flat.len();
    variable.set(&Tensor::from_vec(flat, length, &Device::Cpu)?)?;
    Ok(())
}
