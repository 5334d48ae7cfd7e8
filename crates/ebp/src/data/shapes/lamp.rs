//! Lamps: z up. Table lamps, floor lamps, desk lamps with an arm, pendants and chandeliers.

use std::f64::consts::TAU;

use super::Parts;
use super::draw::Draw;
use super::solid::{
    Point, add, changed, cuboid, ellipsoid, lathe, outline, plate, rod, rounded_rectangle, shell,
    tilted, tube, turned,
};
use crate::data::mesh::Mesh;

/// Draws a lamp about one unit high.
pub(super) fn lamp(draw: &mut Draw) -> Parts {
    let mut parts = Parts::default();
    match draw.pick(&[(0.36, 0), (0.26, 1), (0.18, 2), (0.12, 3), (0.08, 4)], 0) {
        0 => table_lamp(draw, &mut parts),
        1 => floor_lamp(draw, &mut parts),
        2 => desk_lamp(draw, &mut parts),
        3 => pendant(draw, &mut parts),
        _ => chandelier(draw, &mut parts),
    }
    parts
}

/// Rings of a shade.
const STEPS: i32 = 8;

/// A shade that hangs from `top` down: its lower and upper radius, and its height.
fn shade(draw: &mut Draw, top: f64, lower: f64, upper: f64, high: f64) -> Parts {
    let mut parts = Parts::default();
    let bulge = draw.pick(&[(0.6, 0.0), (0.2, 0.25), (0.2, -0.25)], 0.0) * draw.between(0.3, 1.0);
    let profile: Vec<[f64; 2]> = (0..=STEPS)
        .map(|step| {
            let share = f64::from(step) / f64::from(STEPS);
            let radius = lower + (upper - lower) * share;
            [radius * (1.0 + bulge * (0.5 * TAU * share).sin()), top - high + high * share]
        })
        .collect();
    if draw.chance(0.15) {
        // A square or many-sided shade.
        let sides = draw.pick(&[(0.5, 4), (0.25, 6), (0.25, 8)], 4);
        let ring = |radius: f64, z: f64| -> Vec<Point> {
            outline(sides, [1.2 * radius; 2], 2.0).iter().map(|[x, y]| [*x, *y, z]).collect()
        };
        let wall = 0.012;
        parts.push(super::solid::loft(&[
            ring(lower, top - high),
            ring(upper, top),
            ring((upper - wall).max(0.005), top),
            ring(lower - wall, top - high + 0.002),
        ]));
    } else {
        parts.push(shell(&profile, 0.012));
    }
    parts
}

/// A foot on the ground; returns its height.
fn foot(draw: &mut Draw, radius: f64, parts: &mut Parts) -> f64 {
    let high = draw.between(0.015, 0.05);
    match draw.pick(&[(0.45, 0), (0.25, 1), (0.15, 2), (0.15, 3)], 0) {
        0 => parts.push(lathe(&[[radius, 0.0], [radius, 0.6 * high], [0.9 * radius, high]])),
        1 => {
            let dome = 2.0 * high;
            parts.push(lathe(&[
                [radius, 0.0],
                [0.95 * radius, 0.3 * high],
                [0.6 * radius, 0.9 * high],
                [0.15 * radius, dome],
            ]));
        }
        2 => {
            parts.push(plate(&rounded_rectangle([radius, radius], 0.1 * radius), 0.0, high, 0.004));
        }
        _ => parts.push(plate(&outline(32, [radius, 0.75 * radius], 2.0), 0.0, high, 0.3 * high)),
    }
    high
}

fn table_lamp(draw: &mut Draw, parts: &mut Parts) {
    let stand = draw.between(0.35, 0.6);
    let shade_high = draw.between(0.24, 0.42);
    let lower = draw.between(0.2, 0.36);
    let upper = lower * draw.between(0.4, 1.0);
    let overlap = draw.between(0.3, 0.8) * shade_high;
    let radius = draw.between(0.1, 0.2);
    let base = foot(draw, radius, parts);
    // The body: a vase turned on a lathe, a stack of balls, or a plain rod.
    match draw.pick(&[(0.5, 0), (0.2, 1), (0.3, 2)], 0) {
        0 => {
            let [belly, neck] = [draw.between(0.07, 0.17), draw.between(0.02, 0.05)];
            let height = draw.between(0.25, 0.6);
            let sharp = draw.between(1.0, 2.5);
            let profile: Vec<[f64; 2]> = (0..=14)
                .map(|step| {
                    let share = f64::from(step) / 14.0;
                    // One hump with its top at `height` of the body.
                    let warped = if share < height {
                        0.5 * share / height
                    } else {
                        0.5 + 0.5 * (share - height) / (1.0 - height)
                    };
                    let hump = (0.5 * TAU * warped).sin().max(0.0).powf(sharp);
                    [neck + (belly - neck) * hump, base + share * (stand - base)]
                })
                .collect();
            parts.push(lathe(&profile));
        }
        1 => {
            let num_balls = draw.whole(2, 4);
            let ball = 0.5 * (stand - base) / num_balls as f64;
            let squash = draw.between(0.6, 1.1);
            for number in 0..num_balls {
                let z = base + ball * (2.0 * number as f64 + 1.0);
                parts.push(ellipsoid([0.0, 0.0, z], [ball * squash, ball * squash, ball]));
            }
        }
        _ => {
            let thick = draw.between(0.012, 0.04);
            parts.push(rod([0.0, 0.0, 0.0], [0.0, 0.0, stand], thick, thick));
        }
    }
    let top = stand + shade_high + 0.06 - overlap.min(0.6 * shade_high);
    parts.push(rod([0.0, 0.0, stand - 0.02], [0.0, 0.0, top], 0.01, 0.008));
    parts.append(shade(draw, top, lower, upper, shade_high));
    spokes(draw, top, upper, parts);
    if draw.chance(0.4) {
        parts.push(ellipsoid([0.0, 0.0, top + 0.015], [0.014, 0.014, 0.02]));
    }
}

/// The wires between pole and shade.
fn spokes(draw: &mut Draw, z: f64, radius: f64, parts: &mut Parts) {
    let count = draw.whole(2, 4);
    for number in 0..count {
        let wire = rod([0.0, 0.0, z - 0.005], [radius - 0.004, 0.0, z - 0.005], 0.005, 0.005);
        parts.push(turned(wire, TAU * number as f64 / count as f64));
    }
}

fn floor_lamp(draw: &mut Draw, parts: &mut Parts) {
    let high = draw.between(1.1, 1.5);
    let thick = draw.between(0.01, 0.022);
    let lower = draw.between(0.12, 0.26);
    let upper = lower * draw.between(0.45, 1.0);
    let shade_high = draw.between(0.16, 0.34);
    let is_tripod = draw.chance(0.25);
    if is_tripod {
        let reach = draw.between(0.22, 0.36);
        let hub = high * draw.between(0.6, 0.95) - 0.1;
        for number in 0..3 {
            let one = rod([0.01, 0.0, hub], [reach, 0.0, 0.0], 1.2 * thick, thick);
            parts.push(turned(one, TAU * f64::from(number) / 3.0));
        }
        parts.push(rod([0.0, 0.0, hub - 0.05], [0.0, 0.0, high], thick, thick));
    } else {
        let radius = draw.between(0.12, 0.2);
        foot(draw, radius, parts);
    }
    if !is_tripod && draw.chance(0.3) {
        // An arc that carries the shade in front.
        let reach = draw.between(0.3, 0.6);
        let path: Vec<Point> = (0..=12)
            .map(|step| {
                let angle = 0.5 * TAU * (f64::from(step) / 12.0) * 0.85;
                [
                    0.5 * reach * (1.0 - angle.cos()),
                    0.0,
                    high * (0.25 + 0.75 * angle.sin().max(0.0).powf(0.5)),
                ]
            })
            .collect();
        let rising = path.iter().copied().filter(|p| p[2] > 0.3 * high || p[0] < 0.1);
        let mut arc = vec![[0.0, 0.0, 0.0]];
        arc.extend(rising);
        let end = arc[arc.len() - 1];
        parts.push(tube(&arc, &[thick], 10));
        let hanging = shade(draw, end[2] + 0.02, lower, 0.5 * upper, 0.7 * shade_high);
        parts.append(hanging.moved([end[0], 0.0, 0.0]));
        parts.push(ellipsoid(add(end, [0.0, 0.0, -0.06]), [0.04, 0.04, 0.05]));
        return;
    }
    if !is_tripod {
        parts.push(rod([0.0, 0.0, 0.0], [0.0, 0.0, high], thick, thick));
    }
    if draw.chance(0.2) {
        // A bowl that lights the ceiling.
        let bowl = [
            [0.02, high - 0.02],
            [0.5 * lower, high],
            [0.85 * lower, high + 0.05],
            [lower, high + 0.12],
        ];
        parts.push(shell(&bowl, 0.014));
        if draw.chance(0.5) {
            let arm = [[0.0, 0.0, 0.65 * high], [0.12, 0.0, 0.72 * high], [0.2, 0.0, 0.7 * high]];
            parts.push(tube(&arm, &[0.7 * thick], 10));
            parts.push(ellipsoid([0.2, 0.0, 0.68 * high], [0.05, 0.05, 0.04]));
        }
        return;
    }
    let top = high + 0.4 * shade_high;
    parts.append(shade(draw, top, lower, upper, shade_high));
    parts.push(rod([0.0, 0.0, high - 0.01], [0.0, 0.0, top], 0.008, 0.008));
    spokes(draw, top, upper, parts);
    // A tray around the pole; a tripod has its legs there.
    if !is_tripod && draw.chance(0.25) {
        let z = draw.between(0.35, 0.55) * high;
        parts.push(plate(&outline(32, [0.2, 0.2], 2.0), z, z + 0.02, 0.004));
    }
}

fn desk_lamp(draw: &mut Draw, parts: &mut Parts) {
    let radius = draw.between(0.12, 0.18);
    let base = foot(draw, radius, parts);
    let thick = draw.between(0.01, 0.018);
    let [first, second] = [draw.between(0.35, 0.55), draw.between(0.3, 0.5)];
    let [lean, fold] = [draw.between(0.1, 0.6), draw.between(0.7, 1.5)];
    let elbow = [-first * lean.sin(), 0.0, base + first * lean.cos()];
    let wrist = add(elbow, [second * fold.sin(), 0.0, second * fold.cos()]);
    let shoulder = [0.0, 0.0, base - 0.005];
    if draw.chance(0.35) {
        let middle = [elbow[0] * 0.6, 0.0, elbow[2] * 0.9];
        let bend = [0.4 * wrist[0], 0.0, wrist[2] + 0.05];
        parts.push(tube(
            &[shoulder, middle, add(elbow, [0.02, 0.0, 0.06]), bend, wrist],
            &[thick],
            10,
        ));
    } else {
        let gap = draw.pick(&[(0.5, 0.0), (0.5, 0.022)], 0.0);
        for side in if gap > 0.0 { vec![-gap, gap] } else { vec![0.0] } {
            let beside = |p: Point| add(p, [0.0, side, 0.0]);
            parts.push(rod(beside(shoulder), beside(elbow), thick, thick));
            parts.push(rod(beside(elbow), beside(wrist), thick, thick));
        }
        for joint in [elbow, wrist] {
            parts.push(super::solid::disc(joint, 2.2 * thick, gap + 1.5 * thick));
        }
    }
    let lower = draw.between(0.1, 0.17);
    let high = draw.between(0.14, 0.24);
    let profile: &[[f64; 2]] = if draw.chance(0.6) {
        &[[1.0, -1.0], [0.8, -0.6], [0.5, -0.25], [0.3, 0.0], [0.28, 0.25]]
    } else {
        &[[1.0, -1.0], [0.98, -0.6], [0.85, -0.2], [0.5, 0.05], [0.25, 0.12]]
    };
    let profile: Vec<[f64; 2]> = profile.iter().map(|[r, z]| [r * lower, z * high]).collect();
    let tilt = draw.between(-0.2, 0.6);
    let head = tilted(shell(&profile, 0.01), [0.0; 3], tilt);
    parts.push(changed(head, |p| add(p, wrist)));
    let bulb = tilted(ellipsoid([0.0, 0.0, -0.35 * high], [0.035, 0.035, 0.055]), [0.0; 3], tilt);
    parts.push(changed(bulb, |p| add(p, wrist)));
}

fn pendant(draw: &mut Draw, parts: &mut Parts) {
    let cord = draw.between(0.3, 0.9);
    let lower = draw.between(0.18, 0.36);
    let high = draw.between(0.16, 0.4);
    parts.push(lathe(&[[0.07, high + cord], [0.07, high + cord + 0.03]]));
    parts.push(rod([0.0, 0.0, 0.8 * high], [0.0, 0.0, high + cord + 0.005], 0.008, 0.008));
    match draw.pick(&[(0.35, 0), (0.35, 1), (0.3, 2)], 0) {
        0 => {
            let upper = lower * draw.between(0.1, 0.9);
            parts.append(shade(draw, high, lower, upper, high));
            spokes(draw, high, upper, parts);
        }
        1 => {
            let flat = draw.between(0.6, 1.0);
            parts.push(ellipsoid(
                [0.0, 0.0, high - 0.6 * lower * flat],
                [lower * 0.8, lower * 0.8, lower * 0.8 * flat],
            ));
        }
        _ => {
            // A dome.
            let profile: Vec<[f64; 2]> = (0..=8)
                .map(|step| {
                    let (sine, cosine) = (0.25 * TAU * f64::from(step) / 8.0).sin_cos();
                    [(lower * cosine).max(0.02), high * sine]
                })
                .collect();
            parts.push(shell(&profile, 0.012));
        }
    }
    parts.push(ellipsoid([0.0, 0.0, 0.5 * high], [0.045, 0.045, 0.06]));
}

fn chandelier(draw: &mut Draw, parts: &mut Parts) {
    let num_arms = draw.whole(3, 8);
    let reach = draw.between(0.3, 0.5);
    let cord = draw.between(0.2, 0.5);
    let drop = draw.between(0.08, 0.2);
    let profile = [
        [0.02, -0.12],
        [0.06, -0.05],
        [0.035, 0.05],
        [0.05, 0.12],
        [0.015, 0.2],
        [0.012, 0.2 + cord],
    ];
    parts.push(lathe(&profile));
    parts.push(lathe(&[[0.08, 0.2 + cord], [0.08, 0.23 + cord]]));
    let is_up = draw.chance(0.6);
    let [lower, high] = [draw.between(0.06, 0.1), draw.between(0.07, 0.12)];
    for arm in 0..num_arms {
        let angle = TAU * arm as f64 / num_arms as f64;
        let path = [
            [0.03, 0.0, 0.0],
            [0.4 * reach, 0.0, -drop],
            [0.8 * reach, 0.0, -0.7 * drop],
            [reach, 0.0, 0.0],
        ];
        parts.push(turned(tube(&path, &[0.012], 10), angle));
        let cup = if is_up {
            vec![[0.02, 0.0], [0.6 * lower, 0.3 * high], [lower, high]]
        } else {
            vec![[lower, -high], [0.6 * lower, -0.3 * high], [0.02, 0.0]]
        };
        let cup = changed(shell(&cup, 0.008), |p| add(p, [reach, 0.0, 0.0]));
        parts.push(turned(cup, angle));
        let bulb: Mesh = ellipsoid(
            [reach, 0.0, if is_up { 0.6 * high } else { -0.6 * high }],
            [0.022, 0.022, 0.035],
        );
        parts.push(turned(bulb, angle));
    }
    if draw.chance(0.3) {
        parts.push(cuboid([0.0, 0.0, -0.14], [0.03, 0.03, 0.05]));
    }
}
