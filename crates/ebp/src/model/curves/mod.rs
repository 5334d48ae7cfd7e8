//! Models of curves and tables: laws of values at locations.
//!
//! The path: [`CurveSettings`] → [`CurveData`] (sets, scales, what is held out) → `learn` →
//! [`CurveModel`], which answers in the units of the data.

mod data;
mod forecast;
mod rivals;
mod settings;

pub use self::data::CurveData;
pub(crate) use self::data::{CurveSource, Scales, TableData, nats};
pub use self::forecast::{
    Forecast, ForecastLocation, ForecastMode, ForecastTarget, PredictOptions, density_csv,
    samples_csv, summary_csv, targets_csv,
};
pub use self::rivals::{ExactSettings, ImplicitSettings};
pub use self::settings::{CurveDataSettings, CurveEvaluation, CurveProcess, CurveSettings};
use super::{Device, Lesson};
use crate::checkpoint::Checkpoint;
use crate::data::Standardiser;
use crate::data::table::ColumnChoice;
use crate::process::{BoundedPartition, EnergyBasedProcess};
use crate::process::{Learner, PredictionRule, Predictive, Process, StandardisedPredictive, Task};
use crate::recipe::Space;
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::train::{Evaluation, Finished, Regression, Step, TaskConfig};
use crate::{Error, IndexedSet, Result};

/// A trained model of curves.
#[derive(Debug)]
pub struct CurveModel {
    settings: CurveSettings,
    process: Trained,
    scales: Scales,
    /// T of densities exp(f/T)/Z_T; 1 unless one was kept.
    temperature: f64,
}

/// The process, predicting with its averages.
#[derive(Debug)]
enum Trained {
    EnergyBased(Box<EnergyBasedProcess>),
    Rival(Box<dyn Learner>),
}

impl Trained {
    /// The untrained process that the settings describe.
    fn new(settings: &CurveSettings, scales: &Scales, device: &Device) -> Result<Self> {
        let location_dim = scales.standardiser.location_dim();
        let value_dim = scales.standardiser.value_dim();
        if let Some(rival) = rivals::build(settings, (location_dim, value_dim), device)? {
            return Ok(Self::Rival(rival));
        }
        let space = Space::regression(location_dim, value_dim, scales.value_domain);
        let config = settings.model.clone();
        let process = EnergyBasedProcess::new(config, space, settings.seed, device.tape())?;
        Ok(Self::EnergyBased(Box::new(process)))
    }

    fn learner(&self) -> &dyn Learner {
        match self {
            Self::EnergyBased(process) => process.as_ref(),
            Self::Rival(process) => process.as_ref(),
        }
    }

    fn into_learner(self) -> Box<dyn Learner> {
        match self {
            Self::EnergyBased(process) => process,
            Self::Rival(process) => process,
        }
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        match self {
            Self::EnergyBased(process) => process.as_mut(),
            Self::Rival(process) => process.as_mut(),
        }
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let learner = self.learner_mut();
        learner.restore(state)?;
        learner.use_average()
    }
}

/// Trains the process that the settings describe.
pub(super) fn learn(
    settings: &CurveSettings,
    data: &CurveData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let mut model = lesson.replicas(|shard, device| {
        let process = Trained::new(settings, &data.scales, device)?.into_learner();
        let num_sets = shard.part_of("tasks.num_sets", settings.tasks.num_sets)?;
        Regression::new(process, data.task_source()?, TaskConfig { num_sets, ..settings.tasks })
    })?;
    let look = |model: &mut Regression, _: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let found = data.evaluate(process);
        process.use_parameters()?;
        found
    };
    let evaluation = Evaluation::of_first(Evaluation::new(settings.evaluation.every, look)?);
    lesson.run(&mut model, evaluation, data.scales.numbers())
}

impl CurveModel {
    /// The model that a checkpoint holds.
    pub(super) fn restore(
        settings: &CurveSettings,
        checkpoint: &Checkpoint,
        device: &Device,
    ) -> Result<Self> {
        let scales = Scales::from_numbers(&checkpoint.meta.numbers)?;
        let mut process = Trained::new(settings, &scales, device)?;
        process.restore(&checkpoint.model_state()?)?;
        Ok(Self { settings: settings.clone(), process, scales, temperature: 1.0 })
    }

    pub(super) fn learner_mut(&mut self) -> &mut dyn Learner {
        self.process.learner_mut()
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &CurveSettings {
        &self.settings
    }

    /// The process by itself, in standardised units.
    pub fn process(&self) -> &dyn Process {
        self.process.learner()
    }

    /// What a fit to all sets at once found, by name; see [`Learner::fitted`].
    pub fn fitted(&self) -> Vec<(&'static str, f64)> {
        self.process.learner().fitted()
    }

    /// d_t, the numbers of a location.
    pub fn location_dim(&self) -> usize {
        self.scales.standardiser.location_dim()
    }

    /// d_x, the numbers of a value.
    pub fn value_dim(&self) -> usize {
        self.scales.standardiser.value_dim()
    }

    /// The columns of tables that it was trained with. A context may lack the column of sets.
    pub fn columns(&self) -> ColumnChoice {
        let data = &self.settings.data;
        ColumnChoice {
            set: data.set_column.clone(),
            set_is_optional: true,
            locations: data.location_columns.clone(),
            values: data.value_columns.clone(),
        }
    }

    /// Where values may lie, in the units of the data; the same for every value column.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn value_range(&self) -> Result<(f64, f64)> {
        let (low, high) = self.scales.value_domain;
        let edge = |edge: f32| -> Result<f64> {
            let row = vec![f64::from(edge); self.value_dim()];
            Ok(self.scales.standardiser.invert_values(&row)?[0])
        };
        Ok((edge(low)?, edge(high)?))
    }

    /// The law of further elements, given a context in the units of the data. `rule` says how the
    /// latent of an energy-based process is removed; rivals have their own way.
    ///
    /// # Errors
    ///
    /// As [`Process::condition`].
    pub fn condition_by(
        &self,
        context: &IndexedSet,
        rule: PredictionRule,
    ) -> Result<Box<dyn Predictive + '_>> {
        let standardiser = &self.scales.standardiser;
        let context = standardiser.apply(context)?;
        let inner: Box<dyn Predictive + '_> = match &self.process {
            Trained::EnergyBased(process) => {
                Box::new(process.predict_at(&context, rule, self.temperature)?)
            }
            Trained::Rival(process) => process.condition(&context)?,
        };
        Ok(Box::new(StandardisedPredictive::new(inner, standardiser)))
    }

    /// The energy-based process that it is, in standardised units; `None` of rivals.
    pub(crate) fn energy_based(&self) -> Option<&EnergyBasedProcess> {
        match &self.process {
            Trained::EnergyBased(process) => Some(process),
            Trained::Rival(_) => None,
        }
    }

    /// The mean over locations `[m, d_t]` of log Z(t; θ) at the mean θ given a context, in the units of the
    /// data and from both sides; see [`EnergyBasedProcess::bounded_partition`]. `None` of rivals too.
    ///
    /// # Errors
    ///
    /// As [`Process::condition`].
    pub fn bounded_partition(
        &self,
        context: &IndexedSet,
        locations: &[f64],
        count: usize,
        stream: Stream,
    ) -> Result<Option<BoundedPartition>> {
        let Some(process) = self.energy_based() else { return Ok(None) };
        let standardiser = &self.scales.standardiser;
        let (context, locations) =
            (standardiser.apply(context)?, standardiser.apply_locations(locations)?);
        let found = process.bounded_partition(&context, &locations, count, stream)?;
        // Densities of data are those of standardised values over Π s: Z is as much larger.
        Ok(found.map(|found| found.shifted(-standardiser.log_density_correction())))
    }

    /// How numbers of the data become numbers of the model.
    pub(crate) fn standardiser(&self) -> &Standardiser {
        &self.scales.standardiser
    }

    /// T of its densities.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    pub(super) fn set_temperature(&mut self, temperature: f64) -> Result<()> {
        if self.energy_based().is_none() {
            let message = format!("a model `{}` has no energy to divide", self.name());
            return Err(Error::refused(message).with_help("only energy-based models can"));
        }
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::invalid("temperature", "positive and finite", temperature));
        }
        self.temperature = temperature;
        Ok(())
    }

    /// The same model with another temperature.
    pub(crate) fn at_temperature(&self, temperature: f64) -> Tempered<'_> {
        Tempered { model: self, temperature }
    }

    /// log p of every target, in the units of the data, with f divided by each of `temperatures`,
    /// `[temperatures, m]`; `None` of rivals.
    pub(crate) fn log_densities_at(
        &self,
        task: &Task,
        temperatures: &[f64],
    ) -> Result<Option<Vec<Vec<f64>>>> {
        let Some(process) = self.energy_based() else { return Ok(None) };
        let standardiser = &self.scales.standardiser;
        let context = standardiser.apply(&task.context)?;
        let predictive = process.predict(&context, PredictionRule::Mixture)?;
        let targets = standardiser.apply(&task.target)?;
        let mut found = predictive.log_densities_at(&targets, temperatures)?;
        let correction = standardiser.log_density_correction();
        found.iter_mut().flatten().for_each(|value| *value += correction);
        Ok(Some(found))
    }
}

/// A model of curves with another temperature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tempered<'a> {
    model: &'a CurveModel,
    temperature: f64,
}

impl Process for Tempered<'_> {
    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        let Some(process) = self.model.energy_based() else {
            return self.model.condition(context);
        };
        let standardiser = &self.model.scales.standardiser;
        let context = standardiser.apply(context)?;
        let inner = process.predict_at(&context, PredictionRule::Mixture, self.temperature)?;
        Ok(Box::new(StandardisedPredictive::new(Box::new(inner), standardiser)))
    }
}

impl Process for CurveModel {
    fn name(&self) -> &'static str {
        self.process().name()
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        self.condition_by(context, PredictionRule::Mixture)
    }
}
