#![doc = include_str!("../README.md")]

pub mod batch;
pub mod checkpoint;
pub mod config;
pub mod data;
mod energy;
pub mod error;
pub mod exchange;
pub mod experiment;
pub mod figure;
pub mod files;
pub mod kernel;
pub mod latent;
pub mod linalg;
pub mod metric;
pub mod model;
pub mod nn;
pub mod numbers;
mod partition;
pub mod pattern;
pub mod point;
mod posterior;
pub mod process;
pub mod recipe;
pub mod rng;
mod sampler;
mod set;
mod share;
pub mod tape;
pub mod tensor;
pub mod topic;
pub mod train;

pub use error::{Error, Result};
pub use set::{IndexedSet, SetOffsets};
pub use share::Share;
