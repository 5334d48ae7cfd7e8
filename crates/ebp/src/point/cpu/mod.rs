//! The primitive on the CPU.
//!
//! ```text
//! call      one operation on one batch: packs weights, computes each set's shifts
//! schedule  divides the rows into chunks (threads) and tiles (cache), the same for any threads
//! tile      carries a tile of elements forward and back; second_order: with a tangent beside it
//! kernel    the loops, checked at the door and compiled for each instruction set (simd)
//! accumulator, shift   sums over elements, and what the context adds per set
//! values, score, pool, candidates, dynamics, dynamics_backward   the operations
//! attention   queries of a set and its keys, beside the primitive
//! ```
#![allow(unsafe_code, reason = "SIMD intrinsics; confined to buffer, simd and kernel")]
#![allow(
    clippy::inline_always,
    reason = "kernels reach their instruction set only when inlined into a function compiled for it"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "row and set numbers fit into u32 (SetOffsets checks), sums are rounded to f32"
)]

mod accumulator;
mod attention;
mod buffer;
mod call;
mod candidates;
mod dynamics;
mod dynamics_backward;
mod kernel;
mod motion;
mod packed;
mod pool;
mod random;
mod schedule;
mod score;
mod second_order;
mod shift;
mod simd;
mod sums;
mod tile;
mod values;
pub(crate) mod vectorise;
mod window;

use std::time::Instant;

pub(crate) use self::attention::AttentionRows;
use self::call::Call;
use self::candidates::CandidateCall;
use self::kernel::Kernels;
pub(crate) use self::window::{Window, WindowMemory};
use super::operations::Operations;
use super::{
    Backward, Candidates, Cotangent, DynamicsCotangent, DynamicsGradients, Gradients, Langevin,
    LangevinRun, Leapfrog, LeapfrogRun, LogPartition, PointBatch, PointMlp, Pooled, Pooling, Score,
    ScoreCotangent, Wanted,
};
use crate::{Error, Result};

/// The instruction sets the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdLevel {
    /// Plain Rust: what every CPU runs.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, DQ and VL.
    Avx512,
}

impl SimdLevel {
    /// All levels this machine can run, slowest first.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "only x86-64 has more")
        )]
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self::Avx2);
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    levels.push(Self::Avx512);
                }
            }
        }
        levels
    }

    /// `portable`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    fn kernels(self) -> &'static Kernels {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => &kernel::AVX512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => &kernel::AVX2,
            _ => &kernel::PORTABLE,
        }
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
        let fastest = SimdLevel::available().pop();
        Self { simd: fastest.unwrap_or(SimdLevel::Portable) }
    }

    /// A given instruction set.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if this machine lacks it.
    pub fn with_simd(simd: SimdLevel) -> Result<Self> {
        let available = SimdLevel::available();
        if available.contains(&simd) {
            return Ok(Self { simd });
        }
        let names: Vec<_> = available.into_iter().map(SimdLevel::name).collect();
        let expected = format!("one of {} on this machine", names.join(", "));
        Err(Error::invalid("simd", expected, simd.name()))
    }

    /// The instruction set in use.
    pub fn simd(&self) -> SimdLevel {
        self.simd
    }

    /// Floating-point operations per second, in units of 10⁹, of multiply-adds that wait for
    /// nothing, on all threads of the current rayon pool, with the machine's widest instruction
    /// set: the ceiling for everything else here. Takes about a quarter of a second.
    ///
    /// Where only the portable kernels run, compilers do not turn the loop into vector code and
    /// the figure is too low.
    pub fn measure_peak_gflops() -> f64 {
        let kernels = Self::new().simd.kernels();
        let threads = rayon::current_num_threads();
        let iterations = 1 << 21;
        let once = || {
            let start = Instant::now();
            rayon::broadcast(|_| std::hint::black_box(kernels.spin(iterations)));
            start.elapsed().as_secs_f64()
        };
        let fastest = (0..8).map(|_| once()).fold(f64::INFINITY, f64::min);
        (threads * iterations * kernels.spin_flops) as f64 / fastest / 1e9
    }

    fn call<'a>(self, mlp: &'a PointMlp, batch: &'a PointBatch<'a>) -> Call<'a> {
        Call { kernels: self.simd.kernels(), mlp, batch }
    }
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl Operations for CpuBackend {
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        Ok(values::values(&self.call(mlp, batch)))
    }

    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        Ok(values::set_sums(&self.call(mlp, batch)))
    }

    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward> {
        Ok(values::backward(&self.call(mlp, batch), cotangent, wanted))
    }

    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score> {
        Ok(score::score(&self.call(mlp, batch)))
    }

    fn score_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: ScoreCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Gradients> {
        Ok(score::score_backward(&self.call(mlp, batch), cotangent, wanted))
    }

    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun> {
        Ok(dynamics::langevin(&self.call(mlp, batch), langevin))
    }

    fn langevin_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        let call = self.call(mlp, batch);
        Ok(dynamics_backward::langevin_backward(&call, langevin, cotangent))
    }

    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun> {
        Ok(dynamics::leapfrog(&self.call(mlp, batch), momentum, leapfrog))
    }

    fn leapfrog_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        let call = self.call(mlp, batch);
        Ok(dynamics_backward::leapfrog_backward(&call, momentum, leapfrog, cotangent))
    }

    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition> {
        let batch = anchors(candidates);
        let call = self.call(mlp, &batch);
        Ok(candidates::log_partition(&CandidateCall { call, candidates }))
    }

    fn log_partition_backward(
        &self,
        mlp: &PointMlp,
        candidates: &Candidates<'_>,
        log_partition: &[f32],
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        let batch = anchors(candidates);
        let task = CandidateCall { call: self.call(mlp, &batch), candidates };
        Ok(candidates::log_partition_backward(&task, log_partition, cotangent, wanted))
    }

    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled> {
        Ok(pool::pool(&self.call(mlp, batch), pooling))
    }

    fn pool_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        pooled: &Pooled,
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        Ok(pool::pool_backward(&self.call(mlp, batch), pooled, cotangent, wanted))
    }
}

/// Anchors stand in for a batch's elements, so that sets and shifts are found as usual.
fn anchors<'a>(candidates: &Candidates<'a>) -> PointBatch<'a> {
    PointBatch { elements: &[], offsets: candidates.offsets, context: candidates.context }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_runs_the_portable_kernels() {
        assert_eq!(SimdLevel::available()[0], SimdLevel::Portable);
        assert_eq!(CpuBackend::with_simd(SimdLevel::Portable).unwrap().simd(), SimdLevel::Portable);
    }

    /// The transform is the same arithmetic whatever instructions carry it out.
    #[test]
    fn noise_has_the_same_bits_on_every_instruction_set() {
        let stream = crate::rng::Stream::new(11, "noise");
        let mut expected = vec![0.0; 1000];
        stream.fill_normal(4, 37, &mut expected);
        for level in SimdLevel::available() {
            let mut found = vec![0.0; 1000];
            level.kernels().normals(stream, 4, 37, &mut found);
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&expected), "{}", level.name());
        }
    }
}
