//! Changes of sets of points in training: of whole sets, and of what the posterior alone reads.
//!
//! ```text
//! whole sets        xᵢ ← ± xᵢ exp(aᵢ + Σ_{j≠i} bᵢⱼ xⱼ/w),   then a turn
//! what q reads      a part of the points, denser on one side, with a hole; then a turn
//! ```
//!
//! a and b are normal, w is the half width of the domain. See [`crate::recipe::AugmentationConfig`] and
//! [`crate::recipe::ViewConfig`] for what each means to the law that is learned.

use crate::data::normalise::turn_about;
use crate::recipe::{AugmentationConfig, Space, Turns, ViewConfig};
use crate::rng::Stream;

/// Mirrors, stretches, tapers and turns a whole set. A point that would leave the domain stays at its
/// wall, where Z is still taken.
pub(super) fn augment(
    points: &mut [f32],
    settings: &AugmentationConfig,
    space: &Space,
    stream: Stream,
) {
    if *settings == AugmentationConfig::default() {
        return;
    }
    let dim = space.value_dim;
    let mut factors = vec![0.0; dim];
    stream.child(0).fill_normal(0, 0, &mut factors);
    for factor in &mut factors {
        *factor = (settings.stretch * *factor).exp();
    }
    let mut coins = vec![0.0; settings.mirror_axes.len()];
    stream.child(1).fill_uniform(0, 0, &mut coins);
    for (&axis, coin) in settings.mirror_axes.iter().zip(coins) {
        if coin < 0.5 {
            factors[axis] = -factors[axis];
        }
    }
    // Slopes of log factors, `[axis, along]`.
    let mut slopes = vec![0.0; dim * dim];
    if settings.taper > 0.0 {
        stream.child(2).fill_normal(0, 0, &mut slopes);
        for slope in &mut slopes {
            *slope *= settings.taper / space.high;
        }
        (0..dim).for_each(|axis| slopes[axis * dim + axis] = 0.0);
    }
    let mut draws = [0.0; 2];
    stream.child(3).fill_uniform(0, 0, &mut draws);
    let is_turned = f64::from(draws[0]) < settings.turn_share;
    let angle = angle(settings.turns, draws[1]).filter(|_| is_turned);
    let mut before = vec![0.0; dim];
    for point in points.chunks_exact_mut(dim) {
        before.copy_from_slice(point);
        for (axis, x) in point.iter_mut().enumerate() {
            *x *= factors[axis];
            if settings.taper > 0.0 {
                let slopes = &slopes[axis * dim..][..dim];
                let log: f32 = slopes.iter().zip(&before).map(|(slope, x)| slope * x).sum();
                *x *= log.exp();
            }
        }
    }
    if let Some(angle) = angle {
        turn_about(points, (dim, settings.turn_axis), angle);
    }
    for x in points {
        *x = x.clamp(space.low, space.high);
    }
}

/// Leaves out some of the points that the posterior reads, and turns the others. One is always left.
pub(super) fn view(points: &mut Vec<f32>, settings: &ViewConfig, dim: usize, stream: Stream) {
    let mut draws = [0.0; 6];
    stream.child(0).fill_uniform(0, 0, &mut draws);
    let [is_seen, dropout, tilt, hole, centre, turn] = draws;
    if f64::from(is_seen) >= settings.share {
        return;
    }
    let count = points.len() / dim;
    let mut direction = vec![0.0; dim];
    stream.child(1).fill_normal(0, 0, &mut direction);
    let length = direction.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    let tilt = tilt * settings.tilt / length;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the count")]
    let centre = ((centre * count as f32) as usize).min(count - 1);
    let centre = points[centre * dim..][..dim].to_vec();
    let radius = hole * settings.hole;
    #[expect(clippy::cast_possible_truncation, reason = "a share")]
    let kept = 1.0 - dropout * settings.dropout as f32;
    let mut uniforms = vec![0.0; 2 * count];
    stream.child(2).fill_uniform(0, 0, &mut uniforms);
    let is_kept = |point: &[f32], uniforms: &[f32]| {
        let along: f32 = point.iter().zip(&direction).map(|(x, v)| x * v).sum();
        let square: f32 = point.iter().zip(&centre).map(|(x, c)| (x - c) * (x - c)).sum();
        let is_favoured = tilt == 0.0 || uniforms[1] * (1.0 + (-tilt * along).exp()) < 1.0;
        uniforms[0] < kept && is_favoured && square >= radius * radius
    };
    let mut seen: Vec<f32> = points
        .chunks_exact(dim)
        .zip(uniforms.chunks_exact(2))
        .filter(|(point, uniforms)| is_kept(point, uniforms))
        .flat_map(|(point, _)| point)
        .copied()
        .collect();
    if seen.is_empty() {
        seen = centre;
    }
    if let Some(angle) = angle(settings.turns, turn) {
        turn_about(&mut seen, (dim, settings.turn_axis), angle);
    }
    *points = seen;
}

/// The angle of a turn, a share of the whole one or of four quarters.
fn angle(turns: Turns, share: f32) -> Option<f32> {
    let quarter = std::f32::consts::FRAC_PI_2;
    match turns {
        Turns::None => None,
        Turns::Quarter => Some((4.0 * share).floor() * quarter),
        Turns::Any => Some(4.0 * share * quarter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUM_POINTS: usize = 4000;

    /// Normal points around (0.3, 0, 1).
    fn cloud() -> Vec<f32> {
        let mut points = vec![0.0; 3 * NUM_POINTS];
        Stream::new(3, "cloud").fill_normal(0, 0, &mut points);
        for point in points.chunks_exact_mut(3) {
            point[0] += 0.3;
            point[2] += 1.0;
        }
        points
    }

    fn squares(points: &[f32]) -> Vec<f32> {
        points.chunks_exact(3).map(|p| p[0] * p[0] + p[1] * p[1]).collect()
    }

    /// A turn about z keeps z and the distance from it; four quarters come back.
    #[test]
    fn turns_keep_the_axis_and_lengths() {
        let before = cloud();
        for turns in [Turns::Quarter, Turns::Any] {
            let settings = AugmentationConfig { turns, ..AugmentationConfig::default() };
            let mut after = before.clone();
            augment(&mut after, &settings, &Space::points(3, 50.0), Stream::new(5, "turn"));
            assert_ne!(before, after);
            for (a, b) in squares(&before).iter().zip(squares(&after)) {
                assert!((a - b).abs() < 1e-5 * (1.0 + a));
            }
            for (a, b) in before.chunks_exact(3).zip(after.chunks_exact(3)) {
                assert_eq!(a[2].to_bits(), b[2].to_bits());
            }
        }
        for quarter in 0..4_u8 {
            let share = (f32::from(quarter) + 0.5) / 4.0;
            let mut point = [1.0, 0.0, 7.0];
            turn_about(&mut point, (3, 2), angle(Turns::Quarter, share).unwrap());
            let expected = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]][usize::from(quarter)];
            let miss = (point[0] - expected[0]).abs() + (point[1] - expected[1]).abs();
            assert!(miss < 1e-6, "{point:?}");
        }
        // A turn about x mixes y and z, x → y → z → x.
        let mut point = [7.0, 1.0, 0.0];
        turn_about(&mut point, (3, 0), angle(Turns::Quarter, 0.3).unwrap());
        assert!((point[2] - 1.0).abs() + point[1].abs() + (point[0] - 7.0).abs() < 1e-6);
    }

    /// The share of points that stays is uniform on [0.2, 1] for a dropout of 0.8, of mean 0.6.
    #[test]
    fn views_have_varying_numbers_of_points() {
        let settings = ViewConfig { share: 1.0, dropout: 0.8, tilt: 0.0, ..ViewConfig::default() };
        let points = cloud();
        let count = 300;
        let shares: Vec<f64> = (0..count)
            .map(|set| {
                let mut seen = points.clone();
                view(&mut seen, &settings, 3, Stream::new(7, "view").child(set));
                seen.len() as f64 / points.len() as f64
            })
            .collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        // A uniform share has the standard deviation 0.8/√12.
        assert!((mean - 0.6).abs() < 4.0 * 0.231 / (count as f64).sqrt(), "{mean}");
        assert!(shares.iter().all(|share| *share > 0.15));
        assert!(
            shares.iter().any(|share| *share < 0.25) && shares.iter().any(|share| *share > 0.95)
        );
    }

    /// Of normal points x with the tilt t along v, E[s(t x) x]/E s(t x) = 2 E s(t x) x for centred x, s
    /// the logistic function; by the trapezoidal rule.
    #[test]
    fn tilted_views_favour_a_side() {
        let mut points = vec![0.0; 30_000];
        Stream::new(4, "line").fill_normal(0, 0, &mut points);
        let settings = ViewConfig { share: 1.0, dropout: 0.0, tilt: 3.0, ..ViewConfig::default() };
        let mut most = 0.0_f64;
        for set in 0..8 {
            let stream = Stream::new(9, "view").child(set);
            let mut seen = points.clone();
            view(&mut seen, &settings, 1, stream);
            let mut draws = [0.0; 6];
            stream.child(0).fill_uniform(0, 0, &mut draws);
            let tilt = f64::from(draws[2] * settings.tilt);
            let expected: f64 = (-8000..=8000)
                .map(|step| f64::from(step) / 1000.0)
                .map(|x| {
                    let normal = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
                    2.0 * normal * x / (1.0 + (-tilt * x).exp()) / 1000.0
                })
                .sum();
            let mean = seen.iter().map(|&x| f64::from(x)).sum::<f64>() / seen.len() as f64;
            let allowed = 4.0 / (seen.len() as f64).sqrt();
            assert!((mean.abs() - expected).abs() < allowed, "{mean} {expected}");
            most = most.max(expected);
        }
        assert!(most > 0.4, "no tilt that can be seen: {most}");
    }

    /// Nothing is within the hole, and everything beyond its largest radius is kept; sets of one point keep
    /// it.
    #[test]
    fn holes_are_empty_and_a_point_is_left() {
        let settings =
            ViewConfig { share: 1.0, dropout: 0.0, tilt: 0.0, hole: 1.0, ..ViewConfig::default() };
        let points = cloud();
        let mut num_missing = 0;
        for set in 0..8 {
            let mut seen = points.clone();
            view(&mut seen, &settings, 3, Stream::new(2, "hole").child(set));
            let is_seen = |point: &[f32]| seen.chunks_exact(3).any(|other| other == point);
            let missing: Vec<&[f32]> = points.chunks_exact(3).filter(|p| !is_seen(p)).collect();
            for a in &missing {
                let apart = |b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
                assert!(missing.iter().all(|b| apart(b) <= 4.0), "wider than twice the radius");
            }
            num_missing += missing.len();
        }
        assert!(num_missing > 10, "{num_missing}");
        let mut one = vec![0.1, 0.2, 0.3];
        view(&mut one, &settings, 3, Stream::new(2, "hole"));
        assert_eq!(one, [0.1, 0.2, 0.3]);
    }

    /// log x′/x of an axis is a plane over the other axes whose slopes have the standard deviation taper/w.
    #[test]
    fn tapers_are_planes_in_the_other_axes() {
        let space = Space::points(3, 50.0);
        let settings = AugmentationConfig { taper: 0.5, ..AugmentationConfig::default() };
        let (mut sum, count) = (0.0, 200);
        for set in 0..count {
            let stream = Stream::new(1, "taper").child(set);
            let mut points = vec![2.0, 0.0, 0.0, 2.0, 1.0, 0.0, 2.0, 0.0, 1.0, 2.0, 3.0, -2.0];
            augment(&mut points, &settings, &space, stream);
            let logs: Vec<f32> = points.chunks_exact(3).map(|p| (p[0] / 2.0).ln()).collect();
            assert!(logs[0].abs() < 1e-6, "no slope along the axis itself");
            assert!((logs[3] - 3.0 * logs[1] + 2.0 * logs[2]).abs() < 1e-5);
            sum += f64::from(logs[1].powi(2) + logs[2].powi(2));
        }
        let variance = sum / (2 * count) as f64 / (0.5_f64 / 50.0).powi(2);
        // Of 400 squares of normal numbers.
        assert!((variance - 1.0).abs() < 4.0 * (2.0 / 400.0_f64).sqrt(), "{variance}");
    }
}
