//! Drawings as pixels, smooth at their edges.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places are clipped to the picture before they become pixel numbers"
)]

use image::{Rgb, RgbImage};

use super::coverage::Cover;
use super::drawing::{Anchor, Area, Drawing, Mark, Paint, text_width};
use super::letters;
use super::line::dashed;
use super::theme::{Colour, Theme};

/// Pictures are not wider or higher.
const LONGEST_SIDE: f64 = 20_000.0;
/// Chords of letters are nowhere further off their curves, in pixels.
const TOLERANCE: f64 = 0.05;

/// A drawing with `scale` pixels to a point.
pub(super) fn image(drawing: &Drawing, theme: Theme, scale: f64) -> RgbImage {
    let [width, height] =
        drawing.size().map(|side| (side * scale).round().clamp(1.0, LONGEST_SIDE));
    let image = RgbImage::from_pixel(width as u32, height as u32, Colour::Paper.under(theme));
    let mut sheet = Sheet { image, theme, scale };
    for mark in &drawing.marks {
        sheet.draw(mark);
    }
    sheet.image
}

struct Sheet {
    image: RgbImage,
    theme: Theme,
    scale: f64,
}

impl Sheet {
    fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Fill { area, paint } => {
                let edges = self.edges(*area);
                self.fill(edges, *paint);
            }
            Mark::Rule { ends, width, colour } => self.rule(*ends, *width, *colour),
            Mark::Lines { lines, width, paint, dash } => {
                let parts: Vec<_> = lines.iter().flat_map(|line| dashed(line, dash)).collect();
                self.lines(&parts, *width, *paint);
            }
            Mark::Polygon { contour, paint, border: (width, colour) } => {
                let cover = Cover::of_polygons(&vec![self.pixels(contour)], self.size());
                self.blend(&cover, *paint);
                if *width > 0.0 {
                    let closed = [&contour[..], &contour[..1]].concat();
                    self.lines(&[closed], *width, (*colour).into());
                }
            }
            Mark::Dot { centre, radius, colour, border: (width, edge) } => {
                let radii = [(*radius, *edge), (radius - width, *colour)];
                let from = usize::from(*width <= 0.0);
                for (radius, colour) in &radii[from..] {
                    self.lines(&[vec![*centre]], 2.0 * radius, (*colour).into());
                }
            }
            Mark::Picture { area, pixels, is_smooth } => self.picture(*area, pixels, *is_smooth),
            Mark::Text { words, place, size, anchor, is_upwards } => {
                self.text(words, *place, *size, (*anchor, *is_upwards));
            }
        }
    }

    fn size(&self) -> [u32; 2] {
        [self.image.width(), self.image.height()]
    }

    fn pixels(&self, points: &[[f64; 2]]) -> Vec<[f64; 2]> {
        points.iter().map(|point| point.map(|place| place * self.scale)).collect()
    }

    /// Left, right, top and bottom of an area, in whole pixels.
    fn edges(&self, area: Area) -> [f64; 4] {
        [area.left, area.right(), area.top, area.bottom()].map(|place| (place * self.scale).round())
    }

    fn fill(&mut self, edges: [f64; 4], paint: Paint) {
        let colour = paint.colour.under(self.theme);
        self.shade(edges, |below, _, _| mixed(below, colour, paint.opacity));
    }

    /// Gives every pixel of an area a colour, from the one it has and its place in the area from 0 to 1.
    fn shade(
        &mut self,
        [left, right, top, bottom]: [f64; 4],
        colour: impl Fn(Rgb<u8>, f64, f64) -> Rgb<u8>,
    ) {
        let [width, height] = self.size();
        let range = |low: f64, high: f64, end: u32| {
            low.clamp(0.0, f64::from(end)) as u32..high.clamp(0.0, f64::from(end)) as u32
        };
        for row in range(top, bottom, height) {
            let y = (f64::from(row) + 0.5 - top) / (bottom - top);
            for column in range(left, right, width) {
                let x = (f64::from(column) + 0.5 - left) / (right - left);
                let pixel = self.image.get_pixel_mut(column, row);
                *pixel = colour(*pixel, x, y);
            }
        }
    }

    /// A whole number of pixels wide, so that lines of one width look alike.
    fn rule(&mut self, [a, b]: [[f64; 2]; 2], width: f64, colour: Colour) {
        let thick = (width * self.scale).round().max(1.0);
        let side = |axis: usize| {
            let (low, high) =
                (a[axis].min(b[axis]) * self.scale, a[axis].max(b[axis]) * self.scale);
            if high - low > 0.0 {
                return [low.round(), high.round()];
            }
            let start = (low - 0.5 * thick).round();
            [start, start + thick]
        };
        let ([left, right], [top, bottom]) = (side(0), side(1));
        self.fill([left, right, top, bottom], colour.into());
    }

    fn lines(&mut self, lines: &[Vec<[f64; 2]>], width: f64, paint: Paint) {
        let lines: Vec<_> = lines.iter().map(|line| self.pixels(line)).collect();
        let cover = Cover::of_lines(&lines, 0.5 * width * self.scale, self.size());
        self.blend(&cover, paint);
    }

    fn blend(&mut self, cover: &Cover, paint: Paint) {
        let colour = paint.colour.under(self.theme);
        for (column, row, share) in cover.pixels() {
            let pixel = self.image.get_pixel_mut(column, row);
            *pixel = mixed(*pixel, colour, share * paint.opacity);
        }
    }

    fn picture(&mut self, area: Area, pixels: &RgbImage, is_smooth: bool) {
        let (columns, rows) = pixels.dimensions();
        if columns == 0 || rows == 0 {
            return;
        }
        let edges = self.edges(area);
        self.shade(edges, |_, x, y| {
            if is_smooth {
                return between(pixels, x, y);
            }
            let at = |share: f64, count: u32| ((share * f64::from(count)) as u32).min(count - 1);
            *pixels.get_pixel(at(x, columns), at(y, rows))
        });
    }

    fn text(
        &mut self,
        words: &str,
        [x, y]: [f64; 2],
        size: f64,
        (anchor, is_upwards): (Anchor, bool),
    ) {
        let along = -anchor.share() * text_width(words, size);
        let across = 0.5 * letters::CAPITAL * size;
        let place = |[right, down]: [f64; 2]| {
            let (right, down) = (right + along, down + across);
            let place = if is_upwards { [x + down, y - right] } else { [x + right, y + down] };
            place.map(|number| number * self.scale)
        };
        let contours = letters::contours(words, size, TOLERANCE / self.scale);
        let contours =
            contours.into_iter().map(|contour| contour.into_iter().map(place).collect()).collect();
        let cover = Cover::of_polygons(&contours, self.size());
        self.blend(&cover, Colour::Ink.into());
    }
}

/// The colour at a place of a picture, linear between the middles of its pixels.
fn between(pixels: &RgbImage, x: f64, y: f64) -> Rgb<u8> {
    let neighbours = |share: f64, count: u32| {
        let place = (share * f64::from(count) - 0.5).clamp(0.0, f64::from(count - 1));
        let first = place as u32;
        (first, (first + 1).min(count - 1), place - f64::from(first))
    };
    let ((left, right, across), (top, bottom, down)) =
        (neighbours(x, pixels.width()), neighbours(y, pixels.height()));
    let row = |row: u32| {
        let [a, b] = [left, right].map(|column| pixels.get_pixel(column, row).0.map(f64::from));
        [0, 1, 2].map(|c| a[c] * (1.0 - across) + b[c] * across)
    };
    let (above, below) = (row(top), row(bottom));
    Rgb([0, 1, 2].map(|c| (above[c] * (1.0 - down) + below[c] * down).round() as u8))
}

/// A layer of colour on what lies below.
fn mixed(below: Rgb<u8>, above: Rgb<u8>, share: f64) -> Rgb<u8> {
    let level = |c: usize| {
        (f64::from(below.0[c]) * (1.0 - share) + f64::from(above.0[c]) * share).round() as u8
    };
    Rgb([0, 1, 2].map(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::drawing::Anchor;

    fn ink_of(drawing: &Drawing, scale: f64) -> Vec<(u32, u32)> {
        let image = image(drawing, Theme::Light, scale);
        let dark = |pixel: &Rgb<u8>| pixel.0[0] < 128;
        image.enumerate_pixels().filter(|(.., p)| dark(p)).map(|(x, y, _)| (x, y)).collect()
    }

    fn range(ink: &[(u32, u32)], axis: usize) -> (u32, u32) {
        let places = || ink.iter().map(|place| [place.0, place.1][axis]);
        (places().min().unwrap(), places().max().unwrap())
    }

    #[test]
    fn texts_stand_where_they_should() {
        // H is 0.722 of the size wide, with 0.079 blank at each side; size 40 at 5 pixels a point.
        let mut drawing = Drawing::new(100.0, 60.0);
        drawing.text("H", [50.0, 30.0], 40.0, Anchor::Centre);
        let ink = ink_of(&drawing, 5.0);
        let (cap, half) = (letters::CAPITAL * 40.0 * 5.0, 0.5 * text_width("H", 40.0) * 5.0);
        let near = |found: u32, expected: f64| (f64::from(found) - expected).abs() <= 1.0;
        let ((top, bottom), (left, right)) = (range(&ink, 1), range(&ink, 0));
        assert!(
            near(top, 150.0 - 0.5 * cap) && near(bottom + 1, 150.0 + 0.5 * cap),
            "{top} {bottom}"
        );
        assert!(left > (250.0 - half) as u32 && right < (250.0 + half) as u32);
        assert!(near(left + right + 1, 500.0), "{left} {right}");
        // Upwards, the same letter lies on its side around the same place.
        let mut turned = Drawing::new(100.0, 60.0);
        turned.text_upwards("H", [50.0, 30.0], 40.0, Anchor::Centre);
        let ink = ink_of(&turned, 5.0);
        let (low, high) = range(&ink, 0);
        assert!(near(low, 250.0 - 0.5 * cap) && near(high + 1, 250.0 + 0.5 * cap), "{low} {high}");
        // L reads upwards: its foot is at the right, its stem at the bottom.
        let mut turned = Drawing::new(100.0, 60.0);
        turned.text_upwards("L", [50.0, 30.0], 40.0, Anchor::Centre);
        let ink = ink_of(&turned, 5.0);
        let (left, right) = range(&ink, 0);
        let foot = ink.iter().filter(|place| place.0 == right - 2).count();
        let top = ink.iter().filter(|place| place.0 == left + 2).count();
        assert!(foot > 3 * top, "{foot} {top}");
        for (anchor, expected) in
            [(Anchor::Left, 50.0), (Anchor::Right, 50.0 - text_width("H", 40.0))]
        {
            let mut drawing = Drawing::new(100.0, 60.0);
            drawing.text("H", [50.0, 30.0], 40.0, anchor);
            let start = range(&ink_of(&drawing, 5.0), 0).0;
            assert!((f64::from(start) / 5.0 - expected - 0.079 * 40.0).abs() < 0.5, "{anchor:?}");
        }
    }

    #[test]
    fn rules_are_sharp_and_of_one_width() {
        let mut drawing = Drawing::new(40.0, 20.0);
        for x in [3.1, 9.37, 17.77, 30.5] {
            drawing.rule([[x, 2.0], [x, 18.0]], 0.6, Colour::Ink);
        }
        let image = image(&drawing, Theme::Light, 300.0 / 72.0);
        let row: Vec<u8> = (0..image.width()).map(|x| image.get_pixel(x, 40).0[0]).collect();
        assert!(row.iter().all(|level| [28, 255].contains(level)));
        // 2.5 pixels are 3, four times.
        assert_eq!(row.iter().filter(|level| **level < 100).count(), 12);
    }

    #[test]
    fn pictures_are_smooth_or_squares() {
        let pixels =
            RgbImage::from_fn(2, 1, |x, _| if x == 0 { Rgb([0; 3]) } else { Rgb([200; 3]) });
        let area = Area { left: 0.0, top: 0.0, width: 8.0, height: 2.0 };
        let row = |is_smooth| {
            let mut drawing = Drawing::new(8.0, 2.0);
            drawing.picture(area, pixels.clone(), is_smooth);
            let image = image(&drawing, Theme::Dark, 1.0);
            (0..8).map(|x| image.get_pixel(x, 1).0[0]).collect::<Vec<_>>()
        };
        assert_eq!(row(false), [0, 0, 0, 0, 200, 200, 200, 200]);
        assert_eq!(row(true), [0, 0, 25, 75, 125, 175, 200, 200]);
    }

    #[test]
    fn themes_change_paper_and_ink_alone() {
        let mut drawing = Drawing::new(30.0, 10.0);
        let area = |left| Area { left, top: 2.0, width: 6.0, height: 6.0 };
        drawing.fill(area(2.0), Colour::Ink);
        drawing.fill(area(12.0), Colour::Fixed(Rgb([0, 114, 178])));
        drawing.fill(area(22.0), Colour::Grid);
        let [light, dark] = [Theme::Light, Theme::Dark].map(|theme| image(&drawing, theme, 1.0));
        let at = |image: &RgbImage, x| image.get_pixel(x, 5).0;
        assert_eq!(at(&light, 15), at(&dark, 15));
        for x in [0, 5, 25] {
            assert_ne!(at(&light, x), at(&dark, x));
        }
        let bright = |pixel: [u8; 3]| pixel.map(u32::from).iter().sum::<u32>();
        assert!(bright(at(&light, 0)) > bright(at(&light, 5)));
        assert!(bright(at(&dark, 0)) < bright(at(&dark, 5)));
    }
}
