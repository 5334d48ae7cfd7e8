//! Neural processes: networks that read a context and predict Gaussians.
//!
//! ```text
//!             ┌ latent path: mean of encoded elements → q(z | C) → z ┐
//! context C ──┤                                                     ├─ decoder(t, z, r) → μ, σ
//!             └ deterministic path: mean, or attention from t → r ──┘
//! ```
//!
//! The conditional one has the deterministic path, the latent one the latent path and the attentive
//! one both; the paths of the convolutional ones lead over a grid (`grid`). [`NeuralProcessConfig`]
//! says which. Every network that reads elements is one of the primitive, so sets are ragged and may
//! be empty. Decoders may give shares of levels in place of Gaussians (`law`).

mod batch;
mod config;
mod gaussian;
mod grid;
mod hypotheses;
mod law;
mod model;
mod network;
mod paths;
mod predictive;

pub use config::{
    AttentionConfig, Deterministic, GridPathConfig, LatentConfig, Likelihood, NetworkConfig,
    NeuralProcessConfig,
};
pub use model::NeuralProcess;
