//! What surrounds the data of every figure: border, ticks, labels and titles.

use super::axis::Axis;
use super::canvas::{Anchor, Area, Canvas};
use super::colour::{GRID, INK};
use super::font;

/// Heights of capitals, in points.
pub(super) const TITLE_SIZE: f64 = 9.0;
pub(super) const LABEL_SIZE: f64 = 7.0;
/// Blank space between neighbours.
pub(super) const SPACE: f64 = 6.0;
const TICK_LENGTH: f64 = 3.0;
const LINE_WIDTH: f64 = 0.75;

/// The axes of one panel and what they are called; empty names take no room.
pub(super) struct Frame<'a> {
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    pub(super) has_grid: bool,
}

/// Room for a frame's texts around its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The width of a text in points.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    size * font::relative_width(text)
}

/// `size`, or less where the text would be wider than `room`.
pub(super) fn fitted_size(text: &str, size: f64, room: f64) -> f64 {
    size * (room / text_width(text, size).max(1.0)).min(1.0)
}

impl Frame<'_> {
    /// How much room the texts take.
    pub(super) fn margins(&self) -> Margins {
        let row = |text: &str, size: f64| if text.is_empty() { 0.0 } else { size + SPACE };
        let widest = |axis: &Axis| {
            axis.ticks.iter().map(|t| text_width(&t.label, LABEL_SIZE)).fold(0.0, f64::max)
        };
        // The outermost labels of the x axis stand out by half their width.
        let overhang = 0.5 * widest(self.x);
        Margins {
            left: (widest(self.y) + TICK_LENGTH + 5.0 + row(self.y_label, LABEL_SIZE))
                .max(overhang),
            right: overhang,
            top: row(self.title, TITLE_SIZE).max(0.5 * LABEL_SIZE),
            bottom: TICK_LENGTH + 4.0 + LABEL_SIZE + row(self.x_label, LABEL_SIZE),
        }
    }

    /// The lines behind the data.
    pub(super) fn draw_grid(&self, canvas: &mut Canvas, area: Area) {
        if !self.has_grid {
            return;
        }
        for x in self.columns(area) {
            let left = x - 0.5 * LINE_WIDTH;
            canvas.fill(Area { left, width: LINE_WIDTH, ..area }, GRID);
        }
        for y in self.rows(area) {
            let top = y - 0.5 * LINE_WIDTH;
            canvas.fill(Area { top, height: LINE_WIDTH, ..area }, GRID);
        }
    }

    /// Border, ticks and texts around `area`.
    pub(super) fn draw(&self, canvas: &mut Canvas, area: Area) {
        canvas.outline(area, LINE_WIDTH, INK);
        let half = 0.5 * LINE_WIDTH;
        for (tick, x) in self.x.ticks.iter().zip(self.columns(area)) {
            let mark =
                Area { left: x - half, top: area.bottom(), width: LINE_WIDTH, height: TICK_LENGTH };
            canvas.fill(mark, INK);
            let y = area.bottom() + TICK_LENGTH + 3.0 + 0.5 * LABEL_SIZE;
            canvas.text(&tick.label, [x, y], LABEL_SIZE, Anchor::Centre);
        }
        for (tick, y) in self.y.ticks.iter().zip(self.rows(area)) {
            let left = area.left - TICK_LENGTH;
            canvas.fill(Area { left, top: y - half, width: TICK_LENGTH, height: LINE_WIDTH }, INK);
            canvas.text(&tick.label, [left - 3.0, y], LABEL_SIZE, Anchor::Right);
        }
        let margins = self.margins();
        let middle = [area.left + 0.5 * area.width, area.top + 0.5 * area.height];
        let title = [middle[0], area.top - SPACE - 0.5 * TITLE_SIZE];
        let size = fitted_size(self.title, TITLE_SIZE, area.width);
        canvas.text(self.title, title, size, Anchor::Centre);
        let below = [middle[0], area.bottom() + margins.bottom - 0.5 * LABEL_SIZE];
        let size = fitted_size(self.x_label, LABEL_SIZE, area.width);
        canvas.text(self.x_label, below, size, Anchor::Centre);
        let beside = [area.left - margins.left + 0.5 * LABEL_SIZE, middle[1]];
        let size = fitted_size(self.y_label, LABEL_SIZE, area.height);
        canvas.text_upwards(self.y_label, beside, size);
    }

    fn columns(&self, area: Area) -> impl Iterator<Item = f64> {
        self.x.ticks.iter().map(move |tick| area.left + area.width * self.x.position(tick.value))
    }

    fn rows(&self, area: Area) -> impl Iterator<Item = f64> {
        self.y
            .ticks
            .iter()
            .map(move |tick| area.top + area.height * (1.0 - self.y.position(tick.value)))
    }
}
