//! The settings of processes with latents: rows of a table, or sets of vectors.

use serde::{Deserialize, Serialize};

use crate::process::bruno::BrunoConfig;
use crate::process::hidden_locations::HiddenLocationConfig;
use crate::process::statistician::StatisticianConfig;
use crate::train::TrainerConfig;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentSettings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Which process.
    pub process: LatentProcessName,
    /// How it is judged.
    pub evaluation: LatentEvaluation,
    /// Where the rows or sets come from.
    pub data: LatentDataSettings,
    /// Of `process = "gplvm"`.
    pub gplvm: GplvmSettings,
    /// Of `process = "bruno"`.
    pub bruno: BrunoConfig,
    /// Of `process = "statistician"`.
    pub statistician: StatisticianConfig,
    /// Of `process = "hidden-locations"`.
    pub hidden_locations: HiddenLocationConfig,
    /// The loop.
    pub train: TrainerConfig,
}

/// Which process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatentProcessName {
    /// Rows of a table at latent locations, by a Gaussian process.
    #[default]
    Gplvm,
    /// Sets of vectors, by exchangeable processes behind an invertible network.
    Bruno,
    /// Sets of vectors, by a context of the set and latents of its elements.
    Statistician,
    /// Sets of vectors, by an energy at locations that nobody saw.
    HiddenLocations,
}

impl LatentProcessName {
    /// As in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gplvm => "gplvm",
            Self::Bruno => "bruno",
            Self::Statistician => "statistician",
            Self::HiddenLocations => "hidden-locations",
        }
    }
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentEvaluation {
    /// Held-out sets are looked at, quickly, after so many steps.
    pub every: u64,
    /// Held-out sets, or rows, at the end.
    pub num_sets: usize,
    /// Draws of the latent of each set: the statistician's context, θ of hidden locations.
    pub num_draws: usize,
    /// Statistician: draws of the latent of each element, for each of these.
    pub num_inner: usize,
}

impl Default for LatentEvaluation {
    fn default() -> Self {
        Self { every: 500, num_sets: 200, num_draws: 64, num_inner: 16 }
    }
}

/// Where the rows or sets come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentDataSettings {
    /// Rows: `ring`, or a CSV file. Sets: `bent`, `families`, `arcs`, a file, folder or cache of clouds of any
    /// dimension, or MNIST's folder, whose sets are pictures of one class.
    pub source: String,
    /// Sets: clouds for the last judgement, in the place of those held out of `source`; may be empty.
    pub test: String,
    /// Sets per step.
    pub num_sets: usize,
    /// Elements of each set.
    pub set_size: usize,
    /// Sets or rows held out of `source`.
    pub held_out: usize,
    /// Seed of the choice of those.
    pub split_seed: u64,
    /// Rows: the column that is no number but what a row is called.
    pub label_column: String,
    /// Rows: whether columns are divided by their own standard deviation or by one for all.
    pub scale: TableScale,
}

/// How columns are brought to one scale; all are centred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableScale {
    /// Each by its own standard deviation.
    #[default]
    Columns,
    /// All by one.
    Whole,
}

impl Default for LatentDataSettings {
    fn default() -> Self {
        Self {
            source: "ring".into(),
            test: String::new(),
            num_sets: 32,
            set_size: 20,
            held_out: 40,
            split_seed: 0,
            label_column: "label".into(),
            scale: TableScale::Columns,
        }
    }
}

/// A kernel of the point estimate: a squared exponential with a length scale for every dimension, and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapKernel {
    /// The likeliest of the others.
    #[default]
    Best,
    /// Nothing more.
    Rbf,
    /// A linear part.
    Linear,
    /// An unknown level of every column.
    Level,
    /// Both.
    LinearLevel,
}

impl MapKernel {
    /// Those that are compared.
    pub(super) const ALL: [Self; 4] = [Self::Rbf, Self::Linear, Self::Level, Self::LinearLevel];

    /// Whether it has a linear part, and a level.
    pub(super) fn parts(self) -> [bool; 2] {
        [
            matches!(self, Self::Linear | Self::LinearLevel),
            matches!(self, Self::Level | Self::LinearLevel),
        ]
    }

    /// As in settings.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Rbf => "rbf",
            Self::Linear => "linear",
            Self::Level => "level",
            Self::LinearLevel => "linear-level",
        }
    }
}

/// Settings of the Gaussian-process latent variable model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GplvmSettings {
    /// q.
    pub latent_dim: usize,
    /// Whether locations have a variational posterior; a point estimate otherwise.
    pub is_bayesian: bool,
    /// Inducing points of the Bayesian model.
    pub num_inducing: usize,
    /// The kernel of the point estimate; the Bayesian model has the squared exponential alone.
    pub kernel: MapKernel,
    /// σ² at the start, of standardised columns.
    pub noise_variance: f64,
    /// Evaluations of the likelihood and its gradient per step.
    pub evaluations_per_step: usize,
}

impl Default for GplvmSettings {
    fn default() -> Self {
        Self {
            latent_dim: 2,
            is_bayesian: false,
            num_inducing: 30,
            kernel: MapKernel::Best,
            noise_variance: 0.1,
            evaluations_per_step: 100,
        }
    }
}

impl Default for LatentSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            process: LatentProcessName::Gplvm,
            evaluation: LatentEvaluation::default(),
            data: LatentDataSettings::default(),
            gplvm: GplvmSettings::default(),
            bruno: BrunoConfig::default(),
            statistician: StatisticianConfig::default(),
            hidden_locations: HiddenLocationConfig::default(),
            train: TrainerConfig { num_steps: 2000, ..TrainerConfig::default() },
        }
    }
}
