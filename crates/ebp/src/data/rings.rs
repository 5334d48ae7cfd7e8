//! Rings: sets of points of the plane whose law no single element shows.
//!
//! Every set is a circle of its own, with centre N(0, 0.3² I) and radius U(0.4, 1), and its points lie
//! on it at random angles with noise of standard deviation 0.03. Taken one by one, points fill a broad
//! blob; only together they are a ring. A model of independent elements cannot draw one.

use crate::rng::Stream;

/// Standard deviation of a centre's coordinates.
const CENTRE_STD_DEV: f32 = 0.3;
/// The smallest and the largest radius.
const RADII: (f32, f32) = (0.4, 1.0);
/// Standard deviation of a point around its place on the circle.
const NOISE_STD_DEV: f32 = 0.03;

/// Ring `number` of the stream: `size` points, `[size, 2]`.
///
/// ```
/// use ebp::data::ring;
/// use ebp::rng::Stream;
///
/// assert_eq!(ring(Stream::new(1, "rings"), 0, 16).len(), 32);
/// ```
pub fn ring(stream: Stream, number: u64, size: usize) -> Vec<f32> {
    let stream = stream.child(number);
    let [mut centre, mut radius] = [[0.0; 2], [0.0; 2]];
    stream.child(0).fill_normal(0, 0, &mut centre);
    stream.child(1).fill_uniform(0, 0, &mut radius);
    let radius = RADII.0 + (RADII.1 - RADII.0) * radius[0];
    let (mut angles, mut noise) = (vec![0.0; size], vec![0.0; 2 * size]);
    stream.child(2).fill_uniform(0, 0, &mut angles);
    stream.child(3).fill_normal(0, 0, &mut noise);
    let mut points = Vec::with_capacity(2 * size);
    for (angle, xi) in angles.iter().zip(noise.chunks_exact(2)) {
        let (sine, cosine) = (std::f32::consts::TAU * angle).sin_cos();
        for (axis, direction) in [cosine, sine].into_iter().enumerate() {
            let place = CENTRE_STD_DEV * centre[axis] + radius * direction;
            points.push(place + NOISE_STD_DEV * xi[axis]);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_a_set_lie_on_one_circle() {
        for number in 0..20 {
            let points = ring(Stream::new(3, "rings"), number, 200);
            let mean = |axis: usize| points.iter().skip(axis).step_by(2).sum::<f32>() / 200.0;
            let centre = [mean(0), mean(1)];
            let distance = |p: &[f32]| (p[0] - centre[0]).hypot(p[1] - centre[1]);
            let all: Vec<f32> = points.chunks_exact(2).map(distance).collect();
            let radius = all.iter().sum::<f32>() / 200.0;
            // The mean of 200 places on a circle is off its centre by radius/√200 a coordinate, 0.07
            // at the most; four of these, and four of the noise.
            assert!((0.3..1.1).contains(&radius), "{radius}");
            assert!(all.iter().all(|d| (d - radius).abs() < 4.0 * 0.1 + 4.0 * 0.03));
        }
    }
}
