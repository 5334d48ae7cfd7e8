//! What a conditional energy-based process is made of.

use serde::{Deserialize, Serialize};

use super::sampler_config::SamplerConfig;
use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::{Error, Result};

/// How the elements of a context become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorPooling {
    /// The largest of each feature (the paper's appendix).
    Max,
    /// The average.
    Mean,
    /// The sum (the paper's text).
    Sum,
    /// Largest and average side by side.
    MaxAndMean,
}

impl PosteriorPooling {
    pub(in crate::process) fn poolings(self) -> &'static [Pooling] {
        match self {
            Self::Max => &[Pooling::Max],
            Self::Mean => &[Pooling::Mean],
            Self::Sum => &[Pooling::Sum],
            Self::MaxAndMean => &[Pooling::Max, Pooling::Mean],
        }
    }
}

/// Which θ a target is scored with in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingMode {
    /// ELBO of the whole set: θ ~ q(θ | all), prior N(0, I).
    FullSet,
    /// ELBO of the target given the context: θ ~ q(θ | all), prior q(θ | context).
    Predictive,
}

/// How the gradient of log Z is estimated; every result is labelled with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Self-normalised importance sampling over candidates.
    Importance,
    /// A learned sampler in the dual form, adversarial dynamics embedding: the paper's way.
    Ade,
}

/// Where the candidates of the estimator `importance` come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposal {
    /// One in each cell of a grid over the value's domain: no peak wider than a cell is missed.
    Stratified,
    /// The learned sampler. It misses what the sampler misses.
    Sampler,
    /// Half of each: two estimates of Z, averaged.
    Both,
    /// Half in cells, half in Gaussians of three widths around the target's own value: a spike at
    /// the data between two cells cannot hide. For values of several dimensions.
    Around,
}

/// Settings of an [`EnergyBasedProcess`](super::EnergyBasedProcess).
///
/// What the data decide (dimensions and domain) is no part of its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergyBasedConfig {
    /// d_t.
    #[serde(skip)]
    pub location_dim: usize,
    /// d_x.
    #[serde(skip)]
    pub value_dim: usize,
    /// Where values live, for every coordinate: the domain of log Z.
    #[serde(skip)]
    pub value_domain: (f32, f32),
    /// Size of θ.
    pub latent_dim: usize,
    /// Widths of the posterior's network per element; the last one is pooled.
    pub encoder_widths: Vec<usize>,
    /// How the posterior pools.
    pub pooling: PosteriorPooling,
    /// Hidden widths between the pooled vector and (μ, log σ). What a whole set says, such as
    /// which phase explains all elements, is no linear function of what is pooled.
    pub head_widths: Vec<usize>,
    /// Hidden widths of the energy.
    pub energy_widths: Vec<usize>,
    /// σ of the energy; smooth ones learn smooth densities.
    pub activation: Activation,
    /// Pairs sin ωⱼt, cos ωⱼt with ωⱼ = 2ʲ π/4 that are given to the networks beside t.
    pub location_frequencies: usize,
    /// The same for the values, in the posterior only: an energy must stay a function whose
    /// scale the network chooses.
    pub value_frequencies: usize,
    /// The energy's first-layer weights of value and location start this much larger. Without it
    /// narrow peaks are out of reach, and training stalls at one broad peak and looks converged.
    pub input_scale: f32,
    /// Whether every layer of the energy is divided by its largest singular value, which bounds
    /// the slope of f by 1: the paper's regulariser. Narrow peaks then need a
    /// small `temperature`.
    pub spectral_norm: bool,
    /// Weight of E‖∇ₓf‖² at the candidates or draws, falling with the learning rate: the released
    /// code's regulariser.
    pub gradient_penalty: f64,
    /// τ: densities are exp(f/τ)/Z.
    pub temperature: f64,
    /// Which θ targets are scored with.
    pub mode: TrainingMode,
    /// How log Z is estimated in training.
    pub estimator: Estimator,
    /// Where the candidates of `importance` come from.
    pub proposal: Proposal,
    /// K, candidates per element for log Z in training.
    pub num_proposals: usize,
    /// κ, the weight of the KL divergence against the likelihood in nats: 1 for the ELBO.
    pub kl_weight: f64,
    /// Steps over which κ grows from 0.
    pub kl_warm_up: u64,
    /// The learning rate at the start; it falls to 0 along half a cosine.
    pub learning_rate: f64,
    /// The gradient's largest Euclidean norm.
    pub max_gradient_norm: f64,
    /// Decay of the parameters' moving average, which is what predictions use.
    pub average_decay: f32,
    /// The learned sampler, for the estimator `ade` and for proposals from it.
    pub sampler: SamplerConfig,
}

impl Default for EnergyBasedConfig {
    /// One-dimensional curves of moderate complexity.
    fn default() -> Self {
        Self {
            location_dim: 1,
            value_dim: 1,
            latent_dim: 8,
            encoder_widths: vec![64, 64],
            pooling: PosteriorPooling::Max,
            head_widths: vec![64],
            energy_widths: vec![64, 64],
            activation: Activation::Silu,
            location_frequencies: 3,
            value_frequencies: 0,
            input_scale: 3.0,
            value_domain: (-3.0, 3.0),
            spectral_norm: false,
            gradient_penalty: 0.0,
            temperature: 1.0,
            mode: TrainingMode::Predictive,
            estimator: Estimator::Importance,
            proposal: Proposal::Stratified,
            num_proposals: 32,
            kl_weight: 1.0,
            kl_warm_up: 100,
            learning_rate: 1e-2,
            max_gradient_norm: 10.0,
            average_decay: 0.99,
            sampler: SamplerConfig::default(),
        }
    }
}

impl EnergyBasedConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, found) in [
            ("location_dim", self.location_dim),
            ("value_dim", self.value_dim),
            ("latent_dim", self.latent_dim),
            ("encoder_widths", self.encoder_widths.len()),
            ("num_proposals", self.num_proposals),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        // The grid of candidates has at least two cells per coordinate.
        let fewest = u32::try_from(self.value_dim).ok().and_then(|dims| 2_usize.checked_pow(dims));
        if fewest.is_none_or(|fewest| self.num_proposals < fewest) {
            let expected = format!("at least 2^{} (two cells per coordinate)", self.value_dim);
            return Err(Error::invalid("num_proposals", expected, self.num_proposals));
        }
        let (low, high) = self.value_domain;
        if !(low < high && (high - low).is_finite()) {
            let found = format!("[{low}, {high}]");
            return Err(Error::invalid("value_domain", "finite with low < high", found));
        }
        for (field, found) in [
            ("input_scale", f64::from(self.input_scale)),
            ("learning_rate", self.learning_rate),
            ("max_gradient_norm", self.max_gradient_norm),
            ("temperature", self.temperature),
        ] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        if self.has_sampler() {
            self.sampler.check()?;
        }
        let (field, decay) = ("average_decay", self.average_decay);
        if !(0.0..1.0).contains(&decay) {
            return Err(Error::invalid(field, "in [0, 1)", decay));
        }
        for (field, found) in
            [("kl_weight", self.kl_weight), ("gradient_penalty", self.gradient_penalty)]
        {
            if !(found >= 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "at least 0 and finite", found));
            }
        }
        Ok(())
    }

    /// Whether there is a sampler to train.
    pub(super) fn has_sampler(&self) -> bool {
        self.estimator == Estimator::Ade
            || matches!(self.proposal, Proposal::Sampler | Proposal::Both)
    }

    /// Numbers that describe a location to a network.
    pub(super) fn location_features(&self) -> usize {
        self.location_dim * (1 + 2 * self.location_frequencies)
    }

    pub(super) fn energy(&self) -> MlpConfig {
        MlpConfig {
            value_dim: self.value_dim,
            location_dim: self.location_features(),
            context_dim: self.latent_dim,
            hidden_widths: self.energy_widths.clone(),
            output_dim: 1,
            activation: self.activation,
            context_at: ContextAt::EveryLayer,
            activate_output: false,
        }
    }

    pub(super) fn encoder(&self) -> MlpConfig {
        let (hidden, pooled) = self.encoder_widths.split_at(self.encoder_widths.len() - 1);
        MlpConfig {
            value_dim: self.value_dim * (1 + 2 * self.value_frequencies),
            location_dim: self.location_features(),
            context_dim: 0,
            hidden_widths: hidden.to_vec(),
            output_dim: pooled[0],
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: true,
        }
    }
}
