//! Lower bounds of the earth mover's distance from shadows.
//!
//! No point moves less than its shadow on a line does, and on a line the least motion is known: the
//! sorted shadows move onto each other in order. For every unit vector u
//!
//! ```text
//! ∫₀¹ |F⁻¹(t) − G⁻¹(t)| dt  ≤  EMD(X, Y),    F, G the laws of ⟨u, x⟩ and ⟨u, y⟩
//! ```
//!
//! and the best of a few directions costs a thousandth of the distance itself.

use super::super::distance::ArrangedCloud;
use crate::rng::Stream;

/// Directions besides the axes.
const NUM_DIRECTIONS: usize = 13;

/// The sorted shadows of a cloud, one list per direction.
#[derive(Debug)]
pub(super) struct Shadows(Vec<Vec<f64>>);

/// Unit vectors: the axes, and random ones that are the same everywhere.
pub(super) fn directions(dim: usize) -> Vec<Vec<f64>> {
    let axes = (0..dim).map(|axis| (0..dim).map(|i| f64::from(u8::from(i == axis))).collect());
    let stream = Stream::new(0, "directions of shadows");
    let random = (0_u32..).take(NUM_DIRECTIONS).map(|number| {
        let mut vector = vec![0.0_f32; dim];
        stream.fill_normal(number, 0, &mut vector);
        let norm = vector.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt().max(1e-30);
        vector.iter().map(|&v| f64::from(v) / norm).collect()
    });
    axes.chain(random).collect()
}

impl Shadows {
    pub(super) fn new(cloud: &ArrangedCloud, directions: &[Vec<f64>]) -> Self {
        let shadow = |direction: &Vec<f64>| {
            let mut values: Vec<f64> = cloud
                .points()
                .chunks_exact(cloud.dim())
                .map(|point| point.iter().zip(direction).map(|(x, u)| x * u).sum())
                .collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        Self(directions.iter().map(shadow).collect())
    }

    /// The largest bound of all directions, lowered by more than rounding can have added.
    pub(super) fn bound(&self, other: &Self) -> f64 {
        let best = self.0.iter().zip(&other.0).map(|(a, b)| on_a_line(a, b)).fold(0.0, f64::max);
        best * (1.0 - 1e-12)
    }
}

/// The earth mover's distance of two sorted lists.
fn on_a_line(a: &[f64], b: &[f64]) -> f64 {
    if a.len() == b.len() {
        return a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64;
    }
    // Quantiles change at the multiples of 1/n and of 1/m: in units of 1/(n m), at those of m and n.
    let (n, m) = (a.len(), b.len());
    let (mut i, mut j, mut at, mut sum) = (0, 0, 0, 0.0);
    while i < n && j < m {
        let next = ((i + 1) * m).min((j + 1) * n);
        sum += (next - at) as f64 * (a[i] - b[j]).abs();
        i += usize::from(next == (i + 1) * m);
        j += usize::from(next == (j + 1) * n);
        at = next;
    }
    sum / (n as f64 * m as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::distance::{EmdMethod, emd};

    #[test]
    fn lists_of_different_lengths_meet_by_quantiles() {
        // 0 and 1 against 0, ½, 1: each sends a third of a third … ½ · 1/3 in all.
        assert!((on_a_line(&[0.0, 1.0], &[0.0, 0.5, 1.0]) - 0.5 / 3.0).abs() < 1e-15);
        assert!((on_a_line(&[0.0, 0.5, 1.0], &[0.0, 1.0]) - 0.5 / 3.0).abs() < 1e-15);
        assert!((on_a_line(&[2.0], &[0.0, 1.0]) - 1.5).abs() < 1e-15);
    }

    #[test]
    fn shadows_never_move_further_than_points() {
        let cloud = |seed: u64, size: usize| {
            let mut points = vec![0.0_f32; 3 * size];
            Stream::new(seed, "cloud").fill_normal(0, 0, &mut points);
            let points: Vec<f64> = points.into_iter().map(f64::from).collect();
            ArrangedCloud::new(3, &points).unwrap()
        };
        let directions = directions(3);
        for seed in 0..10 {
            let (x, y) = (cloud(seed, 20), cloud(seed + 100, if seed % 2 == 0 { 13 } else { 20 }));
            let bound = Shadows::new(&x, &directions).bound(&Shadows::new(&y, &directions));
            let exact = emd(&x, &y, EmdMethod::Exact).unwrap().value;
            assert!(bound <= exact && bound > 0.2 * exact, "{bound} {exact}");
        }
    }
}
