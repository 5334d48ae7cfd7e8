//! How much of a disc other discs of the same radius cover, exactly.
//!
//! ```text
//! |D₀ \ (D₁ ∪ … ∪ D_k)| = ½ ∮ (x dy − y dx)
//! ```
//!
//! The way around what is left runs along the arcs of D₀'s circle that lie in no other disc, and back along
//! the arcs of the other circles that lie in D₀ and in no third disc. k discs cost k² log k.

use std::f64::consts::{PI, TAU};

/// The share of the disc of `radius` around the origin that discs around `others` cover.
pub(crate) fn covered_share(radius: f64, others: &[[f64; 2]]) -> f64 {
    // In units of the radius. Discs that repeat another add nothing, and would hide each other's arcs.
    let mut centres: Vec<[f64; 2]> = Vec::with_capacity(others.len());
    for centre in others.iter().map(|centre| centre.map(|x| x / radius)) {
        let [x, y] = centre;
        if x.hypot(y) < 2.0 && !centres.contains(&centre) {
            centres.push(centre);
        }
    }
    if centres.iter().any(|[x, y]| x.hypot(*y) <= f64::MIN_POSITIVE) {
        return 1.0;
    }
    // Arc of circle `from` that lies in the disc around `to`: the middle's direction, half the angle.
    let arc = |from: [f64; 2], to: [f64; 2]| {
        let [x, y] = [to[0] - from[0], to[1] - from[1]];
        (y.atan2(x), (0.5 * x.hypot(y)).min(1.0).acos())
    };
    let mut left = 0.0;
    let covers: Vec<(f64, f64)> = centres.iter().map(|&centre| arc([0.0; 2], centre)).collect();
    free(-PI, PI, &covers, |start, end| left += 0.5 * (end - start));
    for (i, &[x, y]) in centres.iter().enumerate() {
        let (towards, half) = arc([x, y], [0.0; 2]);
        let covers: Vec<(f64, f64)> = centres
            .iter()
            .enumerate()
            .filter(|&(j, other)| j != i && (other[0] - x).hypot(other[1] - y) < 2.0)
            .map(|(_, &other)| arc([x, y], other))
            .map(|(direction, half)| (direction - towards, half))
            .collect();
        free(-half, half, &covers, |start, end| {
            let (start, end) = (start + towards, end + towards);
            let turn = end - start + x * (end.sin() - start.sin()) - y * (end.cos() - start.cos());
            left -= 0.5 * turn;
        });
    }
    (1.0 - left / PI).clamp(0.0, 1.0)
}

/// Calls `visit` with every part of `from`..`to` that no cover (middle, half) holds, angles being the same
/// after a whole turn; the range lies within −π..π.
fn free(from: f64, to: f64, covers: &[(f64, f64)], mut visit: impl FnMut(f64, f64)) {
    let mut closed: Vec<[f64; 2]> = Vec::with_capacity(3 * covers.len());
    for &(middle, half) in covers {
        let middle = middle - TAU * (middle / TAU).round();
        for turn in [-TAU, 0.0, TAU] {
            let (start, end) = (middle - half + turn, middle + half + turn);
            if end > from && start < to {
                closed.push([start, end]);
            }
        }
    }
    closed.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let mut at = from;
    for [start, end] in closed {
        if start > at {
            visit(at, start);
        }
        at = at.max(end);
    }
    if at < to {
        visit(at, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::draws::Draws;
    use crate::rng::Stream;

    #[test]
    fn one_other_disc_covers_the_lens() {
        for d in [0.3_f64, 1.0, 1.7, 2.5] {
            // The lens of two unit discs: 2 acos(d/2) − (d/2) √(4 − d²).
            let lens =
                if d < 2.0 { 2.0 * (d / 2.0).acos() - d / 2.0 * (4.0 - d * d).sqrt() } else { 0.0 };
            let found = covered_share(3.0, &[[3.0 * d * 0.6, 3.0 * d * 0.8]]);
            assert!((found - lens / PI).abs() < 1e-14, "{d}: {found} {}", lens / PI);
        }
        assert!((covered_share(1.0, &[[0.0, 0.0]]) - 1.0).abs() < 1e-15);
        assert!(covered_share(1.0, &[]).abs() < 1e-15);
    }

    /// Against darts: a share p of n darts has standard error √(p (1 − p)/n).
    #[test]
    fn many_discs_cover_what_darts_say() {
        let mut draws = Draws::new(Stream::new(4, "discs"));
        for count in [2, 3, 5, 9] {
            let others: Vec<[f64; 2]> = (0..count)
                .map(|_| [4.0 * draws.uniform() - 2.0, 4.0 * draws.uniform() - 2.0])
                .collect();
            let mut repeated = others.clone();
            repeated.push(others[0]);
            let share = covered_share(1.0, &repeated);
            assert!((share - covered_share(1.0, &others)).abs() < 1e-15);
            let (darts, mut hits) = (40_000, 0);
            for _ in 0..darts {
                let (radius, angle) = (draws.uniform().sqrt(), TAU * draws.uniform());
                let [x, y] = [radius * angle.cos(), radius * angle.sin()];
                hits += usize::from(others.iter().any(|o| (o[0] - x).hypot(o[1] - y) <= 1.0));
            }
            let (found, n) = (hits as f64 / f64::from(darts), f64::from(darts));
            let error = (share * (1.0 - share) / n).sqrt();
            assert!((found - share).abs() < 4.0 * error + 1e-9, "{count}: {share} {found}");
        }
    }
}
