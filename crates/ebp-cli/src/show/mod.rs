//! Pictures in the terminal: what a command has written is shown below its result.
//!
//! ```text
//! environment   which way a terminal understands, from variables alone: nothing is asked and waited for
//! screen        how many cells a picture gets
//! kitty iterm sixel blocks   from pixels to bytes (kitty and iterm take PNG in base64)
//! ```
//!
//! The bytes go to stdout, and only where that is a terminal: what is piped or kept stays text.

mod base64;
mod blocks;
mod environment;
mod iterm;
mod kitty;
mod screen;
mod sixel;

use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use ebp::figure::png;
use image::imageops::{FilterType, resize};
use image::{DynamicImage, RgbImage};

use self::environment::Way;
use self::screen::Screen;
use crate::failure::Failure;
use crate::{output, progress};

/// Arguments of every command, for those that write pictures.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ShowArguments {
    /// Show pictures in the terminal once they are written: auto, never, kitty, iterm, sixel or blocks
    ///
    /// `auto` asks the variables of the environment which way the terminal understands, and shows nothing
    /// where stdout is no terminal, with --quiet, or where CI is set or TERM is dumb. Another word shows
    /// them anyway. With --json nothing is shown.
    #[arg(long, global = true, value_enum, value_name = "HOW", default_value_t = ShowName::Auto)]
    #[arg(help_heading = "Terminal", hide_possible_values = true)]
    pub(crate) display: ShowName,
}

/// A way of showing pictures by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowName {
    /// As the terminal understands
    Auto,
    /// Not at all
    Never,
    /// The graphics protocol of kitty, Ghostty and others
    Kitty,
    /// The inline images of iTerm2, WezTerm and others
    Iterm,
    /// Sixels, as of the VT340: foot, mlterm and others
    Sixel,
    /// Two pixels a character, in colours
    Blocks,
}

static CHOSEN: OnceLock<ShowName> = OnceLock::new();

/// Keeps what was typed.
pub(crate) fn choose(arguments: ShowArguments) {
    // A second choice in one process would be a mistake of this program; the first one stands.
    let _kept = CHOSEN.get_or_init(|| arguments.display);
}

/// Shows a picture that was written, unless nobody would see it. A drawing in lines has no pixels.
pub(crate) fn picture(path: &Path, is_quiet: bool) -> Result<(), Failure> {
    let choice = CHOSEN.get().copied().unwrap_or(ShowName::Never);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_seen = stdout().is_terminal() && !is_quiet;
    let is_drawing = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    let Some(way) = environment::way(choice, is_seen, &variable).filter(|_| !is_drawing) else {
        return Ok(());
    };
    // Of a picture that moves it is the first one.
    match image::ImageReader::open(path).map_err(image::ImageError::from).and_then(|file| {
        // An animation may be called .apng, which is PNG to all who read.
        file.with_guessed_format()?.decode()
    }) {
        Ok(picture) => output::print_bytes(&encode(way, &on_white(&picture), Screen::of_stdout())?),
        // The result stands, and so does the file.
        Err(error) => {
            progress::notice(&format!("note: cannot show `{}`: {error}", path.display()));
            Ok(())
        }
    }
}

/// The bytes that show a picture, with a line's end behind it.
fn encode(way: Way, picture: &RgbImage, screen: Screen) -> Result<Vec<u8>, Failure> {
    let size = picture.dimensions();
    match way {
        Way::Blocks(colours) => {
            let cells = screen.cells(size, 1);
            let small = shrunk(picture, cells.columns, 2 * cells.rows);
            Ok(blocks::encode(&small, colours))
        }
        Way::Sixel => {
            let cells = screen.cells(size, screen::CELL_WIDTH);
            let small = shrunk(
                picture,
                cells.columns * screen::CELL_WIDTH,
                cells.rows * 2 * screen::CELL_WIDTH,
            );
            Ok(sixel::encode(&small))
        }
        Way::Kitty | Way::Iterm => {
            let cells = screen.cells(size, screen::CELL_WIDTH);
            // The terminal scales; more pixels than the finest screens have would only travel.
            let most = cells.columns * screen::FINEST_CELL_WIDTH;
            let png = if size.0 > most {
                let height = (u64::from(most) * u64::from(size.1)).div_ceil(u64::from(size.0));
                png(&resize(picture, most, to_u32(height), FilterType::Triangle))?
            } else {
                png(picture)?
            };
            let encode = if way == Way::Kitty { kitty::encode } else { iterm::encode };
            Ok(encode(&png, cells.columns))
        }
    }
}

/// A picture in so many pixels.
fn shrunk(picture: &RgbImage, width: u32, height: u32) -> RgbImage {
    if picture.dimensions() == (width, height) {
        return picture.clone();
    }
    // The triangle's width grows with the picture, so that every pixel counts.
    resize(picture, width, height, FilterType::Triangle)
}

/// What is transparent shows white, as on the page that figures are drawn for.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let picture = picture.to_rgba8();
    let (width, height) = picture.dimensions();
    RgbImage::from_fn(width, height, |x, y| {
        let [red, green, blue, opacity] = picture.get_pixel(x, y).0;
        let over = |colour: u8| {
            let (colour, opacity) = (u32::from(colour), u32::from(opacity));
            to_u8((colour * opacity + 255 * (255 - opacity) + 127) / 255)
        };
        image::Rgb([red, green, blue].map(over))
    })
}

fn to_u8(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

fn to_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparent_pixels_are_white_and_halves_are_between() {
        let mut picture = image::RgbaImage::new(3, 1);
        picture.put_pixel(0, 0, image::Rgba([10, 20, 30, 255]));
        picture.put_pixel(2, 0, image::Rgba([0, 0, 255, 128]));
        let found = on_white(&DynamicImage::ImageRgba8(picture));
        assert_eq!(found.get_pixel(0, 0).0, [10, 20, 30]);
        assert_eq!(found.get_pixel(1, 0).0, [255; 3]);
        // 255 · 127/255 = 127
        assert_eq!(found.get_pixel(2, 0).0, [127, 127, 255]);
    }

    #[test]
    fn every_way_ends_its_line_and_fits_the_screen() {
        let picture =
            RgbImage::from_fn(900, 500, |x, y| image::Rgb([to_u8(x / 4), to_u8(y / 2), 7]));
        let screen = Screen { columns: 60, rows: 40 };
        let found = encode(Way::Kitty, &picture, screen).unwrap();
        assert!(String::from_utf8(found).unwrap().contains(",c=59,"));
        let found = encode(Way::Iterm, &picture, screen).unwrap();
        assert!(String::from_utf8(found).unwrap().contains("width=59;"));
        let found = String::from_utf8(encode(Way::Sixel, &picture, screen).unwrap()).unwrap();
        // 59 columns of 8 pixels; 16 rows of 16 are nearest to 472·5/9 = 262.
        assert!(found.contains("\"1;1;472;256"), "{}", &found[..40]);
        let found = encode(Way::Blocks(blocks::Colours::All), &picture, screen).unwrap();
        let found = String::from_utf8(found).unwrap();
        assert!(found.ends_with("\x1b[0m\n"));
        assert_eq!(found.lines().count(), 16);
        assert!(found.lines().all(|line| line.matches('▀').count() == 59));
    }
}
