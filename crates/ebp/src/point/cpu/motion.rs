//! What Langevin and leapfrog share inside a tile: the clipped drift, walls, and their derivatives.

use super::tile::{Network, Tile};
use crate::point::{Bounds, Clip, Motion};

/// The values of a tile's elements on the move, `[rows, dims]` without padding.
pub(super) struct Mover<'a> {
    pub(super) motion: &'a Motion<'a>,
    pub(super) dims: usize,
    /// Where the tile's first element stands in the batch.
    pub(super) first: usize,
}

impl Mover<'_> {
    pub(super) fn is_fixed(&self, row: usize) -> bool {
        self.motion.is_fixed.is_some_and(|mask| mask[self.first + row])
    }

    /// The elements' values, as the tile holds them.
    pub(super) fn positions(&self, tile: &Tile) -> Vec<f32> {
        let mut positions = Vec::with_capacity(tile.rows * self.dims);
        tile.elements.push_rows(tile.rows, self.dims, &mut positions);
        positions
    }

    /// Puts values back into the tile.
    pub(super) fn place(&self, tile: &mut Tile, positions: &[f32]) {
        if tile.elements.stride == self.dims {
            tile.elements.data[..positions.len()].copy_from_slice(positions);
            return;
        }
        for (row, from) in positions.chunks_exact(self.dims).enumerate() {
            tile.elements.row_mut(row)[..self.dims].copy_from_slice(from);
        }
    }

    /// ∇u = ∇f − x/s₀² at the tile's elements.
    pub(super) fn gradient(&self, net: &Network<'_>, tile: &mut Tile, out: &mut [f32]) {
        tile.score(net);
        let gradients = &tile.element_gradient;
        if gradients.stride == self.dims {
            out.copy_from_slice(&gradients.data[..out.len()]);
        } else {
            for (row, out) in out.chunks_exact_mut(self.dims).enumerate() {
                out.copy_from_slice(&gradients.row(row)[..self.dims]);
            }
        }
        if self.motion.base_std_dev.is_some() {
            let precision = self.precision();
            for (row, out) in out.chunks_exact_mut(self.dims).enumerate() {
                let position = tile.elements.row(row);
                out.iter_mut().zip(position).for_each(|(out, x)| *out -= x * precision);
            }
        }
    }

    /// 1/s₀², or 0 without a base measure.
    pub(super) fn precision(&self) -> f32 {
        self.motion.base_std_dev.map_or(0.0, |std_dev| (std_dev * std_dev).recip())
    }

    /// g = clip(∇u), zero for fixed elements.
    pub(super) fn clip(&self, gradient: &[f32], out: &mut [f32]) {
        match self.motion.clip {
            Clip::Off => out.copy_from_slice(gradient),
            Clip::Elementwise(limit) => {
                for (out, g) in out.iter_mut().zip(gradient) {
                    *out = g.clamp(-limit, limit);
                }
            }
            Clip::Norm(limit) => {
                let rows = out.chunks_exact_mut(self.dims).zip(gradient.chunks_exact(self.dims));
                for (out, g) in rows {
                    let scale = (limit / norm(g)).min(1.0);
                    for (out, g) in out.iter_mut().zip(g) {
                        *out = g * scale;
                    }
                }
            }
        }
        if self.motion.is_fixed.is_some() {
            for (row, out) in out.chunks_exact_mut(self.dims).enumerate() {
                if self.is_fixed(row) {
                    out.fill(0.0);
                }
            }
        }
    }

    /// The derivative of `clip` at ∇u, transposed, applied to `adjoint` in place.
    pub(super) fn clip_backward(&self, gradient: &[f32], adjoint: &mut [f32]) {
        let rows = adjoint.chunks_exact_mut(self.dims).zip(gradient.chunks_exact(self.dims));
        for (row, (adjoint, g)) in rows.enumerate() {
            if self.is_fixed(row) {
                adjoint.fill(0.0);
                continue;
            }
            match self.motion.clip {
                Clip::Off => {}
                Clip::Elementwise(limit) => {
                    for (adjoint, g) in adjoint.iter_mut().zip(g) {
                        if g.abs() >= limit {
                            *adjoint = 0.0;
                        }
                    }
                }
                // c g/‖g‖ has the symmetric derivative c/‖g‖ (I − g gᵀ/‖g‖²).
                Clip::Norm(limit) => {
                    let length = norm(g);
                    if length > limit {
                        let along: f32 = adjoint.iter().zip(g).map(|(a, g)| a * g).sum();
                        let along = along / (length * length);
                        for (adjoint, g) in adjoint.iter_mut().zip(g) {
                            *adjoint = (*adjoint - along * g) * (limit / length);
                        }
                    }
                }
            }
        }
    }

    /// Reflects a coordinate at the walls. Returns the new place and its derivative.
    pub(super) fn reflect(&self, x: f32) -> (f32, f32) {
        let Some(Bounds { low, high }) = self.motion.bounds else { return (x, 1.0) };
        let (place, slope) = if x < low {
            (2.0 * low - x, -1.0)
        } else if x > high {
            (2.0 * high - x, -1.0)
        } else {
            return (x, 1.0);
        };
        // A step of more than the whole box: stop at the wall, where the derivative is zero.
        if place < low {
            (low, 0.0)
        } else if place > high {
            (high, 0.0)
        } else {
            (place, slope)
        }
    }
}

fn norm(g: &[f32]) -> f32 {
    g.iter().map(|g| g * g).sum::<f32>().sqrt()
}
