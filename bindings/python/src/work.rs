//! Long work: in a pool of threads, while the caller waits without the interpreter's lock, tells its
//! callback how far it is, and looks for Ctrl-C twenty times a second.
//!
//! Work is told to stop through its [`Link`]. Training looks there after every step and saves its state;
//! what reports its progress is unwound at the next report; anything else is left to end by itself, and
//! its result is dropped.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{exception, raise};
use crate::pools::pool;

/// How long the caller waits between two looks at its signals.
const TICK: Duration = Duration::from_millis(50);

/// How far a piece of work is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) done: u64,
    pub(crate) total: u64,
    /// What is worked on, or nothing.
    pub(crate) piece: &'static str,
    /// Named numbers of a training step.
    pub(crate) numbers: Vec<(String, f64)>,
}

#[derive(Debug, Default)]
struct News {
    latest: Option<Progress>,
    warnings: VecDeque<String>,
}

/// What work and caller share.
#[derive(Debug, Default)]
pub(crate) struct Link {
    stop: AtomicBool,
    news: Mutex<News>,
}

/// What unwinds work that was told to stop; nobody but [`run`] sees it.
struct Stopped;

impl Link {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flag that training looks at.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Says how far training is.
    pub(crate) fn tell(&self, progress: Progress) {
        self.news().latest = Some(progress);
    }

    /// Says what becomes a Python warning.
    pub(crate) fn warn(&self, warning: String) {
        self.news().warnings.push_back(warning);
    }

    /// Ends the work here if it is not wanted any more: at the start of a piece, so that of many pieces side by side
    /// those that have not begun cost nothing.
    pub(crate) fn check(&self) {
        if self.stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    }

    /// Says how far other work is, and ends it here if it was told to stop.
    pub(crate) fn report(&self, piece: &'static str, done: usize, total: usize) {
        self.check();
        let (done, total) = (done as u64, total as u64);
        self.tell(Progress { done, total, piece, numbers: Vec::new() });
    }

    /// Gives the news to Python.
    fn deliver(&self, py: Python<'_>, callback: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let News { latest, warnings } = std::mem::take(&mut *self.news());
        for warning in warnings {
            let category = py.import("ebp.errors")?.getattr("EbpWarning")?;
            py.import("warnings")?.call_method1("warn", (warning, category, 2))?;
        }
        if let (Some(callback), Some(latest)) = (callback, latest) {
            let numbers = PyDict::new(py);
            for (name, value) in latest.numbers {
                numbers.set_item(name, value)?;
            }
            callback.call1((latest.done, latest.total, latest.piece, numbers))?;
        }
        Ok(())
    }
}

/// Whether work that was told to stop is waited for, because it has something to save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtStop {
    Wait,
    Leave,
}

/// Does `work` in the pool of `threads` and waits for it.
pub(crate) fn run<R: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    callback: Option<&Bound<'_, PyAny>>,
    at_stop: AtStop,
    work: impl FnOnce(&Link) -> ebp::Result<R> + Send + 'static,
) -> PyResult<R> {
    let pool = pool(py, threads)?;
    let link = Arc::new(Link::default());
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let of_work = Arc::clone(&link);
    pool.spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&of_work)));
        // Nobody waits any more if the caller was interrupted.
        let _ = sender.send(result);
    });
    let mut interruption: Option<PyErr> = None;
    loop {
        let waited;
        (receiver, waited) = py.detach(move || {
            let waited = receiver.recv_timeout(TICK);
            (receiver, waited)
        });
        let heard = link.deliver(py, callback).and_then(|()| py.check_signals());
        match waited {
            Ok(result) => {
                if let Some(interruption) = interruption {
                    return Err(interruption);
                }
                heard?;
                return match result {
                    Ok(result) => result.map_err(|error| exception(py, &error)),
                    Err(panic) => Err(panicked(py, &*panic)),
                };
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work was lost with its thread"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if let Err(error) = heard {
            link.stop.store(true, Ordering::Relaxed);
            // The second Ctrl-C does not wait for the state to be saved.
            if at_stop == AtStop::Leave || interruption.is_some() {
                return Err(error);
            }
            interruption = Some(error);
        }
    }
}

/// A mistake of the library, in its words.
fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no words");
    let message = format!("the library made a mistake: {words}");
    raise(py, "FailedError", &message, Some("please report it with the call that led to it"))
}
