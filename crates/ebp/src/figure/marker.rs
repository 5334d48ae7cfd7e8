//! The dots of groups: a shape for each, so that colours are not the only sign.

use super::drawing::{Area, Drawing, Mark};
use super::theme::Colour;

/// Half the width of a dot, in points.
pub(super) const RADIUS: f64 = 2.3;
const BORDER: f64 = 0.4;

/// Draws a dot of group `number`, if its middle lies in `clip`: a circle, a square, a triangle, a
/// diamond, a triangle on its tip.
pub(super) fn draw(
    drawing: &mut Drawing,
    number: usize,
    ([x, y], radius): ([f64; 2], f64),
    colour: Colour,
    clip: Area,
) {
    let inside = (clip.left..=clip.right()).contains(&x) && (clip.top..=clip.bottom()).contains(&y);
    // Corners at shares of the radius, of about the same area as the circle.
    let corners: &[[f64; 2]] = match number % 5 {
        0 => &[],
        1 => &[[-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]],
        2 => &[[0.0, -1.3], [1.18, 0.8], [-1.18, 0.8]],
        3 => &[[0.0, -1.25], [1.25, 0.0], [0.0, 1.25], [-1.25, 0.0]],
        _ => &[[0.0, 1.3], [1.18, -0.8], [-1.18, -0.8]],
    };
    if corners.is_empty() {
        drawing.dot([x, y], radius, colour, (BORDER, Colour::Paper), clip);
    } else if inside {
        let contour = corners.iter().map(|[a, b]| [x + radius * a, y + radius * b]).collect();
        let border = (BORDER, Colour::Paper);
        drawing.marks.push(Mark::Polygon { contour, paint: colour.into(), border });
    }
}
