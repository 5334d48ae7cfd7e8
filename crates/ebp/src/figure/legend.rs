//! Legends: what lines, fills and dots are called. They stand above the data in one row, or beside them
//! where that would be too long, and never on them.

use super::colour;
use super::drawing::{Anchor, Area, Drawing, Paint, text_width};
use super::frame::{LINE_WIDTH, SPACE, TICK_SIZE};
use super::marker;
use super::theme::Colour;

/// Width of what is shown before a name, and the height of a row.
const SAMPLE: f64 = 18.0;
const PATCH: f64 = 8.0;
const ROW: f64 = 11.0;
/// Between a sample and its name, and between neighbours in a row.
const GAP: f64 = 4.0;
const BETWEEN: f64 = 12.0;

/// What a name belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// A line of a width.
    Line { paint: Paint, width: f64, dash: &'static [f64] },
    /// A fill, with a border of its colour or without.
    Patch { paint: Paint, has_border: bool },
    /// The dots of a group.
    Marker { number: usize, colour: Colour },
    /// Nothing: a note.
    Nothing,
}

impl Sample {
    fn width(self) -> f64 {
        match self {
            Self::Line { .. } => SAMPLE + GAP,
            Self::Patch { .. } => PATCH + GAP,
            Self::Marker { .. } => 2.0 * marker::RADIUS + GAP,
            Self::Nothing => 0.0,
        }
    }
}

/// What is shown and what it is called, in order.
#[derive(Debug, Default)]
pub(super) struct Legend {
    pub(super) entries: Vec<(Sample, String)>,
}

impl Legend {
    fn widths(&self) -> impl Iterator<Item = f64> {
        self.entries.iter().map(|(sample, name)| sample.width() + text_width(name, TICK_SIZE))
    }

    fn is_above(&self, room: f64) -> bool {
        let gaps = BETWEEN * self.entries.len().saturating_sub(1) as f64;
        self.widths().sum::<f64>() + gaps <= room
    }

    /// The height that it takes above data of a width.
    pub(super) fn above(&self, room: f64) -> f64 {
        if !self.entries.is_empty() && self.is_above(room) { ROW + 2.0 } else { 0.0 }
    }

    /// The width that it takes beside them.
    pub(super) fn beside(&self, room: f64) -> f64 {
        if self.is_above(room) {
            return 0.0;
        }
        2.0 * SPACE + self.widths().fold(0.0, f64::max)
    }

    /// Draws it above or beside the data.
    pub(super) fn draw(&self, drawing: &mut Drawing, area: Area) {
        if self.is_above(area.width) {
            let mut left = area.left;
            for ((sample, name), width) in self.entries.iter().zip(self.widths()) {
                draw(drawing, (*sample, name), [left, area.top - 2.0 - 0.5 * ROW]);
                left += width + BETWEEN;
            }
            return;
        }
        let left = area.right() + 2.0 * SPACE;
        for (row, (sample, name)) in self.entries.iter().enumerate() {
            draw(drawing, (*sample, name), [left, area.top + ROW * (row as f64 + 0.5)]);
        }
    }
}

fn draw(drawing: &mut Drawing, (sample, name): (Sample, &str), [left, y]: [f64; 2]) {
    let everywhere = Area { left: 0.0, top: 0.0, width: f64::MAX, height: f64::MAX };
    match sample {
        Sample::Line { paint, width, dash } => {
            drawing.polyline(&[[left, y], [left + SAMPLE, y]], width, (paint, dash), everywhere);
        }
        Sample::Patch { paint, has_border } => {
            let area = Area { left, top: y - 0.5 * PATCH, width: PATCH, height: PATCH };
            drawing.fill(area, paint);
            if has_border {
                drawing.outline(area, LINE_WIDTH, paint.colour);
            }
        }
        Sample::Marker { number, colour } => {
            let centre = [left + marker::RADIUS, y];
            marker::draw(drawing, number, (centre, marker::RADIUS), colour, everywhere);
        }
        Sample::Nothing => {}
    }
    drawing.text(name, [left + sample.width(), y], TICK_SIZE, Anchor::Left);
}

/// The paint of series `number`.
pub(super) fn series(number: usize) -> Paint {
    Paint::from(Colour::Fixed(colour::series(number)))
}
