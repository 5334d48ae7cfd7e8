//! Cross-attention: every target looks at the context itself, wherever its elements are.
//!
//! ```text
//! r(t) = attention(query E t, keys E tᵢ, values σ(E tᵢ + V xᵢ))
//! ```
//!
//! E maps the location features, V the value. Nothing is found in an empty context: r = 0.

use candle_core::{Device, Module, Tensor};

use super::config::DiscreteConfig;
use super::observed::Observed;
use super::surroundings::Surroundings;
use crate::Result;
use crate::nn::{AttentionSets, Initialiser, Linear, MultiHeadAttention, Parameters, linear};

#[derive(Clone, Debug)]
pub(super) struct CrossAttention {
    config: DiscreteConfig,
    /// Location features of every place, `[places, features]`.
    locations: Tensor,
    place: Linear,
    value: Linear,
    heads: MultiHeadAttention,
}

impl CrossAttention {
    pub(super) fn new(
        config: &DiscreteConfig,
        surroundings: &Surroundings,
        group: &Parameters,
    ) -> Result<Self> {
        let places = config.grid.num_places();
        let features: Vec<f32> =
            (0..places).flat_map(|place| surroundings.location(place)).copied().collect();
        let num_features = features.len() / places;
        let width = config.attention_width;
        Ok(Self {
            config: config.clone(),
            locations: Tensor::from_vec(features, (places, num_features), &Device::Cpu)?,
            place: linear(&group.group("place"), num_features, width, Initialiser::He)?,
            value: linear(&group.group("value"), config.channels, width, Initialiser::He)?,
            heads: MultiHeadAttention::new(&group.group("heads"), width, config.attention_heads)?,
        })
    }

    /// What targets at the places of each set find in the set's context, `[total, width]`.
    pub(super) fn look(&self, contexts: &[&Observed], targets: &[&[usize]]) -> Result<Tensor> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for context in contexts {
            let brightness = context.brightness(&self.config);
            for place in (0..context.is_known.len()).filter(|&place| context.is_known[place]) {
                keys.push(number(place));
                let channels = self.config.channels;
                values.extend_from_slice(&brightness[place * channels..][..channels]);
            }
        }
        let queries: Vec<u32> = targets.iter().copied().flatten().map(|&p| number(p)).collect();
        if keys.is_empty() {
            let shape = (queries.len(), self.config.attention_width);
            return Ok(Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu)?);
        }
        let embedded = self.place.forward(&self.locations)?;
        let rows = |places: Vec<u32>| -> Result<Tensor> {
            Ok(embedded.index_select(&Tensor::new(places, &Device::Cpu)?, 0)?)
        };
        let (queries, count) = (rows(queries)?, keys.len());
        let keys = rows(keys)?;
        let values = Tensor::from_vec(values, (count, self.config.channels), &Device::Cpu)?;
        let values = (&keys + self.value.forward(&values)?)?.silu()?;
        let sizes = contexts.iter().zip(targets).map(|(c, targets)| (targets.len(), c.count));
        self.heads.forward(&queries, &keys, &values, &AttentionSets::from_sizes(sizes))
    }
}
