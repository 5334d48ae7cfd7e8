//! How good a model is, in numbers.
//!
//! [`predictive`] judges the predictions of a [`Process`](crate::process::Process) against data
//! whose true law is known. [`distance`] measures how far two sets are apart, and [`collection`]
//! how far a collection of generated sets is from one of real sets; neither needs a model.

pub mod collection;
pub mod completion;
pub mod distance;
pub mod predictive;
