//! How a context reaches the decoder: through a latent of the set, or without randomness.

use candle_core::{Module, Tensor};

use super::config::{AttentionConfig, NetworkConfig};
use super::gaussian::Gaussian;
use super::network::{Builder, Network};
use super::ragged::{Ragged, zeros};
use crate::nn::{AttentionSets, Initialiser, Linear, MultiHeadAttention, linear};
use crate::point::MlpConfig;
use crate::{Result, SetOffsets};

/// An encoder of elements, with attention among the elements of a set if wanted.
#[derive(Clone, Debug)]
struct Encoder {
    network: Network,
    self_attention: Option<MultiHeadAttention>,
}

impl Encoder {
    fn new(
        builder: &Builder,
        name: &str,
        config: &NetworkConfig,
        num_self_heads: Option<usize>,
    ) -> Result<Self> {
        let network = builder.network(
            &format!("{name}.encoder"),
            MlpConfig {
                value_dim: config.value_dim,
                location_dim: config.location_dim,
                context_dim: 0,
                hidden_widths: config.encoder_widths.clone(),
                output_dim: config.representation_dim,
                activation: config.activation,
                ..MlpConfig::default()
            },
            config.value_dim + config.location_dim,
        )?;
        let self_attention = match num_self_heads {
            Some(num_heads) => {
                let group = builder.parameters.group(name).group("self_attention");
                Some(MultiHeadAttention::new(&group, config.representation_dim, num_heads)?)
            }
            None => None,
        };
        Ok(Self { network, self_attention })
    }

    /// One row per element, `[total, representation_dim]`; `None` without elements.
    fn rows(&self, sets: &Ragged) -> Result<Option<Tensor>> {
        let rows = sets.values(&self.network)?;
        match (rows, &self.self_attention) {
            (Some(rows), Some(attention)) => {
                let pairs = AttentionSets::from_sizes(sets.sizes().iter().map(|&n| (n, n)));
                // r ← r + attention(r, r, r)
                let seen = attention.forward(&rows, &rows, &rows, &pairs)?;
                Ok(Some((rows + seen)?))
            }
            (rows, _) => Ok(rows),
        }
    }

    /// The mean row of each set, `[sets, representation_dim]`; zeros for an empty one.
    fn mean(&self, sets: &Ragged) -> Result<Tensor> {
        match &self.self_attention {
            // The primitive's pool need not write the rows.
            None => sets.mean(&self.network),
            Some(_) => match self.rows(sets)? {
                Some(rows) => sets.mean_rows(&rows),
                None => zeros(sets.sizes().len(), self.network.output_dim()),
            },
        }
    }
}

/// q(z | set): encoder, mean over the set, one hidden layer, mean and σ of z.
#[derive(Clone, Debug)]
pub(super) struct LatentPath {
    encoder: Encoder,
    hidden: Linear,
    output: Linear,
    pub(super) latent_dim: usize,
}

impl LatentPath {
    pub(super) fn new(
        builder: &Builder,
        config: &NetworkConfig,
        latent_dim: usize,
        num_self_heads: Option<usize>,
    ) -> Result<Self> {
        let width = config.representation_dim;
        let group = builder.parameters.group("latent");
        Ok(Self {
            encoder: Encoder::new(builder, "latent", config, num_self_heads)?,
            hidden: linear(&group.group("hidden"), width, width, Initialiser::He)?,
            output: linear(&group.group("output"), width, 2 * latent_dim, Initialiser::FanIn)?,
            latent_dim,
        })
    }

    /// The law of z of each set, `[sets, latent_dim]`.
    pub(super) fn law(&self, sets: &Ragged) -> Result<Gaussian> {
        let hidden = self.hidden.forward(&self.encoder.mean(sets)?)?.relu()?;
        Gaussian::from_latent_head(&self.output.forward(&hidden)?)
    }
}

/// What the decoder is told without randomness.
#[derive(Clone, Debug)]
pub(super) enum DeterministicPath {
    /// Nothing.
    Absent,
    /// The same mean for every target of a set.
    Mean(MeanPath),
    /// For each target what attention finds in the context.
    Attention(Box<AttentionPath>),
}

/// The mean of the encoded context.
#[derive(Clone, Debug)]
pub(super) struct MeanPath(Encoder);

impl MeanPath {
    pub(super) fn new(builder: &Builder, config: &NetworkConfig) -> Result<Self> {
        Ok(Self(Encoder::new(builder, "deterministic", config, None)?))
    }

    /// `[sets, representation_dim]`.
    pub(super) fn represent(&self, contexts: &Ragged) -> Result<Tensor> {
        self.0.mean(contexts)
    }
}

/// Cross-attention from target locations to context elements (Kim et al., 2019): queries and
/// keys are embedded locations, values are encoded elements.
#[derive(Clone, Debug)]
pub(super) struct AttentionPath {
    encoder: Encoder,
    embedding: Network,
    cross: MultiHeadAttention,
}

impl AttentionPath {
    pub(super) fn new(
        builder: &Builder,
        config: &NetworkConfig,
        attention: &AttentionConfig,
    ) -> Result<Self> {
        let width = config.representation_dim;
        let group = builder.parameters.group("deterministic").group("cross_attention");
        Ok(Self {
            encoder: Encoder::new(builder, "deterministic", config, attention.num_self_heads())?,
            embedding: builder.network(
                "deterministic.embedding",
                MlpConfig {
                    value_dim: config.location_dim,
                    location_dim: 0,
                    context_dim: 0,
                    hidden_widths: attention.embedding_widths.clone(),
                    output_dim: width,
                    activation: config.activation,
                    ..MlpConfig::default()
                },
                config.location_dim,
            )?,
            cross: MultiHeadAttention::new(&group, width, attention.num_heads)?,
        })
    }

    /// For each target location `[total, d_t]` a row `[total, representation_dim]`; zeros where
    /// the context is empty.
    pub(super) fn represent(
        &self,
        contexts: &Ragged,
        locations: &Tensor,
        offsets: &SetOffsets,
    ) -> Result<Tensor> {
        let context_locations = contexts.locations(locations.dim(1)?)?;
        let (Some(rows), Some((places, place_offsets))) =
            (self.encoder.rows(contexts)?, context_locations)
        else {
            return zeros(locations.dim(0)?, self.embedding.output_dim());
        };
        let keys = self.embedding.values(&places, None, place_offsets)?;
        let queries = self.embedding.values(locations, None, offsets)?;
        let sizes = contexts.sizes().iter().enumerate().map(|(s, &n)| (offsets.size(s), n));
        self.cross.forward(&queries, &keys, &rows, &AttentionSets::from_sizes(sizes))
    }
}
