//! One cloud to a file, in the format that its ending says.

use std::io::Write;
use std::path::Path;

use crate::data::file::write::write_whole;
use crate::data::file::{ByteOrder, Real, extension};
use crate::data::format::{obj, off, pcd, ply, xyz};
use crate::data::mesh::Mesh;
use crate::data::npy::{Array, Precision, npy_bytes};
use crate::{Error, Result};

use super::Cloud;

/// The formats that clouds are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudFormat {
    /// NumPy's array `[n, dim]` of 32 bits.
    Npy,
    /// PLY in text.
    PlyAscii,
    /// PLY in binary, low bytes first: what most programs write.
    PlyLittle,
    /// PLY in binary, high bytes first.
    PlyBig,
    /// OFF without faces.
    Off,
    /// OBJ without faces.
    Obj,
    /// PCD in text.
    PcdAscii,
    /// PCD in binary.
    PcdBinary,
    /// A point a line.
    Xyz,
}

impl CloudFormat {
    /// The usual format of an ending.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if clouds are not written with that ending.
    pub fn of_ending(ending: &str) -> Result<Self> {
        Ok(match ending {
            "npy" => Self::Npy,
            "ply" => Self::PlyLittle,
            "off" => Self::Off,
            "obj" => Self::Obj,
            "pcd" => Self::PcdBinary,
            "xyz" | "txt" | "pts" | "asc" => Self::Xyz,
            _ => {
                let expected = "one of npy, ply, off, obj, pcd, xyz";
                return Err(Error::invalid("file ending", expected, format!("`{ending}`")));
            }
        })
    }
}

/// Writes a cloud in the format of the path's ending.
///
/// # Errors
///
/// [`Error::Io`], and [`Error::InvalidValue`] if the ending is unknown or the format holds points
/// of three numbers only.
pub fn write_cloud(path: &Path, cloud: &Cloud) -> Result<()> {
    let bytes = cloud_bytes(cloud, CloudFormat::of_ending(&extension(path))?)?;
    write_whole(path, |out| out.write_all(&bytes))
}

/// The bytes of a cloud's file.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the format holds points of three numbers only.
pub fn cloud_bytes(cloud: &Cloud, format: CloudFormat) -> Result<Vec<u8>> {
    let is_any_dim = matches!(format, CloudFormat::Npy | CloudFormat::Xyz);
    if cloud.dim != 3 && !is_any_dim {
        return Err(Error::invalid("dim", "3 in this format; npy takes any", cloud.dim));
    }
    let mut bytes = Vec::new();
    let mesh = || Mesh {
        vertices: cloud.points.chunks_exact(3).map(|p| [p[0], p[1], p[2]].map(f32::wide)).collect(),
        faces: Vec::new(),
    };
    let written = match format {
        CloudFormat::Npy => {
            let array = Array::new(vec![cloud.len(), cloud.dim], cloud.points.clone())?;
            return npy_bytes(&array, Precision::Single);
        }
        CloudFormat::PlyAscii => ply::write(&mesh(), None, &mut bytes),
        CloudFormat::PlyLittle => ply::write(&mesh(), Some(ByteOrder::Little), &mut bytes),
        CloudFormat::PlyBig => ply::write(&mesh(), Some(ByteOrder::Big), &mut bytes),
        CloudFormat::Off => off::write(&mesh(), &mut bytes),
        CloudFormat::Obj => obj::write(&mesh(), &mut bytes),
        CloudFormat::PcdAscii => pcd::write(cloud, false, &mut bytes),
        CloudFormat::PcdBinary => pcd::write(cloud, true, &mut bytes),
        CloudFormat::Xyz => xyz::write(cloud, &mut bytes),
    };
    written.map_err(Error::io("write", "memory"))?;
    Ok(bytes)
}
