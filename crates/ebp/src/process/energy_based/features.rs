//! Sets as the rows that networks read: numbers and their Fourier pairs.
//!
//! ```text
//! features(t) = [t, sin ω₀t, cos ω₀t, sin ω₁t, …],   ωⱼ = 2ʲ π/4
//! ```

use crate::{IndexedSet, Result, SetOffsets};

/// Appends the features of each number of `numbers`.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
pub(in crate::process) fn push_features(
    numbers: &[f64],
    num_frequencies: usize,
    into: &mut Vec<f32>,
) {
    into.extend(numbers.iter().map(|&number| number as f32));
    let mut frequency = std::f64::consts::FRAC_PI_4;
    for _ in 0..num_frequencies {
        for number in numbers {
            let (sine, cosine) = (frequency * number).sin_cos();
            into.extend([sine as f32, cosine as f32]);
        }
        frequency *= 2.0;
    }
}

/// Rows `[value features, location features]` of several sets, one after the other.
pub(super) struct Rows {
    pub(super) elements: Vec<f32>,
    pub(super) offsets: SetOffsets,
}

impl Rows {
    pub(super) fn new<'a>(
        sets: impl IntoIterator<Item = &'a IndexedSet>,
        value_frequencies: usize,
        location_frequencies: usize,
    ) -> Result<Self> {
        let mut elements = Vec::new();
        let mut sizes = Vec::new();
        for set in sets {
            sizes.push(set.len());
            for i in 0..set.len() {
                push_features(set.value(i), value_frequencies, &mut elements);
                push_features(set.location(i), location_frequencies, &mut elements);
            }
        }
        Ok(Self { elements, offsets: SetOffsets::from_sizes(sizes)? })
    }
}
