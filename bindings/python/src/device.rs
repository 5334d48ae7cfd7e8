//! Devices by name, opened once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use ebp::model::Device;
use ebp::point::Precision;
use pyo3::prelude::*;

use crate::errors::{OrRaise, raise};

/// Devices by name and precision. Replaced, never freed: a GPU's context does not survive a fork.
type Devices = Mutex<HashMap<(String, String), Device>>;
static DEVICES: AtomicPtr<Devices> = AtomicPtr::new(std::ptr::null_mut());

#[allow(unsafe_code, reason = "a pointer that is swapped whole after a fork")]
fn devices() -> &'static Devices {
    let known = DEVICES.load(Ordering::Acquire);
    let devices = if known.is_null() {
        let fresh = Box::into_raw(Box::<Devices>::default());
        let null = std::ptr::null_mut();
        match DEVICES.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(first) => first,
        }
    } else {
        known
    };
    // SAFETY: it came from `Box::into_raw` and is never freed.
    unsafe { &*devices }
}

/// After a fork.
pub(crate) fn forget() {
    DEVICES.store(std::ptr::null_mut(), Ordering::Release);
}

/// `auto`, `cpu`, `cuda` or `cuda:1`, with `f32`, `tf32` or `bf16`.
pub(crate) fn open(py: Python<'_>, device: &str, precision: &str) -> PyResult<Device> {
    let known = [Precision::F32, Precision::Tf32, Precision::Bf16];
    let Some(rounding) = known.into_iter().find(|known| known.name() == precision) else {
        let message = format!("`precision` must be f32, tf32 or bf16, found `{precision}`");
        let help = Some("f32 is exact; the others are for GPUs with tensor cores");
        return Err(raise(py, "InvalidInputError", &message, help));
    };
    let ordinal = match device.split_once(':') {
        None if device == "cpu" => return Ok(Device::cpu()),
        None if device == "auto" => None,
        None if device == "cuda" => Some(0),
        Some(("cuda", number)) if number.parse::<usize>().is_ok() => number.parse().ok(),
        _ => {
            let message = format!("`device` must be auto, cpu, cuda or cuda:N, found `{device}`");
            let help = Some("auto takes the GPU if there is one");
            return Err(raise(py, "InvalidInputError", &message, help));
        }
    };
    let key = (device.to_owned(), precision.to_owned());
    let mut devices = devices().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = devices.get(&key) {
        return Ok(device.clone());
    }
    let opened = match ordinal {
        None => Device::auto(rounding),
        Some(ordinal) => Device::cuda(ordinal, rounding).or_raise(py)?,
    };
    devices.insert(key, opened.clone());
    Ok(opened)
}
