//! What every training command does around its model: the folder, the files, the progress, Ctrl-C.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ebp::train::{
    Evaluation, Existing, Observer, Outcome, RunDescription, RunDirectory, Session, Trainable,
    Trainer, TrainerConfig,
};
use miette::miette;

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use ebp::config::differing_keys;

/// Everything about a training run but the model.
#[derive(Debug)]
pub struct TrainingPlan<'a, T: ?Sized> {
    /// Folder of the run.
    pub directory: PathBuf,
    /// What to do if it holds a run.
    pub existing: Existing,
    /// The resolved configuration as TOML.
    pub config: String,
    /// Keys of `config` that may differ from those of the run that is resumed, such as
    /// `train.num_steps`.
    pub changeable: Vec<String>,
    /// Settings of the loop.
    pub trainer: TrainerConfig,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Where it computes, for `run.json`.
    pub device: String,
    /// With how many threads, for `run.json`.
    pub threads: usize,
    /// What to measure on the way.
    pub evaluations: Vec<Evaluation<'a, T>>,
    /// Numbers that belong to the model, such as standardisation statistics.
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// Which numbers to show; the first few of the record if empty.
    pub shown: Vec<String>,
    /// Whether to show nothing but warnings.
    pub is_quiet: bool,
}

/// Trains `model` as planned and returns after how many steps it is finished.
///
/// # Errors
///
/// [`Failure::Interrupted`] after Ctrl-C, with everything saved; [`Failure::Usage`] if the folder
/// or the configuration does not allow the run; [`Failure::Failed`] if it went wrong.
pub fn run_training<T>(model: &mut T, plan: TrainingPlan<'_, T>) -> Result<u64, Failure>
where
    T: Trainable + ?Sized,
{
    let trainer = Trainer::new(plan.trainer.clone(), plan.seed)?;
    let directory = RunDirectory::open(&plan.directory, plan.existing)?;
    check_same_config(&directory, &plan.config, &plan.changeable)?;
    let description = RunDescription {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("EBP_COMMIT").map(Into::into),
        device: plan.device,
        threads: plan.threads,
        seed: plan.seed,
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    directory.describe(&plan.config, &description)?;
    let store = directory.checkpoints(plan.trainer.num_kept)?;
    let mut metrics = directory.metrics(plan.trainer.record_every)?;
    let mut tensorboard = directory.tensorboard(plan.trainer.record_every, seconds_since_1970())?;
    let mut progress = Progress::new(plan.is_quiet, plan.shown);
    let stop = interrupt::stop_flag()?;
    let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics, &mut tensorboard, &mut progress];
    let session = Session {
        store: Some(&store),
        evaluations: plan.evaluations,
        observer: &mut observers,
        stop: Some(&stop),
        config: plan.config,
        numbers: plan.numbers,
    };
    match trainer.run(model, session)? {
        Outcome::Finished { step } => Ok(step),
        Outcome::Interrupted { .. } => Err(Failure::Interrupted),
    }
}

/// A run goes on with the settings it began with.
fn check_same_config(
    directory: &RunDirectory,
    config: &str,
    changeable: &[String],
) -> Result<(), Failure> {
    let Some(before) = directory.config()? else { return Ok(()) };
    let mut keys = differing_keys(&before, config)?;
    keys.retain(|key| !changeable.contains(key));
    if keys.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(miette!(
        help = "resume with the same settings, or begin a new run in another folder",
        "the run in `{}` was begun with other settings: {} changed",
        directory.path().display(),
        keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
    )))
}

/// For TensorBoard's axis of time, and for nothing else.
#[expect(clippy::disallowed_methods, reason = "event files are not compared byte for byte")]
fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
