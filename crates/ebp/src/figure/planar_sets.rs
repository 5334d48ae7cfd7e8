//! Sets of points of the plane side by side, all over the same axes: rows of sets, each row with its
//! name.

use super::colour;
use super::drawing::{Anchor, Area, Drawing, text_width};
use super::frame::{LABEL_SIZE, LINE_WIDTH, OUTER_MARGIN, SPACE};
use super::marker;
use super::theme::Colour;

const CELL: f64 = 56.0;
const GAP: f64 = 4.0;
const RADIUS: f64 = 1.7;

/// A named row of sets.
#[derive(Clone, Debug)]
pub struct SetRow {
    /// What stands before it.
    pub name: String,
    /// The sets, each `[n, 2]`, flat.
    pub sets: Vec<Vec<f32>>,
}

/// Draws the rows below each other; points beyond the range of the first row are left out.
pub fn draw(rows: &[SetRow]) -> Drawing {
    let names = rows.iter().map(|row| text_width(&row.name, LABEL_SIZE)).fold(0.0, f64::max);
    let left = OUTER_MARGIN + names + SPACE;
    let num_columns = rows.iter().map(|row| row.sets.len()).max().unwrap_or(0).max(1);
    let width = left + num_columns as f64 * (CELL + GAP) - GAP + OUTER_MARGIN;
    let height = 2.0 * OUTER_MARGIN + rows.len().max(1) as f64 * (CELL + GAP) - GAP;
    let mut drawing = Drawing::new(width, height);
    // One scale for all cells, by the first row, so that sizes and places can be compared.
    let first = rows.first().map(|row| row.sets.concat()).unwrap_or_default();
    let reach = first.iter().fold(0.0_f32, |most, x| most.max(x.abs())).max(1e-6) * 1.15;
    for (number, row) in rows.iter().enumerate() {
        let top = OUTER_MARGIN + number as f64 * (CELL + GAP);
        let place = [left - SPACE, top + 0.5 * CELL];
        drawing.text(&row.name, place, LABEL_SIZE, Anchor::Right);
        for (column, set) in row.sets.iter().enumerate() {
            let area =
                Area { left: left + column as f64 * (CELL + GAP), top, width: CELL, height: CELL };
            drawing.outline(area, LINE_WIDTH, Colour::Grid);
            for point in set.chunks_exact(2) {
                let at = |x: f32| 0.5 * (1.0 + f64::from(x / reach));
                let place =
                    [area.left + CELL * at(point[0]), area.top + CELL * (1.0 - at(point[1]))];
                let colour = Colour::Fixed(colour::series(number));
                marker::draw(&mut drawing, number, (place, RADIUS), colour, area);
            }
        }
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Theme;
    use crate::figure::tests::{assert_blank_edge, keep};

    #[test]
    fn sets_are_drawn_in_their_colours() {
        let stream = crate::rng::Stream::new(1, "rings");
        let ring = |number| crate::data::PlanarFamily::Rings.draw(stream, number, 16);
        let rows: Vec<SetRow> = ["held-out", "generated"]
            .into_iter()
            .zip([0, 4])
            .map(|(name, start)| SetRow {
                name: name.to_owned(),
                sets: (start..start + 4).map(ring).collect(),
            })
            .collect();
        let drawing = draw(&rows);
        assert_blank_edge(&drawing);
        keep(&drawing, "planar_sets");
        let image = drawing.image(Theme::Light);
        for number in 0..2 {
            let count = image.pixels().filter(|&&pixel| pixel == colour::series(number)).count();
            // 64 dots of some 11 pixels across, less their edges and what overlaps.
            assert!(count > 64 * 50, "{count}");
        }
        draw(&[]);
    }
}
