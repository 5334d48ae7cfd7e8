//! Ctrl-C: the first asks the run to save its state and end, the second ends it at once.

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use miette::miette;

use crate::failure::{Failure, INTERRUPTED};

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that turns true at the first Ctrl-C, SIGTERM or SIGHUP; one for all runs of a process.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    if let Some(flag) = FLAG.get() {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            end_now();
        }
        let note = "stopping after this step; once more to stop without saving";
        drop(writeln!(stderr(), "\n{note}"));
    })
    .map_err(|error| Failure::Failed(miette!("cannot listen for Ctrl-C: {error}")))?;
    Ok(Arc::clone(FLAG.get_or_init(|| flag)))
}

#[expect(clippy::exit, reason = "asked for twice; checkpoints are whole at any moment")]
fn end_now() {
    std::process::exit(i32::from(INTERRUPTED));
}
