//! Sixels: bands of six rows, in each a line of letters for every colour.
//!
//! ```text
//! letter = 63 + Σ 2^row · [the pixel has the colour],   row 0 … 5 from above
//! ```
//!
//! A picture of at most 256 colours keeps them. Others get the 252 of a cube of 6 × 7 × 6 levels, and what a
//! pixel lacks is handed on to its neighbours (Floyd and Steinberg). Levels travel in percent, by the format.

use std::collections::BTreeMap;
use std::io::Write;

use image::{Rgb, RgbImage};

/// Colours that every terminal with sixels has registers for.
const MOST_COLOURS: usize = 256;
/// Levels of red, green and blue: the eye tells greens apart best.
const LEVELS: [u8; 3] = [6, 7, 6];
/// Runs that are worth a count.
const LEAST_RUN: usize = 4;

/// A picture as numbers of colours.
struct Indexed {
    palette: Vec<[u8; 3]>,
    /// Row by row.
    pixels: Vec<u16>,
}

/// The escape sequence of a picture, and a line's end.
pub(super) fn encode(picture: &RgbImage) -> Vec<u8> {
    let (width, height) = picture.dimensions();
    let Indexed { palette, pixels } = exact(picture).unwrap_or_else(|| dithered(picture));
    let width = width as usize;
    // Pixels are square, and what is not painted stays as it is.
    let mut bytes = format!("\x1bP0;1;0q\"1;1;{width};{height}").into_bytes();
    // Writing to memory does not fail.
    for (number, colour) in palette.iter().enumerate() {
        let [red, green, blue] = colour.map(|level| (u32::from(level) * 100 + 127) / 255);
        let _ = write!(bytes, "#{number};2;{red};{green};{blue}");
    }
    for band in pixels.chunks(6 * width.max(1)) {
        let mut lines: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        for (row, colours) in band.chunks(width.max(1)).enumerate() {
            for (column, &colour) in colours.iter().enumerate() {
                lines.entry(colour).or_insert_with(|| vec![0; width])[column] |= 1 << row;
            }
        }
        for (colour, bits) in lines {
            let _ = write!(bytes, "#{colour}");
            write_runs(&mut bytes, &bits);
            bytes.push(b'$');
        }
        bytes.push(b'-');
    }
    bytes.extend_from_slice(b"\x1b\\\n");
    bytes
}

/// Letters of a line; equal ones by their count, and none for what is empty at its end.
fn write_runs(bytes: &mut Vec<u8>, bits: &[u8]) {
    let end = bits.iter().rposition(|&six| six != 0).map_or(0, |last| last + 1);
    for run in bits[..end].chunk_by(|a, b| a == b) {
        let letter = 63 + run[0];
        if run.len() >= LEAST_RUN {
            let _ = write!(bytes, "!{}", run.len());
            bytes.push(letter);
        } else {
            bytes.extend(std::iter::repeat_n(letter, run.len()));
        }
    }
}

/// With the picture's own colours, if they are few.
fn exact(picture: &RgbImage) -> Option<Indexed> {
    let mut numbers = BTreeMap::new();
    let mut palette = Vec::new();
    let mut pixels = Vec::with_capacity(picture.pixels().len());
    for Rgb(colour) in picture.pixels() {
        let number = *numbers.entry(*colour).or_insert(palette.len());
        if number == palette.len() {
            palette.push(*colour);
        }
        if palette.len() > MOST_COLOURS {
            return None;
        }
        pixels.push(u16::try_from(number).ok()?);
    }
    Some(Indexed { palette, pixels })
}

/// With the colours of the cube.
fn dithered(picture: &RgbImage) -> Indexed {
    let [reds, greens, blues] = LEVELS;
    let level = |number: u8, count: u8| to_level(u16::from(number) * 255 / u16::from(count - 1));
    let mut palette = Vec::new();
    for red in 0..reds {
        for green in 0..greens {
            let row =
                (0..blues).map(|blue| [level(red, reds), level(green, greens), level(blue, blues)]);
            palette.extend(row);
        }
    }
    let width = picture.width() as usize;
    let mut pixels = Vec::with_capacity(picture.pixels().len());
    // What the pixels of this row and of the next one are owed, in sixteenths, with a place on each side.
    let mut owed = vec![[0_i32; 3]; width + 2];
    for row in picture.rows() {
        let mut next = vec![[0_i32; 3]; width + 2];
        for (column, Rgb(colour)) in row.enumerate() {
            let at = column + 1;
            let mut number = 0;
            for channel in 0..3 {
                let steps = i32::from(LEVELS[channel]) - 1;
                let wanted = (i32::from(colour[channel]) + owed[at][channel] / 16).clamp(0, 255);
                let nearest = (wanted * steps + 127) / 255;
                let lack = wanted - nearest * 255 / steps;
                owed[at + 1][channel] += 7 * lack;
                next[at - 1][channel] += 3 * lack;
                next[at][channel] += 5 * lack;
                next[at + 1][channel] += lack;
                number = number * (steps + 1) + nearest;
            }
            pixels.push(u16::try_from(number).unwrap_or(0));
        }
        owed = next;
    }
    Indexed { palette, pixels }
}

fn to_level(number: u16) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::to_u8;
    use super::*;

    /// What a terminal shows; no pixel may stay unpainted.
    fn decode(bytes: &[u8]) -> RgbImage {
        let text = std::str::from_utf8(bytes).unwrap();
        let body =
            text.strip_prefix("\x1bP0;1;0q\"1;1;").unwrap().strip_suffix("\x1b\\\n").unwrap();
        let head = body.find('#').unwrap();
        let (width, height) = body[..head].split_once(';').unwrap();
        let (width, height): (u32, u32) = (width.parse().unwrap(), height.parse().unwrap());
        let mut picture: Vec<Option<[u8; 3]>> = vec![None; (width * height) as usize];
        let mut palette = BTreeMap::new();
        let (mut x, mut top, mut colour) = (0_u32, 0_u32, [0_u8; 3]);
        let mut letters = body[head..].chars().peekable();
        let number = |letters: &mut std::iter::Peekable<std::str::Chars<'_>>| -> u32 {
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits.parse().unwrap()
        };
        while let Some(letter) = letters.next() {
            let mut count = 1;
            let sixel = match letter {
                '#' => {
                    let register = number(&mut letters);
                    if letters.next_if_eq(&';').is_some() {
                        assert_eq!(number(&mut letters), 2, "red, green and blue");
                        let mut level = || {
                            assert_eq!(letters.next(), Some(';'));
                            to_u8((number(&mut letters) * 255 + 50) / 100)
                        };
                        palette.insert(register, [level(), level(), level()]);
                    } else {
                        colour = palette[&register];
                    }
                    continue;
                }
                '$' => {
                    x = 0;
                    continue;
                }
                '-' => {
                    (x, top) = (0, top + 6);
                    continue;
                }
                '!' => {
                    count = number(&mut letters);
                    letters.next().unwrap()
                }
                other => other,
            };
            let bits = u32::from(sixel) - 63;
            assert!(bits < 64);
            for _ in 0..count {
                for row in (0..6).filter(|row| bits >> row & 1 == 1) {
                    let place = ((top + row) * width + x) as usize;
                    assert_eq!(picture[place], None, "painted twice");
                    picture[place] = Some(colour);
                }
                x += 1;
            }
        }
        let pixels = picture.into_iter().flat_map(|pixel| pixel.expect("painted")).collect();
        RgbImage::from_raw(width, height, pixels).unwrap()
    }

    #[test]
    fn few_colours_come_back_as_percent_keep_them() {
        // 13 rows: two bands and a part of one.
        let picture = RgbImage::from_fn(37, 13, |x, y| {
            Rgb([to_u8(x / 9 * 60), to_u8(y / 2 * 40), if x > y { 255 } else { 0 }])
        });
        let found = decode(&encode(&picture));
        assert_eq!(found.dimensions(), (37, 13));
        for (a, b) in picture.pixels().zip(found.pixels()) {
            // Half a percent of 255, and half a level.
            assert!(a.0.iter().zip(b.0).all(|(a, b)| a.abs_diff(b) <= 2), "{a:?} {b:?}");
        }
    }

    #[test]
    fn many_colours_keep_their_mean() {
        let picture =
            RgbImage::from_fn(64, 60, |x, y| Rgb([to_u8(4 * x), to_u8(4 * y), to_u8(x + y)]));
        assert!(exact(&picture).is_none());
        let found = decode(&encode(&picture));
        let mean = |picture: &RgbImage, channel: usize| {
            let sum: f64 = picture.pixels().map(|pixel| f64::from(pixel.0[channel])).sum();
            sum / f64::from(64 * 60)
        };
        for channel in 0..3 {
            let away = (mean(&picture, channel) - mean(&found, channel)).abs();
            // What is lost: sixteenths cut off (up to one level), percents (up to 1.3), and the edges.
            assert!(away < 3.0, "{channel}: {away}");
        }
        // No pixel is further off than one step of the cube each way.
        for (a, b) in picture.pixels().zip(found.pixels()) {
            assert!(a.0.iter().zip(b.0).all(|(a, b)| a.abs_diff(b) <= 52), "{a:?} {b:?}");
        }
    }

    #[test]
    fn white_stays_white() {
        let mut picture = RgbImage::from_pixel(300, 9, Rgb([255; 3]));
        // More colours than are kept, in one corner.
        for x in 0..=255 {
            picture.put_pixel(x, 8, Rgb([to_u8(x), 255 - to_u8(x), 99]));
        }
        picture.put_pixel(299, 8, Rgb([0; 3]));
        assert!(exact(&picture).is_none());
        let found = decode(&encode(&picture));
        assert!((0..300).all(|x| found.get_pixel(x, 0).0 == [255; 3]));
        // A row of one colour is one run.
        let white = RgbImage::from_pixel(300, 6, Rgb([255; 3]));
        assert_eq!(
            String::from_utf8(encode(&white)).unwrap(),
            "\x1bP0;1;0q\"1;1;300;6#0;2;100;100;100#0!300~$-\x1b\\\n"
        );
    }
}
