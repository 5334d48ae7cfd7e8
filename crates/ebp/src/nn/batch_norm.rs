//! Batch normalisation, candle-nn's, with its running statistics in [`Parameters`].
//!
//! ```text
//! y = γ (x − m) / √(v + floor) + β
//! ```
//!
//! In training m and v are the batch's mean and (biased) variance per feature, and the running
//! ones move towards them; in use m and v are the running ones. candle's training pass divides by
//! batch − 1 for the running variance: a batch must have at least two rows.

pub use candle_nn::{BatchNorm, BatchNormConfig};

use super::{Initialiser, Parameters};
use crate::Result;

/// A batch normalisation in the group `parameters`; call it by [`candle_nn::ModuleT::forward_t`].
///
/// `running_mean` and `running_var` are buffers: saved and restored, never trained.
///
/// # Shapes
///
/// `[batch, num_features, …]` to the same.
///
/// # Errors
///
/// [`Error::InvalidValue`](crate::Error::InvalidValue) or [`Error::Tensor`](crate::Error::Tensor)
/// if a parameter of the same name has another shape or role, or the configuration is negative.
pub fn batch_norm(
    parameters: &Parameters,
    num_features: usize,
    config: BatchNormConfig,
) -> Result<BatchNorm> {
    // Registered before candle asks for them, or they would count as trained.
    parameters.buffer("running_mean", &[num_features], Initialiser::Zeros)?;
    parameters.buffer("running_var", &[num_features], Initialiser::Ones)?;
    Ok(candle_nn::batch_norm(num_features, config, parameters.builder())?)
}
