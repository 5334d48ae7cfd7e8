//! Neural processes: networks that read a context and predict Gaussians.
//!
//! ```text
//!             ┌ latent path: mean of encoded elements → q(z | C) → z ┐
//! context C ──┤                                                     ├─ decoder(t, z, r) → μ, σ
//!             └ deterministic path: mean, or attention from t → r ──┘
//! ```
//!
//! [`ConditionalNeuralProcess`] has the deterministic path, [`NeuralProcess`] the latent one and
//! [`AttentiveNeuralProcess`] both. Each is trained on [`TaskBatch`]es by its `train_step`, and
//! every network that reads elements is one of the primitive, so sets are ragged and may be empty.

mod attentive;
mod conditional;
mod config;
mod gaussian;
mod latent;
mod model;
mod network;
mod paths;
mod predictive;
mod ragged;
mod tasks;
mod trained;

pub use attentive::{AttentiveNeuralProcess, AttentiveNeuralProcessConfig};
pub use conditional::{ConditionalNeuralProcess, ConditionalNeuralProcessConfig};
pub use config::{AttentionConfig, LatentConfig, NetworkConfig};
pub use latent::{NeuralProcess, NeuralProcessConfig};
pub use model::Losses;
pub use tasks::{TaskBatch, Tasks};

pub(super) use ragged::{host_numbers, host_tensor};
pub(super) use tasks::{check_dimensions, count_locations};
pub(super) use trained::Trained;
