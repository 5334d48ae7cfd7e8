//! Values, sums over sets, and their backward pass.

use super::accumulator::Accumulator;
use super::call::{Call, concat};
use super::packed::Needs;
use super::schedule::{tile_rows, tiles};
use super::tile::{Keep, Tile};
use crate::point::{Backward, Cotangent, Gradients, Wanted};

/// f of every element.
pub(super) fn values(call: &Call<'_>) -> Vec<f32> {
    let net = call.network(Needs::default());
    let outputs = call.output_dim();
    let capacity = tile_rows(&net.packed, 1);
    concat(call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Values),
        |tile, chunk| {
            let mut out = Vec::with_capacity(chunk.len() * outputs);
            for range in tiles(chunk, capacity) {
                call.load(tile, range);
                tile.forward(&net, Keep::Values, false);
                tile.push_outputs(outputs, &mut out);
            }
            out
        },
    ))
}

/// Σ f over each set, summed in f64.
pub(super) fn set_sums(call: &Call<'_>) -> Vec<f32> {
    let net = call.network(Needs::default());
    let outputs = call.output_dim();
    let capacity = tile_rows(&net.packed, 1);
    let parts = call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Values),
        |tile, chunk| {
            let sets = call.sets_of(&chunk);
            let mut sums = vec![0.0_f64; sets.len() * outputs];
            for range in tiles(chunk, capacity) {
                call.load(tile, range);
                tile.forward(&net, Keep::Values, false);
                for run in &tile.runs {
                    let sum = &mut sums[(run.set - sets.start) * outputs..][..outputs];
                    for row in run.rows.clone() {
                        for (total, value) in sum.iter_mut().zip(tile.output(row)) {
                            *total += f64::from(*value);
                        }
                    }
                }
            }
            (sets.start, sums)
        },
    );
    let mut totals = vec![0.0_f64; call.batch.offsets.num_sets() * outputs];
    for (first, sums) in parts {
        for (total, term) in totals[first * outputs..].iter_mut().zip(sums) {
            *total += term;
        }
    }
    totals.into_iter().map(|total| total as f32).collect()
}

/// f and gradients in one pass.
pub(super) fn backward(call: &Call<'_>, cotangent: Cotangent<'_>, wanted: Wanted) -> Backward {
    let dim = call.mlp.shape().element_dim();
    let element_dims = if wanted.elements { dim } else { 0 };
    let net = call.network(Needs { backward: true, element_dims });
    let outputs = call.output_dim();
    let capacity = tile_rows(&net.packed, 2);
    let needs_sums = wanted.parameters || wanted.context;
    let parts = call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Slopes),
        |tile, chunk| {
            let mut sums = Accumulator::new(&net, call.sets_of(&chunk), wanted);
            let mut values = Vec::with_capacity(chunk.len() * outputs);
            let mut elements = Vec::new();
            for range in tiles(chunk, capacity) {
                let first = range.start;
                call.load(tile, range);
                tile.forward(&net, Keep::Slopes, false);
                tile.push_outputs(outputs, &mut values);
                tile.set_cotangent(&net, |tile, row, gradient| {
                    let from = match cotangent {
                        Cotangent::PerElement(all) => &all[(first + row) * outputs..],
                        Cotangent::PerSet(all) => &all[tile.set_rows[row] as usize * outputs..],
                    };
                    gradient.copy_from_slice(&from[..outputs]);
                });
                tile.backward(&net);
                if needs_sums {
                    tile.accumulate(&net, &mut sums);
                }
                if wanted.elements {
                    tile.backward_to_elements(&net);
                    tile.push_element_gradients(dim, &mut elements);
                }
            }
            (sums, values, elements)
        },
    );
    let mut sums = Vec::with_capacity(parts.len());
    let (mut values, mut elements) = (Vec::new(), Vec::new());
    for (part, part_values, part_elements) in parts {
        sums.push(part);
        values.push(part_values);
        elements.push(part_elements);
    }
    let mut gradients =
        if needs_sums { call.finish(&net, &sums, wanted) } else { Gradients::default() };
    gradients.elements = wanted.elements.then(|| concat(elements));
    Backward { values: concat(values), gradients }
}
