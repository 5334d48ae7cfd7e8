//! Pictures of one size: from folders and zip archives of PNG and JPEG, and from MNIST's IDX files.
//!
//! Every picture is cropped to a centred square if asked, resized with a triangle filter if asked,
//! and turned to grey or colour as the first one is. The names are the paths below the folder or in
//! the archive, in sorted order.

mod decode;
mod mask;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use rayon::prelude::*;

use crate::error::Place;
use crate::{Error, Result};

use super::cloud::files_below;
use super::file::{Archive, NumberKind, extension, malformed, name_of, read_bytes};
use super::format::idx;

pub use decode::{Crop, ImageOptions};
use decode::{Picture, decode};
pub use mask::KnownPart;

/// Pictures unpacked and decoded at a time: what is held in memory beside the result.
const CHUNK: usize = 512;
/// A single packed picture larger than this is refused.
const LARGEST_FILE: usize = 1 << 28;

/// Pictures of one size, 8 bits a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 grey, 3 red, green and blue.
    pub channels: usize,
    /// All pixels, `[count, height, width, channels]`.
    pub pixels: Vec<u8>,
    /// What each picture is called.
    pub names: Vec<String>,
}

impl Images {
    /// How many pictures.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The pixels of picture `index`, `[height, width, channels]`.
    ///
    /// # Panics
    ///
    /// If there is no such picture, as slice indexing does.
    pub fn image(&self, index: usize) -> &[u8] {
        let size = self.width * self.height * self.channels;
        &self.pixels[index * size..][..size]
    }

    /// Keeps the first `at` pictures and hands out the others.
    ///
    /// # Panics
    ///
    /// If there are fewer, as slice indexing does.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        let pixels = self.pixels.split_off(at * self.width * self.height * self.channels);
        Self { pixels, names: self.names.split_off(at), ..*self }
    }

    fn push(&mut self, name: String, picture: &Picture) -> Result<()> {
        if self.names.is_empty() {
            (self.width, self.height) = (picture.width, picture.height);
            self.channels = picture.channels;
        }
        if (self.width, self.height) != (picture.width, picture.height) {
            let expected = format!("{} x {} pixels as the first picture", self.width, self.height);
            let found = format!("{} x {}; a size makes them equal", picture.width, picture.height);
            return Err(malformed(&name, Place::Byte(0), expected, found));
        }
        picture.append_to(self.channels, &mut self.pixels);
        self.names.push(name);
        Ok(())
    }
}

/// Whether a file is a picture by its name.
pub fn is_image(path: &Path) -> bool {
    matches!(extension(path).as_str(), "png" | "jpg" | "jpeg")
}

/// Reads the pictures of a folder, a zip archive, an IDX file or one picture file.
///
/// # Errors
///
/// [`Error::Io`] if something cannot be read, [`Error::Malformed`] if a file is no picture, there
/// is none or their sizes differ.
pub fn read_images(path: &Path, options: &ImageOptions) -> Result<Images> {
    let mut images =
        Images { width: 0, height: 0, channels: 0, pixels: Vec::new(), names: Vec::new() };
    if path.is_dir() {
        let files = files_below(path, &is_image)?;
        for chunk in files.chunks(CHUNK) {
            let pictures: Vec<Result<Picture>> = chunk
                .par_iter()
                .map(|file| decode(&read_bytes(file)?, &name_of(file), options))
                .collect();
            for (file, picture) in chunk.iter().zip(pictures) {
                let below = file.strip_prefix(path).unwrap_or(file);
                images.push(name_of(below), &picture?)?;
            }
        }
    } else if extension(path) == "zip" {
        read_zip(path, options, &mut images)?;
    } else if is_image(path) {
        let name = name_of(path);
        images.push(name.clone(), &decode(&read_bytes(path)?, &name, options)?)?;
    } else {
        return parse_idx_images(&read_bytes(path)?, &name_of(path));
    }
    if images.is_empty() {
        let found = "none";
        return Err(malformed(&name_of(path), Place::Byte(0), "pictures in png or jpg", found));
    }
    Ok(images)
}

fn read_zip(path: &Path, options: &ImageOptions, images: &mut Images) -> Result<()> {
    let file = name_of(path);
    let input = File::open(path).map_err(Error::io("read", path))?;
    let mut archive = Archive::open(&file, BufReader::with_capacity(1 << 16, input))?;
    let mut entries: Vec<(String, usize)> = (0..archive.len())
        .filter_map(|index| Some((archive.name(index)?, index)))
        .filter(|(name, _)| is_image(Path::new(name)))
        .collect();
    entries.sort();
    for chunk in entries.chunks(CHUNK) {
        // Unpacking reads one file from front to back; decoding is the work, and goes in parallel.
        let mut packed = Vec::with_capacity(chunk.len());
        for (name, index) in chunk {
            packed.push((name, archive.content(*index, LARGEST_FILE)?));
        }
        let pictures: Vec<Result<Picture>> = packed
            .par_iter()
            .map(|(name, bytes)| decode(bytes, &format!("{file}/{name}"), options))
            .collect();
        for ((name, _), picture) in packed.into_iter().zip(pictures) {
            images.push(name.clone(), &picture?)?;
        }
    }
    Ok(())
}

/// Reads one PNG or JPEG file from its bytes; `file` is how errors call it.
///
/// # Errors
///
/// [`Error::Malformed`] if it is no such picture or needs more memory than a picture should.
pub fn parse_image(bytes: &[u8], file: &str, options: &ImageOptions) -> Result<Images> {
    let mut images =
        Images { width: 0, height: 0, channels: 0, pixels: Vec::new(), names: Vec::new() };
    images.push(file.to_owned(), &decode(bytes, file, options)?)?;
    Ok(images)
}

/// One PNG or JPEG file as it is, transparency included; `file` is how errors call it.
///
/// # Errors
///
/// As [`parse_image`].
pub(crate) fn open_image(bytes: &[u8], file: &str) -> Result<image::DynamicImage> {
    decode::open(bytes, file)
}

/// Reads the bytes of an IDX file of grey pictures, packed or not, as MNIST has them.
///
/// # Errors
///
/// [`Error::Malformed`] unless it holds `[count, height, width]` bytes.
pub fn parse_idx_images(bytes: &[u8], file: &str) -> Result<Images> {
    let array = idx::parse(bytes, file)?;
    let [count, height, width] = array.shape[..] else {
        let found = format!("shape {:?}", array.shape);
        return Err(malformed(file, Place::Byte(3), "three axes: count, height, width", found));
    };
    if array.kind != NumberKind::U8 || height == 0 || width == 0 {
        let found = format!("{height} x {width} of {:?}", array.kind);
        return Err(malformed(file, Place::Byte(2), "pictures of bytes", found));
    }
    let names = (0..count).map(|number| number.to_string()).collect();
    Ok(Images { width, height, channels: 1, pixels: array.raw, names })
}

/// Reads the bytes of an IDX file of labels, packed or not.
///
/// # Errors
///
/// [`Error::Malformed`] unless it holds one axis of whole numbers from 0.
pub fn parse_idx_labels(bytes: &[u8], file: &str) -> Result<Vec<u32>> {
    let array = idx::parse(bytes, file)?;
    if array.shape.len() != 1 {
        let found = format!("shape {:?}", array.shape);
        return Err(malformed(file, Place::Byte(3), "one axis of labels", found));
    }
    let label = |number: f32| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let label = (0.0..16_777_216.0).contains(&number).then_some(number as u32);
        label.ok_or_else(|| malformed(file, Place::Byte(8), "labels from 0", number.to_string()))
    };
    array.numbers().into_iter().map(label).collect()
}

/// The bytes of an IDX file of grey pictures.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the pictures are coloured.
pub fn idx_images_bytes(images: &Images) -> Result<Vec<u8>> {
    if images.channels != 1 {
        return Err(Error::invalid("channels", "1 in an IDX file", images.channels));
    }
    Ok(idx::write(&[images.len(), images.height, images.width], &images.pixels))
}
