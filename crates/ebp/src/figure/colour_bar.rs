//! A scale of colours with its numbers and its name.

use image::RgbImage;

use super::axis::Axis;
use super::colour::viridis;
use super::drawing::{Anchor, Area, Drawing, fitted_size, text_width};
use super::frame::{LABEL_SIZE, LINE_WIDTH, SPACE, TICK_LENGTH, TICK_SIZE};
use super::theme::Colour;

const WIDTH: f64 = 7.0;
/// Between a tick and its number.
const GAP: f64 = 2.0;
/// Steps of colour.
const STEPS: u32 = 128;

/// The room that it takes beside data: gap, bar, ticks, numbers and name.
pub(super) fn room(values: &Axis, label: &str) -> f64 {
    let name = if label.is_empty() { 0.0 } else { 3.0 + LABEL_SIZE };
    SPACE + WIDTH + TICK_LENGTH + GAP + numbers(values) + name
}

fn numbers(values: &Axis) -> f64 {
    values.ticks.iter().map(|tick| text_width(&tick.label, TICK_SIZE)).fold(0.0, f64::max)
}

/// Draws it to the right of `x`, from `top` down to `bottom`.
pub(super) fn draw(drawing: &mut Drawing, values: &Axis, label: &str, x: f64, rows: [f64; 2]) {
    let [top, bottom] = rows;
    let area = Area { left: x + SPACE, top, width: WIDTH, height: bottom - top };
    let shade = |_, row| viridis(1.0 - (f64::from(row) + 0.5) / f64::from(STEPS));
    drawing.picture(area, RgbImage::from_fn(1, STEPS, shade), true);
    drawing.outline(area, LINE_WIDTH, Colour::Ink);
    for tick in &values.ticks {
        let y = top + area.height * (1.0 - values.position(tick.value));
        let end = area.right() + TICK_LENGTH;
        drawing.rule([[area.right(), y], [end, y]], LINE_WIDTH, Colour::Ink);
        drawing.text(&tick.label, [end + GAP, y], TICK_SIZE, Anchor::Left);
    }
    let name = x + room(values, label) - 0.5 * LABEL_SIZE;
    let size = fitted_size(label, LABEL_SIZE, area.height);
    drawing.text_upwards(label, [name, area.middle()[1]], size, Anchor::Centre);
}
