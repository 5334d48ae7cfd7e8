//! Densities of many models on many data, as wide as a page of a paper: a row for each kind of data, with
//! its name and its scale of colours, a column for each model; axes are named once.

use super::axis::{Axis, Scale};
use super::colour_bar;
use super::drawing::{Anchor, Area, Drawing, text_width, wrapped};
use super::frame::{Frame, LABEL_SIZE, OUTER_MARGIN, SPACE, TICK_SIZE};
use super::heat_map::{Look, Panel};
use crate::{Error, Result};

/// 170 mm, the text of a page.
pub const PAGE_WIDTH: f64 = 170.0 / 25.4 * 72.0;
const GAP: f64 = 3.5;
const DOT_RADIUS: f64 = 0.95;
/// Between lines of a heading.
const LINE: f64 = 8.0;

/// The densities of one kind of data.
#[derive(Clone, Debug)]
pub struct GridRow {
    /// What the data are called.
    pub name: String,
    /// One for each column, in order; what was not measured is left blank.
    pub panels: Vec<Option<Panel>>,
    /// The range of the y axis.
    pub y_range: (f64, f64),
    /// The number at the bright end of the colours.
    pub brightest: f64,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct DensityGrid {
    /// What the columns show.
    pub columns: Vec<String>,
    /// From above.
    pub rows: Vec<GridRow>,
    /// The range of the x axis, the same for all.
    pub x_range: (f64, f64),
    /// What the x axis means.
    pub x_label: String,
    /// What the y axis means.
    pub y_label: String,
    /// What the colours mean.
    pub value_label: String,
}

impl DensityGrid {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is nothing to draw or a row has no panel for a column.
    pub fn draw(&self) -> Result<Drawing> {
        let count = self.columns.len();
        if count == 0 || self.rows.is_empty() {
            return Err(Error::failed("a grid of densities needs a row and a column"));
        }
        if let Some(row) = self.rows.iter().find(|row| row.panels.len() != count) {
            return Err(Error::failed(format!(
                "row `{}` must have {count} panels, found {}",
                row.name,
                row.panels.len()
            )));
        }
        let x = Axis::new(self.x_range.0, self.x_range.1, Scale::Linear, 4);
        let axes: Vec<(Axis, Axis)> = self
            .rows
            .iter()
            .map(|row| {
                let y = Axis::new(row.y_range.0, row.y_range.1, Scale::Linear, 4);
                (y, Axis::new(0.0, row.brightest, Scale::Linear, 4))
            })
            .collect();
        // Row name, name of the axis, numbers; the widest of each row.
        let numbers = axes.iter().map(|(y, _)| self.frame(&x, y, [true; 2]).margins().left);
        let left = OUTER_MARGIN + LABEL_SIZE + SPACE + numbers.fold(0.0, f64::max);
        let bars = axes.iter().map(|(_, values)| colour_bar::room(values, &self.value_label));
        let bar = bars.fold(0.0, f64::max);
        let right = PAGE_WIDTH - OUTER_MARGIN - bar;
        // A single column is not as wide as the page.
        let side = ((right - left + GAP) / count as f64 - GAP).min(120.0);
        let headings: Vec<Vec<String>> =
            self.columns.iter().map(|name| wrapped(name, TICK_SIZE, side + GAP - 1.0)).collect();
        let num_lines = headings.iter().map(Vec::len).max().unwrap_or(0);
        let top = OUTER_MARGIN + LINE * num_lines as f64 + 2.0;
        let area = |row: usize, column: usize| Area {
            left: left + (side + GAP) * column as f64,
            top: top + (side + GAP) * row as f64,
            width: side,
            height: side,
        };
        let last = area(self.rows.len() - 1, count - 1);
        let numbers = self.frame(&x, &axes[0].0, [true; 2]).margins().bottom;
        let name_at = last.bottom() + numbers + 3.0 + 0.5 * LABEL_SIZE;
        let width = last.right() + bar + OUTER_MARGIN;
        let mut drawing = Drawing::new(width, name_at + 0.5 * LABEL_SIZE + OUTER_MARGIN);
        let middle = 0.5 * (left + last.right());
        drawing.text(&self.x_label, [middle, name_at], LABEL_SIZE, Anchor::Centre);
        for (column, lines) in headings.iter().enumerate() {
            let middle = area(0, column).middle()[0];
            for (number, line) in lines.iter().rev().enumerate() {
                let y = top - 2.0 - LINE * (number as f64 + 0.5);
                let size = TICK_SIZE * ((side + GAP) / text_width(line, TICK_SIZE)).min(1.0);
                drawing.text(line, [middle, y], size, Anchor::Centre);
            }
        }
        for (number, row) in self.rows.iter().enumerate() {
            let (y, values) = &axes[number];
            for (column, panel) in row.panels.iter().enumerate() {
                let place = area(number, column);
                let Some(panel) = panel else { continue };
                let look =
                    Look { brightest: row.brightest, is_smooth: true, dot_radius: DOT_RADIUS };
                panel.draw(&mut drawing, place, (&x, y), look);
                let is_lowest = number + 1 == self.rows.len();
                let frame = self.frame(&x, y, [is_lowest, column == 0]);
                frame.draw(&mut drawing, place, 0.0);
            }
            let place = area(number, 0);
            let name = [OUTER_MARGIN + 0.5 * LABEL_SIZE, place.middle()[1]];
            drawing.text_upwards(&row.name, name, LABEL_SIZE, Anchor::Centre);
            // Shorter than the row, so that the numbers at its ends keep clear of those of the next.
            let rows = [place.top + 0.5 * TICK_SIZE, place.bottom() - 0.5 * TICK_SIZE];
            colour_bar::draw(&mut drawing, values, &self.value_label, last.right(), rows);
        }
        drawing.data = Some(area(0, 0));
        Ok(drawing)
    }

    fn frame<'a>(&'a self, x: &'a Axis, y: &'a Axis, has_numbers: [bool; 2]) -> Frame<'a> {
        Frame {
            x,
            y,
            title: "",
            x_label: "",
            y_label: if has_numbers[1] { &self.y_label } else { "" },
            has_grid: false,
            has_numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CurveFamily;
    use crate::figure::Theme;
    use crate::figure::density::{Window, points};
    use crate::figure::svg::tests::words;
    use crate::figure::tests::{assert_blank_edge, keep};
    use crate::rng::Stream;

    fn grid() -> DensityGrid {
        let columns = [
            "Truth",
            "EBP (importance)",
            "EBP (learned sampler)",
            "Gaussian process",
            "Student-t process",
            "Conditional neural process",
            "Neural process",
            "Attentive neural process",
            "Variational implicit process",
        ];
        let row = |family: CurveFamily| {
            let window =
                Window { locations: family.location_range(), values: family.value_range() };
            let drawn = family.draw(Stream::new(1, "picture"), 2, 30).expect("a set");
            let law = drawn.law;
            let density = |t: f64, x: f64| law.log_density(t, x).exp();
            let panel = |column: usize| {
                let given = if column == 0 { points(&drawn.set) } else { Vec::new() };
                window.panel("", given, density)
            };
            GridRow {
                name: family.name().to_owned(),
                panels: (0..columns.len())
                    .map(|column| (column != 4).then(|| panel(column)))
                    .collect(),
                y_range: window.values,
                brightest: 2.0,
            }
        };
        DensityGrid {
            columns: columns.map(str::to_owned).to_vec(),
            rows: CurveFamily::ALL[..4].iter().map(|&family| row(family)).collect(),
            x_range: (-2.0, 2.0),
            x_label: "t".into(),
            y_label: "x".into(),
            value_label: "density".into(),
        }
    }

    #[test]
    fn a_grid_is_as_wide_as_a_page_and_names_its_axes_once() {
        let drawing = grid().draw().expect("a figure");
        assert!((drawing.size()[0] - PAGE_WIDTH).abs() < 0.01);
        let image = drawing.image(Theme::Light);
        // 170 mm of 300 pixels an inch.
        assert_eq!(image.width(), 2008);
        assert_blank_edge(&drawing);
        keep(&drawing, "density_grid");
        let words = words(&drawing.svg(Theme::Light).expect("a file"));
        let count = |label: &str| words.iter().filter(|word| *word == label).count();
        assert_eq!((count("t"), count("x"), count("density"), count("Truth")), (1, 4, 4, 1));
        // Numbers below every column with panels, and none at the corners, where neighbours meet.
        assert_eq!((count("0"), count("−2"), count("2")), (8 + 4, 1, 1));
        assert_eq!((count("neural"), count("(importance)")), (2, 1));
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let mut ragged = grid();
        ragged.rows[1].panels.pop();
        assert!(ragged.draw().is_err());
        assert!(DensityGrid { columns: Vec::new(), ..grid() }.draw().is_err());
        assert!(DensityGrid { rows: Vec::new(), ..grid() }.draw().is_err());
    }
}
