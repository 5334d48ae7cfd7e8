//! The GPU: its context, its compiled kernels and its memory.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use cudarc::cublas::{CudaBlas, sys as blas_sys};
use cudarc::driver::{CudaContext, CudaStream, DeviceRepr, DriverError, ValidAsZeroBits, sys};
use cudarc::nvrtc;

use super::buffer::Buffer;
use super::kernels::Kernels;
use super::landing::Landings;
use super::launch::flat;
use super::meter::Meter;
use super::products::blas_error;
use super::staging::Staging;
use super::{Precision, distances, fused};
use crate::rng::Stream;
use crate::{Error, Result};

/// One GPU, ready to compute.
pub(crate) struct Device {
    pub(crate) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(crate) kernels: Kernels,
    pub(super) blas: CudaBlas,
    pub(crate) precision: Precision,
    /// Kernels of dynamics, by the widths they are compiled for.
    pub(super) fused: RefCell<fused::Cache>,
    /// Kernels of distances, by the number of coordinates.
    pub(super) distances: RefCell<distances::Cache>,
    staging: RefCell<Staging>,
    /// What [`constant`](Self::constant) sent, the latest last.
    constants: RefCell<Vec<(Vec<f32>, Buffer)>>,
    pub(super) landings: Arc<Landings>,
    pub(super) meter: Meter,
    /// Whether products of TF32 numbers are taken by tensor cores.
    pub(super) has_tensor_cores: bool,
    /// Multiprocessors.
    pub(super) num_processors: usize,
    /// Bytes that one operation may hold at once; larger batches go in chunks of rows.
    pub(super) budget: usize,
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Device {{ ordinal: {} }}", self.context.ordinal())
    }
}

/// An error of the driver, in words.
pub(super) fn driver(action: &'static str, error: DriverError) -> Error {
    let remedy = if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        "the GPU's memory is full: close other programs on it, use smaller batches, or `--device cpu`"
    } else {
        "`ebp doctor` shows what works; `--device cpu` does without the GPU"
    };
    Error::Device { action, reason: error.to_string(), remedy }
}

/// Lists of numbers that are kept for those who send the same ones again.
const MOST_CONSTANTS: usize = 32;
/// Free bytes without which the GPU is not used.
const LEAST_MEMORY: usize = 256 << 20;

fn missing(reason: impl Into<String>, remedy: &'static str) -> Error {
    Error::Device { action: "use the GPU", reason: reason.into(), remedy }
}

/// Whether the libraries can be loaded; the first that cannot is named.
pub(super) fn check_libraries() -> Result<()> {
    // SAFETY: opens and closes shared libraries of the system.
    let (has_driver, has_nvrtc, has_blas) = unsafe {
        (sys::is_culib_present(), nvrtc::sys::is_culib_present(), blas_sys::is_culib_present())
    };
    if !has_driver {
        return Err(missing(
            "no NVIDIA driver (libcuda) was found",
            "install the driver, or use `--device cpu`",
        ));
    }
    if !has_nvrtc {
        return Err(missing(
            "the compiler library libnvrtc was not found",
            "install NVIDIA's `cuda-nvrtc` package or toolkit and add its folder to LD_LIBRARY_PATH, \
             or use `--device cpu`",
        ));
    }
    if !has_blas {
        return Err(missing(
            "the library libcublas was not found",
            "install NVIDIA's `libcublas` package or toolkit and add its folder to LD_LIBRARY_PATH, \
             or use `--device cpu`",
        ));
    }
    Ok(())
}

impl Device {
    pub(super) fn open(ordinal: usize, precision: Precision) -> Result<Self> {
        check_libraries()?;
        let count = CudaContext::device_count().map_err(|error| driver("count GPUs", error))?;
        if usize::try_from(count).unwrap_or(0) <= ordinal {
            return Err(missing(
                format!("there are {count} GPUs, number {ordinal} was asked for"),
                "numbers start at 0; `--device cpu` does without one",
            ));
        }
        let context = CudaContext::new(ordinal).map_err(|error| driver("open the GPU", error))?;
        // SAFETY: all work goes to one stream, in order; two events for every piece of memory would
        // guard against nothing.
        unsafe { context.disable_event_tracking() };
        let stream = context.default_stream();
        keep_freed_memory(&context)?;
        let kernels = Kernels::load(&context, &[])?;
        let blas = CudaBlas::new(Arc::clone(&stream)).map_err(blas_error)?;
        let (free, total) =
            context.mem_get_info().map_err(|error| driver("ask for its memory", error))?;
        if free < LEAST_MEMORY {
            return Err(missing(
                format!(
                    "{} MiB of its memory are free, {} are needed",
                    free >> 20,
                    LEAST_MEMORY >> 20
                ),
                "close other programs on it, or use `--device cpu`",
            ));
        }
        let capability =
            context.compute_capability().map_err(|error| driver("ask for its version", error))?;
        if precision == Precision::Bf16 && capability.0 < 8 {
            return Err(missing(
                format!(
                    "bf16 begins with compute capability 8.0, it has {}.{}",
                    capability.0, capability.1
                ),
                "use `--precision f32`",
            ));
        }
        let processors = context
            .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(|error| driver("count its processors", error))?;
        Ok(Self {
            fused: RefCell::default(),
            distances: RefCell::default(),
            staging: RefCell::new(Staging::new(&context)?),
            constants: RefCell::default(),
            landings: Arc::new(Landings::new(&context)),
            meter: Meter::default(),
            has_tensor_cores: capability.0 >= 8,
            num_processors: usize::try_from(processors).unwrap_or(1),
            context,
            stream,
            kernels,
            blas,
            precision,
            // Chunks leave room for weights and results, and for what other programs hold.
            budget: (total / 4).min(free / 2),
        })
    }

    /// Memory for `length` numbers, not initialised.
    pub(crate) fn buffer<T: DeviceRepr>(&self, length: usize) -> Result<Buffer<T>> {
        if length == 0 {
            return Ok(Buffer::none());
        }
        // SAFETY: every kernel and product writes its outputs before they are read.
        let bytes = unsafe { self.stream.alloc::<u8>(length * size_of::<T>()) }
            .map_err(|error| driver("take memory on the GPU", error))?;
        Ok(Buffer::new(&self.stream, bytes))
    }

    pub(crate) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        length: usize,
    ) -> Result<Buffer<T>> {
        let buffer = self.buffer(length)?;
        self.clear(&buffer)?;
        Ok(buffer)
    }

    /// `length` times the same number.
    pub(crate) fn filled(&self, number: f32, length: usize) -> Result<Buffer> {
        let buffer = self.buffer::<f32>(length)?;
        if length > 0 {
            let (address, stream) = (*buffer.address(), self.stream.cu_stream());
            self.timed(|| {
                // SAFETY: the memory is live and has `length` numbers of four bytes.
                unsafe { sys::cuMemsetD32Async(address, number.to_bits(), length, stream) }
                    .result()
                    .map_err(|error| driver("fill memory on the GPU", error))
            })?;
        }
        Ok(buffer)
    }

    /// Numbers of their own, equal to these.
    pub(crate) fn duplicate<T: DeviceRepr>(&self, buffer: &Buffer<T>) -> Result<Buffer<T>> {
        let copy = self.buffer(buffer.len())?;
        self.copy(buffer, &copy)?;
        Ok(copy)
    }

    /// Copies numbers within the GPU's memory; a [view](Buffer::view) is a place within an array.
    ///
    /// # Panics
    ///
    /// If there are more or fewer places than numbers.
    pub(crate) fn copy<T>(&self, from: &Buffer<T>, to: &Buffer<T>) -> Result<()> {
        assert_eq!(from.len(), to.len(), "numbers and places");
        if from.is_empty() {
            return Ok(());
        }
        let (bytes, stream) = (from.len() * size_of::<T>(), self.stream.cu_stream());
        self.timed(|| {
            // SAFETY: both are live and have so many bytes.
            unsafe { sys::cuMemcpyDtoDAsync_v2(*to.address(), *from.address(), bytes, stream) }
                .result()
                .map_err(|error| driver("copy numbers on the GPU", error))
        })
    }

    /// Fills numbers with zeros.
    pub(crate) fn clear<T>(&self, buffer: &Buffer<T>) -> Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let (bytes, stream) = (buffer.len() * size_of::<T>(), self.stream.cu_stream());
        self.timed(|| {
            // SAFETY: the memory is live, and zero bytes are zero numbers.
            unsafe { sys::cuMemsetD8Async(*buffer.address(), 0, bytes, stream) }
                .result()
                .map_err(|error| driver("clear memory on the GPU", error))
        })
    }

    /// Numbers of the host on the GPU. The host may change them at once.
    pub(crate) fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.buffer::<T>(values.len())?;
        self.staging.borrow_mut().send(&self.stream, values, *buffer.address())?;
        Ok(buffer)
    }

    /// A few numbers that come again and again, such as the noise scales of all steps of a sampler:
    /// sent the first time, found by what they are afterwards. They must not be written to.
    pub(super) fn constant(&self, numbers: &[f32]) -> Result<Buffer> {
        let mut known = self.constants.borrow_mut();
        if let Some((_, sent)) = known.iter().find(|(found, _)| found[..] == *numbers) {
            return Ok(sent.clone());
        }
        if known.len() == MOST_CONSTANTS {
            known.remove(0);
        }
        let sent = self.upload(numbers)?;
        known.push((numbers.to_vec(), sent.clone()));
        Ok(sent)
    }

    /// Numbers of the GPU on the host, after all work before; see [`land`](Self::land) for a way that
    /// does not wait.
    pub(crate) fn download<T: DeviceRepr>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        self.staging.borrow_mut().fetch(&self.stream, *buffer.address(), buffer.len())
    }

    /// Standard normals `start..` of a step of the stream, the same bits as on the CPU.
    pub(crate) fn normals(&self, out: &Buffer, from: Stream, step: u32, start: u64) -> Result<()> {
        let ([k0, k1], count) = (from.key(), out.len());
        self.kernels.normals(self, flat(count), out, count as u64, start, step, k0, k1)
    }

    /// Waits until everything that was sent is done.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.stream.synchronize().map_err(|error| driver("wait for the GPU", error))
    }
}

/// Freed memory stays with the program, so that a step asks the driver for none.
fn keep_freed_memory(context: &Arc<CudaContext>) -> Result<()> {
    let mut pool = std::ptr::null_mut();
    let mut threshold = u64::MAX;
    // SAFETY: the pool belongs to the open device; the attribute is a u64.
    unsafe {
        sys::cuDeviceGetDefaultMemPool(&raw mut pool, context.cu_device())
            .result()
            .map_err(|error| driver("find its memory pool", error))?;
        sys::cuMemPoolSetAttribute(
            pool,
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            (&raw mut threshold).cast(),
        )
        .result()
        .map_err(|error| driver("set up its memory pool", error))
    }
}
