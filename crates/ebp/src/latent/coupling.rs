//! Affine couplings (Dinh et al., 2017): half of the coordinates decide how the others are moved and
//! scaled.
//!
//! After a fixed permutation a row is (a, b). Towards the standard normal
//!
//! ```text
//! b' = (b − t(a)) e^(−s(a)),   log |det| = −Σ s(a),   |s| < S
//! ```
//!
//! and back b = b' e^(s(a)) + t(a). Both ways cost the same. s and t come from one small network whose
//! last layer starts at zero: the coupling starts as the identity. s = S tanh(r/S) keeps a scale
//! within e^±S, so that no coordinate can collapse.

use candle_core::{D, Device, Module, Tensor};

use crate::Result;
use crate::nn::{Initialiser, Linear, Parameters, linear};
use crate::rng::Stream;

/// S: one layer scales by less than e² = 7.4.
const LARGEST_LOG_SCALE: f64 = 2.0;

/// One layer.
#[derive(Clone, Debug)]
pub(super) struct Coupling {
    layers: [Linear; 3],
    /// The new place of every coordinate, and the way back; `[k]`.
    order: Tensor,
    inverse: Tensor,
    /// Coordinates that decide, and those that are moved.
    sizes: [usize; 2],
}

impl Coupling {
    /// Layer `number` for rows of `dim` ≥ 2 numbers.
    pub(super) fn new(
        parameters: &Parameters,
        number: usize,
        dim: usize,
        hidden_width: usize,
    ) -> Result<Self> {
        let sizes = [dim / 2, dim - dim / 2];
        let group = parameters.group(&format!("coupling{number}"));
        let layer =
            |name: &str, inputs, outputs, start| linear(&group.group(name), inputs, outputs, start);
        let layers = [
            layer("first", sizes[0], hidden_width, Initialiser::He)?,
            layer("second", hidden_width, hidden_width, Initialiser::He)?,
            layer("last", hidden_width, 2 * sizes[1], Initialiser::Zeros)?,
        ];
        let order = permutation(number, dim);
        let mut inverse = vec![0_u32; dim];
        for (place, &from) in (0_u32..).zip(&order) {
            inverse[from as usize] = place;
        }
        let order = Tensor::from_vec(order, dim, &Device::Cpu)?;
        let inverse = Tensor::from_vec(inverse, dim, &Device::Cpu)?;
        Ok(Self { layers, order, inverse, sizes })
    }

    /// (s, t) of the deciding coordinates.
    fn decide(&self, a: &Tensor) -> Result<[Tensor; 2]> {
        let [first, second, last] = &self.layers;
        let hidden = second.forward(&first.forward(a)?.silu()?)?.silu()?;
        let out = last.forward(&hidden)?;
        let s = out.narrow(D::Minus1, 0, self.sizes[1])?;
        let s = ((s / LARGEST_LOG_SCALE)?.tanh()? * LARGEST_LOG_SCALE)?;
        Ok([s, out.narrow(D::Minus1, self.sizes[1], self.sizes[1])?])
    }

    fn halves(&self, rows: &Tensor) -> Result<[Tensor; 2]> {
        let a = rows.narrow(D::Minus1, 0, self.sizes[0])?.contiguous()?;
        Ok([a, rows.narrow(D::Minus1, self.sizes[0], self.sizes[1])?])
    }

    /// One layer towards the standard normal: rows `[n, k]`, and log |det| `[n]`.
    pub(super) fn normalise(&self, rows: &Tensor) -> Result<(Tensor, Tensor)> {
        let [a, b] = self.halves(&rows.index_select(&self.order, 1)?)?;
        let [s, t] = self.decide(&a)?;
        let moved = ((b - t)? * s.neg()?.exp()?)?;
        Ok((Tensor::cat(&[&a, &moved], 1)?, s.sum(1)?.neg()?))
    }

    /// The way back.
    pub(super) fn generate(&self, rows: &Tensor) -> Result<Tensor> {
        let [a, moved] = self.halves(rows)?;
        let [s, t] = self.decide(&a)?;
        let b = ((moved * s.exp()?)? + t)?;
        Ok(Tensor::cat(&[&a, &b], 1)?.index_select(&self.inverse, 1)?)
    }
}

/// A function of layer and dimension alone, so that checkpoints need not keep it. In two dimensions
/// every layer swaps, since a drawn order would repeat itself half the time.
fn permutation(number: usize, dim: usize) -> Vec<u32> {
    if dim == 2 {
        return vec![1, 0];
    }
    let order = Stream::new(0, "coupling").child(number as u64).permutation(dim);
    order.into_iter().map(|place| u32::try_from(place).unwrap_or(u32::MAX)).collect()
}
