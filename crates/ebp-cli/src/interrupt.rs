//! Ctrl-C: while a model is trained the first asks the run to save its state and end, the second ends
//! it at once. At all other times there is nothing to save and the first ends the program.

use std::io::{Write, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::failure::INTERRUPTED;

static RAISED: AtomicBool = AtomicBool::new(false);
/// Trainings under way.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);
static IS_LISTENING: OnceLock<()> = OnceLock::new();

/// Turns true at the first Ctrl-C, SIGTERM or SIGHUP while a [`StopFlag`] is held; one for all runs
/// of a process.
pub(crate) fn wish() -> &'static AtomicBool {
    &RAISED
}

/// Held while a model is trained.
#[derive(Debug)]
pub(crate) struct StopFlag(());

impl Drop for StopFlag {
    fn drop(&mut self) {
        HOLDERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The flag, to be held while a model is trained.
pub(crate) fn stop_flag() -> ebp::Result<StopFlag> {
    if IS_LISTENING.get().is_none() {
        ctrlc::set_handler(|| {
            if HOLDERS.load(Ordering::SeqCst) == 0 || RAISED.swap(true, Ordering::SeqCst) {
                end_now();
            }
            let note = "stopping after this step; once more to stop without saving";
            drop(writeln!(stderr(), "\n{note}"));
        })
        .map_err(|error| ebp::Error::Failed {
            message: format!("cannot listen for Ctrl-C: {error}"),
            help: None,
        })?;
        IS_LISTENING.get_or_init(|| ());
    }
    HOLDERS.fetch_add(1, Ordering::SeqCst);
    Ok(StopFlag(()))
}

#[expect(clippy::exit, reason = "asked for; files are whole at any moment")]
fn end_now() {
    std::process::exit(i32::from(INTERRUPTED));
}
