//! Modules on the tape: a shape and the places of its parameters; numbers live in a
//! [`ParameterSet`](crate::tape::ParameterSet).
//!
//! ```text
//! Network                              elements of sets, with a context
//! LSTM, MultiHeadAttention, Coupling   made of [`Dense`](super::Dense)
//! BatchNorm, SpectralNorm              with buffers that training moves
//! ```

mod attention;
mod batch_norm;
mod coupling;
mod lstm;
mod network;
mod spectral_norm;

pub use self::attention::{Looking, MultiHeadAttention};
pub use self::batch_norm::BatchNorm;
pub use self::coupling::Coupling;
pub use self::lstm::{LSTM, LSTMState};
pub use self::network::{Network, Sets};
pub use self::spectral_norm::SpectralNorm;

#[cfg(test)]
pub(in crate::nn) mod differences;
