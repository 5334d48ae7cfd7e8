//! The settings of models of point patterns.

use serde::{Deserialize, Serialize};

use crate::pattern::{DppKernel, Family, Interaction, PairNetworkSettings, Regression, Trend};
use crate::train::TrainerConfig;
use crate::{Error, Result};

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatternSettings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// What is fitted.
    pub process: PatternProcess,
    /// How a Gibbs process is fitted.
    pub method: PatternMethod,
    /// How points act on each other.
    pub interaction: InteractionSettings,
    /// The kernel of a determinantal process.
    pub dpp: DppSettings,
    /// Where the patterns come from.
    pub data: PatternDataSettings,
    /// How it is judged.
    pub evaluation: PatternEvaluation,
    /// The loop; a fit is one step.
    pub train: TrainerConfig,
}

/// A process of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatternProcess {
    /// No interaction.
    Poisson,
    /// Pairs within the radius count.
    Strauss,
    /// No pair within the hard core.
    Hardcore,
    /// Both.
    StraussHardcore,
    /// Neighbours count up to a saturation.
    Geyer,
    /// The area that discs cover counts.
    Area,
    /// A network of the distance.
    Pairwise,
    /// Determinantal.
    Dpp,
    /// Events in time.
    Hawkes,
}

impl PatternProcess {
    /// The name under which results are reported.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Strauss => "strauss",
            Self::Hardcore => "hardcore",
            Self::StraussHardcore => "strauss-hardcore",
            Self::Geyer => "geyer",
            Self::Area => "area",
            Self::Pairwise => "pairwise",
            Self::Dpp => "dpp",
            Self::Hawkes => "hawkes",
        }
    }
}

/// What is maximised for a Gibbs process. The others have one way each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatternMethod {
    /// The pseudolikelihood, with spatstat's quadrature.
    Pseudolikelihood,
    /// The logistic composite likelihood.
    Logistic,
    /// The likelihood, by simulation.
    MaximumLikelihood,
}

impl PatternMethod {
    /// The regression that it starts with.
    pub(super) fn regression(self) -> Regression {
        match self {
            Self::Logistic => Regression::Logistic,
            _ => Regression::Pseudolikelihood,
        }
    }
}

/// How points act on each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InteractionSettings {
    /// Whether log λ is linear in x and y beside the interaction.
    pub trend: bool,
    /// r of Strauss, Geyer and area; where the potential of `pairwise` ends.
    pub radius: f64,
    /// h of hard cores; 0: n/(n + 1) of the least distance of the data.
    pub hard_core: f64,
    /// s of Geyer.
    pub saturation: f64,
    /// Where the network of `pairwise` is read.
    pub num_knots: usize,
    /// Units of both its hidden layers.
    pub width: usize,
    /// Of its squared weights.
    pub decay: f64,
}

impl Default for InteractionSettings {
    fn default() -> Self {
        Self {
            trend: false,
            radius: 0.1,
            hard_core: 0.0,
            saturation: 2.0,
            num_knots: 30,
            width: 8,
            decay: 1.0,
        }
    }
}

/// The kernel of a determinantal process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DppSettings {
    /// Its form.
    pub kernel: KernelName,
    /// ν of Matérn and Cauchy.
    pub shape: f64,
}

/// A form of kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelName {
    /// exp(−s²).
    Gaussian,
    /// Whittle and Matérn's.
    Matern,
    /// A power.
    Cauchy,
}

impl KernelName {
    pub(super) fn kernel(self) -> DppKernel {
        match self {
            Self::Gaussian => DppKernel::Gaussian,
            Self::Matern => DppKernel::Matern,
            Self::Cauchy => DppKernel::Cauchy,
        }
    }
}

impl Default for DppSettings {
    fn default() -> Self {
        Self { kernel: KernelName::Gaussian, shape: 2.0 }
    }
}

/// Where the patterns come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatternDataSettings {
    /// `simulated`: from known coefficients in the unit square; or a file or folder of patterns; of `hawkes`
    /// a file of times.
    pub source: String,
    /// How many are simulated.
    pub num_patterns: usize,
    /// Until when events were watched; 0: the last one.
    pub end: f64,
}

impl Default for PatternDataSettings {
    fn default() -> Self {
        Self { source: "simulated".into(), num_patterns: 10, end: 0.0 }
    }
}

/// How a model is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatternEvaluation {
    /// Simulated patterns of envelopes: 39 make the ends of the range a test at 5 %.
    pub num_envelope: usize,
    /// Simulated patterns that tell standard errors.
    pub num_errors: usize,
    /// Proposals of a chain, per point of the data.
    pub steps_per_point: usize,
}

impl Default for PatternEvaluation {
    fn default() -> Self {
        Self { num_envelope: 39, num_errors: 200, steps_per_point: 500 }
    }
}

impl Default for PatternSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            process: PatternProcess::Strauss,
            method: PatternMethod::Pseudolikelihood,
            interaction: InteractionSettings::default(),
            dpp: DppSettings::default(),
            data: PatternDataSettings::default(),
            evaluation: PatternEvaluation::default(),
            train: TrainerConfig { num_steps: 1, ..TrainerConfig::default() },
        }
    }
}

impl PatternSettings {
    /// Refuses what would be read by nobody.
    pub(super) fn check(&self) -> Result<()> {
        use PatternProcess as P;
        let has_method = !matches!(self.process, P::Pairwise | P::Dpp | P::Hawkes);
        if !has_method && self.method != PatternMethod::Pseudolikelihood {
            let message = format!("`{}` has one way of fitting", self.process.name());
            return Err(Error::refused(message).with_help("leave `method` out"));
        }
        if !has_method && self.interaction.trend {
            let message = format!("`{}` has no trend", self.process.name());
            return Err(Error::refused(message).with_help("leave `interaction.trend` out"));
        }
        if self.data.num_patterns == 0 {
            return Err(Error::invalid("data.num_patterns", "at least 1", 0));
        }
        Ok(())
    }

    /// The form of a Gibbs process; `hard_core` is what the data gave if none was set.
    pub(super) fn family(&self, hard_core: f64) -> Family {
        let InteractionSettings { trend, radius, saturation, num_knots, .. } = self.interaction;
        let interaction = match self.process {
            PatternProcess::Strauss => Interaction::Strauss { radius },
            PatternProcess::Hardcore => Interaction::HardCore { radius: hard_core },
            PatternProcess::StraussHardcore => Interaction::StraussHardCore { radius, hard_core },
            PatternProcess::Geyer => Interaction::Geyer { radius, saturation },
            PatternProcess::Area => Interaction::Area { radius },
            PatternProcess::Pairwise => Interaction::Pairwise { reach: radius, num_knots },
            PatternProcess::Poisson | PatternProcess::Dpp | PatternProcess::Hawkes => {
                Interaction::None
            }
        };
        Family { trend: if trend { Trend::LogLinear } else { Trend::Constant }, interaction }
    }

    pub(super) fn network(&self) -> PairNetworkSettings {
        let InteractionSettings { radius, num_knots, width, decay, .. } = self.interaction;
        PairNetworkSettings { reach: radius, num_knots, width, decay }
    }
}
