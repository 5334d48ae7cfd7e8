//! What an energy-based process over a finite alphabet is made of.

use serde::{Deserialize, Serialize};

use super::Grid;
use crate::point::{Activation, ContextAt, MlpConfig};
use crate::process::{PosteriorPooling, TrainingMode};
use crate::{Error, Result};

/// The most symbols of an alphabet.
const MOST_LEVELS: usize = 4096;

/// What q(θ | context) reads its elements with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorForm {
    /// `φ(x, t) = a[t] + x b[t]`, summed over the context: a learned vector per place. One product
    /// with a matrix for the whole set, a hundred times cheaper than a network per element.
    Table,
    /// φ is a network over value and location, pooled (the paper's).
    DeepSets,
}

/// How f(x, t; θ) is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyForm {
    /// f(x, t; θ) = ⟨h(t, θ), e(x)⟩ + b(x): one pass of a network per element gives f of all
    /// symbols. Every table of energies can be written so.
    Levels,
    /// A network over (x, t) (the paper's): one pass per element and symbol.
    Element,
}

/// Settings of a [`DiscreteProcess`](super::DiscreteProcess).
///
/// What the data decide (grid and channels) is no part of its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscreteConfig {
    /// Where elements can stand.
    #[serde(skip)]
    pub grid: Grid,
    /// d_x: 1 for grey, 3 for colours.
    #[serde(skip)]
    pub channels: usize,
    /// Symbols of the alphabet, evenly spaced on [−1, 1].
    pub levels: usize,
    /// Size of θ.
    pub latent_dim: usize,
    /// What the posterior reads elements with.
    pub posterior: PosteriorForm,
    /// Widths per element; the last one is pooled. A table has a single width, the last.
    pub encoder_widths: Vec<usize>,
    /// How a network's features are pooled; tables are summed.
    pub pooling: PosteriorPooling,
    /// Hidden widths between the pooled vector and (μ, log σ).
    pub head_widths: Vec<usize>,
    /// How f is computed.
    pub energy: EnergyForm,
    /// Hidden widths of the energy.
    pub energy_widths: Vec<usize>,
    /// Size of h and e in f = ⟨h(t, θ), e(x)⟩ + b(x). The e start as cosines of x, so that nearby
    /// levels share what is learned.
    pub embedding_dim: usize,
    /// σ of the energy.
    pub activation: Activation,
    /// Pairs sin ωⱼt, cos ωⱼt with ωⱼ = 2ʲ π/4 beside t.
    pub location_frequencies: usize,
    /// The same for the channels that are known already, in a chain of channels.
    pub value_frequencies: usize,
    /// A target sees the elements of the context within so many places, in every direction, beside
    /// θ: local attention. 0: it sees θ only, as in the paper.
    pub window: usize,
    /// And averages of the context around it, weighted by Gaussians of 2, 4 and 8 places.
    pub smooths: bool,
    /// Heads of cross-attention, by which a target looks at all of the context; 0 for none. It
    /// costs targets × context.
    pub attention_heads: usize,
    /// Width of the attention; the heads share it.
    pub attention_width: usize,
    /// Numbers per place that a dense network paints from θ and the pooled context, beside what the
    /// energy makes of t and θ itself; 0 for none.
    pub canvas_dim: usize,
    /// Hidden widths of that network.
    pub canvas_widths: Vec<usize>,
    /// Size of the codes of the second level of the latent; 0 for one level only.
    pub local_dim: usize,
    /// They stand on a grid of so many cells by so many.
    pub local_side: usize,
    /// The share of pictures in training whose targets see nothing but θ. What lies near a target
    /// is easier to learn from than θ, which would otherwise stay unused.
    pub blind: f64,
    /// The energy's first-layer weights start this much larger.
    pub input_scale: f32,
    /// Which θ targets are scored with.
    pub mode: TrainingMode,
    /// Targets per set whose likelihood is computed in a step, chosen at random: an unbiased part
    /// of the whole.
    pub num_scored: usize,
    /// κ, the weight of the KL divergence against the likelihood in nats: 1 for the ELBO.
    pub kl_weight: f64,
    /// Steps over which κ grows from 0.
    pub kl_warm_up: u64,
    /// The learning rate at the start; it falls to 0 along half a cosine.
    pub learning_rate: f64,
    /// Steps over which the learning rate grows to its start.
    pub rate_warm_up: u64,
    /// The gradient's largest Euclidean norm.
    pub max_gradient_norm: f64,
    /// Decay of the parameters' moving average, which is what predictions use.
    pub average_decay: f32,
    /// Draws of θ per prediction.
    pub num_draws: usize,
}

impl Default for DiscreteConfig {
    /// Grey pictures of 28 × 28.
    fn default() -> Self {
        Self {
            grid: Grid::default(),
            channels: 1,
            levels: 256,
            latent_dim: 64,
            posterior: PosteriorForm::Table,
            encoder_widths: vec![512],
            pooling: PosteriorPooling::MaxAndMean,
            head_widths: vec![256],
            energy: EnergyForm::Levels,
            energy_widths: vec![256, 256],
            embedding_dim: 64,
            activation: Activation::Silu,
            location_frequencies: 6,
            value_frequencies: 4,
            window: 3,
            smooths: true,
            attention_heads: 0,
            attention_width: 64,
            canvas_dim: 0,
            canvas_widths: vec![512],
            local_dim: 0,
            local_side: 7,
            blind: 0.5,
            input_scale: 2.0,
            mode: TrainingMode::Predictive,
            num_scored: 128,
            kl_weight: 1.0,
            kl_warm_up: 500,
            learning_rate: 2e-3,
            rate_warm_up: 100,
            max_gradient_norm: 2.0,
            average_decay: 0.99,
            num_draws: 20,
        }
    }
}

impl DiscreteConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, found) in [
            ("channels", self.channels),
            ("latent_dim", self.latent_dim),
            ("encoder_widths", self.encoder_widths.len()),
            ("embedding_dim", self.embedding_dim),
            ("num_scored", self.num_scored),
            ("num_draws", self.num_draws),
            ("local_side", self.local_side),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        if !(2..=MOST_LEVELS).contains(&self.levels) {
            let expected = format!("between 2 and {MOST_LEVELS}");
            return Err(Error::invalid("levels", expected, self.levels));
        }
        if self.posterior == PosteriorForm::Table && self.encoder_widths.len() > 1 {
            let expected = "a single width for the posterior `table`";
            return Err(Error::invalid("encoder_widths", expected, self.encoder_widths.len()));
        }
        if self.attention_heads > 0 && self.energy == EnergyForm::Element {
            let expected = "0 for the energy `element`, whose locations are constants";
            return Err(Error::invalid("attention_heads", expected, self.attention_heads));
        }
        if self.num_painted() > 0 && self.energy == EnergyForm::Element {
            let expected = "0 for the energy `element`, whose locations are constants";
            return Err(Error::invalid("canvas_dim and local_dim", expected, self.num_painted()));
        }
        for (field, found) in [
            ("input_scale", f64::from(self.input_scale)),
            ("learning_rate", self.learning_rate),
            ("max_gradient_norm", self.max_gradient_norm),
        ] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        if !(self.kl_weight >= 0.0 && self.kl_weight.is_finite()) {
            return Err(Error::invalid("kl_weight", "at least 0 and finite", self.kl_weight));
        }
        if !(0.0..=1.0).contains(&self.blind) {
            return Err(Error::invalid("blind", "between 0 and 1", self.blind));
        }
        if !(0.0..1.0).contains(&self.average_decay) {
            return Err(Error::invalid("average_decay", "in [0, 1)", self.average_decay));
        }
        Ok(())
    }

    /// Numbers that attention adds to what a target sees.
    pub(super) fn num_attended(&self) -> usize {
        if self.attention_heads > 0 { self.attention_width } else { 0 }
    }

    /// Numbers that latents paint at every place.
    pub(super) fn num_painted(&self) -> usize {
        self.canvas_dim + self.local_dim
    }

    /// Numbers of the second level of the latent.
    pub(super) fn num_local(&self) -> usize {
        self.local_dim * self.local_side * self.local_side
    }

    /// Numbers that the posterior reads from a set: what is pooled, and the log of its size.
    pub(super) fn num_pooled(&self) -> usize {
        let pooled = match self.posterior {
            PosteriorForm::Table => self.pooled_width(),
            PosteriorForm::DeepSets => self.pooling.poolings().len() * self.pooled_width(),
        };
        pooled + 1
    }

    /// The width that the posterior pools.
    pub(super) fn pooled_width(&self) -> usize {
        self.encoder_widths[self.encoder_widths.len() - 1]
    }

    /// The value of a symbol on [−1, 1], the middle of its cell.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn value(&self, symbol: u32) -> f32 {
        ((2.0 * f64::from(symbol) + 1.0) / self.levels as f64 - 1.0) as f32
    }

    /// The symbol in whose cell a value lies.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for values outside [−1, 1].
    pub(super) fn symbol(&self, value: f64) -> Result<u32> {
        if !(-1.0..=1.0).contains(&value) {
            return Err(Error::invalid("value", "between -1 and 1", value));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let symbol = (0.5 * (value + 1.0) * self.levels as f64) as u32;
        Ok(symbol.min(u32::try_from(self.levels - 1).unwrap_or(u32::MAX)))
    }

    /// The network per element of a posterior of Deep Sets.
    pub(super) fn encoder(&self) -> MlpConfig {
        let (hidden, pooled) = self.encoder_widths.split_at(self.encoder_widths.len() - 1);
        MlpConfig {
            value_dim: self.channels,
            location_dim: 2 * (1 + 2 * self.location_frequencies),
            context_dim: 0,
            hidden_widths: hidden.to_vec(),
            output_dim: pooled[0],
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: true,
        }
    }

    /// Numbers that describe the known channels to the network of channel `channel`.
    pub(super) fn known_features(&self, channel: usize) -> usize {
        channel * (1 + 2 * self.value_frequencies)
    }

    /// The network of one channel, which reads `num_features` numbers of a target.
    pub(super) fn network(&self, num_features: usize) -> MlpConfig {
        let common = MlpConfig {
            context_dim: self.latent_dim,
            activation: self.activation,
            context_at: ContextAt::EveryLayer,
            activate_output: false,
            ..MlpConfig::default()
        };
        match self.energy {
            EnergyForm::Levels => MlpConfig {
                value_dim: num_features,
                location_dim: 0,
                hidden_widths: [&self.energy_widths[..], &[self.embedding_dim]].concat(),
                output_dim: self.levels,
                ..common
            },
            EnergyForm::Element => MlpConfig {
                value_dim: 1 + 2 * self.value_frequencies,
                location_dim: num_features,
                hidden_widths: self.energy_widths.clone(),
                output_dim: 1,
                ..common
            },
        }
    }
}
