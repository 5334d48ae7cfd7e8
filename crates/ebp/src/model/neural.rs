//! The neural processes, rivals of the energy-based one on curves and on pictures.

use serde::{Deserialize, Serialize};

use crate::process::neural::{AttentionConfig, Deterministic, LatentConfig, NeuralProcessConfig};

/// Sizes of the neural processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeuralSettings {
    /// Widths of the hidden layers that encode an element.
    pub encoder_widths: Vec<usize>,
    /// The size of an encoded element.
    pub representation_dim: usize,
    /// Widths of the hidden layers of the decoder.
    pub decoder_widths: Vec<usize>,
    /// Widths of the hidden layers that embed a location as query or key.
    pub embedding_widths: Vec<usize>,
    /// Size of z.
    pub latent_dim: usize,
    /// The learning rate at the start.
    pub learning_rate: f64,
}

impl Default for NeuralSettings {
    /// For curves: networks of width 64.
    fn default() -> Self {
        Self {
            encoder_widths: vec![64; 2],
            representation_dim: 64,
            decoder_widths: vec![64; 2],
            embedding_widths: vec![64],
            latent_dim: 32,
            learning_rate: 3e-3,
        }
    }
}

impl NeuralSettings {
    /// `kind` with these sizes, for elements of d_t = `location_dim` and d_x = `value_dim` numbers.
    pub(super) fn config(
        &self,
        kind: NeuralProcessConfig,
        location_dim: usize,
        value_dim: usize,
    ) -> NeuralProcessConfig {
        let mut config = kind;
        let network = &mut config.network;
        (network.location_dim, network.value_dim) = (location_dim, value_dim);
        network.encoder_widths.clone_from(&self.encoder_widths);
        network.representation_dim = self.representation_dim;
        network.decoder_widths.clone_from(&self.decoder_widths);
        network.learning_rate = self.learning_rate;
        if let Some(latent) = &mut config.latent {
            *latent = LatentConfig { latent_dim: self.latent_dim, ..latent.clone() };
        }
        if let Deterministic::Attention(attention) = &mut config.deterministic {
            let embedding_widths = self.embedding_widths.clone();
            *attention = AttentionConfig { embedding_widths, ..attention.clone() };
        }
        config
    }
}
