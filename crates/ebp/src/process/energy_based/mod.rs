//! The conditional energy-based process:
//!
//! ```text
//! θ ~ q(θ | context),   p(x | t, θ) = exp f(x, t; θ) / Z(t; θ)
//! ```
//!
//! f is a network over value and location with θ added at every layer, Z an integral over the
//! value's domain. A training step (`learn.rs`) estimates the gradient of log Z by importance
//! sampling (`importance.rs`) or by the paper's learned sampler (`ade.rs`, `sampler.rs`,
//! `dynamics.rs`); predictions normalise by quadrature or sampling (`predict.rs`).

mod ade;
mod around;
mod config;
pub(super) mod dynamics;
pub(super) mod energy;
mod features;
mod fill;
mod hypotheses;
mod importance;
pub(super) mod latent;
mod learn;
mod partition;
mod predict;
mod proposal;
mod sampler;
mod sampler_config;
mod targets;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Tensor, Var};

use self::energy::Energy;
use self::latent::Posterior;
use self::sampler::Sampler;
use super::{Learner, Task};
use crate::Result;
use crate::nn::{Adam, AdamConfig, MovingAverage, Parameters, StateParts, join_parts};
use crate::point::PointBackend;
use crate::tensor::Tensors;

pub use config::{EnergyBasedConfig, Estimator, PosteriorPooling, Proposal, TrainingMode};
pub use fill::FillSettings;
pub use predict::{EnergyBasedPredictive, PredictionRule};
pub use sampler_config::{Dynamics, SamplerConfig};

pub(super) use features::push_features;
pub(super) use latent::Gaussians;

/// An energy-based process over measurements, with its optimiser.
#[derive(Debug)]
pub struct EnergyBasedProcess {
    config: EnergyBasedConfig,
    parameters: Parameters,
    posterior: Posterior,
    energy: Energy,
    adam: Adam,
    average: MovingAverage,
    /// For the estimator `ade` and for proposals.
    sampler: Option<(Sampler, Adam)>,
}

impl EnergyBasedProcess {
    /// Networks with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming the field that is outside its range.
    pub fn new(
        config: EnergyBasedConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        config.check()?;
        let parameters = Parameters::new(seed);
        let model = parameters.group("model");
        let posterior = Posterior::new(&config, &model.group("posterior"), Arc::clone(&backend))?;
        let energy = Energy::new(&config, &model.group("energy"), Arc::clone(&backend))?;
        let settings = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let sampler = if config.has_sampler() {
            let group = parameters.group("sampler");
            let sampler = Sampler::new(&config, &group, backend)?;
            let settings = AdamConfig { beta1: config.sampler.beta1, ..settings };
            Some((sampler, Adam::new(&group, settings)?))
        } else {
            None
        };
        // Against a moving opponent momentum overshoots.
        let beta1 = if config.estimator == Estimator::Ade { 0.0 } else { settings.beta1 };
        let adam = Adam::new(&model, AdamConfig { beta1, ..settings })?;
        let average = MovingAverage::new(&model, config.average_decay)?;
        Ok(Self { config, parameters, posterior, energy, adam, average, sampler })
    }

    /// The settings.
    pub fn config(&self) -> &EnergyBasedConfig {
        &self.config
    }

    /// The networks' parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn export(&self) -> Result<Tensors> {
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

    fn import(&mut self, state: &Tensors) -> Result<()> {
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
}

/// Multiplies a range of flat parameters.
pub(super) fn scale_range(
    parameters: &Var,
    range: std::ops::Range<usize>,
    scale: f32,
) -> Result<()> {
    let mut flat = parameters.as_tensor().to_vec1::<f32>()?;
    for weight in &mut flat[range] {
        *weight *= scale;
    }
    let length = flat.len();
    parameters.set(&Tensor::from_vec(flat, length, parameters.device())?)?;
    Ok(())
}
