//! The values of a tile's elements on the move.

use super::tile::{Network, Tile};
pub(super) use crate::point::mover::Mover;

impl Mover<'_> {
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
}
