//! A picture of the user's own, and which of its pixels are missing.

use std::path::Path;

use image::imageops::{FilterType, resize};
use image::{DynamicImage, ImageBuffer, Luma};

use super::PictureSize;
use crate::data::Grid;
use crate::data::image::{ImageOptions, open_image, parse_image};
use crate::{Error, IndexedSet, Result};

/// A mask is white from this level on, and a pixel opaque.
const WHITE: u8 = 128;

/// A picture with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenPicture {
    /// Columns.
    pub width: usize,
    /// 1 or 3.
    pub channels: usize,
    /// `[height, width, channels]`; what stands at missing pixels is not used.
    pub levels: Vec<u8>,
    /// Whether each pixel is known.
    pub mask: Vec<bool>,
    /// What was done to the file's pixels that somebody may not expect, in words.
    pub notes: Vec<String>,
}

/// Which pixels of a picture are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaskOptions<'a> {
    /// A picture: white is missing, and so are transparent pixels of the picture. Without it only these
    /// are.
    pub mask: Option<&'a Path>,
    /// White is known instead.
    pub is_inverted: bool,
    /// Picture and mask are resized to the size that the model knows; otherwise both have the same.
    pub is_resized: bool,
}

impl GivenPicture {
    /// Reads a picture, as large as it is, and says which of its pixels are known; `model` is the size
    /// that a model knows.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the mask has another size than the picture, or nothing is missing or known;
    /// otherwise what is wrong with a file.
    pub fn read(image: &Path, options: &MaskOptions<'_>, model: PictureSize) -> Result<Self> {
        let MaskOptions { mask, is_inverted, is_resized } = *options;
        let bytes = read(image)?;
        let picture = decode("--image", image, &bytes)?;
        let own = (picture.width() as usize, picture.height() as usize);
        let is_missing = if let Some(path) = mask {
            let mask = decode("--mask", path, &read(path)?)?;
            let found = (mask.width() as usize, mask.height() as usize);
            if !is_resized && found != own {
                return Err(wrong_size(path, found, image, own));
            }
            let mask = if found == own { mask } else { fitted(&mask, own) };
            Some(mask_of(&mask, is_inverted))
        } else {
            None
        };
        if is_missing.is_none() && !picture.color().has_alpha() {
            let message =
                format!("`{}` has no transparent pixels and there is no mask", image.display());
            let help = "say with `--mask FILE` what is missing: white is missing";
            return Err(Error::refused(message).with_help(help));
        }
        let opaque = picture.to_luma_alpha8().pixels().map(|p| p.0[1] >= WHITE).collect::<Vec<_>>();
        let known: Vec<bool> = match &is_missing {
            Some(is_missing) => {
                opaque.iter().zip(is_missing).map(|(opaque, missing)| *opaque && !missing).collect()
            }
            None => opaque,
        };
        let grey = model.channels == 1;
        let options = ImageOptions { is_grey: grey, ..ImageOptions::default() };
        let read = parse_image(&bytes, &name(image), &options)?;
        let levels = match (read.channels, model.channels) {
            (1, 3) => read.pixels.iter().flat_map(|&level| [level; 3]).collect(),
            _ => read.pixels,
        };
        let mut given =
            Self { width: own.0, channels: model.channels, levels, mask: known, notes: Vec::new() };
        given.describe(&picture, grey);
        if is_resized && own != (model.width, model.height) {
            given.notes.push(format!(
                "picture and mask of {} x {} pixels became {} x {}",
                own.0, own.1, model.width, model.height
            ));
            given = given.resized(model.width, model.height);
        }
        given.check(image, is_missing.is_some())?;
        Ok(given)
    }

    /// Notes what the model's channels change.
    fn describe(&mut self, picture: &DynamicImage, is_grey: bool) {
        let is_coloured =
            || picture.to_rgb8().pixels().any(|p| p.0[0] != p.0[1] || p.0[1] != p.0[2]);
        if is_grey && picture.color().has_color() && is_coloured() {
            let note = "the picture has colours and the model knows greys: everything becomes grey";
            self.notes.push(note.into());
        }
        if !is_grey && !picture.color().has_color() {
            let note =
                "the picture is grey and the model knows colours: what is filled in may have some";
            self.notes.push(note.into());
        }
    }

    /// Refuses a picture of which nothing is missing or nothing known.
    fn check(&self, image: &Path, has_mask: bool) -> Result<()> {
        let count = self.mask.iter().filter(|known| **known).count();
        if count > 0 && count < self.mask.len() {
            return Ok(());
        }
        let what = if count == 0 { "nothing is known" } else { "nothing is missing" };
        let message = format!(
            "there is nothing to complete in `{}`: of {} pixels {what}",
            image.display(),
            self.mask.len()
        );
        let help = if has_mask {
            "white in the mask is missing, black is known; `--invert-mask` turns it"
        } else {
            "the transparent pixels are missing; `--mask FILE` says it with a second picture"
        };
        Err(Error::refused(message).with_help(help))
    }

    /// The same picture with so many columns and rows: means of what is known, where at least half of
    /// what falls into a pixel is. Levels are taken as 0 to 1: filters of pictures cut off what is beyond.
    fn resized(&self, width: usize, height: usize) -> Self {
        let (from, to) =
            (self.size(), [width, height].map(|side| u32::try_from(side).unwrap_or(1)));
        let known = |place: usize| f32::from(u8::from(self.mask[place]));
        let plane = |of: &dyn Fn(usize) -> f32| -> Vec<f32> {
            let [columns, rows] = [from.width, from.height].map(|s| u32::try_from(s).unwrap_or(1));
            let numbers = (0..self.mask.len()).map(of).collect();
            let plane = ImageBuffer::<Luma<f32>, Vec<f32>>::from_raw(columns, rows, numbers);
            let shrunk = plane.map(|plane| resize(&plane, to[0], to[1], FilterType::Triangle));
            shrunk.map_or_else(Vec::new, ImageBuffer::into_raw)
        };
        let shares = plane(&known);
        let channels = self.channels;
        let mut levels = vec![0; width * height * channels];
        for channel in 0..channels {
            let level = |place: usize| {
                known(place) * f32::from(self.levels[place * channels + channel]) / 255.0
            };
            let places =
                levels.chunks_exact_mut(channels).zip(plane(&level).into_iter().zip(&shares));
            for (pixel, (sum, share)) in places {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped"
                )]
                if *share > 0.0 {
                    pixel[channel] = (255.0 * sum / share).round().clamp(0.0, 255.0) as u8;
                }
            }
        }
        let mask = shares.iter().map(|share| *share >= 0.5).collect();
        Self { width, channels, levels, mask, notes: self.notes.clone() }
    }

    /// Columns, rows and channels.
    pub fn size(&self) -> PictureSize {
        let height = self.mask.len() / self.width.max(1);
        PictureSize { width: self.width, height, channels: self.channels }
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

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// By the library's reader, which bounds what a small file may unfold to.
fn decode(flag: &str, path: &Path, bytes: &[u8]) -> Result<DynamicImage> {
    open_image(bytes, &name(path)).map_err(|error| {
        Error::failed(format!("{flag}: {error}"))
            .with_help("is the file whole? PNG and JPEG can be read; other programs save as either")
    })
}

fn wrong_size(mask: &Path, found: (usize, usize), image: &Path, expected: (usize, usize)) -> Error {
    Error::refused(format!(
        "`--mask {}` must have {} x {} pixels as `{}`, found {} x {}",
        mask.display(),
        expected.0,
        expected.1,
        image.display(),
        found.0,
        found.1
    ))
    .with_help("`--resize` brings picture and mask to the model's size, whatever they have")
}

/// Where a mask is white. Where it is transparent nothing was painted.
fn mask_of(mask: &DynamicImage, is_inverted: bool) -> Vec<bool> {
    let is_white = |p: &image::LumaA<u8>| p.0[0] >= WHITE && p.0[1] >= WHITE;
    mask.to_luma_alpha8().pixels().map(|p| is_white(p) != is_inverted).collect()
}

fn fitted(mask: &DynamicImage, (width, height): (usize, usize)) -> DynamicImage {
    let side = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    mask.resize_exact(side(width), side(height), FilterType::Triangle)
}
