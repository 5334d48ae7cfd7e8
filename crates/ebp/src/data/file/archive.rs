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

/// What any gzip file may unpack to.
const SMALL: usize = 1 << 26;
/// Beyond that, how many bytes a packed byte may become. Deflate could make it 1032; MNIST's
/// pictures have 4.7, and even pictures of single lines stay below a hundred.
const MOST_RATIO: usize = 100;

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

/// The content of a gzip file. `length_of` reads from the first `head` bytes how long all of it
/// should be; no more than that is unpacked, and no more than what is worth unpacking.
pub(crate) fn inflate_gzip(
    file: &str,
    packed: &[u8],
    head: usize,
    length_of: impl FnOnce(&[u8]) -> Result<usize>,
) -> Result<Vec<u8>> {
    if !packed.starts_with(&[0x1f, 0x8b]) {
        let found = super::bytes::shown(packed);
        return Err(Bytes::new(file, packed).error("the first two bytes of gzip", found));
    }
    let at_start = |expected: String, found: &str| malformed(file, Place::Byte(0), expected, found);
    let mut input = GzDecoder::new(packed);
    let mut content = Vec::new();
    let mut read = |count: usize, content: &mut Vec<u8>| {
        let done = input.by_ref().take(count as u64).read_to_end(content);
        done.map_err(|error| at_start("a gzip stream".into(), &error.to_string()))
    };
    read(head, &mut content)?;
    let length = length_of(&content)?;
    let most = SMALL.max(packed.len().saturating_mul(MOST_RATIO));
    if length > most {
        let expected = format!("at most {most} bytes in {} of gzip", packed.len());
        return Err(at_start(expected, &format!("a header of {length}")));
    }
    // One byte more shows that there is more than the header says.
    read((length + 1).saturating_sub(content.len()), &mut content)?;
    if content.len() > length {
        let expected = format!("{length} unpacked bytes, as the header inside says");
        return Err(at_start(expected, "more"));
    }
    Ok(content)
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
