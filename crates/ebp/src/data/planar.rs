//! Sets of points of the plane whose law no single element shows.
//!
//! Every set has a shape of its own, and its points lie on it at random with noise of standard
//! deviation 0.03:
//!
//! ```text
//! rings    circles with centre N(0, 0.3² I) and radius U(0.4, 1)
//! sticks   segments with centre N(0, 0.3² I), any direction and length U(0.8, 2)
//! ```
//!
//! Taken one by one, points fill a broad blob; only together they are a ring or a stick. A model of
//! independent elements cannot draw one.

use serde::{Deserialize, Serialize};

use crate::rng::Stream;

/// Standard deviation of a centre's coordinates.
const CENTRE_STD_DEV: f32 = 0.3;
/// The smallest and the largest radius of a ring.
const RADII: (f32, f32) = (0.4, 1.0);
/// The smallest and the largest length of a stick.
const LENGTHS: (f32, f32) = (0.8, 2.0);
/// Standard deviation of a point around its place.
const NOISE_STD_DEV: f32 = 0.03;

/// A law of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanarFamily {
    /// Circles.
    Rings,
    /// Segments.
    Sticks,
}

impl PlanarFamily {
    /// The family called `name`, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "rings" => Some(Self::Rings),
            "sticks" => Some(Self::Sticks),
            _ => None,
        }
    }

    /// Set `number` of the stream: `size` points, `[size, 2]`.
    ///
    /// ```
    /// use ebp::data::PlanarFamily;
    /// use ebp::rng::Stream;
    ///
    /// assert_eq!(PlanarFamily::Sticks.draw(Stream::new(1, "sets"), 0, 16).len(), 32);
    /// ```
    pub fn draw(self, stream: Stream, number: u64, size: usize) -> Vec<f32> {
        let stream = stream.child(number);
        let [mut centre, mut shape] = [[0.0; 2], [0.0; 2]];
        stream.child(0).fill_normal(0, 0, &mut centre);
        stream.child(1).fill_uniform(0, 0, &mut shape);
        let (mut places, mut noise) = (vec![0.0; size], vec![0.0; 2 * size]);
        stream.child(2).fill_uniform(0, 0, &mut places);
        stream.child(3).fill_normal(0, 0, &mut noise);
        let between = |(low, high): (f32, f32)| low + (high - low) * shape[0];
        let mut points = Vec::with_capacity(2 * size);
        for (place, xi) in places.iter().zip(noise.chunks_exact(2)) {
            let [distance, angle] = match self {
                Self::Rings => [between(RADII), std::f32::consts::TAU * place],
                Self::Sticks => [between(LENGTHS) * (place - 0.5), std::f32::consts::PI * shape[1]],
            };
            let (sine, cosine) = angle.sin_cos();
            for (axis, direction) in [cosine, sine].into_iter().enumerate() {
                let place = CENTRE_STD_DEV * centre[axis] + distance * direction;
                points.push(place + NOISE_STD_DEV * xi[axis]);
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn centred(family: PlanarFamily, number: u64) -> Vec<[f32; 2]> {
        let points = family.draw(Stream::new(3, "sets"), number, 200);
        let mean = |axis: usize| points.iter().skip(axis).step_by(2).sum::<f32>() / 200.0;
        let centre = [mean(0), mean(1)];
        points.chunks_exact(2).map(|p| [p[0] - centre[0], p[1] - centre[1]]).collect()
    }

    #[test]
    fn points_of_a_ring_lie_on_one_circle() {
        for number in 0..20 {
            let all: Vec<f32> =
                centred(PlanarFamily::Rings, number).iter().map(|p| p[0].hypot(p[1])).collect();
            let radius = all.iter().sum::<f32>() / 200.0;
            // The mean of 200 places on a circle is off its centre by radius/√200 a coordinate, 0.07
            // at the most; four of these, and four of the noise.
            assert!((0.3..1.1).contains(&radius), "{radius}");
            assert!(all.iter().all(|d| (d - radius).abs() < 4.0 * 0.1 + 4.0 * 0.03));
        }
    }

    #[test]
    fn points_of_a_stick_lie_on_one_line() {
        for number in 0..20 {
            let points = centred(PlanarFamily::Sticks, number);
            let moment =
                |i: usize, j: usize| points.iter().map(|p| p[i] * p[j]).sum::<f32>() / 200.0;
            // The smaller eigenvalue of the covariance is the noise's variance, 9e-4 with a standard
            // error of a tenth of that.
            let (half, difference) =
                (0.5 * (moment(0, 0) + moment(1, 1)), 0.5 * (moment(0, 0) - moment(1, 1)));
            let smaller = half - difference.hypot(moment(0, 1));
            assert!((smaller - 9e-4).abs() < 4.0 * 9e-5 + 1e-5, "{smaller}");
        }
    }
}
