//! Numbers in the GPU's memory, shared by all who hold them.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::result::ctx;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};

/// Numbers in the GPU's memory, or a part of them.
///
/// Clones and views share the memory. It goes back when the last of them is dropped, in the order of
/// the stream: what was sent before may still read it.
pub(crate) struct Buffer<T = f32> {
    /// Keeps the memory; `None` where there are no numbers.
    owner: Option<Arc<dyn Any + Send + Sync>>,
    address: u64,
    length: usize,
    numbers: PhantomData<fn() -> T>,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self { owner: self.owner.clone(), ..*self }
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self::none()
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Buffer {{ address: {:#x}, length: {} }}", self.address, self.length)
    }
}

impl<T> Buffer<T> {
    /// No numbers.
    pub(crate) fn none() -> Self {
        Self { owner: None, address: 0, length: 0, numbers: PhantomData }
    }

    /// All of an allocation of the stream.
    pub(super) fn new(stream: &CudaStream, bytes: CudaSlice<u8>) -> Self {
        let (address, length) = (bytes.device_ptr(stream).0, bytes.len());
        Self::within(Arc::new(Allocation(Some(bytes))), address, length / size_of::<T>())
    }

    /// `length` numbers at an address that `owner` keeps valid.
    pub(super) fn within(owner: Arc<dyn Any + Send + Sync>, address: u64, length: usize) -> Self {
        Self { owner: Some(owner), address, length, numbers: PhantomData }
    }

    /// `length` numbers from number `start` on.
    ///
    /// # Panics
    ///
    /// If there are fewer, as slice indexing does.
    pub(crate) fn view(&self, start: usize, length: usize) -> Self {
        assert!(
            start.checked_add(length).is_some_and(|end| end <= self.length),
            "{length} numbers from {start} on, of {}",
            self.length
        );
        let address = self.address + (start * size_of::<T>()) as u64;
        Self { owner: self.owner.clone(), address, length, numbers: PhantomData }
    }

    /// How many numbers.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// This, unless there are no numbers: kernels see a null pointer for `None`.
    pub(crate) fn some(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }

    /// The address of the first number, in a place that lives as long as this.
    pub(super) fn address(&self) -> &u64 {
        &self.address
    }
}

/// Memory that is freed on the stream it was taken from.
struct Allocation(Option<CudaSlice<u8>>);

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(slice) = self.0.take() {
            let context = Arc::clone(slice.context());
            in_context(&context, || drop(slice));
        }
    }
}

/// Does `work` with `context` current: any thread may be the one that drops a buffer, also one that has
/// just computed on another GPU.
pub(super) fn in_context<R>(context: &CudaContext, work: impl FnOnce() -> R) -> R {
    let before = ctx::get_current().ok().flatten();
    let is_other = before != Some(context.cu_ctx());
    // SAFETY: the context is open, since `context` is.
    let is_set = is_other && unsafe { ctx::set_current(context.cu_ctx()) }.is_ok();
    let done = work();
    if let (true, Some(before)) = (is_set, before) {
        // A failure shows at the next call on that GPU, which sets its own context anyway.
        // SAFETY: it was current a moment ago.
        let _restored = unsafe { ctx::set_current(before) };
    }
    done
}
