//! `ebp._core`: the library's models, processes and distances for the typed front in `python/ebp`.
//!
//! Nothing here decides anything: arrays come in, [`ebp::model`] and its neighbours answer, arrays go
//! out. Long work runs in a pool of threads while the caller's thread, without the interpreter's lock,
//! waits for it and looks for Ctrl-C ([`work`]).

mod arrays;
mod device;
mod errors;
mod exact;
mod figures;
mod metrics;
mod model;
mod pools;
mod settings;
mod train;
mod work;

use std::ffi::{c_int, c_long};

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, in milliseconds.
const PURGE_DELAY: c_int = 15;

#[allow(unsafe_code, reason = "part of the allocator above")]
unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

#[pymodule]
#[allow(unsafe_code, reason = "one setting of the allocator")]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // As the binary does: a training step frees and takes the same blocks every few milliseconds.
    // SAFETY: an integer for an integer option, which mimalloc reads atomically.
    unsafe { mi_option_set(PURGE_DELAY, 10_000) };
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<settings::Settings>()?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(pools::after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(work::wait_until_saved, module)?)?;
    module.add_function(wrap_pyfunction!(settings::resolve, module)?)?;
    module.add_function(wrap_pyfunction!(settings::presets, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(model::load, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::chamfer, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::emd, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::pairs, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::compare, module)?)?;
    module.add_function(wrap_pyfunction!(exact::exact_fit, module)?)?;
    module.add_function(wrap_pyfunction!(exact::exact_predict, module)?)?;
    module.add_function(wrap_pyfunction!(exact::exact_sample, module)?)?;
    module.add_function(wrap_pyfunction!(exact::exact_log_density, module)?)?;
    module.add_function(wrap_pyfunction!(figures::contact_sheet, module)?)?;
    module.add_function(wrap_pyfunction!(figures::picture_sheet, module)?)?;
    Ok(())
}
