//! The settings of training on pictures.

use ebp::point::Activation;
use ebp::process::{DiscreteConfig, EnergyBasedConfig, PosteriorPooling};
use ebp::train::{PictureTaskConfig, TrainerConfig};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use ebp::config::Layers;
use ebp::model::PRESETS;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// `pictures`: what these settings are for.
    pub(crate) kind: Kind,
    /// Seed of all random numbers.
    pub(crate) seed: u64,
    /// Which process learns.
    pub(crate) process: ProcessName,
    /// How it is judged.
    pub(crate) evaluation: EvaluationSettings,
    /// Where the pictures come from.
    pub(crate) data: DataSettings,
    /// What a step learns from.
    pub(crate) tasks: PictureTaskConfig,
    /// The energy-based process.
    pub(crate) model: DiscreteConfig,
    /// The energy-based process of `importance` and `ade`.
    pub(crate) element_model: EnergyBasedConfig,
    /// The neural processes.
    pub(crate) rival: RivalSettings,
    /// The loop.
    pub(crate) train: TrainerConfig,
}

/// What settings are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Sets of pixels.
    #[default]
    Pictures,
}

/// A process of pictures by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProcessName {
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
}

impl ProcessName {
    /// All of them, ours first.
    pub(crate) const ALL: [Self; 6] =
        [Self::Exact, Self::Importance, Self::Ade, Self::Cnp, Self::Np, Self::Anp];

    /// The name under which results are reported.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "ebp-exact",
            Self::Importance => "ebp-importance",
            Self::Ade => "ebp-ade",
            Self::Cnp => "cnp",
            Self::Np => "np",
            Self::Anp => "anp",
        }
    }
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EvaluationSettings {
    /// Pictures that are not learned from are looked at, quickly, after so many steps.
    pub(crate) every: u64,
    /// Held-out pictures at the end.
    pub(crate) num_pictures: usize,
    /// Draws of θ per picture.
    pub(crate) num_draws: usize,
    /// What is given: a number of random pixels, `top`, `bottom`, `left`, `right`, `hole-SIDE`.
    pub(crate) parts: Vec<String>,
    /// Which of them are drawn, each with what is given and three completions.
    pub(crate) drawn: Vec<String>,
    /// What the columns of the figure are.
    pub(crate) columns: FigureColumns,
    /// Whether a classifier is trained on labelled pictures to say what completions show.
    pub(crate) classifies: bool,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Self {
            every: 500,
            num_pictures: 200,
            num_draws: 20,
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
pub(crate) enum FigureColumns {
    /// Pictures, and below each what was made of it: the paper's figure of MNIST.
    Pictures,
    /// Known parts of one picture, from little to much: the paper's figure of `CelebA`.
    Parts,
}

/// Where the pictures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DataSettings {
    /// `digits`, which are drawn by the program; or MNIST's folder, a folder or zip of pictures.
    pub(crate) source: String,
    /// The side of drawn digits, and to which other pictures are resized; 0 leaves them.
    pub(crate) side: usize,
    /// Whether colours become shades of grey.
    pub(crate) is_grey: bool,
    /// The centred square whose side is this share of the width is kept; 0 keeps all.
    pub(crate) crop_share: f64,
    /// Pictures to learn from, at most; 0 for all.
    pub(crate) num_training: usize,
    /// Pictures that are held out where the source has no test set of its own.
    pub(crate) num_test: usize,
}

/// Sizes of the neural processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RivalSettings {
    /// Width of encoders and decoders.
    pub(crate) width: usize,
    /// Size of z.
    pub(crate) latent_dim: usize,
    /// Unknown pixels per picture that a step asks for.
    pub(crate) max_target: usize,
    /// The learning rate at the start.
    pub(crate) learning_rate: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Pictures,
            seed: 1,
            process: ProcessName::Exact,
            evaluation: EvaluationSettings::default(),
            data: DataSettings::default(),
            tasks: PictureTaskConfig::default(),
            model: DiscreteConfig::default(),
            element_model: element_model(),
            rival: RivalSettings::default(),
            train: TrainerConfig { num_steps: 2000, ..TrainerConfig::default() },
        }
    }
}

/// The paper's sizes: encoder {128, 256, 256, 512}, max pooling beside the mean.
fn element_model() -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 128,
        encoder_widths: vec![128, 256, 256, 512],
        pooling: PosteriorPooling::MaxAndMean,
        head_widths: vec![256],
        energy_widths: vec![128, 128],
        activation: Activation::Silu,
        location_frequencies: 6,
        num_proposals: 64,
        kl_warm_up: 500,
        learning_rate: 1e-3,
        max_gradient_norm: 2.0,
        ..EnergyBasedConfig::default()
    }
}

impl Default for DataSettings {
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

impl Default for RivalSettings {
    fn default() -> Self {
        Self { width: 128, latent_dim: 64, max_target: 128, learning_rate: 2e-3 }
    }
}

/// The settings of a preset, with changes on top.
pub(crate) fn preset_settings(name: &str, changes: Vec<String>) -> Result<Settings, Failure> {
    let layers = Layers {
        presets: PRESETS,
        preset: Some(name.to_owned()),
        assignments: changes,
        ..Layers::default()
    };
    Ok(layers.resolve::<Settings>()?.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_of_pictures_is_a_complete_set_of_settings() {
        let mut count = 0;
        for (name, text) in PRESETS {
            if text.lines().any(|line| line == "kind = \"pictures\"") {
                let settings = preset_settings(name, vec!["seed=7".into()]);
                let settings = settings.map_err(|failure| format!("{failure:?}"));
                assert_eq!(settings.map(|settings| settings.seed), Ok(7), "{name}");
                count += 1;
            }
        }
        assert!(count >= 3);
    }
}
