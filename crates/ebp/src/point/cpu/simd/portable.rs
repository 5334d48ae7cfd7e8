//! Plain Rust on four lanes, which compilers turn into SSE2, NEON or scalar code.
//!
//! Where every processor of the target has a fused multiply-add, as on aarch64 (`fmla`), it is used.
//! Elsewhere products and sums are rounded separately: without a hardware instruction, a fused
//! multiply-add is a slow library call.

use super::Simd;

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Portable;

#[inline(always)]
fn zip(a: [f32; 4], b: [f32; 4], f: impl Fn(f32, f32) -> f32) -> [f32; 4] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

// SAFETY (whole impl): only loads and stores need the trait's contract, that pointers are valid.
impl Simd for Portable {
    type V = [f32; 4];
    const LANES: usize = 4;
    const PANEL: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 4] {
        [value; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: [f32; 4]) {
        unsafe { to.cast::<[f32; 4]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn add(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn fma(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            return std::array::from_fn(|i| a[i].mul_add(b[i], c[i]));
        }
        zip(zip(a, b, |x, y| x * y), c, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn max(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    unsafe fn min(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    unsafe fn select_gt(a: [f32; 4], b: [f32; 4], x: [f32; 4], y: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if a[i] > b[i] { x[i] } else { y[i] })
    }
    #[inline(always)]
    unsafe fn reciprocal(a: [f32; 4]) -> [f32; 4] {
        a.map(|x| 1.0 / x)
    }
    #[inline(always)]
    unsafe fn round(a: [f32; 4]) -> [f32; 4] {
        // Adding and subtracting 1.5·2²³ rounds to even without a library call; |a| < 2²².
        const MAGIC: f32 = 12_582_912.0;
        a.map(|x| (x + MAGIC) - MAGIC)
    }
    #[inline(always)]
    unsafe fn exp2_whole(a: [f32; 4]) -> [f32; 4] {
        a.map(|x| f32::from_bits(((x as i32 + 127) << 23) as u32))
    }
    #[inline(always)]
    unsafe fn sum4(v: [[f32; 4]; 4]) -> [f32; 4] {
        v.map(|x| (x[0] + x[1]) + (x[2] + x[3]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (1 + 2⁻¹²)² = 1 + 2⁻¹¹ + 2⁻²⁴, whose last term is half a unit in the last place: a product that is
    /// rounded by itself loses it, to even.
    #[test]
    fn products_are_fused_where_every_processor_of_the_target_can() {
        let (a, c) = (1.0 + 2f32.powi(-12), -(1.0 + 2f32.powi(-11)));
        // SAFETY: no pointers.
        let found = unsafe { Portable::fma([a; 4], [a; 4], [c; 4]) };
        let is_fused = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
        let expected: f32 = if is_fused { 2f32.powi(-24) } else { 0.0 };
        assert_eq!(found.map(f32::to_bits), [expected.to_bits(); 4]);
    }
}
