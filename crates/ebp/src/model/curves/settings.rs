//! The settings of models of curves and tables.

use serde::{Deserialize, Serialize};

use super::rivals::{ExactSettings, ImplicitSettings};
use crate::model::NeuralSettings;
use crate::recipe::EnergyBasedConfig;
use crate::train::{TaskConfig, TrainerConfig};

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CurveSettings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Which process learns.
    pub process: CurveProcess,
    /// How it is judged.
    pub evaluation: CurveEvaluation,
    /// Where the sets come from.
    pub data: CurveDataSettings,
    /// What a step learns from.
    pub tasks: TaskConfig,
    /// The energy-based process.
    pub model: EnergyBasedConfig,
    /// The neural processes.
    pub neural: NeuralSettings,
    /// The variational implicit process.
    pub implicit: ImplicitSettings,
    /// The Gaussian and the Student-t process.
    pub exact: ExactSettings,
    /// The loop.
    pub train: TrainerConfig,
}

impl CurveSettings {
    /// Elements of a step of training on built-in curves, context and target together.
    pub fn elements_per_step(&self) -> u64 {
        self.tasks.num_sets as u64 * self.tasks.set_size as u64
    }
}

/// A process of curves by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurveProcess {
    /// The energy-based process, with the estimator that `model.estimator` names.
    EnergyBased,
    /// The conditional neural process.
    Cnp,
    /// The neural process.
    Np,
    /// The attentive neural process.
    Anp,
    /// The variational implicit process.
    Vip,
    /// The Gaussian process; its one step fits all hyperparameters.
    Gp,
    /// The Student-t process, fitted likewise.
    Tp,
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CurveEvaluation {
    /// What is held out is looked at, quickly, after so many steps.
    pub every: u64,
    /// Fresh sets of built-in curves at the end, or the most held-out sets of a table.
    pub num_sets: usize,
    /// Fresh elements of each set of built-in curves.
    pub num_locations: usize,
}

impl Default for CurveEvaluation {
    fn default() -> Self {
        Self { every: 500, num_sets: 20, num_locations: 100 }
    }
}

/// Where the sets come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CurveDataSettings {
    /// Built-in curves by name, or the path of a CSV file.
    pub source: String,
    /// The column of the table that names the set; none: `set`, if there is such a column.
    pub set_column: Option<String>,
    /// The columns of the locations; none: `t`, or `t1`, `t2`, ….
    pub location_columns: Vec<String>,
    /// The columns of the values; none: `x`, or `x1`, `x2`, ….
    pub value_columns: Vec<String>,
    /// The share of a table's sets (or of its elements, if there are few sets) that is not
    /// learned from but predicted at the end.
    pub held_out: f64,
}

impl Default for CurveSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            process: CurveProcess::EnergyBased,
            evaluation: CurveEvaluation::default(),
            data: CurveDataSettings::default(),
            tasks: TaskConfig::default(),
            model: EnergyBasedConfig::default(),
            neural: NeuralSettings::default(),
            implicit: ImplicitSettings::default(),
            exact: ExactSettings::default(),
            train: TrainerConfig { num_steps: 1200, ..TrainerConfig::default() },
        }
    }
}

impl Default for CurveDataSettings {
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
