//! What training commands say about this program, and how they are watched.

use std::time::{SystemTime, UNIX_EPOCH};

use ebp::train::{Finished, Plan, Program, Surroundings, Trainable, run_training};

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;

/// The program as the folder of a run describes it.
pub(crate) fn program() -> Program {
    Program {
        commit: option_env!("EBP_COMMIT").map(Into::into),
        arguments: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        start_time: Some(seconds_since_1970()),
    }
}

/// Trains any model with the progress, the files and the Ctrl-C of `ebp train`.
///
/// # Errors
///
/// As [`run_training`]; [`Failure::Interrupted`] after Ctrl-C.
pub fn train_watched<T>(
    model: &mut T,
    plan: Plan<'_, T>,
    directory: std::path::PathBuf,
    existing: ebp::train::Existing,
    is_quiet: bool,
) -> Result<Finished, Failure>
where
    T: Trainable + ?Sized,
{
    let mut progress = Progress::new(is_quiet, &[]);
    let around = Surroundings {
        directory: Some(directory),
        existing,
        ranks: None,
        observer: &mut progress,
        stop: Some(interrupt::wish()),
        device: "cpu".into(),
        program: program(),
    };
    Ok(run_training(model, plan, around)?)
}

/// For TensorBoard's axis of time, and for nothing else.
#[expect(clippy::disallowed_methods, reason = "event files are not compared byte for byte")]
fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
