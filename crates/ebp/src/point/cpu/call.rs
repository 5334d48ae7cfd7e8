//! One operation on one batch: what its chunks share.

use std::ops::Range;

use super::accumulator::Accumulator;
use super::kernel::Kernels;
use super::packed::{Needs, PackedMlp};
use super::schedule::run_chunks;
use super::shift::shift_tables;
use super::tile::{Network, Tile};
use crate::point::{Gradients, PointBatch, PointMlp, Wanted};

pub(super) struct Call<'a> {
    pub(super) kernels: &'static Kernels,
    pub(super) mlp: &'a PointMlp,
    pub(super) batch: &'a PointBatch<'a>,
}

impl<'a> Call<'a> {
    /// Packs the weights and computes every set's shifts.
    pub(super) fn network(&self, needs: Needs) -> Network<'a> {
        let num_sets = self.batch.offsets.num_sets();
        Network {
            packed: PackedMlp::new(self.mlp, self.kernels, needs),
            shifts: shift_tables(self.mlp, self.kernels, self.batch.context, num_sets),
            kernels: self.kernels,
        }
    }

    pub(super) fn output_dim(&self) -> usize {
        self.mlp.shape().config().output_dim
    }

    pub(super) fn value_dim(&self) -> usize {
        self.mlp.shape().config().value_dim
    }

    /// Runs `work` on every chunk of the batch's elements, results in order.
    pub(super) fn run<State, Output: Send>(
        &self,
        capacity: usize,
        state: impl Fn() -> State + Sync + Send,
        work: impl Fn(&mut State, Range<usize>) -> Output + Sync + Send,
    ) -> Vec<Output> {
        run_chunks(self.batch.offsets.num_elements(), capacity, state, work)
    }

    /// Fills a tile with the elements `range`.
    pub(super) fn load(&self, tile: &mut Tile, range: Range<usize>) {
        let dim = self.mlp.shape().element_dim();
        tile.load(self.batch.elements, dim, self.batch.offsets, range);
    }

    /// The sets that own the elements of a chunk.
    pub(super) fn sets_of(&self, chunk: &Range<usize>) -> Range<usize> {
        self.batch.offsets.set_of(chunk.start)..self.batch.offsets.set_of(chunk.end - 1) + 1
    }

    /// Merges the chunks' sums and writes them as gradients.
    pub(super) fn finish(
        &self,
        net: &Network<'_>,
        parts: &[Accumulator],
        wanted: Wanted,
    ) -> Gradients {
        let num_sets = self.batch.offsets.num_sets();
        Accumulator::merge(net, num_sets, wanted, parts).finish(net, self.batch.context, wanted)
    }
}

/// The chunks' rows, one after the other.
pub(super) fn concat(parts: Vec<Vec<f32>>) -> Vec<f32> {
    let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for part in parts {
        all.extend_from_slice(&part);
    }
    all
}
