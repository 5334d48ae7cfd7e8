#![doc = include_str!("../../../README.md")]

pub mod checkpoint;
pub mod config;
pub mod data;
pub mod error;
pub mod experiment;
pub mod figure;
pub mod files;
pub mod kernel;
pub mod latent;
pub mod linalg;
pub mod metric;
pub mod model;
pub mod nn;
pub mod point;
pub mod process;
pub mod rng;
mod set;
pub mod train;

pub use error::{Error, Result};
pub use set::{IndexedSet, SetOffsets};
