//! Heat maps: densities over two axes, several panels with one scale of colours.

use image::RgbImage;

use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Area, Canvas};
use super::colour::{self, WHITE};
use super::frame::{Frame, LABEL_SIZE, SPACE, TITLE_SIZE, fitted_size, text_width};
use crate::{Error, Result};

const PANEL_WIDTH: f64 = 150.0;
const PANEL_HEIGHT: f64 = 120.0;
const BAR_WIDTH: f64 = 9.0;
const OUTER_MARGIN: f64 = 10.0;
const DOT_RADIUS: f64 = 1.9;

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
    /// Pixels per point; 2 is good for screens, 4 for print.
    pub scale: u32,
}

impl HeatMap {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if there is nothing to draw or a panel has the wrong size.
    pub fn draw(&self) -> Result<RgbImage> {
        self.check()?;
        let x = Axis::new(self.x_range.0, self.x_range.1, Scale::Linear, 5);
        let y = Axis::new(self.y_range.0, self.y_range.1, Scale::Linear, 5);
        let values = Axis::new(0.0, self.brightest(), Scale::Linear, 5);
        let per_row = self.panels_per_row.clamp(1, self.panels.len());
        let num_rows = self.panels.len().div_ceil(per_row);
        // The same margins for every panel keep the rows aligned; inner panels name no axis.
        let frame = |title, x_label, y_label| Frame {
            x: &x,
            y: &y,
            title,
            x_label,
            y_label,
            has_grid: false,
        };
        let outer = frame("title", &self.x_label, &self.y_label).margins();
        let inner = frame("title", "", "").margins();
        let cell_width = inner.left + PANEL_WIDTH + inner.right + SPACE;
        let cell_height = inner.top + PANEL_HEIGHT + inner.bottom + SPACE;
        let heading = if self.title.is_empty() { 0.0 } else { TITLE_SIZE + 1.5 * SPACE };
        let bar = bar_width(&values, &self.value_label);
        let left = OUTER_MARGIN + outer.left - inner.left;
        let top = OUTER_MARGIN + heading;
        let width = left + cell_width * per_row as f64 - SPACE + bar + OUTER_MARGIN;
        let height = top + cell_height * num_rows as f64 - SPACE
            + (outer.bottom - inner.bottom)
            + OUTER_MARGIN;
        let mut canvas = Canvas::new(width, height, self.scale);
        let place = |index: usize| Area {
            left: left + cell_width * (index % per_row) as f64 + inner.left,
            top: top + cell_height * (index / per_row) as f64 + inner.top,
            width: PANEL_WIDTH,
            height: PANEL_HEIGHT,
        };
        let last = place(per_row * num_rows - 1);
        let middle = 0.5 * (place(0).left + place(per_row - 1).right());
        let size = fitted_size(&self.title, TITLE_SIZE, width - 2.0 * OUTER_MARGIN);
        let half = 0.5 * text_width(&self.title, size) + OUTER_MARGIN;
        let title_at = [middle.min(width - half).max(half), OUTER_MARGIN + 0.5 * TITLE_SIZE];
        canvas.text(&self.title, title_at, size, Anchor::Centre);
        for (index, panel) in self.panels.iter().enumerate() {
            let area = place(index);
            self.draw_density(&mut canvas, panel, area);
            for [px, py] in &panel.points {
                let column = area.left + area.width * x.position(*px);
                let row = area.top + area.height * (1.0 - y.position(*py));
                let colours = [WHITE, colour::INK];
                canvas.dot([column, row], DOT_RADIUS, colours, area);
            }
            let is_lowest = index + per_row >= self.panels.len();
            let x_label = if is_lowest { self.x_label.as_str() } else { "" };
            let y_label = if index % per_row == 0 { self.y_label.as_str() } else { "" };
            frame(&panel.title, x_label, y_label).draw(&mut canvas, area);
        }
        let beside = Area {
            left: place(per_row - 1).right() + inner.right + 2.0 * SPACE,
            top: place(0).top,
            width: BAR_WIDTH,
            height: last.bottom() - place(0).top,
        };
        self.draw_bar(&mut canvas, &values, beside);
        Ok(canvas.into_image())
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

    fn draw_density(&self, canvas: &mut Canvas, panel: &Panel, area: Area) {
        let brightest = self.brightest();
        canvas.shade(area, |from_left, from_top| {
            colour::viridis(panel.interpolate(from_left, 1.0 - from_top) / brightest)
        });
    }

    /// The scale of colours with its numbers.
    fn draw_bar(&self, canvas: &mut Canvas, values: &Axis, area: Area) {
        canvas.shade(area, |_, from_top| colour::viridis(1.0 - from_top));
        canvas.outline(area, 0.75, colour::INK);
        for tick in &values.ticks {
            let y = area.top + area.height * (1.0 - values.position(tick.value));
            let mark = Area { left: area.right(), top: y - 0.375, width: 3.0, height: 0.75 };
            canvas.fill(mark, colour::INK);
            canvas.text(&tick.label, [area.right() + 6.0, y], LABEL_SIZE, Anchor::Left);
        }
        if !self.value_label.is_empty() {
            let x =
                area.left + bar_width(values, &self.value_label) - 2.0 * SPACE - 0.5 * LABEL_SIZE;
            canvas.text_upwards(&self.value_label, [x, area.top + 0.5 * area.height], LABEL_SIZE);
        }
    }
}

/// The room of the colour scale: gap, bar, ticks, numbers and name.
fn bar_width(values: &Axis, label: &str) -> f64 {
    let numbers =
        values.ticks.iter().map(|tick| text_width(&tick.label, LABEL_SIZE)).fold(0.0, f64::max);
    let name = if label.is_empty() { 0.0 } else { SPACE + LABEL_SIZE };
    2.0 * SPACE + BAR_WIDTH + 6.0 + numbers + name
}

impl Panel {
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
    use crate::figure::save;
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
            scale: 2,
        }
    }

    #[test]
    fn a_figure_is_drawn_and_written() {
        let panels = CurveFamily::ALL.iter().map(|&family| panel(family, 2)).collect();
        let image = figure(panels).draw().expect("a figure");
        assert_blank_edge(&image);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("figure.png");
        save(&image, &path).expect("written");
        assert_eq!(image::open(&path).expect("a picture").to_rgb8(), image);
        // Name a folder in EBP_PICTURES to look at them.
        if let Some(keep) = std::env::var_os("EBP_PICTURES") {
            save(&image, &std::path::Path::new(&keep).join("heat_map.png")).expect("written");
        }
        let deep = folder.path().join("new/folder.png");
        save(&image, &deep).expect("written with its folders");
        assert!(save(&image, &deep.join("below a file.png")).is_err());
    }

    /// Nothing is cut off.
    fn assert_blank_edge(image: &RgbImage) {
        let (width, height) = image.dimensions();
        for x in 0..width {
            assert_eq!([image.get_pixel(x, 0), image.get_pixel(x, height - 1)], [&WHITE; 2]);
        }
        for y in 0..height {
            assert_eq!([image.get_pixel(0, y), image.get_pixel(width - 1, y)], [&WHITE; 2]);
        }
    }

    #[test]
    fn long_titles_are_made_to_fit() {
        let mut map = figure(vec![panel(CurveFamily::Sines, 1)]);
        map.title = "A title that is much longer than its only panel is wide, ".repeat(2);
        map.panels[0].title = "and a panel whose title is long as well, if not as long".to_owned();
        let image = map.draw().expect("a figure");
        assert_blank_edge(&image);
        if let Some(keep) = std::env::var_os("EBP_PICTURES") {
            save(&image, &std::path::Path::new(&keep).join("heat_map_one.png")).expect("written");
        }
    }

    #[test]
    fn numbers_stand_where_they_belong() {
        let panel = Panel {
            title: String::new(),
            values: vec![0.0, 1.0, 2.0, f64::NAN],
            num_columns: 2,
            points: Vec::new(),
        };
        let cases =
            [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 2.0), (1.0, 1.0, 0.0), (0.5, 0.0, 0.5)];
        for (x, y, expected) in cases {
            assert!((panel.interpolate(x, y) - expected).abs() < 1e-12, "at {x}, {y}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert!(figure(Vec::new()).draw().is_err());
        let ragged =
            Panel { title: "a".into(), values: vec![0.0; 3], num_columns: 2, points: Vec::new() };
        assert!(figure(vec![ragged]).draw().is_err());
    }
}
