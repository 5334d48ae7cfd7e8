//! The settings of training on pictures.

use serde::{Deserialize, Serialize};

use crate::model::NeuralSettings;
use crate::point::Activation;
use crate::recipe::{
    EnergyBasedConfig, EnergyForm, Estimator, PosteriorForm, PosteriorPooling, ProposalConfig,
    SamplerConfig,
};
use crate::train::{PictureTaskConfig, TrainerConfig};

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PictureSettings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Which process learns.
    pub process: PictureProcessName,
    /// How it is judged.
    pub evaluation: PictureEvaluation,
    /// Where the pictures come from.
    pub data: PictureDataSettings,
    /// What a step learns from.
    pub tasks: PictureTaskConfig,
    /// The energy-based process.
    pub model: EnergyBasedConfig,
    /// The energy-based process of `importance` and `ade`.
    pub element_model: EnergyBasedConfig,
    /// The neural processes.
    pub neural: NeuralSettings,
    /// Unknown pixels per picture that a step asks of a process which does not choose them itself.
    pub max_target: usize,
    /// The loop.
    pub train: TrainerConfig,
}

/// A process of pictures by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureProcessName {
    /// The energy-based process, normalised exactly over the levels.
    Exact,
    /// The energy-based process with a network over (x, t), log Z by importance sampling.
    Importance,
    /// The same, trained against a learned sampler: the paper's way.
    Ade,
    /// The conditional neural process.
    Cnp,
    /// The neural process.
    Np,
    /// The attentive neural process.
    Anp,
    /// The convolutional conditional neural process.
    Convcnp,
    /// The convolutional neural process with latents.
    Convnp,
}

impl PictureProcessName {
    /// All of them, ours first.
    pub const ALL: [Self; 8] = [
        Self::Exact,
        Self::Importance,
        Self::Ade,
        Self::Cnp,
        Self::Np,
        Self::Anp,
        Self::Convcnp,
        Self::Convnp,
    ];

    /// Whether it is an energy-based process.
    pub fn is_energy_based(self) -> bool {
        matches!(self, Self::Exact | Self::Importance | Self::Ade)
    }

    /// The name under which results are reported.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "ebp-exact",
            Self::Importance => "ebp-importance",
            Self::Ade => "ebp-ade",
            Self::Cnp => "cnp",
            Self::Np => "np",
            Self::Anp => "anp",
            Self::Convcnp => "convcnp",
            Self::Convnp => "convnp",
        }
    }
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PictureEvaluation {
    /// Pictures that are not learned from are looked at, quickly, after so many steps.
    pub every: u64,
    /// Held-out pictures at the end.
    pub num_pictures: usize,
    /// Draws of θ per picture.
    pub num_draws: usize,
    /// Portions in which unknown pixels are drawn, later ones given earlier ones; 0 for not at all.
    pub rounds: usize,
    /// The first so many held-out pictures are completed in rounds too.
    pub round_pictures: usize,
    /// Completions in rounds of each.
    pub round_draws: usize,
    /// What is given: a number of random pixels, `top`, `bottom`, `left`, `right`, `hole-SIDE`.
    pub parts: Vec<String>,
    /// Which of them are drawn, each with what is given and three completions.
    pub drawn: Vec<String>,
    /// What the columns of the figure are.
    pub columns: FigureColumns,
    /// Whether a classifier is trained on labelled pictures to say what completions show.
    pub classifies: bool,
}

impl Default for PictureEvaluation {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Self {
            every: 500,
            num_pictures: 200,
            num_draws: 20,
            rounds: 0,
            round_pictures: 50,
            round_draws: 8,
            parts: words(&["10", "50", "100", "300", "top"]),
            drawn: words(&["10", "100", "top"]),
            columns: FigureColumns::Pictures,
            classifies: true,
        }
    }
}

/// What stands side by side in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureColumns {
    /// Pictures, and below each what was made of it: the paper's figure of MNIST.
    Pictures,
    /// Known parts of one picture, from little to much: the paper's figure of `CelebA`.
    Parts,
}

/// Where the pictures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PictureDataSettings {
    /// `digits`, which are drawn by the program; or MNIST's folder, a folder or zip of pictures.
    pub source: String,
    /// The side of drawn digits, and to which other pictures are resized; 0 leaves them.
    pub side: usize,
    /// Whether colours become shades of grey.
    pub is_grey: bool,
    /// The centred square whose side is this share of the width is kept; 0 keeps all.
    pub crop_share: f64,
    /// Pictures to learn from, at most; 0 for all.
    pub num_training: usize,
    /// Pictures that are held out where the source has no test set of its own.
    pub num_test: usize,
}

impl Default for PictureSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            process: PictureProcessName::Exact,
            evaluation: PictureEvaluation::default(),
            data: PictureDataSettings::default(),
            tasks: PictureTaskConfig::default(),
            model: EnergyBasedConfig::pictures(),
            element_model: element_model(),
            neural: neural(),
            max_target: 128,
            train: TrainerConfig { num_steps: 2000, ..TrainerConfig::default() },
        }
    }
}

/// Networks of width 128.
fn neural() -> NeuralSettings {
    NeuralSettings {
        encoder_widths: vec![128; 2],
        representation_dim: 128,
        decoder_widths: vec![128; 3],
        embedding_widths: vec![128],
        latent_dim: 64,
        average_decay: 0.999,
        learning_rate: 2e-3,
        ..NeuralSettings::default()
    }
}

/// The paper's sizes: encoder {128, 256, 256, 512}, max pooling beside the mean.
fn element_model() -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 128,
        encoder_widths: vec![128, 256, 256, 512],
        posterior: PosteriorForm::DeepSets,
        pooling: PosteriorPooling::MaxAndMean,
        head_widths: vec![256],
        energy: EnergyForm::Element,
        energy_widths: vec![128, 128],
        activation: Activation::Silu,
        input_scale: 3.0,
        window: 0,
        smooths: false,
        blind: 0.0,
        value_frequencies: 0,
        estimator: Estimator::Importance,
        proposal: ProposalConfig::default(),
        // A black pixel is an interval of 2/256, narrower than components become in a short run.
        sampler: SamplerConfig { around_share: 0.3, ..SamplerConfig::default() },
        likelihood_points: 0,
        num_draws: 32,
        learning_rate: 1e-3,
        learning_rate_warm_up: 0,
        max_gradient_norm: 2.0,
        ..EnergyBasedConfig::pictures()
    }
}

impl Default for PictureDataSettings {
    fn default() -> Self {
        Self {
            source: "digits".into(),
            side: 28,
            is_grey: true,
            crop_share: 0.0,
            num_training: 10_000,
            num_test: 1000,
        }
    }
}
