//! Determinantal point processes: the potential is the log determinant of a kernel.
//!
//! [`Ensemble`] chooses among finitely many items, [`StationaryDpp`] places points in a window.

mod ensemble;
mod learn;
mod stationary;

pub use ensemble::Ensemble;
pub use learn::EnsembleFit;
pub use stationary::{DppFit, DppKernel, StationaryDpp};
