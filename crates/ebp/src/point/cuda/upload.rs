//! Batches on their way to the GPU, on a stream of their own: they travel while a step computes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DeviceRepr, PinnedHostSlice,
    result::DriverError, sys,
};

use super::buffer::{Buffer, in_context};
use super::device::{Device, driver};
use crate::Result;

/// Parts begin at multiples of this.
const ALIGNMENT: usize = 256;

/// Memory that batches take in turn.
pub(crate) struct Uploader {
    context: Arc<CudaContext>,
    /// What copies are sent to, and what reads the batches.
    copies: Arc<CudaStream>,
    work: Arc<CudaStream>,
    free: Mutex<Vec<Slot>>,
}

/// Page-locked memory and as much of it on the GPU.
struct Slot {
    host: PinnedHostSlice<u8>,
    device: CudaSlice<u8>,
    /// The copy to the GPU is done.
    has_arrived: CudaEvent,
    /// What was sent to read it is done.
    is_read: CudaEvent,
}

/// A slot in the hands of a batch; all views of its parts own it together.
struct Loan {
    uploader: Arc<Uploader>,
    slot: Option<Slot>,
}

/// Several arrays on their way to the GPU, in one stretch of its memory.
pub(crate) struct Uploaded {
    loan: Arc<Loan>,
    address: u64,
    /// Where each part begins and how many bytes it has.
    parts: Vec<(usize, usize)>,
}

impl fmt::Debug for Uploader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Uploader {{ ordinal: {} }}", self.context.ordinal())
    }
}

impl fmt::Debug for Uploaded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Uploaded {{ parts: {} }}", self.parts.len())
    }
}

/// The bytes of numbers.
pub(crate) fn bytes<T: DeviceRepr>(values: &[T]) -> &[u8] {
    // SAFETY: numbers without padding, read as bytes for as long as they are borrowed.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn failed(error: DriverError) -> crate::Error {
    driver("send a batch to the GPU", error)
}

impl Uploader {
    /// Sends batches that `device` will read.
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let (context, work) = (Arc::clone(&device.context), Arc::clone(&device.stream));
        let copies =
            context.new_stream().map_err(|error| driver("open a stream for copies", error))?;
        Ok(Self { context, copies, work, free: Mutex::default() })
    }

    /// Begins to copy `parts`, from any thread.
    pub(crate) fn send(self: &Arc<Self>, parts: &[&[u8]]) -> Result<Uploaded> {
        self.context.bind_to_thread().map_err(failed)?;
        let (mut places, mut total) = (Vec::new(), 0);
        for part in parts {
            places.push((total, part.len()));
            total += part.len().next_multiple_of(ALIGNMENT);
        }
        let mut slot = self.take(total)?;
        let host = slot.host.as_mut_slice().map_err(failed)?;
        for ((start, length), part) in places.iter().zip(parts) {
            host[*start..start + length].copy_from_slice(part);
        }
        let address = slot.device.device_ptr(&self.copies).0;
        let stream = self.copies.cu_stream();
        // SAFETY: both stretches have `total` bytes; nobody else has the slot until all views of it
        // are gone, and `take` waits for the copy.
        unsafe { sys::cuMemcpyHtoDAsync_v2(address, host.as_ptr().cast(), total, stream) }
            .result()
            .map_err(failed)?;
        slot.has_arrived.record(&self.copies).map_err(failed)?;
        let loan = Arc::new(Loan { uploader: Arc::clone(self), slot: Some(slot) });
        Ok(Uploaded { loan, address, parts: places })
    }

    /// A slot of at least `bytes` bytes: its host memory is free, and its memory on the GPU is so for
    /// the next copy.
    fn take(&self, bytes: usize) -> Result<Slot> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = free.iter().position(|slot| slot.host.len() >= bytes) {
            let slot = free.swap_remove(place);
            drop(free);
            self.reclaim(&slot)?;
            return Ok(slot);
        }
        // Batches grow: what is too small now stays too small.
        let outgrown = std::mem::take(&mut *free);
        drop(free);
        for slot in &outgrown {
            self.reclaim(slot)?;
        }
        let failed = |error| driver("take memory for batches", error);
        let length = bytes.max(ALIGNMENT);
        // SAFETY: bytes are written before they are read.
        let (host, device) = unsafe {
            (
                self.context.alloc_pinned_with_flags(length, 0).map_err(failed)?,
                self.copies.alloc(length).map_err(failed)?,
            )
        };
        let event = || self.context.new_event(None).map_err(failed);
        Ok(Slot { host, device, has_arrived: event()?, is_read: event()? })
    }

    /// Waits for the last copy, and makes further copies wait for those who read it.
    fn reclaim(&self, slot: &Slot) -> Result<()> {
        slot.has_arrived.synchronize().map_err(failed)?;
        self.copies.wait(&slot.is_read).map_err(failed)
    }
}

impl Uploaded {
    /// Makes all further work of the device wait until the parts are on the GPU.
    pub(crate) fn wait(&self, device: &Device) -> Result<()> {
        match &self.loan.slot {
            Some(slot) => device
                .stream
                .wait(&slot.has_arrived)
                .map_err(|error| driver("wait for a batch", error)),
            None => Ok(()),
        }
    }

    /// Part `number`; to be read after [`wait`](Self::wait).
    pub(crate) fn part<T: DeviceRepr>(&self, number: usize) -> Buffer<T> {
        let (start, length) = self.parts[number];
        if length == 0 {
            return Buffer::none();
        }
        let owner = Arc::clone(&self.loan);
        Buffer::within(owner, self.address + start as u64, length / size_of::<T>())
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        let Uploader { context, work, free, .. } = &*self.uploader;
        // Whoever reads the batch has been sent by now.
        match in_context(context, || slot.is_read.record(work)) {
            Ok(()) => free.lock().unwrap_or_else(PoisonError::into_inner).push(slot),
            // The GPU is lost. Memory that may still be read is not given to anybody.
            Err(_) => std::mem::forget(slot),
        }
    }
}
