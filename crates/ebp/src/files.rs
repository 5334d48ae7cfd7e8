//! Files and folders that are there as a whole or not at all.
//!
//! ```text
//! write `.writing-name` → sync it → rename to `name` → sync the folder
//! ```
//!
//! A rename replaces its target in one step, so whoever looks sees the old or the new content,
//! whenever the process or the machine dies. What it leaves begins with `WRITING` or
//! `REMOVING` and is removed by `remove_leftovers`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// Begins the name of what is being written.
pub(crate) const WRITING: &str = ".writing-";
/// Begins the name of what is being removed.
pub(crate) const REMOVING: &str = ".removing-";

/// Writes a new file and waits until it is on the disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path).map_err(Error::io("create", path))?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    file.sync_all().map_err(Error::io("write", path))
}

/// Waits until the names in `folder` are on the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
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

/// Writes `value` as indented JSON in place of what the file held, and the folder it goes to.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be written, [`Error::InvalidValue`] if JSON cannot hold it.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::invalid("value", "content that JSON can hold", error))?;
    text.push(b'\n');
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::invalid("path", "that of a file", path.display()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    create_folder(folder)?;
    replace_file(folder, name, &text)
}

/// What [`write_json`] wrote; `None` if there is no such file or it holds something else, so that
/// what is damaged is made again.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Creates a folder and those above it; one that is there is left alone.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io("create", folder))
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(Error::io("write", to))
}

/// Removes the folder `name` of `folder`, which at no time is there in part. Absence is no error.
pub(crate) fn remove_folder(folder: &Path, name: &str) -> Result<()> {
    let (path, doomed) = (folder.join(name), folder.join(format!("{REMOVING}{name}")));
    match fs::rename(&path, &doomed) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(Error::io("remove", &path))?,
    }
    fs::remove_dir_all(&doomed).map_err(Error::io("remove", &doomed))
}

/// Whether a name is of something that a process was writing or removing when it was killed.
pub fn is_leftover(name: &str) -> bool {
    name.starts_with(WRITING) || name.starts_with(REMOVING)
}

/// Removes what an earlier process was writing or removing when it died.
pub(crate) fn remove_leftovers(folder: &Path) -> Result<()> {
    for name in entries(folder)? {
        if !is_leftover(&name) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_and_damage_counts_as_absence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/numbers.json");
        assert_eq!(read_json::<Vec<f64>>(&path), None);
        write_json(&path, &vec![0.1 + 0.2, -1.0]).unwrap();
        assert_eq!(read_json::<Vec<f64>>(&path), Some(vec![0.1 + 0.2, -1.0]));
        assert_eq!(entries(path.parent().unwrap()).unwrap(), ["numbers.json"]);
        fs::write(&path, "[0.3, ").unwrap();
        assert_eq!(read_json::<Vec<f64>>(&path), None);
    }
}
