//! Batches on their way to the GPU, on a stream of their own: they travel while a step computes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DeviceRepr, PinnedHostSlice, sys,
};

use super::super::device::{Buffer, driver};
use crate::Result;

/// Parts begin at multiples of this.
const ALIGNMENT: usize = 256;

/// Memory that batches take in turn.
pub(super) struct Uploader {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    free: Mutex<Vec<Slot>>,
}

/// Page-locked memory and as much of it on the GPU.
struct Slot {
    host: PinnedHostSlice<u8>,
    there: CudaSlice<u8>,
}

/// Several arrays in one stretch of the GPU's memory, which goes back to its owner when dropped.
pub(super) struct Uploaded {
    owner: Arc<Uploader>,
    slot: Option<Slot>,
    is_there: CudaEvent,
    address: u64,
    /// Where each part begins.
    starts: Vec<usize>,
}

impl fmt::Debug for Uploaded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Uploaded {{ parts: {} }}", self.starts.len())
    }
}

/// The bytes of numbers.
pub(super) fn bytes<T: DeviceRepr>(values: &[T]) -> &[u8] {
    // SAFETY: numbers without padding, read as bytes for as long as they are borrowed.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

impl Uploader {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let stream =
            context.new_stream().map_err(|error| driver("open a stream for copies", error))?;
        Ok(Self { context: Arc::clone(context), stream, free: Mutex::default() })
    }

    /// Begins to copy `parts`, from any thread.
    pub(super) fn send(self: &Arc<Self>, parts: &[&[u8]]) -> Result<Uploaded> {
        let failed = |error| driver("send a batch to the GPU", error);
        self.context.bind_to_thread().map_err(failed)?;
        let (mut starts, mut total) = (Vec::new(), 0);
        for part in parts {
            starts.push(total);
            total += part.len().next_multiple_of(ALIGNMENT);
        }
        let mut slot = self.take(total)?;
        let host = slot.host.as_mut_slice().map_err(failed)?;
        for (start, part) in starts.iter().zip(parts) {
            host[*start..start + part.len()].copy_from_slice(part);
        }
        let address = slot.there.device_ptr(&self.stream).0;
        // SAFETY: both stretches have `total` bytes; the slot is in nobody else's hands until
        // `Uploaded` is dropped, which waits for the copy.
        unsafe {
            sys::cuMemcpyHtoDAsync_v2(address, host.as_ptr().cast(), total, self.stream.cu_stream())
        }
        .result()
        .map_err(failed)?;
        let is_there = self.stream.record_event(None).map_err(failed)?;
        Ok(Uploaded { owner: Arc::clone(self), slot: Some(slot), is_there, address, starts })
    }

    /// A free slot of at least `bytes` bytes.
    fn take(&self, bytes: usize) -> Result<Slot> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = free.iter().position(|slot| slot.host.len() >= bytes) {
            return Ok(free.swap_remove(place));
        }
        // Batches grow: what is too small now stays too small.
        free.clear();
        drop(free);
        let failed = |error| driver("take memory for batches", error);
        let length = bytes.max(ALIGNMENT);
        // SAFETY: bytes are written before they are read.
        unsafe {
            Ok(Slot {
                host: self.context.alloc_pinned_with_flags(length, 0).map_err(failed)?,
                there: self.stream.alloc(length).map_err(failed)?,
            })
        }
    }
}

impl Uploaded {
    /// Makes `stream` wait until all parts are there.
    pub(super) fn wait(&self, stream: &CudaStream) -> Result<()> {
        stream.wait(&self.is_there).map_err(|error| driver("wait for a batch", error))
    }

    /// A part of `length` numbers.
    pub(super) fn part<T>(&self, number: usize, length: usize) -> Buffer<T> {
        Buffer::at_address(self.address + self.starts[number] as u64, length)
    }
}

impl Drop for Uploaded {
    fn drop(&mut self) {
        // A batch that was never learned from may still be on its way.
        let is_done = self.is_there.synchronize().is_ok();
        if let (Some(slot), true) = (self.slot.take(), is_done) {
            self.owner.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        }
    }
}
