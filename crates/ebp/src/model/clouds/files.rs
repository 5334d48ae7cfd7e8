//! Clouds from files to a model and back.

use std::path::{Path, PathBuf};

use crate::data::cloud::write_cloud;
use crate::data::npy::{Array, Precision, write_npy};
use crate::data::{Cloud, CloudSource};
use crate::files::create_folder;
use crate::{Error, Result};

/// Opens files, folders and caches of clouds, one after the other.
///
/// # Errors
///
/// [`Error::Refused`] if one cannot be read, [`Error::InvalidValue`] if their dimensions differ.
pub fn read_cloud_inputs(paths: &[PathBuf]) -> Result<CloudSource> {
    CloudSource::open_all(paths).map_err(|error| match error {
        Error::InvalidValue { .. } => error,
        other => Error::refused(other.to_string()),
    })
}

/// One array `[sets, n, d]` to a file ending in .npy, or a file per cloud into a folder, with the
/// ending given.
///
/// # Errors
///
/// [`Error::Refused`] if clouds of different sizes should go into one array; otherwise what the disk
/// says.
pub fn write_clouds(path: &Path, clouds: &[Vec<f32>], dim: usize, ending: &str) -> Result<()> {
    let is_array = path.extension().is_some_and(|ending| ending == "npy");
    if is_array {
        let size = clouds.first().map_or(0, |cloud| cloud.len() / dim);
        if clouds.iter().any(|cloud| cloud.len() != size * dim) {
            let message = "clouds of different sizes do not fit into one array";
            let help = "name a folder: it gets one file per cloud";
            return Err(Error::refused(message).with_help(help));
        }
        let array = Array::new(vec![clouds.len(), size, dim], clouds.concat())?;
        return write_npy(path, &array, Precision::Single);
    }
    create_folder(path)?;
    for (number, cloud) in clouds.iter().enumerate() {
        let file = path.join(format!("{number:05}.{ending}"));
        write_cloud(&file, &Cloud { dim, points: cloud.clone() })?;
    }
    Ok(())
}

/// The class of a cloud: the name of the folder or file that holds it.
pub fn class_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(class, _)| class)
}
