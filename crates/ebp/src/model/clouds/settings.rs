//! The settings of models of clouds.

use serde::{Deserialize, Serialize};

use crate::data::ReportSplit;
use crate::recipe::EnergyBasedConfig;
use crate::train::TrainerConfig;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudSettings {
    /// Seed of all random numbers but the split.
    pub seed: u64,
    /// Clouds per step.
    pub batch_size: usize,
    /// Where the clouds come from.
    pub data: CloudDataSettings,
    /// How it is judged.
    pub evaluation: CloudEvaluation,
    /// The energy-based process.
    pub model: EnergyBasedConfig,
    /// The loop.
    pub train: TrainerConfig,
}

/// Where the clouds come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudDataSettings {
    /// Built-in shapes: airplane, chair, car, table, lamp or all; otherwise the path of a cache of
    /// `ebp data import`, of a file with clouds or of a folder of such files.
    pub source: String,
    /// How many built-in shapes.
    pub num_shapes: usize,
    /// Points of each.
    pub num_points: usize,
    /// Sets that are not learned from and that settings are chosen by, where the source does not say
    /// which.
    pub held_out: usize,
    /// Sets that neither training nor any choice sees, for reports, where the source does not say
    /// which; 0 for none.
    pub report: usize,
    /// Which of the disjoint groups of so many sets, from 1.
    pub report_part: usize,
    /// The split of the source that is reported on, where it has some of its own.
    pub report_on: ReportSplit,
    /// Seed of the drawn parts.
    pub split_seed: u64,
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudEvaluation {
    /// What is held out is looked at after so many steps.
    pub every: u64,
    /// At most so many held-out sets on the way and at the end, and as many samples; reports take
    /// all of theirs.
    pub num_sets: usize,
    /// Points of each set that distances are measured with.
    pub num_points: usize,
    /// Where θ of samples comes from.
    pub prior: PriorKind,
}

/// Laws of θ to draw new sets from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorKind {
    /// N(0, I), as the model was trained.
    Standard,
    /// A Gaussian fitted to the codes of the training sets: learned.
    Gaussian,
    /// A flow fitted to the codes of the training sets: learned.
    Flow,
    /// Kernels around the codes of the training sets, their widths learned.
    Kernel,
}

impl PriorKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Flow, Self::Gaussian, Self::Standard];

    /// As settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Gaussian => "gaussian",
            Self::Flow => "flow",
            Self::Kernel => "kernel",
        }
    }
}

impl Default for CloudSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            batch_size: 64,
            data: CloudDataSettings::default(),
            evaluation: CloudEvaluation::default(),
            model: EnergyBasedConfig::points(),
            train: TrainerConfig { record_every: 20, ..TrainerConfig::default() },
        }
    }
}

impl Default for CloudDataSettings {
    fn default() -> Self {
        Self {
            source: "chair".into(),
            num_shapes: 900,
            num_points: 2048,
            held_out: 100,
            report: 0,
            report_part: 1,
            report_on: ReportSplit::Test,
            split_seed: 1,
        }
    }
}

impl Default for CloudEvaluation {
    fn default() -> Self {
        Self { every: 2000, num_sets: 100, num_points: 2048, prior: PriorKind::Kernel }
    }
}
