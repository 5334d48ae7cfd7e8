//! AVX-512 F: 16 lanes, 32 registers.

use std::arch::x86_64::{
    __m512, _CMP_GT_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm_add_ps, _mm_storeu_ps,
    _mm512_add_epi32, _mm512_add_ps, _mm512_castps512_ps128, _mm512_castsi512_ps,
    _mm512_cmp_ps_mask, _mm512_cvtps_epi32, _mm512_extractf32x4_ps, _mm512_fmadd_ps,
    _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_mask_blend_ps, _mm512_max_ps, _mm512_min_ps,
    _mm512_mul_ps, _mm512_rcp14_ps, _mm512_roundscale_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_shuffle_ps, _mm512_slli_epi32, _mm512_storeu_ps, _mm512_sub_ps, _mm512_unpackhi_ps,
    _mm512_unpacklo_ps,
};

use super::Simd;

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx512;

// SAFETY (whole impl): the trait's contract, the CPU has AVX-512 F and pointers are valid.
impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    const PANEL: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        unsafe { _mm512_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn select_gt(a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), y, x) }
    }
    #[inline(always)]
    unsafe fn reciprocal(a: __m512) -> __m512 {
        // r ← r + r (1 − a r): 14 bits become 28.
        unsafe {
            let r = _mm512_rcp14_ps(a);
            _mm512_fmadd_ps(r, _mm512_fnmadd_ps(a, r, _mm512_set1_ps(1.0)), r)
        }
    }
    #[inline(always)]
    unsafe fn round(a: __m512) -> __m512 {
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    unsafe fn exp2_whole(a: __m512) -> __m512 {
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }
    #[inline(always)]
    unsafe fn sum4([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // Two rounds of pairwise adds leave [a, b, c, d] in every quarter; then add the quarters.
        unsafe {
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            let abcd = _mm512_add_ps(
                _mm512_shuffle_ps::<0b01_00_01_00>(ab, cd),
                _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd),
            );
            let low = _mm_add_ps(_mm512_castps512_ps128(abcd), _mm512_extractf32x4_ps::<1>(abcd));
            let high =
                _mm_add_ps(_mm512_extractf32x4_ps::<2>(abcd), _mm512_extractf32x4_ps::<3>(abcd));
            let mut out = [0.0; 4];
            _mm_storeu_ps(out.as_mut_ptr(), _mm_add_ps(low, high));
            out
        }
    }
}
