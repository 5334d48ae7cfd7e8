//! Wings, tailplanes and fins.

use crate::data::mesh::Mesh;
use crate::data::shapes::solid::{Point, add, changed, loft};

/// What wings, tailplanes and fins have in common: a tapered, swept plate of airfoil sections.
#[derive(Clone, Copy)]
pub(super) struct Surface {
    /// The leading edge at the root.
    pub(super) root: Point,
    pub(super) root_chord: f64,
    pub(super) tip_chord: f64,
    /// Along y, or along z for a fin.
    pub(super) span: f64,
    /// How far the tip's leading edge lies behind the root's.
    pub(super) sweep: f64,
    /// How far the tip lies above the root (beside it, for a fin).
    pub(super) rise: f64,
    /// Thickness of the section by its chord.
    pub(super) thickness: f64,
}

/// The point of the tip's leading edge.
pub(super) fn tip_of(wing: Surface) -> Point {
    add(wing.root, [-wing.sweep, wing.span, wing.rise])
}

/// A point of the wing: its share of the span, and of the chord from the leading edge.
pub(super) fn on_wing(wing: Surface, share: f64, back: f64) -> Point {
    let chord = wing.root_chord + share * (wing.tip_chord - wing.root_chord);
    add(wing.root, [-share * wing.sweep - back * chord, share * wing.span, share * wing.rise])
}

/// A half wing along +y. `kink` adds to the chord of the inner third, at the trailing edge.
pub(super) fn surface(wing: Surface, kink: f64) -> Mesh {
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
pub(super) fn fin(wing: Surface) -> Mesh {
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
