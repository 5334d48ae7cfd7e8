//! The settings of energies of whole sets.

use serde::{Deserialize, Serialize};

use crate::process::{Refining, SetEnergyConfig};
use crate::train::TrainerConfig;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetEnergySettings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// How it is judged.
    pub evaluation: SetEnergyEvaluation,
    /// Where the sets come from.
    pub data: SetEnergyDataSettings,
    /// The energy and its sampler.
    pub model: SetEnergyConfig,
    /// The loop.
    pub train: TrainerConfig,
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetEnergyEvaluation {
    /// Generated and held-out sets are compared, quickly, after so many steps.
    pub every: u64,
    /// Generated sets, and as many held-out ones.
    pub num_sets: usize,
    /// First guesses for a generated set, of which one is kept, by its weight.
    pub num_guesses: usize,
    /// Langevin steps after it, accepted or rejected, which bring it to the energy's law.
    pub num_refining: usize,
}

impl SetEnergyEvaluation {
    pub(crate) fn refining(&self) -> Refining {
        Refining { num_guesses: self.num_guesses, num_steps: self.num_refining }
    }
}

impl Default for SetEnergyEvaluation {
    fn default() -> Self {
        Self { every: 500, num_sets: 200, num_guesses: 8, num_refining: 100 }
    }
}

/// The law of the number of elements of sets that are learned from. The model keeps it as a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetSizes {
    /// `set_size` for all.
    #[default]
    Fixed,
    /// Every number from `least_size` to `set_size` is as likely.
    Uniform,
    /// Poisson with mean `set_size`, given that it is at least `least_size`.
    Poisson,
    /// Those of the clouds, which are then learned from as a whole.
    Own,
}

/// Where the sets come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetEnergyDataSettings {
    /// `sticks`, `rings`, a class of built-in shapes, or a file or folder of clouds.
    pub source: String,
    /// Sets per step.
    pub num_sets: usize,
    /// Elements of each set that the model is judged by, and of each that it learns from unless `sizes` says
    /// otherwise.
    pub set_size: usize,
    /// The law of the number of elements.
    pub sizes: SetSizes,
    /// The fewest elements of a set whose size is random.
    pub least_size: usize,
    /// Clouds of a class or file that are learned from; the others are held out.
    pub num_training: usize,
}

impl Default for SetEnergyDataSettings {
    fn default() -> Self {
        Self {
            source: "sticks".into(),
            num_sets: 32,
            set_size: 16,
            sizes: SetSizes::Fixed,
            least_size: 4,
            num_training: 500,
        }
    }
}

impl Default for SetEnergySettings {
    fn default() -> Self {
        Self {
            seed: 1,
            evaluation: SetEnergyEvaluation::default(),
            data: SetEnergyDataSettings::default(),
            model: SetEnergyConfig::default(),
            train: TrainerConfig { num_steps: 1500, ..TrainerConfig::default() },
        }
    }
}
