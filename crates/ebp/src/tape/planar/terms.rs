//! What a planar layer's s = w·u gives:
//!
//! ```text
//! m(s) = softplus(s + ln(e − 1)) − 1,   r(s) = m(s)/s,   and their derivatives
//! ```
//!
//! Near 0 r and r′ are taken from their series; elsewhere each form is the one that loses no digits.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use super::super::lanes::{
    LANES, Lanes, exponential, exponential_minus_one, logarithm_of_one_plus,
};

/// m(s) and its relatives, for every layer of a row.
pub(super) struct Terms {
    /// 1 + m, m, r = m/s, m′ and r′.
    all: Vec<[Lanes; 5]>,
}

impl Terms {
    #[inline(always)]
    pub(super) fn new(num_layers: usize) -> Self {
        Self { all: vec![[[0.0; LANES]; 5]; num_layers.div_ceil(LANES)] }
    }

    /// Those of a row's layers.
    #[inline(always)]
    pub(super) fn fill(&mut self, layers: &[f32], dims: usize) {
        for (terms, layers) in self.all.iter_mut().zip(layers.chunks(LANES * (2 * dims + 1))) {
            let mut s = [0.0; LANES];
            for (s, layer) in s.iter_mut().zip(layers.chunks_exact(2 * dims + 1)) {
                for k in 0..dims {
                    *s += layer[k] * layer[dims + k];
                }
            }
            for lane in 0..LANES {
                let found = slope_terms(s[lane]);
                for kind in 0..5 {
                    terms[kind][lane] = found[kind];
                }
            }
        }
    }

    /// 1 + m, m, r, m′ and r′ of a layer.
    #[inline(always)]
    pub(super) fn of(&self, layer: usize) -> [f32; 5] {
        let terms = &self.all[layer / LANES];
        [0, 1, 2, 3, 4].map(|kind| terms[kind][layer % LANES])
    }
}

/// 1 + m, m, r = m/s, m′ and r′ at s; m(s) = softplus(z) − 1 with z = s + ln(e − 1).
#[inline(always)]
fn slope_terms(s: f32) -> [f32; 5] {
    const SHIFT: f32 = 0.541_324_85; // ln(e − 1), where softplus is 1
    const START: f32 = 0.632_120_56; // m′(0) = 1 − 1/e
    // The series of r about 0; its radius of convergence is |ln(e − 1) + iπ| = 3.2.
    const SERIES: [f32; 9] = [
        START,
        0.116_272_08,
        -1.024_128_8e-2,
        -3.829_856_4e-3,
        9.168_666e-4,
        1.656_520_3e-4,
        -7.943_086e-5,
        -4.791_475e-6,
        6.531_357_5e-6,
    ];
    const NEAR: f32 = 0.4;
    let z = s + SHIFT;
    let small = exponential(-z.abs());
    let softplus = if z < 0.0 { 0.0 } else { z } + logarithm_of_one_plus(small);
    let share = 1.0 / (1.0 + small);
    let m_slope = if z < 0.0 { small * share } else { share };
    // m = ln(1 + p (eˢ − 1)) = s + ln(1 + (1 − p)(e⁻ˢ − 1)), p = m′(0): the form without large terms
    let part = if s > 0.0 { 1.0 - START } else { START };
    let m = if s < 0.0 { 0.0 } else { s }
        + logarithm_of_one_plus(part * exponential_minus_one(-s.abs()));
    let is_near = s.abs() < NEAR;
    let divisor = if is_near { 1.0 } else { s };
    let r = m / divisor;
    let r_slope = (m_slope - r) / divisor;
    let (mut series, mut slope) = (0.0, 0.0);
    for coefficient in SERIES.into_iter().rev() {
        slope = slope * s + series;
        series = series * s + coefficient;
    }
    if is_near {
        [softplus, s * series, series, m_slope, slope]
    } else {
        [softplus, m, r, m_slope, r_slope]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// m and r with their derivatives against f64, across the series' end and far out.
    #[test]
    fn slope_terms_agree_with_double_precision() {
        for step in -4000..4000 {
            let s = step as f32 * 0.01 + 0.003;
            let wide = f64::from(s);
            let m = ((1.0 - (-1.0_f64).exp()) * wide.exp_m1()).ln_1p();
            let z = wide + (1.0_f64.exp() - 1.0).ln();
            let softplus = z.max(0.0) + (-z.abs()).exp().ln_1p();
            let m_slope = 1.0 / (1.0 + (-z).exp());
            let expected = [softplus, m, m / wide, m_slope, (m_slope - m / wide) / wide];
            for (kind, (found, expected)) in slope_terms(s).into_iter().zip(expected).enumerate() {
                let error = (f64::from(found) - expected).abs();
                let bound = if kind == 4 { 1e-6 } else { 1e-6 * expected.abs() };
                assert!(error <= bound, "{kind} at {s}: {found} {expected}");
            }
        }
    }
}
