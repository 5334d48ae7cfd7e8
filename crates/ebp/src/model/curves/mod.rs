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
use crate::data::table::ColumnChoice;
use crate::process::EnergyBasedProcess;
use crate::process::{Learner, PredictionRule, Predictive, Process, StandardisedPredictive};
use crate::recipe::Space;
use crate::tensor::Tensors;
use crate::train::{Evaluation, Finished, Regression, Step};
use crate::{IndexedSet, Result};

/// A trained model of curves.
#[derive(Debug)]
pub struct CurveModel {
    settings: CurveSettings,
    process: Trained,
    scales: Scales,
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

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let learner: &mut dyn Learner = match self {
            Self::EnergyBased(process) => process.as_mut(),
            Self::Rival(process) => process.as_mut(),
        };
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
    let process = Trained::new(settings, &data.scales, &lesson.device)?.into_learner();
    let mut model = Regression::new(process, data.task_source()?, settings.tasks)?;
    let look = |model: &mut Regression, _: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let found = data.evaluate(process);
        process.use_parameters()?;
        found
    };
    let evaluation = Evaluation::new(settings.evaluation.every, look)?;
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
        Ok(Self { settings: settings.clone(), process, scales })
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &CurveSettings {
        &self.settings
    }

    /// The process by itself, in standardised units.
    pub fn process(&self) -> &dyn Process {
        self.process.learner()
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
            Trained::EnergyBased(process) => Box::new(process.predict(&context, rule)?),
            Trained::Rival(process) => process.condition(&context)?,
        };
        Ok(Box::new(StandardisedPredictive::new(inner, standardiser)))
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
