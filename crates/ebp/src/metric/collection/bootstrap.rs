//! How much a metric would change with other sets of the same kind.
//!
//! The bootstrap draws as many units as there are, with replacement, and computes the metric again.
//! The interval is that of the middle 95 % of a thousand such values, shifted so that their mean is
//! the estimate: resampling makes some metrics larger (two halves of one collection already
//! diverge), and the shift takes that back.
//!
//! Units are references for the minimum matching distance and the coverage, all sets for the
//! accuracy, clouds on both sides for the divergence. Everything else is held fixed: nearest
//! neighbours are not searched again, because a set that is drawn twice would be its own neighbour.

use crate::rng::Stream;

/// How often the metric is computed again.
pub(in crate::metric) const NUM_RESAMPLES: u32 = 1000;
/// The share of resampled values on each side of the interval.
const TAIL: f64 = 0.025;

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The metric itself.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// `count` indices below `count`, with replacement.
pub(in crate::metric) fn draw(stream: Stream, number: u32, count: usize) -> Vec<usize> {
    let mut uniforms = vec![0.0_f32; count];
    stream.fill_uniform(number, 0, &mut uniforms);
    uniforms.iter().map(|&u| scale(u, count)).collect()
}

/// The index of a uniform number on [0, 1).
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is below count, which was a usize"
)]
pub(super) fn scale(uniform: f32, count: usize) -> usize {
    ((f64::from(uniform) * count as f64) as usize).min(count - 1)
}

/// The mean of `units` with its interval, clipped to what is possible.
pub(super) fn mean_estimate(units: &[f64], stream: Stream, range: (f64, f64)) -> Estimate {
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / units.len() as f64;
    let resampled = (0..NUM_RESAMPLES)
        .map(|number| mean(&mut draw(stream, number, units.len()).into_iter().map(|i| units[i])))
        .collect();
    estimate(mean(&mut units.iter().copied()), resampled, range)
}

/// A value with the interval of its resampled values.
pub(in crate::metric) fn estimate(
    value: f64,
    mut resampled: Vec<f64>,
    range: (f64, f64),
) -> Estimate {
    resampled.sort_by(f64::total_cmp);
    let shift = value - resampled.iter().sum::<f64>() / resampled.len() as f64;
    let cut =
        (0..resampled.len()).take_while(|&k| (k as f64) < TAIL * resampled.len() as f64).count();
    let end = |place: usize| (resampled[place] + shift).clamp(range.0, range.1);
    Estimate { value, low: end(cut).min(value), high: end(resampled.len() - 1 - cut).max(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard error of the mean of n units is s/√n, and 95 % of a normal lie within 1.96 of it.
    #[test]
    fn the_interval_of_a_mean_has_the_width_of_its_standard_error() {
        let stream = Stream::new(3, "units");
        let mut units = vec![0.0_f32; 400];
        stream.fill_normal(0, 0, &mut units);
        let units: Vec<f64> = units.into_iter().map(f64::from).collect();
        let found = mean_estimate(&units, Stream::new(4, "resamples"), (-10.0, 10.0));
        let variance = units.iter().map(|u| (u - found.value).powi(2)).sum::<f64>() / 400.0;
        let half = 1.96 * (variance / 400.0).sqrt();
        // A percentile of 1000 resamples is itself off by about a tenth.
        assert!(((found.high - found.low) / (2.0 * half) - 1.0).abs() < 0.15, "{found:?}, {half}");
        assert!(found.low < found.value && found.value < found.high);
    }
}
