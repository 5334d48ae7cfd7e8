//! Point clouds from files of any common format.
//!
//! | ending | what is read |
//! |---|---|
//! | `npy` | `[n, d]` is a cloud, `[N, n, d]` are N clouds; 16, 32 or 64 bits |
//! | `npz` | every such array of the archive; arrays of fewer axes (labels) are left out |
//! | `h5`, `hdf5` | the data set `data` as ModelNet40 has it, or every array of two or three axes |
//! | `ply`, `off`, `obj` | the vertices; for points on the surface see [`mesh`](super::mesh) |
//! | `pcd` | the fields `x`, `y` and `z` |
//! | `xyz`, `txt`, `pts`, `asc` | a point a line, its first two or three numbers |
//!
//! A folder holds the clouds of all its files and folders, in the order of their names.

mod clouds;
mod collection;
mod write;

use std::path::Path;

use crate::error::Place;
use crate::{Result, SetOffsets};

use super::file::{Real, extension, malformed, name_of, read_bytes, stem};
use super::format::hdf5::{ArrayFile, Hdf5};
use super::format::{pcd, xyz};
use super::mesh::{MESH_ENDINGS, Mesh, parse_mesh};
use super::npy::{Array, parse_npy, parse_npz};

pub use clouds::{Cloud, Clouds};
pub use collection::{cloud_files, read_clouds};
pub(crate) use collection::{files_below, read_cloud_files};
pub use write::{CloudFormat, cloud_bytes, write_cloud};

/// The endings of the formats that hold clouds.
pub const CLOUD_ENDINGS: [&str; 12] =
    ["npy", "npz", "h5", "hdf5", "ply", "off", "obj", "pcd", "xyz", "txt", "pts", "asc"];

/// The data set of ModelNet40's files that holds the points.
const POINTS_DATASET: &str = "data";
/// The one that holds a label for each cloud.
const LABELS_DATASET: &str = "label";

/// Reads one cloud from a file of any supported format.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) if it cannot be read,
/// [`Error::Malformed`](crate::Error::Malformed) if it does not hold exactly one cloud.
pub fn read_cloud(path: &Path) -> Result<Cloud> {
    let clouds = read_cloud_file(path)?;
    if clouds.num_clouds() != 1 {
        let found = format!("{} clouds", clouds.num_clouds());
        return Err(malformed(&name_of(path), Place::Byte(0), "one cloud", found));
    }
    Ok(Cloud { dim: clouds.dim(), points: clouds.points().to_vec() })
}

/// Reads all clouds of one file.
///
/// # Errors
///
/// As [`parse_clouds`], and [`Error::Io`](crate::Error::Io) if the file cannot be read.
pub fn read_cloud_file(path: &Path) -> Result<Clouds> {
    let mut clouds = parse_clouds(&read_bytes(path)?, &name_of(path), &extension(path))?;
    clouds.prefix_names(&stem(path));
    Ok(clouds)
}

/// Reads all clouds of a file's bytes; `file` is how errors call it, `ending` says its format.
///
/// # Errors
///
/// [`Error::Malformed`](crate::Error::Malformed) with the place of what is wrong.
pub fn parse_clouds(bytes: &[u8], file: &str, ending: &str) -> Result<Clouds> {
    let cloud = match ending {
        "npy" => return clouds_of_array(parse_npy(bytes, file)?, file),
        "npz" => return clouds_of_arrays(parse_npz(bytes, file)?, file),
        "h5" | "hdf5" => return clouds_of_arrays(hdf5_arrays(bytes, file)?, file),
        "pcd" => pcd::parse(bytes, file)?,
        "xyz" | "txt" | "pts" | "asc" => xyz::parse(bytes, file)?,
        ending if MESH_ENDINGS.contains(&ending) => vertices(&parse_mesh(bytes, file, ending)?),
        _ => {
            let expected = format!("a file ending in {}", CLOUD_ENDINGS.join(", "));
            return Err(malformed(file, Place::Byte(0), expected, format!("`{ending}`")));
        }
    };
    if cloud.is_empty() {
        return Err(malformed(file, Place::Byte(0), "at least one point", "none"));
    }
    Clouds::one(cloud, String::new())
}

/// The corners of a mesh as a cloud.
fn vertices(mesh: &Mesh) -> Cloud {
    let points = mesh.vertices.iter().flatten().map(|&number| f32::nearest(number)).collect();
    Cloud { dim: 3, points }
}

/// `data` if there is one, otherwise every array of two or three axes.
fn hdf5_arrays(bytes: &[u8], file: &str) -> Result<Vec<(String, Array<f32>)>> {
    let contents = Hdf5::parse(bytes, file)?;
    let names = contents.names()?;
    if names.iter().any(|name| name == POINTS_DATASET) {
        return Ok(vec![(String::new(), contents.array(POINTS_DATASET)?)]);
    }
    let mut arrays = Vec::new();
    for name in names {
        let array = contents.array(&name)?;
        if (2..=3).contains(&array.shape.len()) {
            arrays.push((name, array));
        }
    }
    Ok(arrays)
}

/// `[n, d]` is one cloud, `[N, n, d]` are many.
fn clouds_of_array(array: Array<f32>, file: &str) -> Result<Clouds> {
    let (num_clouds, num_points, dim) = match array.shape[..] {
        [n, d] if n > 0 && d > 0 => (1, n, d),
        [count, n, d] if count > 0 && n > 0 && d > 0 => (count, n, d),
        _ => {
            let expected = "an array [points, dim] or [clouds, points, dim] that is not empty";
            let found = format!("shape {:?}", array.shape);
            return Err(malformed(file, Place::Byte(0), expected, found));
        }
    };
    let names = match array.shape.len() {
        2 => vec![String::new()],
        _ => (0..num_clouds).map(|number| number.to_string()).collect(),
    };
    Clouds::new(dim, array.values, SetOffsets::uniform(num_clouds, num_points)?, names)
}

/// The clouds of every array that can hold some.
fn clouds_of_arrays(arrays: Vec<(String, Array<f32>)>, file: &str) -> Result<Clouds> {
    let mut parts = Vec::new();
    for (name, array) in arrays {
        if array.shape.len() < 2 {
            continue;
        }
        let mut clouds = clouds_of_array(array, &format!("{file}/{name}"))?;
        if !name.is_empty() {
            clouds.prefix_names(&name);
        }
        parts.push(clouds);
    }
    if parts.is_empty() {
        let expected = "an array [points, dim] or [clouds, points, dim]";
        return Err(malformed(file, Place::Byte(0), expected, "none in the file"));
    }
    Clouds::concatenate(parts)
}

/// The labels of an HDF5 file's clouds, where it has a data set `label`.
pub(crate) fn hdf5_labels(bytes: &[u8], file: &str) -> Result<Option<Vec<u32>>> {
    let contents = Hdf5::parse(bytes, file)?;
    if !contents.names()?.iter().any(|name| name == LABELS_DATASET) {
        return Ok(None);
    }
    let labels = contents.array(LABELS_DATASET)?.values.into_iter().map(|number| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let label = (0.0..16_777_216.0).contains(&number).then_some(number as u32);
        label.ok_or_else(|| malformed(file, Place::Byte(0), "labels from 0", number.to_string()))
    });
    labels.collect::<Result<_>>().map(Some)
}
