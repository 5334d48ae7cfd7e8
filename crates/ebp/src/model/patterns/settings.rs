//! The settings of models of point patterns.

use serde::{Deserialize, Serialize};

use crate::pattern::{
    DeepSetsShape, DppKernel, Family, Interaction, LikelihoodSettings, Moves, Regression, Trend,
};
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
    /// How chains of a Gibbs process move points, beside births and deaths.
    pub sampler: PatternSampler,
    /// How points act on each other.
    pub interaction: InteractionSettings,
    /// The kernel of a determinantal process.
    pub dpp: DppSettings,
    /// Where the patterns come from.
    pub data: PatternDataSettings,
    /// Of `method = "maximum-likelihood"`.
    pub likelihood: LikelihoodEffort,
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
    /// Networks of the set of a point's neighbours.
    Deepsets,
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
            Self::Deepsets => "deepsets",
            Self::Dpp => "dpp",
            Self::Hawkes => "hawkes",
        }
    }

    /// Whether no two points may be within a distance of each other.
    pub(super) fn has_hard_core(self) -> bool {
        matches!(self, Self::Hardcore | Self::StraussHardcore)
    }
}

/// How chains move points, beside births and deaths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatternSampler {
    /// One at a time, to any place.
    #[default]
    Points,
    /// All at once by Langevin steps, as energies of whole sets are drawn.
    Langevin,
}

impl PatternSampler {
    pub(super) fn moves(self) -> Moves {
        match self {
            Self::Points => Moves::Points,
            Self::Langevin => Moves::Langevin,
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
    /// r of Strauss, Geyer and area; where the potential of `pairwise` ends, and who is a neighbour in
    /// `deepsets`.
    pub radius: f64,
    /// h of hard cores; 0: n/(n + 1) of the least distance of the data.
    pub hard_core: f64,
    /// s of Geyer.
    pub saturation: f64,
    /// Where networks of the distance are read (`pairwise`, `deepsets`).
    pub num_knots: usize,
    /// What `deepsets` adds up over neighbours.
    pub num_features: usize,
    /// Units of the networks' hidden layers.
    pub width: usize,
    /// Of their squared weights.
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
            num_features: 1,
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

/// How much is simulated for a maximum likelihood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LikelihoodEffort {
    /// Patterns of a round.
    pub num_patterns: usize,
    /// Chains that they are read from.
    pub num_chains: usize,
    /// Rounds at most.
    pub num_rounds: usize,
}

impl Default for LikelihoodEffort {
    fn default() -> Self {
        let LikelihoodSettings { num_patterns, num_chains, num_rounds, .. } =
            LikelihoodSettings::default();
        Self { num_patterns, num_chains, num_rounds }
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
            sampler: PatternSampler::Points,
            interaction: InteractionSettings::default(),
            dpp: DppSettings::default(),
            data: PatternDataSettings::default(),
            likelihood: LikelihoodEffort::default(),
            evaluation: PatternEvaluation::default(),
            train: TrainerConfig { num_steps: 1, ..TrainerConfig::default() },
        }
    }
}

impl PatternSettings {
    /// Refuses what would be read by nobody.
    pub(in crate::model) fn check(&self) -> Result<()> {
        use PatternProcess as P;
        let name = self.process.name();
        let is_network = matches!(self.process, P::Pairwise | P::Deepsets);
        let is_other = matches!(self.process, P::Dpp | P::Hawkes);
        let refused = |message: String, name: &str| {
            Err(Error::refused(message).with_help(format!("leave `{name}` out")))
        };
        if is_other && self.method != PatternMethod::Pseudolikelihood {
            return refused(format!("`{name}` has one way of fitting"), "method");
        }
        if is_network && self.method == PatternMethod::Logistic {
            return refused(format!("`{name}` has no logistic fit"), "method");
        }
        if (is_other || self.process == P::Poisson) && self.sampler != PatternSampler::Points {
            return refused(format!("`{name}` is drawn without a chain"), "sampler");
        }
        if (is_network || is_other) && self.interaction.trend {
            return refused(format!("`{name}` has no trend"), "interaction.trend");
        }
        let LikelihoodEffort { num_patterns, num_chains, num_rounds } = self.likelihood;
        // Errors of log Z are told by differences of chains.
        for (name, count, least) in [
            ("likelihood.num_patterns", num_patterns, 8),
            ("likelihood.num_chains", num_chains, 2),
            ("likelihood.num_rounds", num_rounds, 1),
        ] {
            if count < least {
                return Err(Error::invalid(name, format!("at least {least}"), count));
            }
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
            PatternProcess::Poisson
            | PatternProcess::Deepsets
            | PatternProcess::Dpp
            | PatternProcess::Hawkes => Interaction::None,
        };
        Family { trend: if trend { Trend::LogLinear } else { Trend::Constant }, interaction }
    }

    pub(super) fn deep_sets(&self) -> DeepSetsShape {
        let InteractionSettings { radius, num_knots, num_features, width, .. } = self.interaction;
        DeepSetsShape { reach: radius, num_knots, num_features, width }
    }
}
