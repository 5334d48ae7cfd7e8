//! How dense a set's points are, by their nearest neighbours: what no law of one density can exceed by
//! much on them.
//!
//! ```text
//! −Ĥ = −(1/n) Σᵢ [ d log rᵢ + log V_d + log(n − 1) + γ ]      rᵢ: from point i to the nearest other one
//! ```
//!
//! (Kozachenko and Leonenko, 1987; V_d is the volume of the unit ball, γ Euler's constant.) For n
//! independent points of a density p the mean of log p(xᵢ) is −H, and of any other density it is less on
//! average. On thin surfaces −Ĥ grows with n, as a law that knows the surface may: the fewer points, the
//! more may be known beside them. Points on the same spot count once.

use rayon::prelude::*;

use super::LogDensity;

/// γ.
const EULER: f64 = 0.577_215_664_901_532_9;

/// −Ĥ of points `[n, d]` in nats per point with its standard error; `None` of fewer than three spots.
pub fn neighbour_density(points: &[f32], dim: usize) -> Option<LogDensity> {
    let mut rows: Vec<&[f32]> = points.chunks_exact(dim).collect();
    rows.sort_by(|a, b| {
        let mut pairs = a.iter().zip(*b).map(|(a, b)| a.total_cmp(b));
        pairs.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    rows.dedup();
    let n = rows.len();
    if n < 3 {
        return None;
    }
    let logs: Vec<f64> =
        (0..n).into_par_iter().map(|row| 0.5 * dim as f64 * nearest(&rows, row).ln()).collect();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    Some(LogDensity {
        value: -(mean + log_ball(dim) + (n as f64 - 1.0).ln() + EULER),
        std_error: (squares / (n as f64 - 1.0) / n as f64).sqrt(),
    })
}

/// The square of the distance to the nearest other row. Rows are ordered by their first number: those
/// farther along it than the nearest so far need no look.
fn nearest(rows: &[&[f32]], row: usize) -> f64 {
    let here = rows[row];
    let along = |there: &[f32]| (f64::from(there[0]) - f64::from(here[0])).powi(2);
    let square = |there: &[f32]| -> f64 {
        let pairs = here.iter().zip(there);
        pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
    };
    let mut least = f64::INFINITY;
    for there in &rows[row + 1..] {
        if along(there) >= least {
            break;
        }
        least = least.min(square(there));
    }
    for there in rows[..row].iter().rev() {
        if along(there) >= least {
            break;
        }
        least = least.min(square(there));
    }
    least
}

/// log V_d by V_d = V_{d−2} 2π/d.
fn log_ball(dim: usize) -> f64 {
    let first = if dim.is_multiple_of(2) { 1.0_f64 } else { 2.0 };
    let factors = (1..=dim).filter(|d| d % 2 == dim % 2 && *d > 1);
    first.ln() + factors.map(|d| (std::f64::consts::TAU / d as f64).ln()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// V₁ = 2, V₂ = π, V₃ = 4π/3.
    #[test]
    fn balls_have_their_volumes() {
        let pi = std::f64::consts::PI;
        for (dim, volume) in [(1, 2.0), (2, pi), (3, 4.0 * pi / 3.0)] {
            assert!((log_ball(dim) - f64::ln(volume)).abs() < 1e-14, "{dim}");
        }
    }

    /// Of 4000 points of N(0, I): −H = −(d/2) log 2πe, within 4 standard errors and the estimator's bias,
    /// of order n^(−2/d) = 0.004 in three dimensions, as an outer shell of the law has few points.
    #[test]
    fn normal_points_are_as_dense_as_their_law() {
        for dim in [1, 2, 3] {
            let mut points = vec![0.0; 4000 * dim];
            Stream::new(dim as u64, "points").fill_normal(0, 0, &mut points);
            let exact = -0.5 * dim as f64 * (std::f64::consts::TAU * std::f64::consts::E).ln();
            let found = neighbour_density(&points, dim).unwrap();
            let error = (found.value - exact).abs();
            assert!(error < 4.0 * found.std_error + 0.01, "{dim}: {found:?} {exact}");
            // d log r of points has the standard deviation π/√6 where the density is even, more here.
            assert!(
                found.std_error > 1.28 / 4000_f64.sqrt() && found.std_error < 0.04,
                "{found:?}"
            );
        }
    }

    /// Neither their order nor a second point on the same spot changes anything; two spots say nothing.
    #[test]
    fn spots_count_once_in_any_order() {
        let points = [0.0, 0.0, 1.0, 0.5, 0.2, 0.9, -1.0, 0.3];
        let again = [-1.0, 0.3, 0.2, 0.9, 1.0, 0.5, 0.0, 0.0, 0.2, 0.9];
        assert_eq!(neighbour_density(&points, 2), neighbour_density(&again, 2));
        assert!(neighbour_density(&points[..4], 2).is_none());
    }
}
