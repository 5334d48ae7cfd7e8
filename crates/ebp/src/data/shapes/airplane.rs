//! Airplanes: nose along +x, wings along y, z up. Airliners, private jets, fighters, propeller
//! planes, biplanes and gliders.

mod engine;
mod main_wing;
mod wing;

use super::Parts;
use super::draw::Draw;
use super::solid::{Point, SIDES, add, disc, ellipsoid, loft, outline, rod};

use engine::engines;
use main_wing::wings;
use wing::{Surface, fin, surface};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Airliner,
    PrivateJet,
    Fighter,
    Propeller,
    Biplane,
    Glider,
}

/// Draws an airplane about two units long.
pub(super) fn airplane(draw: &mut Draw) -> Parts {
    let kind = draw.pick(
        &[
            (0.40, Kind::Airliner),
            (0.14, Kind::PrivateJet),
            (0.20, Kind::Fighter),
            (0.14, Kind::Propeller),
            (0.06, Kind::Biplane),
            (0.06, Kind::Glider),
        ],
        Kind::Airliner,
    );
    let mut parts = Parts::default();
    let radius = match kind {
        Kind::Airliner => draw.between(0.085, 0.125),
        Kind::PrivateJet => draw.between(0.085, 0.12),
        Kind::Fighter => draw.between(0.075, 0.11),
        Kind::Propeller | Kind::Biplane => draw.between(0.10, 0.14),
        Kind::Glider => draw.between(0.07, 0.09),
    };
    fuselage(draw, kind, radius, &mut parts);
    let wing = wings(draw, kind, radius, &mut parts);
    tail(draw, kind, radius, &mut parts);
    engines(draw, kind, radius, wing, &mut parts);
    if matches!(kind, Kind::Propeller | Kind::Biplane) || draw.chance(0.15) {
        landing_gear(draw, kind, radius, wing, &mut parts);
    }
    parts
}

/// Sections of a fuselage.
const RINGS: usize = 28;

/// A body of round sections from nose (+1) to tail (−1).
fn fuselage(draw: &mut Draw, kind: Kind, radius: f64, parts: &mut Parts) {
    let nose = match kind {
        Kind::Fighter => draw.between(0.5, 0.8),
        Kind::Propeller | Kind::Biplane => draw.between(0.2, 0.3),
        _ => draw.between(0.22, 0.4),
    };
    let bluntness =
        if kind == Kind::Fighter { draw.between(0.7, 0.9) } else { draw.between(0.42, 0.6) };
    let tail = match kind {
        Kind::Fighter => draw.between(0.2, 0.4),
        Kind::Glider | Kind::Propeller | Kind::Biplane => draw.between(0.9, 1.3),
        _ => draw.between(0.55, 0.8),
    };
    let end = match kind {
        Kind::Fighter => draw.between(0.55, 0.75),
        _ => draw.between(0.12, 0.3),
    };
    let upsweep = if kind == Kind::Fighter { 0.0 } else { draw.between(0.3, 0.75) };
    let droop = draw.between(0.0, 0.35);
    let height = draw.between(0.95, 1.15);
    let power =
        if matches!(kind, Kind::Fighter | Kind::Propeller) { draw.between(2.0, 3.0) } else { 2.0 };
    let rings: Vec<Vec<Point>> = (0..=RINGS)
        .map(|ring| {
            // Closer rings at both ends.
            let x = (std::f64::consts::PI * ring as f64 / RINGS as f64).cos();
            let from_nose = ((1.0 - x) / nose).min(1.0);
            let from_tail = ((1.0 + x) / tail).min(1.0);
            let swell = (1.0 - (1.0 - from_nose).powi(2)).max(0.0).powf(bluntness);
            let shrink = end + (1.0 - end) * (1.0 - (1.0 - from_tail).powf(1.6));
            let size = radius * (swell * shrink).max(0.012);
            let lift = radius
                * (upsweep * (1.0 - from_tail).powf(1.5) - droop * (1.0 - from_nose).powi(2));
            outline(SIDES, [size, size * height], power)
                .iter()
                .map(|[y, z]| [x, *y, z + lift])
                .collect()
        })
        .collect();
    parts.push(loft(&rings));
    let has_canopy = match kind {
        Kind::Fighter | Kind::Glider => true,
        Kind::Propeller => draw.chance(0.7),
        Kind::Biplane => draw.chance(0.5),
        _ => false,
    };
    if has_canopy {
        let x = if kind == Kind::Propeller {
            draw.between(0.15, 0.35)
        } else {
            draw.between(0.35, 0.55)
        };
        let long = draw.between(0.16, 0.26);
        let high = draw.between(0.55, 0.85) * radius;
        let wide = draw.between(0.6, 0.85) * radius;
        parts.push(ellipsoid([x, 0.0, 0.72 * radius], [long, wide, high]));
    }
}

/// Fin and tailplane.
fn tail(draw: &mut Draw, kind: Kind, radius: f64, parts: &mut Parts) {
    let is_jet = kind == Kind::Fighter;
    let high = draw.between(0.26, 0.4) * if is_jet { 0.85 } else { 1.0 };
    let chord = draw.between(0.22, 0.34);
    let vertical = Surface {
        root: [-0.98 + chord, 0.0, 0.45 * radius],
        root_chord: chord,
        tip_chord: chord * draw.between(0.35, 0.65),
        span: high,
        sweep: high * draw.between(0.35, 0.95),
        rise: 0.0,
        thickness: 0.10,
    };
    let is_twin = is_jet && draw.chance(0.5);
    let is_v = kind == Kind::Glider && draw.chance(0.3);
    if is_twin {
        let apart = draw.between(0.7, 1.1) * radius;
        let cant = draw.between(0.0, 0.4);
        let one =
            Surface { root: add(vertical.root, [0.0, apart, 0.0]), rise: cant * high, ..vertical };
        parts.push_pair(fin(one));
    } else if !is_v {
        parts.push(fin(vertical));
    }
    let is_t = !is_twin
        && match kind {
            Kind::PrivateJet => draw.chance(0.8),
            Kind::Glider => draw.chance(0.7),
            Kind::Airliner => draw.chance(0.12),
            _ => false,
        };
    let height = if is_t { high } else { draw.between(0.1, 0.4) * radius };
    let chord = draw.between(0.17, 0.26);
    let back = if is_t { vertical.sweep } else { 0.0 };
    let span = draw.between(0.3, 0.42);
    let horizontal = Surface {
        root: [-0.93 + chord - back, 0.0, height + if is_t { 0.45 * radius } else { 0.0 }],
        root_chord: chord,
        tip_chord: chord * draw.between(0.4, 0.7),
        span,
        sweep: if kind == Kind::Propeller { 0.04 } else { span * draw.between(0.25, 0.7) },
        rise: if is_v { span * 0.8 } else { span * draw.between(-0.02, 0.15) },
        thickness: 0.09,
    };
    parts.push_pair(surface(horizontal, 0.0));
}

fn landing_gear(draw: &mut Draw, kind: Kind, radius: f64, wing: Surface, parts: &mut Parts) {
    let wheel = draw.between(0.035, 0.06);
    let ground = -radius - draw.between(0.12, 0.2);
    let side = draw.between(0.12, 0.22);
    let main = [wing.root[0] - 0.4 * wing.root_chord, side, ground + wheel];
    parts.push_pair(disc(main, wheel, 0.4 * wheel));
    parts.push_pair(rod([main[0], 0.5 * side.min(radius), -0.5 * radius], main, 0.015, 0.012));
    let nose = if matches!(kind, Kind::Biplane) || draw.chance(0.3) { -0.85 } else { 0.75 };
    let small = 0.7 * wheel;
    let front = [nose, 0.0, if nose > 0.0 { ground + small } else { -0.45 * radius }];
    parts.push(disc(front, small, 0.4 * small));
    parts.push(rod([nose, 0.0, 0.0], front, 0.014, 0.012));
}
