//! What an unconditional energy-based process is made of.

use serde::{Deserialize, Serialize};

use super::sampler_config::CloudSamplerConfig;
use crate::point::{Activation, ContextAt, MlpConfig};
use crate::process::{Dynamics, SamplerKind};
use crate::{Error, Result};

/// How the gradient of log Z is estimated; every result is labelled with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudEstimator {
    /// Self-normalised importance sampling: proposals around the set's own points and everywhere.
    Importance,
    /// A learned sampler in the dual form, adversarial dynamics embedding: the paper's way.
    Ade,
    /// Denoising score matching: no Z at all, so that densities are not calibrated.
    ScoreMatching,
}

impl CloudEstimator {
    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Importance => "importance",
            Self::Ade => "ade",
            Self::ScoreMatching => "score-matching",
        }
    }
}

/// Which layers of the energy are told θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatentAt {
    /// The first one (the paper).
    FirstLayer,
    /// All hidden ones.
    EveryLayer,
}

/// How the learning rate falls after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Not at all (the paper).
    Constant,
    /// Along a line.
    Linear,
    /// Along half a cosine.
    Cosine,
}

/// Where the candidates of the estimator `importance` come from, in units of the standardised data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProposalConfig {
    /// Widths of the cells around the set's own points, each with an equal share.
    pub cell_widths: Vec<f32>,
    /// The share of proposals that fall anywhere in the domain.
    pub uniform_share: f64,
    /// The share that the learned sampler draws; needs `sampler` to be trained beside the energy.
    pub sampler_share: f64,
}

impl Default for ProposalConfig {
    fn default() -> Self {
        Self {
            cell_widths: vec![0.05, 0.1, 0.2, 0.4, 0.8],
            uniform_share: 0.15,
            sampler_share: 0.0,
        }
    }
}

/// Noise on what the encoder reads, never on what the energy learns: θ of a noisy cloud is then
/// θ of the clean one, which is what denoising needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerturbationConfig {
    /// The share of sets that are perturbed, half of them everywhere, half in a ball.
    pub share: f64,
    /// The largest standard deviation of noise on all points; each set draws its own.
    pub everywhere: f32,
    /// The largest standard deviation of noise in a ball around a random point.
    pub in_ball: f32,
    /// The ball's radius.
    pub radius: f32,
}

impl Default for PerturbationConfig {
    fn default() -> Self {
        Self { share: 0.0, everywhere: 0.2, in_ball: 0.4, radius: 0.6 }
    }
}

/// Changes of whole training sets that leave them what they are: more sets to learn from where
/// there are few.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentationConfig {
    /// Axes along which sets are mirrored at the mean of the data, each half of the time.
    pub mirror_axes: Vec<usize>,
    /// Each axis is stretched by exp(s ξ), ξ standard normal and one per axis and draw.
    pub stretch: f32,
}

/// Settings of an [`UnconditionalProcess`](super::UnconditionalProcess).
///
/// Lengths are in units of the standardised data. What the data decide is no part of the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnconditionalConfig {
    /// d, numbers of a point.
    #[serde(skip)]
    pub value_dim: usize,
    /// Points live in [−b, b]ᵈ: the domain of log Z.
    #[serde(skip)]
    pub half_width: f32,
    /// Size of θ.
    pub latent_dim: usize,
    /// Widths of the encoder's network per point; the last one is max-pooled.
    pub encoder_widths: Vec<usize>,
    /// Hidden widths between the pooled vector and (μ, log σ).
    pub head_widths: Vec<usize>,
    /// Hidden widths of the energy.
    pub energy_widths: Vec<usize>,
    /// σ of the energy; smooth ones learn smooth surfaces.
    pub activation: Activation,
    /// Which layers of the energy are told θ.
    pub latent_at: LatentAt,
    /// The energy's first-layer weights of x start this much larger. It decides how fine a detail
    /// is learned soon: with 25 the built-in chairs reach 2.17 nats per point after 800 steps, with
    /// 2 only 2.84, with 100 only 3.38.
    pub input_scale: f32,
    /// The energy's first-layer biases start with this standard deviation, in units of that of the
    /// weights of x: how far from the origin kinks lie.
    pub bias_scale: f32,
    /// s₀ of the Gaussian base measure −‖x‖²/(2 s₀²), which makes Z finite.
    pub base_std_dev: f32,
    /// Whether every layer of the energy is divided by its largest singular value (the paper).
    pub spectral_norm: bool,
    /// τ: densities are exp(f/τ − ‖x‖²/(2 s₀²))/Z.
    pub temperature: f64,
    /// How log Z is estimated in training.
    pub estimator: CloudEstimator,
    /// K, candidates per set for log Z in training.
    pub num_proposals: usize,
    /// Where they come from.
    pub proposal: ProposalConfig,
    /// Points of a set that the encoder reads in a step; smaller sets are read whole.
    pub encoder_points: usize,
    /// Points of a set that the likelihood is taken of in a step.
    pub likelihood_points: usize,
    /// Standard deviation of noise on the data at the start of training.
    pub jitter: f32,
    /// The same at the end: small for sharp surfaces.
    pub final_jitter: f32,
    /// Changes of whole sets.
    pub augmentation: AugmentationConfig,
    /// Noise on what the encoder reads.
    pub perturbation: PerturbationConfig,
    /// κ, the weight of the KL divergence against the likelihood in nats: 1 for the ELBO.
    pub kl_weight: f64,
    /// Steps over which κ grows from 0.
    pub kl_warm_up: u64,
    /// The learning rate after its warm-up.
    pub learning_rate: f64,
    /// Steps over which it grows from 0.
    pub learning_rate_warm_up: u64,
    /// How it falls.
    pub decay: Decay,
    /// The share of it that is left at the end.
    pub final_learning_rate: f64,
    /// Adam's β₁ of energy and encoder.
    pub beta1: f64,
    /// The gradient's largest Euclidean norm.
    pub max_gradient_norm: f64,
    /// Decoupled weight decay: how much of itself a parameter loses per step and unit of the
    /// learning rate.
    pub weight_decay: f64,
    /// Decay of the parameters' moving average, which is what is used after training.
    pub average_decay: f32,
    /// Standard deviations of the noise of `score-matching`, one drawn per point.
    pub score_noises: Vec<f32>,
    /// The learned sampler, for `ade` and for proposals from it.
    pub sampler: CloudSamplerConfig,
}

impl Default for UnconditionalConfig {
    /// What works best on clouds of 2048 points.
    fn default() -> Self {
        Self {
            value_dim: 3,
            half_width: 3.2,
            latent_dim: 128,
            encoder_widths: vec![128, 256, 256, 512],
            head_widths: vec![256],
            energy_widths: vec![512, 512, 256],
            activation: Activation::Silu,
            latent_at: LatentAt::EveryLayer,
            input_scale: 25.0,
            bias_scale: 1.0,
            base_std_dev: 2.5,
            spectral_norm: false,
            temperature: 1.0,
            estimator: CloudEstimator::Importance,
            num_proposals: 1024,
            proposal: ProposalConfig::default(),
            encoder_points: 2048,
            likelihood_points: 2048,
            jitter: 0.02,
            final_jitter: 0.01,
            augmentation: AugmentationConfig::default(),
            perturbation: PerturbationConfig::default(),
            kl_weight: 1.0,
            kl_warm_up: 1000,
            learning_rate: 5e-4,
            learning_rate_warm_up: 500,
            decay: Decay::Linear,
            final_learning_rate: 0.02,
            beta1: 0.9,
            max_gradient_norm: 5.0,
            weight_decay: 0.0,
            average_decay: 0.999,
            score_noises: vec![0.03, 0.1, 0.3],
            sampler: CloudSamplerConfig::default(),
        }
    }
}

impl UnconditionalConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, found) in [
            ("value_dim", self.value_dim),
            ("latent_dim", self.latent_dim),
            ("encoder_widths", self.encoder_widths.len()),
            ("num_proposals", self.num_proposals),
            ("encoder_points", self.encoder_points),
            ("likelihood_points", self.likelihood_points),
            ("score_noises", self.score_noises.len()),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        let cells = self.proposal.cell_widths.iter().map(|&width| ("proposal.cell_widths", width));
        let noises = self.score_noises.iter().map(|&noise| ("score_noises", noise));
        for (field, found) in [
            ("half_width", self.half_width),
            ("input_scale", self.input_scale),
            ("base_std_dev", self.base_std_dev),
        ]
        .into_iter()
        .chain(cells)
        .chain(noises)
        {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        for (field, found) in [
            ("temperature", self.temperature),
            ("learning_rate", self.learning_rate),
            ("max_gradient_norm", self.max_gradient_norm),
        ] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        for (field, found) in [
            ("jitter", self.jitter),
            ("final_jitter", self.final_jitter),
            ("bias_scale", self.bias_scale),
            ("augmentation.stretch", self.augmentation.stretch),
            ("perturbation.everywhere", self.perturbation.everywhere),
            ("perturbation.in_ball", self.perturbation.in_ball),
            ("perturbation.radius", self.perturbation.radius),
        ] {
            if !(found >= 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "at least 0 and finite", found));
            }
        }
        let ProposalConfig { cell_widths, uniform_share, sampler_share } = &self.proposal;
        for (field, found) in [
            ("proposal.uniform_share", *uniform_share),
            ("proposal.sampler_share", *sampler_share),
            ("perturbation.share", self.perturbation.share),
            ("final_learning_rate", self.final_learning_rate),
        ] {
            if !(0.0..=1.0).contains(&found) {
                return Err(Error::invalid(field, "in [0, 1]", found));
            }
        }
        // log Z must see all of the domain and every data point (a spike between proposals is
        // otherwise free).
        let least = 1.0 / self.num_proposals as f64;
        if *uniform_share < least || uniform_share + sampler_share > 1.0 - least {
            let expected = "shares that leave at least one proposal for the domain and one for \
                            the set's own points";
            let found = format!("{uniform_share} and {sampler_share}");
            return Err(Error::invalid("proposal.uniform_share, sampler_share", expected, found));
        }
        if let Some(axis) = self.augmentation.mirror_axes.iter().find(|&&a| a >= self.value_dim) {
            let expected = format!("below {}", self.value_dim);
            return Err(Error::invalid("augmentation.mirror_axes", expected, axis));
        }
        if cell_widths.is_empty() {
            return Err(Error::invalid("proposal.cell_widths", "at least one", "none"));
        }
        if !(0.0..1.0).contains(&self.average_decay) {
            return Err(Error::invalid("average_decay", "in [0, 1)", self.average_decay));
        }
        if !(self.kl_weight >= 0.0 && self.kl_weight.is_finite()) {
            return Err(Error::invalid("kl_weight", "at least 0 and finite", self.kl_weight));
        }
        if self.has_sampler() {
            self.sampler.check()?;
        }
        let has_density =
            self.sampler.kind == SamplerKind::Flow && self.sampler.dynamics != Dynamics::Langevin;
        if *sampler_share > 0.0 && !has_density {
            let expected = "0 unless the sampler is a flow without Langevin steps, whose draws \
                            have a density each";
            return Err(Error::invalid("proposal.sampler_share", expected, sampler_share));
        }
        Ok(())
    }

    /// Whether there is a sampler to train.
    pub(super) fn has_sampler(&self) -> bool {
        self.estimator == CloudEstimator::Ade || self.proposal.sampler_share > 0.0
    }

    pub(super) fn energy(&self) -> MlpConfig {
        MlpConfig {
            value_dim: self.value_dim,
            location_dim: 0,
            context_dim: self.latent_dim,
            hidden_widths: self.energy_widths.clone(),
            output_dim: 1,
            activation: self.activation,
            context_at: match self.latent_at {
                LatentAt::FirstLayer => ContextAt::FirstLayer,
                LatentAt::EveryLayer => ContextAt::EveryLayer,
            },
            activate_output: false,
        }
    }

    pub(super) fn encoder(&self) -> MlpConfig {
        let (hidden, pooled) = self.encoder_widths.split_at(self.encoder_widths.len() - 1);
        MlpConfig {
            value_dim: self.value_dim,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: hidden.to_vec(),
            output_dim: pooled[0],
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        }
    }
}
