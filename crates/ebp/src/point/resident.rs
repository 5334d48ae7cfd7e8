//! Whole training steps on a device, where parameters, optimiser and elements stay:
//!
//! ```text
//! h = max_i φ(xᵢ),   (μ, log σ) = ρ(relu h),   θ = μ + σ ξ
//! L = mean_s ( log Σₖ exp(f(yₛₖ; θₛ) + ωₛₖ) − mean_i f(xₛᵢ; θₛ) + κₛ KL(N(μₛ, σₛ²) ‖ N(0, I)) )
//! ```
//!
//! followed by Adam and a moving average of the parameters. A few numbers per set come back, no more.
//! The same step made of the other operations is the twin that this is tested against.

use std::fmt::Debug;

use super::MlpShape;
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// A network's place in the flat array of all parameters.
#[derive(Clone, Debug)]
pub struct PlacedMlp {
    /// Its shape.
    pub shape: MlpShape,
    /// Its first number; the rest follows as the shape says.
    pub start: usize,
}

/// A linear layer's place in the flat array of all parameters.
#[derive(Clone, Copy, Debug)]
pub struct PlacedLinear {
    /// Numbers in and out.
    pub inputs: usize,
    /// Numbers out.
    pub outputs: usize,
    /// Where W `[outputs, inputs]` begins.
    pub weight: usize,
    /// Where b `[outputs]` begins.
    pub bias: usize,
}

/// What is learned, and how.
#[derive(Clone, Debug)]
pub struct ResidentModel {
    /// φ.
    pub encoder: PlacedMlp,
    /// ρ, with a rectifier before each layer; the last has 2 k outputs, μ and log σ.
    pub head: Vec<PlacedLinear>,
    /// f, whose context is θ.
    pub energy: PlacedMlp,
    /// τ: the last layer of f is divided by it.
    pub temperature: f32,
    /// What is added to the head's log σ, and the range it is then clamped to.
    pub log_std_dev: (f32, f32, f32),
    /// Numbers in the flat array, gaps included.
    pub length: usize,
    /// β₁ and β₂ of Adam.
    pub betas: (f64, f64),
    /// What Adam adds to its denominator.
    pub denominator_floor: f64,
    /// The gradient is shortened to this length if it is longer.
    pub max_gradient_norm: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Decay of the moving average.
    pub average_decay: f32,
}

/// Everything that a step changes, each array flat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResidentState {
    /// w.
    pub parameters: Vec<f32>,
    /// Adam's m.
    pub first: Vec<f32>,
    /// Adam's v.
    pub second: Vec<f32>,
    /// The moving average of w.
    pub average: Vec<f32>,
    /// How often w was moved.
    pub num_steps: u32,
}

/// What a step reads.
#[derive(Clone, Copy, Debug)]
pub struct ResidentBatch<'a> {
    /// What φ reads, `[total, d]`.
    pub encoder_points: &'a [f32],
    /// Its sets.
    pub encoder_offsets: &'a SetOffsets,
    /// What the likelihood is taken of, `[total, d]`.
    pub points: &'a [f32],
    /// Its sets.
    pub offsets: &'a SetOffsets,
    /// K candidates of every set, `[sets, K, d]`.
    pub candidates: &'a [f32],
    /// ω of each, `[sets, K]`.
    pub log_weights: &'a [f32],
    /// Whether each is near a point of its set, `[sets, K]`.
    pub is_near: &'a [bool],
}

/// The settings of one step.
#[derive(Clone, Debug)]
pub struct ResidentStep {
    /// η.
    pub learning_rate: f64,
    /// κₛ / sets, `[sets]`.
    pub kl_weights: Vec<f32>,
    /// ξ.
    pub noise: Stream,
}

/// What one step found.
#[derive(Clone, Debug)]
pub struct ResidentReport {
    /// log Σₖ exp(f + ω), `[sets]`.
    pub log_partition: Vec<f32>,
    /// The mean of f over the points of each set, `[sets]`.
    pub means: Vec<f32>,
    /// KL in nats, `[sets]`.
    pub kl: Vec<f32>,
    /// KL in nats by coordinate, the mean over sets, `[k]`.
    pub unit_kl: Vec<f32>,
    /// 1/Σ w², the share of w near the set's points, and the largest w, of each set's candidates with
    /// Σ w = 1; `[sets]`.
    pub shares: Vec<[f32; 3]>,
    /// Before it is shortened.
    pub gradient_norm: f64,
    /// The first entry of the flat gradient that is not finite; nothing was changed if there is one.
    pub non_finite: Option<(usize, f32)>,
}

/// A model on a device, in training.
pub trait ResidentLearner: Debug + Send + Sync {
    /// Puts a state on the device.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    fn load(&self, state: &ResidentState) -> Result<()>;

    /// The state as it is now.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    fn save(&self) -> Result<ResidentState>;

    /// Begins to send a batch, from any thread and beside other work.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    fn send(&self, batch: &ResidentBatch<'_>) -> Result<Box<dyn SentBatch>>;
}

/// A batch on its way to a device.
pub trait SentBatch: Debug + Send {
    /// Takes a step on it, from the state that was [loaded](ResidentLearner::load).
    ///
    /// # Errors
    ///
    /// As [`ResidentLearner::load`].
    fn learn(self: Box<Self>, step: &ResidentStep) -> Result<ResidentReport>;
}
