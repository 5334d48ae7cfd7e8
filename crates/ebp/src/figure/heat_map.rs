//! Heat maps: densities over two axes, several panels with one scale of colours.

use image::RgbImage;

use super::axis::{Axis, Scale};
use super::colour::{DARK, WHITE, viridis};
use super::colour_bar;
use super::drawing::{Anchor, Area, Drawing, fitted_size, text_width};
use super::frame::{Frame, OUTER_MARGIN, SPACE, TITLE_SIZE, place_in};
use super::theme::Colour;
use crate::{Error, Result};

const PANEL_WIDTH: f64 = 128.0;
/// The height of panels, as a share of their width, that show no place.
pub const WIDE: f64 = 0.8;
const DOT_RADIUS: f64 = 1.7;
/// Pixels along a side of a cell: more would make SVG files large.
const MOST_PIXELS: usize = 3;

/// One density on a grid.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// `[rows, columns]`, row-major: rows along y from the lowest, columns along x from the left,
    /// each number at the middle of its cell. What is not finite is shown as 0.
    pub values: Vec<f64>,
    /// Cells along x.
    pub num_columns: usize,
    /// Points drawn over the density, as (x, y).
    pub points: Vec<[f64; 2]>,
}

/// How a density is drawn.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// The number at the bright end of the colours.
    pub(super) brightest: f64,
    pub(super) is_smooth: bool,
    /// Of the points over it.
    pub(super) dot_radius: f64,
}

/// A figure of panels over the same axes.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// What stands above all panels; may be empty.
    pub title: String,
    /// The panels, left to right and top to bottom.
    pub panels: Vec<Panel>,
    /// How many of them stand side by side.
    pub panels_per_row: usize,
    /// The range of the x axis.
    pub x_range: (f64, f64),
    /// The range of the y axis.
    pub y_range: (f64, f64),
    /// What the x axis means.
    pub x_label: String,
    /// What the y axis means.
    pub y_label: String,
    /// What the colours mean.
    pub value_label: String,
    /// The number at the bright end of the colours; `None`: the largest of all panels.
    pub brightest: Option<f64>,
    /// Whether every number is a cell of its own, as of a matrix; otherwise colours pass smoothly from one
    /// to the next.
    pub has_cells: bool,
    /// The height of a panel as a share of its width; [`WIDE`] where both axes are of different kinds.
    pub aspect: f64,
}

impl HeatMap {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is nothing to draw or a panel has the wrong size.
    pub fn draw(&self) -> Result<Drawing> {
        self.check()?;
        let x = Axis::new(self.x_range.0, self.x_range.1, Scale::Linear, 5);
        let y = Axis::new(self.y_range.0, self.y_range.1, Scale::Linear, 5);
        let brightest = self.brightest();
        let values = Axis::new(0.0, brightest, Scale::Linear, 5);
        let look = Look { brightest, is_smooth: !self.has_cells, dot_radius: DOT_RADIUS };
        let per_row = self.panels_per_row.clamp(1, self.panels.len());
        let num_rows = self.panels.len().div_ceil(per_row);
        // All panels have the same axes: only the outer ones have numbers and names.
        let has_titles = self.panels.iter().any(|panel| !panel.title.is_empty());
        let titled = if has_titles { "title" } else { "" };
        let frame = |title, x_label, y_label, has_numbers| Frame {
            x: &x,
            y: &y,
            title,
            x_label,
            y_label,
            has_grid: false,
            has_numbers,
        };
        let outer = frame(titled, &self.x_label, &self.y_label, [true; 2]).margins();
        let inner = frame(titled, "", "", [false; 2]).margins();
        let gap = SPACE.max(2.0 * outer.right + 2.0);
        let (panel_width, panel_height) = (PANEL_WIDTH, PANEL_WIDTH * self.aspect);
        let heading = if self.title.is_empty() { 0.0 } else { TITLE_SIZE + SPACE };
        let left = OUTER_MARGIN + outer.left;
        let top = OUTER_MARGIN + heading + inner.top;
        let row_height = panel_height + inner.top + SPACE;
        let place = |index: usize| Area {
            left: left + (panel_width + gap) * (index % per_row) as f64,
            top: top + row_height * (index / per_row) as f64,
            width: panel_width,
            height: panel_height,
        };
        let last = place(per_row * num_rows - 1);
        let bar = colour_bar::room(&values, &self.value_label);
        let width = last.right() + bar.max(outer.right) + OUTER_MARGIN;
        let mut drawing = Drawing::new(width, last.bottom() + outer.bottom + OUTER_MARGIN);
        let size = fitted_size(&self.title, TITLE_SIZE, width - 2.0 * OUTER_MARGIN);
        let half = 0.5 * text_width(&self.title, size) + OUTER_MARGIN;
        let middle = (0.5 * (left + last.right())).min(width - half).max(half);
        let title_at = [middle, OUTER_MARGIN + 0.5 * TITLE_SIZE];
        drawing.text(&self.title, title_at, size, Anchor::Centre);
        for (index, panel) in self.panels.iter().enumerate() {
            let area = place(index);
            panel.draw(&mut drawing, area, (&x, &y), look);
            let is_lowest = index + per_row >= self.panels.len();
            let is_first = index % per_row == 0;
            let x_label = if is_lowest { self.x_label.as_str() } else { "" };
            let y_label = if is_first { self.y_label.as_str() } else { "" };
            let frame = frame(&panel.title, x_label, y_label, [is_lowest, is_first]);
            frame.draw(&mut drawing, area, 0.0);
        }
        let rows = [place(0).top, last.bottom()];
        colour_bar::draw(&mut drawing, &values, &self.value_label, last.right(), rows);
        drawing.data = Some(place(0));
        Ok(drawing)
    }

    fn check(&self) -> Result<()> {
        if self.panels.is_empty() {
            return Err(Error::failed("a heat map needs at least one panel"));
        }
        for panel in &self.panels {
            let is_whole = panel.num_columns > 0
                && !panel.values.is_empty()
                && panel.values.len().is_multiple_of(panel.num_columns);
            if !is_whole {
                return Err(Error::failed(format!(
                    "panel `{}` must have whole rows of {} numbers, found {}",
                    panel.title,
                    panel.num_columns,
                    panel.values.len()
                )));
            }
        }
        Ok(())
    }

    fn brightest(&self) -> f64 {
        let all = self.panels.iter().flat_map(|panel| &panel.values);
        let largest = all.copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let brightest = self.brightest.unwrap_or(largest);
        if brightest > 0.0 { brightest } else { 1.0 }
    }
}

impl Panel {
    /// The colours of its cells, the highest row first, each cell `fineness` pixels wide and high: as it is,
    /// or with numbers between those of its neighbours.
    fn picture(&self, brightest: f64, fineness: usize) -> RgbImage {
        let count = |cells: usize| u32::try_from(cells * fineness).unwrap_or(u32::MAX);
        let num_rows = self.values.len() / self.num_columns;
        let size = [count(self.num_columns), count(num_rows)];
        RgbImage::from_fn(size[0], size[1], |column, row| {
            let place = |pixel: u32, size: u32| (f64::from(pixel) + 0.5) / f64::from(size);
            let (x, y) = (place(column, size[0]), 1.0 - place(row, size[1]));
            viridis(self.interpolate(x, y) / brightest)
        })
    }

    /// Between the cells' middles, linearly each way; both places from 0 to 1, from the left and
    /// from below.
    fn interpolate(&self, x: f64, y: f64) -> f64 {
        let num_rows = self.values.len() / self.num_columns;
        let (left, right, across) = neighbours(x, self.num_columns);
        let (low, high, up) = neighbours(y, num_rows);
        let at = |row: usize, column: usize| {
            let value = self.values[row * self.num_columns + column];
            if value.is_finite() { value } else { 0.0 }
        };
        let along = |row| at(row, left) * (1.0 - across) + at(row, right) * across;
        along(low) * (1.0 - up) + along(high) * up
    }

    /// The density and the points over it.
    pub(super) fn draw(
        &self,
        drawing: &mut Drawing,
        area: Area,
        (x, y): (&Axis, &Axis),
        look: Look,
    ) {
        // Numbers, not colours, are passed smoothly, about as finely as the page is printed.
        let wanted = drawing.pixels_per_point * area.width / self.num_columns as f64;
        let fine = (1..MOST_PIXELS).find(|&pixels| pixels as f64 >= wanted).unwrap_or(MOST_PIXELS);
        let fineness = if look.is_smooth { fine } else { 1 };
        drawing.picture(area, self.picture(look.brightest, fineness), look.is_smooth);
        for point in &self.points {
            let border = (0.26 * look.dot_radius, Colour::Fixed(DARK));
            let place = place_in(area, x, y, *point);
            drawing.dot(place, look.dot_radius, Colour::Fixed(WHITE), border, area);
        }
    }
}

/// The two cells around a place, and the share of the second.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the grid")]
fn neighbours(place: f64, count: usize) -> (usize, usize, f64) {
    let position = (place * count as f64 - 0.5).clamp(0.0, (count - 1) as f64);
    let first = position as usize;
    (first, (first + 1).min(count - 1), position - first as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::CurveFamily;
    use crate::figure::Theme;
    use crate::figure::drawing::Mark;
    use crate::figure::svg::tests::words;
    use crate::figure::tests::{assert_blank_edge, keep};
    use crate::rng::Stream;

    fn panel(family: CurveFamily, number: u64) -> Panel {
        let drawn = family.draw(Stream::new(1, "picture"), number, 30).expect("a set");
        let (columns, rows) = (120_u32, 120_u32);
        let cell = |row: u32, column: u32| {
            let t = -2.0 + 4.0 * (f64::from(column) + 0.5) / f64::from(columns);
            let x = -2.5 + 5.0 * (f64::from(row) + 0.5) / f64::from(rows);
            drawn.law.log_density(t, x).exp()
        };
        Panel {
            title: family.name().to_owned(),
            values: (0..rows)
                .flat_map(|r| (0..columns).map(move |c| (r, c)))
                .map(|(r, c)| cell(r, c))
                .collect(),
            num_columns: columns as usize,
            points: drawn
                .set
                .locations()
                .iter()
                .zip(drawn.set.values())
                .map(|(&t, &x)| [t, x])
                .collect(),
        }
    }

    fn figure(panels: Vec<Panel>) -> HeatMap {
        HeatMap {
            title: "True densities p(x | t) and one set of each family".to_owned(),
            panels,
            panels_per_row: 3,
            x_range: (-2.0, 2.0),
            y_range: (-2.5, 2.5),
            x_label: "location t".to_owned(),
            y_label: "value x".to_owned(),
            value_label: "density".to_owned(),
            brightest: Some(2.0),
            has_cells: false,
            aspect: WIDE,
        }
    }

    #[test]
    fn axes_are_named_once() {
        let panels: Vec<Panel> = CurveFamily::ALL.iter().map(|&family| panel(family, 2)).collect();
        let drawing = figure(panels).draw().expect("a figure");
        assert_blank_edge(&drawing);
        keep(&drawing, "heat_map");
        let words = words(&drawing.svg(Theme::Light).expect("a file"));
        let count = |label: &str| words.iter().filter(|word| *word == label).count();
        // Two rows of three panels: the axis of y at the left, that of x below.
        assert_eq!((count("value x"), count("location t"), count("density")), (2, 3, 1));
        assert_eq!((count("sines"), count("circle")), (1, 1));
    }

    #[test]
    fn long_titles_are_made_to_fit() {
        let mut map = figure(vec![panel(CurveFamily::Sines, 1)]);
        map.title = "A title that is much longer than its only panel is wide, ".repeat(2);
        map.panels[0].title = "and a panel whose title is long as well, if not as long".to_owned();
        let drawing = map.draw().expect("a figure");
        assert_blank_edge(&drawing);
        keep(&drawing, "heat_map_one");
    }

    #[test]
    fn numbers_stand_where_they_belong() {
        let panel = Panel {
            title: String::new(),
            values: vec![0.0, 1.0, 2.0, f64::NAN],
            num_columns: 2,
            points: Vec::new(),
        };
        let picture = panel.picture(2.0, 1);
        let expected = [(0, 1, 0.0), (1, 1, 0.5), (0, 0, 1.0), (1, 0, 0.0)];
        for (column, row, share) in expected {
            assert_eq!(*picture.get_pixel(column, row), viridis(share), "{column}, {row}");
        }
        let cases =
            [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 2.0), (1.0, 1.0, 0.0), (0.5, 0.0, 0.5)];
        for (x, y, expected) in cases {
            assert!((panel.interpolate(x, y) - expected).abs() < 1e-12, "at {x}, {y}");
        }
        // Three pixels to a cell: the middle one has the cell's number.
        let fine = panel.picture(2.0, 3);
        assert_eq!((fine.width(), *fine.get_pixel(1, 1)), (6, viridis(1.0)));
        let mut map = figure(vec![panel]);
        (map.has_cells, map.aspect) = (true, 1.0);
        let drawing = map.draw().expect("a figure");
        assert_blank_edge(&drawing);
        let is_cellular = |mark: &Mark| matches!(mark, Mark::Picture { is_smooth: false, .. });
        assert_eq!(drawing.marks.iter().filter(|mark| is_cellular(mark)).count(), 1);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert!(figure(Vec::new()).draw().is_err());
        let ragged =
            Panel { title: "a".into(), values: vec![0.0; 3], num_columns: 2, points: Vec::new() };
        assert!(figure(vec![ragged]).draw().is_err());
    }
}
