//! Scores ∇ₓf and their backward pass.

use super::accumulator::Accumulator;
use super::call::{Call, concat};
use super::packed::Needs;
use super::schedule::{tile_rows, tiles};
use super::tile::{Keep, Network, Tile};
use crate::point::{Gradients, Score, ScoreCotangent, Wanted};

impl Tile {
    /// f and ∇ₓf of the elements in the tile: outputs in `values`, gradients in
    /// `element_gradient`.
    pub(super) fn score(&mut self, net: &Network<'_>) {
        self.forward(net, Keep::Slopes, false);
        self.set_cotangent(net, |_, _, gradient| gradient.fill(1.0));
        self.backward(net);
        self.backward_to_elements(net);
    }
}

pub(super) fn score(call: &Call<'_>) -> Score {
    let dims = call.value_dim();
    let net = call.network(Needs { backward: true, element_dims: dims });
    let capacity = tile_rows(&net.packed, 2);
    let parts = call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Slopes),
        |tile, chunk| {
            let mut values = Vec::with_capacity(chunk.len());
            let mut score = Vec::with_capacity(chunk.len() * dims);
            for range in tiles(chunk, capacity) {
                call.load(tile, range);
                tile.score(&net);
                tile.push_outputs(1, &mut values);
                tile.push_element_gradients(dims, &mut score);
            }
            (values, score)
        },
    );
    let (values, score) = parts.into_iter().unzip();
    Score { values: concat(values), score: concat(score) }
}

pub(super) fn score_backward(
    call: &Call<'_>,
    cotangent: ScoreCotangent<'_>,
    wanted: Wanted,
) -> Gradients {
    let (dims, dim) = (call.value_dim(), call.mlp.shape().element_dim());
    let element_dims = if wanted.elements { dim } else { 0 };
    let net = call.network(Needs { backward: true, element_dims });
    let capacity = tile_rows(&net.packed, 5);
    let parts = call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Curvatures),
        |tile, chunk| {
            let mut sums = Accumulator::new(&net, call.sets_of(&chunk), wanted);
            let mut elements = Vec::new();
            for range in tiles(chunk, capacity) {
                let first = range.start;
                call.load(tile, range);
                for row in 0..tile.rows {
                    let direction = &cotangent.score[(first + row) * dims..][..dims];
                    tile.element_tangent.row_mut(row)[..dims].copy_from_slice(direction);
                }
                tile.forward(&net, Keep::Curvatures, false);
                tile.second_order(&net, |row| {
                    cotangent.values.map_or(0.0, |values| values[first + row])
                });
                if wanted.parameters || wanted.context {
                    tile.accumulate_second_order(&net, &mut sums);
                }
                if wanted.elements {
                    tile.second_order_to_elements(&net);
                    tile.push_element_gradients(dim, &mut elements);
                }
            }
            (sums, elements)
        },
    );
    let (sums, elements): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut gradients = call.finish(&net, &sums, wanted);
    gradients.elements = wanted.elements.then(|| concat(elements));
    gradients
}
