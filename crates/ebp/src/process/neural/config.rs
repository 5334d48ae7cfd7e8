//! Settings of the neural processes.

use serde::{Deserialize, Serialize};

use crate::data::Grid;
use crate::point::Activation;
use crate::tape::AdamConfig;
use crate::{Error, Result};

/// Which parts a neural process has.
#[derive(Clone, Debug, PartialEq)]
pub struct NeuralProcessConfig {
    /// Sizes of the networks.
    pub network: NetworkConfig,
    /// The latent of a set, if there is one.
    pub latent: Option<LatentConfig>,
    /// What else the decoder is told about the context.
    pub deterministic: Deterministic,
}

/// The path from the context to the decoder beside the latent.
#[derive(Clone, Debug, PartialEq)]
pub enum Deterministic {
    /// There is none.
    Absent,
    /// The mean of the encoded elements.
    Mean,
    /// Attention from each target to the elements.
    Attention(AttentionConfig),
    /// Convolutions over the grid at whose places elements stand; a latent is one of every place then.
    Grid(GridPathConfig),
}

/// What decoders say of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likelihood {
    /// A Gaussian, as published.
    Gaussian,
    /// A share of each of the 256 levels of a pixel, channel by channel; for values on [−1, 1].
    Levels,
}

impl Likelihood {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Levels => "levels",
        }
    }
}

/// Convolutions of a neural process.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPathConfig {
    /// Where elements stand.
    pub grid: Grid,
    /// Channels on every grid, the finest first, each half as fine as the one before.
    pub widths: Vec<usize>,
    /// Residual blocks on every grid.
    pub blocks: usize,
    /// Side of their windows, odd.
    pub side: usize,
}

impl NeuralProcessConfig {
    /// The conditional neural process (Garnelo et al., 2018a): a regression from sets to Gaussians.
    ///
    /// ```text
    /// r = mean_i encoder([x_i, t_i]),    p(x | t, C) = N(x; μ(t, r), σ(t, r)²)
    /// ```
    ///
    /// Trained by maximum likelihood of targets given random contexts. There is no latent: given
    /// the context targets are independent, so joint draws are noise around one curve, and a
    /// density with two modes is out of reach. A context without elements has r = 0.
    pub fn conditional() -> Self {
        Self { network: NetworkConfig::default(), latent: None, deterministic: Deterministic::Mean }
    }

    /// The neural process (Garnelo et al., 2018b): one latent z per set, Gaussian values given z.
    ///
    /// ```text
    /// q(z | C) = N(μ_z, σ_z²) of mean_i encoder([x_i, t_i]),
    /// p(x | t, C) = E_{q(z | C)} N(x; μ(t, z), σ(t, z)²)
    /// ```
    ///
    /// Trained by the evidence bound of the targets, in which q(z | context) takes the place of
    /// the prior of q(z | context and target). It is a mixture over whole curves; given z each
    /// value is Gaussian, so two branches between which every element chooses for itself are out
    /// of reach. Published code adds a deterministic path beside z; here it is off, since it lets
    /// the decoder ignore z and draws then share one curve.
    pub fn latent() -> Self {
        Self {
            network: NetworkConfig::default(),
            latent: Some(LatentConfig::default()),
            deterministic: Deterministic::Absent,
        }
    }

    /// The attentive neural process (Kim et al., 2019): every target looks at the context itself.
    ///
    /// ```text
    /// r(t) = attention(query t, keys t_i, values encoder([x_i, t_i])),    z ~ q(z | C),
    /// p(x | t, C) = E_{q(z | C)} N(x; μ(t, r(t), z), σ(t, r(t), z)²)
    /// ```
    ///
    /// The mean of a neural process smooths the context away; attention finds the elements near a
    /// target again. The latent and the evidence bound are those of [`latent`](Self::latent), and
    /// so is the limit: given z, values are Gaussian.
    pub fn attentive() -> Self {
        Self {
            network: NetworkConfig::default(),
            latent: Some(LatentConfig::default()),
            deterministic: Deterministic::Attention(AttentionConfig::default()),
        }
    }

    /// The convolutional conditional neural process (Gordon et al., 2020) of elements on a grid.
    ///
    /// ```text
    /// r = convolutions([known, known · x] at every place),    p(x | t, C) by a decoder of r(t)
    /// ```
    ///
    /// The same wherever on the grid a context stands. Given the context targets are independent.
    pub fn convolutional(grid: GridPathConfig) -> Self {
        let deterministic = Deterministic::Grid(grid);
        Self { network: NetworkConfig::default(), latent: None, deterministic }
    }

    /// The convolutional neural process with latents (Foong et al., 2020): z at every place, of which
    /// further convolutions make a whole.
    ///
    /// ```text
    /// log p(x_T | t_T, C) ≈ log mean_l Π p(x_t | r_l(t)),    z_l ~ q(z | C),  r_l = convolutions(z_l)
    /// ```
    ///
    /// Trained by this estimate with a few draws, as published, and not by an evidence bound.
    pub fn convolutional_latent(grid: GridPathConfig) -> Self {
        let latent = Some(LatentConfig { latent_dim: 16, ..LatentConfig::default() });
        Self { latent, ..Self::convolutional(grid) }
    }

    /// The name under which results are reported.
    pub(super) fn name(&self) -> &'static str {
        let is_levels = self.network.likelihood == Likelihood::Levels;
        let [published, levels] = match (&self.latent, &self.deterministic) {
            (None, Deterministic::Grid(_)) => ["convcnp", "convcnp-levels"],
            (Some(_), Deterministic::Grid(_)) => ["convnp", "convnp-levels"],
            (_, Deterministic::Attention(_)) => ["anp", "anp-levels"],
            (Some(_), _) => ["np", "np-levels"],
            (None, _) => ["cnp", "cnp-levels"],
        };
        if is_levels { levels } else { published }
    }
}

/// Sizes of the networks, common to all neural processes.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// d_t.
    pub location_dim: usize,
    /// d_x.
    pub value_dim: usize,
    /// Widths of the hidden layers that encode an element [x, t].
    pub encoder_widths: Vec<usize>,
    /// Sines and cosines of every number of a location, at frequencies ωⱼ = 2ʲ π/4, that networks read
    /// beside it.
    pub location_frequencies: usize,
    /// The same of every number of a value, for encoders.
    pub value_frequencies: usize,
    /// The size of an encoded element, and of a set's mean.
    pub representation_dim: usize,
    /// Widths of the hidden layers of the decoder.
    pub decoder_widths: Vec<usize>,
    /// σ of every hidden layer.
    pub activation: Activation,
    /// The floor of the predicted standard deviation, floor + (1 − floor) softplus(s), in (0, 1).
    ///
    /// Published models use 0.1. Where the noise of the data is as small as that the floor would
    /// cost log-likelihood, so it is 0.01 here.
    pub min_std_dev: f64,
    /// What decoders say of a target.
    pub likelihood: Likelihood,
    /// The learning rate at the start; it falls to 0 along half a cosine.
    pub learning_rate: f64,
    /// How slowly the average of the parameters follows them, in [0, 1): what predicts after training.
    pub average_decay: f32,
    /// The optimiser.
    pub adam: AdamConfig,
}

impl Default for NetworkConfig {
    /// For curves: one number at one time, networks of width 64.
    fn default() -> Self {
        Self {
            location_dim: 1,
            value_dim: 1,
            encoder_widths: vec![64, 64],
            location_frequencies: 0,
            value_frequencies: 0,
            representation_dim: 64,
            decoder_widths: vec![64, 64],
            activation: Activation::Silu,
            min_std_dev: 0.01,
            likelihood: Likelihood::Gaussian,
            learning_rate: 3e-3,
            average_decay: 0.99,
            adam: AdamConfig { max_gradient_norm: Some(10.0), ..AdamConfig::default() },
        }
    }
}

impl NetworkConfig {
    /// Numbers of a location that networks read.
    pub(super) fn location_features(&self) -> usize {
        self.location_dim * (1 + 2 * self.location_frequencies)
    }

    /// Numbers of a value that encoders read.
    pub(super) fn value_features(&self) -> usize {
        self.value_dim * (1 + 2 * self.value_frequencies)
    }

    /// Checks what the constructors of the parts do not.
    pub(super) fn check(&self) -> Result<()> {
        for (field, dim) in [("location_dim", self.location_dim), ("value_dim", self.value_dim)] {
            if dim == 0 {
                return Err(Error::invalid(field, "at least 1", dim));
            }
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(Error::invalid("learning_rate", "positive and finite", self.learning_rate));
        }
        if !(self.min_std_dev > 0.0 && self.min_std_dev < 1.0) {
            return Err(Error::invalid("min_std_dev", "in (0, 1)", self.min_std_dev));
        }
        Ok(())
    }
}

/// The latent of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentConfig {
    /// The size of z; of that of every place with convolutions.
    pub latent_dim: usize,
    /// How many z a predictive density averages over.
    pub num_draws: usize,
    /// How many z of a set a step averages over, where there is one of every place.
    pub training_draws: usize,
}

impl Default for LatentConfig {
    /// z of 32 numbers, 32 draws, 4 in training.
    fn default() -> Self {
        Self { latent_dim: 32, num_draws: 32, training_draws: 4 }
    }
}

impl LatentConfig {
    pub(super) fn check(&self) -> Result<()> {
        for (field, count) in [
            ("latent_dim", self.latent_dim),
            ("num_draws", self.num_draws),
            ("training_draws", self.training_draws),
        ] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        Ok(())
    }
}

/// Attention of the attentive neural process.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionConfig {
    /// Heads; they must divide `representation_dim`.
    pub num_heads: usize,
    /// Widths of the hidden layers that embed a location as query or key.
    pub embedding_widths: Vec<usize>,
    /// Whether the elements of a context also attend to each other before they are looked at, in
    /// both paths. Published as a choice; it costs n² per set.
    pub has_self_attention: bool,
}

impl Default for AttentionConfig {
    /// 8 heads, one hidden layer of 64, no self-attention.
    fn default() -> Self {
        Self { num_heads: 8, embedding_widths: vec![64], has_self_attention: false }
    }
}

impl AttentionConfig {
    pub(super) fn num_self_heads(&self) -> Option<usize> {
        self.has_self_attention.then_some(self.num_heads)
    }
}
