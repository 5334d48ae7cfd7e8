//! Airplanes: nose along +x, wings along y, z up. Airliners, private jets, fighters, propeller
//! planes, biplanes and gliders.

use super::Parts;
use super::draw::Draw;
use super::solid::{
    Point, SIDES, add, bar, changed, ellipsoid, loft, mirrored, outline, rod, tube,
};
use crate::data::mesh::Mesh;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Airliner,
    PrivateJet,
    Fighter,
    Propeller,
    Biplane,
    Glider,
}

/// What wings, tailplanes and fins have in common: a tapered, swept plate of airfoil sections.
#[derive(Clone, Copy)]
struct Surface {
    /// The leading edge at the root.
    root: Point,
    root_chord: f64,
    tip_chord: f64,
    /// Along y, or along z for a fin.
    span: f64,
    /// How far the tip's leading edge lies behind the root's.
    sweep: f64,
    /// How far the tip lies above the root (beside it, for a fin).
    rise: f64,
    /// Thickness of the section by its chord.
    thickness: f64,
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
    const RINGS: usize = 28;
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
    push_pair(surface(wing, kink), parts);
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
        push_pair(fin(winglet), parts);
    }
    if kind == Kind::Biplane {
        let gap = draw.between(0.26, 0.36);
        let stagger = draw.between(-0.02, 0.1);
        let upper = Surface { root: add(wing.root, [stagger, 0.0, gap]), ..wing };
        push_pair(surface(upper, 0.0), parts);
        for share in [0.25, draw.between(0.65, 0.85)] {
            for back in [0.25, 0.7] {
                let [a, b] = [wing, upper].map(|half| on_wing(half, share, back));
                push_pair(rod(a, b, 0.012, 0.012), parts);
            }
        }
    }
    if kind == Kind::Fighter {
        if draw.chance(0.5) {
            let long = draw.between(0.25, 0.4);
            let middle = add(tip, [-0.5 * wing.tip_chord, 0.0, 0.0]);
            let path = [0.5, 0.35, -0.4, -0.5].map(|x| add(middle, [x * long, 0.0, 0.0]));
            push_pair(tube(&path, &[0.004, 0.016, 0.016, 0.012], 12), parts);
        }
        let num_stores = draw.whole(0, 2);
        for store in 0..num_stores {
            let place = on_wing(wing, 0.35 + 0.25 * store as f64, 0.5);
            let centre = add(place, [0.0, 0.0, -0.055]);
            let path = [0.18, 0.1, -0.12, -0.18].map(|x| add(centre, [x, 0.0, 0.0]));
            push_pair(tube(&path, &[0.004, 0.022, 0.022, 0.008], 12), parts);
            push_pair(bar(centre, place, [0.1, 0.012], [0.1, 0.012]), parts);
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
            push_pair(surface(canard, 0.0), parts);
        }
    }
    if kind == Kind::Propeller && height > 0.0 && draw.chance(0.7) {
        let place = on_wing(wing, 0.45, 0.35);
        push_pair(rod([wing.root[0] - 0.1, radius, -0.6 * radius], place, 0.014, 0.014), parts);
    }
    wing
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
        push_pair(fin(one), parts);
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
    push_pair(surface(horizontal, 0.0), parts);
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
                push_pair(nacelle(centre, size, long), parts);
                let pylon = bar(
                    add(centre, [-0.3 * long, 0.0, 0.5 * size]),
                    add(under, [-0.08, 0.0, 0.0]),
                    [0.5 * long, 0.25 * size],
                    [0.4 * long, 0.2 * size],
                );
                push_pair(pylon, parts);
            }
        }
        Kind::PrivateJet => {
            let size = 1.05 * size;
            let centre = [draw.between(-0.6, -0.45), radius + 1.05 * size, 0.35 * radius];
            push_pair(nacelle(centre, size, long), parts);
            let pylon = bar(
                [centre[0], 0.5 * radius, 0.35 * radius],
                centre,
                [0.4 * long, 0.03],
                [0.4 * long, 0.03],
            );
            push_pair(pylon, parts);
        }
        Kind::Fighter => {
            let is_twin = draw.chance(0.5);
            let end = -1.0 - draw.between(0.02, 0.1);
            let nozzle = radius * if is_twin { 0.55 } else { 0.72 };
            let side = if is_twin { 0.6 * radius } else { 0.0 };
            let path = [[-0.7, side, 0.0], [-0.95, side, 0.0], [end, side, 0.0]];
            let pipe = tube(&path, &[nozzle, nozzle, 0.75 * nozzle], SIDES);
            if is_twin {
                push_pair(pipe, parts);
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
            push_pair(intake, parts);
        }
        Kind::Propeller | Kind::Biplane => {
            if kind == Kind::Propeller && draw.chance(0.35) {
                let centre = add(on_wing(wing, 0.3, 0.0), [0.08, 0.0, 0.0]);
                let path = [0.16, 0.1, -0.1, -0.34].map(|x| add(centre, [x, 0.0, 0.0]));
                push_pair(tube(&path, &[0.03, 0.06, 0.065, 0.02], SIDES), parts);
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
    let mut push = |mesh: Mesh| if is_pair { push_pair(mesh, parts) } else { parts.push(mesh) };
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
    push_pair(super::solid::disc(main, wheel, 0.4 * wheel), parts);
    push_pair(rod([main[0], 0.5 * side.min(radius), -0.5 * radius], main, 0.015, 0.012), parts);
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

/// The point of the tip's leading edge.
fn tip_of(wing: Surface) -> Point {
    add(wing.root, [-wing.sweep, wing.span, wing.rise])
}

/// A point of the wing: its share of the span, and of the chord from the leading edge.
fn on_wing(wing: Surface, share: f64, back: f64) -> Point {
    let chord = wing.root_chord + share * (wing.tip_chord - wing.root_chord);
    add(wing.root, [-share * wing.sweep - back * chord, share * wing.span, share * wing.rise])
}

/// A half wing along +y. `kink` adds to the chord of the inner third, at the trailing edge.
fn surface(wing: Surface, kink: f64) -> Mesh {
    let shares = [0.0, 0.33, 0.66, 0.97, 1.0];
    let rings: Vec<Vec<Point>> = shares
        .iter()
        .map(|&share: &f64| {
            let chord = wing.root_chord + share * (wing.tip_chord - wing.root_chord);
            let longer = chord + kink * (1.0 - share / 0.33).max(0.0);
            let thickness = wing.thickness * chord * if share >= 1.0 { 0.35 } else { 1.0 };
            let lead = on_wing(wing, share, 0.0);
            section(longer, thickness).iter().map(|[x, z]| add(lead, [-x, 0.0, *z])).collect()
        })
        .collect();
    loft(&rings)
}

/// The same standing up.
fn fin(wing: Surface) -> Mesh {
    let flat = surface(Surface { root: [0.0; 3], ..wing }, 0.0);
    changed(flat, |[x, y, z]| add(wing.root, [x, z, y]))
}

/// A symmetric airfoil: thickness 5 t (0.2969 √x − 0.126 x − 0.3516 x² + 0.2843 x³ − 0.1036 x⁴),
/// the NACA four-digit series with a closed trailing edge.
fn section(chord: f64, thickness: f64) -> Vec<[f64; 2]> {
    let places = [1.0_f64, 0.8, 0.55, 0.3, 0.12, 0.03, 0.0];
    let half = |x: f64| {
        let body = 0.2969 * x.sqrt() - 0.126 * x - 0.3516 * x * x;
        5.0 * thickness * (body + 0.2843 * x.powi(3) - 0.1036 * x.powi(4))
    };
    let upper = places.iter().map(|&x| [x * chord, half(x)]);
    let lower = places.iter().rev().skip(1).map(|&x| [x * chord, -half(x)]);
    upper.chain(lower).collect()
}

/// The part and its mirror image.
fn push_pair(mesh: Mesh, parts: &mut Parts) {
    parts.push(mirrored(&mesh));
    parts.push(mesh);
}
