//! Pools of threads, one for every number of threads that was asked for; built anew after a fork,
//! whose child has none of its parent's threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::raise;

/// Pools by their number of threads, 0 for all cores.
type Pools = Mutex<HashMap<usize, Arc<ThreadPool>>>;

/// The pools of this process; null until the first is asked for. Never freed: in the child of a fork
/// another thread of the parent may have held the lock, and the pools cannot be joined.
static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());

/// More than any machine has cores is a typing error.
const MOST_THREADS: usize = 1024;

#[allow(unsafe_code, reason = "a pointer that is swapped whole after a fork")]
fn pools() -> &'static Pools {
    let known = POOLS.load(Ordering::Acquire);
    let pools = if known.is_null() {
        let fresh = Box::into_raw(Box::<Pools>::default());
        let null = std::ptr::null_mut();
        match POOLS.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            // Another thread was faster; a few bytes are lost once.
            Err(first) => first,
        }
    } else {
        known
    };
    // SAFETY: it came from `Box::into_raw` and is never freed.
    unsafe { &*pools }
}

/// The pool of so many threads; without a number, of as many as there are cores.
pub(crate) fn pool(py: Python<'_>, threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    if let Some(found) = threads.filter(|count| !(1..=MOST_THREADS).contains(count)) {
        let message = format!("`threads` must be from 1 to {MOST_THREADS}, found {found}");
        return Err(raise(py, "InvalidInputError", &message, Some("None takes all cores")));
    }
    let count = threads.unwrap_or(0);
    let mut pools = pools().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&count) {
        return Ok(Arc::clone(pool));
    }
    let built = ThreadPoolBuilder::new()
        .num_threads(count)
        .thread_name(|number| format!("ebp-{number}"))
        .build();
    let pool = built.map_err(|error| {
        let message = format!("cannot start {count} threads: {error}");
        raise(py, "FailedError", &message, Some("ask for fewer by `threads=`"))
    })?;
    let pool = Arc::new(pool);
    pools.insert(count, Arc::clone(&pool));
    Ok(pool)
}

/// Forgets pools, devices and unsaved work: what `os.register_at_fork` calls in the child.
#[pyfunction]
#[pyo3(name = "_after_fork")]
pub(crate) fn after_fork() {
    POOLS.store(std::ptr::null_mut(), Ordering::Release);
    crate::device::forget();
    crate::work::forget();
}
