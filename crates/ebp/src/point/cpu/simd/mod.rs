//! One vocabulary of vector operations, three instruction sets.
//!
//! Kernels are written once against [`Simd`] and compiled three times. Every function here is
//! `inline(always)`: it only becomes the intended instruction inside a function compiled for that
//! instruction set (see `kernel::Kernels`).
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "every block here is one intrinsic under the contract of the trait"
)]

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod portable;

/// Vectors of `LANES` f32.
///
/// # Safety
///
/// Every method may only run on a CPU that has the instruction set, and pointers must be valid
/// for `LANES` floats.
pub(super) trait Simd: Copy {
    /// One register.
    type V: Copy;
    /// f32 per register.
    const LANES: usize;
    /// Registers per panel of packed weights; `PANEL · LANES` is a multiple of 16.
    const PANEL: usize;

    unsafe fn splat(value: f32) -> Self::V;
    unsafe fn load(from: *const f32) -> Self::V;
    unsafe fn store(to: *mut f32, v: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, fused where the instruction set fuses.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// a > b ? a : b, so that a NaN in `b` survives.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// a < b ? a : b, so that a NaN in `b` survives.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// a > b ? x : y.
    unsafe fn select_gt(a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V;
    /// 1/a to about one unit in the last place, for finite normal a.
    unsafe fn reciprocal(a: Self::V) -> Self::V;
    /// The nearest whole number, ties to even.
    unsafe fn round(a: Self::V) -> Self::V;
    /// 2ᵃ for whole a in −126..=127.
    unsafe fn exp2_whole(a: Self::V) -> Self::V;
    /// The sums of the lanes of four vectors.
    unsafe fn sum4(v: [Self::V; 4]) -> [f32; 4];
}
