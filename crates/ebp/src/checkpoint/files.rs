//! Files and folders that are there as a whole or not at all.
//!
//! ```text
//! write `.writing-name` → sync it → rename to `name` → sync the folder
//! ```
//!
//! A rename replaces its target in one step, so whoever looks sees the old or the new content,
//! whenever the process or the machine dies. What it leaves begins with [`WRITING`] or
//! [`REMOVING`] and is removed by [`remove_leftovers`].

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::{Error, Result};

/// Begins the name of what is being written.
pub(super) const WRITING: &str = ".writing-";
/// Begins the name of what is being removed.
pub(super) const REMOVING: &str = ".removing-";

/// Writes a new file and waits until it is on the disk.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path).map_err(Error::io("create", path))?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    file.sync_all().map_err(Error::io("write", path))
}

/// Waits until the names in `folder` are on the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    // Only Unix opens folders; elsewhere a rename is as durable as the system makes it.
    if cfg!(unix) {
        let handle = File::open(folder).map_err(Error::io("open", folder))?;
        handle.sync_all().map_err(Error::io("write", folder))?;
    }
    Ok(())
}

/// Puts `bytes` into the file `name` of `folder`, in place of what it held.
pub(crate) fn replace_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let temporary = folder.join(format!("{WRITING}{name}"));
    write_synced(&temporary, bytes)?;
    rename(&temporary, &folder.join(name))?;
    sync_folder(folder)
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(Error::io("write", to))
}

/// Removes the folder `name` of `folder`, which at no time is there in part. Absence is no error.
pub(super) fn remove_folder(folder: &Path, name: &str) -> Result<()> {
    let (path, doomed) = (folder.join(name), folder.join(format!("{REMOVING}{name}")));
    match fs::rename(&path, &doomed) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(Error::io("remove", &path))?,
    }
    fs::remove_dir_all(&doomed).map_err(Error::io("remove", &doomed))
}

/// Removes what an earlier process was writing or removing when it died.
pub(crate) fn remove_leftovers(folder: &Path) -> Result<()> {
    for name in entries(folder)? {
        if !name.starts_with(WRITING) && !name.starts_with(REMOVING) {
            continue;
        }
        let path = folder.join(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

/// The names in `folder`, sorted; none if it does not exist. Names that are not text are not ours
/// and are left out.
pub(crate) fn entries(folder: &Path) -> Result<Vec<String>> {
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.map_err(Error::io("read", folder))?,
    };
    let mut names = Vec::new();
    for entry in found {
        let entry = entry.map_err(Error::io("read", folder))?;
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
