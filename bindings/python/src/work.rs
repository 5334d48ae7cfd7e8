//! Long work: in a pool of threads, while the caller waits without the interpreter's lock, tells its
//! callback how far it is, and looks for Ctrl-C twenty times a second.
//!
//! Work is told to stop through its [`Link`]. Training looks there after every step and saves its state, for
//! which its caller waits a moment; what reports its progress is unwound at the next report; anything else is
//! left to end by itself, and its result is dropped. A step that takes longer than that moment ends behind the
//! caller's back: whoever opens its folder waits for it, and so does the interpreter before it ends.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{exception, raise};
use crate::pools::pool;

/// How long the caller waits between two looks at its signals.
const TICK: Duration = Duration::from_millis(50);

/// So many times an interrupted caller looks whether the state is saved: 0.7 s, as Ctrl-C is to take a second at most.
const PATIENCE: u32 = 14;

/// Work that saves its state behind its caller's back. Locked only by who has the interpreter's lock, which a fork
/// takes too: no child finds it locked.
static UNSAVED: Mutex<Vec<Arc<Link>>> = Mutex::new(Vec::new());

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
    has_ended: AtomicBool,
    news: Mutex<News>,
    /// The folder that gets the state of work that is told to stop now, if it has one.
    folder: Mutex<Option<PathBuf>>,
}

/// What unwinds work that was told to stop; nobody but [`run`] sees it.
struct Stopped;

impl Link {
    fn news(&self) -> MutexGuard<'_, News> {
        locked(&self.news)
    }

    /// Says where the state is saved if the work is told to stop from here on: nowhere before training and after it.
    pub(crate) fn saves_into(&self, folder: Option<PathBuf>) {
        self.check();
        *locked(&self.folder) = folder;
    }

    fn has_something_to_save(&self) -> bool {
        locked(&self.folder).is_some()
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` in the pool of `threads` and waits for it.
pub(crate) fn run<R: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Link) -> ebp::Result<R> + Send + 'static,
) -> PyResult<R> {
    let pool = pool(py, threads)?;
    let link = Arc::new(Link::default());
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let of_work = Arc::clone(&link);
    pool.spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&of_work)));
        of_work.has_ended.store(true, Ordering::Release);
        // Nobody waits any more if the caller was interrupted.
        let _ = sender.send(result);
    });
    let mut interruption: Option<PyErr> = None;
    let mut patience = PATIENCE;
    loop {
        let waited;
        (receiver, waited) = py.detach(move || {
            let waited = receiver.recv_timeout(TICK);
            (receiver, waited)
        });
        // A callback that raised has ended the work, and is not asked again.
        let listener = callback.filter(|_| interruption.is_none());
        let heard = link.deliver(py, listener).and_then(|()| py.check_signals());
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
        match (heard, interruption.take()) {
            (Ok(()), None) => {}
            (Err(first), None) => {
                link.stop.store(true, Ordering::Relaxed);
                if !link.has_something_to_save() {
                    return Err(first);
                }
                interruption = Some(first);
            }
            (Ok(()), Some(first)) if patience > 0 => {
                patience -= 1;
                interruption = Some(first);
            }
            (Ok(()), Some(first)) => {
                link.warn(
                    "the step under way takes its time; its state will be saved when it ends, which Python \
                     waits for before it ends itself"
                        .to_owned(),
                );
                locked(&UNSAVED).push(Arc::clone(&link));
                // A warning that is made an error must not take the interruption's place.
                let _ = link.deliver(py, None);
                return Err(first);
            }
            // The second Ctrl-C does not wait for the state to be saved.
            (Err(second), Some(_)) => return Err(second),
        }
    }
}

/// Waits for states that are still being saved: of the run in `folder`, or of all.
#[pyfunction]
#[pyo3(name = "_wait_until_saved", signature = (folder = None))]
pub(crate) fn wait_until_saved(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<()> {
    let same = |link: &Link, folder: &Path| {
        let saves_into = locked(&link.folder).as_ref().and_then(|kept| kept.canonicalize().ok());
        saves_into.is_some() && saves_into == folder.canonicalize().ok()
    };
    loop {
        let is_saving = {
            let mut unsaved = locked(&UNSAVED);
            unsaved.retain(|link| !link.has_ended.load(Ordering::Acquire));
            unsaved.iter().any(|link| folder.as_ref().is_none_or(|folder| same(link, folder)))
        };
        if !is_saving {
            return Ok(());
        }
        py.detach(|| thread::sleep(TICK));
        py.check_signals()?;
    }
}

/// The child of a fork has none of this work.
pub(crate) fn forget() {
    locked(&UNSAVED).clear();
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
