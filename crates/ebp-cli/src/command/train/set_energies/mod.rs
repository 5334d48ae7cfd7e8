//! Training of energies of whole sets, without a latent.
//!
//! The path: [`Settings`] → [`Data`] → [`run_training`] → [`Outcome`] (generated sets beside held-out
//! ones).

mod data;
mod outcome;
mod settings;

use std::time::Instant;

use ebp::process::{SetEnergyConfig, SetEnergyProcess};
use ebp::train::{Evaluation, SetTraining, Step};

use self::data::Data;
use self::outcome::{Outcome, compare};
use self::settings::Settings;
use super::{TrainArguments, directory};
use crate::device;
use crate::failure::Failure;
use crate::run::{TrainingPlan, run_training};
use crate::threads::start_threads;
use ebp::config::Layers;

/// Sets of the quick looks during training.
const QUICK_SETS: usize = 60;

/// Trains and reports.
pub(super) fn run(
    arguments: &TrainArguments,
    name: &str,
    layers: &Layers<'_>,
) -> Result<(), Failure> {
    let resolved = layers.resolve::<Settings>()?;
    if arguments.print_config {
        return crate::output::print(&resolved.text);
    }
    let settings = resolved.config;
    let data = Data::load(&settings)?;
    let directory = directory(arguments, name)?;
    start_threads(arguments.threads)?.install(|| {
        let started = Instant::now();
        let config = SetEnergyConfig { element_dim: data.dim, ..settings.model.clone() };
        let process = SetEnergyProcess::new(config, settings.seed, &device::open()?.backend)?;
        let (num_sets, set_size) = (settings.data.num_sets, settings.data.set_size);
        let mut model = SetTraining::new(process, data.source.clone(), num_sets, set_size)?;
        let plan = TrainingPlan {
            directory: directory.clone(),
            existing: arguments.existing(),
            config: resolved.text,
            changeable: vec!["train.num_steps".into()],
            trainer: settings.train.clone(),
            seed: settings.seed,
            device: device::open()?.name,
            threads: rayon::current_num_threads(),
            evaluations: vec![evaluation(&settings, &data)?],
            numbers: std::collections::BTreeMap::new(),
            shown: ["gap", "sampler_loss", "slope", "accuracy"].map(Into::into).to_vec(),
            is_quiet: arguments.quiet,
        };
        let num_steps = run_training(&mut model, plan)?;
        let outcome = Outcome::new(model, &data, &settings, num_steps, started.elapsed())?;
        outcome.draw(&directory)?;
        if arguments.json { outcome.print_json() } else { outcome.print_table(&directory) }
    })
}

/// 1-NN accuracy and matching distance of a few sets on the way.
fn evaluation<'a>(
    settings: &'a Settings,
    data: &'a Data,
) -> Result<Evaluation<'a, SetTraining>, Failure> {
    let function = |training: &mut SetTraining, step: &Step| {
        let model = training.model_mut();
        model.use_average()?;
        let size = settings.data.set_size;
        let refining = settings.evaluation.num_refining;
        let drawn = model.sample(QUICK_SETS, size, refining, step.stream.child(7));
        model.use_parameters()?;
        let found = compare(&drawn?, &data.held_out(QUICK_SETS), size, data.dim)?;
        Ok(vec![
            ("accuracy".to_owned(), found.one_nn_accuracy.value),
            ("matching_distance".to_owned(), found.matching_distance.value),
        ])
    };
    Ok(Evaluation::new(settings.evaluation.every, function)?)
}
