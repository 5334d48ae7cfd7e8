//! Small trainable modules around the primitive, in candle's graph.
//!
//! ```text
//! Parameters ──── flat parameters ──(SpectralNorm)── PointModule ── values, pools, log Z, samples
//!     │  └─ builder ─ Linear, LSTM, BatchNorm ───────────┘                        │
//!     └───────────────── Adam, MovingAverage ────────── GradStore ────────── loss.backward()
//! ```
//!
//! candle differentiates what is small. What is large is [`PointModule`], whose operations carry
//! their own backward passes: nothing here relies on candle's second derivatives, nor on its
//! random numbers. Everything is f32 on the host.

mod adam;
mod attention;
mod batch_norm;
mod categorical;
mod dense;
mod flat;
mod host;
mod initialise;
mod linear;
mod lstm;
pub mod module;
mod moving_average;
mod noise;
mod parameters;
mod parts;
mod planar;
mod point_ops;
mod spectral_norm;
mod step;

pub use adam::{Adam, AdamConfig, AdamStep};
pub(crate) use adam::{FIRST_MOMENT, NUM_STEPS, SECOND_MOMENT};
pub use attention::{AttentionSets, MultiHeadAttention, attention};
pub use batch_norm::{BatchNorm, BatchNormConfig, batch_norm};
pub use categorical::categorical_log_mass;
pub(crate) use categorical::softmax_rows;
pub use dense::{Dense, DenseConfig};
pub use flat::{LayerTensors, layer_tensors};
pub(crate) use host::{read_variable, write_variable};
pub use initialise::Initialiser;
pub use linear::{Linear, linear};
pub use lstm::{LSTM, LSTMState, RNN, lstm};
pub use moving_average::MovingAverage;
pub use noise::normals;
pub use parameters::{Parameters, Role};
pub(crate) use parts::{StateParts, join_parts};
pub use planar::{PlanarTensors, planar_flow};
pub use point_ops::{
    LangevinSettings, LangevinTensors, LeapfrogTensors, LikelihoodSets, LikelihoodTensors,
    LogPartitionTensors, PointModule, TensorBatch, TensorCandidates,
};
pub use spectral_norm::SpectralNorm;
pub use step::{Record, Step};

/// Whether a module is being trained or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Running statistics and power iterations move on.
    Train,
    /// Nothing changes: equal inputs give equal outputs.
    Evaluate,
}
