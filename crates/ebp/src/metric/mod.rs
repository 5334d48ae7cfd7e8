//! How good a model is, in numbers.
//!
//! [`predictive`] judges the predictions of a [`Process`](crate::process::Process) against data
//! whose true law is known. [`distance`] measures how far two sets are apart, and [`collection`]
//! how far a collection of generated sets is from one of real sets; neither needs a model.
//! [`classify`] says how well classes can be read off features, [`overlap`] how much of two samples of
//! numbers is common to both, [`uniformity`] whether positions and ranks are uniform.

pub mod classify;
pub mod collection;
pub mod completion;
pub mod distance;
pub mod overlap;
pub mod predictive;
pub mod uniformity;
