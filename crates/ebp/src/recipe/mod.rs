//! What an energy-based process is made of: its settings, and the space of its elements.

mod augmentation;
mod proposal;
mod sampler;

use serde::{Deserialize, Serialize};

use crate::data::Grid;
use crate::point::{Activation, MAX_OUTPUTS, MAX_WIDTH, Pooling};
use crate::{Error, Result};

pub use self::augmentation::{AugmentationConfig, PerturbationConfig, Turns, ViewConfig};
pub use self::proposal::{Estimator, ProposalConfig, ProposalKind};
pub use self::sampler::{
    Dynamics, NegativePhase, NoiseSchedule, ReverseKernel, SamplerConfig, SamplerKind,
};

/// Where elements live: what the data decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Space {
    /// Numbers of a location, d_t; 0 for sets of points.
    pub location_dim: usize,
    /// Numbers of a value, d_x.
    pub value_dim: usize,
    /// Values lie between these, in every coordinate.
    pub low: f32,
    /// See `low`.
    pub high: f32,
    /// The pixels, where locations are those of a picture.
    pub grid: Option<Grid>,
    /// The words, where elements are words of a finite vocabulary; a value is a word's number.
    pub num_words: Option<usize>,
}

impl Space {
    /// Sets of points in [−b, b]ᵈ.
    pub fn points(value_dim: usize, half_width: f32) -> Self {
        let (low, high) = (-half_width, half_width);
        Self { location_dim: 0, value_dim, low, high, grid: None, num_words: None }
    }

    /// Values in a domain at locations.
    pub fn regression(location_dim: usize, value_dim: usize, (low, high): (f32, f32)) -> Self {
        Self { location_dim, value_dim, low, high, grid: None, num_words: None }
    }

    /// Pixels of `channels` numbers in [−1, 1].
    pub fn picture(grid: Grid, channels: usize) -> Self {
        let (low, high) = (-1.0, 1.0);
        let grid = Some(grid);
        Self { location_dim: 2, value_dim: channels, low, high, grid, num_words: None }
    }

    /// Bags of words: elements without location, each the number of a word below `num_words`.
    pub fn bag(num_words: usize) -> Self {
        let high = num_words as f32;
        let num_words = Some(num_words);
        Self { location_dim: 0, value_dim: 1, low: 0.0, high, grid: None, num_words }
    }

    fn check(&self) -> Result<()> {
        if self.value_dim == 0 {
            return Err(Error::invalid("value_dim", "at least 1", self.value_dim));
        }
        if !(self.low < self.high && (self.high - self.low).is_finite()) {
            let found = format!("[{}, {}]", self.low, self.high);
            return Err(Error::invalid("value domain", "finite with low < high", found));
        }
        if let Some(found) = self.num_words
            && !(2..=MOST_WORDS).contains(&found)
        {
            let expected = format!("between 2 and {MOST_WORDS}");
            return Err(Error::invalid("num_words", expected, found));
        }
        Ok(())
    }
}

/// How the features of a set's elements become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorPooling {
    /// The largest of each feature.
    Max,
    /// The average.
    Mean,
    /// The sum.
    Sum,
    /// Largest and average, side by side.
    MaxAndMean,
}

impl PosteriorPooling {
    pub(crate) fn poolings(self) -> &'static [Pooling] {
        match self {
            Self::Max => &[Pooling::Max],
            Self::Mean => &[Pooling::Mean],
            Self::Sum => &[Pooling::Sum],
            Self::MaxAndMean => &[Pooling::Max, Pooling::Mean],
        }
    }
}

/// What θ's posterior is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingMode {
    /// The prior N(0, I); all elements are explained.
    FullSet,
    /// The posterior of the context; the other elements are explained.
    Predictive,
}

/// How elements become the vector that q(θ | set) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorForm {
    /// A vector per place of the grid and per unit of brightness there, summed.
    Table,
    /// Residual convolutions over the places of the grid, coarser and coarser, then their mean.
    Grid,
    /// A network over value and location, pooled.
    DeepSets,
    /// A vector per word of a vocabulary, by the logarithm of its count, summed.
    Counts,
}

impl PosteriorForm {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Grid => "grid",
            Self::DeepSets => "deep-sets",
            Self::Counts => "counts",
        }
    }
}

/// How log potentials are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyForm {
    /// Those of all symbols at once, channel by channel: for exact sums.
    Levels,
    /// f(x, t; θ) of one value.
    Element,
    /// Those of all words of a vocabulary, once per set: f(w; θ) = log p₀(w) + b_w + ⟨e_w, h(θ)⟩.
    Words,
    /// Mixed topics, once per set: f(w; θ) = log Σ_k softmax(θ)_k Φ_kw, as in latent Dirichlet
    /// allocation.
    Topics,
}

impl EnergyForm {
    /// Whether it is over the words of a vocabulary.
    pub(crate) fn is_of_words(self) -> bool {
        matches!(self, Self::Words | Self::Topics)
    }

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Levels => "levels",
            Self::Element => "element",
            Self::Words => "words",
            Self::Topics => "topics",
        }
    }
}

/// The law of θ before any element is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatentLaw {
    /// θ ~ N(0, I).
    Normal,
    /// exp θ_k ~ Gamma(α): softmax(θ) is Dirichlet(α, …, α), as in latent Dirichlet allocation.
    Dirichlet,
}

/// Which layers of the energy θ enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatentAt {
    /// The first alone, as in the paper.
    FirstLayer,
    /// All but the last.
    EveryLayer,
}

/// How the learning rate falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Not at all.
    Constant,
    /// In a straight line.
    Linear,
    /// As a half wave of a cosine.
    Cosine,
}

impl Decay {
    /// What is left of a learning rate that falls to the share `end`, after a share of all steps.
    pub(crate) fn left(self, progress: f64, end: f64) -> f64 {
        let share = match self {
            Self::Constant => return 1.0,
            Self::Linear => 1.0 - progress,
            Self::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
        };
        end + (1.0 - end) * share
    }
}

/// Everything about an energy-based process but its data.
///
/// The defaults are those of curves; [`points`](Self::points) and [`pictures`](Self::pictures) have
/// those of other data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergyBasedConfig {
    /// Numbers of θ.
    pub latent_dim: usize,
    /// Their law.
    pub latent_law: LatentLaw,
    /// α of the law `dirichlet`.
    pub concentration: f64,

    /// How elements become the vector that the posterior reads.
    pub posterior: PosteriorForm,
    /// Widths of the network over elements, the last one pooled; of the posterior `grid` its channels on
    /// every grid, the finest first.
    pub encoder_widths: Vec<usize>,
    /// Such networks one after the other: every one but the first is told, in all of its layers, what
    /// the one before pooled.
    pub encoder_rounds: usize,
    /// How its outputs are pooled.
    pub pooling: PosteriorPooling,
    /// Whether the posterior is told how many elements there are.
    pub sees_size: bool,
    /// Hidden widths between the pooled vector and (μ, log σ).
    pub head_widths: Vec<usize>,
    /// σ of these layers.
    pub head_activation: Activation,
    /// The share of pooled features that these layers do not see in a step.
    pub head_dropout: f64,
    /// Added to log σ, so that θ says something before the KL term asks whether it pays.
    pub first_log_std_dev: f64,
    /// log σ is never smaller.
    pub least_log_std_dev: f32,

    /// How potentials are computed.
    pub energy: EnergyForm,
    /// Hidden widths of the energy.
    pub energy_widths: Vec<usize>,
    /// Its activation.
    pub activation: Activation,
    /// Which of its layers θ enters.
    pub latent_at: LatentAt,
    /// The first layer's weights start so many times larger.
    pub input_scale: f32,
    /// The first layer's biases start with this share of the weights' standard deviation.
    pub bias_scale: f32,
    /// s₀ of the base measure −‖x‖²/(2 s₀²); 0 for none.
    pub base_std_dev: f32,
    /// Whether every layer is divided by its largest singular value.
    pub spectral_norm: bool,
    /// τ: densities are exp(f/τ).
    pub temperature: f64,
    /// Weight of E‖∇ₓf‖².
    pub gradient_penalty: f64,
    /// Symbols that a number is quantised to, for exact sums.
    pub levels: usize,
    /// Width of the layer that meets the symbols, for the energy `levels`.
    pub embedding_dim: usize,
    /// The concentration s at the start with which every set has a law of words of its own, Dirichlet
    /// around that of θ; 0 for none.
    pub urn: f64,

    /// Fourier pairs of every coordinate of a location.
    pub location_frequencies: usize,
    /// Fourier pairs of every number of a value, where networks read it as an input.
    pub value_frequencies: usize,
    /// Pixels around a target, in every direction, that its energy sees.
    pub window: usize,
    /// Whether the energy sees blurred versions of the context.
    pub smooths: bool,
    /// Heads of the attention from targets to the context; 0 for none.
    pub attention_heads: usize,
    /// Its width.
    pub attention_width: usize,
    /// Channels of the convolutional view of the context on every grid, the finest first, each half as fine
    /// as the one before; none for no view.
    pub grid_widths: Vec<usize>,
    /// Residual blocks on every grid, of the view in both directions and of the posterior `grid`.
    pub grid_blocks: usize,
    /// Side of their windows, in places; odd.
    pub grid_side: usize,
    /// Numbers per place that θ paints; 0 for none.
    pub canvas_dim: usize,
    /// Hidden widths of the network that paints.
    pub canvas_widths: Vec<usize>,
    /// Numbers of a code of the second level of the latent; 0 for none.
    pub local_dim: usize,
    /// Codes lie on a grid of so many by so many.
    pub local_side: usize,
    /// The share of tasks in which targets see nothing but the latents.
    pub blind: f64,

    /// What θ's posterior is held against.
    pub mode: TrainingMode,
    /// How the gradient of log Z is estimated.
    pub estimator: Estimator,
    /// Candidates for log Z, per target or per set of points.
    pub num_proposals: usize,
    /// Where they come from.
    pub proposal: ProposalConfig,
    /// Standard deviations of the noises of score matching.
    pub score_noises: Vec<f32>,
    /// The learned sampler.
    pub sampler: SamplerConfig,

    /// The largest share of a set's words that is hidden from the posterior in a step.
    pub hidden_share: f64,
    /// Points of a set that the posterior reads in a step; 0 for all.
    pub encoder_points: usize,
    /// Elements of a set whose likelihood is taken in a step; 0 for all.
    pub likelihood_points: usize,
    /// Standard deviation of the noise on points, at the start.
    pub jitter: f32,
    /// The same at the end, and in evaluations.
    pub final_jitter: f32,
    /// Changes of whole sets of points.
    pub augmentation: AugmentationConfig,
    /// Noise on what the posterior reads.
    pub perturbation: PerturbationConfig,
    /// Parts and turns of sets that the posterior reads in their place.
    pub view: ViewConfig,

    /// κ: weight of the KL term, 1 for the evidence lower bound.
    pub kl_weight: f64,
    /// Steps over which κ grows from 0.
    pub kl_warm_up: u64,
    /// The learning rate of energy and posterior.
    pub learning_rate: f64,
    /// Steps over which it grows from 0.
    pub learning_rate_warm_up: u64,
    /// How it falls.
    pub decay: Decay,
    /// The share of it that is left at the end.
    pub final_learning_rate: f64,
    /// Adam's β₁; against a learned sampler momentum overshoots, and 0 is better.
    pub beta1: f64,
    /// Longer gradients are shortened to this.
    pub max_gradient_norm: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Of the moving average of the parameters that predictions use.
    pub average_decay: f32,
    /// Draws of θ that predictions average over.
    pub num_draws: usize,
}

impl Default for EnergyBasedConfig {
    fn default() -> Self {
        Self {
            latent_dim: 8,
            latent_law: LatentLaw::Normal,
            concentration: 0.1,
            posterior: PosteriorForm::DeepSets,
            encoder_widths: vec![64, 64],
            encoder_rounds: 1,
            pooling: PosteriorPooling::Max,
            sees_size: true,
            head_widths: vec![64],
            head_activation: Activation::Silu,
            head_dropout: 0.0,
            first_log_std_dev: 0.0,
            least_log_std_dev: -6.0,
            energy: EnergyForm::Element,
            energy_widths: vec![64, 64],
            activation: Activation::Silu,
            latent_at: LatentAt::EveryLayer,
            input_scale: 3.0,
            bias_scale: 0.0,
            base_std_dev: 0.0,
            spectral_norm: false,
            temperature: 1.0,
            gradient_penalty: 0.0,
            levels: 256,
            embedding_dim: 64,
            urn: 0.0,
            location_frequencies: 3,
            value_frequencies: 0,
            window: 0,
            smooths: false,
            attention_heads: 0,
            attention_width: 64,
            grid_widths: Vec::new(),
            grid_blocks: 1,
            grid_side: 5,
            canvas_dim: 0,
            canvas_widths: vec![512],
            local_dim: 0,
            local_side: 7,
            blind: 0.0,
            mode: TrainingMode::Predictive,
            estimator: Estimator::Importance,
            num_proposals: 32,
            proposal: ProposalConfig::default(),
            score_noises: vec![0.03, 0.1, 0.3],
            sampler: SamplerConfig::default(),
            hidden_share: 0.0,
            encoder_points: 0,
            likelihood_points: 0,
            jitter: 0.0,
            final_jitter: 0.0,
            augmentation: AugmentationConfig::default(),
            perturbation: PerturbationConfig::default(),
            view: ViewConfig::default(),
            kl_weight: 1.0,
            kl_warm_up: 100,
            learning_rate: 1e-2,
            learning_rate_warm_up: 0,
            decay: Decay::Cosine,
            final_learning_rate: 0.0,
            beta1: 0.9,
            max_gradient_norm: 10.0,
            weight_decay: 0.0,
            average_decay: 0.99,
            num_draws: 32,
        }
    }
}

impl EnergyBasedConfig {
    /// For sets of points.
    pub fn points() -> Self {
        Self {
            latent_dim: 128,
            encoder_widths: vec![128, 256, 256, 512],
            sees_size: false,
            head_widths: vec![256],
            head_activation: Activation::Relu,
            first_log_std_dev: -2.0,
            least_log_std_dev: -4.0,
            energy_widths: vec![512, 512, 256],
            input_scale: 25.0,
            bias_scale: 1.0,
            base_std_dev: 2.5,
            location_frequencies: 0,
            mode: TrainingMode::FullSet,
            num_proposals: 1024,
            proposal: ProposalConfig::points(),
            sampler: SamplerConfig::points(),
            encoder_points: 2048,
            likelihood_points: 2048,
            jitter: 0.02,
            final_jitter: 0.01,
            kl_warm_up: 1000,
            learning_rate: 5e-4,
            learning_rate_warm_up: 500,
            decay: Decay::Linear,
            final_learning_rate: 0.02,
            max_gradient_norm: 5.0,
            average_decay: 0.999,
            ..Self::default()
        }
    }

    /// For pictures.
    pub fn pictures() -> Self {
        Self {
            latent_dim: 64,
            posterior: PosteriorForm::Table,
            encoder_widths: vec![512],
            pooling: PosteriorPooling::MaxAndMean,
            head_widths: vec![256],
            energy: EnergyForm::Levels,
            energy_widths: vec![256, 256],
            input_scale: 2.0,
            location_frequencies: 6,
            value_frequencies: 4,
            window: 3,
            smooths: true,
            blind: 0.5,
            estimator: Estimator::Exact,
            num_proposals: 64,
            proposal: ProposalConfig::around(),
            likelihood_points: 128,
            kl_warm_up: 500,
            learning_rate: 2e-3,
            learning_rate_warm_up: 100,
            max_gradient_norm: 2.0,
            average_decay: 0.99,
            num_draws: 20,
            ..Self::default()
        }
    }

    /// For bags of words.
    pub fn bags() -> Self {
        Self {
            latent_dim: 50,
            posterior: PosteriorForm::Counts,
            encoder_widths: vec![256],
            head_widths: vec![],
            first_log_std_dev: -1.0,
            energy: EnergyForm::Words,
            energy_widths: vec![],
            input_scale: 1.0,
            location_frequencies: 0,
            urn: 200.0,
            mode: TrainingMode::FullSet,
            estimator: Estimator::Exact,
            kl_warm_up: 500,
            learning_rate: 2e-3,
            learning_rate_warm_up: 50,
            max_gradient_norm: 5.0,
            average_decay: 0.995,
            num_draws: 64,
            ..Self::default()
        }
    }

    /// Checks every setting, and that they fit each other and the data.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the first that does not.
    pub fn check(&self, space: &Space) -> Result<()> {
        space.check()?;
        for (field, found) in [
            ("latent_dim", self.latent_dim),
            ("encoder_widths", self.encoder_widths.len()),
            ("encoder_rounds", self.encoder_rounds),
            ("num_proposals", self.num_proposals),
            ("embedding_dim", self.embedding_dim),
            ("local_side", self.local_side),
            ("num_draws", self.num_draws),
            ("score_noises", self.score_noises.len()),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        let noises = self.score_noises.iter().map(|&noise| ("score_noises", f64::from(noise)));
        for (field, found) in [
            ("input_scale", f64::from(self.input_scale)),
            ("temperature", self.temperature),
            ("learning_rate", self.learning_rate),
            ("concentration", self.concentration),
            ("max_gradient_norm", self.max_gradient_norm),
        ]
        .into_iter()
        .chain(noises)
        {
            if !(found > 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", found));
            }
        }
        for (field, found) in [
            ("bias_scale", f64::from(self.bias_scale)),
            ("base_std_dev", f64::from(self.base_std_dev)),
            ("gradient_penalty", self.gradient_penalty),
            ("kl_weight", self.kl_weight),
            ("urn", self.urn),
            ("jitter", f64::from(self.jitter)),
            ("final_jitter", f64::from(self.final_jitter)),
        ] {
            if !(found >= 0.0 && found.is_finite()) {
                return Err(Error::invalid(field, "at least 0 and finite", found));
            }
        }
        for (field, found) in [
            ("blind", self.blind),
            ("hidden_share", self.hidden_share),
            ("final_learning_rate", self.final_learning_rate),
        ] {
            if !(0.0..=1.0).contains(&found) {
                return Err(Error::invalid(field, "in [0, 1]", found));
            }
        }
        if !(0.0..1.0).contains(&self.average_decay) {
            return Err(Error::invalid("average_decay", "in [0, 1)", self.average_decay));
        }
        if !(0.0..1.0).contains(&self.head_dropout) {
            return Err(Error::invalid("head_dropout", "in [0, 1)", self.head_dropout));
        }
        self.augmentation.check(space.value_dim)?;
        self.perturbation.check()?;
        self.view.check(space.value_dim)?;
        if !(2..=MOST_LEVELS).contains(&self.levels) {
            let expected = format!("between 2 and {MOST_LEVELS}");
            return Err(Error::invalid("levels", expected, self.levels));
        }
        self.check_combination(space)?;
        self.check_words(space)?;
        if self.has_sampler() {
            self.sampler.check()?;
        }
        self.proposal.check(self.num_proposals, space, self.estimator)
    }

    /// Refuses combinations that mean nothing, with the reason.
    fn check_combination(&self, space: &Space) -> Result<()> {
        let refuse = |field: &str, expected: &str, found: &dyn std::fmt::Display| {
            Err(Error::invalid(field, expected, found))
        };
        let is_exact = self.estimator == Estimator::Exact;
        if self.energy == EnergyForm::Levels && !is_exact {
            let expected = "`exact` for the energy `levels`, which has no value between symbols";
            return refuse("estimator", expected, &self.estimator.name());
        }
        if space.grid.is_none() {
            let needs = "0 without a grid of pixels, which it is read from";
            for (field, found) in [
                ("window", self.window),
                ("smooths", usize::from(self.smooths)),
                ("attention_heads", self.attention_heads),
                ("grid_widths", self.grid_widths.len()),
                ("canvas_dim", self.canvas_dim),
                ("local_dim", self.local_dim),
            ] {
                if found > 0 {
                    return refuse(field, needs, &found);
                }
            }
            let needs = "`deep-sets` without a grid of pixels";
            match self.posterior {
                PosteriorForm::Table if space.num_words.is_none() => {
                    return refuse("posterior", needs, &"table");
                }
                PosteriorForm::Grid => return refuse("posterior", needs, &"grid"),
                _ => {}
            }
        }
        if self.posterior != PosteriorForm::DeepSets && self.encoder_rounds > 1 {
            let expected = "1 unless the posterior is `deep-sets`";
            return refuse("encoder_rounds", expected, &self.encoder_rounds);
        }
        if self.view != ViewConfig::default() && space.location_dim > 0 {
            let expected = "0 for sets with locations, of which nothing is turned or left out";
            return refuse("view.share", expected, &self.view.share);
        }
        if let (PosteriorForm::Table, Some(grid)) = (self.posterior, space.grid) {
            let numbers = grid.num_places() * (1 + space.value_dim);
            if numbers > MAX_WIDTH {
                let expected = format!(
                    "`grid` or `deep-sets` for pictures of more than {MAX_WIDTH} numbers, places times 1 + \
                     channels"
                );
                return refuse("posterior", &expected, &format!("table, for {numbers}"));
            }
        }
        if self.posterior == PosteriorForm::Table && self.encoder_widths.len() > 1 {
            let expected = "a single width for the posterior `table`";
            return refuse("encoder_widths", expected, &self.encoder_widths.len());
        }
        if self.posterior == PosteriorForm::Grid || !self.grid_widths.is_empty() {
            if crate::tape::Convolution::new((1, 1), self.grid_side, 1).is_err() {
                return refuse("grid_side", "odd and at most 15", &self.grid_side);
            }
            if self.grid_widths.contains(&0) {
                return refuse("grid_widths", "all at least 1", &0);
            }
        }
        if self.energy == EnergyForm::Element {
            let expected = "0 for the energy `element`, whose locations are constants";
            for (field, found) in [
                ("attention_heads", self.attention_heads),
                ("canvas_dim", self.canvas_dim),
                ("local_dim", self.local_dim),
            ] {
                if found > 0 {
                    return refuse(field, expected, &found);
                }
            }
            if is_exact && space.value_dim > 1 {
                let expected = "`levels` for exact sums over more than one number per element";
                return refuse("energy", expected, &"element");
            }
        }
        if space.location_dim == 0 && self.sampler.around_share > 0.0 {
            let expected = "0 for sets of points, which share their candidates";
            return refuse("sampler.around_share", expected, &self.sampler.around_share);
        }
        if self.estimator == Estimator::ScoreMatching && self.spectral_norm {
            let expected = "false for score matching, which needs the slope of f itself";
            return refuse("spectral_norm", expected, &true);
        }
        Ok(())
    }

    /// Refuses what bags of words cannot have, and what nothing else can.
    fn check_words(&self, space: &Space) -> Result<()> {
        let refuse = |field: &str, expected: &str, found: &dyn std::fmt::Display| {
            Err(Error::invalid(field, expected, found))
        };
        let is_counts = self.posterior == PosteriorForm::Counts;
        if space.num_words.is_none() {
            let expected = "0 unless elements are words of a vocabulary";
            if self.energy.is_of_words() {
                let expected = "`levels` or `element` unless elements are words of a vocabulary";
                return refuse("energy", expected, &self.energy.name());
            }
            if is_counts {
                let expected = "`deep-sets` or `table` unless elements are words of a vocabulary";
                return refuse("posterior", expected, &"counts");
            }
            for (field, found) in [("urn", self.urn), ("hidden_share", self.hidden_share)] {
                if found > 0.0 {
                    return refuse(field, expected, &found);
                }
            }
        } else {
            if self.estimator != Estimator::Exact {
                let expected =
                    "`exact` for words, whose Z is a sum and which have nothing between them";
                return refuse("estimator", expected, &self.estimator.name());
            }
            if !self.energy.is_of_words() {
                let expected = "`words` or `topics`: numbers of words have no order";
                return refuse("energy", expected, &self.energy.name());
            }
            if !is_counts {
                let expected = "`counts`: numbers of words have no order";
                return refuse("posterior", expected, &self.posterior.name());
            }
            if self.encoder_widths.len() > 1 {
                let expected = "a single width for the posterior `counts`";
                return refuse("encoder_widths", expected, &self.encoder_widths.len());
            }
            if self.energy == EnergyForm::Topics && !self.energy_widths.is_empty() {
                let expected = "none for the energy `topics`";
                return refuse("energy_widths", expected, &self.energy_widths.len());
            }
        }
        if self.latent_law == LatentLaw::Dirichlet {
            if self.energy != EnergyForm::Topics {
                let expected = "`normal` unless the energy is `topics`, which mixes by softmax(θ)";
                return refuse("latent_law", expected, &"dirichlet");
            }
            if self.mode == TrainingMode::Predictive {
                let expected = "`full-set` for the law `dirichlet`: no context stands in its place";
                return refuse("mode", expected, &"predictive");
            }
        }
        Ok(())
    }

    pub(crate) fn has_sampler(&self) -> bool {
        self.estimator == Estimator::Ade || self.proposal.uses_sampler(self.estimator)
    }

    /// s₀, if there is a base measure.
    pub(crate) fn base(&self) -> Option<f32> {
        (self.base_std_dev > 0.0).then_some(self.base_std_dev)
    }

    /// Numbers that a location becomes.
    pub(crate) fn location_features(&self, space: &Space) -> usize {
        space.location_dim * (1 + 2 * self.location_frequencies)
    }
}

/// Symbols of an alphabet.
const MOST_LEVELS: usize = 4096;
/// Words of a vocabulary, for which a network has an output each; their numbers are exact in f32.
const MOST_WORDS: usize = MAX_OUTPUTS;
