//! eˣ for x ≤ 0, written so that the compiler can vectorise it.
//!
//! ```text
//! x = k ln 2 + r,  |r| ≤ ½ ln 2,    eˣ = 2ᵏ (1 + r + r²/2! + … + r¹⁰/10!)
//! ```
//!
//! The remainder of the series, r¹¹/11!, is below 3·10⁻¹³ of the value. Results below 2·10⁻³⁰⁸ become 0.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

/// Below this eˣ is no normal number any more.
const LEAST: f64 = -708.0;
/// 1.5 · 2⁵²: adding it rounds to a whole number, which then stands in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts; the first has zeros at the end, so that k times it is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// 1/10!, 1/9!, …, 1/0!.
const COEFFICIENTS: [f64; 11] = [
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// eˣ of every lane, for x ≤ 0.
#[inline(always)]
pub(super) fn exponential<const N: usize>(x: &[f64; N]) -> [f64; N] {
    let mut out = [0.0; N];
    for lane in 0..N {
        let clamped = if x[lane] > LEAST { x[lane] } else { LEAST };
        let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
        let k = shifted - ROUND;
        let r = (clamped - k * LN_2_HIGH) - k * LN_2_LOW;
        let mut series = COEFFICIENTS[0];
        for coefficient in &COEFFICIENTS[1..] {
            series = series * r + coefficient;
        }
        // 2ᵏ: the exponent's bits are k + 1023.
        let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
        out[lane] = if x[lane] > LEAST { series * power } else { 0.0 };
    }
    out
}

/// 1.5 · 2²³.
const ROUND_F32: f32 = 12_582_912.0;
const LEAST_F32: f32 = -87.0;
const LN_2_HIGH_F32: f32 = 0.693_359_4;
const LN_2_LOW_F32: f32 = -2.121_944_4e-4;

/// The same in f32, by the series up to r⁶/6!, whose remainder is 1.2·10⁻⁷ of the value.
#[inline(always)]
pub(super) fn exponential_f32<const N: usize>(x: &[f32; N]) -> [f32; N] {
    let mut out = [0.0; N];
    for lane in 0..N {
        let clamped = if x[lane] > LEAST_F32 { x[lane] } else { LEAST_F32 };
        let shifted = clamped * std::f32::consts::LOG2_E + ROUND_F32;
        let k = shifted - ROUND_F32;
        let r = (clamped - k * LN_2_HIGH_F32) - k * LN_2_LOW_F32;
        let r2 = r * r;
        // Even and odd powers apart: two short chains of operations in the place of a long one.
        let even = 1.0 + r2 * (0.5 + r2 * (1.0 / 24.0 + r2 * (1.0 / 720.0)));
        let odd = 1.0 + r2 * (1.0 / 6.0 + r2 * (1.0 / 120.0));
        let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
        out[lane] = if x[lane] > LEAST_F32 { (even + r * odd) * power } else { 0.0 };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library() {
        for i in 0..=70_000 {
            let x = -0.01 * f64::from(i) - 1e-4 * f64::from(i % 7);
            let [value, zero] = exponential(&[x, -800.0]);
            assert!((value / x.exp() - 1.0).abs() < 4e-13, "{x}: {value}");
            assert_eq!(zero.to_bits(), 0);
        }
        assert_eq!(exponential(&[0.0]).map(f64::to_bits), [1.0_f64.to_bits()]);
    }

    #[test]
    fn agrees_with_the_standard_library_in_f32() {
        for i in 0_i16..=8_600 {
            let x = -0.01 * f32::from(i);
            let [value, zero] = exponential_f32(&[x, -100.0]);
            let expected = f64::from(x).exp();
            assert!((f64::from(value) / expected - 1.0).abs() < 4e-7, "{x}: {value}");
            assert_eq!(zero.to_bits(), 0);
        }
    }
}
