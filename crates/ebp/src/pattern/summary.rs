//! Summary functions of a pattern, with their edge corrections.
//!
//! ```text
//! K(r) = |W|/(n (n−1)) Σ_{i≠j} 1{d_ij ≤ r} e_ij,  e_ij = |W| / |W ∩ (W + xᵢ − xⱼ)|    translation
//! L(r) = √(K(r)/π)
//! g(r) = |W|/(n (n−1)) Σ_{i≠j} k_h(r − d_ij) e_ij / (2π r)       Epanechnikov, h = 0.15/√λ (Stoyan)
//! G(r) = P(nearest other point within r),  F(r) = P(nearest point of a fixed place within r)
//! ```
//!
//! G and F are Kaplan and Meier's estimates (Baddeley and Gill, 1997): a distance beyond the edge is a
//! censored one. F is read from a grid of 128 × 128 places. Without interaction K = π r², g = 1 and
//! F = G = 1 − exp(−λ π r²).

use std::f64::consts::PI;

use super::window::{Pattern, distance, square};
use crate::{Error, Result};

/// Places along a side from which F is read.
const PLACES: usize = 128;

/// A function of the distance that a pattern is summarised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// Further points within r of a point, over λ.
    K,
    /// √(K/π): r without interaction.
    L,
    /// Density of pairs at distance r: 1 without interaction.
    PairCorrelation,
    /// Of the distance from a place to the nearest point.
    EmptySpace,
    /// Of the distance from a point to the nearest other.
    Nearest,
}

impl Summary {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::K, Self::L, Self::PairCorrelation, Self::EmptySpace, Self::Nearest];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::K => "K",
            Self::L => "L",
            Self::PairCorrelation => "g",
            Self::EmptySpace => "F",
            Self::Nearest => "G",
        }
    }

    /// Its value at every distance, which rise. Patterns with fewer than two points have no pairs: K, L and
    /// g of them are 0, F and G are what is seen.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless distances rise from 0 or more.
    ///
    /// ```
    /// use ebp::pattern::{Pattern, Summary, Window};
    ///
    /// // One pair, 0.5 apart along x: its shift leaves half of the window.
    /// let pattern = Pattern::new(Window::unit(), vec![[0.2, 0.5], [0.7, 0.5]])?;
    /// let k = Summary::K.of(&pattern, &[0.4, 0.6])?;
    /// assert_eq!(k[0], 0.0);
    /// assert!((k[1] - 2.0).abs() < 1e-12);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    pub fn of(self, pattern: &Pattern, distances: &[f64]) -> Result<Vec<f64>> {
        let is_right = distances.first().is_none_or(|first| *first >= 0.0) && distances.is_sorted();
        if !is_right || distances.iter().any(|r| !r.is_finite()) {
            return Err(Error::invalid("distances", "rising from 0 or more", "others"));
        }
        Ok(match self {
            Self::K => ripley(pattern, distances),
            Self::L => ripley(pattern, distances).iter().map(|k| (k / PI).sqrt()).collect(),
            Self::PairCorrelation => pair_correlation(pattern, distances),
            Self::EmptySpace => empty_space(pattern, distances),
            Self::Nearest => nearest(pattern, distances),
        })
    }

    /// Its value without interaction.
    pub fn of_poisson(self, intensity: f64, r: f64) -> f64 {
        match self {
            Self::K => PI * r * r,
            Self::L => r,
            Self::PairCorrelation => 1.0,
            Self::EmptySpace | Self::Nearest => -(-intensity * PI * r * r).exp_m1(),
        }
    }
}

/// Distance and e/(n (n−1)/|W|) of every pair closer than `reach`, both ways counted.
fn pairs(pattern: &Pattern, reach: f64) -> Vec<(f64, f64)> {
    let (window, points) = (pattern.window(), pattern.points());
    let area = window.area();
    let scale = 2.0 * area / (points.len() * points.len().saturating_sub(1)) as f64;
    let mut found = Vec::new();
    for (i, &a) in points.iter().enumerate() {
        for &b in &points[..i] {
            if square(a, b) <= reach * reach {
                let overlap = window.overlap([a[0] - b[0], a[1] - b[1]]);
                // Opposite corners: no other pair could have been seen at this shift.
                if overlap > 0.0 {
                    found.push((distance(a, b), scale * area / overlap));
                }
            }
        }
    }
    found
}

fn ripley(pattern: &Pattern, distances: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; distances.len() + 1];
    for (away, weight) in pairs(pattern, distances.last().copied().unwrap_or(0.0)) {
        sums[distances.partition_point(|&r| r < away)] += weight;
    }
    let mut total = 0.0;
    sums[..distances.len()]
        .iter()
        .map(|sum| {
            total += sum;
            total
        })
        .collect()
}

fn pair_correlation(pattern: &Pattern, distances: &[f64]) -> Vec<f64> {
    let half_width = 0.15 / pattern.intensity().sqrt();
    let pairs = pairs(pattern, distances.last().copied().unwrap_or(0.0) + half_width);
    let at = |&r: &f64| {
        let kernel = |away: f64| {
            let u = (r - away) / half_width;
            if u.abs() < 1.0 { 0.75 * (1.0 - u * u) / half_width } else { 0.0 }
        };
        let sum: f64 = pairs.iter().map(|&(away, weight)| weight * kernel(away)).sum();
        if r > 0.0 { sum / (2.0 * PI * r) } else { 0.0 }
    };
    distances.iter().map(at).collect()
}

fn nearest_distance(points: &[[f64; 2]], place: [f64; 2], skip: Option<usize>) -> f64 {
    let others = points.iter().enumerate().filter(|(number, _)| Some(*number) != skip);
    others.map(|(_, &point)| square(point, place)).fold(f64::INFINITY, f64::min).sqrt()
}

fn nearest(pattern: &Pattern, distances: &[f64]) -> Vec<f64> {
    let points = pattern.points();
    let seen = points
        .iter()
        .enumerate()
        .map(|(i, &x)| (nearest_distance(points, x, Some(i)), pattern.window().edge_distance(x)));
    kaplan_meier(seen.collect(), distances)
}

fn empty_space(pattern: &Pattern, distances: &[f64]) -> Vec<f64> {
    let (window, points) = (pattern.window(), pattern.points());
    let seen = window
        .grid(PLACES, PLACES)
        .into_iter()
        .map(|u| (nearest_distance(points, u, None), window.edge_distance(u)));
    kaplan_meier(seen.collect(), distances)
}

/// 1 − Π_{s ≤ r} (1 − deaths at s / at risk at s) of times that are censored at the edge.
fn kaplan_meier(seen: Vec<(f64, f64)>, distances: &[f64]) -> Vec<f64> {
    let mut times: Vec<(f64, bool)> =
        seen.into_iter().map(|(time, edge)| (time.min(edge), time <= edge)).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut survival, mut next) = (1.0, 0);
    distances
        .iter()
        .map(|&r| {
            while next < times.len() && times[next].0 <= r {
                let at = times[next].0;
                let at_risk = (times.len() - next) as f64;
                let mut deaths = 0.0;
                while next < times.len() && times[next].0 <= at {
                    deaths += f64::from(u8::from(times[next].1));
                    next += 1;
                }
                survival *= 1.0 - deaths / at_risk;
            }
            1.0 - survival
        })
        .collect()
}
