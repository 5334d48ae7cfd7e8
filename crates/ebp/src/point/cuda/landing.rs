//! Numbers on their way back to the host, which reads them when it needs them: it waits for them then,
//! and not for what was sent after them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, DeviceRepr, PinnedHostSlice, sys};

use super::buffer::Buffer;
use super::device::{Device, driver};
use crate::Result;

/// Bytes of the smallest pad, so that one serves most.
const SMALLEST: usize = 1 << 16;

/// Page-locked memory that landings take in turn.
pub(super) struct Landings {
    context: Arc<CudaContext>,
    free: Mutex<Vec<Pad>>,
}

/// Memory, and whether the last copy to it is done.
struct Pad {
    memory: PinnedHostSlice<u8>,
    has_landed: CudaEvent,
}

/// Numbers on their way to the host.
pub(crate) struct Landing<T> {
    owner: Arc<Landings>,
    pad: Option<Pad>,
    length: usize,
    numbers: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Landing<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Landing {{ length: {} }}", self.length)
    }
}

impl Landings {
    pub(super) fn new(context: &Arc<CudaContext>) -> Self {
        Self { context: Arc::clone(context), free: Mutex::default() }
    }

    /// A pad of at least `bytes` bytes that no copy writes to.
    fn take(&self, bytes: usize) -> Result<Pad> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ready = |pad: &Pad| pad.memory.len() >= bytes && pad.has_landed.is_complete();
        if let Some(place) = free.iter().position(is_ready) {
            return Ok(free.swap_remove(place));
        }
        let failed = |error| driver("take page-locked memory", error);
        // SAFETY: bytes are written before they are read.
        let memory = unsafe {
            self.context
                .alloc_pinned_with_flags(bytes.max(SMALLEST).next_power_of_two(), 0)
                .map_err(failed)?
        };
        Ok(Pad { memory, has_landed: self.context.new_event(None).map_err(failed)? })
    }
}

impl Device {
    /// Begins to copy numbers to the host.
    pub(crate) fn land<T: DeviceRepr>(&self, from: &Buffer<T>) -> Result<Landing<T>> {
        let failed = |error| driver("copy numbers back", error);
        let bytes = from.len() * size_of::<T>();
        let mut pad = self.landings.take(bytes)?;
        let to = pad.memory.as_mut_ptr().map_err(failed)?;
        // SAFETY: the pad has room, and is read, or given to others, after the event only.
        unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.cast(), *from.address(), bytes, self.stream.cu_stream())
        }
        .result()
        .map_err(failed)?;
        pad.has_landed.record(&self.stream).map_err(failed)?;
        let owner = Arc::clone(&self.landings);
        Ok(Landing { owner, pad: Some(pad), length: from.len(), numbers: PhantomData })
    }
}

impl<T: DeviceRepr> Landing<T> {
    /// The numbers, as soon as they are on the host.
    pub(crate) fn read(&self) -> Result<Vec<T>> {
        let failed = |error| driver("wait for the GPU", error);
        let mut out = Vec::with_capacity(self.length);
        if let Some(pad) = &self.pad {
            pad.has_landed.synchronize().map_err(failed)?;
            let from = pad.memory.as_ptr().map_err(failed)?;
            // SAFETY: the copy of `length` numbers to the pad, which begins at a page, is done.
            unsafe {
                std::ptr::copy_nonoverlapping(from.cast(), out.as_mut_ptr(), self.length);
                out.set_len(self.length);
            }
        }
        Ok(out)
    }
}

impl<T> Drop for Landing<T> {
    fn drop(&mut self) {
        if let Some(pad) = self.pad.take() {
            self.owner.free.lock().unwrap_or_else(PoisonError::into_inner).push(pad);
        }
    }
}
