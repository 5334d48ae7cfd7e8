//! Figures as files.

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageBuffer, ImageFormat, PixelWithColorType, RgbImage, RgbaImage};

use super::drawing::Drawing;
use super::theme::Theme;
use crate::files::create_folder;
use crate::{Error, Result};

const POINTS_PER_METRE: f64 = 72.0 / 0.0254;

/// A figure, drawn or made of pixels.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Lines, text and pictures.
    Drawing(Drawing),
    /// Pixels alone, such as renders of clouds.
    Pixels(RgbImage),
}

impl Figure {
    /// Writes it, with the folder it goes to: pixels as a PNG file, a drawing also as an SVG file beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Failed`] if it cannot be written.
    pub fn save(&self, path: &Path, theme: Theme) -> Result<()> {
        match self {
            Self::Drawing(drawing) => drawing.save(path, theme),
            Self::Pixels(pixels) => save(pixels, path),
        }
    }

    /// As pixels.
    pub fn image(&self, theme: Theme) -> RgbImage {
        match self {
            Self::Drawing(drawing) => drawing.image(theme),
            Self::Pixels(pixels) => pixels.clone(),
        }
    }
}

impl From<Drawing> for Figure {
    fn from(drawing: Drawing) -> Self {
        Self::Drawing(drawing)
    }
}

impl From<RgbImage> for Figure {
    fn from(pixels: RgbImage) -> Self {
        Self::Pixels(pixels)
    }
}

/// Writes a picture as a PNG file, with the folder it goes to.
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
    make_room(path)?;
    figure.save_with_format(path, ImageFormat::Png).map_err(|error| cannot_write(path, &error))
}

pub(super) fn save_drawing(drawing: &Drawing, path: &Path, theme: Theme) -> Result<()> {
    make_room(path)?;
    let put = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).map_err(|error| cannot_write(path, &error))
    };
    let is_svg = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    if !is_svg {
        let image = drawing.image(theme);
        put(path, &encoded(&image, Some(drawing.pixels_per_point))?)?;
    }
    put(&path.with_extension("svg"), drawing.svg(theme)?.as_bytes())
}

/// A picture as the bytes of a PNG file; with pixels per point it says how large it is on paper.
pub(super) fn encoded(image: &RgbImage, pixels_per_point: Option<f64>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, image.width(), image.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
    let size = pixels_per_point.map(|pixels| {
        let per_metre = (pixels * POINTS_PER_METRE).round() as u32;
        png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }
    });
    encoder.set_pixel_dims(size);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(image.as_raw())?;
        writer.finish()
    });
    written.map_err(|error| Error::failed(format!("cannot write a PNG file: {error}")))?;
    Ok(bytes)
}

fn make_room(path: &Path) -> Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => create_folder(folder),
        None => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("cannot write `{}`: {error}", path.display()))
        .with_help("is there room on the disk?")
}

/// A picture as the bytes of a PNG file.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::drawing::Anchor;

    #[test]
    fn png_bytes_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, figure) = (folder.path().join("a.png"), RgbImage::new(3, 2));
        save(&figure, &path).unwrap();
        assert_eq!(png(&figure).unwrap(), std::fs::read(path).unwrap());
    }

    #[test]
    fn drawings_are_written_twice_and_know_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut drawing = Drawing::new(72.0, 36.0);
        drawing.text("energy", [36.0, 18.0], 9.0, Anchor::Centre);
        let path = folder.path().join("new/b.png");
        drawing.save(&path, Theme::Dark).unwrap();
        let image = image::open(&path).unwrap().to_rgb8();
        assert_eq!(image, drawing.image(Theme::Dark));
        assert_eq!(image.dimensions(), (300, 150));
        let decoder =
            png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap()));
        let reader = decoder.read_info().unwrap();
        let size = reader.info().pixel_dims.unwrap();
        assert_eq!((size.xppu, size.yppu), (11_811, 11_811));
        let svg = std::fs::read_to_string(path.with_extension("svg")).unwrap();
        assert!(svg.contains("width=\"72pt\"") && svg.contains(">energy<"));
        // A name that ends in .svg asks for that alone.
        let only = folder.path().join("c.svg");
        drawing.save(&only, Theme::Light).unwrap();
        assert!(only.is_file() && !only.with_extension("png").exists());
        assert!(drawing.save(&path.join("below a file.png"), Theme::Light).is_err());
        Figure::from(RgbImage::new(3, 2)).save(&folder.path().join("d.png"), Theme::Dark).unwrap();
        assert!(!folder.path().join("d.svg").exists());
    }
}
