//! Changes that leave a shape what it is: turns around the gravity axis, and small noise.

use crate::rng::Stream;
use crate::{Error, Result};

/// What is done to every cloud each time it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Augmentation {
    /// The axis that points up and is turned around, such as 2 for z; `None` turns nothing.
    pub gravity_axis: Option<usize>,
    /// Standard deviation of the noise on every coordinate.
    pub noise_std_dev: f32,
}

impl Augmentation {
    /// That it can be applied to clouds of a dimension.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if turning is asked for other than in three dimensions, or the noise
    /// is negative or not finite.
    pub fn check(&self, dim: usize) -> Result<()> {
        if let Some(axis) = self.gravity_axis
            && (dim != 3 || axis >= 3)
        {
            let found = format!("axis {axis} of {dim}");
            return Err(Error::invalid("gravity_axis", "an axis of three", found));
        }
        if !(self.noise_std_dev >= 0.0 && self.noise_std_dev.is_finite()) {
            return Err(Error::invalid("noise_std_dev", "at least 0", self.noise_std_dev));
        }
        Ok(())
    }

    /// Changes one cloud by the numbers of its stream.
    pub fn apply(&self, points: &mut [f32], stream: Stream) {
        if let Some(axis) = self.gravity_axis {
            let mut turn = [0.0];
            stream.fill_uniform(0, 0, &mut turn);
            let (sine, cosine) = (std::f32::consts::TAU * turn[0]).sin_cos();
            let [a, b] = [(axis + 1) % 3, (axis + 2) % 3];
            for point in points.chunks_exact_mut(3) {
                let (u, v) = (point[a], point[b]);
                (point[a], point[b]) = (cosine * u - sine * v, sine * u + cosine * v);
            }
        }
        if self.noise_std_dev > 0.0 {
            let mut noise = vec![0.0; points.len()];
            stream.fill_normal(1, 0, &mut noise);
            for (x, noise) in points.iter_mut().zip(noise) {
                *x += self.noise_std_dev * noise;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_keep_heights_and_distances() {
        let mut points = [1.0_f32, 2.0, 3.0, -1.0, 0.5, 4.0];
        let turn = Augmentation { gravity_axis: Some(2), noise_std_dev: 0.0 };
        turn.check(3).unwrap();
        turn.apply(&mut points, Stream::new(1, "turn"));
        assert!((points[2] - 3.0).abs() < f32::EPSILON && (points[5] - 4.0).abs() < f32::EPSILON);
        assert!((points[0].hypot(points[1]) - 5_f32.sqrt()).abs() < 1e-6);
        assert!((points[0] - 1.0).abs() > 1e-3, "something was turned");
        let apart = (points[0] - points[3]).hypot(points[1] - points[4]);
        assert!((apart - 2_f32.hypot(1.5)).abs() < 1e-5);
        assert!(turn.check(2).is_err());
        assert!(Augmentation { noise_std_dev: f32::NAN, ..turn }.check(3).is_err());
    }
}
