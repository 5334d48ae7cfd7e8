//! The GPU: its context, its compiled kernels, its memory and its matrix products.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use cudarc::cublas::{CudaBlas, sys as blas_sys};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError,
    LaunchConfig, ValidAsZeroBits, sys,
};
use cudarc::nvrtc::{self, CompileOptions};

use super::meter::Meter;
use super::products::blas_error;
use super::staging::Staging;
use super::{Precision, distances, fused};
use crate::{Error, Result};

/// Stands before every other source.
pub(super) const COMMON: &str = include_str!("common.cu");
const SOURCE: &str = include_str!("kernels.cu");
const RESIDENT: &str = include_str!("resident/resident.cu");

/// The kernels of `kernels.cu` and `resident.cu`, by name.
macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        /// Compiled kernels.
        #[derive(Debug)]
        pub(super) struct Kernels { $(pub(super) $name: CudaFunction,)* }

        impl Kernels {
            fn load(context: &Arc<CudaContext>) -> Result<Self> {
                let module = compile(context, &[COMMON, SOURCE, RESIDENT].concat(), &[])?;
                Ok(Self { $($name: module
                    .load_function(stringify!($name))
                    .map_err(|error| driver("load a kernel", error))?,)* })
            }
        }
    };
}

kernels!(
    to_bf16,
    split_weights,
    activate,
    first_layer,
    scalar_output,
    scalar_output_backward,
    multiply,
    product,
    first_layer_backward,
    second_order,
    set_sums,
    set_squares,
    langevin_dots,
    column_sums,
    name_sets,
    spread,
    pool_max,
    scatter,
    candidate_rows,
    log_sum_exp,
    candidate_weights,
    gather_shared,
    normals,
    drift_only,
    langevin_step,
    leapfrog_step,
    langevin_back,
    leapfrog_back,
    kick_back,
    add_values,
    moving,
    draw_theta,
    theta_backward,
    rectify,
    rectify_backward,
    scale_from,
    mark,
    rank_marked,
    first_places,
    gather_marked,
    scatter_marked,
    set_figures,
    square_sums,
    adam,
);

/// One GPU, ready to compute.
pub(super) struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(super) kernels: Kernels,
    pub(super) blas: CudaBlas,
    pub(super) precision: Precision,
    /// Kernels of dynamics, by the widths they are compiled for.
    pub(super) fused: RefCell<fused::Cache>,
    /// Kernels of distances, by the number of coordinates.
    pub(super) distances: RefCell<distances::Cache>,
    staging: RefCell<Staging>,
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

/// Numbers in the GPU's memory.
#[derive(Debug)]
pub(super) struct Buffer<T = f32> {
    /// Frees the memory when dropped.
    _owner: Option<CudaSlice<T>>,
    pointer: u64,
    length: usize,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self::none()
    }
}

impl<T> Buffer<T> {
    /// An absent array: kernels see a null pointer.
    pub(super) fn none() -> Self {
        Self { _owner: None, pointer: 0, length: 0 }
    }

    /// `length` numbers of somebody else's memory.
    pub(super) fn at_address(pointer: u64, length: usize) -> Self {
        Self { _owner: None, pointer, length }
    }

    /// A part of this memory, which must live at least as long.
    pub(super) fn view(&self, start: usize, length: usize) -> Self {
        Self { _owner: None, pointer: self.at(start), length }
    }

    /// The address of entry `index`.
    pub(super) fn at(&self, index: usize) -> u64 {
        self.pointer + (index * size_of::<T>()) as u64
    }

    pub(super) fn len(&self) -> usize {
        self.length
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

/// Compiles CUDA source for the context's GPU.
pub(super) fn compile(
    context: &Arc<CudaContext>,
    source: &str,
    definitions: &[String],
) -> Result<Arc<cudarc::driver::CudaModule>> {
    let (major, minor) =
        context.compute_capability().map_err(|error| driver("ask for the GPU's version", error))?;
    let mut options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
    options.extend(definitions.iter().map(|definition| format!("-D{definition}")));
    let options = CompileOptions { options, ..CompileOptions::default() };
    let ptx = nvrtc::compile_ptx_with_opts(source, options).map_err(|error| Error::Device {
        action: "compile the kernels",
        reason: format!("{error:?}"),
        remedy: "`--device cpu` does without the GPU; please report this",
    })?;
    context.load_module(ptx).map_err(|error| driver("load the kernels", error))
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
        let kernels = Kernels::load(&context)?;
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
    pub(super) fn buffer<T: DeviceRepr>(&self, length: usize) -> Result<Buffer<T>> {
        if length == 0 {
            return Ok(Buffer::none());
        }
        // SAFETY: every kernel and product writes its outputs before they are read.
        let slice = unsafe { self.stream.alloc::<T>(length) }
            .map_err(|error| driver("take memory on the GPU", error))?;
        Ok(Self::own(&self.stream, slice))
    }

    pub(super) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        length: usize,
    ) -> Result<Buffer<T>> {
        if length == 0 {
            return Ok(Buffer::none());
        }
        let buffer = self.buffer(length)?;
        self.clear(&buffer)?;
        Ok(buffer)
    }

    /// Copies numbers within the GPU's memory.
    pub(super) fn copy<T>(&self, from: &Buffer<T>, to: &Buffer<T>) -> Result<()> {
        let bytes = from.length.min(to.length) * size_of::<T>();
        let stream = self.stream.cu_stream();
        self.timed(|| {
            // SAFETY: both are live and have at least so many bytes.
            unsafe { sys::cuMemcpyDtoDAsync_v2(to.pointer, from.pointer, bytes, stream) }
                .result()
                .map_err(|error| driver("copy numbers on the GPU", error))
        })
    }

    /// Fills numbers with zeros.
    pub(super) fn clear<T>(&self, buffer: &Buffer<T>) -> Result<()> {
        if buffer.length == 0 {
            return Ok(());
        }
        let (bytes, stream) = (buffer.length * size_of::<T>(), self.stream.cu_stream());
        self.timed(|| {
            // SAFETY: the memory is live, and zero bytes are zero numbers.
            unsafe { sys::cuMemsetD8Async(buffer.pointer, 0, bytes, stream) }
                .result()
                .map_err(|error| driver("clear memory on the GPU", error))
        })
    }

    pub(super) fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.buffer::<T>(values.len())?;
        self.staging.borrow_mut().send(&self.stream, values, buffer.pointer)?;
        Ok(buffer)
    }

    pub(super) fn download<T: DeviceRepr>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        self.staging.borrow_mut().fetch(&self.stream, buffer.pointer, buffer.length)
    }

    fn own<T: DeviceRepr>(stream: &Arc<CudaStream>, slice: CudaSlice<T>) -> Buffer<T> {
        let pointer = slice.device_ptr(stream).0;
        let length = slice.len();
        Buffer { _owner: Some(slice), pointer, length }
    }

    pub(super) fn synchronize(&self) -> Result<()> {
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

/// Threads for `count` independent entries.
pub(super) fn flat(count: usize) -> LaunchConfig {
    let blocks = count.div_ceil(256).clamp(1, 132 * 32);
    LaunchConfig { grid_dim: (blocks as u32, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 }
}

/// A warp for each of `rows` rows.
pub(super) fn warps(rows: usize) -> LaunchConfig {
    let blocks = rows.div_ceil(8).max(1);
    LaunchConfig { grid_dim: (blocks as u32, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 }
}

/// A block for each set and 32 columns.
pub(super) fn per_set(sets: usize, columns: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (sets as u32, columns.div_ceil(32) as u32, 1),
        block_dim: (32, 8, 1),
        shared_mem_bytes: 0,
    }
}

/// A block for each set and up to 32 columns, its threads shared out among columns and rows.
pub(super) fn sums_per_set(sets: usize, columns: usize) -> LaunchConfig {
    let wide = columns.next_power_of_two().min(32);
    LaunchConfig {
        grid_dim: (sets as u32, columns.div_ceil(wide) as u32, 1),
        block_dim: (wide as u32, (1024 / wide) as u32, 1),
        shared_mem_bytes: 0,
    }
}

/// Starts a kernel: `launch!(device, name, config, arguments…)`. Arguments are u64 addresses and
/// plain numbers, in the order and of the types of `kernels.cu`.
macro_rules! launch {
    ($device:expr, $name:ident, $config:expr, $($argument:expr),* $(,)?) => {{
        use cudarc::driver::PushKernelArg;
        let mut launch = $device.stream.launch_builder(&$device.kernels.$name);
        $crate::point::cuda::device::push!(launch, $($argument),*);
        $device.timed(|| {
            // SAFETY: the argument list follows the kernel's, and buffers are as large as it assumes.
            unsafe { launch.launch($config) }
                .map(|_| ())
                .map_err(|error| $crate::point::cuda::device::driver("run a kernel", error))
        })
    }};
}

/// Gives each argument a place that outlives the launch.
macro_rules! push {
    ($launch:ident $(,)?) => {};
    ($launch:ident, $first:expr $(, $rest:expr)*) => {
        let first = $first;
        $launch.arg(&first);
        $crate::point::cuda::device::push!($launch $(, $rest)*);
    };
}

pub(super) use {launch, push};
