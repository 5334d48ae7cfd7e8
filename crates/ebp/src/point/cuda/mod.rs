//! The primitive on an NVIDIA GPU.
//!
//! ```text
//! device    the GPU: kernels compiled when it is opened, memory, matrix products
//! staging   numbers on their way there and back
//! network   a network and a chunk of rows there: forward, backward, backward of the score
//! values, pool, candidates, dynamics   the operations
//! fused     all steps of a narrow network's dynamics in one kernel
//! ```
//!
//! Libraries are loaded at run time: the same binary runs on machines without a GPU. Elements go
//! to the GPU and small results come back; parameters stay on the host.
#![allow(unsafe_code, reason = "calls of the driver; confined to this folder")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "row and set numbers fit into u32 (SetOffsets checks), sizes are far below 2^31"
)]

mod candidates;
mod device;
mod dynamics;
mod fused;
mod network;
mod pool;
mod staging;
mod values;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use self::device::Device;
use super::checks::{
    OVERFLOW, check_critical, check_dynamics_cotangent, check_dynamics_gradients, check_gradients,
    check_rows, check_scalar,
};
use super::{
    Backward, Candidates, Cotangent, DynamicsCotangent, DynamicsGradients, Gradients, Langevin,
    LangevinRun, Leapfrog, LeapfrogRun, LogPartition, PointBackend, PointBatch, PointMlp, Pooled,
    Pooling, Score, ScoreCotangent, Wanted,
};
use crate::error::check_finite;
use crate::{Error, Result};

/// How matrix products are rounded. Sums are always kept in f32, and so are the first layer,
/// single outputs and everything that is not a matrix product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// [`Error::Device`] saying which library or GPU is missing, and what to do.
    pub fn new(ordinal: usize, precision: Precision) -> Result<Self> {
        let device = Device::open(ordinal, precision)?;
        Ok(Self { device: Arc::new(Mutex::new(device)), precision })
    }

    /// How matrix products are rounded.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// What is known of the GPU.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the driver does not answer.
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
    /// [`Error::Device`] if the GPU fails.
    pub fn measure_peak_gflops(&self) -> Result<f64> {
        values::peak(&*self.lock()?)
    }

    fn lock(&self) -> Result<MutexGuard<'_, Device>> {
        // A panic elsewhere leaves no half-made state here: every operation has its own memory.
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        device.context.bind_to_thread().map_err(|error| device::driver("open the GPU", error))?;
        Ok(device)
    }
}

impl PointBackend for CudaBackend {
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        batch.check(mlp.shape())?;
        let values = values::values(&*self.lock()?, mlp, batch)?;
        check_finite("values", &values, OVERFLOW)?;
        Ok(values)
    }

    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        batch.check(mlp.shape())?;
        let pooled = pool::pool(&*self.lock()?, mlp, batch, Pooling::Sum)?;
        check_finite("set sums", &pooled.values, OVERFLOW)?;
        Ok(pooled.values)
    }

    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward> {
        batch.check(mlp.shape())?;
        let (given, rows) = match cotangent {
            Cotangent::PerElement(given) => (given, batch.offsets.num_elements()),
            Cotangent::PerSet(given) => (given, batch.offsets.num_sets()),
        };
        check_rows("cotangent", given, rows, mlp.shape().config().output_dim)?;
        let mut result = values::backward(&*self.lock()?, mlp, batch, cotangent, wanted)?;
        check_finite("values", &result.values, OVERFLOW)?;
        result.gradients = check_gradients(result.gradients)?;
        Ok(result)
    }

    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let score = values::score(&*self.lock()?, mlp, batch)?;
        check_finite("values", &score.values, OVERFLOW)?;
        check_finite("score", &score.score, OVERFLOW)?;
        Ok(score)
    }

    fn score_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: ScoreCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Gradients> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        let dims = mlp.shape().config().value_dim;
        check_rows("cotangent.score", cotangent.score, num_elements, dims)?;
        if let Some(values) = cotangent.values {
            check_rows("cotangent.values", values, num_elements, 1)?;
        }
        check_gradients(values::score_backward(&*self.lock()?, mlp, batch, cotangent, wanted)?)
    }

    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        langevin.check(batch.offsets.num_elements())?;
        let run = dynamics::langevin(&*self.lock()?, mlp, batch, langevin)?;
        check_finite("Langevin elements", &run.elements, OVERFLOW)?;
        check_finite("Langevin values", &run.values, OVERFLOW)?;
        check_finite("Langevin score", &run.score, OVERFLOW)?;
        for sums in [&run.kinetic, &run.final_alignment, &run.kinetic_alignment] {
            check_finite("Langevin sums", sums, OVERFLOW)?;
        }
        Ok(run)
    }

    fn langevin_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        langevin.check(num_elements)?;
        check_dynamics_cotangent(&cotangent, num_elements, mlp.shape().config().value_dim)?;
        if cotangent.momentum.is_some() {
            return Err(Error::invalid("cotangent.momentum", "None for Langevin steps", "a value"));
        }
        check_dynamics_gradients(super::replay::langevin_backward(
            self, mlp, batch, langevin, cotangent,
        )?)
    }

    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        check_rows("momentum", momentum, num_elements, mlp.shape().config().value_dim)?;
        leapfrog.check(num_elements)?;
        let run = dynamics::leapfrog(&*self.lock()?, mlp, batch, momentum, leapfrog)?;
        check_finite("leapfrog elements", &run.elements, OVERFLOW)?;
        check_finite("leapfrog momentum", &run.momentum, OVERFLOW)?;
        check_finite("leapfrog values", &run.values, OVERFLOW)?;
        check_finite("leapfrog score", &run.score, OVERFLOW)?;
        check_finite("leapfrog kinetic", &run.kinetic, OVERFLOW)?;
        Ok(run)
    }

    fn leapfrog_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        let dims = mlp.shape().config().value_dim;
        check_rows("momentum", momentum, num_elements, dims)?;
        leapfrog.check(num_elements)?;
        check_dynamics_cotangent(&cotangent, num_elements, dims)?;
        if cotangent.kinetic.is_some() {
            return Err(Error::invalid("cotangent.kinetic", "None for leapfrog steps", "a value"));
        }
        check_dynamics_gradients(super::replay::leapfrog_backward(
            self, mlp, batch, momentum, leapfrog, cotangent,
        )?)
    }

    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition> {
        check_scalar(mlp)?;
        candidates.check(mlp)?;
        let result = candidates::log_partition(&*self.lock()?, mlp, candidates)?;
        check_finite("candidate values", &result.values, OVERFLOW)?;
        check_finite(
            "log partition",
            &result.log_partition,
            "every candidate of that anchor has weight zero: give one a finite log weight",
        )?;
        Ok(result)
    }

    fn log_partition_backward(
        &self,
        mlp: &PointMlp,
        candidates: &Candidates<'_>,
        log_partition: &[f32],
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        check_scalar(mlp)?;
        candidates.check(mlp)?;
        let num_anchors = candidates.num_anchors();
        check_rows("log_partition", log_partition, num_anchors, 1)?;
        check_rows("cotangent", cotangent, num_anchors, 1)?;
        check_gradients(candidates::log_partition_backward(
            &*self.lock()?,
            mlp,
            candidates,
            (log_partition, cotangent),
            wanted,
        )?)
    }

    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled> {
        batch.check(mlp.shape())?;
        let pooled = pool::pool(&*self.lock()?, mlp, batch, pooling)?;
        check_finite("pooled values", &pooled.values, OVERFLOW)?;
        Ok(pooled)
    }

    fn pool_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        pooled: &Pooled,
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        batch.check(mlp.shape())?;
        let outputs = mlp.shape().config().output_dim;
        check_rows("cotangent", cotangent, batch.offsets.num_sets(), outputs)?;
        if pooled.pooling == Pooling::Max {
            check_critical(&pooled.critical, batch, outputs)?;
        }
        check_gradients(pool::pool_backward(&*self.lock()?, mlp, batch, pooled, cotangent, wanted)?)
    }
}
