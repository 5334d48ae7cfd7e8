//! Long short-term memory, candle-nn's, with PyTorch's starting law.
//!
//! ```text
//! [i, f, g, o] = W_ih x + b_ih + W_hh h + b_hh
//! c' = sigmoid(f) c + sigmoid(i) tanh(g),    h' = sigmoid(o) tanh(c')
//! ```

pub use candle_nn::rnn::{LSTM, LSTMState, RNN};

use candle_nn::{Init, LSTMConfig};

use super::Parameters;
use crate::Result;

/// An LSTM layer in the group `parameters`, all weights and biases from U(−b, b), b = 1/√hidden.
///
/// # Shapes
///
/// [`RNN::step`] maps `[batch, input_dim]` and a state of two `[batch, hidden_dim]` to the next
/// state; [`RNN::seq`] takes `[batch, length, input_dim]`.
///
/// # Errors
///
/// [`Error::Tensor`](crate::Error::Tensor) if a parameter of the same name has another shape.
pub fn lstm(parameters: &Parameters, input_dim: usize, hidden_dim: usize) -> Result<LSTM> {
    let bound = 1.0 / (hidden_dim as f64).sqrt();
    let init = Init::Uniform { lo: -bound, up: bound };
    let config = LSTMConfig {
        w_ih_init: init,
        w_hh_init: init,
        b_ih_init: Some(init),
        b_hh_init: Some(init),
        ..LSTMConfig::default()
    };
    Ok(candle_nn::lstm(input_dim, hidden_dim, config, parameters.builder())?)
}
