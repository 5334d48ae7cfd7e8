//! Data: families of sets whose law is known, and tables of one's own.
//!
//! [`curves`] draws sets whose true density can be written down, so that a model can be judged in
//! nats rather than by eye. [`table`] reads measurements from CSV files, and [`Standardiser`]
//! brings them to the scale that networks expect and back.

pub mod curves;
mod standardise;
pub mod table;

pub use curves::{CurveFamily, CurveLaw, CurveSet};
pub use standardise::Standardiser;
pub use table::{ColumnChoice, NamedSet};
