//! Rows that a network computes together, and how many of them fit into the GPU's memory.

use super::buffer::Buffer;
use super::device::Device;
use super::launch::{Grid, flat, sums_per_set};
use super::network::{Keep, Network};
use super::sets::{Chunk, Sets};
use crate::Result;

/// Blocks that keep a whole GPU busy.
const BUSY_BLOCKS: usize = 264;
/// Rows of a set that are not worth sharing out among blocks.
const ROWS_PER_BLOCK: usize = 512;

/// Rows of a batch that are computed together.
#[derive(Clone)]
pub(super) struct Rows {
    /// `[count, d]`.
    pub(super) elements: Buffer,
    /// The set of each row.
    pub(super) set: Buffer<u32>,
    /// Where the chunk's sets begin and end, counted from its first row.
    pub(super) starts: Buffer<u32>,
    pub(super) first_set: usize,
    pub(super) num_sets: usize,
    pub(super) count: usize,
}

impl Rows {
    /// Adds the sums over the rows of every set to `out`, `[all sets, n]`; `numbers` is `[count, n]`.
    /// Sets of many rows, such as all places of all pictures, are shared out among blocks.
    pub(super) fn add_sums(
        &self,
        device: &Device,
        (numbers, n): (&Buffer, usize),
        out: &Buffer,
    ) -> Result<()> {
        let whole = sums_per_set(self.num_sets, n);
        let blocks = (whole.grid_dim.0 * whole.grid_dim.1) as usize;
        let per_set = self.count / self.num_sets.max(1);
        let num_parts = (BUSY_BLOCKS / blocks.max(1)).min(per_set / ROWS_PER_BLOCK).max(1);
        let count = if num_parts > 1 { self.num_sets * n } else { 0 };
        let parts = device.buffer::<f64>(num_parts * count)?;
        let grid =
            Grid { grid_dim: (whole.grid_dim.0, whole.grid_dim.1, num_parts as u32), ..whole };
        let first = self.first_set as u32;
        device.kernels.set_sums(
            device,
            grid,
            numbers,
            &self.starts,
            &parts,
            out,
            first,
            n as u32,
        )?;
        if num_parts == 1 {
            return Ok(());
        }
        let out = out.view(self.first_set * n, count);
        device.kernels.add_parts(device, flat(count), &parts, &out, num_parts as u32, count as u64)
    }
}

impl Network<'_> {
    /// Bytes a row takes in a pass that keeps `keep`.
    pub(super) fn bytes_per_row(&self, keep: Keep) -> usize {
        let widths: usize = self.shape.layers().iter().map(|layer| layer.outputs).sum();
        let widest = self.shape.layers().iter().map(|layer| layer.outputs).max().unwrap_or(1);
        // Split rows are three times as long.
        let (copies, more) = match keep {
            Keep::Output => (0, 8),
            Keep::Slopes => (2, 4),
            Keep::Curvatures => (5, 4),
        };
        4 * (copies * widths + more * widest + 4 * self.shape.element_dim() + 2)
    }

    /// How many rows fit into the budget.
    pub(super) fn rows_at_once(&self, keep: Keep) -> usize {
        // Grids have at most 2³¹ blocks; a warp per row keeps far below.
        (self.device.budget / self.bytes_per_row(keep)).clamp(1, 1 << 24)
    }

    /// A chunk of a batch's elements `[total, d]`.
    pub(super) fn rows(&self, elements: &Buffer, sets: &Sets, chunk: &Chunk) -> Result<Rows> {
        let (d, count) = (self.shape.element_dim(), chunk.rows.len());
        Ok(Rows {
            elements: elements.view(chunk.rows.start * d, count * d),
            set: sets.set_of_row().view(chunk.rows.start, count),
            starts: sets.starts_of(self.device, chunk)?,
            first_set: chunk.first_set,
            num_sets: chunk.starts.len() - 1,
            count,
        })
    }
}
