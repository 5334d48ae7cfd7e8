//! The settings of `ebp train`.

use ebp::process::EnergyBasedConfig;
use ebp::train::{TaskConfig, TrainerConfig};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use ebp::config::Layers;
use ebp::model::PRESETS;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// `curves`: what these settings are for.
    pub(crate) kind: Kind,
    /// Seed of all random numbers.
    pub(crate) seed: u64,
    /// How it is judged.
    pub(crate) evaluation: EvaluationSettings,
    /// Where the sets come from.
    pub(crate) data: DataSettings,
    /// What a step learns from.
    pub(crate) tasks: TaskConfig,
    /// The energy-based process.
    pub(crate) model: EnergyBasedConfig,
    /// The loop.
    pub(crate) train: TrainerConfig,
}

/// What settings are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Sets of values at locations.
    #[default]
    Curves,
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EvaluationSettings {
    /// What is held out is looked at, quickly, after so many steps.
    pub(crate) every: u64,
    /// Fresh sets of built-in curves at the end, or the most held-out sets of a table.
    pub(crate) num_sets: usize,
    /// Fresh elements of each set of built-in curves.
    pub(crate) num_locations: usize,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self { every: 500, num_sets: 20, num_locations: 100 }
    }
}

/// Where the sets come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DataSettings {
    /// Built-in curves by name, or the path of a CSV file.
    pub(crate) source: String,
    /// The column of the table that names the set; none: `set`, if there is such a column.
    pub(crate) set_column: Option<String>,
    /// The columns of the locations; none: `t`, or `t1`, `t2`, ….
    pub(crate) location_columns: Vec<String>,
    /// The columns of the values; none: `x`, or `x1`, `x2`, ….
    pub(crate) value_columns: Vec<String>,
    /// The share of a table's sets (or of its elements, if there are few sets) that is not
    /// learned from but predicted at the end.
    pub(crate) held_out: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Curves,
            seed: 1,
            evaluation: EvaluationSettings::default(),
            data: DataSettings::default(),
            tasks: TaskConfig::default(),
            model: EnergyBasedConfig::default(),
            train: TrainerConfig { num_steps: 1200, ..TrainerConfig::default() },
        }
    }
}

impl Default for DataSettings {
    fn default() -> Self {
        Self {
            source: "sines".into(),
            set_column: None,
            location_columns: Vec::new(),
            value_columns: Vec::new(),
            held_out: 0.1,
        }
    }
}

/// The settings of a preset, with another seed.
pub(crate) fn preset_settings(name: &str, seed: u64) -> Result<Settings, Failure> {
    let layers = Layers {
        presets: PRESETS,
        preset: Some(name.to_owned()),
        assignments: vec![format!("seed={seed}")],
        ..Layers::default()
    };
    Ok(layers.resolve::<Settings>()?.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_complete_set_of_settings() {
        for (name, text) in PRESETS {
            if text.lines().any(|line| line.starts_with("kind =")) {
                continue; // another module's
            }
            let settings = preset_settings(name, 7).map_err(|failure| format!("{failure:?}"));
            assert_eq!(settings.map(|settings| settings.seed), Ok(7), "{name}");
        }
    }
}
