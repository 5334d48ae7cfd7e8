//! Random numbers by counter: the value at an index is a pure function of (seed, name, step,
//! index), so neither threads nor SIMD widths nor the order of work can change it.
//!
//! The generator is Philox4x32-10 (Salmon et al., 2011). A 128-bit counter and a 64-bit key give
//! four 32-bit words. Flat index j maps to counters in groups of 64, so that sixteen lanes fill
//! whole vectors:
//!
//! ```text
//! group g = j / 64,  word m = (j mod 64) / 16,  lane l = j mod 16,  counter = (16 g + l, step)
//! ```
//!
//! Normals come from Box and Muller's transform of the word pairs (0, 1) and (2, 3), evaluated
//! with separate multiplications and additions only (never fused), which IEEE 754 defines to the
//! last bit. The largest normal is √(48 ln 2) = 5.77, as u has 24 bits.
#![allow(
    clippy::inline_always,
    reason = "a SIMD kernel compiles the transform for its own instruction set"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the bits of words and floats are taken apart on purpose"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

const GROUP: usize = 64;
const LANES: usize = 16;

/// An independent stream of random numbers, made from a seed and a name.
///
/// ```
/// use ebp::rng::Stream;
///
/// let stream = Stream::new(7, "langevin");
/// let mut noise = [0.0; 5];
/// stream.fill_normal(3, 10, &mut noise);
/// assert_eq!(noise[2], stream.normal(3, 12));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

impl Stream {
    /// The stream called `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Self::from_key(name.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte))))
    }

    /// A stream derived from this one, such as one per training step.
    #[must_use]
    pub fn child(&self, number: u64) -> Self {
        let state = u64::from(self.key[0]) | u64::from(self.key[1]) << 32;
        Self::from_key(mix(state.wrapping_add(mix(number))))
    }

    /// The two words of the key, for a device that repeats the arithmetic.
    pub(crate) fn key(self) -> [u32; 2] {
        self.key
    }

    fn from_key(key: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = key.to_le_bytes();
        Self { key: [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])] }
    }

    /// The standard normal at (`step`, `index`).
    pub fn normal(&self, step: u32, index: u64) -> f32 {
        let mut value = [0.0];
        self.fill_normal(step, index, &mut value);
        value[0]
    }

    /// Standard normals at indices `start`, `start + 1`, … of `step`.
    pub fn fill_normal(&self, step: u32, start: u64, out: &mut [f32]) {
        self.fill::<true>(step, start, out);
    }

    /// Uniforms on [0, 1) with 24 bits at indices `start`, `start + 1`, … of `step`.
    ///
    /// Indices are shared with the normals: use another stream for independent numbers.
    pub fn fill_uniform(&self, step: u32, start: u64, out: &mut [f32]) {
        self.fill::<false>(step, start, out);
    }

    /// 0, 1, …, `count` − 1 in random order, by sorting uniforms; 24 bits may tie, then by number.
    ///
    /// ```
    /// let mut order = ebp::rng::Stream::new(1, "order").permutation(10);
    /// order.sort_unstable();
    /// assert_eq!(order, (0..10).collect::<Vec<_>>());
    /// ```
    pub fn permutation(&self, count: usize) -> Vec<usize> {
        const NUMBER_BITS: u32 = 40;
        let mut keys = vec![0.0; count];
        self.fill_uniform(0, 0, &mut keys);
        // The 24 bits of a uniform above its number: one integer to sort by.
        let mut order: Vec<u64> = (0_u64..)
            .zip(keys)
            .map(|(number, key)| ((key * 2.0_f32.powi(24)) as u64) << NUMBER_BITS | number)
            .collect();
        order.sort_unstable();
        order.into_iter().map(|key| (key & ((1 << NUMBER_BITS) - 1)) as usize).collect()
    }

    /// A closure for the transform would be a function of its own, which a SIMD kernel does not
    /// compile for its instruction set.
    #[inline(always)]
    fn fill<const IS_NORMAL: bool>(self, step: u32, start: u64, out: &mut [f32]) {
        let mut skip = (start % GROUP as u64) as usize;
        let mut group = start / GROUP as u64;
        let mut rest = out;
        while !rest.is_empty() {
            let words = philox_group(self.key, step, group);
            let mut values = [0.0; GROUP];
            if IS_NORMAL {
                normals(&words, &mut values);
            } else {
                uniforms(&words, &mut values);
            }
            let count = rest.len().min(GROUP - skip);
            let (head, tail) = rest.split_at_mut(count);
            match <&mut [f32; GROUP]>::try_from(&mut *head) {
                // A whole group, with no call to copy it.
                Ok(head) => *head = values,
                Err(_) => head.copy_from_slice(&values[skip..skip + count]),
            }
            (rest, skip, group) = (tail, 0, group + 1);
        }
    }

    /// As [`fill_normal`](Self::fill_normal), inlined so that a SIMD kernel compiles it for its
    /// own instruction set. The bits are the same on every one.
    #[inline(always)]
    pub(crate) fn fill_normal_inline(self, step: u32, start: u64, out: &mut [f32]) {
        self.fill::<true>(step, start, out);
    }

    /// As [`fill_uniform`](Self::fill_uniform), inlined for the same reason.
    #[inline(always)]
    pub(crate) fn fill_uniform_inline(self, step: u32, start: u64, out: &mut [f32]) {
        self.fill::<false>(step, start, out);
    }
}

/// The finaliser of SplitMix64: a bijection that scatters every bit.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sixteen Philox blocks side by side: word m of lane l at `[m][l]`.
#[inline(always)]
fn philox_group(key: [u32; 2], step: u32, group: u64) -> [[u32; LANES]; 4] {
    let mut words = [[0_u32; LANES]; 4];
    for lane in 0..LANES {
        let block = group * LANES as u64 + lane as u64;
        words[0][lane] = (block & 0xffff_ffff) as u32;
        words[1][lane] = (block >> 32) as u32;
        words[2][lane] = step;
    }
    philox(key, &mut words);
    words
}

/// Ten rounds of Philox4x32, lane by lane.
#[inline(always)]
fn philox(mut key: [u32; 2], words: &mut [[u32; LANES]; 4]) {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        for lane in 0..LANES {
            let p0 = u64::from(words[0][lane]) * 0xd251_1f53;
            let p1 = u64::from(words[2][lane]) * 0xcd9e_8d57;
            words[0][lane] = (p1 >> 32) as u32 ^ words[1][lane] ^ key[0];
            words[1][lane] = (p1 & 0xffff_ffff) as u32;
            words[2][lane] = (p0 >> 32) as u32 ^ words[3][lane] ^ key[1];
            words[3][lane] = (p0 & 0xffff_ffff) as u32;
        }
    }
}

#[inline(always)]
fn uniforms(words: &[[u32; LANES]; 4], out: &mut [f32; GROUP]) {
    for m in 0..4 {
        for lane in 0..LANES {
            out[m * LANES + lane] = (words[m][lane] >> 8) as f32 * 2.0_f32.powi(-24);
        }
    }
}

/// Box and Muller: (√(−2 ln u) cos 2πv, √(−2 ln u) sin 2πv).
#[inline(always)]
fn normals(words: &[[u32; LANES]; 4], out: &mut [f32; GROUP]) {
    for pair in 0..2 {
        for lane in 0..LANES {
            let radius = (-2.0 * ln_unit(words[2 * pair][lane])).sqrt();
            let (sine, cosine) = sin_cos_turn(words[2 * pair + 1][lane]);
            out[2 * pair * LANES + lane] = radius * cosine;
            out[(2 * pair + 1) * LANES + lane] = radius * sine;
        }
    }
}

/// ln u for u = (word / 2⁸ + 1) / 2²⁴ in (0, 1].
#[inline(always)]
fn ln_unit(word: u32) -> f32 {
    const SQRT_HALF: i32 = 0x3f35_04f3; // bits of √½
    let u = ((word >> 8) + 1) as f32 * 2.0_f32.powi(-24);
    // u = m 2ᵉ with m in [√½, √2)
    let bits = u.to_bits() as i32;
    let exponent = (bits - SQRT_HALF) >> 23;
    let m = f32::from_bits((bits - (exponent << 23)) as u32);
    // ln m = 2 atanh t = 2 (t + t³/3 + t⁵/5 + …), t = (m − 1)/(m + 1), |t| ≤ 0.172
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let series = 2.0 + t2 * (2.0 / 3.0 + t2 * (2.0 / 5.0 + t2 * (2.0 / 7.0 + t2 * (2.0 / 9.0))));
    exponent as f32 * std::f32::consts::LN_2 + t * series
}

/// (sin 2πv, cos 2πv) for v = (word / 2⁸) / 2²⁴.
#[inline(always)]
fn sin_cos_turn(word: u32) -> (f32, f32) {
    // The nearest quarter turn q, and the angle left over, |a| ≤ π/4.
    let v = (word >> 8) as i32;
    let quarter = (v + (1 << 21)) >> 22;
    let a = (v - (quarter << 22)) as f32 * (std::f32::consts::TAU / 16_777_216.0);
    let a2 = a * a;
    let sine = a * (1.0 + a2 * (-1.0 / 6.0 + a2 * (1.0 / 120.0 + a2 * (-1.0 / 5040.0))));
    let cosine =
        1.0 + a2 * (-0.5 + a2 * (1.0 / 24.0 + a2 * (-1.0 / 720.0 + a2 * (1.0 / 40_320.0))));
    let (s, c) = if quarter & 1 == 0 { (sine, cosine) } else { (cosine, sine) };
    // sin is negative in quarters 2 and 3, cos in quarters 1 and 2.
    let negate =
        |x: f32, is_negative: i32| f32::from_bits(x.to_bits() ^ (is_negative << 31) as u32);
    (negate(s, quarter >> 1 & 1), negate(c, (quarter + 1) >> 1 & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution, file `kat_vectors`, `philox4x32 10`.
    #[test]
    fn philox_gives_the_published_known_answers() {
        let cases = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            let mut words = counter.map(|word| [word; LANES]);
            philox(key, &mut words);
            assert_eq!(words.map(|word| word[5]), expected);
        }
    }

    #[test]
    fn any_start_and_length_read_the_same_stream() {
        let stream = Stream::new(1, "noise");
        let mut whole = [0.0; 300];
        stream.fill_normal(2, 0, &mut whole);
        for (start, length) in [(0, 1), (63, 2), (17, 200), (64, 64), (255, 45)] {
            let mut part = vec![0.0; length];
            stream.fill_normal(2, start as u64, &mut part);
            assert_eq!(part, whole[start..start + length]);
        }
    }

    #[test]
    fn streams_steps_and_children_differ() {
        let stream = Stream::new(1, "a");
        let values = [
            stream.normal(0, 0),
            stream.normal(1, 0),
            stream.normal(0, 1),
            Stream::new(1, "b").normal(0, 0),
            Stream::new(2, "a").normal(0, 0),
            stream.child(0).normal(0, 0),
            stream.child(1).normal(0, 0),
        ];
        for (i, a) in values.iter().enumerate() {
            assert!(values[..i].iter().all(|b| a.to_bits() != b.to_bits()), "{values:?}");
        }
    }

    #[test]
    fn a_permutation_sorts_by_uniform_and_then_by_number() {
        let (stream, count) = (Stream::new(8, "order"), 20_000);
        let mut keys = vec![0.0_f32; count];
        stream.fill_uniform(0, 0, &mut keys);
        let mut expected: Vec<usize> = (0..count).collect();
        expected.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
        // n²/2 pairs of 24 bits: twelve ties to be expected.
        assert!(expected.windows(2).any(|pair| keys[pair[0]].to_bits() == keys[pair[1]].to_bits()));
        assert_eq!(stream.permutation(count), expected);
    }

    /// Moments of 2²⁰ draws; the standard errors of mean, variance and fourth moment of n normals
    /// are 1/√n, √(2/n) and √(96/n).
    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let n = 1 << 20;
        let mut draws = vec![0.0; n];
        Stream::new(3, "moments").fill_normal(0, 0, &mut draws);
        let moment = |k: i32| draws.iter().map(|&x| f64::from(x).powi(k)).sum::<f64>() / n as f64;
        let root_n = (n as f64).sqrt();
        assert!(moment(1).abs() < 4.0 / root_n, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < 4.0 * 2_f64.sqrt() / root_n, "variance {}", moment(2));
        assert!((moment(4) - 3.0).abs() < 4.0 * 96_f64.sqrt() / root_n, "fourth {}", moment(4));
    }

    /// The hand-written logarithm and sines against the standard library in f64.
    #[test]
    fn the_transform_is_accurate() {
        for k in 0..4096_u32 {
            let word = k.wrapping_mul(0x9e37_79b9) ^ k;
            let u = f64::from((word >> 8) + 1) / 16_777_216.0;
            assert!((f64::from(ln_unit(word)) - u.ln()).abs() < 4e-7 * (1.0 - u.ln()));
            let angle = f64::from(word >> 8) / 16_777_216.0 * std::f64::consts::TAU;
            let (s, c) = sin_cos_turn(word);
            assert!((f64::from(s) - angle.sin()).abs() < 4e-7, "sin of {angle}");
            assert!((f64::from(c) - angle.cos()).abs() < 4e-7, "cos of {angle}");
        }
    }
}
