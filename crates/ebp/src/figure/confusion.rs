//! A confusion matrix: true classes in rows, predicted ones in columns, counts in the cells.
//!
//! A cell is the darker the larger its share of its row. The colours stay light enough for the
//! numbers to be read. To the right of a row stands the share that was found.

use super::colour;
use super::drawing::{Anchor, Area, Drawing, Paint, fitted_size, text_width};
use super::frame::{LABEL_SIZE, LINE_WIDTH, OUTER_MARGIN, SPACE, TICK_SIZE, TITLE_SIZE};
use super::theme::Colour;
use crate::metric::classify::Confusion;

/// Sides of a cell: wide enough for four digits, less where there are many classes.
const LARGEST_CELL: f64 = 24.0;
const SMALLEST_CELL: f64 = 11.0;
const MATRIX: f64 = 320.0;
/// The share of full colour in a cell that holds its whole row.
const DARKEST: f64 = 0.62;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct ConfusionPicture<'a> {
    /// What stands above it.
    pub title: String,
    /// The names of the classes.
    pub names: &'a [String],
    /// The counts.
    pub confusion: &'a Confusion,
}

impl ConfusionPicture<'_> {
    /// Draws it.
    pub fn draw(&self) -> Drawing {
        let num_classes = self.names.len().max(1);
        let cell = (MATRIX / num_classes as f64).clamp(SMALLEST_CELL, LARGEST_CELL);
        let side = cell * num_classes as f64;
        let longest = self.names.iter().map(|name| text_width(name, TICK_SIZE)).fold(0.0, f64::max);
        let found_width = text_width("100.0 %", TICK_SIZE) + SPACE;
        let area = Area {
            left: OUTER_MARGIN + LABEL_SIZE + SPACE + longest + SPACE,
            top: OUTER_MARGIN + TITLE_SIZE + TICK_SIZE + 1.5 * SPACE,
            width: side,
            height: side,
        };
        let width = area.right() + found_width + OUTER_MARGIN;
        let height = area.bottom() + longest + LABEL_SIZE + 2.0 * SPACE + OUTER_MARGIN;
        let mut drawing = Drawing::new(width, height);
        let middle = area.middle();
        let size = fitted_size(&self.title, TITLE_SIZE, width - 2.0 * OUTER_MARGIN);
        let half = 0.5 * text_width(&self.title, size) + OUTER_MARGIN;
        let title = [middle[0].min(width - half).max(half), OUTER_MARGIN + 0.5 * TITLE_SIZE];
        drawing.text(&self.title, title, size, Anchor::Centre);
        self.draw_cells(&mut drawing, area, cell);
        self.draw_names(&mut drawing, area, cell);
        let beside = [OUTER_MARGIN + 0.5 * LABEL_SIZE, middle[1]];
        drawing.text_upwards("true class", beside, LABEL_SIZE, Anchor::Centre);
        let below = [middle[0], height - OUTER_MARGIN - 0.5 * LABEL_SIZE];
        drawing.text("predicted class", below, LABEL_SIZE, Anchor::Centre);
        drawing.data = Some(area);
        drawing
    }

    fn draw_cells(&self, drawing: &mut Drawing, area: Area, cell: f64) {
        let num_classes = self.names.len();
        for truth in 0..num_classes {
            let total: u64 = (0..num_classes).map(|p| self.confusion.count(truth, p)).sum();
            for predicted in 0..num_classes {
                let count = self.confusion.count(truth, predicted);
                if count == 0 {
                    continue;
                }
                let place = Area {
                    left: area.left + cell * predicted as f64,
                    top: area.top + cell * truth as f64,
                    width: cell,
                    height: cell,
                };
                let share = count as f64 / total.max(1) as f64;
                // Mistakes take another colour, by the root, so that rare ones are seen as well.
                let (full, depth) = if truth == predicted { (0, share) } else { (1, share.sqrt()) };
                let colour = Colour::Fixed(colour::series(full));
                drawing.fill(place, Paint { colour, opacity: DARKEST * depth });
                let text = count.to_string();
                let size = fitted_size(&text, TICK_SIZE, cell - 2.0);
                drawing.text(&text, place.middle(), size, Anchor::Centre);
            }
        }
        for line in 1..num_classes {
            let [x, y] = [area.left, area.top].map(|start| start + cell * line as f64);
            drawing.rule([[x, area.top], [x, area.bottom()]], 0.3, Colour::Grid);
            drawing.rule([[area.left, y], [area.right(), y]], 0.3, Colour::Grid);
        }
        drawing.outline(area, LINE_WIDTH, Colour::Ink);
    }

    fn draw_names(&self, drawing: &mut Drawing, area: Area, cell: f64) {
        let heading = [area.right() + SPACE, area.top - 0.5 * SPACE - 0.5 * TICK_SIZE];
        drawing.text("found", heading, TICK_SIZE, Anchor::Left);
        for (number, name) in self.names.iter().enumerate() {
            let centre = cell * (number as f64 + 0.5);
            let row = area.top + centre;
            drawing.text(name, [area.left - SPACE, row], TICK_SIZE, Anchor::Right);
            let below = [area.left + centre, area.bottom() + SPACE];
            drawing.text_upwards(name, below, TICK_SIZE, Anchor::Right);
            let found = self.confusion.recall(number);
            if !found.is_nan() {
                let text = format!("{:.1} %", 100.0 * found);
                drawing.text(&text, [area.right() + SPACE, row], TICK_SIZE, Anchor::Left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::{assert_blank_edge, keep};

    #[test]
    fn a_matrix_is_drawn_with_a_blank_edge() {
        let names: Vec<String> =
            ["bathtub", "bed", "chair", "desk", "dresser", "monitor"].map(str::to_owned).to_vec();
        let mut confusion = Confusion::new(names.len());
        for truth in 0..names.len() {
            confusion.add(std::iter::repeat_n((truth, truth), 90 + 300 * truth)).expect("a class");
            confusion.add(std::iter::repeat_n((truth, (truth * 5 + 2) % 6), 9)).expect("a class");
        }
        let title = format!("accuracy {:.1} %", 100.0 * confusion.accuracy());
        let drawing = ConfusionPicture { title, names: &names, confusion: &confusion }.draw();
        assert_blank_edge(&drawing);
        keep(&drawing, "confusion");
    }
}
