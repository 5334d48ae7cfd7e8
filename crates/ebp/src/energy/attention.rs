//! Cross-attention: every target looks at the context itself, wherever its elements are.
//!
//! ```text
//! r(t) = attention(query E t, keys E tᵢ, values σ(E tᵢ + V xᵢ))
//! ```
//!
//! E maps the location features, V the value. Nothing is found in an empty context: r = 0.

use std::sync::Arc;

use super::surroundings::{Observed, Surroundings};
use crate::Result;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::point::Activation;
use crate::recipe::EnergyBasedConfig;
use crate::tape::{Array, AttentionSets, Choice, Device, Group, Tape, Var};

#[derive(Clone, Debug)]
pub(crate) struct CrossAttention {
    width: usize,
    num_heads: usize,
    channels: usize,
    /// Location features of all places, `[places, width]`.
    locations: Array,
    num_places: usize,
    place: Dense,
    value: Dense,
    query: Dense,
    key: Dense,
    shown: Dense,
    output: Dense,
}

/// Who looks at whom: places of targets and of known elements.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    queries: Arc<Choice>,
    /// `None` if no context has elements.
    keys: Option<(Arc<Choice>, Array)>,
    sets: Arc<AttentionSets>,
}

impl CrossAttention {
    /// `None` where targets do not look.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        surroundings: &Surroundings,
        device: &Device,
        group: &mut Group<'_>,
    ) -> Result<Option<Self>> {
        let (width, num_heads) = (config.attention_width, config.attention_heads);
        if num_heads == 0 {
            return Ok(None);
        }
        let (features, num_features) = surroundings.locations();
        let mut layer = |name: &str, inputs: usize, weights: Initialiser| {
            let layer = DenseConfig {
                inputs,
                hidden: &[],
                outputs: width,
                activation: Activation::Silu,
                weights,
                output_scale: 1.0,
            };
            Dense::new(group, name, &layer)
        };
        Ok(Some(Self {
            width,
            num_heads,
            channels: surroundings.channels,
            locations: device.upload(features.to_vec())?,
            num_places: features.len() / num_features,
            place: layer("place", num_features, Initialiser::He)?,
            value: layer("value", surroundings.channels, Initialiser::He)?,
            query: layer("query", width, Initialiser::Xavier)?,
            key: layer("key", width, Initialiser::Xavier)?,
            shown: layer("shown", width, Initialiser::Xavier)?,
            output: layer("output", width, Initialiser::Xavier)?,
        }))
    }

    /// Numbers that a target finds.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn looks(
        &self,
        contexts: &[&Observed],
        targets: &[&[usize]],
        device: &Device,
    ) -> Result<Looks> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (mut keys, mut values, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for (context, targets) in contexts.iter().zip(targets) {
            let before = keys.len();
            for place in (0..context.is_known.len()).filter(|&place| context.is_known[place]) {
                keys.push(number(place));
                let own = &context.brightness[place * self.channels..][..self.channels];
                values.extend_from_slice(own);
            }
            sizes.push((targets.len(), keys.len() - before));
        }
        let queries = targets.iter().copied().flatten().map(|&p| number(p)).collect();
        let keys = if keys.is_empty() {
            None
        } else {
            Some((device.bring(Choice::new(self.num_places, keys)?)?, device.upload(values)?))
        };
        Ok(Looks {
            queries: device.bring(Choice::new(self.num_places, queries)?)?,
            keys,
            sets: device.bring(AttentionSets::from_sizes(sizes))?,
        })
    }

    /// What every target finds, `[targets, width]`.
    pub(crate) fn find(&self, tape: &mut Tape, looks: &Looks) -> Result<Var> {
        let Some((keys, values)) = &looks.keys else {
            let zeros = tape.device().zeros(looks.queries.len() * self.width)?;
            return tape.constant(zeros, (looks.queries.len(), self.width));
        };
        let columns = self.locations.len() / self.num_places;
        let locations = tape.constant(self.locations.clone(), (self.num_places, columns))?;
        let embedded = self.place.forward(tape, locations)?;
        let queries = tape.gather(embedded, &looks.queries)?;
        let at_keys = tape.gather(embedded, keys)?;
        let values = tape.constant(values.clone(), (keys.len(), self.channels))?;
        let values = self.value.forward(tape, values)?;
        let values = tape.add(at_keys, values)?;
        let values = tape.silu(values)?;
        let queries = self.query.forward(tape, queries)?;
        let (keys, values) = (self.key.forward(tape, at_keys)?, self.shown.forward(tape, values)?);
        let found = tape.attention(queries, keys, values, &looks.sets, self.num_heads)?;
        self.output.forward(tape, found)
    }
}
