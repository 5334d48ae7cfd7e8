//! Settings of set energies.

use serde::{Deserialize, Serialize};

use crate::recipe::{NegativePhase, ReverseKernel};
use crate::{Error, Result};

/// What the energy learns from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetEstimator {
    /// Whole sets against whole draws of the guess: the paper's, and with weights the likelihood by importance
    /// sampling. It knows how likely sets are as a whole.
    #[default]
    Ade,
    /// One element given all others, log Z of which is an integral over one element. It is sharp at
    /// once, and knows little of what sets there are.
    Pseudolikelihood,
    /// The sum of both.
    Composite,
}

impl SetEstimator {
    /// Its name in settings and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ade => "ade",
            Self::Pseudolikelihood => "pseudolikelihood",
            Self::Composite => "composite",
        }
    }
}

/// What the first guess learns from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuessTarget {
    /// The energy, by the reverse divergence E_q[L − u]: the paper's game.
    Energy,
    /// The data, by its evidence bound E[log q(x | z) + log q(z) − log r(z | x)]: not the paper's. The energy
    /// still decides what a draw weighs.
    #[default]
    Data,
}

/// What the energy is a change of: where its networks say nothing, sets have this law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetBase {
    /// N(0, s₀² I) of every element.
    Gaussian,
    /// The first guess: the energy says how sets differ from it.
    #[default]
    Guess,
}

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
    /// A hidden variable for the set, and elements of one flow, independent given it.
    Hierarchical,
    /// A hidden variable for the set, and elements of one mixture of Gaussians, independent given it.
    #[default]
    Mixture,
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
    /// Gaussians of the part of an element's energy that the summary writes, log Σ_m π_m N(x; μ_m, T_m T_mᵀ);
    /// 0 for none. Without a guess as its base a smooth network alone stays blunt for long.
    pub energy_components: usize,
    /// What the energy learns from.
    pub estimator: SetEstimator,
    /// K, candidates for one element given the others, half of them around its own place.
    pub num_candidates: usize,
    /// How the energy uses draws of the guess.
    pub negative_phase: NegativePhase,
    /// Sets that the guess draws for a step of the energy.
    pub num_draws: usize,
    /// Coordinates are multiplied by this before the networks read them: a smooth network sees no
    /// detail much finer than 1.
    pub input_scale: f64,
    /// What the energy is a change of.
    pub base: SetBase,
    /// s₀ of the Gaussian base measure, which makes Z finite; half the box of candidates for one element.
    pub base_std_dev: f64,
    /// How the first guess of a set is drawn.
    pub generator: GeneratorKind,
    /// What it learns from.
    pub guess_target: GuessTarget,
    /// Gaussians of a set; mixture only.
    pub num_components: usize,
    /// Steps in which the weight of log q(z) − log r(z | x) grows to 1, where the guess learns from data.
    pub kl_warm_up: u64,
    /// Size of the hidden variable; not recurrent.
    pub hidden_dim: usize,
    /// Couplings between the hidden variable and a standard normal one; without any it is standard normal.
    pub num_couplings: usize,
    /// Width of the generator's networks.
    pub generator_width: usize,
    /// Planar layers of each of its elements; not of a mixture.
    pub generator_layers: usize,
    /// Elements that the generator draws at once; recurrent only.
    pub block_size: usize,
    /// T, Langevin steps on the whole set after the generator.
    pub num_dynamics_steps: usize,
    /// η of those steps at the start, and of steps after training; the noise has standard deviation √η at the
    /// start.
    pub step_size: f64,
    /// How the way back of a step is measured, in L.
    pub reverse_kernel: ReverseKernel,
    /// The drift's gradient is clipped to this, coordinate by coordinate.
    pub clip: f64,
    /// Learning rate of the energy, falling along half a cosine.
    pub learning_rate: f64,
    /// Adam's β1 of the energy: 0 where it plays against a guess that follows it, as momentum overshoots.
    pub beta1: f64,
    /// Learning rate of generator, step sizes and noises; falls to 40 % of itself where they follow the energy,
    /// to 5 % where they learn from data.
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
            energy_components: 0,
            estimator: SetEstimator::Ade,
            num_candidates: 32,
            negative_phase: NegativePhase::Weighted,
            num_draws: 256,
            input_scale: 3.0,
            base: SetBase::Guess,
            base_std_dev: 1.5,
            generator: GeneratorKind::Mixture,
            guess_target: GuessTarget::Data,
            num_components: 8,
            kl_warm_up: 400,
            hidden_dim: 6,
            num_couplings: 0,
            generator_width: 128,
            generator_layers: 4,
            block_size: 1,
            num_dynamics_steps: 0,
            step_size: 5e-4,
            reverse_kernel: ReverseKernel::Langevin,
            clip: 100.0,
            learning_rate: 2e-3,
            beta1: 0.9,
            generator_learning_rate: 3e-3,
            generator_updates: 1,
            gradient_penalty: 0.0,
            max_gradient_norm: 5.0,
            average_decay: 0.99,
        }
    }
}

impl SetEnergyConfig {
    /// The same with the game as published: a flow or an LSTM that follows the energy through Langevin steps,
    /// whose way back is a random walk, and draws that are not weighed.
    #[must_use]
    pub fn as_published(self) -> Self {
        Self {
            energy_components: 0,
            base: SetBase::Gaussian,
            estimator: SetEstimator::Ade,
            negative_phase: NegativePhase::Plain,
            num_draws: 32,
            generator: GeneratorKind::Hierarchical,
            guess_target: GuessTarget::Energy,
            generator_width: 64,
            num_dynamics_steps: 3,
            reverse_kernel: ReverseKernel::RandomWalk,
            clip: 50.0,
            learning_rate: 3e-4,
            beta1: 0.0,
            generator_learning_rate: 1e-3,
            generator_updates: 3,
            gradient_penalty: 1e-3,
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        for (field, count) in [
            ("element_dim", self.element_dim),
            ("num_heads", self.num_heads),
            ("hidden_dim", self.hidden_dim),
            ("generator_width", self.generator_width),
            ("generator_layers", self.generator_layers),
            ("block_size", self.block_size),
            ("generator_updates", self.generator_updates),
            ("num_components", self.num_components),
            ("num_draws", self.num_draws),
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
        if self.num_candidates < 8 {
            return Err(Error::invalid("num_candidates", "at least 8", self.num_candidates));
        }
        if !(0.0..1.0).contains(&self.beta1) {
            return Err(Error::invalid("beta1", "in [0, 1)", self.beta1));
        }
        if self.guess_target == GuessTarget::Data && self.generator != GeneratorKind::Mixture {
            let expected =
                "`energy` for this generator: only a mixture knows its density at the data";
            return Err(Error::invalid("guess_target", expected, "data"));
        }
        if self.base == SetBase::Guess && self.guess_target != GuessTarget::Data {
            let expected = "`gaussian` where the guess follows the energy: it would follow itself";
            return Err(Error::invalid("base", expected, "guess"));
        }
        if self.base == SetBase::Guess {
            if self.estimator != SetEstimator::Ade {
                let expected =
                    "`ade` for the base `guess`, which has no law of one element given others";
                return Err(Error::invalid("estimator", expected, self.estimator.name()));
            }
            if self.negative_phase != NegativePhase::Weighted {
                let expected = "`weighted` for the base `guess`: as they are, its draws say nothing of the energy";
                return Err(Error::invalid("negative_phase", expected, "plain"));
            }
            if self.num_dynamics_steps > 0 {
                let expected = "0 for the base `guess`, whose density is known together with its hidden \
                                variable alone";
                return Err(Error::invalid(
                    "num_dynamics_steps",
                    expected,
                    self.num_dynamics_steps,
                ));
            }
        }
        if self.num_couplings > 0 && self.hidden_dim < 2 {
            let expected = "0 for a hidden variable of one number, which a coupling cannot split";
            return Err(Error::invalid("num_couplings", expected, self.num_couplings));
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
