//! Pooling over sets, fused into the last layer.
//!
//! Max pooling remembers the element that attains each maximum. Only those critical elements
//! carry a gradient, so the backward pass visits them alone: at most `output_dim` of a set.

use super::accumulator::Accumulator;
use super::buffer::padded;
use super::call::{Call, concat};
use super::kernel::MaxPool;
use super::packed::Needs;
use super::schedule::{run_chunks, tile_rows, tiles};
use super::tile::{Keep, Tile};
use super::values;
use crate::point::{Activation, Cotangent, Gradients, Pooled, Pooling, Wanted};

pub(super) fn pool(call: &Call<'_>, pooling: Pooling) -> Pooled {
    let outputs = call.output_dim();
    match pooling {
        Pooling::Max => max(call),
        Pooling::Sum => Pooled { pooling, values: values::set_sums(call), critical: Vec::new() },
        Pooling::Mean => {
            let mut values = values::set_sums(call);
            for (set, row) in values.chunks_exact_mut(outputs).enumerate() {
                let size = call.batch.offsets.size(set) as f32;
                for value in row {
                    *value /= size;
                }
            }
            Pooled { pooling, values, critical: Vec::new() }
        }
    }
}

/// Running maxima of a chunk, a row per set.
struct Maxima {
    first_set: usize,
    best: Vec<f32>,
    argument: Vec<f32>,
    poison: Vec<f32>,
    first_row: usize,
}

fn max(call: &Call<'_>) -> Pooled {
    let net = call.network(Needs::default());
    let config = call.mlp.shape().config();
    let (outputs, width) = (config.output_dim, padded(config.output_dim));
    // max σ(z) = σ(max z) for a σ that never falls: activate once per set, not per element.
    let is_late = config.activate_output && config.activation.is_monotone();
    let capacity = tile_rows(&net.packed, 1);
    let parts = call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Values),
        |tile, chunk| {
            let sets = call.sets_of(&chunk);
            let first_row = chunk.start;
            let length = sets.len() * width;
            let mut maxima = Maxima {
                first_set: sets.start,
                best: vec![f32::NEG_INFINITY; length],
                argument: vec![0.0; length],
                poison: vec![0.0; length],
                first_row,
            };
            for range in tiles(chunk, capacity) {
                let start = range.start;
                call.load(tile, range);
                tile.forward(&net, Keep::Values, is_late);
                let from = &tile.values[net.packed.last()];
                for run in &tile.runs {
                    let place = (run.set - sets.start) * width;
                    net.kernels.max_pool(MaxPool {
                        rows: run.rows.len(),
                        from: &from.data[run.rows.start * from.stride..],
                        stride: from.stride,
                        width,
                        // Chunks are far below 2²⁴ rows, where f32 counts exactly.
                        first: (start + run.rows.start - first_row) as f32,
                        best: &mut maxima.best[place..][..width],
                        argument: &mut maxima.argument[place..][..width],
                        poison: &mut maxima.poison[place..][..width],
                    });
                }
            }
            maxima
        },
    );
    let num_sets = call.batch.offsets.num_sets();
    let mut values = vec![f32::NEG_INFINITY; num_sets * outputs];
    let mut critical = vec![0_u32; num_sets * outputs];
    for part in parts {
        for (row, poison) in part.poison.chunks_exact(width).enumerate() {
            for (output, poison) in poison[..outputs].iter().enumerate() {
                let from = row * width + output;
                let to = (part.first_set + row) * outputs + output;
                if poison.is_nan() {
                    values[to] = f32::NAN;
                } else if part.best[from] > values[to] {
                    values[to] = part.best[from];
                    critical[to] = (part.first_row + part.argument[from] as usize) as u32;
                }
            }
        }
    }
    if is_late {
        for value in &mut values {
            *value = activate(config.activation, *value);
        }
    }
    Pooled { pooling: Pooling::Max, values, critical }
}

fn activate(activation: Activation, z: f32) -> f32 {
    activation.value(f64::from(z)) as f32
}

pub(super) fn pool_backward(
    call: &Call<'_>,
    pooled: &Pooled,
    cotangent: &[f32],
    wanted: Wanted,
) -> Gradients {
    match pooled.pooling {
        Pooling::Sum => values::backward(call, Cotangent::PerSet(cotangent), wanted).gradients,
        Pooling::Mean => {
            let outputs = call.output_dim();
            let mut scaled = cotangent.to_vec();
            for (set, row) in scaled.chunks_exact_mut(outputs).enumerate() {
                let size = call.batch.offsets.size(set) as f32;
                for value in row {
                    *value /= size;
                }
            }
            values::backward(call, Cotangent::PerSet(&scaled), wanted).gradients
        }
        Pooling::Max => max_backward(call, &pooled.critical, cotangent, wanted),
    }
}

/// A critical element: its row, its set, and where its outputs lie in the sorted list.
struct Critical {
    row: usize,
    set: usize,
    outputs: std::ops::Range<usize>,
}

fn max_backward(call: &Call<'_>, critical: &[u32], cotangent: &[f32], wanted: Wanted) -> Gradients {
    let shape = call.mlp.shape();
    let (outputs, dim) = (shape.config().output_dim, shape.element_dim());
    // Every maximum's (row, place), sorted by row, then grouped into the distinct rows.
    let mut places: Vec<(u32, u32)> =
        critical.iter().enumerate().map(|(place, &row)| (row, place as u32)).collect();
    places.sort_unstable();
    let mut visited: Vec<Critical> = Vec::new();
    for (index, &(row, place)) in places.iter().enumerate() {
        match visited.last_mut() {
            Some(last) if last.row == row as usize => last.outputs.end = index + 1,
            _ => visited.push(Critical {
                row: row as usize,
                set: place as usize / outputs,
                outputs: index..index + 1,
            }),
        }
    }

    let element_dims = if wanted.elements { dim } else { 0 };
    let net = call.network(Needs { backward: true, element_dims });
    let capacity = tile_rows(&net.packed, 2);
    let parts = run_chunks(
        visited.len(),
        capacity,
        || Tile::new(&net, capacity, Keep::Slopes),
        |tile, chunk| {
            let sets = visited[chunk.start].set..visited[chunk.end - 1].set + 1;
            let mut sums = Accumulator::new(&net, sets, wanted);
            let mut elements = Vec::new();
            for range in tiles(chunk, capacity) {
                let here = &visited[range];
                tile.rows = here.len();
                tile.runs.clear();
                for (row, element) in here.iter().enumerate() {
                    let from = &call.batch.elements[element.row * dim..][..dim];
                    tile.elements.row_mut(row)[..dim].copy_from_slice(from);
                }
                let mut start = 0;
                for group in here.chunk_by(|a, b| a.set == b.set) {
                    tile.push_run(group[0].set, start..start + group.len());
                    start += group.len();
                }
                tile.forward(&net, Keep::Slopes, false);
                tile.set_cotangent(&net, |_, row, gradient| {
                    gradient.fill(0.0);
                    for &(_, place) in &places[here[row].outputs.clone()] {
                        gradient[place as usize % outputs] = cotangent[place as usize];
                    }
                });
                tile.backward(&net);
                if wanted.parameters || wanted.context {
                    tile.accumulate(&net, &mut sums);
                }
                if wanted.elements {
                    tile.backward_to_elements(&net);
                    tile.push_element_gradients(dim, &mut elements);
                }
            }
            (sums, elements)
        },
    );
    let (sums, rows): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut gradients = call.finish(&net, &sums, wanted);
    gradients.elements = wanted.elements.then(|| {
        let mut all = vec![0.0; call.batch.elements.len()];
        for (element, row) in visited.iter().zip(concat(rows).chunks_exact(dim)) {
            all[element.row * dim..][..dim].copy_from_slice(row);
        }
        all
    });
    gradients
}
