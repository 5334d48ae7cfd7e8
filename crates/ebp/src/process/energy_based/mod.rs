//! The conditional energy-based process:
//!
//! ```text
//! θ ~ q(θ | context),   p(x | t, θ) = exp f(x, t; θ) / Z(t; θ)
//! ```
//!
//! f is a network over value and location with θ added at every layer, Z an integral over the
//! value's domain. Trained by maximum likelihood with Z by stratified importance sampling
//! (`importance.rs`); predictions normalise by quadrature (`predict.rs`).

mod config;
mod features;
mod importance;
mod latent;
mod predict;
mod proposal;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Tensor, Var};

use self::latent::Posterior;
use crate::nn::{Adam, AdamConfig, MovingAverage, Parameters, PointModule};
use crate::point::{MlpShape, PointBackend};
use crate::{Error, IndexedSet, Result};

pub use config::{EnergyBasedConfig, PosteriorPooling, TrainingMode};
pub use importance::{Losses, StepSettings};
pub use predict::Prediction;

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
        let posterior =
            Posterior::new(&config, &parameters.group("posterior"), Arc::clone(&backend))?;
        let shape = MlpShape::new(config.energy())?;
        let energy_parameters = parameters.group("energy").point_mlp("elements", &shape)?;
        scale_inputs(&shape, &energy_parameters, config.input_scale)?;
        let energy = PointModule::new(shape, backend);
        let settings = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let adam = Adam::new(&parameters, settings)?;
        let average = MovingAverage::new(&parameters, config.average_decay)?;
        Ok(Self { config, parameters, posterior, energy, energy_parameters, adam, average })
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
        let mut state = BTreeMap::new();
        for (part, tensors) in parts {
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
        if let Some(part) = parts.keys().next() {
            return Err(Error::invalid("state", "parameters, adam and average", part));
        }
        self.parameters.import(&parameters)?;
        self.adam.import(&adam)?;
        self.average.import(&average)
    }
}

/// Enlarges the first layer's weights of value and location.
fn scale_inputs(shape: &MlpShape, parameters: &Var, scale: f32) -> Result<()> {
    let mut flat = parameters.as_tensor().to_vec1::<f32>()?;
    let first = &shape.layers()[0];
    for weight in &mut flat[first.weight.clone()] {
        *weight *= scale;
    }
    let length = flat.len();
    parameters.set(&Tensor::from_vec(flat, length, parameters.device())?)?;
    Ok(())
}
