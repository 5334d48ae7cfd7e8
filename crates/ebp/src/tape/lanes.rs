//! eˣ, ln x and their relatives without calls, so that loops over lanes become vector instructions.
//!
//! Only separate multiplications and additions: the bits are the same on every instruction set. What
//! is not a number stays so.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

/// Numbers that a loop works on side by side.
pub(super) const LANES: usize = 16;
/// One number per lane.
pub(super) type Lanes = [f32; LANES];

/// Below this eˣ is taken as 0.
const LEAST: f32 = -87.0;
/// 1.5 · 2²³: adding it rounds to a whole number, which then stands in the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; k times the first is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// x = k ln 2 + r with |r| ≤ ½ ln 2: (r, 2ᵏ), for x between −87 and 80.
#[inline(always)]
fn reduced(x: f32) -> (f32, f32) {
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    // The exponent's bits of 2ᵏ are k + 127.
    (r, f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23)))
}

/// eˣ for x up to 80: 2ᵏ (1 + r + … + r⁶/6!), to 2·10⁻⁷ of the value.
#[inline(always)]
pub(super) fn exponential(x: f32) -> f32 {
    let (r, power) = reduced(if x < LEAST { LEAST } else { x });
    let mut series = 1.0 / 720.0;
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + coefficient;
    }
    if x < LEAST { 0.0 } else { series * power }
}

/// eˣ for all x, infinite where it is too large for f32: above 80 the square of e^{x/2}.
#[inline(always)]
pub(super) fn exponential_of_any(x: f32) -> f32 {
    let half = exponential(if x > 160.0 { 80.0 } else { 0.5 * x });
    if x > 80.0 { half * half } else { exponential(x) }
}

/// 1 / (1 + e⁻ˣ).
#[inline(always)]
pub(super) fn logistic(x: f32) -> f32 {
    // Below −80 the share is 10⁻³⁵ of one and stays there.
    1.0 / (1.0 + exponential(if x < -80.0 { 80.0 } else { -x }))
}

/// eˣ − 1 for x up to 80: 2ᵏ (r + … + r⁷/7!) + (2ᵏ − 1), to 3·10⁻⁷ of the value, also near 0.
#[inline(always)]
pub(super) fn exponential_minus_one(x: f32) -> f32 {
    let (r, power) = reduced(if x < LEAST { LEAST } else { x });
    let mut series = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0] {
        series = series * r + coefficient;
    }
    power * (series * r) + (power - 1.0)
}

/// ln x for positive x: x = m 2ᵉ with m in [√½, √2), ln m = 2 atanh t, t = (m − 1)/(m + 1).
#[inline(always)]
#[expect(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are taken apart")]
pub(super) fn logarithm(x: f32) -> f32 {
    const SQRT_HALF: i32 = 0x3f35_04f3; // bits of √½
    let bits = x.to_bits() as i32;
    let exponent = (bits.wrapping_sub(SQRT_HALF)) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let series = 2.0 + t2 * (2.0 / 3.0 + t2 * (2.0 / 5.0 + t2 * (2.0 / 7.0 + t2 * (2.0 / 9.0))));
    let found = exponent as f32 * std::f32::consts::LN_2 + t * series;
    if x.is_nan() { x } else { found }
}

/// ln(1 + x) for x between −0.65 and 1: 2 atanh(x / (2 + x)), to 3·10⁻⁷ of the value, also near 0.
#[inline(always)]
pub(super) fn logarithm_of_one_plus(x: f32) -> f32 {
    let t = x / (2.0 + x);
    let t2 = t * t;
    let mut series = 2.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * t2 + 2.0 / odd;
    }
    t * series
}

/// tanh x and 1 − tanh² x, neither of which loses digits where it is small. With t = e^{2|x|} − 1
/// they are t/(t + 2) and 4 (t + 1)/(t + 2)².
#[inline(always)]
pub(super) fn hyperbolic_tangent(x: f32) -> (f32, f32) {
    let length = x.abs();
    // From 10 on tanh is 1 in f32.
    let t = exponential_minus_one(2.0 * if length > 10.0 { 10.0 } else { length });
    let inverse = 1.0 / (t + 2.0);
    ((t * inverse).copysign(x), 4.0 * (t + 1.0) * inverse * inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_close(x: f32, found: f32, expected: f64) {
        let error = (f64::from(found) / expected - 1.0).abs();
        assert!(error < 5e-7, "{x}: {found} {expected}");
    }

    #[test]
    fn functions_are_exact_to_single_precision() {
        for step in -8600..800 {
            let x = step as f32 * 0.01;
            assert_close(x, exponential(x), f64::from(x).exp());
            assert_close(x, logistic(x), 1.0 / (1.0 + (-f64::from(x)).exp().min(80_f64.exp())));
            let large = x * 0.08 + 80.0;
            assert!(
                (f64::from(exponential_of_any(large)) / f64::from(large).exp() - 1.0).abs() < 1e-6
            );
            let positive = (x * 0.9).exp();
            let expected = f64::from(positive).ln();
            assert!(
                (f64::from(logarithm(positive)) - expected).abs() < 2.4e-7 * (1.0 + expected.abs()),
                "{positive}: two units in the last place"
            );
            if step == 0 {
                continue;
            }
            assert_close(x, exponential_minus_one(x), f64::from(x).exp_m1());
            let small = x * 0.001 * 0.65 / 86.0 * 1000.0;
            assert_close(small, logarithm_of_one_plus(small), f64::from(small).ln_1p());
            let (tangent, slope) = hyperbolic_tangent(x * 0.1);
            let expected = f64::from(x * 0.1).tanh();
            assert_close(x, tangent, expected);
            let expected = f64::from(x * 0.1).cosh().powi(-2);
            assert!(x.abs() > 99.0 || (f64::from(slope) / expected - 1.0).abs() < 2e-6, "{x}");
        }
    }

    #[test]
    fn limits_are_exact_and_what_is_no_number_stays_so() {
        assert_eq!(exponential(-100.0).to_bits(), 0);
        assert_eq!(exponential(0.0).to_bits(), 1.0_f32.to_bits());
        assert_eq!(exponential_of_any(89.0).to_bits(), f32::INFINITY.to_bits());
        assert_eq!(exponential_of_any(1e30).to_bits(), f32::INFINITY.to_bits());
        assert_eq!(exponential_minus_one(0.0).to_bits(), 0);
        assert_eq!(logarithm(1.0).to_bits(), 0);
        assert_eq!(hyperbolic_tangent(0.0), (0.0, 1.0));
        assert_eq!(hyperbolic_tangent(-50.0).0.to_bits(), (-1.0_f32).to_bits());
        let all = [
            exponential(f32::NAN),
            exponential_of_any(f32::NAN),
            logistic(f32::NAN),
            exponential_minus_one(f32::NAN),
            logarithm(f32::NAN),
            logarithm_of_one_plus(f32::NAN),
            hyperbolic_tangent(f32::NAN).0,
        ];
        assert!(all.iter().all(|found| found.is_nan()), "{all:?}");
    }
}
