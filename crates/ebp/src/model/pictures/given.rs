//! A picture of the user's own, and which of its pixels are missing.

use std::path::Path;

use image::DynamicImage;
use image::imageops::FilterType;

use super::PictureSize;
use crate::data::Grid;
use crate::data::image::{ImageOptions, parse_image};
use crate::{Error, IndexedSet, Result};

/// A mask is white from this level on.
const WHITE: u8 = 128;

/// A picture with holes, as large as the model's.
#[derive(Clone, Debug)]
pub struct GivenPicture {
    /// Columns.
    pub width: usize,
    /// 1 or 3.
    pub channels: usize,
    /// `[height, width, channels]`; what stands at missing pixels is not used.
    pub levels: Vec<u8>,
    /// Whether each pixel is known.
    pub mask: Vec<bool>,
}

/// Which pixels of a picture are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaskOptions<'a> {
    /// A picture: white is missing. Without it the transparent pixels are.
    pub mask: Option<&'a Path>,
    /// White is known instead.
    pub is_inverted: bool,
    /// Picture and mask are resized to the size that the model knows.
    pub is_resized: bool,
}

impl GivenPicture {
    /// Reads a picture and says which of its pixels are known.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it has another size than the model's, or nothing is missing or known;
    /// otherwise what is wrong with a file.
    pub fn read(image: &Path, options: &MaskOptions<'_>, size: PictureSize) -> Result<Self> {
        let MaskOptions { mask, is_inverted, is_resized } = *options;
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
            return Err(Error::refused(format!(
                "`{}` has no transparent pixels and there is no mask",
                image.display()
            ))
            .with_help("say with `--mask FILE` what is missing: white is missing"));
        };
        let count = known.iter().filter(|known| **known).count();
        if count == 0 || count == known.len() {
            let what = if count == 0 { "nothing is known" } else { "nothing is missing" };
            return Err(Error::refused(format!(
                "there is nothing to complete in `{}`: {what}",
                image.display()
            ))
            .with_help("white in the mask is missing, black is known; `--invert-mask` turns it"));
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

    /// The size of a picture, with as many channels as a model knows.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn size_of(image: &Path, channels: usize) -> Result<PictureSize> {
        let picture = decode(image, &read(image)?)?;
        let (width, height) = (picture.width() as usize, picture.height() as usize);
        Ok(PictureSize { width, height, channels })
    }

    /// The places that are missing.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.mask.len()).filter(|&place| !self.mask[place]).collect()
    }

    pub(super) fn locations(&self, places: &[usize]) -> Result<Vec<f64>> {
        let grid = Grid::new(self.width, self.mask.len() / self.width)?;
        Ok(places.iter().flat_map(|&place| grid.location(place)).collect())
    }

    /// The known pixels, at the middle of their levels.
    pub(super) fn context(&self) -> Result<IndexedSet> {
        let places: Vec<usize> = (0..self.mask.len()).filter(|&place| self.mask[place]).collect();
        let values = places
            .iter()
            .flat_map(|&place| &self.levels[place * self.channels..][..self.channels])
            .map(|&level| (f64::from(level) + 0.5) / 128.0 - 1.0);
        IndexedSet::new(2, self.channels, self.locations(&places)?, values.collect())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(Error::io("read", path))
}

/// Checked by the library's reader first, which bounds what a small file may unfold to.
fn decode(path: &Path, bytes: &[u8]) -> Result<DynamicImage> {
    parse_image(bytes, &path.display().to_string(), &ImageOptions::default())?;
    image::load_from_memory(bytes).map_err(|error| {
        Error::failed(format!("`{}` is no picture in PNG or JPEG: {error}", path.display()))
    })
}

fn check_size(
    flag: &str,
    path: &Path,
    picture: &DynamicImage,
    size: PictureSize,
    is_resized: bool,
) -> Result<()> {
    let found = (picture.width() as usize, picture.height() as usize);
    if is_resized || found == (size.width, size.height) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "`{flag} {}` has {} x {} pixels, the model knows {} x {}",
        path.display(),
        found.0,
        found.1,
        size.width,
        size.height
    ))
    .with_help("`--resize` changes picture and mask to the model's size"))
}

fn resized(picture: &DynamicImage, size: PictureSize) -> DynamicImage {
    let side = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    picture.resize_exact(side(size.width), side(size.height), FilterType::Nearest)
}
