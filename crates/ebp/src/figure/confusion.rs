//! A confusion matrix: true classes in rows, predicted ones in columns, counts in the cells.
//!
//! A cell is the darker the larger its share of its row. The colours stay light enough for the
//! numbers to be read. To the right of a row stands the share that was found.

use image::{Rgb, RgbImage};

use super::canvas::{Anchor, Area, Canvas};
use super::colour::{self, GRID, INK, WHITE};
use super::frame::{LABEL_SIZE, SPACE, TITLE_SIZE, fitted_size, text_width};
use crate::metric::classify::Confusion;

const OUTER_MARGIN: f64 = 10.0;
/// Sides of a cell: wide enough for four digits, less where there are many classes.
const LARGEST_CELL: f64 = 30.0;
const SMALLEST_CELL: f64 = 15.0;
const MATRIX: f64 = 360.0;
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
    /// Pixels per point.
    pub scale: u32,
}

impl ConfusionPicture<'_> {
    /// Draws it.
    pub fn draw(&self) -> RgbImage {
        let num_classes = self.names.len().max(1);
        let cell = (MATRIX / num_classes as f64).clamp(SMALLEST_CELL, LARGEST_CELL);
        let side = cell * num_classes as f64;
        let longest =
            self.names.iter().map(|name| text_width(name, LABEL_SIZE)).fold(0.0, f64::max);
        let found_width = text_width("100.0 %", LABEL_SIZE) + 2.0 * SPACE;
        let area = Area {
            left: OUTER_MARGIN + LABEL_SIZE + 2.0 * SPACE + longest,
            top: OUTER_MARGIN + TITLE_SIZE + LABEL_SIZE + 2.5 * SPACE,
            width: side,
            height: side,
        };
        let width = area.right() + found_width + OUTER_MARGIN;
        let height = area.bottom() + longest + LABEL_SIZE + 3.0 * SPACE + OUTER_MARGIN;
        let mut canvas = Canvas::new(width, height, self.scale);
        let middle = [area.left + 0.5 * side, area.top + 0.5 * side];
        let size = fitted_size(&self.title, TITLE_SIZE, width - 2.0 * OUTER_MARGIN);
        canvas.text(&self.title, [middle[0], OUTER_MARGIN + 0.5 * size], size, Anchor::Centre);
        self.draw_cells(&mut canvas, area, cell);
        self.draw_names(&mut canvas, area, cell);
        let beside = [OUTER_MARGIN + 0.5 * LABEL_SIZE, middle[1]];
        canvas.text_upwards("true class", beside, LABEL_SIZE);
        let below = [middle[0], height - OUTER_MARGIN - 0.5 * LABEL_SIZE];
        canvas.text("predicted class", below, LABEL_SIZE, Anchor::Centre);
        canvas.into_image()
    }

    fn draw_cells(&self, canvas: &mut Canvas, area: Area, cell: f64) {
        let num_classes = self.names.len();
        for truth in 0..num_classes {
            let total: u64 = (0..num_classes).map(|p| self.confusion.count(truth, p)).sum();
            for predicted in 0..num_classes {
                let count = self.confusion.count(truth, predicted);
                let place = Area {
                    left: area.left + cell * predicted as f64,
                    top: area.top + cell * truth as f64,
                    width: cell,
                    height: cell,
                };
                let share = count as f64 / total.max(1) as f64;
                // Mistakes take another colour, by the root, so that rare ones are seen as well.
                let (full, depth) = if truth == predicted { (0, share) } else { (1, share.sqrt()) };
                canvas.fill(place, tinted(colour::series(full), DARKEST * depth));
                canvas.outline(place, 0.4, GRID);
                if count > 0 {
                    let text = count.to_string();
                    let size = fitted_size(&text, LABEL_SIZE, cell - 4.0);
                    let middle = [place.left + 0.5 * cell, place.top + 0.5 * cell];
                    canvas.text(&text, middle, size, Anchor::Centre);
                }
            }
        }
        canvas.outline(area, 0.75, INK);
    }

    fn draw_names(&self, canvas: &mut Canvas, area: Area, cell: f64) {
        let heading = [area.right() + SPACE, area.top - SPACE - 0.5 * LABEL_SIZE];
        canvas.text("found", heading, LABEL_SIZE, Anchor::Left);
        for (number, name) in self.names.iter().enumerate() {
            let centre = cell * (number as f64 + 0.5);
            let row = area.top + centre;
            canvas.text(name, [area.left - SPACE, row], LABEL_SIZE, Anchor::Right);
            let below = area.bottom() + SPACE + 0.5 * text_width(name, LABEL_SIZE);
            canvas.text_upwards(name, [area.left + centre, below], LABEL_SIZE);
            let found = self.confusion.recall(number);
            if !found.is_nan() {
                let text = format!("{:.1} %", 100.0 * found);
                canvas.text(&text, [area.right() + SPACE, row], LABEL_SIZE, Anchor::Left);
            }
        }
    }
}

/// White with a share of a colour.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
fn tinted(full: Rgb<u8>, share: f64) -> Rgb<u8> {
    let channel = |c: usize| {
        (f64::from(WHITE.0[c]) * (1.0 - share) + f64::from(full.0[c]) * share).round() as u8
    };
    Rgb([channel(0), channel(1), channel(2)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::save;

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
        let picture = ConfusionPicture { title, names: &names, confusion: &confusion, scale: 2 };
        let image = picture.draw();
        let (width, height) = image.dimensions();
        let edge = (0..width)
            .flat_map(|x| [(x, 0), (x, height - 1)])
            .chain((0..height).flat_map(|y| [(0, y), (width - 1, y)]));
        for (x, y) in edge {
            assert_eq!(*image.get_pixel(x, y), WHITE);
        }
        if let Some(keep) = std::env::var_os("EBP_PICTURES") {
            save(&image, &std::path::Path::new(&keep).join("confusion.png")).expect("written");
        }
    }
}
