//! Data: families of sets whose law is known, and files of one's own.
//!
//! [`curves`] draws sets whose true density can be written down, so that a model can be judged in
//! nats rather than by eye. [`table`] reads measurements from CSV files, and [`Standardiser`]
//! brings them to the scale that networks expect and back. [`cloud`] reads point clouds from the
//! common formats, one or a whole folder; [`npy`] reads and writes NumPy's arrays.

pub mod cache;
pub mod cloud;
pub mod curves;
pub mod digits;
pub mod events;
mod file;
mod format;
pub mod image;
pub mod import;
pub mod layout;
pub mod mesh;
pub mod normalise;
pub mod npy;
mod parts;
pub mod pattern;
pub mod pixels;
pub mod planar;
pub mod shapes;
pub mod source;
mod standardise;
pub mod strokes;
pub mod table;
pub mod words;

pub use cache::{Cache, CacheWriter, Split};
pub use cloud::{Cloud, Clouds, read_cloud, read_clouds};
pub use curves::{CurveFamily, CurveLaw, CurveSet};
pub use file::Real;
pub use mesh::{Mesh, read_mesh};
pub use parts::{Parts, PartsRule, ReportSets, ReportSplit};
pub use pixels::Grid;
pub use planar::PlanarFamily;
pub use source::{CloudSource, CloudStatistics};
pub use standardise::Standardiser;
pub use table::{ColumnChoice, NamedSet};
