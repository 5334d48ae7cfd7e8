//! Activations on a tile: z becomes σ(z), with σ′(z) and σ″(z) beside it when asked for.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "arithmetic under the contract of `Simd`: the CPU has the instruction set"
)]

use super::super::simd::Simd;
use crate::point::Activation;

#[derive(Debug)]
pub(in super::super) struct Activate<'a> {
    pub(in super::super) activation: Activation,
    pub(in super::super) rows: usize,
    /// Columns, a multiple of 16.
    pub(in super::super) width: usize,
    pub(in super::super) stride: usize,
    /// z on entry, σ(z) on return.
    pub(in super::super) values: &'a mut [f32],
    /// σ′(z) on return.
    pub(in super::super) slopes: Option<&'a mut [f32]>,
    /// σ″(z) on return; zeros for piecewise linear σ.
    pub(in super::super) curvatures: Option<&'a mut [f32]>,
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::activate`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd>(args: Activate<'_>) {
    // SAFETY: passed on.
    unsafe {
        match args.activation {
            Activation::Relu => rows::<S, _>(args, Relu),
            Activation::LeakyRelu { slope } => rows::<S, _>(args, LeakyRelu(slope)),
            Activation::Silu => rows::<S, _>(args, Silu),
            Activation::Softplus => rows::<S, _>(args, Softplus),
            Activation::Tanh => rows::<S, _>(args, Tanh),
        }
    }
}

/// σ with its derivatives. A trait and not a closure: a closure that the compiler chose not to
/// inline would lose the instruction set.
trait Curve: Copy {
    /// (σ, σ′, σ″) of one vector. What the caller does not store is not computed.
    unsafe fn jet<S: Simd>(self, z: S::V) -> (S::V, S::V, S::V);
}

#[inline(always)]
unsafe fn rows<S: Simd, C: Curve>(args: Activate<'_>, curve: C) {
    let Activate { rows, width, stride, values, slopes, curvatures, .. } = args;
    let values = values.as_mut_ptr();
    let slopes = slopes.map(<[f32]>::as_mut_ptr);
    let curvatures = curvatures.map(<[f32]>::as_mut_ptr);
    // SAFETY: `width` is a multiple of LANES and rows exist as checked.
    unsafe {
        for row in 0..rows {
            match (slopes, curvatures) {
                (None, _) => {
                    for i in (row * stride..row * stride + width).step_by(S::LANES) {
                        S::store(values.add(i), curve.jet::<S>(S::load(values.add(i))).0);
                    }
                }
                (Some(slopes), None) => {
                    for i in (row * stride..row * stride + width).step_by(S::LANES) {
                        let (value, slope, _) = curve.jet::<S>(S::load(values.add(i)));
                        S::store(values.add(i), value);
                        S::store(slopes.add(i), slope);
                    }
                }
                (Some(slopes), Some(curvatures)) => {
                    for i in (row * stride..row * stride + width).step_by(S::LANES) {
                        let (value, slope, curvature) = curve.jet::<S>(S::load(values.add(i)));
                        S::store(values.add(i), value);
                        S::store(slopes.add(i), slope);
                        S::store(curvatures.add(i), curvature);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Relu;

impl Curve for Relu {
    #[inline(always)]
    unsafe fn jet<S: Simd>(self, z: S::V) -> (S::V, S::V, S::V) {
        // SAFETY: the CPU has `S`, as everywhere below.
        unsafe {
            let zero = S::splat(0.0);
            (S::max(zero, z), S::select_gt(z, zero, S::splat(1.0), zero), zero)
        }
    }
}

#[derive(Clone, Copy)]
struct LeakyRelu(f32);

impl Curve for LeakyRelu {
    #[inline(always)]
    unsafe fn jet<S: Simd>(self, z: S::V) -> (S::V, S::V, S::V) {
        unsafe {
            let zero = S::splat(0.0);
            let slope = S::select_gt(z, zero, S::splat(1.0), S::splat(self.0));
            (S::mul(z, slope), slope, zero)
        }
    }
}

#[derive(Clone, Copy)]
struct Silu;

impl Curve for Silu {
    #[inline(always)]
    unsafe fn jet<S: Simd>(self, z: S::V) -> (S::V, S::V, S::V) {
        unsafe {
            let one = S::splat(1.0);
            let s = sigmoid::<S>(z);
            let rest = S::sub(one, s);
            let value = S::mul(z, s);
            // σ′ = s + σ (1 − s),  σ″ = s (1 − s) (2 + z (1 − 2 s))
            let slope = S::fma(value, rest, s);
            let bend = S::fma(z, S::sub(rest, s), S::splat(2.0));
            (value, slope, S::mul(S::mul(s, rest), bend))
        }
    }
}

#[derive(Clone, Copy)]
struct Softplus;

impl Curve for Softplus {
    #[inline(always)]
    unsafe fn jet<S: Simd>(self, z: S::V) -> (S::V, S::V, S::V) {
        unsafe {
            let zero = S::splat(0.0);
            let one = S::splat(1.0);
            // e = exp(−|z|) in (0, 1]; log(1 + e) = 2 atanh t with t = e/(2 + e) ≤ 1/3.
            let e = exp::<S>(S::sub(zero, S::max(z, S::sub(zero, z))));
            let t = S::mul(e, S::reciprocal(S::add(e, S::splat(2.0))));
            let t2 = S::mul(t, t);
            let mut series = S::splat(2.0 / 15.0);
            for odd in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0_f32] {
                series = S::fma(series, t2, S::splat(2.0 / odd));
            }
            let value = S::fma(t, series, S::max(zero, z));
            // σ′ = 1/(1 + e) or e/(1 + e),  σ″ = e/(1 + e)²
            let inverse = S::reciprocal(S::add(one, e));
            let slope = S::mul(S::select_gt(z, zero, one, e), inverse);
            (value, slope, S::mul(S::mul(e, inverse), inverse))
        }
    }
}

#[derive(Clone, Copy)]
struct Tanh;

impl Curve for Tanh {
    /// A rational approximation, odd of degree 13 over even of degree 6, exact to a few units in
    /// the last place (the coefficients are those of the Eigen library, `generic_fast_tanh`).
    #[inline(always)]
    unsafe fn jet<S: Simd>(self, z: S::V) -> (S::V, S::V, S::V) {
        const ODD: [f32; 7] = [
            -2.760_768_5e-16,
            2.000_188e-13,
            -8.604_672e-11,
            5.122_297e-8,
            1.485_722_4e-5,
            6.372_619_3e-4,
            4.893_524_6e-3,
        ];
        const EVEN: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];
        unsafe {
            let limit = 7.905_311_f32;
            let x = S::min(S::splat(limit), S::max(S::splat(-limit), z));
            let x2 = S::mul(x, x);
            let mut odd = S::splat(ODD[0]);
            for c in &ODD[1..] {
                odd = S::fma(odd, x2, S::splat(*c));
            }
            let mut even = S::splat(EVEN[0]);
            for c in &EVEN[1..] {
                even = S::fma(even, x2, S::splat(*c));
            }
            let value = S::mul(S::mul(x, odd), S::reciprocal(even));
            // σ′ = 1 − σ²,  σ″ = −2 σ σ′
            let slope = S::sub(S::splat(1.0), S::mul(value, value));
            (value, slope, S::mul(S::mul(S::splat(-2.0), value), slope))
        }
    }
}

/// 1/(1 + e⁻ᶻ)
#[inline(always)]
unsafe fn sigmoid<S: Simd>(z: S::V) -> S::V {
    unsafe { S::reciprocal(S::add(S::splat(1.0), exp::<S>(S::sub(S::splat(0.0), z)))) }
}

/// eˣ, clamped to |x| ≤ 87 where it neither overflows nor underflows.
#[inline(always)]
pub(super) unsafe fn exp<S: Simd>(x: S::V) -> S::V {
    unsafe {
        // x = n ln 2 + r with |r| ≤ ½ ln 2, ln 2 split in two so that n ln 2 is exact.
        let x = S::min(S::splat(87.0), S::max(S::splat(-87.0), x));
        let n = S::round(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        let r = S::fma(n, S::splat(-0.693_359_4), x);
        let r = S::fma(n, S::splat(2.121_944_4e-4), r);
        let mut sum = S::splat(1.0 / 5040.0);
        for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            sum = S::fma(sum, r, S::splat(c));
        }
        S::mul(sum, S::exp2_whole(n))
    }
}
