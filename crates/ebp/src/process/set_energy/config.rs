//! Settings of set energies.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How the elements of a set feel each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interaction {
    /// Every element sees one summary of the whole set.
    #[default]
    DeepSets,
    /// Every element looks at all others with weights of its own.
    Attention,
}

/// How the first guess of a set is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorKind {
    /// Elements one after the other, each given those before it: the paper's choice.
    Recurrent,
    /// A hidden variable for the set, and elements independent given it.
    #[default]
    Hierarchical,
}

/// How the summary of a set is made from its elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummaryPooling {
    /// The average: means the same for sets of every size.
    #[default]
    Mean,
    /// The sum, as the paper's formula has it.
    Sum,
    /// The largest per coordinate.
    Max,
}

/// Settings of a [`SetEnergyProcess`](super::SetEnergyProcess).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetEnergyConfig {
    /// d, numbers of an element.
    pub element_dim: usize,
    /// Deep Sets or attention.
    pub interaction: Interaction,
    /// Widths of φ; the last one is that of the summary, or of queries, keys and values.
    pub summary_widths: Vec<usize>,
    /// How φ is pooled; Deep Sets only.
    pub pooling: SummaryPooling,
    /// Heads of the attention; must divide the last of `summary_widths`.
    pub num_heads: usize,
    /// Hidden widths of the energy of an element.
    pub energy_widths: Vec<usize>,
    /// Coordinates are multiplied by this before the networks read them: a smooth network sees no
    /// detail much finer than 1.
    pub input_scale: f64,
    /// s₀ of the Gaussian base measure, which makes Z finite.
    pub base_std_dev: f64,
    /// How the first guess of a set is drawn.
    pub generator: GeneratorKind,
    /// Size of the hidden variable; hierarchical only.
    pub hidden_dim: usize,
    /// Width of the generator's networks.
    pub generator_width: usize,
    /// Planar layers of each of its elements.
    pub generator_layers: usize,
    /// Elements that the generator draws at once; recurrent only.
    pub block_size: usize,
    /// T, Langevin steps on the whole set after the generator.
    pub num_dynamics_steps: usize,
    /// η of those steps at the start; the noise has standard deviation √η throughout.
    pub step_size: f64,
    /// The drift's gradient is clipped to this, coordinate by coordinate.
    pub clip: f64,
    /// Learning rate of the energy, falling along half a cosine.
    pub learning_rate: f64,
    /// Learning rate of generator and step sizes, falling to 40 % of itself.
    pub generator_learning_rate: f64,
    /// Updates of the generator per update of the energy.
    pub generator_updates: usize,
    /// Weight of E‖∇u‖² per element, taken by differences in random directions; falls to 0 with the
    /// learning rate, as it would keep the energy from becoming sharp.
    pub gradient_penalty: f64,
    /// Gradients longer than this are shortened.
    pub max_gradient_norm: f64,
    /// Decay of the averages that are used after training.
    pub average_decay: f32,
}

impl Default for SetEnergyConfig {
    fn default() -> Self {
        Self {
            element_dim: 2,
            interaction: Interaction::DeepSets,
            summary_widths: vec![64, 32],
            pooling: SummaryPooling::Mean,
            num_heads: 4,
            energy_widths: vec![64, 64],
            input_scale: 3.0,
            base_std_dev: 1.5,
            generator: GeneratorKind::Hierarchical,
            hidden_dim: 6,
            generator_width: 64,
            generator_layers: 4,
            block_size: 1,
            num_dynamics_steps: 3,
            step_size: 5e-4,
            clip: 50.0,
            learning_rate: 3e-4,
            generator_learning_rate: 1e-3,
            generator_updates: 3,
            gradient_penalty: 1e-3,
            max_gradient_norm: 5.0,
            average_decay: 0.99,
        }
    }
}

impl SetEnergyConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, count) in [
            ("element_dim", self.element_dim),
            ("num_heads", self.num_heads),
            ("hidden_dim", self.hidden_dim),
            ("generator_width", self.generator_width),
            ("generator_layers", self.generator_layers),
            ("block_size", self.block_size),
            ("generator_updates", self.generator_updates),
        ] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        for (field, value) in [
            ("input_scale", self.input_scale),
            ("base_std_dev", self.base_std_dev),
            ("step_size", self.step_size),
            ("clip", self.clip),
            ("learning_rate", self.learning_rate),
            ("generator_learning_rate", self.generator_learning_rate),
            ("max_gradient_norm", self.max_gradient_norm),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", value));
            }
        }
        if !(self.gradient_penalty >= 0.0 && self.gradient_penalty.is_finite()) {
            return Err(Error::invalid("gradient_penalty", "at least 0", self.gradient_penalty));
        }
        let width = self.summary_widths.last().copied().unwrap_or(0);
        if width == 0 || !width.is_multiple_of(self.num_heads) {
            let expected = format!("a last width that num_heads {} divides", self.num_heads);
            return Err(Error::invalid("summary_widths", expected, format!("{width}")));
        }
        Ok(())
    }
}
