//! Tables: length along x, z up. Dining tables, desks, coffee tables, round and oval ones.

use std::f64::consts::TAU;

use super::Parts;
use super::draw::Draw;
use super::solid::{
    Point, add, bar, cuboid, lathe, outline, plate, rod, rounded_rectangle, turned,
};
use crate::data::mesh::Mesh;

/// The top's half sizes, its lower side, and how thick the wood is.
struct Frame {
    half: [f64; 2],
    bottom: f64,
    wood: f64,
    is_round_top: bool,
    is_round_wood: bool,
}

/// Draws a table about one and a half units long.
pub(super) fn table(draw: &mut Draw) -> Parts {
    let mut parts = Parts::default();
    let shape = draw.pick(&[(0.6, 0), (0.2, 1), (0.12, 2), (0.08, 3)], 0);
    let base = if shape == 0 {
        draw.pick(&[(0.48, 0), (0.12, 1), (0.12, 2), (0.08, 3), (0.06, 4), (0.14, 5)], 0)
    } else {
        draw.pick(&[(0.5, 3), (0.3, 0), (0.1, 4), (0.1, 6)], 3)
    };
    // Coffee tables stand on legs, boards or a drum; what else a top stands on is at sitting height.
    let is_low = matches!(base, 0 | 1 | 6) && draw.chance(0.35);
    let high = if is_low { draw.between(0.3, 0.45) } else { draw.between(0.62, 0.8) };
    let wide = draw.between(0.35, 0.6);
    let long = if shape == 1 { wide } else { wide * draw.between(1.0, 2.2) };
    let thick = draw.between(0.02, 0.07);
    let half = [long, wide];
    let top = match shape {
        0 => rounded_rectangle(half, draw.between(0.005, 0.12)),
        1 | 2 => outline(40, half, 2.0),
        _ => outline(draw.pick(&[(0.5, 6), (0.5, 8)], 6), half, 2.0),
    };
    parts.push(plate(&top, high - thick, high, draw.between(0.0, 0.4) * thick));
    let frame = Frame {
        half,
        bottom: high - thick,
        wood: draw.between(0.02, 0.05),
        is_round_top: shape != 0,
        is_round_wood: draw.chance(0.4),
    };
    match base {
        0 => legs(draw, &frame, &mut parts),
        1 => panels(draw, &frame, &mut parts),
        2 => trestle(draw, &frame, &mut parts),
        3 => pedestals(draw, &frame, &mut parts),
        4 => crossed(draw, &frame, &mut parts),
        5 => desk(draw, &frame, &mut parts),
        _ => drum(draw, &frame, &mut parts),
    }
    parts
}

fn leg(frame: &Frame, a: Point, b: Point, taper: f64) -> Mesh {
    if frame.is_round_wood {
        rod(a, b, frame.wood, frame.wood * taper)
    } else {
        bar(a, b, [2.0 * frame.wood; 2], [2.0 * frame.wood * taper; 2])
    }
}

fn legs(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let taper = draw.between(0.45, 1.0);
    let splay = draw.pick(&[(0.6, 0.0), (0.4, 0.12)], 0.0) * draw.between(0.3, 1.0);
    // Round tops have their legs further in.
    let share = if frame.is_round_top { draw.between(0.5, 0.64) } else { draw.between(0.86, 1.0) };
    let [x, y] = [frame.half[0] * share - frame.wood, frame.half[1] * share - frame.wood];
    let is_three = frame.is_round_top && draw.chance(0.3);
    if is_three {
        let [hip, foot] = [[1.3 * x, 0.0, frame.bottom + 0.005], [1.3 * x + splay, 0.0, 0.0]];
        for third in 0..3 {
            parts.push(turned(leg(frame, hip, foot, taper), TAU * f64::from(third) / 3.0));
        }
        return;
    }
    for sign in [-1.0, 1.0] {
        let hip = [sign * x, y, frame.bottom + 0.005];
        parts.push_pair(leg(frame, hip, [hip[0] + sign * splay, y + splay, 0.0], taper));
    }
    if draw.chance(0.55) {
        let high = draw.between(0.05, 0.11);
        let z = frame.bottom - 0.5 * high;
        parts.push_pair(cuboid([0.0, y, z], [2.0 * x, 0.02, high]));
        for side in [-x, x] {
            parts.push(cuboid([side, 0.0, z], [0.02, 2.0 * y, high]));
        }
    }
    if splay > 0.0 {
        return;
    }
    match draw.pick(&[(0.55, 0), (0.2, 1), (0.25, 2)], 0) {
        1 => {
            // A shelf between the legs.
            let z = draw.between(0.15, 0.4) * frame.bottom;
            let shelf = rounded_rectangle([x, y], 0.02);
            parts.push(plate(&shelf, z, z + draw.between(0.015, 0.03), 0.004));
        }
        2 => {
            let z = draw.between(0.1, 0.25) * frame.bottom;
            let thin = 1.1 * frame.wood;
            for side in [-x, x] {
                parts.push(bar([side, -y, z], [side, y, z], [thin, thin], [thin, thin]));
            }
            parts.push(bar([-x, 0.0, z], [x, 0.0, z], [thin, thin], [thin, thin]));
        }
        _ => {}
    }
}

/// Two upright boards, often with a board between them.
fn panels(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let thick = draw.between(0.025, 0.07);
    let x = frame.half[0] * draw.between(0.8, 0.98) - 0.5 * thick;
    let deep = 2.0 * frame.half[1] * draw.between(0.75, 1.0);
    for side in [-x, x] {
        parts.push(cuboid([side, 0.0, 0.5 * frame.bottom], [thick, deep, frame.bottom]));
    }
    if draw.chance(0.6) {
        let high = draw.between(0.25, 0.7) * frame.bottom;
        let y = -0.5 * deep * draw.between(0.0, 0.9);
        parts.push(cuboid([0.0, y, frame.bottom - 0.5 * high], [2.0 * x, 0.02, high]));
    }
    if draw.chance(0.3) {
        parts.push(cuboid(
            [0.0, 0.0, draw.between(0.2, 0.5) * frame.bottom],
            [2.0 * x, deep, 0.025],
        ));
    }
}

fn trestle(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let x = frame.half[0] * draw.between(0.6, 0.8);
    let foot = frame.half[1] * draw.between(0.7, 0.95);
    let thick = 2.0 * frame.wood;
    let is_a = draw.chance(0.5);
    for side in [-x, x] {
        if is_a {
            parts.push_pair(leg(frame, [side, 0.25 * foot, frame.bottom], [side, foot, 0.0], 1.0));
            let z = 0.35 * frame.bottom;
            parts.push(bar(
                [side, -0.7 * foot, z],
                [side, 0.7 * foot, z],
                [thick, thick],
                [thick, thick],
            ));
        } else {
            parts.push(cuboid([side, 0.0, 0.5 * frame.bottom], [thick, 2.5 * thick, frame.bottom]));
            for z in [0.5 * thick, frame.bottom - 0.5 * thick] {
                parts.push(bar([side, -foot, z], [side, foot, z], [thick, thick], [thick, thick]));
            }
        }
    }
    let z = draw.between(0.25, 0.5) * frame.bottom;
    parts.push(bar([-x, 0.0, z], [x, 0.0, z], [thick, 1.6 * thick], [thick, 1.6 * thick]));
}

fn pedestals(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let is_double = frame.half[0] > 1.6 * frame.half[1];
    let places = if is_double { vec![-0.55, 0.55] } else { vec![0.0] };
    let reach = frame.half[1].min(frame.half[0]) * draw.between(0.5, 0.8);
    let neck = draw.between(0.03, 0.09);
    let belly = neck * draw.between(1.0, 2.0);
    let num_feet = draw.pick(&[(0.45, 0_u8), (0.2, 3), (0.35, 4)], 0);
    let ground = if num_feet == 0 { 0.0 } else { 0.08 };
    for place in places {
        let x = place * frame.half[0];
        let h = frame.bottom;
        let mut profile = vec![
            [neck, 0.12 + ground],
            [belly, 0.35 * h],
            [neck, 0.6 * h],
            [0.8 * neck, 0.85 * h],
            [2.0 * neck, h + 0.005],
        ];
        if num_feet == 0 {
            profile.splice(0..0, [[reach, 0.0], [reach, 0.02], [0.6 * reach, 0.04]]);
        } else {
            profile.insert(0, [neck, ground]);
        }
        parts.push(super::solid::changed(lathe(&profile), |p| add(p, [x, 0.0, 0.0])));
        for foot in 0..num_feet {
            let angle = TAU * (f64::from(foot) + 0.5) / f64::from(num_feet);
            let path = [[0.5 * neck, 0.0, 0.2], [0.5 * reach, 0.0, 0.12], [reach, 0.0, 0.02]];
            let arm = super::solid::tube(&path, &[0.035, 0.028, 0.02], 10);
            parts.push(super::solid::changed(turned(arm, angle), |p| add(p, [x, 0.0, 0.0])));
        }
    }
}

/// Crossed legs at both ends.
fn crossed(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let share = if frame.is_round_top { 0.45 } else { draw.between(0.7, 0.85) };
    let [x, y] =
        [frame.half[0] * share, frame.half[1] * if frame.is_round_top { 0.6 } else { 0.85 }];
    for side in [-x, x] {
        parts.push_pair(leg(frame, [side, y, frame.bottom], [side, -y, 0.0], 1.0));
    }
    let z = 0.5 * frame.bottom;
    parts.push(rod([-x, 0.0, z], [x, 0.0, z], 0.6 * frame.wood, 0.6 * frame.wood));
}

/// A desk: drawers on one or both sides, and a board behind the knees.
fn desk(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let [long, wide] = frame.half;
    let box_wide = long * draw.between(0.3, 0.5);
    let deep = 2.0 * wide * draw.between(0.85, 0.97);
    let feet = draw.pick(&[(0.6, 0.0), (0.4, 0.12)], 0.0);
    let is_both = draw.chance(0.5);
    let sides: &[f64] = if is_both { &[-1.0, 1.0] } else { &[1.0] };
    let num_drawers = draw.whole(2, 4);
    for &side in sides {
        let x = side * (0.97 * long - 0.5 * box_wide);
        let high = frame.bottom - feet;
        parts.push(cuboid([x, 0.0, feet + 0.5 * high], [box_wide, deep, high]));
        for drawer in 0..num_drawers {
            let z = feet + high * (drawer as f64 + 0.5) / num_drawers as f64;
            let front = [0.9 * box_wide, 0.02, 0.85 * high / num_drawers as f64];
            parts.push(cuboid([x, 0.5 * deep, z], front));
            parts.push(cuboid([x, 0.5 * deep + 0.025, z], [0.3 * box_wide, 0.02, 0.015]));
        }
        if feet > 0.0 {
            for sign in [-1.0, 1.0] {
                let corner = [x + sign * 0.42 * box_wide, 0.42 * deep, 0.0];
                parts.push_pair(bar(
                    corner,
                    add(corner, [0.0, 0.0, feet + 0.01]),
                    [0.03; 2],
                    [0.04; 2],
                ));
            }
        }
    }
    if !is_both {
        let x = -0.95 * long;
        if draw.chance(0.5) {
            parts.push(cuboid([x, 0.0, 0.5 * frame.bottom], [0.03, deep, frame.bottom]));
        } else {
            parts.push_pair(leg(frame, [x, 0.42 * deep, frame.bottom], [x, 0.42 * deep, 0.0], 0.8));
        }
    }
    if draw.chance(0.7) {
        let high = draw.between(0.3, 0.8) * frame.bottom;
        let z = frame.bottom - 0.5 * high;
        parts.push(cuboid([0.0, -0.45 * deep, z], [1.9 * long, 0.02, high]));
    }
}

/// A cylinder or a box under the top.
fn drum(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let share = draw.between(0.45, 0.8);
    let waist = draw.between(0.7, 1.0);
    let round: Vec<Vec<Point>> = [0.0, 0.5, 1.0]
        .iter()
        .map(|&height: &f64| {
            let narrow = share * (1.0 - (1.0 - waist) * (1.0 - (2.0 * height - 1.0).powi(2)));
            outline(32, [frame.half[0] * narrow, frame.half[1] * narrow], 2.0)
                .iter()
                .map(|[x, y]| [*x, *y, height * (frame.bottom + 0.005)])
                .collect()
        })
        .collect();
    parts.push(super::solid::loft(&round));
}
