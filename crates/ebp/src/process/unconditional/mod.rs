//! The unconditional energy-based process: a law of sets of points, of any number.
//!
//! ```text
//! θ ~ p(θ),   p(x₁, …, xₙ | θ) = ∏ᵢ exp(u(xᵢ; θ)) / Z(θ),   u = f(x; θ)/τ − ‖x‖²/(2 s₀²)
//! ```
//!
//! Given θ the points are independent, so the process is exchangeable and consistent for every n.
//! A training step (`learn.rs`) encodes sets (`encoder.rs`), draws θ and estimates the gradient of
//! log Z with candidates around the set's own points (`proposal.rs`), by the paper's learned
//! sampler (`ade.rs`, `sampler.rs`), or not at all (`score_matching.rs`); a GPU may take the whole of it
//! (`networks.rs`, `resident.rs`). Points of a given θ are drawn
//! by importance resampling on a grid and Langevin steps (`points.rs`); θ of new sets come from a
//! [`Prior`](crate::latent::Prior) fitted to the codes of the training sets (`codes.rs`). Sets are
//! scored (`score.rs`) and denoised (`denoise.rs`) by the same energy.

mod ade;
mod around;
mod batch;
mod codes;
mod config;
mod denoise;
mod encoder;
mod flow;
mod grid;
mod learn;
mod mala;
mod networks;
mod points;
pub(crate) mod proposal;
mod resident;
mod sampled;
mod sampler;
mod sampler_config;
mod score;
mod score_matching;
mod tempered;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::networks::{Networks, adam_config};
use self::sampler::CloudSampler;
use crate::Result;
use crate::nn::{Adam, AdamConfig, Mode, Parameters, StateParts, join_parts};
use crate::point::{PointBackend, PointMlp};
use crate::tensor::Tensors;

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
    networks: Networks,
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
        let networks = Networks::new(&config, &parameters, backend)?;
        let sampler = if config.has_sampler() {
            let group = parameters.group("sampler");
            let sampler = CloudSampler::new(&config, &group)?;
            let settings = AdamConfig {
                beta1: config.sampler.beta1,
                weight_decay: 0.0,
                ..adam_config(&config)
            };
            Some((sampler, Adam::new(&group, settings)?))
        } else {
            None
        };
        Ok(Self { config, networks, sampler })
    }

    /// The settings.
    pub fn config(&self) -> &UnconditionalConfig {
        &self.config
    }

    /// The networks' parameters as they are now.
    ///
    /// # Errors
    ///
    /// As [`use_average`](Self::use_average).
    pub fn parameters(&self) -> Result<&Parameters> {
        self.networks.parameters()
    }

    /// Whether a device takes whole steps, so that the host's threads are free.
    pub fn learns_on_device(&self) -> bool {
        self.networks.learner().is_some()
    }

    /// Works with the averages of the parameters from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be exchanged,
    /// [`Error::Device`](crate::Error::Device) if the device that trained them fails.
    pub fn use_average(&mut self) -> Result<()> {
        self.networks.use_average(true)
    }

    /// Works with the parameters themselves again.
    ///
    /// # Errors
    ///
    /// As [`use_average`](Self::use_average).
    pub fn use_parameters(&mut self) -> Result<()> {
        self.networks.use_average(false)
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// As [`use_average`](Self::use_average).
    pub fn state(&self) -> Result<Tensors> {
        let sampler = match &self.sampler {
            Some((_, adam)) => adam.export()?,
            None => BTreeMap::new(),
        };
        let parts = self.networks.export()?;
        Ok(join_parts(parts.into_iter().chain([("sampler_adam", sampler)])))
    }

    /// Takes back what [`state`](Self::state) gave: learning goes on bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does not fit or is not known.
    pub fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.use_parameters()?;
        let mut parts = StateParts::split(state)?;
        let (parameters, adam) = (parts.take("parameters")?, parts.take("adam")?);
        let average = parts.take("average")?;
        if let Some((_, optimiser)) = &mut self.sampler {
            optimiser.import(&parts.take("sampler_adam")?)?;
        }
        parts.finish()?;
        self.networks.import(&parameters, &adam, &average)
    }

    /// The network of f/τ as it is now, without a graph.
    fn calibrated_mlp(&self) -> Result<PointMlp> {
        let energy = self.networks.energy()?;
        let parameters = energy.parameters(Mode::Evaluate)?;
        let flat = energy.calibrated(&parameters)?.to_vec1::<f32>()?;
        PointMlp::new(energy.module.shape().clone(), flat)
    }

    /// −‖x‖²/(2 s₀²).
    fn base(&self, x: &[f32]) -> f32 {
        self.config.base(x)
    }
}
