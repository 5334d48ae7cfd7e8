//! Training on curves and tables: the conditional energy-based process.
//!
//! The path: [`Settings`] → [`Data`] (sets, scales, what is held out) → [`run_training`] →
//! [`Outcome`] (what it knows about what it has not seen).

mod data;
mod outcome;
mod settings;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ebp::process::{EnergyBasedProcess, Learner};
use ebp::train::{Evaluation, Regression, Step};
use miette::miette;

pub(crate) use self::data::Data;
use self::outcome::Outcome;
use self::settings::EvaluationSettings;
pub(crate) use self::settings::{Settings, preset_settings};
use super::{TrainArguments, directory};
use crate::device::{self, Device};
use crate::failure::Failure;
use crate::run::{TrainingPlan, run_training};
use crate::threads::start_threads;
use ebp::config::Layers;

/// Trains and reports.
pub(super) fn run(
    arguments: &TrainArguments,
    name: &str,
    layers: &Layers<'_>,
) -> Result<(), Failure> {
    let resolved = layers.resolve::<Settings>()?;
    if arguments.print_config {
        crate::output::print(&resolved.text)?;
        return Ok(());
    }
    let settings = resolved.config;
    let data = Data::load(&settings)?;
    let directory = directory(arguments, name)?;
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let started = Instant::now();
        let device = device::open()?;
        let mut model = new_model(&settings, &data, &device)?;
        let plan = TrainingPlan {
            directory: directory.clone(),
            existing: arguments.existing(),
            config: resolved.text,
            changeable: vec!["train.num_steps".into()],
            trainer: settings.train.clone(),
            seed: settings.seed,
            device: device.name,
            threads: rayon::current_num_threads(),
            evaluations: vec![evaluation(&settings, &data)?],
            numbers: data.numbers(),
            shown: ["nats", "kl", "active_units", data.evaluated()].map(Into::into).to_vec(),
            is_quiet: arguments.quiet,
        };
        let num_steps = run_training(&mut model, plan)?;
        let outcome =
            Outcome::new(model, &data, &settings.evaluation, num_steps, started.elapsed())?;
        let picture = outcome.draw(&data, &directory)?;
        if arguments.json {
            outcome.print_json(&directory)
        } else {
            outcome.print_table(&data, &directory, picture.as_deref())
        }
    })
}

/// The untrained model that the settings describe.
pub(crate) fn new_model(
    settings: &Settings,
    data: &Data,
    device: &Device,
) -> Result<Regression, Failure> {
    let process = new_process(settings, data, device)?;
    Ok(Regression::new(Box::new(process), data.source()?, settings.tasks)?)
}

/// The untrained process that the settings describe.
pub(crate) fn new_process(
    settings: &Settings,
    data: &Data,
    device: &Device,
) -> Result<EnergyBasedProcess, Failure> {
    let backend = Arc::clone(&device.backend);
    let config = data.complete(settings.model.clone());
    Ok(EnergyBasedProcess::new(config, settings.seed, backend)?)
}

/// What is measured on the way, with the averages in the place of the parameters.
fn evaluation<'a>(
    settings: &Settings,
    data: &'a Data,
) -> Result<Evaluation<'a, Regression>, Failure> {
    let every = settings.evaluation.every;
    let function = |model: &mut Regression, _: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let found = data.evaluate(process);
        process.use_parameters()?;
        found
    };
    Ok(Evaluation::new(every, function)?)
}

/// A trained model as its folder keeps it.
pub(crate) struct TrainedModel {
    /// The settings it was trained with.
    pub(crate) settings: Settings,
    /// The process, predicting with its averages.
    pub(crate) process: EnergyBasedProcess,
    /// The scales of its data.
    pub(crate) standardiser: ebp::data::Standardiser,
    /// After how many steps.
    pub(crate) step: u64,
}

impl TrainedModel {
    /// Reads the newest checkpoint of the run in `directory`.
    pub(crate) fn load(directory: &Path) -> Result<Self, Failure> {
        let folder = directory.join("checkpoints");
        let not_a_run = || {
            Failure::Usage(miette!(
                help = "give the folder of a run of `ebp train`, such as runs/sines",
                "there is no model in `{}`",
                directory.display()
            ))
        };
        if !folder.is_dir() {
            return Err(not_a_run());
        }
        let Some(loaded) = ebp::checkpoint::CheckpointStore::read_newest(folder)? else {
            return Err(not_a_run());
        };
        let state = loaded.checkpoint.model_state()?;
        let meta = loaded.checkpoint.meta;
        let settings: Settings = toml::from_str(&meta.config).map_err(|error| {
            Failure::Failed(miette!(
                "the settings in `{}` cannot be read: {error}",
                directory.display()
            ))
        })?;
        let data::Scales { standardiser, value_domain } =
            data::Scales::from_numbers(&meta.numbers)?;
        let mut config = settings.model.clone();
        config.location_dim = standardiser.location_dim();
        config.value_dim = standardiser.value_dim();
        config.value_domain = value_domain;
        let backend = Device::cpu().backend;
        let mut process = EnergyBasedProcess::new(config, settings.seed, backend)?;
        process.restore(&state)?;
        process.use_average()?;
        Ok(Self { settings, process, standardiser, step: meta.step })
    }
}

/// Named numbers of a model, for its checkpoints.
pub(crate) type Numbers = BTreeMap<String, Vec<f64>>;
