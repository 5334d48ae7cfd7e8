//! Backs of chairs: panels, slats, rungs, hoops.

use std::f64::consts::TAU;

use super::{Frame, leg};
use crate::data::shapes::Parts;
use crate::data::shapes::draw::Draw;
use crate::data::shapes::solid::{
    Point, add, bar, changed, cuboid, outline, plate, rod, rounded_rectangle, tilted, tube,
};

pub(super) fn back(draw: &mut Draw, frame: &Frame, is_soft: bool, parts: &mut Parts) {
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
        pieces.push_pair(leg(frame, add(side, [0.0, 0.0, low]), add(side, [0.0, 0.0, top]), 0.8));
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
            pieces.push(changed(panel, |[a, y, b]| [x - b, y, middle + a]));
            if gap > 0.0 {
                pieces.push_pair(leg(frame, [x, 0.6 * wide, low], [x, 0.6 * wide, middle], 1.0));
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
    for piece in pieces.solids {
        let bent =
            changed(piece, |[px, y, z]| [px - curve + 2.0 * curve * (y / wide).powi(2), y, z]);
        parts.push(tilted(bent, [x, 0.0, frame.top], lean));
    }
}
