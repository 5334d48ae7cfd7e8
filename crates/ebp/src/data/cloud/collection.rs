//! Clouds of a whole folder.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::Place;
use crate::{Error, Result};

use super::{CLOUD_ENDINGS, Clouds, read_cloud_file};
use crate::data::cache::is_sharded;
use crate::data::file::{extension, malformed, name_of};
use crate::data::{Cache, CloudSource};

/// Folders further below are left out: nobody sorts clouds that deep, and a link may lead back up.
const DEEPEST: usize = 8;

/// Reads the clouds of a file, a cache (normalised as it says) or all files in a folder, in the order
/// of their names. A cloud of
/// the folder's file `chair/a.npy` is called `chair/a`, the third one of a file `chair.npy` that
/// holds many is called `chair/2`.
///
/// ```no_run
/// let clouds = ebp::data::read_clouds("shapes/chair".as_ref())?;
/// println!("{} clouds of {} points", clouds.num_clouds(), clouds.offsets().num_elements());
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if something cannot be read, [`Error::Malformed`] if a file does not hold what its
/// ending says or the folder holds no clouds, [`Error::Damaged`] if a cache does not, and
/// [`Error::InvalidValue`] if dimensions differ.
pub fn read_clouds(path: &Path) -> Result<Clouds> {
    if Cache::is_cache(path) || is_sharded(path) {
        return CloudSource::open(path)?.to_clouds();
    }
    read_cloud_files(path)
}

/// The same of everything but caches.
pub(crate) fn read_cloud_files(path: &Path) -> Result<Clouds> {
    if !path.is_dir() {
        return read_cloud_file(path);
    }
    let files = cloud_files(path)?;
    let parts: Vec<Result<Clouds>> = files
        .par_iter()
        .map(|file| {
            let mut clouds = read_cloud_file(file)?;
            let folder = file.parent().and_then(|parent| parent.strip_prefix(path).ok());
            let folder = folder.map(|folder| folder.to_string_lossy().replace('\\', "/"));
            if let Some(folder) = folder.filter(|folder| !folder.is_empty()) {
                clouds.prefix_names(&folder);
            }
            Ok(clouds)
        })
        .collect();
    Clouds::concatenate(parts.into_iter().collect::<Result<Vec<_>>>()?)
}

/// All files in a folder and its folders that may hold clouds, sorted.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed, [`Error::Malformed`] if there is no such file.
pub fn cloud_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = files_below(folder, &|path| CLOUD_ENDINGS.contains(&extension(path).as_str()))?;
    if files.is_empty() {
        let expected = format!("files ending in {}", CLOUD_ENDINGS.join(", "));
        return Err(malformed(&name_of(folder), Place::Byte(0), expected, "none in the folder"));
    }
    Ok(files)
}

/// All files below a folder that are wanted, sorted by their paths.
pub(crate) fn files_below(
    folder: &Path,
    is_wanted: &dyn Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
            let path = entry.map_err(Error::io("list", &folder))?.path();
            let is_hidden =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if is_hidden {
                continue;
            }
            if path.is_dir() {
                if depth < DEEPEST {
                    folders.push((path, depth + 1));
                }
            } else if is_wanted(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
