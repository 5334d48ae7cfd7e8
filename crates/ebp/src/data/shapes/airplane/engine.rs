//! Engines: jets and propellers.

use super::Kind;
use super::wing::{Surface, on_wing};
use crate::data::mesh::Mesh;
use crate::data::shapes::Parts;
use crate::data::shapes::draw::Draw;
use crate::data::shapes::solid::{Point, SIDES, add, bar, ellipsoid, loft, tube};

/// Jets under the wing, beside the tail or in it; propellers on the nose or the wing.
pub(super) fn engines(draw: &mut Draw, kind: Kind, radius: f64, wing: Surface, parts: &mut Parts) {
    let size = radius * draw.between(0.42, 0.62);
    let long = size * draw.between(3.6, 5.0);
    match kind {
        Kind::Airliner => {
            let shares: &[f64] = draw.pick(&[(0.7, &[0.33][..]), (0.3, &[0.3, 0.6][..])], &[0.33]);
            let forward = draw.between(0.25, 0.5);
            for &share in shares {
                let under = on_wing(wing, share, 0.1);
                let centre = add(under, [forward * long, 0.0, -1.15 * size]);
                parts.push_pair(nacelle(centre, size, long));
                let pylon = bar(
                    add(centre, [-0.3 * long, 0.0, 0.5 * size]),
                    add(under, [-0.08, 0.0, 0.0]),
                    [0.5 * long, 0.25 * size],
                    [0.4 * long, 0.2 * size],
                );
                parts.push_pair(pylon);
            }
        }
        Kind::PrivateJet => {
            let size = 1.05 * size;
            let centre = [draw.between(-0.6, -0.45), radius + 1.05 * size, 0.35 * radius];
            parts.push_pair(nacelle(centre, size, long));
            let pylon = bar(
                [centre[0], 0.5 * radius, 0.35 * radius],
                centre,
                [0.4 * long, 0.03],
                [0.4 * long, 0.03],
            );
            parts.push_pair(pylon);
        }
        Kind::Fighter => {
            let is_twin = draw.chance(0.5);
            let end = -1.0 - draw.between(0.02, 0.1);
            let nozzle = radius * if is_twin { 0.55 } else { 0.72 };
            let side = if is_twin { 0.6 * radius } else { 0.0 };
            let path = [[-0.7, side, 0.0], [-0.95, side, 0.0], [end, side, 0.0]];
            let pipe = tube(&path, &[nozzle, nozzle, 0.75 * nozzle], SIDES);
            if is_twin {
                parts.push_pair(pipe);
            } else {
                parts.push(pipe);
            }
            // Intakes beside the cockpit.
            let from = draw.between(0.3, 0.5);
            let [wide, high] = [0.45 * radius, draw.between(0.9, 1.3) * radius];
            let intake = bar(
                [from, radius, -0.1 * radius],
                [-0.5, 0.8 * radius, -0.1 * radius],
                [wide, high],
                [wide, high],
            );
            parts.push_pair(intake);
        }
        Kind::Propeller | Kind::Biplane => {
            if kind == Kind::Propeller && draw.chance(0.35) {
                let centre = add(on_wing(wing, 0.3, 0.0), [0.08, 0.0, 0.0]);
                let path = [0.16, 0.1, -0.1, -0.34].map(|x| add(centre, [x, 0.0, 0.0]));
                parts.push_pair(tube(&path, &[0.03, 0.06, 0.065, 0.02], SIDES));
                propeller(draw, add(centre, [0.17, 0.0, 0.0]), true, parts);
            } else {
                propeller(draw, [1.0, 0.0, 0.0], false, parts);
            }
        }
        Kind::Glider => {}
    }
}

fn propeller(draw: &mut Draw, hub: Point, is_pair: bool, parts: &mut Parts) {
    let num_blades = draw.whole(2, 4);
    let long = draw.between(0.16, 0.24);
    let start = draw.between(0.0, 1.0);
    let mut push = |mesh: Mesh| if is_pair { parts.push_pair(mesh) } else { parts.push(mesh) };
    push(ellipsoid(hub, [0.07, 0.035, 0.035]));
    for blade in 0..num_blades {
        let turn = std::f64::consts::TAU * (start + blade as f64 / num_blades as f64);
        let (sine, cosine) = turn.sin_cos();
        // Thin along x, wide across the blade's length in the plane of the disc.
        let ring = |share: f64, wide: f64| -> Vec<Point> {
            let centre = add(hub, [0.0, share * long * cosine, share * long * sine]);
            [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]
                .iter()
                .map(|s| add(centre, [0.008 * s[0], -s[1] * wide * sine, s[1] * wide * cosine]))
                .collect()
        };
        push(loft(&[ring(0.0, 0.012), ring(0.5, 0.024), ring(1.0, 0.012)]));
    }
}

/// A jet engine's housing, its opening slightly drawn in.
fn nacelle(centre: Point, radius: f64, long: f64) -> Mesh {
    let profile = [(0.5, 0.82), (0.44, 0.98), (0.2, 1.0), (-0.2, 0.92), (-0.42, 0.68), (-0.5, 0.4)];
    let path: Vec<Point> =
        profile.iter().map(|&(x, _)| add(centre, [x * long, 0.0, 0.0])).collect();
    let radii: Vec<f64> = profile.iter().map(|&(_, share)| share * radius).collect();
    tube(&path, &radii, SIDES)
}
