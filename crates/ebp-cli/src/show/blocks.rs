//! Two pixels a character: `▀` in the colour of the upper one, on the colour of the lower.

use std::io::Write;

use image::{Rgb, RgbImage};

/// Which colours a terminal gives text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    /// Red, green and blue of 8 bits each.
    All,
    /// The 256 of xterm.
    Palette,
}

/// Levels of the cube of xterm's palette: colours 16 to 231 are 16 + 36 r + 6 g + b.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Rows of characters, each with its line's end.
pub(super) fn encode(picture: &RgbImage, colours: Colours) -> Vec<u8> {
    let (width, height) = picture.dimensions();
    let mut bytes = Vec::new();
    for top in (0..height).step_by(2) {
        let mut current = None;
        for x in 0..width {
            let upper = *picture.get_pixel(x, top);
            // Below the last row of an odd number is what the terminal has.
            let lower = (top + 1 < height).then(|| *picture.get_pixel(x, top + 1));
            if current != Some((upper, lower)) {
                let below = match lower {
                    Some(lower) => colour(48, lower, colours),
                    None => "49".to_owned(),
                };
                // Writing to memory does not fail.
                let _ = write!(bytes, "\x1b[{};{below}m", colour(38, upper, colours));
                current = Some((upper, lower));
            }
            bytes.extend_from_slice("▀".as_bytes());
        }
        bytes.extend_from_slice(b"\x1b[0m\n");
    }
    bytes
}

/// The words of a colour: 38 for that of the character, 48 for that behind it.
fn colour(place: u8, pixel: Rgb<u8>, colours: Colours) -> String {
    let [red, green, blue] = pixel.0;
    match colours {
        Colours::All => format!("{place};2;{red};{green};{blue}"),
        Colours::Palette => format!("{place};5;{}", nearest(pixel)),
    }
}

/// The number of the nearest colour of the palette, of the cube or of the greys. The first sixteen are
/// whatever the user chose, and are left out.
fn nearest(pixel: Rgb<u8>) -> usize {
    let away = |colour: [u8; 3]| -> u32 {
        let square = |(a, b): (u8, u8)| u32::from(a.abs_diff(b)).pow(2);
        pixel.0.into_iter().zip(colour).map(square).sum()
    };
    let level = |value: u8| {
        let nearest = (0..LEVELS.len()).min_by_key(|&level| LEVELS[level].abs_diff(value));
        nearest.unwrap_or(0)
    };
    let [red, green, blue] = pixel.0.map(level);
    let cube = (16 + 36 * red + 6 * green + blue, away([LEVELS[red], LEVELS[green], LEVELS[blue]]));
    // Greys 8, 18, …, 238.
    let greys = (0..24_u8).map(|number| (232 + usize::from(number), away([8 + 10 * number; 3])));
    let best = std::iter::once(cube).chain(greys).min_by_key(|(_, distance)| *distance);
    best.map_or(16, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels that a terminal would show; colours as their words.
    fn decode(bytes: &[u8]) -> Vec<Vec<(String, String)>> {
        let text = std::str::from_utf8(bytes).unwrap();
        let row = |line: &str| {
            let (mut found, mut colours) = (Vec::new(), (String::new(), String::new()));
            let mut rest = line;
            while let Some(letter) = rest.chars().next() {
                if let Some(sequence) = rest.strip_prefix("\x1b[") {
                    let (words, after) = sequence.split_once('m').unwrap();
                    if words != "0" {
                        let cut = words.find(";48;").or_else(|| words.find(";49")).unwrap();
                        colours = (words[3..cut].to_owned(), words[cut + 3..].to_owned());
                    }
                    rest = after;
                } else {
                    assert_eq!(letter, '▀');
                    found.push(colours.clone());
                    rest = &rest['▀'.len_utf8()..];
                }
            }
            found
        };
        text.lines().map(row).collect()
    }

    #[test]
    fn pixels_come_back_two_a_character() {
        let picture = RgbImage::from_fn(4, 3, |x, y| {
            Rgb([super::super::to_u8(60 * x), super::super::to_u8(100 * y), 9])
        });
        let found = decode(&encode(&picture, Colours::All));
        assert_eq!((found.len(), found[0].len()), (2, 4));
        for (x, y, pixel) in picture.enumerate_pixels() {
            let (upper, lower) = &found[(y / 2) as usize][x as usize];
            let [r, g, b] = pixel.0;
            let words = if y % 2 == 0 { upper } else { lower };
            assert_eq!(words.trim_start_matches(';'), format!("2;{r};{g};{b}"));
        }
        // Nothing is painted below the last row.
        assert!(found[1].iter().all(|(_, lower)| lower.is_empty()));
    }

    #[test]
    fn equal_neighbours_share_their_colours() {
        let picture = RgbImage::from_pixel(50, 2, Rgb([1, 2, 3]));
        let text = String::from_utf8(encode(&picture, Colours::All)).unwrap();
        assert_eq!(text, format!("\x1b[38;2;1;2;3;48;2;1;2;3m{}\x1b[0m\n", "▀".repeat(50)));
    }

    #[test]
    fn the_palette_is_that_of_xterm() {
        assert_eq!(nearest(Rgb([0, 0, 0])), 16);
        assert_eq!(nearest(Rgb([255, 255, 255])), 231);
        assert_eq!(nearest(Rgb([255, 0, 0])), 196);
        assert_eq!(nearest(Rgb([95, 135, 175])), 67);
        // A grey between the cube's levels.
        assert_eq!(nearest(Rgb([118, 118, 118])), 243);
        let picture = RgbImage::from_pixel(1, 2, Rgb([255, 0, 0]));
        assert_eq!(
            encode(&picture, Colours::Palette),
            "\x1b[38;5;196;48;5;196m▀\x1b[0m\n".as_bytes()
        );
    }
}
