//! `.npz`: a zip archive of `.npy` files.

use std::io::{Cursor, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::data::file::write::write_whole;
use crate::data::file::{Archive, LARGEST, Real, name_of, read_bytes};
use crate::{Error, Result};

use super::{Array, Precision, npy_bytes, parse_npy};

/// Reads every array of a `.npz` file with its name, in the order of the archive.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, otherwise as [`parse_npz`].
pub fn read_npz<T: Real>(path: &Path) -> Result<Vec<(String, Array<T>)>> {
    parse_npz(&read_bytes(path)?, &name_of(path))
}

/// Reads the bytes of a `.npz` file; `file` is how errors call it.
///
/// # Errors
///
/// [`Error::Malformed`] if it is no archive, or a file in it is no array of numbers.
pub fn parse_npz<T: Real>(bytes: &[u8], file: &str) -> Result<Vec<(String, Array<T>)>> {
    let mut archive = Archive::new(file, bytes)?;
    let mut arrays = Vec::new();
    let mut left = LARGEST;
    for index in 0..archive.len() {
        let Some(entry) = archive.name(index) else { continue };
        let content = archive.content(index, left)?;
        left -= content.len();
        let name = entry.strip_suffix(".npy").unwrap_or(&entry).to_owned();
        arrays.push((name, parse_npy(&content, &format!("{file}/{entry}"))?));
    }
    Ok(arrays)
}

/// Writes arrays with their names as a `.npz` file, compressed.
///
/// # Errors
///
/// [`Error::Io`], and [`Error::InvalidValue`] if a shape does not fit its values or a name is
/// given twice.
pub fn write_npz<T: Real>(
    path: &Path,
    arrays: &[(String, Array<T>)],
    precision: Precision,
) -> Result<()> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, array) in arrays {
        let bytes = npy_bytes(array, precision)?;
        zip.start_file(format!("{name}.npy"), options)
            .map_err(|error| Error::invalid("name", "new and of legal length", error))?;
        zip.write_all(&bytes).map_err(Error::io("write", path))?;
    }
    let packed = zip.finish().map_err(|error| Error::invalid("arrays", "packable", error))?;
    write_whole(path, |out| out.write_all(packed.get_ref()))
}
