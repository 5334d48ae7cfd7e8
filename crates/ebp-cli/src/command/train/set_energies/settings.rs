//! The settings of `ebp train` for energies of whole sets.

use ebp::process::SetEnergyConfig;
use ebp::train::TrainerConfig;
use serde::{Deserialize, Serialize};

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// `set-energies`: what these settings are for.
    pub(crate) kind: Kind,
    /// Seed of all random numbers.
    pub(crate) seed: u64,
    /// How it is judged.
    pub(crate) evaluation: EvaluationSettings,
    /// Where the sets come from.
    pub(crate) data: DataSettings,
    /// The energy and its sampler.
    pub(crate) model: SetEnergyConfig,
    /// The loop.
    pub(crate) train: TrainerConfig,
}

/// What settings are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Energies of whole sets, without a latent.
    #[default]
    SetEnergies,
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EvaluationSettings {
    /// Generated and held-out sets are compared, quickly, after so many steps.
    pub(crate) every: u64,
    /// Generated sets, and as many held-out ones.
    pub(crate) num_sets: usize,
    /// Langevin steps with falling noise after the trained sampler.
    pub(crate) num_refining: usize,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self { every: 500, num_sets: 200, num_refining: 0 }
    }
}

/// Where the sets come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DataSettings {
    /// `sticks`, `rings`, a class of built-in shapes, or a file or folder of clouds.
    pub(crate) source: String,
    /// Sets per step.
    pub(crate) num_sets: usize,
    /// Elements of each set.
    pub(crate) set_size: usize,
    /// Clouds of a class or file that are learned from; the others are held out.
    pub(crate) num_training: usize,
}

impl Default for DataSettings {
    fn default() -> Self {
        Self { source: "sticks".into(), num_sets: 32, set_size: 16, num_training: 500 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::SetEnergies,
            seed: 1,
            evaluation: EvaluationSettings::default(),
            data: DataSettings::default(),
            model: SetEnergyConfig::default(),
            train: TrainerConfig { num_steps: 2000, ..TrainerConfig::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebp::config::Layers;
    use ebp::model::PRESETS;

    #[test]
    fn the_presets_are_complete() {
        for preset in ["sticks", "sticks-attention", "rings"] {
            let layers =
                Layers { presets: PRESETS, preset: Some(preset.into()), ..Layers::default() };
            let settings = layers.resolve::<Settings>().map_err(|failure| format!("{failure:?}"));
            assert!(settings.is_ok(), "{settings:?}");
        }
    }
}
