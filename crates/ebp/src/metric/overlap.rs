//! How much two samples of numbers have in common, such as the energies of real and of generated
//! sets.
//!
//! ```text
//! overlap = Σ_b min(p_b, q_b)
//! ```
//!
//! where p and q are the shares of the two samples in the cells b of one shared histogram: 1 if they
//! are alike, 0 if no cell holds both. It is one minus the total variation distance of the
//! histograms.
//!
//! Finite samples of one law do not reach 1: with n numbers on each side in B filled cells the
//! expectation is about 1 − √(B/(π n)), 0.82 for 100 and 10. [`Overlap::same_law`] is that value for
//! the samples at hand, by dealing their numbers anew.

use crate::rng::Stream;
use crate::{Error, Result};

use super::collection::Estimate;
use super::collection::bootstrap::{NUM_RESAMPLES, draw, estimate};

/// A histogram finer than this shows noise only; wider tails make wider cells.
const MOST_BINS: usize = 1000;

/// Cells of equal width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// The lower end of the first cell.
    pub low: f64,
    /// The width of every cell.
    pub width: f64,
    /// How many cells.
    pub count: usize,
}

impl Bins {
    /// Cells over all samples, with the width that Freedman and Diaconis (1981) advise for a sample
    /// of the smallest size and the mean interquartile range: 2 IQR n^(−1/3).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no sample, one has fewer than two numbers, or a number is
    /// not finite.
    pub fn shared(samples: &[&[f64]]) -> Result<Self> {
        let mut ranges = Vec::with_capacity(samples.len());
        for sample in samples {
            if sample.len() < 2 {
                return Err(Error::invalid("sample", "of two numbers or more", sample.len()));
            }
            if let Some(place) = sample.iter().position(|number| !number.is_finite()) {
                let found = format!("{} at index {place}", sample[place]);
                return Err(Error::invalid("sample", "of finite numbers", found));
            }
            let mut sorted = sample.to_vec();
            sorted.sort_by(f64::total_cmp);
            ranges.push(quantile(&sorted, 0.75) - quantile(&sorted, 0.25));
        }
        let Some(smallest) = samples.iter().map(|sample| sample.len()).min() else {
            return Err(Error::invalid("samples", "at least one", 0));
        };
        let all = || samples.iter().flat_map(|sample| sample.iter().copied());
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(f64::NEG_INFINITY, f64::max);
        let spread = ranges.iter().sum::<f64>() / ranges.len() as f64;
        let advised = 2.0 * spread / (smallest as f64).cbrt();
        if high <= low {
            return Ok(Self { low: low - 0.5, width: 1.0, count: 1 });
        }
        let narrowest = (high - low) / MOST_BINS as f64;
        let cells = ((high - low) / advised.max(narrowest)).ceil();
        // Between 1 and MOST_BINS, as the width is at least the narrowest.
        let count = (1..=MOST_BINS).find(|&count| count as f64 >= cells).unwrap_or(MOST_BINS);
        Ok(Self { low, width: (high - low) / count as f64, count })
    }

    /// The share of a sample in each cell, `[count]`; what lies outside counts in the nearer end.
    pub fn shares(&self, sample: &[f64]) -> Vec<f64> {
        let mut shares = vec![0.0; self.count];
        let part = 1.0 / sample.len().max(1) as f64;
        for &number in sample {
            shares[self.place(number)] += part;
        }
        shares
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the cells, of which there are few"
    )]
    fn place(&self, number: f64) -> usize {
        ((number - self.low) / self.width).clamp(0.0, (self.count - 1) as f64) as usize
    }
}

/// Between the sorted numbers on both sides, linearly.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let position = level * (sorted.len() - 1) as f64;
    let part = position.fract();
    let below = (0..sorted.len()).take_while(|&place| place as f64 <= position).count() - 1;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] * (1.0 - part) + sorted[above] * part
}

/// The overlap coefficient of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlap {
    /// Σ min(p, q) with a 95 % interval by the bootstrap over both samples, the cells held fixed.
    pub coefficient: Estimate,
    /// What two samples of these sizes from one law, that of both together, would have on average.
    pub same_law: f64,
    /// The cells.
    pub bins: Bins,
}

/// Measures the overlap of two samples in cells made for them.
///
/// ```
/// use ebp::metric::overlap::overlap;
/// use ebp::rng::Stream;
///
/// let a: Vec<f64> = (0..100).map(f64::from).collect();
/// let b: Vec<f64> = (0..100).map(|i| f64::from(i) + 1000.0).collect();
/// assert_eq!(overlap(&a, &a, Stream::new(0, "overlap"))?.coefficient.value, 1.0);
/// assert_eq!(overlap(&a, &b, Stream::new(0, "overlap"))?.coefficient.value, 0.0);
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// As [`Bins::shared`].
pub fn overlap(first: &[f64], second: &[f64], stream: Stream) -> Result<Overlap> {
    let bins = Bins::shared(&[first, second])?;
    let places = |sample: &[f64]| sample.iter().map(|&x| bins.place(x)).collect::<Vec<_>>();
    let (p, q) = (places(first), places(second));
    let value = coefficient(bins.count, p.iter().copied(), q.iter().copied());
    let streams = [stream.child(0), stream.child(1), stream.child(2)];
    let resampled = (0..NUM_RESAMPLES)
        .map(|number| {
            let again = |places: &[usize], stream| -> Vec<usize> {
                draw(stream, number, places.len()).into_iter().map(|i| places[i]).collect()
            };
            let (p, q) = (again(&p, streams[0]), again(&q, streams[1]));
            coefficient(bins.count, p.into_iter(), q.into_iter())
        })
        .collect();
    let together: Vec<usize> = p.iter().chain(&q).copied().collect();
    let dealt = |number: u32| {
        let order = streams[2].child(u64::from(number)).permutation(together.len());
        let (left, right) = order.split_at(p.len());
        let pick = |places: &[usize]| places.iter().map(|&i| together[i]).collect::<Vec<_>>();
        coefficient(bins.count, pick(left).into_iter(), pick(right).into_iter())
    };
    let num_deals = NUM_RESAMPLES / 5;
    let same_law = (0..num_deals).map(dealt).sum::<f64>() / f64::from(num_deals);
    Ok(Overlap { coefficient: estimate(value, resampled, (0.0, 1.0)), same_law, bins })
}

/// Σ_b min(p_b, q_b) from the cells of both samples.
fn coefficient(
    num_bins: usize,
    first: impl ExactSizeIterator<Item = usize>,
    second: impl ExactSizeIterator<Item = usize>,
) -> f64 {
    let (n, m) = (first.len() as u64, second.len() as u64);
    // Counts are compared as n_b m and m_b n, whole numbers, so that equal samples give exactly 1.
    let mut counts = vec![[0_u64; 2]; num_bins];
    first.for_each(|place| counts[place][0] += m);
    second.for_each(|place| counts[place][1] += n);
    counts.iter().map(|[p, q]| *p.min(q)).sum::<u64>() as f64 / (n * m) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(name: &str, count: usize, mean: f64) -> Vec<f64> {
        let mut numbers = vec![0.0_f32; count];
        Stream::new(11, name).fill_normal(0, 0, &mut numbers);
        numbers.into_iter().map(|number| f64::from(number) + mean).collect()
    }

    /// Two normals δ apart overlap by 2 Φ(−δ/2): 0.6171 for δ = 1, 0.3173 for δ = 2.
    #[test]
    fn normals_overlap_as_they_should() {
        for (shift, expected) in [(1.0, 0.617_075), (2.0, 0.317_311)] {
            let (a, b) = (normals("a", 20_000, 0.0), normals("b", 20_000, shift));
            let found = overlap(&a, &b, Stream::new(1, "bootstrap")).unwrap().coefficient;
            // The standard error is √(s(1 − s)/n) or less on each side; cells add a bias of the order
            // of width²/4 at the crossing, here below 0.005.
            let error = (2.0 * 0.25 / 20_000.0_f64).sqrt();
            assert!((found.value - expected).abs() < 4.0 * error + 0.005, "{found:?}");
            assert!(found.low < found.value && found.value < found.high);
            assert!(found.high - found.low < 8.0 * error, "{found:?}");
        }
    }

    #[test]
    fn samples_of_one_law_overlap_as_much_as_dealt_ones() {
        let (a, b) = (normals("a", 100, 0.0), normals("b", 100, 0.0));
        let found = overlap(&a, &b, Stream::new(1, "bootstrap")).unwrap();
        // 1 − √(B/(π n)) with about ten cells filled is 0.82; one draw scatters by 0.05.
        assert!((found.same_law - 0.82).abs() < 0.07, "{found:?}");
        assert!((found.coefficient.value - found.same_law).abs() < 0.2, "{found:?}");
        let far = overlap(&a, &normals("b", 100, 50.0), Stream::new(1, "bootstrap")).unwrap();
        assert_eq!((far.coefficient.value, far.coefficient.high), (0.0, 0.0));
    }

    #[test]
    fn odd_samples_are_refused_or_served() {
        let stream = Stream::new(1, "bootstrap");
        assert!(overlap(&[1.0], &[1.0, 2.0], stream).is_err());
        assert!(overlap(&[1.0, f64::NAN], &[1.0, 2.0], stream).is_err());
        let value = |a: &[f64], b: &[f64]| overlap(a, b, stream).unwrap().coefficient.value;
        assert!((value(&[3.0; 5], &[3.0; 9]) - 1.0).abs() < 1e-15);
        assert!(value(&[3.0; 5], &[4.0; 9]).abs() < 1e-15);
        let outlier = [0.0, 0.1, 0.2, 1e12];
        assert!(overlap(&outlier, &outlier, stream).unwrap().bins.count <= MOST_BINS);
    }
}
