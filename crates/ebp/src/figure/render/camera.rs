//! A pinhole camera: a point p is seen at u = right·(p − e)/z, v = down·(p − e)/z, z = forward·(p − e).
//!
//! The eye stands `distance` from the middle of the scene; unless the distance is asked for, the
//! frame is fitted to what is seen: the spheres and most of their shadow.

use std::ops::Range;

use super::scene::Scene;
use super::space::{Vector, ahead, cross, dot, subtract, times, towards, unit};

/// Where the scene is seen from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Degrees around the vertical, from +x towards +y.
    pub azimuth: f32,
    /// Degrees above the ground.
    pub elevation: f32,
    /// Degrees that the shorter side of the frame sees: more is a stronger perspective.
    pub opening: f32,
    /// From the eye to the middle in radii of the cloud; none fits the frame to the cloud.
    pub distance: Option<f32>,
}

impl Default for View {
    /// From the front right, a little from above: +x comes nearer and goes right.
    fn default() -> Self {
        Self { azimuth: -49.0, elevation: 24.0, opening: 20.0, distance: None }
    }
}

/// The part of the image plane that a picture shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Left, right, top, bottom.
    edges: [f32; 4],
}

impl Frame {
    fn union(self, other: Self) -> Self {
        let (a, b) = (self.edges, other.edges);
        Self { edges: [a[0].min(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].max(b[3])] }
    }
}

/// Blank share of each side of a fitted picture.
const MARGIN: f32 = 0.04;
/// How much of the way to the farthest shadow is fitted into the frame.
const SHADOW_SHARE: f32 = 0.65;

#[derive(Clone, Copy, Debug)]
pub(super) struct Camera {
    pub(super) eye: Vector,
    pub(super) right: Vector,
    pub(super) down: Vector,
    pub(super) forward: Vector,
}

impl Camera {
    pub(super) fn new(view: &View, reach: f32) -> Self {
        let half = (0.5 * view.opening.clamp(0.5, 120.0)).to_radians();
        let distance = view.distance.unwrap_or(1.0 / half.sin()).max(1.2) * reach;
        let elevation = view.elevation.clamp(-89.9, 89.9);
        let back = towards(view.azimuth, elevation);
        let forward = back.map(|number| -number);
        let right = unit(cross(forward, [0.0, 0.0, 1.0]));
        let down = cross(forward, right);
        Self { eye: times(back, distance), right, down, forward }
    }

    /// Right, down and forward of the eye.
    pub(super) fn seen(&self, place: Vector) -> Vector {
        let away = subtract(place, self.eye);
        [dot(self.right, away), dot(self.down, away), dot(self.forward, away)]
    }

    /// The ray through a place of the image plane; one unit of it is one unit of depth.
    pub(super) fn ray(&self, u: f32, v: f32) -> Vector {
        ahead(ahead(self.forward, u, self.right), v, self.down)
    }

    /// A direction given as right, down, forward in the world.
    pub(super) fn to_world(self, seen: Vector) -> Vector {
        ahead(ahead(times(self.forward, seen[2]), seen[0], self.right), seen[1], self.down)
    }
}

/// The bounds of a sphere on the image plane along one axis: the tangents from the eye,
/// (x z ± r √(x² + z² − r²)) / (z² − r²).
pub(super) fn tangents(x: f32, z: f32, radius: f32) -> Range<f32> {
    let squared = radius * radius;
    let root = radius * (x * x + z * z - squared).max(0.0).sqrt();
    let below = (z * z - squared).max(1e-12);
    (x * z - root) / below..(x * z + root) / below
}

/// What a picture must show to show all of a scene; `light` is the direction of the light that
/// throws a shadow.
pub(super) fn frame_of(scene: &Scene, view: &View, light: Option<Vector>) -> Frame {
    let camera = Camera::new(view, scene.reach);
    if view.distance.is_some() {
        let half = (0.5 * view.opening.clamp(0.5, 120.0)).to_radians().tan();
        return Frame { edges: [-half, half, -half, half] };
    }
    let mut frame = Frame { edges: [f32::MAX, f32::MIN, f32::MAX, f32::MIN] };
    for &centre in &scene.centres {
        let seen = camera.seen(centre);
        let (u, v) =
            (tangents(seen[0], seen[2], scene.radius), tangents(seen[1], seen[2], scene.radius));
        frame = frame.union(Frame { edges: [u.start, u.end, v.start, v.end] });
        if let Some(light) = light.filter(|light| light[2] > 0.2 && view.elevation > 0.0) {
            let fall = SHADOW_SHARE * (centre[2] - scene.floor) / light[2];
            let [x, y, _] = ahead(centre, -fall, light);
            let [x, y, z] = camera.seen([x, y, scene.floor]);
            let (u, v) = (x / z, y / z);
            if z > 0.0 {
                frame = frame.union(Frame { edges: [u, u, v, v] });
            }
        }
    }
    frame
}

/// The frame that all of these scenes fit into, seen from all of these azimuths.
pub(super) fn common_frame(
    scenes: &[&Scene],
    view: &View,
    azimuths: &[f32],
    light: impl Fn(&View) -> Option<Vector>,
) -> Option<Frame> {
    let mut frame = None;
    for scene in scenes {
        for &azimuth in azimuths {
            let view = View { azimuth, ..*view };
            let next = frame_of(scene, &view, light(&view));
            frame = Some(frame.map_or(next, |frame: Frame| frame.union(next)));
        }
    }
    frame
}

/// The smallest frame around all of these.
#[cfg(test)]
pub(super) fn joined(frames: &[Frame]) -> Frame {
    frames.iter().copied().reduce(Frame::union).expect("at least one frame")
}

/// How pixels lie on the image plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lens {
    /// The image plane at the corner of the first pixel, and the side of a sample.
    pub(super) corner: [f32; 2],
    pub(super) step: f32,
}

impl Lens {
    /// A picture of `width` × `height` samples around a frame.
    pub(super) fn new(frame: Frame, width: u32, height: u32) -> Self {
        let [left, right, top, bottom] = frame.edges;
        let fit =
            |size: f32, samples: u32| size.max(1e-9) / ((1.0 - 2.0 * MARGIN) * samples as f32);
        let step = fit(right - left, width).max(fit(bottom - top, height));
        let corner = [
            0.5 * (left + right) - 0.5 * step * width as f32,
            0.5 * (top + bottom) - 0.5 * step * height as f32,
        ];
        Self { corner, step }
    }

    /// The image plane at the middle of a sample.
    pub(super) fn at(&self, axis: usize, sample: u32) -> f32 {
        self.corner[axis] + self.step * (sample as f32 + 0.5)
    }

    /// Where a number of the image plane lies, in samples.
    pub(super) fn sample(&self, axis: usize, place: f32) -> f32 {
        (place - self.corner[axis]) / self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_up_and_near_are_seen_so() {
        // As every contact sheet: +x comes nearer and goes right, +z goes up.
        let camera = Camera::new(&View::default(), 1.0);
        let origin = camera.seen([0.0; 3]);
        assert!(origin[0].abs() < 1e-5 && origin[1].abs() < 1e-5);
        let seen = camera.seen([0.5, 0.0, 0.0]);
        assert!(seen[0] > 0.2 && seen[2] < origin[2] - 0.2);
        let seen = camera.seen([0.0, 0.0, 0.5]);
        assert!(seen[0].abs() < 1e-5 && seen[1] < -0.2);
        let world = camera.to_world([0.3, 0.2, 0.9]);
        let back = [camera.right, camera.down, camera.forward].map(|axis| dot(axis, world));
        assert!(length_of(subtract(back, [0.3, 0.2, 0.9])) < 1e-5);
    }

    fn length_of(vector: Vector) -> f32 {
        dot(vector, vector).sqrt()
    }

    /// A sphere on the axis: sin of the half angle is r/z, so the tangents are ± r/√(z² − r²).
    #[test]
    fn tangents_of_a_sphere_ahead() {
        let Range { start, end } = tangents(0.0, 5.0, 3.0);
        assert!((end - 0.75).abs() < 1e-6 && (start + 0.75).abs() < 1e-6);
    }
}
