//! How good a model is, in numbers.
//!
//! [`predictive`] judges the predictions of a [`Process`](crate::process::Process) against data
//! whose true law is known.

pub mod predictive;
