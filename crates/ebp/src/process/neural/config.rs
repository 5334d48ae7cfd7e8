//! Settings of the neural processes.

use crate::nn::AdamConfig;
use crate::point::Activation;
use crate::{Error, Result};

/// Sizes of the networks, common to all neural processes.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// d_t.
    pub location_dim: usize,
    /// d_x.
    pub value_dim: usize,
    /// Widths of the hidden layers that encode an element [x, t].
    pub encoder_widths: Vec<usize>,
    /// The size of an encoded element, and of a set's mean.
    pub representation_dim: usize,
    /// Widths of the hidden layers of the decoder.
    pub decoder_widths: Vec<usize>,
    /// σ of every hidden layer.
    pub activation: Activation,
    /// The floor of the predicted standard deviation, floor + (1 − floor) softplus(s), in (0, 1).
    ///
    /// Published models use 0.1. Where the noise of the data is as small as that the floor would
    /// cost log-likelihood, so it is 0.01 here.
    pub min_std_dev: f64,
    /// The optimiser.
    pub adam: AdamConfig,
}

impl Default for NetworkConfig {
    /// For curves: one number at one time, networks of width 64.
    fn default() -> Self {
        Self {
            location_dim: 1,
            value_dim: 1,
            encoder_widths: vec![64, 64],
            representation_dim: 64,
            decoder_widths: vec![64, 64],
            activation: Activation::Silu,
            min_std_dev: 0.01,
            adam: AdamConfig { max_gradient_norm: Some(10.0), ..AdamConfig::default() },
        }
    }
}

impl NetworkConfig {
    /// Checks what the constructors of the parts do not.
    pub(super) fn check(&self) -> Result<()> {
        for (field, dim) in [("location_dim", self.location_dim), ("value_dim", self.value_dim)] {
            if dim == 0 {
                return Err(Error::invalid(field, "at least 1", dim));
            }
        }
        if !(self.min_std_dev > 0.0 && self.min_std_dev < 1.0) {
            return Err(Error::invalid("min_std_dev", "in (0, 1)", self.min_std_dev));
        }
        Ok(())
    }
}

/// The latent of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentConfig {
    /// The size of z.
    pub latent_dim: usize,
    /// How many z a predictive density averages over.
    pub num_draws: usize,
}

impl Default for LatentConfig {
    /// z of 32 numbers, 32 draws.
    fn default() -> Self {
        Self { latent_dim: 32, num_draws: 32 }
    }
}

impl LatentConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, count) in [("latent_dim", self.latent_dim), ("num_draws", self.num_draws)] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        Ok(())
    }
}

/// Attention of the attentive neural process.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionConfig {
    /// Heads; they must divide `representation_dim`.
    pub num_heads: usize,
    /// Widths of the hidden layers that embed a location as query or key.
    pub embedding_widths: Vec<usize>,
    /// Whether the elements of a context also attend to each other before they are looked at, in
    /// both paths. Published as a choice; it costs n² per set.
    pub has_self_attention: bool,
}

impl Default for AttentionConfig {
    /// 8 heads, one hidden layer of 64, no self-attention.
    fn default() -> Self {
        Self { num_heads: 8, embedding_widths: vec![64], has_self_attention: false }
    }
}

impl AttentionConfig {
    pub(super) fn num_self_heads(&self) -> Option<usize> {
        self.has_self_attention.then_some(self.num_heads)
    }
}
