//! Figures: heat maps of densities, plots of curves, clouds as shaded spheres, drawn pixel by pixel.
//!
//! [`render`] draws clouds. [`heat_map`] and [`line_plot`] place panels on a canvas, which knows lines, points and text;
//! `axis` chooses the ticks, `colour` the colours and `font` the letters. All sizes are in points
//! of a page at scale 1; a figure of scale 2 has twice as many pixels each way.

mod axis;
pub mod calibration;
mod canvas;
mod colour;
pub mod confusion;
pub mod contact_sheet;
pub mod density;
mod font;
mod frame;
pub mod heat_map;
pub mod histogram;
pub mod line_plot;
pub mod mosaic;
pub mod planar_sets;
pub mod render;
pub mod run_curves;
pub mod scatter;

use std::io::Cursor;
use std::path::Path;

use image::imageops::replace;
use image::{DynamicImage, ImageBuffer, ImageFormat, PixelWithColorType, Rgb, RgbImage, RgbaImage};

pub use self::axis::Scale;
use crate::files::create_folder;
use crate::{Error, Result};

/// Writes a figure as a PNG file, with the folder it goes to.
///
/// # Errors
///
/// [`Error::Io`] or [`Error::Failed`] if it cannot be written.
pub fn save(figure: &RgbImage, path: &Path) -> Result<()> {
    save_pixels(figure, path)
}

/// The same of a picture with opacity; without it the file has three channels.
///
/// # Errors
///
/// [`Error::Io`] or [`Error::Failed`] if it cannot be written.
pub fn save_rgba(figure: RgbaImage, path: &Path) -> Result<()> {
    if figure.pixels().all(|pixel| pixel[3] == u8::MAX) {
        return save_pixels(&DynamicImage::ImageRgba8(figure).into_rgb8(), path);
    }
    save_pixels(&figure, path)
}

fn save_pixels<P>(figure: &ImageBuffer<P, Vec<u8>>, path: &Path) -> Result<()>
where
    P: PixelWithColorType<Subpixel = u8>,
{
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder)?;
    }
    figure.save_with_format(path, ImageFormat::Png).map_err(|error| {
        Error::failed(format!("cannot write `{}`: {error}", path.display()))
            .with_help("is there room on the disk?")
    })
}

/// A figure as the bytes of a PNG file.
///
/// # Errors
///
/// [`Error::Failed`] if there is no memory for it.
pub fn png(figure: &RgbImage) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let written = figure.write_to(&mut bytes, ImageFormat::Png);
    written.map_err(|error| Error::failed(format!("cannot write a PNG file: {error}")))?;
    Ok(bytes.into_inner())
}

/// Pictures side by side in rows of `per_row`, and the rows below each other.
pub fn stack(pictures: &[RgbImage], per_row: usize) -> RgbImage {
    let rows: Vec<&[RgbImage]> = pictures.chunks(per_row.max(1)).collect();
    let cell = pictures.iter().map(RgbImage::width).max().unwrap_or(1);
    let height_of = |row: &[RgbImage]| row.iter().map(RgbImage::height).max().unwrap_or(0);
    let height: u32 = rows.iter().map(|row| height_of(row)).sum();
    let num_columns = rows.iter().map(|row| row.len()).max().unwrap_or(1);
    let width = cell * u32::try_from(num_columns).unwrap_or(1);
    let mut figure = RgbImage::from_pixel(width, height.max(1), Rgb([255, 255, 255]));
    let mut top = 0_i64;
    for row in rows {
        let mut left = 0_i64;
        for picture in row {
            replace(&mut figure, picture, left, top);
            left += i64::from(cell);
        }
        top += i64::from(height_of(row));
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn png_bytes_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, figure) = (folder.path().join("a.png"), RgbImage::new(3, 2));
        save(&figure, &path).unwrap();
        assert_eq!(png(&figure).unwrap(), std::fs::read(path).unwrap());
    }

    #[test]
    fn pictures_are_stacked_without_overlap() {
        let picture = |width, height| RgbImage::new(width, height);
        let figure = stack(&[picture(10, 20), picture(12, 30)], 1);
        assert_eq!((figure.width(), figure.height()), (12, 50));
        let many: Vec<_> = (0..5).map(|_| picture(10, 20)).collect();
        let figure = stack(&many, 2);
        assert_eq!((figure.width(), figure.height()), (20, 60));
    }
}
