//! How the rows of a call are divided: tiles for the cache, chunks for the threads.
//!
//! Neither depends on the number of threads. Each chunk sums into its own accumulator, and
//! accumulators are added in the order of the chunks: the same bytes on any number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::kernel::ROW_BLOCK;
use super::packed::PackedMlp;

/// The most chunks of one call, and so the most threads that share it.
const MAX_CHUNKS: usize = 128;

/// Bytes of activations a tile may take: half of a small level-2 cache.
const TILE_BYTES: usize = 256 * 1024;

/// Rows of a tile: as many as keep its activations in the level-2 cache, between 1 and 4 blocks.
pub(super) fn tile_rows(net: &PackedMlp<'_>, buffers_per_layer: usize) -> usize {
    let per_row: usize = net.layers.iter().map(|layer| layer.output_width * 4).sum();
    let blocks = TILE_BYTES / (per_row * buffers_per_layer * ROW_BLOCK);
    blocks.clamp(1, 4) * ROW_BLOCK
}

/// Tiles that a chunk should have before it is worth an accumulator of its own: zeroing and adding
/// one costs as much as some twenty rows.
const TILES_PER_CHUNK: usize = 4;

/// Runs `work` on every chunk of `0..rows` and returns the results in order. `state` makes the
/// scratch memory that chunks on one thread share.
pub(super) fn run_chunks<State, Output: Send>(
    rows: usize,
    tile: usize,
    state: impl Fn() -> State + Sync + Send,
    work: impl Fn(&mut State, Range<usize>) -> Output + Sync + Send,
) -> Vec<Output> {
    // Few tiles are shared out one by one, many in at most MAX_CHUNKS portions.
    let num_tiles = rows.div_ceil(tile);
    let wished = (num_tiles / 8).clamp(1, TILES_PER_CHUNK).max(num_tiles.div_ceil(MAX_CHUNKS));
    let per_chunk = wished * tile;
    (0..rows.div_ceil(per_chunk))
        .into_par_iter()
        .map_init(state, |state, chunk| {
            let start = chunk * per_chunk;
            work(state, start..(start + per_chunk).min(rows))
        })
        .collect()
}

/// The tiles of a chunk.
pub(super) fn tiles(chunk: Range<usize>, tile: usize) -> impl Iterator<Item = Range<usize>> {
    chunk.clone().step_by(tile).map(move |start| start..(start + tile).min(chunk.end))
}
