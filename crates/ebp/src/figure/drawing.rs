//! A page on which figures are drawn: what lies on it is recorded, and written as pixels or as SVG.

use std::path::Path;

use image::RgbImage;

use super::letters;
use super::theme::{Colour, Theme};
use super::{line, raster, svg};
use crate::Result;

/// Pixels per point of 300 in an inch, what print asks for.
const PRINT: f64 = 300.0 / 72.0;

/// How a text lies relative to the place it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The place is the left end.
    Left,
    /// The place is the middle.
    Centre,
    /// The place is the right end.
    Right,
}

impl Anchor {
    /// The share of a text's width that lies left of its place.
    pub(super) fn share(self) -> f64 {
        match self {
            Self::Left => 0.0,
            Self::Centre => 0.5,
            Self::Right => 1.0,
        }
    }
}

/// A rectangle in points: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Its middle.
    pub(super) fn middle(&self) -> [f64; 2] {
        [self.left + 0.5 * self.width, self.top + 0.5 * self.height]
    }

    fn holds(&self, [x, y]: [f64; 2]) -> bool {
        (self.left..=self.right()).contains(&x) && (self.top..=self.bottom()).contains(&y)
    }
}

/// A colour and how much of it: 1 hides what lies below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paint {
    pub(super) colour: Colour,
    pub(super) opacity: f64,
}

impl From<Colour> for Paint {
    fn from(colour: Colour) -> Self {
        Self { colour, opacity: 1.0 }
    }
}

/// Something on the page, in points from its left upper corner.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mark {
    /// A filled rectangle.
    Fill { area: Area, paint: Paint },
    /// A straight line along a row or a column, as sharp as pixels allow.
    Rule { ends: [[f64; 2]; 2], width: f64, colour: Colour },
    /// Lines through points, dashed by lengths of ink and gap in points.
    Lines { lines: Vec<Vec<[f64; 2]>>, width: f64, paint: Paint, dash: &'static [f64] },
    /// A filled polygon, with a border around it if its width is not 0.
    Polygon { contour: Vec<[f64; 2]>, paint: Paint, border: (f64, Colour) },
    /// A dot, with a border inside its edge if its width is not 0.
    Dot { centre: [f64; 2], radius: f64, colour: Colour, border: (f64, Colour) },
    /// Pixels stretched over an area; smooth between them, or as squares.
    Picture { area: Area, pixels: RgbImage, is_smooth: bool },
    /// A line of text, the middle of its capitals at `place`; upwards, it is turned a quarter to the left.
    Text { words: String, place: [f64; 2], size: f64, anchor: Anchor, is_upwards: bool },
}

/// A figure, in points of 1/72 inch.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) marks: Vec<Mark>,
    /// Where the data lie, so that figures that are stacked can be aligned.
    pub(super) data: Option<Area>,
    /// Of the picture as pixels.
    pub(super) pixels_per_point: f64,
}

impl Drawing {
    /// An empty page.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let (width, height) = (width.max(1.0), height.max(1.0));
        Self { width, height, marks: Vec::new(), data: None, pixels_per_point: PRINT }
    }

    /// Width and height in points of 1/72 inch.
    pub fn size(&self) -> [f64; 2] {
        [self.width, self.height]
    }

    /// As pixels, 300 to an inch unless its pixels must be squares of equal size.
    pub fn image(&self, theme: Theme) -> RgbImage {
        raster::image(self, theme, self.pixels_per_point)
    }

    /// As the text of an SVG file.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`](crate::Error::Failed) if there is no memory for the pictures in it.
    pub fn svg(&self, theme: Theme) -> Result<String> {
        svg::write(self, theme)
    }

    /// Writes it as a PNG file and as an SVG file beside it, or as SVG alone if that is how `path` ends; with
    /// the folder it goes to.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) or [`Error::Failed`](crate::Error::Failed) if it cannot be written.
    pub fn save(&self, path: &Path, theme: Theme) -> Result<()> {
        super::write::save_drawing(self, path, theme)
    }

    pub(super) fn fill(&mut self, area: Area, paint: impl Into<Paint>) {
        self.marks.push(Mark::Fill { area, paint: paint.into() });
    }

    /// A straight line along a row or a column.
    pub(super) fn rule(&mut self, ends: [[f64; 2]; 2], width: f64, colour: Colour) {
        self.marks.push(Mark::Rule { ends, width, colour });
    }

    /// The border of an area.
    pub(super) fn outline(&mut self, area: Area, width: f64, colour: Colour) {
        let Area { left, top, .. } = area;
        let (right, bottom, half) = (area.right(), area.bottom(), 0.5 * width);
        for y in [top, bottom] {
            self.rule([[left - half, y], [right + half, y]], width, colour);
        }
        for x in [left, right] {
            self.rule([[x, top - half], [x, bottom + half]], width, colour);
        }
    }

    /// A line through `points`, cut off at the edges of an area; it breaks where a point is not finite.
    pub(super) fn polyline(
        &mut self,
        points: &[[f64; 2]],
        width: f64,
        (paint, dash): (impl Into<Paint>, &'static [f64]),
        clip: Area,
    ) {
        let lines = line::clipped(&line::thinned(points), clip);
        if !lines.is_empty() {
            self.marks.push(Mark::Lines { lines, width, paint: paint.into(), dash });
        }
    }

    /// A filled polygon, cut off at the edges of an area.
    pub(super) fn polygon(&mut self, contour: &[[f64; 2]], paint: impl Into<Paint>, clip: Area) {
        let contour = line::clipped_polygon(contour, clip);
        if contour.len() > 2 {
            let border = (0.0, Colour::Ink);
            self.marks.push(Mark::Polygon { contour, paint: paint.into(), border });
        }
    }

    /// A dot with a border, if its middle lies in an area.
    pub(super) fn dot(
        &mut self,
        centre: [f64; 2],
        radius: f64,
        colour: Colour,
        border: (f64, Colour),
        clip: Area,
    ) {
        if clip.holds(centre) {
            self.marks.push(Mark::Dot { centre, radius, colour, border });
        }
    }

    /// Pixels over an area.
    pub(super) fn picture(&mut self, area: Area, pixels: RgbImage, is_smooth: bool) {
        self.marks.push(Mark::Picture { area, pixels, is_smooth });
    }

    /// A line of text, the middle of its capitals at `place`.
    pub(super) fn text(&mut self, text: &str, place: [f64; 2], size: f64, anchor: Anchor) {
        self.write(text, place, size, (anchor, false));
    }

    /// The same, turned a quarter to the left: it reads upwards.
    pub(super) fn text_upwards(&mut self, text: &str, place: [f64; 2], size: f64, anchor: Anchor) {
        self.write(text, place, size, (anchor, true));
    }

    fn write(
        &mut self,
        text: &str,
        place: [f64; 2],
        size: f64,
        (anchor, is_upwards): (Anchor, bool),
    ) {
        if !text.trim().is_empty() {
            let words = text.to_owned();
            self.marks.push(Mark::Text { words, place, size, anchor, is_upwards });
        }
    }

    /// Puts another drawing onto this one, moved by so much.
    fn put(&mut self, other: &Self, [right, down]: [f64; 2]) {
        let moved = |[x, y]: [f64; 2]| [x + right, y + down];
        let moved_area = |area: &Area| {
            let [left, top] = moved([area.left, area.top]);
            Area { left, top, ..*area }
        };
        let moved_line = |line: &Vec<[f64; 2]>| line.iter().map(|&point| moved(point)).collect();
        self.marks.extend(other.marks.iter().map(|mark| {
            let mut mark = mark.clone();
            match &mut mark {
                Mark::Fill { area, .. } | Mark::Picture { area, .. } => *area = moved_area(area),
                Mark::Rule { ends, .. } => *ends = ends.map(moved),
                Mark::Lines { lines, .. } => *lines = lines.iter().map(moved_line).collect(),
                Mark::Polygon { contour, .. } => *contour = moved_line(contour),
                Mark::Dot { centre: place, .. } | Mark::Text { place, .. } => {
                    *place = moved(*place);
                }
            }
            mark
        }));
    }
}

/// Drawings side by side in rows of `per_row`, and the rows below each other; the data of those in a
/// column, and of those in a row, begin at the same place.
pub fn stack(drawings: &[Drawing], per_row: usize) -> Drawing {
    let per_row = per_row.clamp(1, drawings.len().max(1));
    let corner = |drawing: &Drawing| drawing.data.map_or([0.0; 2], |area| [area.left, area.top]);
    // Before and after the corner of the data, the most of each column or row.
    let rooms = |axis: usize, members: &dyn Fn(usize) -> usize, count: usize| {
        let mut rooms = vec![[0.0_f64; 2]; count];
        for (index, drawing) in drawings.iter().enumerate() {
            let before = corner(drawing)[axis];
            let room = &mut rooms[members(index)];
            *room = [room[0].max(before), room[1].max(drawing.size()[axis] - before)];
        }
        rooms
    };
    let columns = rooms(0, &|index| index % per_row, per_row);
    let rows = rooms(1, &|index| index / per_row, drawings.len().div_ceil(per_row));
    let total = |rooms: &[[f64; 2]]| rooms.iter().flatten().sum::<f64>();
    let mut page = Drawing::new(total(&columns), total(&rows));
    for (index, drawing) in drawings.iter().enumerate() {
        let (column, row) = (index % per_row, index / per_row);
        let at =
            [total(&columns[..column]) + columns[column][0], total(&rows[..row]) + rows[row][0]];
        let [left, top] = corner(drawing);
        page.put(drawing, [at[0] - left, at[1] - top]);
        page.pixels_per_point = drawing.pixels_per_point;
    }
    page
}

/// The width of a text in points.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    size * letters::width(text)
}

/// `size`, or less where the text would be wider than `room`.
pub(super) fn fitted_size(text: &str, size: f64, room: f64) -> f64 {
    size * (room / text_width(text, size).max(1e-3)).min(1.0)
}

/// The words of a text in lines no wider than `room`, unless a word alone is.
pub(super) fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: f64, height: f64, data: [f64; 2]) -> Drawing {
        let mut drawing = Drawing::new(width, height);
        let area = Area { left: data[0], top: data[1], width: 5.0, height: 5.0 };
        drawing.data = Some(area);
        drawing.fill(area, Colour::Ink);
        drawing
    }

    #[test]
    fn stacked_drawings_do_not_overlap_and_their_data_are_aligned() {
        let all = [
            page(20.0, 10.0, [3.0, 1.0]),
            page(30.0, 12.0, [8.0, 2.0]),
            page(25.0, 9.0, [6.0, 1.5]),
        ];
        let figure = stack(&all, 2);
        // Columns: 6 + 19 and 8 + 22; rows: 2 + 10 and 1.5 + 7.5.
        assert_eq!(figure.size().to_vec(), [55.0, 21.0]);
        let corners: Vec<[f64; 2]> = figure
            .marks
            .iter()
            .map(|mark| match mark {
                Mark::Fill { area, .. } => [area.left, area.top],
                _ => [f64::NAN; 2],
            })
            .collect();
        assert_eq!(corners, [[6.0, 2.0], [33.0, 2.0], [6.0, 13.5]]);
        assert_eq!(stack(&[], 3).size().to_vec(), [1.0, 1.0]);
    }

    #[test]
    fn texts_are_wrapped_and_made_to_fit() {
        let room = text_width("neural process", 7.0);
        assert_eq!(
            wrapped("Conditional neural process", 7.0, room),
            ["Conditional", "neural process"]
        );
        assert_eq!(wrapped("  ", 7.0, room), Vec::<String>::new());
        assert!((text_width("abc", fitted_size("abc", 9.0, 10.0)) - 10.0).abs() < 1e-9);
        assert!((fitted_size("abc", 9.0, 100.0) - 9.0).abs() < 1e-12);
    }
}
