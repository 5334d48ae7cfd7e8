//! Ratios of Γ, and ψ = (ln Γ)′, by Stirling's series.
//!
//! ```text
//! ln Γ(x) = (x − ½) ln x − x + ½ ln 2π + S(x),   S(x) = Σ_k B_{2k}/(2k (2k−1) x^{2k−1})
//! ψ(x)    = ln x − 1/(2x) − Σ_k B_{2k}/(2k x^{2k})
//! ```
//!
//! From 12 on eight terms of the series are exact to the last bit: the first one left out is
//! 43867/(244188 x¹⁷) < 10⁻¹⁸. ψ carries small x there by ψ(x + 1) = ψ(x) + 1/x; ln Γ below it is
//! libm's, and above it differences would lose their digits.

/// Where the series is used without a shift.
const LARGE: f64 = 12.0;

/// B_{2k}/(2k (2k − 1)) for k = 1, …, 8.
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
    -3617.0 / 122_400.0,
];

/// S(x) for large x.
fn series(x: f64) -> f64 {
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    inverse * STIRLING.iter().rev().fold(0.0, |sum, c| sum * square + c)
}

/// ln Γ(a) − ln Γ(b) for a ≥ b > 0, without losing digits where both are large and close.
pub(crate) fn ln_gamma_ratio(a: f64, b: f64) -> f64 {
    if b < LARGE {
        return libm::lgamma(a) - libm::lgamma(b);
    }
    // (a − ½) ln a − (b − ½) ln b = (a − b) ln a + (b − ½) ln(1 + (a − b)/b)
    let rest = a - b;
    rest * a.ln() + (b - 0.5) * (rest / b).ln_1p() - rest + series(a) - series(b)
}

/// ln Γ(x) for x > 0.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// ψ(x) = d ln Γ(x)/dx for x > 0.
pub(crate) fn digamma(x: f64) -> f64 {
    let (mut y, mut shift) = (x, 0.0);
    while y < LARGE {
        shift += 1.0 / y;
        y += 1.0;
    }
    // B_{2k}/(2k) = (2k − 1) times the coefficients above
    let square = 1.0 / (y * y);
    let sum = STIRLING
        .iter()
        .enumerate()
        .rev()
        .fold(0.0, |sum, (k, c)| (sum + c * (2 * k + 1) as f64) * square);
    y.ln() - 0.5 / y - sum - shift
}

/// ψ′(x) for x > 0.
pub(crate) fn trigamma(x: f64) -> f64 {
    let (mut y, mut shift) = (x, 0.0);
    while y < LARGE {
        shift += 1.0 / (y * y);
        y += 1.0;
    }
    // B_{2k} = 2k (2k − 1) times the coefficients above: ψ′(y) = 1/y + 1/(2y²) + Σ_k B_{2k}/y^{2k+1}
    let square = 1.0 / (y * y);
    let sum = STIRLING
        .iter()
        .enumerate()
        .rev()
        .fold(0.0, |sum, (k, c)| (sum + c * ((2 * k + 2) * (2 * k + 1)) as f64) * square);
    (1.0 + sum + 0.5 / y) / y + shift
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tools/reference/special.py`: SciPy 1.17.1, `gammaln` and `digamma`.
    const GOLDEN: [(f64, f64, f64); 10] = [
        (0.01, 4.599_479_878_042_022, -100.560_885_457_868_68),
        (0.3, 1.095_797_994_818_075_6, -3.502_524_222_200_133),
        (1.5, -0.120_782_237_635_245_26, 0.036_489_973_978_576_52),
        (2.25, 0.124_871_714_892_396_6, 0.572_546_466_623_734_7),
        (3.5, 1.200_973_602_347_074_3, 1.103_156_640_645_243),
        (7.7, 7.926_541_356_269_006, 1.974_882_094_913_101_8),
        (11.99, 17.477_885_575_426_185, 2.441_792_283_668_334_6),
        (12.5, 18.734_347_511_936_45, 2.485_195_651_274_912_3),
        (123.456, 469.605_547_129_929_5, 4.811_829_323_828_985),
        (54_321.0, 537_918.196_708_422, 10.902_656_966_917_15),
    ];

    #[test]
    fn both_equal_scipy() {
        for (x, expected_ln_gamma, expected_digamma) in GOLDEN {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
            // Γ(1) = 1, and beyond 12 the ratio to Γ(12) = 11!.
            let (from, log) = if x < 12.0 { (1.0, 0.0) } else { (12.0, 39_916_800_f64.ln()) };
            let ln_gamma = ln_gamma_ratio(x, from) + log;
            assert!(close(ln_gamma, expected_ln_gamma), "ln Γ({x}) = {ln_gamma}");
            assert!(close(digamma(x), expected_digamma), "ψ({x}) = {}", digamma(x));
        }
    }

    /// ψ(1) = −γ, ψ(½) = −γ − 2 ln 2.
    #[test]
    fn closed_forms() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-14);
        assert!((digamma(0.5) + euler + 4_f64.ln()).abs() < 1e-14);
    }

    /// ψ′(1) = π²/6, ψ′(½) = π²/2, ψ′(¼) = π² + 8 G with Catalan's number; ψ′(x) − ψ′(x + 1) = 1/x².
    #[test]
    fn trigamma_has_its_closed_forms() {
        let square = std::f64::consts::PI.powi(2);
        for (x, expected) in [
            (1.0, square / 6.0),
            (0.5, square / 2.0),
            (0.25, square + 8.0 * 0.915_965_594_177_219_1),
            (2.0, square / 6.0 - 1.0),
            (20.0, square / 6.0 - (1..20).map(|n| 1.0 / f64::from(n * n)).sum::<f64>()),
        ] {
            assert!((trigamma(x) - expected).abs() < 1e-14 * expected.max(10.0), "{x}");
        }
    }

    /// Γ(b + 3)/Γ(b) = b (b + 1) (b + 2).
    #[test]
    fn ratios_keep_their_digits() {
        for b in [0.3_f64, 2.0, 11.9, 12.1, 100.0, 1e5, 1e9] {
            let expected = (b * (b + 1.0) * (b + 2.0)).ln();
            let found = ln_gamma_ratio(b + 3.0, b);
            assert!((found - expected).abs() < 1e-13 * expected.abs().max(10.0), "{b}: {found}");
        }
    }
}
