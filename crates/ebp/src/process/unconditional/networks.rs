//! Encoder and energy with their optimiser, on the host or ahead of it on a device.
//!
//! A device that takes whole steps has the newest numbers; whoever asks for a network here gets them
//! from there first. Nobody can read an old one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::backprop::GradStore;

use super::config::UnconditionalConfig;
use super::encoder::Encoder;
use super::resident::Resident;
use crate::nn::{Adam, AdamConfig, AdamStep, MovingAverage, Parameters};
use crate::point::{PointBackend, ResidentLearner};
use crate::process::energy_based::energy::{Energy, EnergyParts};
use crate::tensor::Tensors;
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct Networks {
    /// All parameters of the process, the sampler's too.
    parameters: Parameters,
    backend: Arc<dyn PointBackend>,
    encoder: Encoder,
    energy: Energy,
    optimiser: Mutex<Optimiser>,
    resident: Option<Resident>,
}

#[derive(Debug)]
pub(super) struct Optimiser {
    pub(super) adam: Adam,
    pub(super) average: MovingAverage,
    /// Whether the device is ahead of the host.
    is_there: bool,
}

pub(super) fn adam_config(config: &UnconditionalConfig) -> AdamConfig {
    AdamConfig {
        beta1: config.beta1,
        max_gradient_norm: Some(config.max_gradient_norm),
        weight_decay: config.weight_decay,
        ..AdamConfig::default()
    }
}

impl Networks {
    pub(super) fn new(
        config: &UnconditionalConfig,
        parameters: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let model = parameters.group("model");
        let encoder = Encoder::new(config, &model.group("encoder"), Arc::clone(&backend))?;
        let parts = EnergyParts {
            mlp: config.energy(),
            input_scale: config.input_scale,
            bias_scale: config.bias_scale,
            has_spectral_norm: config.spectral_norm,
            temperature: config.temperature,
        };
        let energy = Energy::from_parts(parts, &model.group("energy"), Arc::clone(&backend))?;
        let optimiser = Optimiser {
            adam: Adam::new(&model, adam_config(config))?,
            average: MovingAverage::new(&model, config.average_decay)?,
            is_there: false,
        };
        let resident = Resident::new(config, &model, &*backend)?;
        Ok(Self {
            parameters: parameters.clone(),
            backend,
            encoder,
            energy,
            optimiser: Mutex::new(optimiser),
            resident,
        })
    }

    /// Takes steps on another device.
    #[cfg(test)]
    pub(super) fn learn_on(&mut self, resident: Option<Resident>) {
        self.resident = resident;
    }

    pub(super) fn backend(&self) -> &Arc<dyn PointBackend> {
        &self.backend
    }

    /// Where whole steps are taken, if anywhere.
    pub(super) fn learner(&self) -> Option<Arc<dyn ResidentLearner>> {
        self.resident.as_ref().map(Resident::learner)
    }

    pub(super) fn parameters(&self) -> Result<&Parameters> {
        drop(self.come_back()?);
        Ok(&self.parameters)
    }

    pub(super) fn encoder(&self) -> Result<&Encoder> {
        drop(self.come_back()?);
        Ok(&self.encoder)
    }

    pub(super) fn energy(&self) -> Result<&Energy> {
        drop(self.come_back()?);
        Ok(&self.energy)
    }

    /// The error that names an entry of the device's gradient.
    pub(super) fn non_finite_gradient(&self, index: usize, value: f32) -> Error {
        match &self.resident {
            Some(resident) => resident.non_finite_gradient(index, value),
            None => Error::NonFiniteGradient { parameter: "model".into(), index, value },
        }
    }

    /// Makes the device ready for a step; false if steps are taken here.
    pub(super) fn go_there(&self) -> Result<bool> {
        let Some(resident) = &self.resident else { return Ok(false) };
        let mut optimiser = self.lock();
        if !optimiser.is_there {
            optimiser.is_there = resident.load(&optimiser)?;
        }
        Ok(optimiser.is_there)
    }

    /// Brings the newest numbers here, if they are on the device. Afterwards those here count.
    fn come_back(&self) -> Result<MutexGuard<'_, Optimiser>> {
        let mut optimiser = self.lock();
        if let (Some(resident), true) = (&self.resident, optimiser.is_there) {
            resident.save(&mut optimiser)?;
            optimiser.is_there = false;
        }
        Ok(optimiser)
    }

    fn lock(&self) -> MutexGuard<'_, Optimiser> {
        self.optimiser.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step of Adam and of the moving average, here.
    pub(super) fn update(&self, gradients: &GradStore, learning_rate: f64) -> Result<AdamStep> {
        let mut optimiser = self.come_back()?;
        let step = optimiser.adam.step(gradients, learning_rate)?;
        optimiser.average.update()?;
        Ok(step)
    }

    /// Puts the averages in the place of the parameters, or takes them out again.
    pub(super) fn use_average(&self, is_wanted: bool) -> Result<()> {
        if self.lock().average.is_swapped_in() == is_wanted {
            return Ok(());
        }
        let mut optimiser = self.come_back()?;
        if is_wanted { optimiser.average.swap_in() } else { optimiser.average.swap_out() }
    }

    pub(super) fn export(&self) -> Result<[(&'static str, Tensors); 3]> {
        let optimiser = self.come_back()?;
        Ok([
            ("parameters", self.parameters.export()?),
            ("adam", optimiser.adam.export()?),
            ("average", optimiser.average.export()?),
        ])
    }

    pub(super) fn import(
        &self,
        parameters: &Tensors,
        adam: &Tensors,
        average: &Tensors,
    ) -> Result<()> {
        let mut optimiser = self.come_back()?;
        self.parameters.import(parameters)?;
        optimiser.adam.import(adam)?;
        optimiser.average.import(average)
    }
}
