//! Bringing clouds to one place and size, recorded so that it can be undone: z = (x − c)/s.
//!
//! | name | c | s |
//! |---|---|---|
//! | none | 0 | 1 |
//! | global | per-axis mean of all training points | standard deviation of all their coordinates together, as PointFlow |
//! | shape | per-axis mean of the cloud | standard deviation of its coordinates about c |
//! | sphere | per-axis mean of the cloud | largest distance from c: the cloud fills the unit sphere |

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Which normalisation is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormaliseBy {
    /// Coordinates as they are.
    #[default]
    None,
    /// One centre and scale for all clouds.
    Global,
    /// Each cloud by its own mean and spread.
    Shape,
    /// Each cloud into the unit sphere.
    Sphere,
}

/// A centre and a scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// c, one number for each axis.
    pub centre: Vec<f32>,
    /// s, above zero.
    pub scale: f32,
}

/// Turns points of two numbers, or points of three about an axis, from the next axis towards the one after
/// it.
pub(crate) fn turn_about(points: &mut [f32], (dim, axis): (usize, usize), angle: f32) {
    let [from, towards] = if dim == 2 { [0, 1] } else { [(axis + 1) % 3, (axis + 2) % 3] };
    let (sine, cosine) = (libm::sinf(angle), libm::cosf(angle));
    for point in points.chunks_exact_mut(dim) {
        let (a, b) = (point[from], point[towards]);
        (point[from], point[towards]) = (cosine * a - sine * b, sine * a + cosine * b);
    }
}

impl Affine {
    /// c = 0, s = 1.
    pub fn identity(dim: usize) -> Self {
        Self { centre: vec![0.0; dim], scale: 1.0 }
    }

    /// (x − c)/s, in place.
    pub fn apply(&self, points: &mut [f32]) {
        let factor = 1.0 / self.scale;
        for point in points.chunks_exact_mut(self.centre.len().max(1)) {
            for (x, c) in point.iter_mut().zip(&self.centre) {
                *x = (*x - c) * factor;
            }
        }
    }

    /// c + s z, in place.
    pub fn invert(&self, points: &mut [f32]) {
        for point in points.chunks_exact_mut(self.centre.len().max(1)) {
            for (z, c) in point.iter_mut().zip(&self.centre) {
                *z = c + self.scale * *z;
            }
        }
    }

    /// That numbers read from a file can be used.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless there are `dim` finite centres and a positive scale.
    pub fn check(&self, dim: usize) -> Result<()> {
        let is_finite = self.centre.iter().all(|number| number.is_finite());
        if self.centre.len() != dim || !is_finite {
            let expected = format!("{dim} finite numbers");
            return Err(Error::invalid("centre", expected, format!("{:?}", self.centre)));
        }
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return Err(Error::invalid("scale", "positive", self.scale));
        }
        Ok(())
    }

    /// The normalisation of one cloud `[n, dim]`. A cloud without extent keeps scale 1.
    pub fn of_cloud(by: NormaliseBy, points: &[f32], dim: usize) -> Self {
        if matches!(by, NormaliseBy::None) {
            return Self::identity(dim);
        }
        if matches!(by, NormaliseBy::Global) {
            return Self::of_all([points], dim);
        }
        let count = (points.len() / dim.max(1)).max(1) as f64;
        let mut centre = vec![0.0_f64; dim];
        for point in points.chunks_exact(dim.max(1)) {
            for (sum, &x) in centre.iter_mut().zip(point) {
                *sum += f64::from(x) / count;
            }
        }
        let (mut squares, mut largest) = (0.0, 0.0_f64);
        for point in points.chunks_exact(dim.max(1)) {
            let square: f64 =
                point.iter().zip(&centre).map(|(&x, c)| (f64::from(x) - c).powi(2)).sum();
            squares += square;
            largest = largest.max(square);
        }
        let scale = match by {
            NormaliseBy::Sphere => largest.sqrt(),
            _ => (squares / (count * dim.max(1) as f64)).sqrt(),
        };
        Self::new(&centre, scale)
    }

    /// The global normalisation of many clouds.
    pub fn of_all<'a>(clouds: impl IntoIterator<Item = &'a [f32]>, dim: usize) -> Self {
        let mut moments: Option<Moments> = None;
        for cloud in clouds {
            moments.get_or_insert_with(|| Moments::new(cloud, dim)).add(cloud);
        }
        moments.map_or_else(|| Self::identity(dim), |moments| moments.affine())
    }

    #[expect(clippy::cast_possible_truncation, reason = "clouds are f32")]
    fn new(centre: &[f64], scale: f64) -> Self {
        let scale = scale as f32;
        let is_usable = scale > 0.0 && scale.is_finite();
        Self {
            centre: centre.iter().map(|&c| c as f32).collect(),
            scale: if is_usable { scale } else { 1.0 },
        }
    }
}

/// Count, sums and squares of points, about an origin that costs no digits when all are far away.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    origin: Vec<f64>,
    count: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    /// Of nothing yet; the origin is the first point of a cloud.
    pub(crate) fn new(cloud: &[f32], dim: usize) -> Self {
        let origin = (0..dim).map(|axis| cloud.get(axis).map_or(0.0, |&x| f64::from(x))).collect();
        Self { origin, count: 0.0, sums: vec![0.0; dim], squares: vec![0.0; dim] }
    }

    /// The same origin, and no points.
    pub(crate) fn emptied(&self) -> Self {
        let dim = self.origin.len();
        Self {
            origin: self.origin.clone(),
            count: 0.0,
            sums: vec![0.0; dim],
            squares: vec![0.0; dim],
        }
    }

    pub(crate) fn add(&mut self, cloud: &[f32]) {
        for point in cloud.chunks_exact(self.origin.len().max(1)) {
            self.count += 1.0;
            for (axis, &x) in point.iter().enumerate() {
                let x = f64::from(x) - self.origin[axis];
                self.sums[axis] += x;
                self.squares[axis] += x * x;
            }
        }
    }

    /// Adds the points of other moments about the same origin.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += more;
        }
        for (sum, more) in self.squares.iter_mut().zip(&other.squares) {
            *sum += more;
        }
    }

    /// Per-axis mean, and the standard deviation of all coordinates together.
    pub(crate) fn affine(&self) -> Affine {
        if self.count == 0.0 {
            return Affine::identity(self.origin.len());
        }
        let means: Vec<f64> = self.sums.iter().map(|sum| sum / self.count).collect();
        let centre: Vec<f64> = means.iter().zip(&self.origin).map(|(mean, o)| mean + o).collect();
        // σ² of all coordinates together = mean of the axes' variances + variance of their means.
        let d = means.len().max(1) as f64;
        let variances = self.squares.iter().zip(&means).map(|(sum, m)| sum / self.count - m * m);
        let within: f64 = variances.sum::<f64>() / d;
        let middle = centre.iter().sum::<f64>() / d;
        let between = centre.iter().map(|c| (c - middle).powi(2)).sum::<f64>() / d;
        Affine::new(&centre, (within + between).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quarter takes each axis to the next but one: x to y about z.
    #[test]
    fn a_quarter_turn_takes_one_axis_to_another() {
        for axis in 0..3 {
            let mut points = vec![0.0; 9];
            points[(axis + 1) % 3] = 2.0;
            points[3 + (axis + 2) % 3] = 1.0;
            points[6 + axis] = 5.0;
            turn_about(&mut points, (3, axis), std::f32::consts::FRAC_PI_2);
            let mut expected = [0.0; 9];
            expected[(axis + 2) % 3] = 2.0;
            expected[3 + (axis + 1) % 3] = -1.0;
            expected[6 + axis] = 5.0;
            for (found, expected) in points.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6, "{axis}: {points:?}");
            }
        }
    }

    #[test]
    fn global_is_what_pointflow_computes() {
        // NumPy: x = [[0, 2], [4, 10]]: mean (2, 6); std of all four numbers about 4:
        // √((16 + 4 + 0 + 36)/4) = √14.
        let affine = Affine::of_all([&[0.0, 2.0][..], &[4.0, 10.0]], 2);
        assert_eq!(affine.centre, [2.0, 6.0]);
        assert!((affine.scale - 14_f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn every_way_there_has_a_way_back() {
        let points = [1.0_f32, 2.0, 3.0, 5.0, -1.0, 7.0];
        for by in [NormaliseBy::None, NormaliseBy::Global, NormaliseBy::Shape, NormaliseBy::Sphere]
        {
            let affine = Affine::of_cloud(by, &points, 3);
            let mut there = points;
            affine.apply(&mut there);
            if by == NormaliseBy::Sphere {
                let norm = |p: &[f32]| p.iter().map(|x| x * x).sum::<f32>().sqrt();
                assert!((norm(&there[..3]) - 1.0).abs() < 1e-6, "both are farthest");
            }
            affine.invert(&mut there);
            for (a, b) in there.iter().zip(&points) {
                assert!((a - b).abs() < 1e-5, "{by:?}");
            }
        }
        let flat = Affine::of_cloud(NormaliseBy::Sphere, &[3.0, 3.0], 1);
        assert_eq!((flat.centre[0], flat.scale), (3.0, 1.0), "no extent, no scale");
    }
}
