//! Airplanes: nose along +x, wings along y, z up. Airliners, private jets, fighters, propeller
//! planes, biplanes and gliders.

mod wing;

use super::Parts;
use super::draw::Draw;
use super::solid::{Point, SIDES, add, bar, ellipsoid, loft, outline, rod, tube};
use crate::data::mesh::Mesh;

use wing::{Surface, fin, on_wing, surface, tip_of};

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

/// Both halves of the main wing, with what hangs on it. Returns the right half.
fn wings(draw: &mut Draw, kind: Kind, radius: f64, parts: &mut Parts) -> Surface {
    let (span, chord, taper, sweep, place) = match kind {
        Kind::Airliner => (
            draw.between(0.8, 1.1),
            draw.between(0.30, 0.42),
            draw.between(0.2, 0.35),
            draw.between(0.35, 0.6),
            draw.between(0.12, 0.32),
        ),
        Kind::PrivateJet => (
            draw.between(0.75, 1.0),
            draw.between(0.26, 0.36),
            draw.between(0.25, 0.45),
            draw.between(0.15, 0.4),
            draw.between(0.0, 0.15),
        ),
        Kind::Fighter => {
            let is_delta = draw.chance(0.5);
            let chord = if is_delta { draw.between(0.8, 1.1) } else { draw.between(0.45, 0.65) };
            let taper = if is_delta { draw.between(0.04, 0.15) } else { draw.between(0.25, 0.45) };
            let sweep =
                if is_delta { chord * draw.between(0.7, 0.95) } else { draw.between(0.2, 0.45) };
            (draw.between(0.45, 0.75), chord, taper, sweep, draw.between(0.05, 0.25))
        }
        Kind::Propeller | Kind::Biplane => (
            draw.between(0.95, 1.25),
            draw.between(0.24, 0.36),
            draw.between(0.5, 1.0),
            draw.between(-0.02, 0.08),
            draw.between(0.28, 0.45),
        ),
        Kind::Glider => (
            draw.between(1.4, 1.9),
            draw.between(0.14, 0.2),
            draw.between(0.3, 0.55),
            draw.between(0.0, 0.08),
            draw.between(0.15, 0.3),
        ),
    };
    let height = match kind {
        Kind::Airliner | Kind::PrivateJet => draw.between(-0.75, -0.5),
        Kind::Fighter => draw.between(-0.4, 0.3),
        Kind::Biplane => -0.8,
        _ => draw.pick(&[(0.5, 0.85), (0.4, -0.75)], 0.0),
    };
    let dihedral =
        if kind == Kind::Fighter { draw.between(-0.06, 0.02) } else { draw.between(0.02, 0.13) };
    let thickness =
        if kind == Kind::Fighter { draw.between(0.05, 0.08) } else { draw.between(0.10, 0.14) };
    let wing = Surface {
        root: [place, 0.0, height * radius],
        root_chord: chord,
        tip_chord: chord * taper,
        span,
        sweep,
        rise: dihedral * span,
        thickness,
    };
    // An inner part of larger chord, as airliners have for their landing gear.
    let kink = if kind == Kind::Airliner { draw.between(0.0, 0.18) } else { 0.0 };
    parts.push_pair(surface(wing, kink));
    let tip = tip_of(wing);
    let has_winglets =
        matches!(kind, Kind::Airliner | Kind::PrivateJet | Kind::Glider) && draw.chance(0.45);
    if has_winglets {
        let long = draw.between(0.06, 0.13);
        let winglet = Surface {
            root: tip,
            root_chord: wing.tip_chord,
            tip_chord: wing.tip_chord * draw.between(0.35, 0.6),
            span: long,
            sweep: long * draw.between(0.5, 1.0),
            rise: long * draw.between(0.1, 0.4),
            thickness: 0.09,
        };
        parts.push_pair(fin(winglet));
    }
    match kind {
        Kind::Biplane => upper_wing(draw, wing, parts),
        Kind::Fighter => weapons(draw, wing, radius, parts),
        _ => {}
    }
    if kind == Kind::Propeller && height > 0.0 && draw.chance(0.7) {
        let place = on_wing(wing, 0.45, 0.35);
        parts.push_pair(rod([wing.root[0] - 0.1, radius, -0.6 * radius], place, 0.014, 0.014));
    }
    wing
}

/// The second wing of a biplane, and the struts between them.
fn upper_wing(draw: &mut Draw, wing: Surface, parts: &mut Parts) {
    let gap = draw.between(0.26, 0.36);
    let stagger = draw.between(-0.02, 0.1);
    let upper = Surface { root: add(wing.root, [stagger, 0.0, gap]), ..wing };
    parts.push_pair(surface(upper, 0.0));
    for share in [0.25, draw.between(0.65, 0.85)] {
        for back in [0.25, 0.7] {
            let [a, b] = [wing, upper].map(|half| on_wing(half, share, back));
            parts.push_pair(rod(a, b, 0.012, 0.012));
        }
    }
}

/// What fighters carry: tip tanks, stores under the wing, canards.
fn weapons(draw: &mut Draw, wing: Surface, radius: f64, parts: &mut Parts) {
    let tip = tip_of(wing);
    if draw.chance(0.5) {
        let long = draw.between(0.25, 0.4);
        let middle = add(tip, [-0.5 * wing.tip_chord, 0.0, 0.0]);
        let path = [0.5, 0.35, -0.4, -0.5].map(|x| add(middle, [x * long, 0.0, 0.0]));
        parts.push_pair(tube(&path, &[0.004, 0.016, 0.016, 0.012], 12));
    }
    let num_stores = draw.whole(0, 2);
    for store in 0..num_stores {
        let place = on_wing(wing, 0.35 + 0.25 * store as f64, 0.5);
        let centre = add(place, [0.0, 0.0, -0.055]);
        let path = [0.18, 0.1, -0.12, -0.18].map(|x| add(centre, [x, 0.0, 0.0]));
        parts.push_pair(tube(&path, &[0.004, 0.022, 0.022, 0.008], 12));
        parts.push_pair(bar(centre, place, [0.1, 0.012], [0.1, 0.012]));
    }
    if draw.chance(0.3) {
        let canard = Surface {
            root: [draw.between(0.5, 0.62), 0.0, 0.2 * radius],
            root_chord: 0.18,
            tip_chord: 0.05,
            span: draw.between(0.22, 0.34),
            sweep: 0.13,
            rise: 0.02,
            thickness: 0.06,
        };
        parts.push_pair(surface(canard, 0.0));
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

/// Jets under the wing, beside the tail or in it; propellers on the nose or the wing.
fn engines(draw: &mut Draw, kind: Kind, radius: f64, wing: Surface, parts: &mut Parts) {
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

fn landing_gear(draw: &mut Draw, kind: Kind, radius: f64, wing: Surface, parts: &mut Parts) {
    let wheel = draw.between(0.035, 0.06);
    let ground = -radius - draw.between(0.12, 0.2);
    let side = draw.between(0.12, 0.22);
    let main = [wing.root[0] - 0.4 * wing.root_chord, side, ground + wheel];
    parts.push_pair(super::solid::disc(main, wheel, 0.4 * wheel));
    parts.push_pair(rod([main[0], 0.5 * side.min(radius), -0.5 * radius], main, 0.015, 0.012));
    let nose = if matches!(kind, Kind::Biplane) || draw.chance(0.3) { -0.85 } else { 0.75 };
    let small = 0.7 * wheel;
    let front = [nose, 0.0, if nose > 0.0 { ground + small } else { -0.45 * radius }];
    parts.push(super::solid::disc(front, small, 0.4 * small));
    parts.push(rod([nose, 0.0, 0.0], front, 0.014, 0.012));
}

/// A jet engine's housing, its opening slightly drawn in.
fn nacelle(centre: Point, radius: f64, long: f64) -> Mesh {
    let profile = [(0.5, 0.82), (0.44, 0.98), (0.2, 1.0), (-0.2, 0.92), (-0.42, 0.68), (-0.5, 0.4)];
    let path: Vec<Point> =
        profile.iter().map(|&(x, _)| add(centre, [x * long, 0.0, 0.0])).collect();
    let radii: Vec<f64> = profile.iter().map(|&(_, share)| share * radius).collect();
    tube(&path, &radii, SIDES)
}
