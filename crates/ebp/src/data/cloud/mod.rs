//! Point clouds from files of any common format.
//!
//! | ending | what is read |
//! |---|---|
//! | `npy` | `[n, d]` is a cloud, `[N, n, d]` are N clouds; 16, 32 or 64 bits |
//! | `npz` | every such array of the archive; arrays of fewer axes (labels) are left out |
//!
//! A folder holds the clouds of all its files and folders, in the order of their names.

mod clouds;
mod collection;

use std::path::Path;

use crate::Result;
use crate::error::Place;

use super::file::{extension, malformed, name_of, read_bytes, stem};
use super::npy::{Array, parse_npy, parse_npz};

pub use clouds::{Cloud, Clouds};
pub use collection::{cloud_files, read_clouds};

use crate::SetOffsets;

/// The endings of the formats that hold clouds.
pub const CLOUD_ENDINGS: [&str; 2] = ["npy", "npz"];

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
    match ending {
        "npy" => clouds_of_array(parse_npy(bytes, file)?, file),
        "npz" => clouds_of_arrays(parse_npz(bytes, file)?, file),
        _ => {
            let expected = format!("a file ending in {}", CLOUD_ENDINGS.join(", "));
            Err(malformed(file, Place::Byte(0), expected, format!("`{ending}`")))
        }
    }
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
        let mut clouds = clouds_of_array(array, &format!("{file}/{name}.npy"))?;
        clouds.prefix_names(&name);
        parts.push(clouds);
    }
    if parts.is_empty() {
        let expected = "an array [points, dim] or [clouds, points, dim]";
        return Err(malformed(file, Place::Byte(0), expected, "none in the archive"));
    }
    Clouds::concatenate(parts)
}
