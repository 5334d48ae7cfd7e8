//! A sheet of pixels with smooth lines, points and text.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "coordinates are clipped to the sheet before they become pixel numbers"
)]

use image::{Rgb, RgbImage};

use super::colour::WHITE;
use super::font;

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
}

/// The sheet.
pub(super) struct Canvas {
    image: RgbImage,
    scale: f64,
}

impl Canvas {
    /// A white sheet of `width` × `height` points.
    pub(super) fn new(width: f64, height: f64, scale: u32) -> Self {
        let scale = f64::from(scale.max(1));
        let pixels = |points: f64| ((points * scale).round() as u32).clamp(1, 20_000);
        Self { image: RgbImage::from_pixel(pixels(width), pixels(height), WHITE), scale }
    }

    pub(super) fn into_image(self) -> RgbImage {
        self.image
    }

    /// Fills an area with the colour of each of its pixels, given by the pixel's place in it: both
    /// coordinates from 0 to 1, from the left and from the top.
    pub(super) fn shade(&mut self, area: Area, colour: impl Fn(f64, f64) -> Rgb<u8>) {
        let edge = |points: f64, end: u32| (points * self.scale).round().clamp(0.0, f64::from(end));
        let (width, height) = self.image.dimensions();
        let (left, right) = (edge(area.left, width), edge(area.right(), width));
        let (top, bottom) = (edge(area.top, height), edge(area.bottom(), height));
        for row in top as u32..bottom as u32 {
            for column in left as u32..right as u32 {
                let x = (f64::from(column) + 0.5 - left) / (right - left);
                let y = (f64::from(row) + 0.5 - top) / (bottom - top);
                self.image.put_pixel(column, row, colour(x, y));
            }
        }
    }

    /// An area of one colour.
    pub(super) fn fill(&mut self, area: Area, colour: Rgb<u8>) {
        self.shade(area, |_, _| colour);
    }

    /// The border of an area, inside its edges.
    pub(super) fn outline(&mut self, area: Area, width: f64, colour: Rgb<u8>) {
        let Area { left, top, .. } = area;
        for (x, y, w, h) in [
            (left, top, area.width, width),
            (left, area.bottom() - width, area.width, width),
            (left, top, width, area.height),
            (area.right() - width, top, width, area.height),
        ] {
            self.fill(Area { left: x, top: y, width: w, height: h }, colour);
        }
    }

    /// A line through `points`, clipped to an area.
    pub(super) fn polyline(
        &mut self,
        points: &[[f64; 2]],
        width: f64,
        colour: Rgb<u8>,
        clip: Area,
    ) {
        // The darkest cover of any segment counts, so that joints are not drawn twice.
        let (columns, rows) = self.image.dimensions();
        let mut cover = vec![0.0_f32; columns as usize * rows as usize];
        let scale = self.scale;
        let radius = 0.5 * width * scale;
        for pair in points.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|[x, y]| [x * scale, y * scale]);
            self.visit(a, b, radius + 1.0, clip, |column, row, place| {
                let cell = &mut cover[row as usize * columns as usize + column as usize];
                *cell = cell.max(coverage(distance(place, a, b), radius) as f32);
            });
        }
        for (pixel, cover) in self.image.pixels_mut().zip(cover) {
            blend(pixel, colour, f64::from(cover));
        }
    }

    /// A dot with a thin border, clipped to an area.
    pub(super) fn dot(&mut self, place: [f64; 2], radius: f64, colours: [Rgb<u8>; 2], clip: Area) {
        let centre = place.map(|coordinate| coordinate * self.scale);
        let [outer, inner] = [radius, 0.68 * radius].map(|points| points * self.scale);
        let mut marks = Vec::new();
        self.visit(centre, centre, outer + 1.0, clip, |column, row, place| {
            let away = distance(place, centre, centre);
            marks.push((column, row, coverage(away, outer), coverage(away, inner)));
        });
        for (column, row, border, body) in marks {
            let pixel = self.image.get_pixel_mut(column, row);
            blend(pixel, colours[1], border);
            blend(pixel, colours[0], body);
        }
    }

    /// Calls `mark` for every pixel of `clip` within `reach` of the box around a and b.
    fn visit(
        &self,
        a: [f64; 2],
        b: [f64; 2],
        reach: f64,
        clip: Area,
        mut mark: impl FnMut(u32, u32, [f64; 2]),
    ) {
        if ![a, b].as_flattened().iter().all(|coordinate| coordinate.is_finite()) {
            return;
        }
        let (columns, rows) = self.image.dimensions();
        let bounds = |axis: usize, low: f64, high: f64, end: u32| {
            let first = (a[axis].min(b[axis]) - reach).max(low * self.scale).max(0.0);
            let last = (a[axis].max(b[axis]) + reach).min(high * self.scale).min(f64::from(end));
            (first.round() as u32, last.max(0.0).round() as u32)
        };
        let (left, right) = bounds(0, clip.left, clip.right(), columns);
        let (top, bottom) = bounds(1, clip.top, clip.bottom(), rows);
        for row in top..bottom {
            for column in left..right {
                mark(column, row, [f64::from(column) + 0.5, f64::from(row) + 0.5]);
            }
        }
    }

    /// A line of text of the given height, its middle at `place`.
    pub(super) fn text(&mut self, text: &str, place: [f64; 2], size: f64, anchor: Anchor) {
        self.write(text, place, size, anchor, false);
    }

    /// The same, turned a quarter to the left: it reads upwards.
    pub(super) fn text_upwards(&mut self, text: &str, place: [f64; 2], size: f64) {
        self.write(text, place, size, Anchor::Centre, true);
    }

    fn write(&mut self, text: &str, place: [f64; 2], size: f64, anchor: Anchor, is_turned: bool) {
        let glyphs = font::render(text, size * self.scale);
        let along = match anchor {
            Anchor::Left => 0.0,
            Anchor::Centre => -0.5 * f64::from(glyphs.width),
            Anchor::Right => -f64::from(glyphs.width),
        };
        let across = -0.5 * f64::from(glyphs.height);
        let [x, y] = place.map(|coordinate| coordinate * self.scale);
        for row in 0..glyphs.height {
            for column in 0..glyphs.width {
                let cover = glyphs.cover[(row * glyphs.width + column) as usize];
                let (right, down) = (along + f64::from(column), across + f64::from(row));
                let (px, py) = if is_turned {
                    ((x + down).round(), (y - right).round() - 1.0)
                } else {
                    ((x + right).round(), (y + down).round())
                };
                let (columns, rows) = self.image.dimensions();
                if px >= 0.0 && py >= 0.0 && px < f64::from(columns) && py < f64::from(rows) {
                    let pixel = self.image.get_pixel_mut(px as u32, py as u32);
                    blend(pixel, super::colour::INK, cover);
                }
            }
        }
    }
}

/// How much of a pixel lies within `radius` of a line's middle, from 0 to 1.
fn coverage(distance: f64, radius: f64) -> f64 {
    (radius + 0.5 - distance).clamp(0.0, 1.0)
}

/// From a place to the segment from a to b.
fn distance(place: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let away = [place[0] - a[0], place[1] - a[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share = if length > 0.0 { (along[0] * away[0] + along[1] * away[1]) / length } else { 0.0 };
    let share = share.clamp(0.0, 1.0);
    (away[0] - share * along[0]).hypot(away[1] - share * along[1])
}

fn blend(pixel: &mut Rgb<u8>, colour: Rgb<u8>, share: f64) {
    if share <= 0.0 {
        return;
    }
    for (old, new) in pixel.0.iter_mut().zip(colour.0) {
        *old = (f64::from(*old) * (1.0 - share) + f64::from(new) * share).round() as u8;
    }
}
