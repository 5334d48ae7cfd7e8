//! The neural processes, rivals of the energy-based one on curves and on pictures.

use serde::{Deserialize, Serialize};

use crate::data::Grid;
use crate::process::neural::{
    AttentionConfig, Deterministic, GridPathConfig, LatentConfig, Likelihood, NeuralProcessConfig,
};

/// Sizes of the neural processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeuralSettings {
    /// Widths of the hidden layers that encode an element.
    pub encoder_widths: Vec<usize>,
    /// Fourier pairs of a location beside its numbers.
    pub location_frequencies: usize,
    /// Fourier pairs of a value beside its numbers, for encoders.
    pub value_frequencies: usize,
    /// The size of an encoded element.
    pub representation_dim: usize,
    /// Widths of the hidden layers of the decoder.
    pub decoder_widths: Vec<usize>,
    /// Widths of the hidden layers that embed a location as query or key.
    pub embedding_widths: Vec<usize>,
    /// Size of z; with convolutions that of z at every place.
    pub latent_dim: usize,
    /// What decoders say of a target; `levels` for pictures only.
    pub likelihood: Likelihood,
    /// Channels of convolutions on every grid, the finest first, each half as fine as the one before.
    pub grid_widths: Vec<usize>,
    /// Residual blocks on every grid.
    pub grid_blocks: usize,
    /// Side of their windows, odd.
    pub grid_side: usize,
    /// Draws of z that a step averages over, with convolutions.
    pub training_draws: usize,
    /// The learning rate at the start.
    pub learning_rate: f64,
    /// How slowly the average of the parameters follows them: what predicts after training.
    pub average_decay: f32,
}

impl Default for NeuralSettings {
    /// For curves: networks of width 64.
    fn default() -> Self {
        Self {
            encoder_widths: vec![64; 2],
            location_frequencies: 0,
            value_frequencies: 0,
            representation_dim: 64,
            decoder_widths: vec![64; 2],
            embedding_widths: vec![64],
            latent_dim: 32,
            likelihood: Likelihood::Gaussian,
            grid_widths: vec![128],
            grid_blocks: 6,
            grid_side: 9,
            training_draws: 4,
            learning_rate: 3e-3,
            average_decay: 0.99,
        }
    }
}

impl NeuralSettings {
    /// The convolutions of pictures on a grid.
    pub(super) fn on_grid(&self, grid: Grid) -> GridPathConfig {
        let (widths, blocks, side) = (self.grid_widths.clone(), self.grid_blocks, self.grid_side);
        GridPathConfig { grid, widths, blocks, side }
    }

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
        network.location_frequencies = self.location_frequencies;
        network.value_frequencies = self.value_frequencies;
        network.representation_dim = self.representation_dim;
        network.decoder_widths.clone_from(&self.decoder_widths);
        network.learning_rate = self.learning_rate;
        network.average_decay = self.average_decay;
        network.likelihood = self.likelihood;
        if let Some(latent) = &mut config.latent {
            let (latent_dim, training_draws) = (self.latent_dim, self.training_draws);
            *latent = LatentConfig { latent_dim, training_draws, ..latent.clone() };
        }
        if let Deterministic::Attention(attention) = &mut config.deterministic {
            let embedding_widths = self.embedding_widths.clone();
            *attention = AttentionConfig { embedding_widths, ..attention.clone() };
        }
        config
    }
}
