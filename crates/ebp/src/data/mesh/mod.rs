//! Meshes of triangles: from files, to points on their surface.
//!
//! | ending | what is read |
//! |---|---|
//! | `off` | vertices and faces; also with ModelNet's counts glued to the first word, `OFF490 518 0` |
//! | `obj` | `v` and `f`; textures, normals and materials are left out |
//! | `ply` | ascii and binary, either byte order |
//!
//! Faces of more than three corners become fans of triangles.

mod inside;
mod subsample;
mod surface;

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Place;
use crate::{Error, Result};

use super::cloud::files_below;
use super::file::write::write_whole;
use super::file::{ByteOrder, extension, malformed, name_of, read_bytes};
use super::format::{obj, off, ply};

pub use inside::Inside;
pub(crate) use subsample::{drawn, shuffled};
pub use subsample::{farthest_points, poisson_disc};
pub use surface::SurfaceSampler;

/// The endings of the formats that hold meshes.
pub const MESH_ENDINGS: [&str; 3] = ["off", "obj", "ply"];

/// Corners and the triangles between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// The corners.
    pub vertices: Vec<[f64; 3]>,
    /// Triangles, by the numbers of their corners.
    pub faces: Vec<[u32; 3]>,
}

impl Mesh {
    /// The corners of triangle `face`.
    ///
    /// # Panics
    ///
    /// If there is no such triangle or corner, as slice indexing does.
    pub fn corners(&self, face: usize) -> [[f64; 3]; 3] {
        self.faces[face].map(|vertex| self.vertices[vertex as usize])
    }

    /// Appends another mesh.
    ///
    /// # Panics
    ///
    /// If there are more than 2³² corners.
    pub fn append(&mut self, other: &Self) {
        let first = u32::try_from(self.vertices.len()).unwrap_or(u32::MAX);
        self.vertices.extend_from_slice(&other.vertices);
        self.faces.extend(other.faces.iter().map(|face| face.map(|vertex| first + vertex)));
    }
}

/// Reads a mesh from a file of any supported format.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, otherwise as [`parse_mesh`].
pub fn read_mesh(path: &Path) -> Result<Mesh> {
    parse_mesh(&read_bytes(path)?, &name_of(path), &extension(path))
}

/// Reads the bytes of a mesh file; `file` is how errors call it, `ending` says its format.
///
/// # Errors
///
/// [`Error::Malformed`] with the place of what is wrong. A mesh that is
/// returned has only faces whose corners exist.
pub fn parse_mesh(bytes: &[u8], file: &str, ending: &str) -> Result<Mesh> {
    match ending {
        "off" => off::parse(bytes, file),
        "obj" => obj::parse(bytes, file),
        "ply" => ply::parse(bytes, file),
        _ => {
            let expected = format!("a mesh ending in {}", MESH_ENDINGS.join(", "));
            Err(malformed(file, Place::Byte(0), expected, format!("`{ending}`")))
        }
    }
}

/// Reads the colours of a PLY file's vertices, as bytes of red, green and blue; `None` if it has none.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, [`Error::Malformed`] with the place of what is wrong.
pub fn read_vertex_colours(path: &Path) -> Result<Option<Vec<[u8; 3]>>> {
    ply::colours(&read_bytes(path)?, &name_of(path))
}

/// Writes a mesh in the format of the path's ending.
///
/// # Errors
///
/// As [`mesh_bytes`], and [`Error::Io`].
pub fn write_mesh(path: &Path, mesh: &Mesh) -> Result<()> {
    let bytes = mesh_bytes(mesh, &extension(path))?;
    write_whole(path, |out| out.write_all(&bytes))
}

/// The bytes of a mesh file; PLY is binary, low bytes first.
///
/// # Errors
///
/// [`Error::InvalidValue`] if meshes are not written with that ending.
pub fn mesh_bytes(mesh: &Mesh, ending: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let written = match ending {
        "off" => off::write(mesh, &mut bytes),
        "obj" => obj::write(mesh, &mut bytes),
        "ply" => ply::write(mesh, Some(ByteOrder::Little), &mut bytes),
        _ => {
            let expected = format!("one of {}", MESH_ENDINGS.join(", "));
            return Err(Error::invalid("file ending", expected, format!("`{ending}`")));
        }
    };
    written.map_err(Error::io("write", "memory"))?;
    Ok(bytes)
}

/// The triangles of a polygon: a fan around its first corner.
pub(crate) fn fan(corners: &[u32], faces: &mut Vec<[u32; 3]>) {
    if let [first, rest @ ..] = corners {
        faces.extend(rest.windows(2).map(|pair| [*first, pair[0], pair[1]]));
    }
}

/// All meshes in a folder and its folders, sorted.
///
/// # Errors
///
/// [`Error::Io`] if a folder cannot be listed.
pub fn mesh_files(folder: &Path) -> Result<Vec<PathBuf>> {
    files_below(folder, &|path| MESH_ENDINGS.contains(&extension(path).as_str()))
}
