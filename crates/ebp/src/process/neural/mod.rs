//! Neural processes: networks that read a context and predict Gaussians.
//!
//! ```text
//!             ┌ latent path: mean of encoded elements → q(z | C) → z ┐
//! context C ──┤                                                     ├─ decoder(t, z, r) → μ, σ
//!             └ deterministic path: mean, or attention from t → r ──┘
//! ```
//!
//! The conditional one has the deterministic path, the latent one the latent path and the
//! attentive one both: [`NeuralProcessConfig`] says which. Every network that reads elements is one
//! of the primitive, so sets are ragged and may be empty.

mod batch;
mod config;
mod gaussian;
mod hypotheses;
mod model;
mod network;
mod paths;
mod predictive;

pub use config::{
    AttentionConfig, Deterministic, LatentConfig, NetworkConfig, NeuralProcessConfig,
};
pub use model::NeuralProcess;
