//! The primitive on the CPU.
//!
//! ```text
//! call      one operation on one batch: packs weights, computes each set's shifts
//! schedule  divides the rows into chunks (threads) and tiles (cache), the same for any threads
//! tile      carries a tile of elements forward and back; second_order: with a tangent beside it
//! kernel    the loops, checked at the door and compiled for each instruction set (simd)
//! accumulator, shift   sums over elements, and what the context adds per set
//! values, score, pool, candidates, dynamics, dynamics_backward   the operations
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
mod buffer;
mod call;
mod candidates;
mod dynamics;
mod dynamics_backward;
mod kernel;
mod motion;
mod packed;
mod pool;
mod schedule;
mod score;
mod second_order;
mod shift;
mod simd;
mod sums;
mod tile;
mod values;
pub(crate) mod vectorise;

use std::time::Instant;

use self::call::Call;
use self::candidates::CandidateCall;
use self::kernel::Kernels;
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

    fn call<'a>(self, mlp: &'a PointMlp, batch: &'a PointBatch<'a>) -> Result<Call<'a>> {
        batch.check(mlp.shape())?;
        Ok(Call { kernels: self.simd.kernels(), mlp, batch })
    }

    /// A call that needs a single output per element.
    fn scalar_call<'a>(self, mlp: &'a PointMlp, batch: &'a PointBatch<'a>) -> Result<Call<'a>> {
        check_scalar(mlp)?;
        self.call(mlp, batch)
    }
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl PointBackend for CpuBackend {
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        let values = values::values(&self.call(mlp, batch)?);
        check_finite("values", &values, OVERFLOW)?;
        Ok(values)
    }

    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        let sums = values::set_sums(&self.call(mlp, batch)?);
        check_finite("set sums", &sums, OVERFLOW)?;
        Ok(sums)
    }

    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward> {
        let call = self.call(mlp, batch)?;
        let (given, rows) = match cotangent {
            Cotangent::PerElement(given) => (given, batch.offsets.num_elements()),
            Cotangent::PerSet(given) => (given, batch.offsets.num_sets()),
        };
        check_rows("cotangent", given, rows, call.output_dim())?;
        let mut result = values::backward(&call, cotangent, wanted);
        check_finite("values", &result.values, OVERFLOW)?;
        result.gradients = check_gradients(result.gradients)?;
        Ok(result)
    }

    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score> {
        let score = score::score(&self.scalar_call(mlp, batch)?);
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
        let call = self.scalar_call(mlp, batch)?;
        let num_elements = batch.offsets.num_elements();
        check_rows("cotangent.score", cotangent.score, num_elements, call.value_dim())?;
        if let Some(values) = cotangent.values {
            check_rows("cotangent.values", values, num_elements, 1)?;
        }
        check_gradients(score::score_backward(&call, cotangent, wanted))
    }

    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun> {
        let call = self.scalar_call(mlp, batch)?;
        langevin.check(batch.offsets.num_elements())?;
        let run = dynamics::langevin(&call, langevin);
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
        let call = self.scalar_call(mlp, batch)?;
        let num_elements = batch.offsets.num_elements();
        langevin.check(num_elements)?;
        check_dynamics_cotangent(&cotangent, num_elements, call.value_dim())?;
        if cotangent.momentum.is_some() {
            return Err(Error::invalid("cotangent.momentum", "None for Langevin steps", "a value"));
        }
        check_dynamics_gradients(dynamics_backward::langevin_backward(&call, langevin, cotangent))
    }

    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun> {
        let call = self.scalar_call(mlp, batch)?;
        let num_elements = batch.offsets.num_elements();
        check_rows("momentum", momentum, num_elements, call.value_dim())?;
        leapfrog.check(num_elements)?;
        let run = dynamics::leapfrog(&call, momentum, leapfrog);
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
        let call = self.scalar_call(mlp, batch)?;
        let num_elements = batch.offsets.num_elements();
        check_rows("momentum", momentum, num_elements, call.value_dim())?;
        leapfrog.check(num_elements)?;
        check_dynamics_cotangent(&cotangent, num_elements, call.value_dim())?;
        if cotangent.kinetic.is_some() {
            return Err(Error::invalid("cotangent.kinetic", "None for leapfrog steps", "a value"));
        }
        check_dynamics_gradients(dynamics_backward::leapfrog_backward(
            &call, momentum, leapfrog, cotangent,
        ))
    }

    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition> {
        check_scalar(mlp)?;
        candidates.check(mlp)?;
        let batch = anchors(candidates);
        let call = Call { kernels: self.simd.kernels(), mlp, batch: &batch };
        let result = candidates::log_partition(&CandidateCall { call, candidates });
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
        let batch = anchors(candidates);
        let call = Call { kernels: self.simd.kernels(), mlp, batch: &batch };
        let task = CandidateCall { call, candidates };
        check_gradients(candidates::log_partition_backward(&task, log_partition, cotangent, wanted))
    }

    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled> {
        let pooled = pool::pool(&self.call(mlp, batch)?, pooling);
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
        let call = self.call(mlp, batch)?;
        let num_sets = batch.offsets.num_sets();
        check_rows("cotangent", cotangent, num_sets, call.output_dim())?;
        if pooled.pooling == Pooling::Max {
            check_critical(&pooled.critical, batch, call.output_dim())?;
        }
        check_gradients(pool::pool_backward(&call, pooled, cotangent, wanted))
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
