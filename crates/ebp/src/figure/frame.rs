//! What surrounds the data of every figure: axes, ticks, labels and titles.

use super::axis::Axis;
use super::drawing::{Anchor, Area, Drawing, fitted_size, text_width};
use super::theme::Colour;

/// Sizes of text in points, as journals ask for.
pub(super) const TITLE_SIZE: f64 = 9.0;
pub(super) const LABEL_SIZE: f64 = 8.0;
pub(super) const TICK_SIZE: f64 = 7.0;
/// Blank space between neighbours, and around a figure.
pub(super) const SPACE: f64 = 6.0;
pub(super) const OUTER_MARGIN: f64 = 6.0;
/// Of axes, ticks and borders.
pub(super) const LINE_WIDTH: f64 = 0.6;
pub(super) const TICK_LENGTH: f64 = 3.0;
/// Between a tick and its number.
const TICK_GAP: f64 = 2.5;
const MINOR_LENGTH: f64 = 1.75;
/// Panels that are less wide have no numbers at their corners.
const NARROW: f64 = 60.0;

/// The axes of one panel and what they are called; empty names take no room.
pub(super) struct Frame<'a> {
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    /// Lines to follow behind the data, and axes at the left and below alone; otherwise a border.
    pub(super) has_grid: bool,
    /// Whether each axis has its ticks and numbers.
    pub(super) has_numbers: [bool; 2],
}

/// Room for a frame's texts around its data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame<'_> {
    /// How much room the texts take.
    pub(super) fn margins(&self) -> Margins {
        let row = |text: &str, size: f64, gap: f64| if text.is_empty() { 0.0 } else { size + gap };
        let widest = |axis: &Axis| {
            axis.ticks.iter().map(|t| text_width(&t.label, TICK_SIZE)).fold(0.0, f64::max)
        };
        let [x_numbers, y_numbers] = self.has_numbers;
        // The outermost labels of the x axis stand out by half their width.
        let overhang = if x_numbers { 0.5 * widest(self.x) } else { 0.0 };
        let numbers = if y_numbers { TICK_LENGTH + TICK_GAP + widest(self.y) } else { 0.0 };
        let below = if x_numbers { TICK_LENGTH + TICK_GAP + TICK_SIZE } else { 0.0 };
        Margins {
            left: (numbers + row(self.y_label, LABEL_SIZE, 4.0)).max(overhang).max(LINE_WIDTH),
            right: overhang.max(LINE_WIDTH),
            top: row(self.title, TITLE_SIZE, 5.0).max(if y_numbers {
                0.5 * TICK_SIZE
            } else {
                LINE_WIDTH
            }),
            bottom: below.max(LINE_WIDTH) + row(self.x_label, LABEL_SIZE, 3.0),
        }
    }

    /// The lines behind the data.
    pub(super) fn draw_grid(&self, drawing: &mut Drawing, area: Area) {
        if !self.has_grid {
            return;
        }
        for x in self.columns(area) {
            drawing.rule([[x, area.top], [x, area.bottom()]], LINE_WIDTH, Colour::Grid);
        }
        for y in self.rows(area) {
            drawing.rule([[area.left, y], [area.right(), y]], LINE_WIDTH, Colour::Grid);
        }
    }

    /// Axes, ticks and texts around `area`; the title stands `above` it.
    pub(super) fn draw(&self, drawing: &mut Drawing, area: Area, above: f64) {
        drawing.data = Some(area);
        let (bottom, half) = (area.bottom(), 0.5 * LINE_WIDTH);
        let [x_numbers, y_numbers] = self.has_numbers;
        if self.has_grid {
            let left = [[area.left, area.top], [area.left, bottom + half]];
            drawing.rule(left, LINE_WIDTH, Colour::Ink);
            let below = [[area.left - half, bottom], [area.right(), bottom]];
            drawing.rule(below, LINE_WIDTH, Colour::Ink);
        } else {
            drawing.outline(area, LINE_WIDTH, Colour::Ink);
        }
        if x_numbers {
            self.draw_columns(drawing, area);
        }
        if y_numbers {
            self.draw_rows(drawing, area);
        }
        let margins = self.margins();
        let [x, y] = area.middle();
        let title = [x, area.top - above - 5.0 - 0.5 * TITLE_SIZE];
        let size = fitted_size(self.title, TITLE_SIZE, area.width + margins.right);
        drawing.text(self.title, title, size, Anchor::Centre);
        let below = [x, bottom + margins.bottom - 0.5 * LABEL_SIZE];
        let size = fitted_size(self.x_label, LABEL_SIZE, area.width);
        drawing.text(self.x_label, below, size, Anchor::Centre);
        let beside = [area.left - margins.left + 0.5 * LABEL_SIZE, y];
        let size = fitted_size(self.y_label, LABEL_SIZE, area.height);
        drawing.text_upwards(self.y_label, beside, size, Anchor::Centre);
    }

    /// Ticks and numbers of the x axis.
    fn draw_columns(&self, drawing: &mut Drawing, area: Area) {
        let bottom = area.bottom();
        for (tick, x) in self.x.ticks.iter().zip(self.columns(area)) {
            drawing.rule([[x, bottom], [x, bottom + TICK_LENGTH]], LINE_WIDTH, Colour::Ink);
            let overhang = 0.5 * text_width(&tick.label, TICK_SIZE);
            // In narrow panels the outermost numbers would run into those of their neighbours.
            let is_inside = x - overhang >= area.left && x + overhang <= area.right();
            if is_inside || area.width >= NARROW {
                let place = [x, bottom + TICK_LENGTH + TICK_GAP + 0.5 * TICK_SIZE];
                drawing.text(&tick.label, place, TICK_SIZE, Anchor::Centre);
            }
        }
        for value in &self.x.minor {
            let x = area.left + area.width * self.x.position(*value);
            drawing.rule([[x, bottom], [x, bottom + MINOR_LENGTH]], 0.7 * LINE_WIDTH, Colour::Ink);
        }
    }

    /// The same of the y axis.
    fn draw_rows(&self, drawing: &mut Drawing, area: Area) {
        for (tick, y) in self.y.ticks.iter().zip(self.rows(area)) {
            let left = area.left - TICK_LENGTH;
            drawing.rule([[left, y], [area.left, y]], LINE_WIDTH, Colour::Ink);
            drawing.text(&tick.label, [left - TICK_GAP, y], TICK_SIZE, Anchor::Right);
        }
        for value in &self.y.minor {
            let y = area.top + area.height * (1.0 - self.y.position(*value));
            let ends = [[area.left - MINOR_LENGTH, y], [area.left, y]];
            drawing.rule(ends, 0.7 * LINE_WIDTH, Colour::Ink);
        }
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

/// Where a pair of numbers lies in an area.
pub(super) fn place_in(area: Area, x: &Axis, y: &Axis, [px, py]: [f64; 2]) -> [f64; 2] {
    [area.left + area.width * x.position(px), area.top + area.height * (1.0 - y.position(py))]
}
