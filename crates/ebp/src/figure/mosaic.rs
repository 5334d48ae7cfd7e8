//! Rows of small pictures with a word beside each row: what is known, what was made of it, what
//! was there.
#![allow(clippy::cast_possible_truncation, reason = "a figure has fewer than 2³² pixels")]

use image::{Rgb, RgbImage};

use super::canvas::{Anchor, Area, Canvas};
use super::colour::viridis;

/// Points between pictures, between groups of rows, and for the words at the left.
const GAP: f64 = 3.0;
const GROUP_GAP: f64 = 9.0;
const MARGIN: f64 = 8.0;
const LETTER: f64 = 11.0;
/// The least side of a picture as drawn, in points.
const LEAST_SIDE: f64 = 60.0;

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
    pub fn draw(&self) -> RgbImage {
        let rows = || self.groups.iter().flat_map(|(_, rows)| rows);
        let first = rows().find_map(|row| row.pictures.first());
        let (columns, lines) = first.map_or((1, 1), |picture| (picture.width, picture.height()));
        // A whole number of points per pixel, so that every pixel is a square of the same size.
        let zoom = (LEAST_SIDE / columns.max(lines).max(1) as f64).ceil().max(1.0);
        let (wide, tall) = (zoom * columns as f64, zoom * lines as f64);
        let longest = rows().map(|row| row.label.chars().count()).max().unwrap_or(0);
        let words = if longest == 0 { 0.0 } else { 0.85 * LETTER * longest as f64 + MARGIN };
        let across = rows().map(|row| row.pictures.len()).max().unwrap_or(1) as f64;
        let width = 2.0 * MARGIN + words + across * (wide + GAP) - GAP;
        let title = |name: &str| if name.is_empty() { 0.0 } else { 1.7 * LETTER };
        let height = 2.0 * MARGIN - GROUP_GAP
            + self
                .groups
                .iter()
                .map(|(name, rows)| title(name) + rows.len() as f64 * (tall + GAP) + GROUP_GAP)
                .sum::<f64>();
        let mut canvas = Canvas::new(width, height.max(1.0), 1);
        let mut top = MARGIN;
        for (name, rows) in &self.groups {
            if !name.is_empty() {
                let place = [MARGIN + words, top + 0.5 * LETTER];
                canvas.text(name, place, LETTER, Anchor::Left);
                top += title(name);
            }
            for row in rows {
                let place = [MARGIN + words - MARGIN, top + 0.5 * tall];
                canvas.text(&row.label, place, LETTER, Anchor::Right);
                for (number, picture) in row.pictures.iter().enumerate() {
                    let left = MARGIN + words + number as f64 * (wide + GAP);
                    let area = Area { left, top, width: wide, height: tall };
                    let (columns, lines) = (picture.width, picture.height());
                    canvas.shade(area, |x, y| {
                        #[expect(clippy::cast_sign_loss, reason = "shares from 0 to 1")]
                        let at = |share: f64, count: usize| {
                            ((share * count as f64) as usize).min(count.saturating_sub(1))
                        };
                        Rgb(picture.pixels[at(y, lines) * columns + at(x, columns)])
                    });
                }
                top += tall + GAP;
            }
            top += GROUP_GAP;
        }
        canvas.into_image()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_of_a_picture_is_a_square_of_its_colour() {
        let picture = Thumbnail::new(2, 1, &[0, 255, 255, 0]);
        let row = Row { label: String::new(), pictures: vec![picture.clone(), picture.clone()] };
        let drawn = Mosaic { groups: vec![(String::new(), vec![row])] }.draw();
        let black = drawn.pixels().filter(|pixel| pixel.0 == [0; 3]).count();
        // Two pictures of 60 × 60, half black.
        assert_eq!(black, 60 * 60);
        assert_eq!(picture.image().get_pixel(1, 0).0, [255; 3]);
        assert_eq!(Thumbnail::new(1, 3, &[1, 2, 3]).pixels, [[1, 2, 3]]);
    }
}
