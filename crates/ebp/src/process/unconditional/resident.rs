//! Steps that a device takes by itself: where each parameter lies there, and what a step reports.

use std::sync::Arc;

use candle_core::Var;

use super::UnconditionalProcess;
use super::batch::Batch;
use super::config::{CloudEstimator, UnconditionalConfig};
use super::encoder::{FIRST_LOG_STD_DEV, LOG_STD_DEV_RANGE};
use super::learn::ACTIVE;
use super::networks::{Optimiser, adam_config};
use crate::error::check_finite;
use crate::nn::{Parameters, Record, Step, read_variable, write_variable};
use crate::point::{
    MlpShape, PlacedLinear, PlacedMlp, PointBackend, ResidentLearner, ResidentModel,
    ResidentReport, ResidentState, ResidentStep, SentBatch,
};
use crate::{Error, Result};

/// Parameters begin at multiples of this many numbers: devices read several at a time.
const ALIGNMENT: usize = 64;

/// A device that takes whole steps, and where each variable lies there.
#[derive(Debug)]
pub(super) struct Resident {
    learner: Arc<dyn ResidentLearner>,
    length: usize,
    places: Vec<Place>,
}

/// A variable and its first number in the flat arrays.
#[derive(Debug)]
struct Place {
    name: String,
    variable: Var,
    start: usize,
}

impl Resident {
    /// `None` if the device takes no whole steps, or not of this kind: a learned sampler, another
    /// estimator or a spectral norm are steps of the host.
    pub(super) fn new(
        config: &UnconditionalConfig,
        model: &Parameters,
        backend: &dyn PointBackend,
    ) -> Result<Option<Self>> {
        Self::on(config, model, |model| backend.resident(model))
    }

    /// As [`new`](Self::new), on whatever `open` gives for the model.
    fn on(
        config: &UnconditionalConfig,
        model: &Parameters,
        open: impl FnOnce(&ResidentModel) -> Result<Option<Arc<dyn ResidentLearner>>>,
    ) -> Result<Option<Self>> {
        let is_plain = config.estimator == CloudEstimator::Importance
            && !config.has_sampler()
            && !config.spectral_norm;
        if !is_plain {
            return Ok(None);
        }
        let mut length = 0;
        let places: Vec<Place> = model
            .trained_variables()
            .into_iter()
            .map(|(name, variable)| {
                let start = length;
                length += variable.elem_count().next_multiple_of(ALIGNMENT);
                Place { name, variable, start }
            })
            .collect();
        let model = resident_model(config, &places, length)?;
        let learner = open(&model)?;
        Ok(learner.map(|learner| Self { learner, length, places }))
    }

    pub(super) fn learner(&self) -> Arc<dyn ResidentLearner> {
        Arc::clone(&self.learner)
    }

    /// Puts everything on the device; false if it cannot go there because variables were moved
    /// differently often.
    pub(super) fn load(&self, optimiser: &Optimiser) -> Result<bool> {
        let Some(num_steps) = optimiser.adam.common_steps() else { return Ok(false) };
        let empty = || vec![0.0; self.length];
        let mut state = ResidentState {
            parameters: empty(),
            first: empty(),
            second: empty(),
            average: empty(),
            num_steps,
        };
        let moments = optimiser.adam.moments().zip(optimiser.average.averages());
        for (place, ((first, second), average)) in self.places.iter().zip(moments) {
            let range = place.start..place.start + average.len();
            read_variable(&place.variable, &mut state.parameters[range.clone()])?;
            state.first[range.clone()].copy_from_slice(first);
            state.second[range.clone()].copy_from_slice(second);
            state.average[range].copy_from_slice(average);
        }
        self.learner.load(&state)?;
        Ok(true)
    }

    /// The error that names an entry of the flat gradient.
    pub(super) fn non_finite_gradient(&self, index: usize, value: f32) -> Error {
        let before = self.places.iter().rev().find(|place| place.start <= index);
        let (parameter, start) =
            before.map_or((String::new(), 0), |place| (place.name.clone(), place.start));
        Error::NonFiniteGradient { parameter, index: index - start, value }
    }

    /// Takes everything back.
    pub(super) fn save(&self, optimiser: &mut Optimiser) -> Result<()> {
        let state = self.learner.save()?;
        let moments = optimiser.adam.moments_mut(state.num_steps);
        let moments = moments.zip(optimiser.average.averages_mut());
        for (place, ((first, second), average)) in self.places.iter().zip(moments) {
            let range = place.start..place.start + average.len();
            write_variable(&place.variable, &state.parameters[range.clone()])?;
            first.copy_from_slice(&state.first[range.clone()]);
            second.copy_from_slice(&state.second[range.clone()]);
            average.copy_from_slice(&state.average[range]);
        }
        Ok(())
    }
}

fn resident_model(
    config: &UnconditionalConfig,
    places: &[Place],
    length: usize,
) -> Result<ResidentModel> {
    let find = |name: &str| {
        places.iter().find(|place| place.name.strip_prefix("model.") == Some(name)).ok_or_else(
            || Error::invalid("parameters", format!("with `model.{name}`"), "none of that name"),
        )
    };
    let network =
        |name: &str, shape: MlpShape| Ok::<_, Error>(PlacedMlp { shape, start: find(name)?.start });
    let widths: Vec<usize> = config
        .encoder_widths
        .last()
        .into_iter()
        .copied()
        .chain(config.head_widths.iter().copied())
        .chain([2 * config.latent_dim])
        .collect();
    let head = widths
        .windows(2)
        .enumerate()
        .map(|(layer, widths)| {
            Ok(PlacedLinear {
                inputs: widths[0],
                outputs: widths[1],
                weight: find(&format!("encoder.head.{layer}.weight"))?.start,
                bias: find(&format!("encoder.head.{layer}.bias"))?.start,
            })
        })
        .collect::<Result<_>>()?;
    let adam = adam_config(config);
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    Ok(ResidentModel {
        encoder: network("encoder.elements", MlpShape::new(config.encoder())?)?,
        head,
        energy: network("energy.elements", MlpShape::new(config.energy())?)?,
        temperature: config.temperature as f32,
        log_std_dev: (FIRST_LOG_STD_DEV as f32, LOG_STD_DEV_RANGE.0, LOG_STD_DEV_RANGE.1),
        length,
        betas: (adam.beta1, adam.beta2),
        denominator_floor: adam.denominator_floor,
        max_gradient_norm: config.max_gradient_norm,
        weight_decay: adam.weight_decay,
        average_decay: config.average_decay,
    })
}

impl UnconditionalProcess {
    /// A step on the device.
    pub(super) fn learn_there(
        &self,
        batch: &Batch,
        sent: Box<dyn SentBatch>,
        step: &Step,
    ) -> Result<Record> {
        let sets = batch.offsets.num_sets();
        let kappa = self.kappa(step);
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let weight = |set: usize| (kappa / (batch.whole.size(set) * sets) as f64) as f32;
        let kl_weights: Vec<f32> = (0..sets).map(weight).collect();
        let report = sent.learn(&ResidentStep {
            learning_rate: self.learning_rate(step),
            kl_weights: kl_weights.clone(),
            noise: step.stream.child(1),
        })?;
        self.check_report(&report)?;
        let terms = report.log_partition.iter().zip(&report.means);
        let sum: f64 = terms.map(|(log_z, mean)| f64::from(*log_z) - f64::from(*mean)).sum();
        let base: f64 = batch.bases.iter().sum();
        let nats = (sum - base) / sets as f64;
        let kl_terms = report.kl.iter().zip(&kl_weights);
        let kl_share: f64 = kl_terms.map(|(kl, weight)| f64::from(*kl) * f64::from(*weight)).sum();
        let mean = |part: usize| {
            report.shares.iter().map(|shares| f64::from(shares[part])).sum::<f64>() / sets as f64
        };
        let kl: f64 = report.kl.iter().map(|kl| f64::from(*kl)).sum();
        Ok(vec![
            ("loss", nats + kl_share),
            ("nats", nats),
            ("kl", kl / sets as f64),
            ("active_units", report.unit_kl.iter().filter(|kl| **kl > ACTIVE).count() as f64),
            ("effective_candidates", mean(0)),
            ("near_share", mean(1)),
            ("largest_share", mean(2)),
            ("gradient_norm", report.gradient_norm),
        ])
    }

    /// Numbers that are not finite end the step with an error, as they do on the host.
    fn check_report(&self, report: &ResidentReport) -> Result<()> {
        const REMEDY: &str = "lower the learning rate, or clip gradients at a smaller length";
        check_finite("log partition", &report.log_partition, REMEDY)?;
        check_finite("mean values", &report.means, REMEDY)?;
        check_finite("kl", &report.kl, REMEDY)?;
        match report.non_finite {
            Some((index, value)) => Err(self.networks.non_finite_gradient(index, value)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
