//! The conditional energy-based process:
//!
//! ```text
//! θ ~ q(θ | context),   p(x | t, θ) = exp f(x, t; θ) / Z(t; θ)
//! ```
//!
//! f is a network over value and location with θ added at every layer, Z an integral over the
//! value's domain. Trained by maximum likelihood with Z by stratified importance sampling
//! (`importance.rs`) or by the paper's learned sampler (`ade.rs`); predictions normalise by
//! quadrature (`predict.rs`).

mod ade;
mod config;
mod features;
mod importance;
mod latent;
mod predict;
mod proposal;
mod sampler;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Tensor, Var};

use self::latent::Posterior;
use self::sampler::Sampler;
use crate::nn::{Adam, AdamConfig, MovingAverage, Parameters, PointModule};
use crate::point::{MlpShape, PointBackend};
use crate::{Error, IndexedSet, Result};

pub use config::{AdeConfig, EnergyBasedConfig, Estimator, PosteriorPooling, TrainingMode};
pub use importance::{Losses, StepSettings};
pub use predict::{EnergyBasedPredictive, PredictionRule};

/// A set cut in two: what is observed, and what is asked for.
#[derive(Clone, Debug)]
pub struct Task {
    /// The observed elements; may be empty.
    pub context: IndexedSet,
    /// The elements to predict; at least one.
    pub target: IndexedSet,
}

/// An energy-based process over measurements, with its optimiser.
#[derive(Debug)]
pub struct EnergyBasedProcess {
    config: EnergyBasedConfig,
    parameters: Parameters,
    posterior: Posterior,
    energy: PointModule,
    energy_parameters: Var,
    adam: Adam,
    average: MovingAverage,
    /// Only for the estimator `ade`.
    sampler: Option<Sampler>,
    sampler_adam: Option<Adam>,
}

impl EnergyBasedProcess {
    /// Networks with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the field that is outside its range.
    pub fn new(
        config: EnergyBasedConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        config.check()?;
        let parameters = Parameters::new(seed);
        let model = parameters.group("model");
        let posterior = Posterior::new(&config, &model.group("posterior"), Arc::clone(&backend))?;
        let shape = MlpShape::new(config.energy())?;
        let energy_parameters = model.group("energy").point_mlp("elements", &shape)?;
        scale_range(&energy_parameters, shape.layers()[0].weight.clone(), config.input_scale)?;
        let energy = PointModule::new(shape, Arc::clone(&backend));
        let settings = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let (mut sampler, mut sampler_adam) = (None, None);
        let mut beta1 = settings.beta1;
        if let Estimator::Ade(ade) = &config.estimator {
            let group = parameters.group("sampler");
            sampler = Some(Sampler::new(&config, ade, &group, backend)?);
            let settings = AdamConfig { beta1: ade.sampler_beta1, ..settings };
            sampler_adam = Some(Adam::new(&group, settings)?);
            // Against a moving opponent momentum overshoots.
            beta1 = 0.0;
        }
        let adam = Adam::new(&model, AdamConfig { beta1, ..settings })?;
        let average = MovingAverage::new(&model, config.average_decay)?;
        Ok(Self {
            config,
            parameters,
            posterior,
            energy,
            energy_parameters,
            adam,
            average,
            sampler,
            sampler_adam,
        })
    }

    /// The settings.
    pub fn config(&self) -> &EnergyBasedConfig {
        &self.config
    }

    /// The networks' parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Predicts with the moving average of the parameters from now on; training takes up the
    /// parameters themselves again.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] if a tensor cannot be exchanged.
    pub fn use_average(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { Ok(()) } else { self.average.swap_in() }
    }

    /// The energy's parameters, with the output divided by τ: calibrated densities are exp(f/τ).
    fn calibrated_parameters(&self, temperature: f64) -> Result<Tensor> {
        let flat = self.energy_parameters.as_tensor();
        let layers = self.energy.shape().layers();
        let start = layers[layers.len() - 1].weight.start;
        let output = flat.narrow(0, start, flat.dim(0)? - start)?;
        Ok(Tensor::cat(&[flat.narrow(0, 0, start)?, (output / temperature)?], 0)?)
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] if a tensor cannot be read.
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        let parts = [
            ("parameters", self.parameters.export()?),
            ("adam", self.adam.export()?),
            ("average", self.average.export()?),
        ];
        let sampler = match &self.sampler_adam {
            Some(adam) => adam.export()?,
            None => BTreeMap::new(),
        };
        let mut state = BTreeMap::new();
        for (part, tensors) in parts.into_iter().chain([("sampler_adam", sampler)]) {
            state.extend(tensors.into_iter().map(|(name, t)| (format!("{part}/{name}"), t)));
        }
        Ok(state)
    }

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming an entry that is missing, does not fit or is not known.
    pub fn restore(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut parts: BTreeMap<&str, BTreeMap<String, Tensor>> = BTreeMap::new();
        for (name, tensor) in state {
            let Some((part, rest)) = name.split_once('/') else {
                return Err(Error::invalid("state", "names with a part before `/`", name));
            };
            parts.entry(part).or_default().insert(rest.to_owned(), tensor.clone());
        }
        let mut take = |part: &str| {
            parts
                .remove(part)
                .ok_or_else(|| Error::invalid("state", "all parts", format!("no {part}")))
        };
        let (parameters, adam, average) = (take("parameters")?, take("adam")?, take("average")?);
        if let Some(optimiser) = &mut self.sampler_adam {
            optimiser.import(&take("sampler_adam")?)?;
        }
        if let Some(part) = parts.keys().next() {
            return Err(Error::invalid("state", "the parts of this estimator", part));
        }
        self.parameters.import(&parameters)?;
        self.adam.import(&adam)?;
        self.average.import(&average)
    }
}

/// Multiplies a range of flat parameters.
fn scale_range(parameters: &Var, range: std::ops::Range<usize>, scale: f32) -> Result<()> {
    let mut flat = parameters.as_tensor().to_vec1::<f32>()?;
    for weight in &mut flat[range] {
        *weight *= scale;
    }
    let length = flat.len();
    parameters.set(&Tensor::from_vec(flat, length, parameters.device())?)?;
    Ok(())
}
