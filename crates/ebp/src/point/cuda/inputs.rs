//! What operations on the GPU read: the arguments of [`PointBackend`](crate::point::PointBackend) with
//! arrays that are on the GPU already. Nobody checks them again.

use super::buffer::Buffer;
use super::motion::DeviceMotion;
use super::sets::Sets;
use crate::point::MlpShape;
use crate::rng::Stream;

/// A network, as [`PointMlp`](crate::point::PointMlp).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceMlp<'a> {
    pub(crate) shape: &'a MlpShape,
    /// Flat, as the shape says.
    pub(crate) parameters: &'a Buffer,
    /// Where backward passes add the gradient of the parameters; they take a new array if `None`.
    pub(crate) gradient: Option<&'a Buffer>,
}

/// Sets to apply a network to, as [`PointBatch`](crate::point::PointBatch).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceBatch<'a> {
    /// `[total, d_x + d_t]`.
    pub(crate) elements: &'a Buffer,
    pub(crate) sets: &'a Sets,
    /// `[sets, context_dim]`.
    pub(crate) context: &'a Buffer,
}

/// ∂L/∂f, as [`Cotangent`](crate::point::Cotangent).
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeviceCotangent<'a> {
    /// `[total, output_dim]`.
    PerElement(&'a Buffer),
    /// `[sets, output_dim]`.
    PerSet(&'a Buffer),
}

/// Candidate values of anchors, as [`Candidates`](crate::point::Candidates).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceCandidates<'a> {
    pub(crate) values: DeviceCandidateValues<'a>,
    /// K.
    pub(crate) num_candidates: usize,
    /// `[anchors, d_t]`.
    pub(crate) locations: &'a Buffer,
    /// Which anchors belong to which set.
    pub(crate) sets: &'a Sets,
    /// `[sets, context_dim]`.
    pub(crate) context: &'a Buffer,
    pub(crate) log_weights: DeviceLogWeights<'a>,
}

/// As [`CandidateValues`](crate::point::CandidateValues).
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeviceCandidateValues<'a> {
    /// `[anchors, K, d_x]`.
    PerAnchor(&'a Buffer),
    /// `[K, d_x]`.
    Shared(&'a Buffer),
}

/// As [`LogWeights`](crate::point::LogWeights).
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeviceLogWeights<'a> {
    /// All zero.
    Zero,
    /// `[anchors, K]`.
    PerAnchor(&'a Buffer),
    /// `[K]`.
    Shared(&'a Buffer),
}

/// Langevin steps, as [`Langevin`](crate::point::Langevin).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLangevin<'a> {
    /// η_t, `[T]`.
    pub(crate) step_sizes: &'a Buffer,
    /// s_t, as many.
    pub(crate) noise_scales: &'a [f32],
    pub(crate) noise: Stream,
    pub(crate) motion: &'a DeviceMotion,
}

/// Leapfrog steps, as [`Leapfrog`](crate::point::Leapfrog).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLeapfrog<'a> {
    /// η_t, `[T]`.
    pub(crate) step_sizes: &'a Buffer,
    pub(crate) motion: &'a DeviceMotion,
}
