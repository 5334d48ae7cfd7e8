//! Adam with a moving average of the parameters, on flat arrays.

use cudarc::driver::DeviceRepr;

use super::buffer::Buffer;
use super::device::Device;
use super::launch::{blocks, plain_arguments};
use crate::Result;

/// Blocks that share the sum of a gradient's squares; the kernel adds up at most 256.
const SQUARE_PARTS: usize = 256;

/// What is the same for all parameters, as the kernel `adam` knows it:
///
/// ```text
/// m ← beta1 m + gain1 g,   v ← beta2 v + gain2 g²,   g shortened to length `limit`
/// w ← keep w − rate m / (root √v + floor),   average ← average + average_gain (w − average)
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamNumbers {
    /// β₁ and 1 − β₁.
    pub(crate) beta1: f32,
    pub(crate) gain1: f32,
    /// β₂ and 1 − β₂.
    pub(crate) beta2: f32,
    pub(crate) gain2: f32,
    /// 1 − η · weight decay.
    pub(crate) keep: f32,
    /// η / (1 − β₁ᵗ).
    pub(crate) rate: f32,
    /// 1 / √(1 − β₂ᵗ).
    pub(crate) root: f32,
    /// What is added to the denominator.
    pub(crate) floor: f32,
    /// 1 − decay of the moving average.
    pub(crate) average_gain: f32,
    /// The gradient is shortened to this length if it is longer.
    pub(crate) limit: f32,
}

// SAFETY: plain numbers in C's layout, the same as `struct AdamNumbers` of adam.cu.
unsafe impl DeviceRepr for AdamNumbers {}

plain_arguments!(AdamNumbers);

/// What a step of Adam changes, flat arrays of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamState<'a> {
    /// w.
    pub(crate) parameters: &'a Buffer,
    /// m.
    pub(crate) first: &'a Buffer,
    /// v.
    pub(crate) second: &'a Buffer,
    /// The moving average of w, where one is kept.
    pub(crate) average: Option<&'a Buffer>,
}

impl Device {
    /// Parts whose sum is ‖g‖², in f64.
    pub(crate) fn square_parts(&self, gradient: &Buffer) -> Result<Buffer<f64>> {
        let parts = self.buffer::<f64>(SQUARE_PARTS)?;
        let count = gradient.len() as u64;
        self.kernels.square_sums(self, blocks(SQUARE_PARTS, 256), gradient, &parts, count)?;
        Ok(parts)
    }

    /// One step along `gradient`, whose squares add up to `parts`. The sum goes to `square` `[1]`; if
    /// it is not finite, nothing else is changed.
    pub(crate) fn adam(
        &self,
        state: &AdamState<'_>,
        (gradient, parts): (&Buffer, &Buffer<f64>),
        numbers: AdamNumbers,
        square: &Buffer<f64>,
    ) -> Result<()> {
        self.kernels.adam(
            self,
            blocks(SQUARE_PARTS, 256),
            state.parameters,
            state.first,
            state.second,
            state.average,
            gradient,
            parts,
            parts.len() as u32,
            numbers,
            gradient.len() as u64,
            square,
        )
    }
}
