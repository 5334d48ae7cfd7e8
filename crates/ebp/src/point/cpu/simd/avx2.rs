//! AVX2 and FMA: 8 lanes, 16 registers.

use std::arch::x86_64::{
    __m256, _CMP_GT_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm_add_ps, _mm_storeu_ps,
    _mm256_add_epi32, _mm256_add_ps, _mm256_blendv_ps, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_cmp_ps, _mm256_cvtps_epi32, _mm256_div_ps, _mm256_extractf128_ps, _mm256_fmadd_ps,
    _mm256_hadd_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps, _mm256_round_ps,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_slli_epi32, _mm256_storeu_ps, _mm256_sub_ps,
};

use super::Simd;

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx2;

// SAFETY (whole impl): the trait's contract, the CPU has AVX2 and FMA and pointers are valid.
impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    const PANEL: usize = 2;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256) {
        unsafe { _mm256_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn min(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn select_gt(a: __m256, b: __m256, x: __m256, y: __m256) -> __m256 {
        unsafe { _mm256_blendv_ps(y, x, _mm256_cmp_ps::<_CMP_GT_OQ>(a, b)) }
    }
    #[inline(always)]
    unsafe fn reciprocal(a: __m256) -> __m256 {
        unsafe { _mm256_div_ps(_mm256_set1_ps(1.0), a) }
    }
    #[inline(always)]
    unsafe fn round(a: __m256) -> __m256 {
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    unsafe fn exp2_whole(a: __m256) -> __m256 {
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }
    #[inline(always)]
    unsafe fn sum4([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        unsafe {
            let sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let total = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
            let mut out = [0.0; 4];
            _mm_storeu_ps(out.as_mut_ptr(), total);
            out
        }
    }
}
