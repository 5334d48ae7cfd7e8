//! What every reader stands on: bytes and lines that know their file and position.
//!
//! Readers take a whole file as bytes, so that every length a header claims can be compared with
//! what is there before anything is allocated. An error names the file, the byte or line, what was
//! expected and what was found.

mod archive;
mod bytes;
mod lines;
mod number;
pub(crate) mod write;

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::Place;
use crate::{Error, Result};

pub(crate) use archive::{Archive, inflate_gzip};
pub(crate) use bytes::Bytes;
pub(crate) use lines::{Line, Lines};
pub use number::Real;
pub(crate) use number::{ByteOrder, NumberKind};

/// Larger results are refused: no set of clouds or pictures that fits here is that large, and a
/// few kilobytes of a hostile archive can claim it.
pub(crate) const LARGEST: usize = 1 << 32;

/// A whole file.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(Error::io("read", path))?;
    if let Ok(metadata) = file.metadata() {
        bytes.reserve_exact(usize::try_from(metadata.len()).unwrap_or(0).min(LARGEST));
    }
    let mut limited = file.take(LARGEST as u64 + 1);
    limited.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if bytes.len() > LARGEST {
        let found = "more";
        return Err(malformed(&name_of(path), Place::Byte(LARGEST), "at most 4 GiB", found));
    }
    Ok(bytes)
}

/// How errors call a file.
pub(crate) fn name_of(path: &Path) -> String {
    path.display().to_string()
}

/// The last part of a path without its ending: how a cloud is called.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The ending of a file's name, in lower case.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// The error of every reader; what was found is cut to a few words.
pub(crate) fn malformed(
    file: &str,
    place: Place,
    expected: impl Into<String>,
    found: impl AsRef<str>,
) -> Error {
    const LONGEST: usize = 60;
    let mut text = String::new();
    for (count, character) in found.as_ref().chars().enumerate() {
        if count == LONGEST {
            text.push('…');
            break;
        }
        if character.is_control() {
            text.extend(character.escape_debug());
        } else {
            text.push(character);
        }
    }
    Error::Malformed { file: file.to_owned(), place, expected: expected.into(), found: text }
}

/// Runs a decoder that is not ours: what it says, or its panic, becomes an error of ours.
pub(crate) fn guarded<T>(
    file: &str,
    expected: &str,
    work: impl FnOnce() -> std::result::Result<T, String>,
) -> Result<T> {
    // Whatever the closure holds is dropped or only read after a panic.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err("a file that the decoder cannot follow".into()))
        .map_err(|problem| malformed(file, Place::Byte(0), expected, problem))
}
