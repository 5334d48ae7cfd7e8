//! The unconditional energy-based process: a law of sets of points, of any number.
//!
//! ```text
//! θ ~ p(θ),   p(x₁, …, xₙ | θ) = ∏ᵢ exp(u(xᵢ; θ)) / Z(θ),   u = f(x; θ)/τ − ‖x‖²/(2 s₀²)
//! ```
//!
//! Given θ the points are independent, so the process is exchangeable and consistent for every n.
//! A training step (`learn.rs`) encodes sets (`encoder.rs`), draws θ and estimates the gradient of
//! log Z with candidates around the set's own points (`proposal.rs`), by the paper's learned
//! sampler (`ade.rs`, `sampler.rs`), or not at all (`score_matching.rs`). Points of a given θ are drawn
//! by importance resampling on a grid and Langevin steps (`points.rs`); θ of new sets come from a
//! [`Prior`](crate::latent::Prior) fitted to the codes of the training sets (`codes.rs`). Sets are
//! scored (`score.rs`) and denoised (`denoise.rs`) by the same energy.

mod ade;
mod batch;
mod codes;
mod config;
mod denoise;
mod encoder;
mod flow;
mod grid;
mod learn;
mod mala;
mod points;
mod proposal;
mod sampled;
mod sampler;
mod sampler_config;
mod score;
mod score_matching;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;

use self::encoder::Encoder;
use self::sampler::CloudSampler;
use super::energy_based::energy::{Energy, EnergyParts};
use crate::Result;
use crate::nn::{Adam, AdamConfig, Mode, MovingAverage, Parameters, StateParts, join_parts};
use crate::point::{PointBackend, PointMlp};

pub use batch::{BatchMaker, CloudBatch};
pub use codes::LatentCodes;
pub use config::{
    AugmentationConfig, CloudEstimator, Decay, LatentAt, PerturbationConfig, ProposalConfig,
    UnconditionalConfig,
};
pub use denoise::DenoiseSettings;
pub use points::{DrawReport, DrawSettings, PointMethod, PointStart};
pub use sampler_config::{CloudSamplerConfig, NoiseSchedule};

pub(super) use flow::{forward, stack};
pub use score::SetScore;

/// An energy-based process over sets of points, with its optimiser.
///
/// Everything is in units of the standardised data.
#[derive(Debug)]
pub struct UnconditionalProcess {
    config: UnconditionalConfig,
    parameters: Parameters,
    encoder: Encoder,
    energy: Energy,
    adam: Adam,
    average: MovingAverage,
    /// For the estimator `ade` and for proposals.
    sampler: Option<(CloudSampler, Adam)>,
}

impl UnconditionalProcess {
    /// Networks with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming the field that is outside its range.
    pub fn new(
        config: UnconditionalConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        config.check()?;
        let parameters = Parameters::new(seed);
        let model = parameters.group("model");
        let encoder = Encoder::new(&config, &model.group("encoder"), Arc::clone(&backend))?;
        let parts = EnergyParts {
            mlp: config.energy(),
            input_scale: config.input_scale,
            bias_scale: config.bias_scale,
            has_spectral_norm: config.spectral_norm,
            temperature: config.temperature,
        };
        let energy = Energy::from_parts(parts, &model.group("energy"), backend)?;
        let settings = AdamConfig {
            beta1: config.beta1,
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let adam = Adam::new(&model, settings)?;
        let average = MovingAverage::new(&model, config.average_decay)?;
        let sampler = if config.has_sampler() {
            let group = parameters.group("sampler");
            let sampler = CloudSampler::new(&config, &group)?;
            let settings = AdamConfig { beta1: config.sampler.beta1, ..settings };
            Some((sampler, Adam::new(&group, settings)?))
        } else {
            None
        };
        Ok(Self { config, parameters, encoder, energy, adam, average, sampler })
    }

    /// The settings.
    pub fn config(&self) -> &UnconditionalConfig {
        &self.config
    }

    /// The networks' parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Works with the averages of the parameters from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be exchanged.
    pub fn use_average(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { Ok(()) } else { self.average.swap_in() }
    }

    /// Works with the parameters themselves again.
    ///
    /// # Errors
    ///
    /// As [`use_average`](Self::use_average).
    pub fn use_parameters(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { self.average.swap_out() } else { Ok(()) }
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be read.
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        let parts = [
            ("parameters", self.parameters.export()?),
            ("adam", self.adam.export()?),
            ("average", self.average.export()?),
        ];
        let sampler = match &self.sampler {
            Some((_, adam)) => adam.export()?,
            None => BTreeMap::new(),
        };
        Ok(join_parts(parts.into_iter().chain([("sampler_adam", sampler)])))
    }

    /// Takes back what [`state`](Self::state) gave: learning goes on bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does not fit or is not known.
    pub fn restore(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        self.use_parameters()?;
        let mut parts = StateParts::split(state)?;
        let (parameters, adam) = (parts.take("parameters")?, parts.take("adam")?);
        let average = parts.take("average")?;
        if let Some((_, optimiser)) = &mut self.sampler {
            optimiser.import(&parts.take("sampler_adam")?)?;
        }
        parts.finish()?;
        self.parameters.import(&parameters)?;
        self.adam.import(&adam)?;
        self.average.import(&average)
    }

    /// The network of f/τ as it is now, without a graph.
    fn calibrated_mlp(&self) -> Result<PointMlp> {
        let parameters = self.energy.parameters(Mode::Evaluate)?;
        let flat = self.energy.calibrated(&parameters)?.to_vec1::<f32>()?;
        PointMlp::new(self.energy.module.shape().clone(), flat)
    }

    /// −‖x‖²/(2 s₀²).
    fn base(&self, x: &[f32]) -> f32 {
        self.config.base(x)
    }
}
