//! Clouds as the metrics take them: read, thinned out, normalised, arranged.

use std::path::Path;

use rayon::prelude::*;

use crate::data::CloudSource;
use crate::metric::distance::ArrangedCloud;
use crate::rng::Stream;
use crate::{Error, Result};

/// What is done to each set before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetNormalisation {
    /// Nothing: coordinates as they are.
    None,
    /// Mean to the origin, farthest point to distance ½.
    UnitBall,
    /// Middle of the box to the origin, longest side to length 1.
    UnitCube,
}

impl SetNormalisation {
    /// `none`, `unit-ball` or `unit-cube`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::UnitBall => "unit-ball",
            Self::UnitCube => "unit-cube",
        }
    }
}

/// How sets are prepared.
#[derive(Clone, Copy, Debug)]
pub struct Preparation {
    /// So many sets are drawn; all without.
    pub subset: Option<usize>,
    /// So many points are drawn of each set; all without.
    pub points: Option<usize>,
    /// What is done to each set.
    pub normalise: SetNormalisation,
    /// Seed of what is drawn.
    pub seed: u64,
}

/// Clouds of a file or folder, ready to be measured.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The clouds.
    pub clouds: Vec<ArrangedCloud>,
}

impl Collection {
    /// Reads the clouds at `path` and prepares each.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are too few sets or points, or a file cannot be read.
    pub fn read(path: &Path, how: &Preparation) -> Result<Self> {
        let all = CloudSource::open(path).map_err(unreadable)?;
        let mut chosen: Vec<usize> = (0..all.num_sets()).collect();
        if let Some(count) = how.subset {
            if count > all.num_sets() {
                return Err(Error::refused(format!(
                    "`{}` must hold at least {count} sets, found {}",
                    path.display(),
                    all.num_sets()
                ))
                .with_help("ask for fewer sets"));
            }
            chosen = choose(Stream::new(how.seed, "subset"), all.num_sets(), count);
        }
        let prepare = |&index: &usize| prepare(&all, index, how);
        let clouds: Vec<_> = chosen.par_iter().map(prepare).collect();
        Ok(Self { clouds: clouds.into_iter().collect::<Result<_>>()? })
    }

    /// The fewest and the most points of a cloud.
    pub fn sizes(&self) -> (usize, usize) {
        let sizes = self.clouds.iter().map(ArrangedCloud::len);
        (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0))
    }
}

/// What a file cannot be read for is about what was asked for.
fn unreadable(error: Error) -> Error {
    match error {
        Error::Io { .. } | Error::Malformed { .. } => Error::refused(error.to_string()),
        other => other,
    }
}

fn prepare(all: &CloudSource, index: usize, how: &Preparation) -> Result<ArrangedCloud> {
    let (dim, name) = (all.dim(), all.name(index));
    let points: Vec<f64> = all.set(index).iter().map(|&x| f64::from(x)).collect();
    let in_cloud = |error: Error| Error::refused(format!("`{name}`: {error}"));
    let num_points = points.len() / dim;
    let mut points = match how.points {
        None => points,
        Some(count) if count > num_points => {
            return Err(Error::refused(format!(
                "`{name}` must have at least {count} points, found {num_points}"
            ))
            .with_help("lower `--points`, or leave it out: sets may have different sizes"));
        }
        Some(count) => {
            let stream = Stream::new(how.seed, "points").child(index as u64);
            let rows = choose(stream, num_points, count);
            rows.iter().flat_map(|&row| points[row * dim..(row + 1) * dim].to_vec()).collect()
        }
    };
    // NaN is found before it spreads.
    let arranged = ArrangedCloud::new(dim, &points).map_err(in_cloud)?;
    if how.normalise == SetNormalisation::None {
        return Ok(arranged);
    }
    normalise(&mut points, dim, how.normalise);
    ArrangedCloud::new(dim, &points).map_err(in_cloud)
}

/// Moves and scales a cloud; one whose points are all equal is only moved.
fn normalise(points: &mut [f64], dim: usize, how: SetNormalisation) {
    let column = |points: &[f64], axis: usize| -> Vec<f64> {
        points.iter().skip(axis).step_by(dim).copied().collect()
    };
    let ends = |column: &[f64]| {
        let low = column.iter().copied().fold(f64::INFINITY, f64::min);
        (low, column.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let columns: Vec<Vec<f64>> = (0..dim).map(|axis| column(points, axis)).collect();
    let origin: Vec<f64> = columns
        .iter()
        .map(|column| match how {
            SetNormalisation::UnitCube => 0.5 * (ends(column).0 + ends(column).1),
            _ => column.iter().sum::<f64>() / column.len() as f64,
        })
        .collect();
    for point in points.chunks_exact_mut(dim) {
        for (x, origin) in point.iter_mut().zip(&origin) {
            *x -= origin;
        }
    }
    let norm = |point: &[f64]| point.iter().map(|x| x * x).sum::<f64>().sqrt();
    let size = match how {
        SetNormalisation::None => 1.0,
        SetNormalisation::UnitBall => 2.0 * points.chunks_exact(dim).map(norm).fold(0.0, f64::max),
        SetNormalisation::UnitCube => {
            columns.iter().map(|column| ends(column).1 - ends(column).0).fold(0.0, f64::max)
        }
    };
    if size > 0.0 {
        for x in points {
            *x /= size;
        }
    }
}

/// `count` different indices below `all`, in ascending order: the first swaps of a shuffle.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a uniform number below 1 times a count is an index below it"
)]
fn choose(stream: Stream, all: usize, count: usize) -> Vec<usize> {
    let mut uniforms = vec![0.0_f32; count];
    stream.fill_uniform(0, 0, &mut uniforms);
    let mut indices: Vec<usize> = (0..all).collect();
    for (place, uniform) in uniforms.into_iter().enumerate() {
        let rest = all - place;
        let step = (f64::from(uniform) * rest as f64) as usize;
        indices.swap(place, place + step.min(rest - 1));
    }
    indices.truncate(count);
    indices.sort_unstable();
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_indices_are_different_and_every_one_can_be_chosen() {
        let mut is_seen = [false; 10];
        for seed in 0..40 {
            let chosen = choose(Stream::new(seed, "choice"), 10, 4);
            assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "{chosen:?}");
            for index in chosen {
                is_seen[index] = true;
            }
        }
        assert_eq!(is_seen, [true; 10]);
        assert_eq!(choose(Stream::new(0, "choice"), 3, 3), [0, 1, 2]);
    }

    #[test]
    fn normalised_clouds_fill_ball_and_cube() {
        // A triangle with its mean at (2, 1) and corners 2, 2 and √2 … from it
        let corners = [1.0, 0.0, 5.0, 0.0, 0.0, 3.0];
        let mut ball = corners;
        normalise(&mut ball, 2, SetNormalisation::UnitBall);
        let norms: Vec<f64> = ball.chunks_exact(2).map(|p| p[0].hypot(p[1])).collect();
        assert!((norms.iter().copied().fold(0.0, f64::max) - 0.5).abs() < 1e-15);
        assert!(ball.iter().step_by(2).sum::<f64>().abs() < 1e-15);
        let mut cube = corners;
        normalise(&mut cube, 2, SetNormalisation::UnitCube);
        // Width 5, height 3: x in ±½, y in ±0.3
        let expected = [-0.3, -0.3, 0.5, -0.3, -0.5, 0.3];
        assert!(cube.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{cube:?}");
        let mut point = [3.0, 4.0];
        normalise(&mut point, 2, SetNormalisation::UnitBall);
        assert_eq!(point.map(f64::to_bits), [0; 2]);
    }
}
