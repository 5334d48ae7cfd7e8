//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::{Error, Result};

/// Writes a file through `fill` under a temporary name, then gives it its own.
///
/// # Errors
///
/// [`Error::Io`], and what `fill` gives; the temporary file is removed then.
pub(crate) fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let file = File::create(&part).map_err(Error::io("write", path))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = fill(&mut out).and_then(|()| out.flush()).and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        Error::io("write", path)(error)
    })
}
