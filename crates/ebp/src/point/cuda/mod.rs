//! The primitive on an NVIDIA GPU.
//!
//! ```text
//! device    the GPU: its context, its memory
//! buffer    numbers in its memory, shared by all who hold them
//! launch    how kernels are started, and tables of kernels with typed arguments, which table tests
//! kernels   the table that every GPU has
//! products  of matrices
//! staging   numbers on their way to the GPU and back; landing: back, read later
//! meter     how long it computes
//! sets      which rows belong to which set; batches in chunks that fit its memory
//! inputs    what the operations read
//! network   a network and its sets' contexts, forward over rows
//! backward  backward; second_order: backward of the score
//! values, pool, critical, candidates, likelihood, dynamics, reverse   the operations
//! fused     all steps of a narrow network's dynamics in one kernel
//! adam      a step of the optimiser
//! slices    the operations on arrays of the host
//! distances between pairs of point sets, for `metric`
//! ```
//!
//! Libraries are loaded at run time: the same binary runs on machines without a GPU. The operations
//! are methods of `Device`: arrays of the GPU go in and come out, and the host does not wait.
#![allow(unsafe_code, reason = "calls of the driver; confined to this folder")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "row and set numbers fit into u32 (SetOffsets checks), sizes are far below 2^31"
)]

mod adam;
mod backward;
mod buffer;
mod candidates;
mod critical;
mod device;
mod distances;
mod dynamics;
mod fused;
mod inputs;
mod kernels;
mod landing;
pub(crate) mod launch;
mod likelihood;
mod meter;
mod motion;
mod network;
mod pool;
mod products;
mod reverse;
mod rows;
mod second_order;
mod sets;
mod slices;
mod staging;
#[cfg(test)]
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod values;
mod whole;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

#[allow(unused_imports, reason = "named by whoever keeps one; results have these types")]
pub(crate) use self::{landing::Landing, products::Operand};

pub(crate) use self::adam::{AdamNumbers, AdamState};
pub(crate) use self::buffer::Buffer;
pub(crate) use self::device::Device;
pub use self::distances::SetPairs;
pub(crate) use self::inputs::{
    DeviceBatch, DeviceCandidateValues, DeviceCandidates, DeviceCotangent, DeviceLangevin,
    DeviceLeapfrog, DeviceLogWeights, DeviceMlp,
};
pub use self::meter::KernelWork;
pub(crate) use self::motion::DeviceMotion;
pub(crate) use self::pool::DevicePooled;
#[cfg(test)]
pub(crate) use self::products::{plain, transposed};
pub(crate) use self::sets::Sets;
use crate::Result;

/// How matrix products are rounded. Sums are always kept in f32, and so are the first layer,
/// single outputs and everything that is not a matrix product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Strict single precision.
    #[default]
    F32,
    /// Tensor cores; factors are rounded to 10 bits of mantissa.
    Tf32,
    /// Tensor cores; factors are rounded to 7 bits of mantissa.
    Bf16,
}

impl Precision {
    /// `f32`, `tf32` or `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }
}

/// What is known of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuDescription {
    /// The maker's name for it.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Bytes of memory in all.
    pub total_memory: usize,
    /// Bytes of memory that are free.
    pub free_memory: usize,
}

/// An NVIDIA GPU. Operations run one after the other, whoever asks.
#[derive(Clone, Debug)]
pub struct CudaBackend {
    device: Arc<Mutex<Device>>,
    precision: Precision,
}

impl CudaBackend {
    /// Opens GPU number `ordinal`, from 0, and compiles its kernels, which takes a second.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) saying which library or GPU is missing, and what to do.
    pub fn new(ordinal: usize, precision: Precision) -> Result<Self> {
        let device = Device::open(ordinal, precision)?;
        Ok(Self { device: Arc::new(Mutex::new(device)), precision })
    }

    /// How matrix products are rounded.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Lets one operation hold at most so many bytes of the GPU's memory at once, beside what goes in
    /// and comes out: larger batches go in chunks of rows. A quarter of the memory unless told.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the driver does not answer.
    pub fn limit_memory(&self, bytes: usize) -> Result<()> {
        self.lock()?.budget = bytes;
        Ok(())
    }

    /// What is known of the GPU.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the driver does not answer.
    pub fn describe(&self) -> Result<GpuDescription> {
        let device = self.lock()?;
        let ask = |error| device::driver("describe the GPU", error);
        let (free_memory, total_memory) = device.context.mem_get_info().map_err(ask)?;
        Ok(GpuDescription {
            name: device.context.name().map_err(ask)?,
            capability: device.context.compute_capability().map_err(ask)?,
            total_memory,
            free_memory,
        })
    }

    /// 10⁹ floating-point operations per second of large matrix products in this precision: the
    /// ceiling for everything else here.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the GPU fails.
    pub fn measure_peak_gflops(&self) -> Result<f64> {
        values::peak(&*self.lock()?)
    }

    /// Does `work` and says for how long the GPU computed meanwhile, for whomever, and how many kernels
    /// it was sent: copies, checks and waiting are left out.
    ///
    /// # Errors
    ///
    /// Those of `work`, and [`Error::Device`](crate::Error::Device) if the driver does not answer.
    pub fn measure_kernels<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, KernelWork)> {
        self.lock()?.start_meter();
        let done = work();
        let kernels = self.lock()?.stop_meter()?;
        Ok((done?, kernels))
    }

    /// For every pair of sets (x, y) the squared distance from each point of x to the nearest one of
    /// y, followed by those from each point of y: in f64, the same bits as on the CPU.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if sets and pairs do not fit together,
    /// [`Error::Device`](crate::Error::Device) if the GPU fails.
    pub fn nearest_squared(&self, work: &SetPairs<'_>) -> Result<Vec<Vec<f64>>> {
        distances::nearest(&*self.lock()?, work)
    }

    /// The mean cost of the annealed soft matching (`approxmatch`) of every pair of sets, of
    /// distances or of their squares; coordinates are rounded to f32.
    ///
    /// # Errors
    ///
    /// As [`nearest_squared`](Self::nearest_squared).
    pub fn soft_match(&self, work: &SetPairs<'_>, is_squared: bool) -> Result<Vec<f64>> {
        distances::soft_match(&*self.lock()?, work, is_squared)
    }

    /// The GPU, for whoever has it: others wait.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Device>> {
        // A panic elsewhere leaves no half-made state here: every operation has its own memory.
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        device.context.bind_to_thread().map_err(|error| device::driver("open the GPU", error))?;
        Ok(device)
    }
}
