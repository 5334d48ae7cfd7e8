//! Fewer points of a cloud, spread evenly: farthest points, and Poisson discs.

use crate::point::cpu::vectorise::Vectoriser;
use crate::rng::Stream;
use crate::{Error, Result};

/// Picks `count` points of `[n, dim]`, each the farthest from those picked before; the first is
/// drawn. Returns their numbers, in the order of picking: every prefix is evenly spread, too.
///
/// Costs n · count distances.
///
/// # Errors
///
/// [`Error::InvalidValue`] if more points are asked for than there are, or a number is not finite.
pub fn farthest_points(
    points: &[f32],
    dim: usize,
    count: usize,
    stream: Stream,
) -> Result<Vec<usize>> {
    let num_points = check(points, dim)?;
    if count == 0 || count > num_points {
        return Err(Error::invalid("count", format!("from 1 to {num_points}"), count));
    }
    let mut picked = Vec::with_capacity(count);
    let mut next = below(num_points, uniform_pairs(stream, 1)[0]);
    // The squared distance of every point to the nearest one picked.
    let mut nearest = vec![f32::INFINITY; num_points];
    while picked.len() < count {
        picked.push(next);
        let centre: Vec<f32> = points[next * dim..][..dim].to_vec();
        let mut farthest = (0, -1.0);
        for (index, point) in points.chunks_exact(dim).enumerate() {
            let distance: f32 = point.iter().zip(&centre).map(|(a, b)| (a - b) * (a - b)).sum();
            nearest[index] = nearest[index].min(distance);
            if nearest[index] > farthest.1 {
                farthest = (index, nearest[index]);
            }
        }
        nearest[next] = -1.0;
        next = farthest.0;
    }
    Ok(picked)
}

/// Throws darts: goes through the points in a drawn order and keeps each that is at least `radius`
/// away from all kept before. Returns their numbers.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the radius is not positive or a number is not finite.
pub fn poisson_disc(points: &[f32], dim: usize, radius: f32, stream: Stream) -> Result<Vec<usize>> {
    use std::collections::HashMap;
    let num_points = check(points, dim)?;
    if !(radius > 0.0 && radius.is_finite()) {
        return Err(Error::invalid("radius", "positive", radius));
    }
    // Kept points by the cell of a grid of that width: only neighbouring cells can be too near.
    #[expect(clippy::cast_possible_truncation, reason = "cells of huge coordinates may coincide")]
    let cell =
        |point: &[f32]| -> Vec<i64> { point.iter().map(|x| (x / radius).floor() as i64).collect() };
    let mut kept: HashMap<Vec<i64>, Vec<usize>> = HashMap::new();
    let mut picked = Vec::new();
    for index in shuffled(num_points, stream) {
        let point = &points[index * dim..][..dim];
        let home = cell(point);
        let is_far = |other: &usize| {
            let other = &points[other * dim..][..dim];
            point.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f32>() >= radius * radius
        };
        let num_neighbours = 3_usize.pow(u32::try_from(dim).unwrap_or(u32::MAX).min(12));
        let is_free = (0..num_neighbours).all(|number| {
            let mut code = number;
            let neighbour: Vec<i64> = home
                .iter()
                .map(|place| {
                    let step = [-1, 0, 1][code % 3];
                    code /= 3;
                    place.saturating_add(step)
                })
                .collect();
            kept.get(&neighbour).is_none_or(|others| others.iter().all(is_far))
        });
        if is_free {
            kept.entry(home).or_default().push(index);
            picked.push(index);
        }
    }
    Ok(picked)
}

/// The numbers from 0 to `count` − 1 in a drawn order (Fisher and Yates).
pub(crate) fn shuffled(count: usize, stream: Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let draws = uniform_pairs(stream, count);
    for last in (1..count).rev() {
        order.swap(last, below(last + 1, draws[last]));
    }
    order
}

/// `count` different numbers below `size`, in a drawn order: the start of a shuffle.
pub(crate) fn drawn(size: usize, count: usize, stream: Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..size).collect();
    let draws = uniform_pairs(stream, count);
    for (place, pair) in draws.into_iter().enumerate() {
        order.swap(place, place + below(size - place, pair));
    }
    order.truncate(count);
    order
}

/// Two uniforms for each of `count` draws, all at once: the generator works in groups of 64.
fn uniform_pairs(stream: Stream, count: usize) -> Vec<[f32; 2]> {
    let mut pairs = vec![[0.0; 2]; count];
    Vectoriser::new().fill_uniform(stream, pairs.as_flattened_mut());
    pairs
}

/// A number below `count`, from two draws of 24 bits.
fn below(count: usize, [coarse, fine]: [f32; 2]) -> usize {
    let unit = f64::from(coarse) + f64::from(fine) * 2_f64.powi(-24);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below count")]
    let drawn = (unit * count as f64) as usize;
    drawn.min(count.saturating_sub(1))
}

fn check(points: &[f32], dim: usize) -> Result<usize> {
    if dim == 0 || !points.len().is_multiple_of(dim) || points.is_empty() {
        return Err(Error::invalid("points", format!("whole rows of {dim}"), points.len()));
    }
    crate::error::check_finite("points", points, "remove the point")?;
    Ok(points.len() / dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn farthest_points_are_the_corners_first() {
        // A line of 11 points: from anywhere, the next two are its ends.
        let line: Vec<f32> = (0..11_u8).map(f32::from).collect();
        let picked = farthest_points(&line, 1, 11, Stream::new(1, "a")).unwrap();
        let mut all = picked.clone();
        all.sort_unstable();
        assert_eq!(all, (0..11).collect::<Vec<_>>(), "each point once");
        assert!(picked[..3].contains(&0) && picked[..3].contains(&10));
        assert!(farthest_points(&line, 1, 12, Stream::new(1, "a")).is_err());
    }

    #[test]
    fn discs_keep_their_distance_and_leave_no_gap() {
        let mut points = vec![0.0; 2 * 2000];
        Stream::new(2, "points").fill_uniform(0, 0, &mut points);
        let radius = 0.1;
        let picked = poisson_disc(&points, 2, radius, Stream::new(3, "a")).unwrap();
        let distance = |a: usize, b: usize| {
            (points[2 * a] - points[2 * b]).hypot(points[2 * a + 1] - points[2 * b + 1])
        };
        for (place, &a) in picked.iter().enumerate() {
            assert!(picked[..place].iter().all(|&b| distance(a, b) >= radius));
        }
        // Every point was taken or is too near to one that was.
        assert!((0..2000).all(|a| picked.iter().any(|&b| distance(a, b) < radius)));
    }

    #[test]
    fn an_order_holds_every_number_once() {
        let mut order = shuffled(1000, Stream::new(4, "a"));
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }
}
