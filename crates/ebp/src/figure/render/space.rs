//! Vectors of three numbers: a · b = Σ aᵢ bᵢ, a × b, |a|, and directions by their angles.

/// A place or a direction; the third number is the height.
pub(super) type Vector = [f32; 3];

pub(super) fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn subtract(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn times(a: Vector, factor: f32) -> Vector {
    a.map(|number| number * factor)
}

/// a + factor · b.
pub(super) fn ahead(a: Vector, factor: f32, b: Vector) -> Vector {
    add(a, times(b, factor))
}

pub(super) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn length(a: Vector) -> f32 {
    dot(a, a).sqrt()
}

/// The direction of a, or up where a is nothing.
pub(super) fn unit(a: Vector) -> Vector {
    let size = length(a);
    if size > 0.0 { times(a, 1.0 / size) } else { [0.0, 0.0, 1.0] }
}

/// Two directions that make a frame with ω.
pub(super) fn beside(direction: Vector) -> [Vector; 2] {
    // Any axis that ω is not near to.
    let helper = if direction[2].abs() < 0.9 { [0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0] };
    let across = unit(cross(helper, direction));
    [across, cross(direction, across)]
}

/// The direction at an azimuth from +x towards +y and an elevation above the ground, in degrees.
pub(super) fn towards(azimuth: f32, elevation: f32) -> Vector {
    let (sine, cosine) = azimuth.to_radians().sin_cos();
    let (high, flat) = elevation.to_radians().sin_cos();
    [flat * cosine, flat * sine, high]
}

/// π(3 − √5): after turns of this angle points on a disc or a sphere never line up (Vogel, 1979).
const GOLDEN_ANGLE: f32 = 2.399_963_2;

/// `count` directions spread over a cap around `middle`: `height(share)` is the cosine of the angle
/// to `middle` of the direction with this share of the cap's measure on its inner side.
pub(super) fn spread(
    middle: Vector,
    count: usize,
    height: impl Fn(f32) -> f32,
) -> impl Iterator<Item = Vector> {
    let [across, along] = beside(middle);
    (0..count).map(move |number| {
        let cosine = height((number as f32 + 0.5) / count as f32);
        let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
        let (y, x) = (GOLDEN_ANGLE * number as f32).sin_cos();
        ahead(ahead(times(middle, cosine), sine * x, across), sine * y, along)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_orthonormal() {
        for direction in spread([0.0, 0.0, 1.0], 40, |share| 1.0 - 2.0 * share) {
            let [across, along] = beside(direction);
            for (a, b, expected) in [
                (across, across, 1.0),
                (along, along, 1.0),
                (across, along, 0.0),
                (across, direction, 0.0),
                (along, direction, 0.0),
                (direction, direction, 1.0),
            ] {
                assert!((dot(a, b) - expected).abs() < 1e-5);
            }
        }
    }

    /// Uniform on the half sphere: the mean of cos is 1/2; by cosine: ∫ cos² / ∫ cos = 2/3.
    #[test]
    fn directions_follow_their_measure() {
        let up = [0.0, 0.0, 1.0];
        let mean = |height: fn(f32) -> f32| {
            spread(up, 500, height).map(|d| f64::from(dot(d, up))).sum::<f64>() / 500.0
        };
        assert!((mean(|share| 1.0 - share) - 0.5).abs() < 1e-3);
        assert!((mean(|share| (1.0 - share).sqrt()) - 2.0 / 3.0).abs() < 1e-3);
        let middle = spread(up, 500, |share| 1.0 - share).fold([0.0; 3], add);
        assert!(middle[0].abs() < 5.0 && middle[1].abs() < 5.0, "{middle:?}");
    }
}
