//! Chairs: the sitter looks along +x, z up. Four legs, office chairs, armchairs, cantilevers,
//! stools with a back, rockers.

use std::f64::consts::TAU;

use super::Parts;
use super::draw::Draw;
use super::solid::{
    Point, add, bar, cuboid, lathe, mirrored, outline, plate, rod, rounded_rectangle, tilted, tube,
    turned,
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
    back(draw, &frame, is_soft, &mut parts);
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
        pair(leg(frame, hip, foot, taper), parts);
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
            pair(leg(&thin, a, b, 1.0), parts);
            let middle = [0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), z];
            let [c, d] = across(middle);
            parts.push(leg(&thin, c, d, 1.0));
        }
        2 => {
            // A box of rails, at two heights.
            let [low, high] = [draw.between(0.08, 0.16), draw.between(0.18, 0.26)];
            pair(leg(&thin, at(front, low), at(back, low), 1.0), parts);
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
        pair(cuboid([0.0, y, z], [2.0 * x, 0.015, high]), parts);
    }
}

fn star(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let num_spokes = draw.pick(&[(0.8, 5), (0.2, 4)], 5);
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
        let angle = TAU * spoke as f64 / num_spokes as f64;
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
    pair(tube(&path, &[radius], 12), parts);
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
    pair(tube(&path, &[radius], 12), parts);
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
    pair(tube(&path, &[0.018], 10), parts);
}

/// The plinth of an armchair, on short feet.
fn block(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let feet = draw.between(0.02, 0.1);
    let [x, y] = frame.half;
    let middle = 0.5 * (frame.bottom + feet);
    parts.push(cuboid([0.0, 0.0, middle], [1.96 * x, 1.96 * y, frame.bottom - feet]));
    for sign in [-1.0, 1.0] {
        let foot = [sign * (x - 0.04), y - 0.04, 0.0];
        pair(rod([foot[0], foot[1], feet + 0.01], foot, 0.022, 0.014), parts);
    }
}

fn back(draw: &mut Draw, frame: &Frame, is_soft: bool, parts: &mut Parts) {
    let high = if is_soft { draw.between(0.3, 0.62) } else { draw.between(0.32, 0.55) };
    let thick = if is_soft { draw.between(0.07, 0.14) } else { draw.between(0.014, 0.035) };
    let wide = frame.half[1] * draw.between(0.82, 1.0);
    let x = -frame.half[0] + 0.5 * thick;
    let lean = draw.between(0.03, 0.28);
    let curve = draw.between(0.0, 0.09);
    let [low, top] = [frame.top - 0.01, frame.top + high];
    let mut pieces = Parts::default();
    let style = if is_soft {
        0
    } else {
        draw.pick(&[(0.35, 0), (0.22, 1), (0.18, 2), (0.15, 3), (0.10, 4)], 0)
    };
    let post = frame.wood.max(0.012);
    let posts = |pieces: &mut Parts| {
        let side = [x, wide - post, 0.0];
        pair(leg(frame, add(side, [0.0, 0.0, low]), add(side, [0.0, 0.0, top]), 0.8), pieces);
    };
    let rail = |z: f64, high: f64| cuboid([x, 0.0, z], [thick, 2.0 * (wide - post), high]);
    match style {
        0 => {
            // A panel, often raised above the seat, its corners rounded.
            let gap = if is_soft { 0.0 } else { draw.pick(&[(0.6, 0.0), (0.4, 0.12)], 0.0) };
            let half = [0.5 * (high - gap), wide];
            let radius = draw.between(0.01, 0.14);
            let flat = if draw.chance(0.3) {
                outline(32, half, draw.between(2.2, 4.0))
            } else {
                rounded_rectangle(half, radius)
            };
            let panel = plate(&flat, -0.5 * thick, 0.5 * thick, 0.4 * thick);
            let middle = low + gap + half[0];
            pieces.push(super::solid::changed(panel, |[a, y, b]| [x - b, y, middle + a]));
            if gap > 0.0 {
                pair(leg(frame, [x, 0.6 * wide, low], [x, 0.6 * wide, middle], 1.0), &mut pieces);
            }
        }
        1 => {
            posts(&mut pieces);
            let head = draw.between(0.04, 0.1);
            pieces.push(rail(top - 0.5 * head, head));
            let num_slats = draw.whole(3, 8);
            for slat in 0..num_slats {
                let y = (wide - 2.0 * post) * (2.0 * (slat as f64 + 0.5) / num_slats as f64 - 1.0);
                pieces.push(bar(
                    [x, y, low],
                    [x, y, top - 0.5 * head],
                    [0.012, 0.022],
                    [0.012, 0.022],
                ));
            }
        }
        2 => {
            posts(&mut pieces);
            let num_rungs = draw.whole(2, 5);
            let rung = draw.between(0.03, 0.07);
            for number in 0..num_rungs {
                let share = (number as f64 + 0.9) / num_rungs as f64;
                pieces.push(rail(low + share * high - 0.5 * rung, rung));
            }
        }
        3 => {
            // A bent hoop with spindles.
            let path: Vec<Point> = (0..=14)
                .map(|step| {
                    let angle = 0.5 * TAU * f64::from(step) / 14.0;
                    [x, wide * angle.cos(), low + high * angle.sin().powf(0.6)]
                })
                .collect();
            pieces.push(tube(&path, &[0.014], 10));
            let num_spindles = draw.whole(4, 8);
            for spindle in 0..num_spindles {
                let share = 2.0 * (spindle as f64 + 0.5) / num_spindles as f64 - 1.0;
                let y = 0.9 * wide * share;
                let end = low + high * (1.0 - (0.9 * share).powi(2)).powf(0.3);
                pieces.push(rod([x, y, low], [x, y, end], 0.008, 0.006));
            }
        }
        _ => {
            posts(&mut pieces);
            let panel = draw.between(0.4, 0.7) * high;
            pieces.push(rail(top - 0.5 * panel, panel));
        }
    }
    if draw.chance(0.12) {
        let size = [0.06, draw.between(0.8, 1.3) * wide, draw.between(0.08, 0.14)];
        pieces.push(cuboid([x, 0.0, top + 0.6 * size[2]], size));
    }
    // The back leans and wraps around the sitter.
    for piece in pieces.0 {
        let bent = super::solid::changed(piece, |[px, y, z]| {
            [px - curve + 2.0 * curve * (y / wide).powi(2), y, z]
        });
        parts.push(tilted(bent, [x, 0.0, frame.top], lean));
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
        pair(super::solid::changed(panel, |[a, b, c]| add(place, [b, c, a])), parts);
        return;
    }
    let wide = draw.between(0.02, 0.06);
    let from = -x;
    let to = x * draw.between(0.4, 0.95);
    let side = y + draw.between(-0.01, 0.03);
    let drop = draw.between(0.0, 0.04);
    pair(bar([from, side, z], [to, side, z - drop * 0.0], [wide, 0.025], [wide, 0.025]), parts);
    match draw.pick(&[(0.6, 0), (0.4, 1)], 0) {
        0 => {
            let foot = [to - 0.03 - draw.between(0.0, 0.08), side, frame.bottom];
            pair(leg(frame, [to - 0.03, side, z], foot, 1.0), parts);
        }
        _ => {
            let middle = 0.5 * (from + to);
            let path =
                [[middle, side, z], [middle, side, frame.top], [middle, 0.7 * y, frame.bottom]];
            pair(tube(&path, &[0.016], 10), parts);
        }
    }
}

/// The part and its mirror image.
fn pair(mesh: Mesh, parts: &mut Parts) {
    parts.push(mirrored(&mesh));
    parts.push(mesh);
}
