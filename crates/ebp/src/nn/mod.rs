//! Small trainable modules on the tape: a shape and the places of its parameters; numbers live in a
//! [`ParameterSet`](crate::tape::ParameterSet).
//!
//! ```text
//! Dense                                rows, one stack of linear layers
//! Network                              elements of sets, with a context
//! LSTM, MultiHeadAttention, Coupling   made of Dense
//! Descent, Ascent                      residual convolutions over grids of places
//! BatchNorm, SpectralNorm              with buffers that training moves
//! ```

mod attention;
mod batch_norm;
mod convolution;
mod coupling;
mod dense;
#[cfg(test)]
pub(crate) mod differences;
mod lstm;
mod network;
mod spectral_norm;
mod step;

pub use self::attention::{Looking, MultiHeadAttention};
pub use self::batch_norm::BatchNorm;
pub use self::convolution::{Ascent, Descent, GridConfig, Size, coarsest};
pub use self::coupling::Coupling;
pub use self::dense::{Dense, DenseConfig};
pub use self::lstm::{LSTM, LSTMState};
pub use self::network::{Network, Sets};
pub use self::spectral_norm::SpectralNorm;
pub use self::step::{Record, Step};
pub use crate::tape::Initialiser;

/// Whether a module is being trained or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Running statistics and power iterations move on.
    Train,
    /// Nothing changes: equal inputs give equal outputs.
    Evaluate,
}
