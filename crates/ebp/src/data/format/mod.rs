//! One file per format: bytes to meshes, clouds and arrays, and back where people need it.
//!
//! All readers take the bytes of a whole file and its name. Counts that a header claims are only
//! compared with what is there: memory grows with the file, not with its claims.

pub(crate) mod hdf5;
pub(crate) mod idx;
mod lzf;
pub(crate) mod obj;
pub(crate) mod off;
pub(crate) mod pcd;
pub(crate) mod ply;
mod ply_header;
pub(crate) mod xyz;
