//! Chairs: the sitter looks along +x, z up. Four legs, office chairs, armchairs, cantilevers,
//! stools with a back, rockers.

use std::f64::consts::TAU;

mod back;

use super::Parts;
use super::draw::Draw;
use super::solid::{
    Point, add, bar, cuboid, lathe, outline, plate, rod, rounded_rectangle, tube, turned,
};
use crate::data::mesh::Mesh;

/// The measures that all parts share.
struct Frame {
    /// Half the seat's depth and width.
    half: [f64; 2],
    /// The seat's lower and upper side.
    bottom: f64,
    top: f64,
    /// Half the thickness of wood or tube.
    wood: f64,
    is_round: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Base {
    Legs,
    Star,
    Column,
    Cantilever,
    Sled,
    Block,
    Rocker,
}

/// Draws a chair about one unit high.
pub(super) fn chair(draw: &mut Draw) -> Parts {
    let mut parts = Parts::default();
    let base = draw.pick(
        &[
            (0.52, Base::Legs),
            (0.14, Base::Star),
            (0.06, Base::Column),
            (0.07, Base::Cantilever),
            (0.06, Base::Sled),
            (0.11, Base::Block),
            (0.04, Base::Rocker),
        ],
        Base::Legs,
    );
    let is_soft = base == Base::Block || draw.chance(0.25);
    let thick = if is_soft { draw.between(0.09, 0.18) } else { draw.between(0.025, 0.06) };
    let height =
        if base == Base::Block { draw.between(0.3, 0.4) } else { draw.between(0.38, 0.52) };
    let wide =
        if base == Base::Block { draw.between(0.26, 0.36) } else { draw.between(0.19, 0.27) };
    let frame = Frame {
        half: [wide * draw.between(0.85, 1.1), wide],
        bottom: height - thick,
        top: height,
        wood: draw.between(0.012, 0.03),
        is_round: draw.chance(0.45),
    };
    seat(draw, &frame, is_soft, &mut parts);
    match base {
        Base::Legs => legs(draw, &frame, &mut parts),
        Base::Star => star(draw, &frame, &mut parts),
        Base::Column => column(draw, &frame, &mut parts),
        Base::Cantilever => cantilever(draw, &frame, &mut parts),
        Base::Sled => sled(draw, &frame, &mut parts),
        Base::Rocker => rocker(draw, &frame, &mut parts),
        Base::Block => block(draw, &frame, &mut parts),
    }
    back::back(draw, &frame, is_soft, &mut parts);
    let arms = match base {
        Base::Block => 0.85,
        Base::Star => 0.7,
        _ => 0.35,
    };
    if draw.chance(arms) {
        armrests(draw, &frame, base == Base::Block, &mut parts);
    }
    parts
}

fn seat(draw: &mut Draw, frame: &Frame, is_soft: bool, parts: &mut Parts) {
    let shape = match draw.pick(&[(0.6, 0), (0.25, 1), (0.15, 2)], 0) {
        0 => {
            let radius = draw.between(0.01, 0.08);
            rounded_rectangle(frame.half, radius)
        }
        1 => outline(32, frame.half, draw.between(2.6, 5.0)),
        _ => outline(32, frame.half, 2.0),
    };
    // Many seats are narrower at the back.
    let taper = draw.between(0.0, 0.18);
    let shape: Vec<[f64; 2]> = shape
        .iter()
        .map(|[x, y]| [*x, y * (1.0 - taper * (0.5 - 0.5 * x / frame.half[0]))])
        .collect();
    let bevel = if is_soft { draw.between(0.03, 0.06) } else { 0.008 };
    parts.push(plate(&shape, frame.bottom, frame.top, bevel));
    if !is_soft && draw.chance(0.25) {
        let cushion: Vec<[f64; 2]> = shape.iter().map(|p| p.map(|x| 0.93 * x)).collect();
        parts.push(plate(&cushion, frame.top, frame.top + draw.between(0.025, 0.05), 0.02));
    }
}

/// A leg of the frame's kind between two points.
fn leg(frame: &Frame, a: Point, b: Point, taper: f64) -> Mesh {
    let thick = frame.wood;
    if frame.is_round {
        rod(a, b, thick, thick * taper)
    } else {
        bar(a, b, [2.0 * thick; 2], [2.0 * thick * taper; 2])
    }
}

fn legs(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let inset = draw.between(0.0, 0.05) + frame.wood;
    let [splay_front, splay_back, splay_side] =
        [draw.between(-0.01, 0.09), draw.between(0.0, 0.11), draw.between(-0.01, 0.07)];
    let taper = draw.between(0.5, 1.0);
    let top = frame.bottom + 0.005;
    let place = |sign: f64, splay: f64| {
        let hip = [sign * (frame.half[0] - inset), frame.half[1] - inset, top];
        let foot = [hip[0] + sign * splay, hip[1] + splay_side, 0.0];
        (hip, foot)
    };
    let front = place(1.0, splay_front);
    let back = place(-1.0, splay_back);
    for (hip, foot) in [front, back] {
        parts.push_pair(leg(frame, hip, foot, taper));
    }
    let at = |(hip, foot): (Point, Point), z: f64| -> Point {
        let share = (hip[2] - z) / hip[2];
        add(hip, [(foot[0] - hip[0]) * share, (foot[1] - hip[1]) * share, z - hip[2]])
    };
    let thin = Frame { wood: 0.6 * frame.wood, ..*frame };
    let across = |a: Point| [a, [a[0], -a[1], a[2]]];
    match draw.pick(&[(0.5, 0), (0.2, 1), (0.2, 2), (0.1, 3)], 0) {
        1 => {
            // H: side rails and a bar between them.
            let z = draw.between(0.08, 0.2);
            let [a, b] = [at(front, z), at(back, z)];
            parts.push_pair(leg(&thin, a, b, 1.0));
            let middle = [0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), z];
            let [c, d] = across(middle);
            parts.push(leg(&thin, c, d, 1.0));
        }
        2 => {
            // A box of rails, at two heights.
            let [low, high] = [draw.between(0.08, 0.16), draw.between(0.18, 0.26)];
            parts.push_pair(leg(&thin, at(front, low), at(back, low), 1.0));
            for side in [front, back] {
                let [c, d] = across(at(side, high));
                parts.push(leg(&thin, c, d, 1.0));
            }
        }
        3 => {
            let z = draw.between(0.1, 0.2);
            let [a, b] = [at(front, z), at(back, z)];
            parts.push(leg(&thin, a, [b[0], -b[1], z], 1.0));
            parts.push(leg(&thin, [a[0], -a[1], z], b, 1.0));
        }
        _ => {}
    }
    if draw.chance(0.5) {
        // The apron under the seat.
        let high = draw.between(0.03, 0.06);
        let z = frame.bottom - 0.5 * high;
        let [x, y] = [frame.half[0] - inset, frame.half[1] - inset];
        for side in [-x, x] {
            parts.push(cuboid([side, 0.0, z], [0.015, 2.0 * y, high]));
        }
        parts.push_pair(cuboid([0.0, y, z], [2.0 * x, 0.015, high]));
    }
}

fn star(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let num_spokes = draw.pick(&[(0.8, 5_u8), (0.2, 4)], 5);
    let reach = draw.between(0.24, 0.32);
    let wheel = draw.between(0.02, 0.035);
    let hub = draw.between(0.07, 0.11);
    parts.push(lathe(&[
        [0.03, 2.0 * wheel],
        [0.032, hub + 0.02],
        [0.02, hub + 0.03],
        [0.018, frame.bottom + 0.01],
    ]));
    if draw.chance(0.5) {
        parts.push(lathe(&[[0.035, 0.45 * frame.bottom], [0.035, 0.85 * frame.bottom]]));
    }
    parts.push(cuboid([0.0, 0.0, frame.bottom - 0.012], [0.2, 0.2, 0.03]));
    for spoke in 0..num_spokes {
        let angle = TAU * f64::from(spoke) / f64::from(num_spokes);
        let end = [reach, 0.0, 2.0 * wheel + 0.012];
        let arm = tube(&[[0.0, 0.0, hub], end], &[0.024, 0.013], 10);
        parts.push(turned(arm, angle));
        let caster = super::solid::disc([reach, 0.0, wheel], wheel, 0.6 * wheel);
        parts.push(turned(caster, angle));
    }
}

fn column(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let foot = draw.between(0.18, 0.26);
    let neck = draw.between(0.02, 0.05);
    let flare = draw.between(0.0, 0.08);
    let profile = [
        [foot, 0.0],
        [foot, 0.015],
        [0.5 * foot, 0.03],
        [neck, 0.12],
        [neck, 0.7 * frame.bottom],
        [neck + flare, frame.bottom + 0.005],
    ];
    parts.push(lathe(&profile));
}

/// One bent tube on each side: floor, front, seat, and often the back as well.
fn cantilever(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let radius = draw.between(0.012, 0.018);
    let [x, y] = [frame.half[0], frame.half[1] - 0.01];
    let lean = draw.between(0.0, 0.06);
    let path = [
        [-x, y, radius],
        [0.6 * x, y, radius],
        [x + 0.02, y, 0.05],
        [x + lean, y, 0.5 * frame.bottom],
        [x, y, frame.bottom - 0.04],
        [0.7 * x, y, frame.bottom],
        [-x, y, frame.bottom],
    ];
    parts.push_pair(tube(&path, &[radius], 12));
    parts.push(rod([-x, -y, radius], [-x, y, radius], radius, radius));
}

fn sled(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let radius = draw.between(0.01, 0.017);
    let [x, y] = [frame.half[0], frame.half[1] - draw.between(0.0, 0.03)];
    let out = draw.between(0.0, 0.08);
    let path = [
        [0.8 * x, y, frame.bottom],
        [x + out, y, radius + 0.03],
        [x + out - 0.03, y, radius],
        [-x - out + 0.03, y, radius],
        [-x - out, y, radius + 0.03],
        [-0.8 * x, y, frame.bottom],
    ];
    parts.push_pair(tube(&path, &[radius], 12));
}

fn rocker(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    legs(draw, frame, parts);
    let reach = frame.half[0] * draw.between(1.6, 2.1);
    let y = frame.half[1] - frame.wood - 0.02;
    let path: Vec<Point> = (0..=10)
        .map(|step| {
            let share = f64::from(step) / 5.0 - 1.0;
            [share * reach, y, 0.01 + 0.09 * share * share - 0.02]
        })
        .collect();
    parts.push_pair(tube(&path, &[0.018], 10));
}

/// The plinth of an armchair, on short feet.
fn block(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let feet = draw.between(0.02, 0.1);
    let [x, y] = frame.half;
    let middle = 0.5 * (frame.bottom + feet);
    parts.push(cuboid([0.0, 0.0, middle], [1.96 * x, 1.96 * y, frame.bottom - feet]));
    for sign in [-1.0, 1.0] {
        let foot = [sign * (x - 0.04), y - 0.04, 0.0];
        parts.push_pair(rod([foot[0], foot[1], feet + 0.01], foot, 0.022, 0.014));
    }
}

fn armrests(draw: &mut Draw, frame: &Frame, is_block: bool, parts: &mut Parts) {
    let high = draw.between(0.16, 0.25);
    let z = frame.top + high;
    let [x, y] = frame.half;
    if is_block || draw.chance(0.15) {
        let thick = if is_block { draw.between(0.08, 0.15) } else { 0.03 };
        let low = if is_block { 0.3 * frame.bottom } else { frame.bottom };
        let shape = rounded_rectangle([0.5 * (z - low), x], draw.between(0.01, 0.07));
        let panel = plate(&shape, -0.5 * thick, 0.5 * thick, 0.3 * thick);
        let place = [0.0, y + 0.5 * thick, 0.5 * (z + low)];
        parts.push_pair(super::solid::changed(panel, |[a, b, c]| add(place, [b, c, a])));
        return;
    }
    let wide = draw.between(0.02, 0.06);
    let from = -x;
    let to = x * draw.between(0.4, 0.95);
    let side = y + draw.between(-0.01, 0.03);
    parts.push_pair(bar([from, side, z], [to, side, z], [wide, 0.025], [wide, 0.025]));
    if draw.chance(0.6) {
        let foot = [to - 0.03 - draw.between(0.0, 0.08), side, frame.bottom];
        parts.push_pair(leg(frame, [to - 0.03, side, z], foot, 1.0));
    } else {
        let middle = 0.5 * (from + to);
        let path = [[middle, side, z], [middle, side, frame.top], [middle, 0.7 * y, frame.bottom]];
        parts.push_pair(tube(&path, &[0.016], 10));
    }
}
