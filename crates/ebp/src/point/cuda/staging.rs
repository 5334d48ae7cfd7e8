//! Numbers on their way to the GPU and back, through memory that the driver need not copy first.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DeviceRepr, PinnedHostSlice, sys};

use super::device::driver;
use crate::Result;

/// What fits in at once; larger arrays go in pieces.
const BYTES: usize = 32 << 20;

/// A stretch of page-locked memory, filled from the front.
#[derive(Debug)]
pub(super) struct Staging {
    memory: PinnedHostSlice<u8>,
    /// How much of it copies under way may still read.
    used: usize,
}

impl Staging {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self> {
        // SAFETY: bytes are written before they are read.
        let memory = unsafe { context.alloc_pinned_with_flags::<u8>(BYTES, 0) }
            .map_err(|error| driver("take page-locked memory", error))?;
        Ok(Self { memory, used: 0 })
    }

    /// The address of `bytes` free bytes; waits for copies under way if there are too few.
    fn reserve(&mut self, stream: &CudaStream, bytes: usize) -> Result<*mut u8> {
        if self.used + bytes > BYTES {
            stream.synchronize().map_err(|error| driver("wait for the GPU", error))?;
            self.used = 0;
        }
        let start =
            self.memory.as_mut_ptr().map_err(|error| driver("use page-locked memory", error))?;
        // SAFETY: used + bytes ≤ BYTES, the length of the memory.
        let place = unsafe { start.add(self.used) };
        self.used += bytes.next_multiple_of(256).min(BYTES - self.used);
        Ok(place)
    }

    /// Starts copying `values` to the address `to`.
    pub(super) fn send<T: DeviceRepr>(
        &mut self,
        stream: &CudaStream,
        values: &[T],
        to: u64,
    ) -> Result<()> {
        let per_piece = BYTES / size_of::<T>();
        for (number, piece) in values.chunks(per_piece).enumerate() {
            let bytes = size_of_val(piece);
            let place = self.reserve(stream, bytes)?;
            let target = to + (number * per_piece * size_of::<T>()) as u64;
            // SAFETY: `place` has room for the piece and no copy reads it any more; the target is
            // a live buffer as long as `values`.
            unsafe {
                copy(piece.as_ptr().cast(), place, bytes);
                sys::cuMemcpyHtoDAsync_v2(target, place.cast(), bytes, stream.cu_stream())
            }
            .result()
            .map_err(|error| driver("copy numbers to the GPU", error))?;
        }
        Ok(())
    }

    /// Copies `length` numbers back from the address `from`, after all work before.
    pub(super) fn fetch<T: DeviceRepr>(
        &mut self,
        stream: &CudaStream,
        from: u64,
        length: usize,
    ) -> Result<Vec<T>> {
        let per_piece = BYTES / size_of::<T>();
        let mut out = Vec::with_capacity(length);
        while out.len() < length {
            let count = per_piece.min(length - out.len());
            let bytes = count * size_of::<T>();
            let place = self.reserve(stream, bytes)?;
            let source = from + (out.len() * size_of::<T>()) as u64;
            // SAFETY: `place` has room for the piece, and the source is a live buffer of `length`
            // numbers; after waiting the bytes are there and are numbers of type T.
            unsafe {
                sys::cuMemcpyDtoHAsync_v2(place.cast(), source, bytes, stream.cu_stream())
                    .result()
                    .map_err(|error| driver("copy numbers back", error))?;
                stream.synchronize().map_err(|error| driver("wait for the GPU", error))?;
                let begin = out.len();
                copy(place, out.spare_capacity_mut().as_mut_ptr().cast(), bytes);
                out.set_len(begin + count);
            }
            self.used = 0;
        }
        Ok(out)
    }
}

/// Copies bytes, large arrays with all threads: one core moves far less than memory can.
///
/// # Safety
///
/// As [`std::ptr::copy_nonoverlapping`].
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe {
        (std::slice::from_raw_parts(from, bytes), std::slice::from_raw_parts_mut(to, bytes))
    };
    // By one thread: a pool's thread that waits for others may take up work that needs the GPU, which is
    // locked here.
    to.copy_from_slice(from);
}
