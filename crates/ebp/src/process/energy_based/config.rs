//! What a conditional energy-based process is made of.

use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::{Error, Result};

/// How the elements of a context become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(super) fn poolings(self) -> &'static [Pooling] {
        match self {
            Self::Max => &[Pooling::Max],
            Self::Mean => &[Pooling::Mean],
            Self::Sum => &[Pooling::Sum],
            Self::MaxAndMean => &[Pooling::Max, Pooling::Mean],
        }
    }
}

/// Which θ a target is scored with in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingMode {
    /// ELBO of the whole set: θ ~ q(θ | all), prior N(0, I).
    FullSet,
    /// ELBO of the target given the context: θ ~ q(θ | all), prior q(θ | context).
    Predictive,
}

/// Settings of adversarial dynamics embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct AdeConfig {
    /// Planar layers of the sampler.
    pub num_layers: usize,
    /// Hidden widths of the hypernetwork that writes them.
    pub hyper_widths: Vec<usize>,
    /// Updates of the sampler per update of the energy.
    pub sampler_steps: usize,
    /// Draws per target element.
    pub num_fakes: usize,
    /// τ: at the saddle f = τ log p + const.
    pub temperature: f64,
    /// The sampler's learning rate.
    pub sampler_learning_rate: f64,
    /// The sampler's β₁.
    pub sampler_beta1: f64,
    /// The sampler's learning rate never falls below this share of its start, so that it keeps
    /// up with the energy to the end.
    pub sampler_floor: f64,
    /// Weight of E‖∇ₓf‖² at the draws, falling with the learning rate.
    pub gradient_penalty: f64,
}

impl Default for AdeConfig {
    fn default() -> Self {
        Self {
            num_layers: 16,
            hyper_widths: vec![256, 256],
            sampler_steps: 4,
            num_fakes: 16,
            temperature: 1.0,
            sampler_learning_rate: 2e-3,
            sampler_beta1: 0.5,
            sampler_floor: 0.4,
            gradient_penalty: 1e-3,
        }
    }
}

/// How the gradient of log Z is estimated; every result is labelled with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Estimator {
    /// Stratified candidates over the value's domain.
    Importance,
    /// A learned sampler in the dual form: the paper's way.
    Ade(AdeConfig),
}

/// Settings of an [`EnergyBasedProcess`](super::EnergyBasedProcess).
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyBasedConfig {
    /// d_t.
    pub location_dim: usize,
    /// d_x.
    pub value_dim: usize,
    /// Size of θ.
    pub latent_dim: usize,
    /// Widths of the posterior's network per element; the last one is pooled.
    pub encoder_widths: Vec<usize>,
    /// How the posterior pools.
    pub pooling: PosteriorPooling,
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
    /// Where values live, for every coordinate: the domain of log Z.
    pub value_domain: (f32, f32),
    /// Which θ targets are scored with.
    pub mode: TrainingMode,
    /// How log Z is estimated in training.
    pub estimator: Estimator,
    /// K, candidates per element for log Z in training.
    pub num_proposals: usize,
    /// κ, the weight of the KL divergence, 1 for the ELBO.
    pub kl_weight: f64,
    /// Steps over which κ grows from 0.
    pub kl_warm_up: u64,
    /// The learning rate at the start; it falls to 0 along half a cosine.
    pub learning_rate: f64,
    /// The gradient's largest Euclidean norm.
    pub max_gradient_norm: f64,
    /// Decay of the parameters' moving average, which is what predictions use.
    pub average_decay: f32,
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
            energy_widths: vec![64, 64],
            activation: Activation::Silu,
            location_frequencies: 3,
            value_frequencies: 0,
            input_scale: 3.0,
            value_domain: (-3.0, 3.0),
            mode: TrainingMode::Predictive,
            estimator: Estimator::Importance,
            num_proposals: 32,
            kl_weight: 1.0,
            kl_warm_up: 100,
            learning_rate: 1e-2,
            max_gradient_norm: 10.0,
            average_decay: 0.99,
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
        ] {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        if let Estimator::Ade(ade) = &self.estimator {
            for (field, found) in [
                ("num_layers", ade.num_layers),
                ("sampler_steps", ade.sampler_steps),
                ("num_fakes", ade.num_fakes),
            ] {
                if found == 0 {
                    return Err(Error::invalid(field, "at least 1", found));
                }
            }
            for (field, found) in [
                ("temperature", ade.temperature),
                ("sampler_learning_rate", ade.sampler_learning_rate),
            ] {
                if !(found > 0.0 && found.is_finite()) {
                    return Err(Error::invalid(field, "positive and finite", found));
                }
            }
        }
        if !(self.kl_weight >= 0.0 && self.kl_weight.is_finite()) {
            return Err(Error::invalid("kl_weight", "at least 0 and finite", self.kl_weight));
        }
        Ok(())
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
