//! A picture of the user's own, and which of its pixels are missing.

use std::path::Path;

use ebp::data::image::{ImageOptions, parse_image};
use image::DynamicImage;
use image::imageops::FilterType;
use miette::miette;

use crate::command::train::pictures::Size;
use crate::failure::Failure;

/// A mask is white from this level on.
const WHITE: u8 = 128;

/// A picture with holes, as large as the model's.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) width: usize,
    pub(super) channels: usize,
    /// `[height, width, channels]`; what stands at missing pixels is not used.
    pub(super) levels: Vec<u8>,
    /// Whether each pixel is known.
    pub(super) mask: Vec<bool>,
}

impl Given {
    pub(super) fn read(
        image: &Path,
        mask: Option<&Path>,
        is_inverted: bool,
        is_resized: bool,
        size: Size,
    ) -> Result<Self, Failure> {
        let bytes = read(image)?;
        let picture = decode(image, &bytes)?;
        check_size("--image", image, &picture, size, is_resized)?;
        let known: Vec<bool> = if let Some(path) = mask {
            let mask = decode(path, &read(path)?)?;
            check_size("--mask", path, &mask, size, is_resized)?;
            let grey = resized(&mask, size).to_luma8();
            grey.pixels().map(|pixel| (pixel.0[0] >= WHITE) == is_inverted).collect()
        } else if picture.color().has_alpha() {
            resized(&picture, size).to_rgba8().pixels().map(|p| p.0[3] >= WHITE).collect()
        } else {
            return Err(Failure::Usage(miette!(
                help = "say with `--mask FILE` what is missing: white is missing",
                "`{}` has no transparent pixels and there is no mask",
                image.display()
            )));
        };
        let count = known.iter().filter(|known| **known).count();
        if count == 0 || count == known.len() {
            let what = if count == 0 { "nothing is known" } else { "nothing is missing" };
            return Err(Failure::Usage(miette!(
                help = "white in the mask is missing, black is known; `--invert-mask` turns it",
                "there is nothing to complete in `{}`: {what}",
                image.display()
            )));
        }
        let options = ImageOptions {
            size: Some((size.width, size.height)),
            is_grey: size.channels == 1,
            ..ImageOptions::default()
        };
        let images = parse_image(&bytes, &image.display().to_string(), &options)?;
        let levels = match (images.channels, size.channels) {
            (1, 3) => images.pixels.iter().flat_map(|&grey| [grey; 3]).collect(),
            _ => images.pixels,
        };
        Ok(Self { width: size.width, channels: size.channels, levels, mask: known })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::cannot("read", path, &error))
}

/// Checked by the library's reader first, which bounds what a small file may unfold to.
fn decode(path: &Path, bytes: &[u8]) -> Result<DynamicImage, Failure> {
    parse_image(bytes, &path.display().to_string(), &ImageOptions::default())?;
    image::load_from_memory(bytes).map_err(|error| {
        Failure::Failed(miette!("`{}` is no picture in PNG or JPEG: {error}", path.display()))
    })
}

fn check_size(
    flag: &str,
    path: &Path,
    picture: &DynamicImage,
    size: Size,
    is_resized: bool,
) -> Result<(), Failure> {
    let found = (picture.width() as usize, picture.height() as usize);
    if is_resized || found == (size.width, size.height) {
        return Ok(());
    }
    Err(Failure::Usage(miette!(
        help = "`--resize` changes picture and mask to the model's size",
        "`{flag} {}` has {} x {} pixels, the model knows {} x {}",
        path.display(),
        found.0,
        found.1,
        size.width,
        size.height
    )))
}

fn resized(picture: &DynamicImage, size: Size) -> DynamicImage {
    let side = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    picture.resize_exact(side(size.width), side(size.height), FilterType::Nearest)
}
