//! The one hot primitive: a small network applied to every element of a set.
//!
//! Energies, scores, Langevin steps, Deep Sets encoders, hypernetworks and decoders are all this
//! shape, and nearly all arithmetic of the library happens here. The path of the data:
//!
//! ```text
//! MlpConfig ─ MlpShape ─ PointMlp ┐
//!                                 ├─ PointBackend (CpuBackend, CudaBackend) ─ values, gradients, samples
//! elements, offsets, context ─────┘
//! ```

mod activation;
mod backend;
mod checks;
pub mod cpu;
pub mod cuda;
mod dynamics;
mod likelihood;
mod mlp;
mod mover;
mod operations;
mod shape;

pub use activation::Activation;
pub use backend::{
    Backward, CandidateValues, Candidates, Cotangent, Gradients, LogPartition, LogWeights,
    PointBackend, Pooled, Pooling, Score, ScoreCotangent, Wanted,
};
pub use cpu::CpuBackend;
pub use cuda::{CudaBackend, Precision};
pub use dynamics::{
    Bounds, Clip, DynamicsCotangent, DynamicsGradients, Langevin, LangevinRun, Leapfrog,
    LeapfrogRun, Motion,
};
pub use likelihood::Likelihood;
pub use mlp::{PointBatch, PointMlp};
pub use shape::{ContextAt, LayerShape, MAX_OUTPUTS, MAX_WIDTH, MlpConfig, MlpShape};
