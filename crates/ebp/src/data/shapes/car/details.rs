//! Lamps, bumpers, mirrors, spoilers, roof rails, spare wheels and exhausts.

use super::{Frame, Kind};
use crate::data::shapes::Parts;
use crate::data::shapes::draw::Draw;
use crate::data::shapes::solid::{add, bar, changed, cuboid, ellipsoid, rod, tube, turned, tyre};

pub(super) fn details(draw: &mut Draw, frame: &Frame, kind: Kind, parts: &mut Parts) {
    let [y, z] = [frame.half_width, frame.nose - 0.06];
    let front = 1.0 - 0.5 * frame.round_front * 0.2;
    // Lamps.
    let lamp = draw.between(0.03, 0.055);
    parts.push_pair(ellipsoid([front - 0.03, 0.68 * y, z], [0.035, 1.3 * lamp, lamp]));
    parts.push_pair(ellipsoid([-0.985, 0.74 * y, frame.rear - 0.08], [0.03, lamp, 1.2 * lamp]));
    // Bumpers.
    if draw.chance(0.7) {
        let low = frame.floor + 0.09;
        for (x, round) in [(1.0, frame.round_front), (-1.0, frame.round_rear)] {
            let wide = y * (1.0 - round) + 0.02;
            let path = [
                [0.93 * x, -wide, low],
                [1.01 * x, -0.8 * wide, low],
                [1.02 * x, 0.0, low],
                [1.01 * x, 0.8 * wide, low],
                [0.93 * x, wide, low],
            ];
            parts.push(tube(&path, &[draw.between(0.028, 0.05)], 10));
        }
    }
    // Mirrors.
    let mirror = [frame.screen[0] - 0.08, 0.98 * y + 0.045, frame.belt + 0.035];
    if draw.chance(0.85) {
        parts.push_pair(ellipsoid(mirror, [0.022, 0.04, 0.03]));
        parts.push_pair(rod([mirror[0], 0.85 * y, frame.belt - 0.01], mirror, 0.01, 0.01));
    }
    if kind == Kind::Coupe && draw.chance(0.55) {
        let high = draw.between(0.05, 0.13);
        let wing = frame.rear + high;
        parts.push(cuboid([-0.92, 0.0, wing], [0.12, 1.7 * y, 0.016]));
        parts.push_pair(bar(
            [-0.92, 0.6 * y, frame.rear - 0.03],
            [-0.92, 0.6 * y, wing],
            [0.05, 0.02],
            [0.05, 0.02],
        ));
    }
    let is_tall = matches!(kind, Kind::OffRoad | Kind::Estate | Kind::Van);
    if is_tall && draw.chance(0.5) {
        let side = 0.85 * frame.tumble * y;
        let rail = frame.roof + 0.025;
        let [from, to] = [frame.back[0] + 0.05, frame.screen[1] - 0.05];
        parts.push_pair(rod([from, side, rail], [to, side, rail], 0.012, 0.012));
        let num_bars = draw.whole(0, 4);
        for number in 0..num_bars {
            let x = from + (to - from) * (number as f64 + 0.5) / num_bars as f64;
            parts.push(rod([x, -side, rail], [x, side, rail], 0.01, 0.01));
        }
        for x in [from, to] {
            parts.push_pair(rod([x, side, frame.roof - 0.03], [x, side, rail], 0.01, 0.01));
        }
    }
    if kind == Kind::OffRoad && draw.chance(0.4) {
        // The spare wheel on the back door; a tyre lies around the y axis and is turned.
        let spare = turned(
            tyre([0.0; 3], 0.85 * frame.wheel, 0.4 * frame.wheel, 0.05),
            0.25 * std::f64::consts::TAU,
        );
        parts.push(changed(spare, |p| add(p, [-1.04, 0.0, frame.belt - 0.02])));
    }
    if draw.chance(0.4) {
        parts.push_pair(rod(
            [-0.9, 0.5 * y, frame.floor + 0.03],
            [-1.02, 0.5 * y, frame.floor + 0.03],
            0.02,
            0.02,
        ));
    }
}
