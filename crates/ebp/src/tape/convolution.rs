//! Convolutions of pictures, channel by channel: rows are places of a grid, set after set.
//!
//! ```text
//! y[i, j, c] = Σ_{a, b < k} w[a, b, c] x[s i + a − r, s j + b − r, c],    r = (k − 1)/2
//! ```
//!
//! Outside the grid x is 0. With a stride s above 1 the result is a coarser grid; the transpose leads
//! from there back to the finer one. What mixes channels is a dense layer over the rows
//! ([`dense`](Tape::dense)), so the two together are a depthwise separable convolution.

mod block;
mod cpu;

use super::{Array, Device, Tape, Var, cuda};
use crate::{Error, Result};

/// A window that moves over a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Columns of the finer grid.
    pub(super) width: usize,
    /// Rows of the finer grid.
    pub(super) height: usize,
    /// k.
    pub(super) side: usize,
    /// s.
    pub(super) stride: usize,
}

/// The largest window: kernels keep a row of it in registers.
const MOST_SIDE: usize = 15;

impl Convolution {
    /// A window of `side` by `side` on a grid of columns and rows, moved by `stride` places.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the grid has no place, `side` is even or above 15, or `stride` is 0
    /// or larger than `side`, so that places would be passed over.
    pub fn new((width, height): (usize, usize), side: usize, stride: usize) -> Result<Self> {
        if width == 0 || height == 0 {
            return Err(Error::invalid(
                "grid",
                "at least one place",
                format!("{width} x {height}"),
            ));
        }
        if side.is_multiple_of(2) || side > MOST_SIDE {
            return Err(Error::invalid("side", format!("odd and at most {MOST_SIDE}"), side));
        }
        if stride == 0 || stride > side {
            return Err(Error::invalid("stride", format!("from 1 to {side}"), stride));
        }
        Ok(Self { width, height, side, stride })
    }

    /// Columns and rows of the coarser grid; the same grid for a stride of 1.
    pub fn coarse(&self) -> (usize, usize) {
        (self.width.div_ceil(self.stride), self.height.div_ceil(self.stride))
    }

    /// Numbers of a window, per channel.
    pub fn num_weights(&self) -> usize {
        self.side * self.side
    }

    pub(super) fn num_fine(&self) -> usize {
        self.width * self.height
    }

    pub(super) fn num_coarse(&self) -> usize {
        let (width, height) = self.coarse();
        width * height
    }

    /// Sets of which `rows` are the places, `places` of each.
    fn num_sets(rows: usize, places: usize) -> Result<usize> {
        if rows == 0 || !rows.is_multiple_of(places) {
            return Err(Error::invalid("rows", format!("a multiple of {places} places"), rows));
        }
        Ok(rows / places)
    }
}

/// From the finer grid to the coarser one.
fn forward(device: &Device, window: Convolution, [x, w]: [&Array; 2]) -> Result<Array> {
    match device {
        Device::Cpu(cpu) => Ok(cpu::forward(*cpu, window, x.host()?, w.host()?).into()),
        Device::Cuda(gpu) => cuda::convolve(gpu, window, [x.cuda()?, w.cuda()?]),
    }
}

/// From the coarser grid to the finer one: the transpose of `forward`.
fn transposed(device: &Device, window: Convolution, [y, w]: [&Array; 2]) -> Result<Array> {
    match device {
        Device::Cpu(cpu) => Ok(cpu::transposed(*cpu, window, y.host()?, w.host()?).into()),
        Device::Cuda(gpu) => cuda::convolve_transposed(gpu, window, [y.cuda()?, w.cuda()?]),
    }
}

/// ∂⟨y, forward(x, w)⟩/∂w, `[k², channels]`.
fn of_weights(
    device: &Device,
    window: Convolution,
    [x, y]: [&Array; 2],
    channels: usize,
) -> Result<Array> {
    match device {
        Device::Cpu(cpu) => {
            let pair = (&x.host()?[..], &y.host()?[..]);
            Ok(cpu::of_weights(*cpu, window, pair, channels).into())
        }
        Device::Cuda(gpu) => cuda::convolve_weights(gpu, window, [x.cuda()?, y.cuda()?], channels),
    }
}

impl Tape {
    /// What a window finds around every place of the coarser grid, `[sets · coarse, channels]`, of
    /// x `[sets · fine, channels]` with weights `[k², channels]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn convolve(&mut self, x: Var, weights: Var, window: Convolution) -> Result<Var> {
        let (rows, channels) = self.shape(x);
        let sets = Convolution::num_sets(rows, window.num_fine())?;
        self.check("weights", weights, (window.num_weights(), channels))?;
        let (x_array, w) = (self.array(x).clone(), self.array(weights).clone());
        let value = forward(self.device(), window, [&x_array, &w])?;
        let shape = (sets * window.num_coarse(), channels);
        Ok(self.record(&[x, weights], value, shape, move |reversal| {
            let (device, g) = (reversal.device, reversal.cotangent()?);
            let of_x = reversal.when(0, || transposed(device, window, [g, &w]))?;
            let of_w = reversal.when(1, || of_weights(device, window, [&x_array, g], channels))?;
            Ok(vec![of_x, of_w])
        }))
    }

    /// The transpose of [`convolve`](Self::convolve): every place of the coarser grid puts its window
    /// on the finer one, from y `[sets · coarse, channels]` to `[sets · fine, channels]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn convolve_transposed(
        &mut self,
        y: Var,
        weights: Var,
        window: Convolution,
    ) -> Result<Var> {
        let (rows, channels) = self.shape(y);
        let sets = Convolution::num_sets(rows, window.num_coarse())?;
        self.check("weights", weights, (window.num_weights(), channels))?;
        let (y_array, w) = (self.array(y).clone(), self.array(weights).clone());
        let value = transposed(self.device(), window, [&y_array, &w])?;
        let shape = (sets * window.num_fine(), channels);
        Ok(self.record(&[y, weights], value, shape, move |reversal| {
            let (device, g) = (reversal.device, reversal.cotangent()?);
            let of_y = reversal.when(0, || forward(device, window, [g, &w]))?;
            let of_w = reversal.when(1, || of_weights(device, window, [g, &y_array], channels))?;
            Ok(vec![of_y, of_w])
        }))
    }
}
