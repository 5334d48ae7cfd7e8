//! One packed picture to pixels of the size that is wanted.

use std::io::Cursor;

use image::imageops::{FilterType, crop_imm, resize};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits, RgbImage};

use crate::data::file::guarded;
use crate::{Error, Result};

use super::Images;

/// Sides of a picture: beyond any camera.
const LARGEST_SIDE: u32 = 1 << 15;
/// Memory for decoding: what deflate can pack at best into the file's bytes, and enough for a
/// picture of one colour with 2300 pixels a side, however small its file.
const LARGEST_RATIO: u64 = 1032;
const SLACK: u64 = 1 << 24;

/// Which part of a picture is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Crop {
    /// All of it.
    #[default]
    Whole,
    /// The centred square of this many pixels.
    Square(usize),
    /// The centred square whose side is this share of the width. 148/178 is the usual crop of
    /// CelebA, at any resolution.
    Share(f64),
}

/// What to do with every picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImageOptions {
    /// The part that is kept.
    pub crop: Crop,
    /// Width and height afterwards; `None` leaves them.
    pub size: Option<(usize, usize)>,
    /// Whether colours become shades of grey.
    pub is_grey: bool,
}

impl ImageOptions {
    /// As CelebA is used: the central 148 of 178 columns, 32×32 pixels.
    pub const CELEBA_32: Self =
        Self { crop: Crop::Share(148.0 / 178.0), size: Some((32, 32)), is_grey: false };
}

/// The pixels of one picture.
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) channels: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// Appends the pixels with the number of channels that a collection has.
    pub(super) fn append_to(&self, channels: usize, pixels: &mut Vec<u8>) {
        match (self.channels, channels) {
            (1, 3) => pixels.extend(self.pixels.iter().flat_map(|&grey| [grey; 3])),
            (3, 1) => pixels.extend(self.pixels.chunks_exact(3).map(luma)),
            _ => pixels.extend_from_slice(&self.pixels),
        }
    }
}

/// 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), as Pillow converts.
fn luma(colour: &[u8]) -> u8 {
    let weights = [19595, 38470, 7471]; // × 2¹⁶
    let sum: u32 = colour.iter().zip(weights).map(|(&c, weight)| u32::from(c) * weight).sum();
    u8::try_from((sum + 0x8000) >> 16).unwrap_or(u8::MAX)
}

/// A picture as a viewer shows it: with its transparency, and turned as its camera says.
pub(super) fn open(bytes: &[u8], file: &str) -> Result<DynamicImage> {
    guarded(file, "a picture in PNG or JPEG", || {
        let mut reader = ImageReader::new(Cursor::new(bytes))
            .with_guessed_format()
            .map_err(|error| error.to_string())?;
        let mut limits = Limits::default();
        limits.max_image_width = Some(LARGEST_SIDE);
        limits.max_image_height = Some(LARGEST_SIDE);
        limits.max_alloc = Some(bytes.len() as u64 * LARGEST_RATIO + SLACK);
        reader.limits(limits.clone());
        let text = |error: image::ImageError| error.to_string();
        let mut decoder = reader.into_decoder().map_err(text)?;
        limits.reserve(decoder.total_bytes()).map_err(text)?;
        decoder.set_limits(limits).map_err(text)?;
        let turned = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let mut picture = DynamicImage::from_decoder(decoder).map_err(text)?;
        picture.apply_orientation(turned);
        Ok(picture)
    })
}

/// Decodes, crops and resizes.
pub(super) fn decode(bytes: &[u8], file: &str, options: &ImageOptions) -> Result<Picture> {
    let decoded = open(bytes, file)?;
    let is_grey = options.is_grey || !decoded.color().has_color();
    let picture = shape(&decoded, options)?;
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let whole = Picture { width, height, channels: 3, pixels: picture.into_raw() };
    if !is_grey {
        return Ok(whole);
    }
    let mut pixels = Vec::with_capacity(width * height);
    whole.append_to(1, &mut pixels);
    Ok(Picture { width, height, channels: 1, pixels })
}

fn shape(decoded: &DynamicImage, options: &ImageOptions) -> Result<RgbImage> {
    let picture = decoded.to_rgb8();
    let (width, height) = picture.dimensions();
    let picture = match square(options.crop, width, height)? {
        None => picture,
        Some(side) => {
            // Halves go to the right and down: (8, 18) for 74 of 89×109.
            let (left, top) = ((width - side).div_ceil(2), (height - side).div_ceil(2));
            crop_imm(&picture, left, top, side, side).to_image()
        }
    };
    let Some((new_width, new_height)) = options.size else { return Ok(picture) };
    let side = |size: usize| match u32::try_from(size) {
        Ok(side @ 1..=LARGEST_SIDE) => Ok(side),
        _ => Err(Error::invalid("size", format!("from 1 to {LARGEST_SIDE}"), size)),
    };
    let (new_width, new_height) = (side(new_width)?, side(new_height)?);
    if (new_width, new_height) == picture.dimensions() {
        return Ok(picture);
    }
    Ok(resize(&picture, new_width, new_height, FilterType::Triangle))
}

/// The side of the square that is kept, no longer than the picture.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a width is a width"
)]
fn square(crop: Crop, width: u32, height: u32) -> Result<Option<u32>> {
    let side = match crop {
        Crop::Whole => return Ok(None),
        Crop::Square(side) => u32::try_from(side).unwrap_or(u32::MAX),
        Crop::Share(share) if share > 0.0 && share <= 1.0 => {
            (f64::from(width) * share).round() as u32
        }
        Crop::Share(share) => {
            return Err(Error::invalid("crop", "a share above 0 and at most 1", share));
        }
    };
    if side == 0 {
        return Err(Error::invalid("crop", "at least one pixel", side));
    }
    Ok(Some(side.min(width).min(height)))
}

impl Images {
    /// Pictures of equal size from their pixels.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the lengths fit each other.
    pub fn new(
        width: usize,
        height: usize,
        channels: usize,
        pixels: Vec<u8>,
        names: Vec<String>,
    ) -> Result<Self> {
        if !matches!(channels, 1 | 3) {
            return Err(Error::invalid("channels", "1 or 3", channels));
        }
        let size = width.checked_mul(height).and_then(|size| size.checked_mul(channels));
        let total = size.and_then(|size| size.checked_mul(names.len()));
        if total != Some(pixels.len()) {
            let expected = format!("{} x {height} x {width} x {channels} numbers", names.len());
            return Err(Error::invalid("pixels", expected, pixels.len()));
        }
        Ok(Self { width, height, channels, pixels, names })
    }
}
