//! Numbers as networks read them: themselves and their Fourier pairs.
//!
//! ```text
//! features(t) = [t, sin ω₀t, cos ω₀t, sin ω₁t, …],   ωⱼ = 2ʲ π/4
//! ```

use crate::Result;
use crate::data::Grid;

/// Adds the numbers, and `num_frequencies` sines and cosines of each.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
pub(crate) fn push_features(numbers: &[f32], num_frequencies: usize, into: &mut Vec<f32>) {
    into.extend_from_slice(numbers);
    let mut frequency = std::f64::consts::FRAC_PI_4;
    for _ in 0..num_frequencies {
        for &number in numbers {
            let (sine, cosine) = (frequency * f64::from(number)).sin_cos();
            into.extend([sine as f32, cosine as f32]);
        }
        frequency *= 2.0;
    }
}

/// The places of the grid at which locations `[n, 2]` stand.
///
/// # Errors
///
/// [`Error::InvalidValue`](crate::Error::InvalidValue) if one is no place of the grid.
pub(crate) fn known_places(grid: Grid, locations: &[f32]) -> Result<Vec<usize>> {
    let place = |t: &[f32]| grid.place(&[f64::from(t[0]), f64::from(t[1])]);
    locations.chunks_exact(2).map(place).collect()
}
