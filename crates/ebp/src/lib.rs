#![doc = include_str!("../../../README.md")]

pub mod error;
pub mod nn;
pub mod point;
pub mod rng;
mod set;

pub use error::{Error, Result};
pub use set::SetOffsets;
