//! Compressed files: zip archives and gzip, unpacked no further than they should be.
//!
//! A few kilobytes can claim, and even unpack to, gigabytes. What an archive says about sizes is
//! therefore never allocated; bytes are taken as they come, up to a stated limit.

use std::borrow::Cow;
use std::io::{Cursor, Read, Seek};

use flate2::read::GzDecoder;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::Place;
use crate::{Error, Result};

use super::{Bytes, malformed};

/// A zip archive.
pub(crate) struct Archive<'a, R> {
    file: &'a str,
    zip: ZipArchive<R>,
}

impl<'a> Archive<'a, Cursor<&'a [u8]>> {
    /// Reads the list of files.
    pub(crate) fn new(file: &'a str, bytes: &'a [u8]) -> Result<Self> {
        Self::open(file, Cursor::new(bytes))
    }
}

impl<'a, R: Read + Seek> Archive<'a, R> {
    /// Reads the list of files of an open archive.
    pub(crate) fn open(file: &'a str, input: R) -> Result<Self> {
        let zip = ZipArchive::new(input).map_err(|error| zip_error(file, &error))?;
        Ok(Self { file, zip })
    }

    /// How many files and folders.
    pub(crate) fn len(&self) -> usize {
        self.zip.len()
    }

    /// The name of entry `index`; `None` for a folder and for a name that is no text.
    pub(crate) fn name(&self, index: usize) -> Option<String> {
        let name = self.zip.name_for_index(index)?.ok()?;
        (!name.ends_with('/')).then(|| name.into_owned())
    }

    /// The content of entry `index`, at most `limit` bytes of it.
    pub(crate) fn content(&mut self, index: usize, limit: usize) -> Result<Vec<u8>> {
        let file = self.file;
        let entry = self.zip.by_index(index).map_err(|error| zip_error(file, &error))?;
        let start = entry.data_start().unwrap_or_default();
        let place = Place::Byte(usize::try_from(start).unwrap_or(usize::MAX));
        let name = entry.name().map(Cow::into_owned).unwrap_or_default();
        read_limited(entry, limit)
            .map_err(|problem| malformed(file, place, format!("the content of `{name}`"), problem))
    }
}

/// The content of a gzip file, at most `limit` bytes.
pub(crate) fn inflate_gzip(file: &str, bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        let found = super::bytes::shown(bytes);
        return Err(Bytes::new(file, bytes).error("the first two bytes of gzip", found));
    }
    read_limited(GzDecoder::new(bytes), limit)
        .map_err(|problem| malformed(file, Place::Byte(0), "a gzip stream", problem))
}

/// Reads to the end, or says why not.
fn read_limited(input: impl Read, limit: usize) -> std::result::Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut limited = input.take(limit as u64 + 1);
    limited.read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() > limit {
        return Err(format!("more than {limit} bytes"));
    }
    Ok(content)
}

fn zip_error(file: &str, error: &ZipError) -> Error {
    malformed(file, Place::Byte(0), "a zip archive", error.to_string())
}
