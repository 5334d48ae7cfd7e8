//! The primitive on the CPU.

use super::*;
use crate::{Error, Result};

/// The instruction sets the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdLevel {
    /// Plain Rust: what every CPU runs.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F.
    Avx512,
}

impl SimdLevel {
    /// All levels this machine can run, slowest first.
    pub fn available() -> Vec<Self> {
        vec![Self::Portable]
    }

    /// portable, avx2 or avx512.
    pub fn name(self) -> &'static str {
        "portable"
    }
}

/// The CPU, with one instruction set; threads come from the current rayon pool.
#[derive(Clone, Copy, Debug)]
pub struct CpuBackend {
    simd: SimdLevel,
}

impl CpuBackend {
    /// The fastest instruction set of this machine.
    pub fn new() -> Self {
        Self { simd: SimdLevel::Portable }
    }

    /// A given instruction set.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if this machine lacks it.
    pub fn with_simd(simd: SimdLevel) -> Result<Self> {
        Ok(Self { simd })
    }

    /// The instruction set in use.
    pub fn simd(&self) -> SimdLevel {
        self.simd
    }

    /// Flops per second of dependent-free fused multiply-adds on all threads of the current rayon
    /// pool: the ceiling for everything else here.
    pub fn measure_peak_gflops(&self) -> f64 {
        1.0
    }
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

fn stub<T>() -> Result<T> {
    Err(Error::invalid("cpu", "x", "y"))
}

impl PointBackend for CpuBackend {
    fn values(&self, _: &PointMlp, _: &PointBatch<'_>) -> Result<Vec<f32>> {
        stub()
    }
    fn set_sums(&self, _: &PointMlp, _: &PointBatch<'_>) -> Result<Vec<f32>> {
        stub()
    }
    fn backward(
        &self,
        _: &PointMlp,
        _: &PointBatch<'_>,
        _: Cotangent<'_>,
        _: Wanted,
    ) -> Result<Backward> {
        stub()
    }
    fn score(&self, _: &PointMlp, _: &PointBatch<'_>) -> Result<Score> {
        stub()
    }
    fn score_backward(
        &self,
        _: &PointMlp,
        _: &PointBatch<'_>,
        _: ScoreCotangent<'_>,
        _: Wanted,
    ) -> Result<Gradients> {
        stub()
    }
    fn langevin(&self, _: &PointMlp, _: &PointBatch<'_>, _: &Langevin<'_>) -> Result<LangevinRun> {
        stub()
    }
    fn langevin_backward(
        &self,
        _: &PointMlp,
        _: &PointBatch<'_>,
        _: &Langevin<'_>,
        _: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        stub()
    }
    fn leapfrog(
        &self,
        _: &PointMlp,
        _: &PointBatch<'_>,
        _: &[f32],
        _: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun> {
        stub()
    }
    fn leapfrog_backward(
        &self,
        _: &PointMlp,
        _: &PointBatch<'_>,
        _: &[f32],
        _: &Leapfrog<'_>,
        _: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        stub()
    }
    fn log_partition(&self, _: &PointMlp, _: &Candidates<'_>) -> Result<LogPartition> {
        stub()
    }
    fn log_partition_backward(
        &self,
        _: &PointMlp,
        _: &Candidates<'_>,
        _: &[f32],
        _: &[f32],
        _: Wanted,
    ) -> Result<Gradients> {
        stub()
    }
    fn pool(&self, _: &PointMlp, _: &PointBatch<'_>, _: Pooling) -> Result<Pooled> {
        stub()
    }
    fn pool_backward(
        &self,
        _: &PointMlp,
        _: &PointBatch<'_>,
        _: Pooling,
        _: &Pooled,
        _: &[f32],
        _: Wanted,
    ) -> Result<Gradients> {
        stub()
    }
}
