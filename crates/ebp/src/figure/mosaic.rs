//! Rows of small pictures with a word beside each row: what is known, what was made of it, what
//! was there.
#![allow(clippy::cast_possible_truncation, reason = "a picture has fewer than 2³² pixels")]

use image::{Rgb, RgbImage};

use super::colour::viridis;
use super::drawing::{Anchor, Area, Drawing, text_width};
use super::frame::{LABEL_SIZE, OUTER_MARGIN, SPACE, TITLE_SIZE};

/// Points between pictures, and between groups of rows.
const GAP: f64 = 1.5;
const GROUP_GAP: f64 = 9.0;
/// The least side of a picture as drawn, in points.
const LEAST_SIDE: f64 = 30.0;
/// Pixels of a point: halves of points are whole pixels, so that all pixels of pictures are squares of the
/// same size.
const PIXELS: f64 = 4.0;

/// One small picture: colours of `[height, width]` pixels.
#[derive(Clone, Debug)]
pub struct Thumbnail {
    /// Columns.
    pub width: usize,
    /// Row by row.
    pub pixels: Vec<[u8; 3]>,
}

impl Thumbnail {
    /// From levels of 1 or 3 channels.
    pub fn new(width: usize, channels: usize, levels: &[u8]) -> Self {
        let pixels = levels.chunks_exact(channels.max(1)).map(|pixel| match *pixel {
            [red, green, blue] => [red, green, blue],
            _ => [pixel[0]; 3],
        });
        Self { width, pixels: pixels.collect() }
    }

    /// Numbers as colours, from 0 to the largest.
    pub fn heat(width: usize, numbers: &[f64]) -> Self {
        let largest = numbers.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let pixels = numbers.iter().map(|number| viridis(number / largest).0);
        Self { width, pixels: pixels.collect() }
    }

    /// A picture whose unknown pixels are grey-blue, as no grey or face is.
    pub fn shaded(levels: &[u8], mask: &[bool], width: usize, channels: usize) -> Self {
        let mut picture = Self::new(width, channels, levels);
        for (pixel, _) in picture.pixels.iter_mut().zip(mask).filter(|(_, known)| !**known) {
            *pixel = [96, 112, 144];
        }
        picture
    }

    fn height(&self) -> usize {
        self.pixels.len() / self.width.max(1)
    }

    /// The picture itself.
    pub fn image(&self) -> RgbImage {
        RgbImage::from_fn(self.width as u32, self.height() as u32, |x, y| {
            Rgb(self.pixels[y as usize * self.width + x as usize])
        })
    }
}

/// Pictures side by side, with what they are.
#[derive(Clone, Debug)]
pub struct Row {
    /// The word beside them.
    pub label: String,
    /// The pictures.
    pub pictures: Vec<Thumbnail>,
}

/// Groups of rows below each other; a title above each group.
#[derive(Clone, Debug, Default)]
pub struct Mosaic {
    /// Title and rows of each.
    pub groups: Vec<(String, Vec<Row>)>,
}

impl Mosaic {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let rows = || self.groups.iter().flat_map(|(_, rows)| rows);
        let first = rows().find_map(|row| row.pictures.first());
        let (columns, lines) = first.map_or((1, 1), |picture| (picture.width, picture.height()));
        let zoom =
            (PIXELS * LEAST_SIDE / columns.max(lines).max(1) as f64).ceil().max(1.0) / PIXELS;
        let (wide, tall) = (zoom * columns as f64, zoom * lines as f64);
        let longest = rows().map(|row| text_width(&row.label, LABEL_SIZE)).fold(0.0, f64::max);
        let words = if longest > 0.0 { (longest + SPACE).ceil() } else { 0.0 };
        let across = rows().map(|row| row.pictures.len()).max().unwrap_or(1) as f64;
        let start = OUTER_MARGIN + words;
        let titles = self.groups.iter().map(|(name, _)| text_width(name, TITLE_SIZE));
        let width = (across * (wide + GAP) - GAP).max(titles.fold(0.0, f64::max).ceil());
        let title = |name: &str| if name.is_empty() { 0.0 } else { TITLE_SIZE + SPACE };
        let of_group = |(name, rows): &(String, Vec<Row>)| {
            title(name) + rows.len() as f64 * (tall + GAP) - GAP
        };
        let gaps = GROUP_GAP * self.groups.len().saturating_sub(1) as f64;
        let height = self.groups.iter().map(of_group).sum::<f64>() + gaps;
        let mut drawing = Drawing::new(start + width + OUTER_MARGIN, height + 2.0 * OUTER_MARGIN);
        drawing.pixels_per_point = PIXELS;
        let mut top = OUTER_MARGIN;
        for (name, rows) in &self.groups {
            let place = [start, top + 0.5 * TITLE_SIZE];
            drawing.text(name, place, TITLE_SIZE, Anchor::Left);
            top += title(name);
            for row in rows {
                let place = [start - SPACE, top + 0.5 * tall];
                drawing.text(&row.label, place, LABEL_SIZE, Anchor::Right);
                for (number, picture) in row.pictures.iter().enumerate() {
                    let left = start + number as f64 * (wide + GAP);
                    let area = Area { left, top, width: wide, height: tall };
                    drawing.picture(area, picture.image(), false);
                }
                top += tall + GAP;
            }
            top += GROUP_GAP - GAP;
        }
        drawing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Theme;
    use crate::figure::svg::tests::words;
    use crate::figure::tests::{assert_blank_edge, keep};

    #[test]
    fn every_pixel_of_a_picture_is_a_square_of_its_colour() {
        let picture = Thumbnail::new(2, 1, &[0, 255, 255, 0]);
        let row = Row { label: String::new(), pictures: vec![picture.clone(), picture.clone()] };
        let drawing = Mosaic { groups: vec![(String::new(), vec![row])] }.draw();
        let drawn = drawing.image(Theme::Light);
        let black = drawn.pixels().filter(|pixel| pixel.0 == [0; 3]).count();
        // Two pictures of 30 × 30 points, half black.
        assert_eq!(black, 120 * 120);
        let svg = drawing.svg(Theme::Light).unwrap();
        assert_eq!(svg.matches("image-rendering:pixelated").count(), 2);
        assert_eq!(picture.image().get_pixel(1, 0).0, [255; 3]);
        assert_eq!(Thumbnail::new(1, 3, &[1, 2, 3]).pixels, [[1, 2, 3]]);
    }

    #[test]
    fn rows_and_groups_have_their_names() {
        let picture = |shade: u8| {
            let levels: Vec<u8> = (0..64_u8).map(|k| shade.wrapping_add(3 * k)).collect();
            Thumbnail::new(8, 1, &levels)
        };
        let row = |label: &str, shade: u8| Row {
            label: label.to_owned(),
            pictures: (0..6).map(|k| picture(shade + 20 * k)).collect(),
        };
        let group = |name: &str| (name.to_owned(), vec![row("known", 0), row("completed", 90)]);
        let drawing =
            Mosaic { groups: vec![group("upper half"), group("a tenth of the pixels")] }.draw();
        assert_blank_edge(&drawing);
        keep(&drawing, "mosaic");
        let words = words(&drawing.svg(Theme::Light).unwrap());
        assert_eq!(words[..3], ["upper half", "known", "completed"]);
        assert_eq!(words.len(), 6);
    }
}
