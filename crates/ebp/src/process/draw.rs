//! Random numbers in f64 for exact processes, from the counters of a [`Stream`].
//!
//! A stream's uniforms have 24 bits. Two of them make one of 48, in (0, 1], and Box and Muller's
//! transform makes two normals of two of those; the largest is √(96 ln 2) = 8.16. χ² is twice a
//! Gamma variable, drawn by Marsaglia and Tsang's (2000) exact rejection, attempt after attempt
//! along the counter.

use std::f64::consts::TAU;

use crate::rng::Stream;

/// Standard normals number `start`, `start + 1`, … of `stream`; `start` must be even.
pub(super) fn fill_normal(stream: Stream, start: u64, out: &mut [f64]) {
    const PAIRS: usize = 64;
    let mut index = 2 * start;
    for block in out.chunks_mut(2 * PAIRS) {
        let mut words = [0.0; 4 * PAIRS];
        stream.fill_uniform(0, index, &mut words);
        for (pair, words) in block.chunks_mut(2).zip(words.chunks_exact(4)) {
            // √(−2 ln u) (cos 2πv, sin 2πv)
            let radius = (-2.0 * uniform(words[0], words[1]).ln()).sqrt();
            let (sine, cosine) = (TAU * uniform(words[2], words[3])).sin_cos();
            pair.iter_mut().zip([cosine, sine]).for_each(|(x, turn)| *x = radius * turn);
        }
        index += words.len() as u64;
    }
}

/// χ² with `degrees` ≥ 2 degrees of freedom.
pub(super) fn chi_square(stream: Stream, degrees: f64) -> f64 {
    // Gamma(a): d = a − ⅓, c = 1/√(9d), v = (1 + c x)³ for a normal x;
    // d v is accepted if v > 0 and ln u < x²/2 + d − d v + d ln v.
    let d = 0.5 * degrees - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let uniforms = stream.child(1);
    let mut attempt = 0;
    loop {
        let (mut normal, mut words) = ([0.0], [0.0; 2]);
        fill_normal(stream, 2 * attempt, &mut normal);
        uniforms.fill_uniform(0, 2 * attempt, &mut words);
        attempt += 1;
        let v = (1.0 + c * normal[0]).powi(3);
        let limit = 0.5 * normal[0] * normal[0] + d - d * v + d * v.ln();
        if v > 0.0 && uniform(words[0], words[1]).ln() < limit {
            return 2.0 * d * v;
        }
    }
}

/// (2²⁴ high + low + 1)/2⁴⁸ for the integers behind two 24-bit uniforms.
fn uniform(high: f32, low: f32) -> f64 {
    f64::from(high) + f64::from(low) * 2_f64.powi(-24) + 2_f64.powi(-48)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Standard errors of mean, variance and fourth moment of n normals: 1/√n, √(2/n), √(96/n).
    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let n = 1 << 18;
        let mut draws = vec![0.0; n];
        fill_normal(Stream::new(5, "draw"), 0, &mut draws);
        let moment = |k: i32| draws.iter().map(|x: &f64| x.powi(k)).sum::<f64>() / n as f64;
        let root_n = (n as f64).sqrt();
        assert!(moment(1).abs() < 4.0 / root_n);
        assert!((moment(2) - 1.0).abs() < 4.0 * 2_f64.sqrt() / root_n);
        assert!((moment(4) - 3.0).abs() < 4.0 * 96_f64.sqrt() / root_n);
    }

    #[test]
    fn any_even_start_reads_the_same_normals() {
        let stream = Stream::new(6, "draw");
        let mut whole = [0.0; 300];
        fill_normal(stream, 0, &mut whole);
        for (start, length) in [(0, 1), (2, 5), (128, 131), (130, 170)] {
            let mut part = vec![0.0; length];
            fill_normal(stream, start as u64, &mut part);
            assert_eq!(part, whole[start..start + length]);
        }
    }

    /// χ²_k has mean k, variance 2k and E(x − k)⁴ = 12 k (k + 4), hence these standard errors.
    #[test]
    fn chi_square_has_its_mean_and_variance() {
        let n = 20_000;
        for degrees in [2.1, 5.0, 40.0] {
            let stream = Stream::new(7, "chi");
            let draws: Vec<f64> =
                (0..n).map(|i| chi_square(stream.child(i), degrees) - degrees).collect();
            let mean = draws.iter().sum::<f64>() / n as f64;
            let variance = draws.iter().map(|x| x * x).sum::<f64>() / n as f64;
            assert!(mean.abs() < 4.0 * (2.0 * degrees / n as f64).sqrt(), "{degrees}: {mean}");
            let spread = 12.0 * degrees * (degrees + 4.0) - 4.0 * degrees * degrees;
            assert!((variance - 2.0 * degrees).abs() < 4.0 * (spread / n as f64).sqrt());
        }
    }
}
