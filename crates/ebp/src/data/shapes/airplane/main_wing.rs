//! The main wing, and what hangs on it.

use super::Kind;
use super::wing::{Surface, fin, on_wing, surface, tip_of};
use crate::data::shapes::Parts;
use crate::data::shapes::draw::Draw;
use crate::data::shapes::solid::{add, bar, rod, tube};

/// Both halves of the main wing, with what hangs on it. Returns the right half.
pub(super) fn wings(draw: &mut Draw, kind: Kind, radius: f64, parts: &mut Parts) -> Surface {
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
