//! The operations every device offers on a [`PointMlp`].
//!
//! None of them writes a `[sets, n, width]` array: each works tile by tile, from the elements to
//! the result, and backward passes recompute a tile's activations rather than store them.

use std::fmt::Debug;

use super::{
    DynamicsCotangent, DynamicsGradients, Langevin, LangevinRun, Leapfrog, LeapfrogRun, Likelihood,
    PointBatch, PointMlp,
};
use crate::error::{check_finite, check_length};
use crate::point::mlp::check_context;
use crate::{Error, Result, SetOffsets};

/// Which gradients a backward pass should compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each gradient is wanted or not, on its own")]
pub struct Wanted {
    /// With respect to the flat parameters.
    pub parameters: bool,
    /// With respect to the per-set context.
    pub context: bool,
    /// With respect to the elements (or candidate values).
    pub elements: bool,
    /// With respect to the locations of anchors; elements have theirs in `elements`.
    pub locations: bool,
}

impl Wanted {
    /// All of them.
    pub const ALL: Self = Self { parameters: true, context: true, elements: true, locations: true };
    /// None of them.
    pub const NOTHING: Self =
        Self { parameters: false, context: false, elements: false, locations: false };
    /// What training an energy and an encoder needs: parameters and context.
    pub const WEIGHTS: Self = Self { parameters: true, context: true, ..Self::NOTHING };
    /// Only the elements.
    pub const ELEMENTS: Self = Self { elements: true, ..Self::NOTHING };
}

/// Gradients of a scalar loss; those not wanted are `None`. `Array` is where numbers are: in vectors of
/// the host, here and below, or on a device.
#[derive(Clone, Debug)]
pub struct Gradients<Array = Vec<f32>> {
    /// ∂L/∂w, flat as in [`MlpShape`](super::MlpShape).
    pub parameters: Option<Array>,
    /// ∂L/∂c, `[sets, context_dim]`.
    pub context: Option<Array>,
    /// ∂L/∂[x, t], `[total, d_x + d_t]`; for candidates ∂L/∂x, shaped as the candidates.
    pub elements: Option<Array>,
    /// ∂L/∂t of anchors, `[anchors, d_t]`; `None` where there are no anchors.
    pub locations: Option<Array>,
}

impl<Array> Default for Gradients<Array> {
    fn default() -> Self {
        Self { parameters: None, context: None, elements: None, locations: None }
    }
}

/// ∂L/∂f, for every element or once per set.
#[derive(Clone, Copy, Debug)]
pub enum Cotangent<'a> {
    /// `[total, output_dim]`.
    PerElement(&'a [f32]),
    /// `[sets, output_dim]`: every element of a set gets the same, as under a sum over the set.
    PerSet(&'a [f32]),
}

/// Values and gradients of one fused forward and backward pass.
#[derive(Clone, Debug)]
pub struct Backward<Array = Vec<f32>> {
    /// f per element, `[total, output_dim]`.
    pub values: Array,
    /// What was wanted.
    pub gradients: Gradients<Array>,
}

/// Log potentials and their gradients with respect to the elements' values.
#[derive(Clone, Debug)]
pub struct Score<Array = Vec<f32>> {
    /// f, `[total]`.
    pub values: Array,
    /// ∇ₓ f, `[total, d_x]`.
    pub score: Array,
}

/// Cotangents of a [`Score`].
#[derive(Clone, Copy, Debug)]
pub struct ScoreCotangent<'a> {
    /// ∂L/∂(∇ₓ f), `[total, d_x]`.
    pub score: &'a [f32],
    /// ∂L/∂f, `[total]`, or `None` for zero.
    pub values: Option<&'a [f32]>,
}

/// How a set's vectors become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The largest per output; gradients reach only the elements that attain it.
    Max,
    /// The average.
    Mean,
    /// The sum.
    Sum,
}

/// A set's pooled output.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// How the set was pooled, which its backward pass must repeat.
    pub pooling: Pooling,
    /// `[sets, output_dim]`.
    pub values: Vec<f32>,
    /// Max pooling: the row (in `0..total`) that attains each maximum, the first one on a tie,
    /// `[sets, output_dim]`. Empty for mean and sum.
    pub critical: Vec<u32>,
}

/// Candidate values to evaluate against anchors.
///
/// An anchor is a place where a value could stand: a location t within a set. Every anchor has
/// the same number K of candidates. For an unconditional model (d_t = 0) one anchor per set asks
/// for log Z of that set's law.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// The candidate values.
    pub values: CandidateValues<'a>,
    /// K, the number of candidates per anchor.
    pub num_candidates: usize,
    /// t of each anchor, `[anchors, d_t]`; empty if d_t is 0.
    pub locations: &'a [f32],
    /// Which anchors belong to which set.
    pub offsets: &'a SetOffsets,
    /// One context per set, `[sets, context_dim]`.
    pub context: &'a [f32],
    /// ω, added to f before the log-sum-exp: `−log r(x) − log K` for importance sampling with
    /// proposal density r, the log of a quadrature weight, or the base measure.
    pub log_weights: LogWeights<'a>,
}

/// Candidates of every anchor, or one list for all.
#[derive(Clone, Copy, Debug)]
pub enum CandidateValues<'a> {
    /// `[anchors, K, d_x]`: proposals.
    PerAnchor(&'a [f32]),
    /// `[K, d_x]`: an alphabet or quadrature nodes.
    Shared(&'a [f32]),
}

/// ω of [`Candidates`].
#[derive(Clone, Copy, Debug)]
pub enum LogWeights<'a> {
    /// All zero.
    Zero,
    /// `[anchors, K]`.
    PerAnchor(&'a [f32]),
    /// `[K]`.
    Shared(&'a [f32]),
}

/// log Σ_k exp(f_k + ω_k) of every anchor.
#[derive(Clone, Debug)]
pub struct LogPartition<Array = Vec<f32>> {
    /// `[anchors]`.
    pub log_partition: Array,
    /// f at every candidate, without ω, `[anchors, K]`.
    pub values: Array,
}

/// The operations of the primitive, the same on every device.
///
/// Sets may have any sizes; results do not depend on how work is divided.
pub trait PointBackend: Debug + Send + Sync {
    /// f of every element, `[total, output_dim]`.
    ///
    /// # Errors
    ///
    /// As every operation here: [`Error::WrongLength`] or [`Error::NonFinite`] naming the field
    /// that does not fit, [`Error::NonFinite`] if the result overflows.
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>>;

    /// Σ f over each set, `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>>;

    /// f, and the gradients of L = Σ ⟨cotangent, f⟩, in one fused pass.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward>;

    /// f and ∇ₓ f of every element. The network must have one output.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values); [`Error::InvalidValue`] if `output_dim` is not 1.
    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score>;

    /// Gradients of L = Σ ⟨v, ∇ₓ f⟩ + Σ u f with cotangents v and u: every second-order term for
    /// smooth σ, and their exact (almost everywhere) reduction for piecewise linear σ.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score).
    fn score_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: ScoreCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Gradients>;

    /// T Langevin steps of every element.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score); [`Error::NonFinite`] if an element leaves the numbers.
    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun>;

    /// Gradients through [`langevin`](Self::langevin), with the same arguments and noise.
    ///
    /// # Errors
    ///
    /// As [`langevin`](Self::langevin).
    fn langevin_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients>;

    /// T leapfrog steps of every element from `momentum` `[total, d_x]`.
    ///
    /// # Errors
    ///
    /// As [`langevin`](Self::langevin).
    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun>;

    /// Gradients through [`leapfrog`](Self::leapfrog), with the same arguments.
    ///
    /// # Errors
    ///
    /// As [`langevin`](Self::langevin).
    fn leapfrog_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients>;

    /// log Σ_k exp(f_k + ω_k) for every anchor.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score).
    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition>;

    /// Gradients of L = Σ_anchors cotangent · log-partition, given the `log_partition` computed
    /// before. `Gradients::elements` has the shape of the candidate values, summed over anchors
    /// where they are shared; `Gradients::locations` is summed over an anchor's candidates.
    ///
    /// # Errors
    ///
    /// As [`log_partition`](Self::log_partition).
    fn log_partition_backward(
        &self,
        mlp: &PointMlp,
        candidates: &Candidates<'_>,
        log_partition: &[f32],
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients>;

    /// The negative log-likelihood of sets, L = mean_s (mean_a log Σₖ exp(f + ω) − mean_i f), by
    /// its parts and with its gradients with respect to parameters and context.
    ///
    /// # Errors
    ///
    /// As [`log_partition`](Self::log_partition), and if `candidates` are of other sets.
    fn likelihood(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        candidates: &Candidates<'_>,
        wanted: Wanted,
    ) -> Result<Likelihood>;

    /// Pools the outputs of each set.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled>;

    /// Gradients of L = Σ ⟨cotangent, pooled⟩, `cotangent` being `[sets, output_dim]`. Max pooling
    /// visits only the elements named in `pooled.critical`.
    ///
    /// # Errors
    ///
    /// As [`pool`](Self::pool).
    fn pool_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        pooled: &Pooled,
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients>;
}

impl Candidates<'_> {
    pub(crate) fn num_anchors(&self) -> usize {
        self.offsets.num_elements()
    }

    pub(crate) fn check(&self, mlp: &PointMlp) -> Result<()> {
        let config = mlp.shape().config();
        let (anchors, k) = (self.num_anchors(), self.num_candidates);
        if k == 0 || u32::try_from(anchors.saturating_mul(k)).is_err() {
            return Err(Error::invalid("num_candidates", "at least 1, below 2^32 in all", k));
        }
        let (dx, dt) = (config.value_dim, config.location_dim);
        let (values, rows) = match self.values {
            CandidateValues::PerAnchor(values) => (values, anchors * k),
            CandidateValues::Shared(values) => (values, k),
        };
        check_length("candidates.values", values.len(), rows * dx, || {
            format!("rows {rows} x value_dim {dx}")
        })?;
        check_finite("candidates.values", values, "remove or repair that candidate")?;
        check_length("candidates.locations", self.locations.len(), anchors * dt, || {
            format!("anchors {anchors} x location_dim {dt}")
        })?;
        check_finite("candidates.locations", self.locations, "remove or repair that location")?;
        let (weights, expected): (&[f32], _) = match self.log_weights {
            LogWeights::Zero => (&[], 0),
            LogWeights::PerAnchor(weights) => (weights, anchors * k),
            LogWeights::Shared(weights) => (weights, k),
        };
        check_length("candidates.log_weights", weights.len(), expected, || {
            format!("anchors {anchors}, num_candidates {k}")
        })?;
        // −∞ is a weight of zero and welcome; NaN and +∞ are not.
        if let Some(index) = weights.iter().position(|w| w.is_nan() || *w == f32::INFINITY) {
            return Err(Error::NonFinite {
                field: "candidates.log_weights",
                index,
                value: weights[index],
                remedy: "a log weight is a number or minus infinity",
            });
        }
        check_context(self.context, self.offsets.num_sets(), mlp.shape())
    }
}
