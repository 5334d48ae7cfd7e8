//! The graph of one training step, on the CPU or on a GPU.
//!
//! ```text
//! Device ── Tape ── Var, Var, …  ── backward ── Gradients ── ParameterSet::step, or both at once: ParameterSet::descend
//!              │
//!         ParameterSet   parameters, Adam's moments and averages, flat, on the device
//! ```
//!
//! Values are f32 matrices, row-major and contiguous; sets of different sizes are rows with
//! [`SetOffsets`](crate::SetOffsets). An operation is computed when it is appended, and carries its
//! own way back; there are no second derivatives (those of the primitive's score and of gradients of whole
//! sets are operations of their own). Everything stays on the device: what is recorded of a step is read back at its
//! end. Each operation is a file: CPU loops beside the call of its kernels (`cuda`).
//!
//! Random numbers are a function of a stream and an index, so both devices draw the same; sums have
//! a fixed order, so results depend neither on threads nor on the run.

mod adam;
mod array;
mod attention;
mod batch_norm;
mod categorical;
mod convolution;
mod cuda;
mod dense;
mod device;
mod dynamics;
mod elementwise;
mod field;
mod gaussian;
mod graph;
mod handing;
mod initialise;
mod interpolate;
mod lanes;
mod lookup;
mod loops;
mod mixture;
mod order;
mod parameters;
mod partition;
mod planar;
mod point;
mod product;
mod recurrent;
mod reduce;
mod rows;
mod spectral_norm;
mod weigh;

pub use self::adam::{AdamConfig, AdamStep};
pub use self::array::Array;
pub use self::attention::AttentionSets;
#[allow(unused_imports, reason = "for classifiers, once they leave `nn`")]
pub(crate) use self::categorical::softmax_rows;
pub use self::convolution::Convolution;
pub use self::device::Device;
pub use self::dynamics::{LangevinVars, LeapfrogVars, MotionRules};
pub use self::gaussian::Gaussian;
pub use self::graph::{Gradients, Reversal, Shape, Tape, Var};
pub use self::initialise::Initialiser;
pub use self::interpolate::Interpolation;
pub use self::mixture::{MixtureDraws, MixtureLaw, UniformPart};
pub use self::order::Order;
pub(crate) use self::parameters::{FIRST_MOMENT, NUM_STEPS, SECOND_MOMENT};
pub use self::parameters::{Group, Parameter, ParameterBuilder, ParameterSet, check_taken};
pub use self::partition::{CandidateVars, LikelihoodVars, PartitionVars};
pub use self::planar::PlanarDraws;
pub use self::point::Points;
pub use self::rows::Choice;
pub use self::spectral_norm::Operators;
pub use self::weigh::DrawDomain;
pub(crate) use self::weigh::NOTHING;
