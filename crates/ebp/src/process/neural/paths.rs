//! How a context reaches the decoder: through a latent of the set, or without randomness.

use std::sync::Arc;

use super::batch::{RaggedVars, zeros};
use super::config::{AttentionConfig, NetworkConfig};
use super::gaussian::latent_law;
use super::grid::GridPath;
use super::network::network;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::nn::{Looking, MultiHeadAttention, Network, Sets};
use crate::point::{Activation, MlpConfig};
use crate::tape::{AttentionSets, Gaussian, Group, Tape, Var};
use crate::{Result, SetOffsets};

/// What the last layer of the latent's head is multiplied by at the start: √(1/6) makes of He's
/// variance 2/n that of PyTorch's linear layers, 1/(3 n).
const HEAD_SCALE: f32 = 0.408_248_3;

/// An encoder of elements, with attention among the elements of a set if wanted.
#[derive(Clone, Debug)]
struct Encoder {
    network: Network,
    self_attention: Option<MultiHeadAttention>,
    width: usize,
}

impl Encoder {
    fn new(
        group: &mut Group<'_>,
        config: &NetworkConfig,
        num_self_heads: Option<usize>,
    ) -> Result<Self> {
        let width = config.representation_dim;
        let elements = MlpConfig {
            value_dim: config.value_features(),
            location_dim: config.location_features(),
            context_dim: 0,
            hidden_widths: config.encoder_widths.clone(),
            output_dim: width,
            activation: config.activation,
            ..MlpConfig::default()
        };
        let num_own = elements.value_dim + elements.location_dim;
        let network = network(group, "encoder", elements, num_own)?;
        let self_attention = match num_self_heads {
            Some(heads) => {
                Some(MultiHeadAttention::new(&mut group.group("self_attention"), width, heads)?)
            }
            None => None,
        };
        Ok(Self { network, self_attention, width })
    }

    /// One row per element, `[total, representation_dim]`; `None` without elements.
    fn rows(&self, tape: &mut Tape, sets: &RaggedVars) -> Result<Option<Var>> {
        let Some(filled) = &sets.filled else { return Ok(None) };
        let rows = filled.values(tape, &self.network)?;
        let Some(attention) = &self.self_attention else { return Ok(Some(rows)) };
        let pairs = AttentionSets::from_sizes(sets.sizes.iter().map(|&n| (n, n)));
        // r ← r + attention(r, r, r)
        let looking = Looking { queries: rows, keys: rows, values: rows };
        let seen = attention.forward(tape, looking, &Arc::new(pairs))?;
        Ok(Some(tape.add(rows, seen)?))
    }

    /// The mean row of each set, `[sets, representation_dim]`; zeros for an empty one.
    fn mean(&self, tape: &mut Tape, sets: &RaggedVars) -> Result<Var> {
        let Some(filled) = &sets.filled else {
            return zeros(tape, (sets.sizes.len(), self.width));
        };
        match self.self_attention {
            // The primitive's pool need not write the rows.
            None => filled.mean(tape, &self.network),
            Some(_) => match self.rows(tape, sets)? {
                Some(rows) => filled.mean_rows(tape, rows),
                None => zeros(tape, (sets.sizes.len(), self.width)),
            },
        }
    }
}

/// q(z | set): encoder, mean over the set, one hidden layer, mean and σ of z.
#[derive(Clone, Debug)]
pub(super) struct LatentPath {
    encoder: Encoder,
    head: Dense,
}

impl LatentPath {
    pub(super) fn new(
        group: &mut Group<'_>,
        config: &NetworkConfig,
        latent_dim: usize,
        num_self_heads: Option<usize>,
    ) -> Result<Self> {
        let width = config.representation_dim;
        let head = DenseConfig {
            inputs: width,
            hidden: &[width],
            outputs: 2 * latent_dim,
            activation: Activation::Relu,
            weights: Initialiser::He,
            output_scale: HEAD_SCALE,
        };
        Ok(Self {
            encoder: Encoder::new(group, config, num_self_heads)?,
            head: Dense::new(group, "head", &head)?,
        })
    }

    /// The law of z of each set, `[sets, latent_dim]`.
    pub(super) fn law(&self, tape: &mut Tape, sets: &RaggedVars) -> Result<Gaussian> {
        let mean = self.encoder.mean(tape, sets)?;
        let raw = self.head.forward(tape, mean)?;
        latent_law(tape, raw)
    }
}

/// What the decoder is told without randomness.
#[derive(Clone, Debug)]
pub(super) enum DeterministicPath {
    /// Nothing.
    Absent,
    /// The same mean for every target of a set.
    Mean(Box<MeanPath>),
    /// For each target what attention finds in the context.
    Attention(Box<AttentionPath>),
    /// For each target what convolutions make of its place.
    Grid(Box<GridPath>),
}

/// The mean of the encoded context.
#[derive(Clone, Debug)]
pub(super) struct MeanPath(Encoder);

impl MeanPath {
    pub(super) fn new(group: &mut Group<'_>, config: &NetworkConfig) -> Result<Self> {
        Ok(Self(Encoder::new(group, config, None)?))
    }

    /// `[sets, representation_dim]`.
    pub(super) fn represent(&self, tape: &mut Tape, contexts: &RaggedVars) -> Result<Var> {
        self.0.mean(tape, contexts)
    }
}

/// Cross-attention from target locations to context elements (Kim et al., 2019): queries and
/// keys are embedded locations, values are encoded elements.
#[derive(Clone, Debug)]
pub(super) struct AttentionPath {
    encoder: Encoder,
    embedding: Network,
    cross: MultiHeadAttention,
    value_features: usize,
    location_features: usize,
}

impl AttentionPath {
    pub(super) fn new(
        group: &mut Group<'_>,
        config: &NetworkConfig,
        attention: &AttentionConfig,
    ) -> Result<Self> {
        let width = config.representation_dim;
        let embedding = MlpConfig {
            value_dim: config.location_features(),
            location_dim: 0,
            context_dim: 0,
            hidden_widths: attention.embedding_widths.clone(),
            output_dim: width,
            activation: config.activation,
            ..MlpConfig::default()
        };
        let heads = attention.num_heads;
        Ok(Self {
            encoder: Encoder::new(group, config, attention.num_self_heads())?,
            embedding: network(group, "embedding", embedding, config.location_features())?,
            cross: MultiHeadAttention::new(&mut group.group("cross_attention"), width, heads)?,
            value_features: config.value_features(),
            location_features: config.location_features(),
        })
    }

    /// For each target location `[total, location_features]` a row `[total, representation_dim]`; zeros where
    /// no set has a context.
    pub(super) fn represent(
        &self,
        tape: &mut Tape,
        contexts: &RaggedVars,
        locations: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Result<Var> {
        let (Some(values), Some(filled)) = (self.encoder.rows(tape, contexts)?, &contexts.filled)
        else {
            return zeros(tape, (offsets.num_elements(), self.encoder.width));
        };
        let places = tape.columns(filled.elements, self.value_features, self.location_features)?;
        let at = |elements, offsets| Sets { elements, context: None, offsets };
        let keys = self.embedding.values(tape, at(places, &filled.offsets))?;
        let queries = self.embedding.values(tape, at(locations, offsets))?;
        let sizes = contexts.sizes.iter().enumerate().map(|(s, &n)| (offsets.size(s), n));
        let sets = Arc::new(AttentionSets::from_sizes(sizes));
        self.cross.forward(tape, Looking { queries, keys, values }, &sets)
    }
}
