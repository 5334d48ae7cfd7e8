//! The body of a car, and what stands on it: a cabin, an open cockpit, a pickup's bed.

use super::Frame;
use crate::data::shapes::Parts;
use crate::data::shapes::draw::Draw;
use crate::data::shapes::solid::{Point, add, cuboid, loft, outline, tube};

/// Straight lines through the given heights, rising along x.
fn interpolate(points: &[[f64; 2]], x: f64) -> f64 {
    for pair in points.windows(2) {
        let [[x0, y0], [x1, y1]] = [pair[0], pair[1]];
        if x <= x1 {
            let share = if x1 > x0 { ((x - x0) / (x1 - x0)).max(0.0) } else { 1.0 };
            return y0 + (y1 - y0) * share;
        }
    }
    points[points.len() - 1][1]
}

/// Sections of body and cabin.
const STATIONS: usize = 30;

/// The lower body: sections along x with the outline of bonnet, belt and boot.
pub(super) fn body(frame: &Frame, parts: &mut Parts) {
    let top = [
        [-1.0, frame.rear - 0.03],
        [-0.96, frame.rear],
        [frame.back[1], 0.5 * (frame.rear + frame.belt)],
        [frame.screen[0], frame.belt],
        [0.9, frame.nose],
        [0.97, frame.nose - 0.04],
        [1.0, frame.nose - 0.1],
    ];
    let rings: Vec<Vec<Point>> = (0..=STATIONS)
        .map(|station| {
            let x = -(std::f64::consts::PI * station as f64 / STATIONS as f64).cos();
            let high = interpolate(&top, x);
            let round = if x > 0.0 { frame.round_front } else { frame.round_rear };
            let wide = frame.half_width * (1.0 - round * x.abs().powi(5));
            // The underside rises at both ends.
            let low = frame.floor + 0.06 * x.abs().powi(6);
            let half = [wide, 0.5 * (high - low)];
            let middle = 0.5 * (high + low);
            outline(28, half, frame.power).iter().map(|[y, z]| [x, *y, middle + z]).collect()
        })
        .collect();
    parts.push(loft(&rings));
}

/// Windows and roof: sections that narrow towards the roof.
pub(super) fn cabin(frame: &Frame, parts: &mut Parts) {
    let profile = [
        [frame.back[1], frame.belt - 0.01],
        [frame.back[0], frame.roof - 0.012],
        [0.5 * (frame.back[0] + frame.screen[1]), frame.roof],
        [frame.screen[1], frame.roof - 0.008],
        [frame.screen[0], frame.belt - 0.01],
    ];
    let rings: Vec<Vec<Point>> = (0..=STATIONS)
        .map(|station| {
            let share = 0.5 - 0.5 * (std::f64::consts::PI * station as f64 / STATIONS as f64).cos();
            let x = frame.back[1] + share * (frame.screen[0] - frame.back[1]);
            let high = interpolate(&profile, x).max(frame.belt - 0.008);
            let low = frame.belt - 0.05;
            let round = if x > 0.0 { frame.round_front } else { frame.round_rear };
            let wide = 0.96 * frame.half_width * (1.0 - round * x.abs().powi(5));
            let half = 0.5 * (high - low);
            outline(24, [1.0, half], 5.0)
                .iter()
                .map(|[y, z]| {
                    let above = (low + half + z - frame.belt) / (frame.roof - frame.belt);
                    let narrow = 1.0 - (1.0 - frame.tumble) * above.clamp(0.0, 1.0);
                    [x, y * wide * narrow, low + half + z]
                })
                .collect()
        })
        .collect();
    parts.push(loft(&rings));
}

/// An open car: windscreen, seats, and often a roll bar.
pub(super) fn cockpit(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let wide = 0.85 * frame.half_width;
    let [foot, head] = frame.screen;
    let top = frame.belt + 0.8 * (frame.roof - frame.belt);
    let corner =
        |y: f64| [[foot, y, frame.belt - 0.02], [foot - 0.7 * (foot - head), 0.9 * y, top]];
    let [[a, b], [c, d]] = [corner(-wide), corner(wide)];
    let thin = |p: Point| add(p, [0.012, 0.0, 0.0]);
    parts.push(loft(&[vec![a, c, d, b], vec![thin(a), thin(c), thin(d), thin(b)]]));
    let seats = draw.between(-0.22, -0.08);
    let high = draw.between(0.1, 0.16);
    for side in [-0.45, 0.45] {
        let place = [seats, side * frame.half_width, frame.belt + 0.4 * high];
        parts.push(cuboid(place, [0.07, 0.5 * frame.half_width, high]));
    }
    if draw.chance(0.6) {
        let x = seats - 0.12;
        let path = [
            [x, -0.7 * wide, frame.belt - 0.02],
            [x, -0.65 * wide, top - 0.02],
            [x, 0.65 * wide, top - 0.02],
            [x, 0.7 * wide, frame.belt - 0.02],
        ];
        parts.push(tube(&path, &[0.016], 10));
    }
}

/// The open bed of a pickup.
pub(super) fn bed(frame: &Frame, parts: &mut Parts) {
    let [from, to] = [-0.98, frame.back[1] - 0.02];
    let y = 0.9 * frame.half_width;
    let high = frame.belt - frame.rear + 0.06;
    let z = frame.rear + 0.5 * high - 0.05;
    let long = to - from;
    parts.push_pair(cuboid([0.5 * (from + to), y, z], [long, 0.04, high]));
    for x in [from, to] {
        parts.push(cuboid([x, 0.0, z], [0.04, 2.0 * y, high]));
    }
}
