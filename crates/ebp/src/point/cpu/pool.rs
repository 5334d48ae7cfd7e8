//! Pooling over sets, fused into the last layer.
//!
//! Max pooling remembers the element that attains each maximum. Only those critical elements
//! carry a gradient, so the backward pass visits them alone: at most `output_dim` of a set. And of
//! a critical element only the outputs where it wins: the last and widest layer is never computed
//! in full.

use super::accumulator::Accumulator;
use super::buffer::padded;
use super::call::{Call, concat};
use super::kernel::MaxPool;
use super::packed::Needs;
use super::schedule::{run_chunks, tile_rows, tiles};
use super::sums::dot;
use super::tile::{Keep, Network, Tile};
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
    if config.activate_output && config.activation == Activation::Relu {
        // Where the largest z is not positive every element gives 0, and the first one counts.
        for (place, value) in values.iter().enumerate().filter(|(_, value)| **value <= 0.0) {
            critical[place] = call.batch.offsets.range(place / outputs).start as u32;
            debug_assert!(value.is_finite());
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

/// The critical elements in the order of their rows, and for each the places (set · outputs +
/// output) that it wins.
fn critical_elements(critical: &[u32], outputs: usize) -> (Vec<Critical>, Vec<(u32, u32)>) {
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
    (visited, places)
}

fn max_backward(call: &Call<'_>, critical: &[u32], cotangent: &[f32], wanted: Wanted) -> Gradients {
    let shape = call.mlp.shape();
    let (outputs, dim) = (shape.config().output_dim, shape.element_dim());
    let (visited, places) = critical_elements(critical, outputs);
    let element_dims = if wanted.elements { dim } else { 0 };
    let net = call.network(Needs { backward: true, element_dims });
    let capacity = tile_rows(&net.packed, 2);
    let last = net.packed.last();
    // The output layer's weight gradient is summed output by output.
    let layout: Vec<bool> = (0..=last).map(|index| index == last).collect();
    let output = OutputLayer::new(&net);
    let parts = run_chunks(
        visited.len(),
        capacity,
        || Tile::new(&net, capacity, Keep::Slopes),
        |tile, chunk| {
            let sets = visited[chunk.start].set..visited[chunk.end - 1].set + 1;
            let mut sums = Accumulator::with_layout(&net, sets, wanted, layout.clone());
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
                tile.forward_hidden(&net, Keep::Slopes);
                for (row, element) in here.iter().enumerate() {
                    let won = places[element.outputs.clone()]
                        .iter()
                        .map(|&(_, place)| (place as usize % outputs, cotangent[place as usize]));
                    output.backward(&net, tile, (row, element.set), won, &mut sums);
                }
                if last > 0 {
                    tile.backward_from(&net, last - 1);
                }
                if wanted.parameters || wanted.context {
                    tile.accumulate_layers(&net, last, &mut sums);
                }
                if wanted.elements {
                    if last > 0 {
                        tile.backward_to_elements(&net);
                    }
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

/// The last layer, one output at a time.
struct OutputLayer<'a> {
    /// `[outputs, inputs]`, as the parameters are.
    weight: &'a [f32],
    inputs: usize,
    activation: Option<Activation>,
}

impl<'a> OutputLayer<'a> {
    fn new(net: &'a Network<'_>) -> Self {
        let shape = net.packed.mlp.shape();
        let layer = &shape.layers()[net.packed.last()];
        let config = shape.config();
        Self {
            weight: &net.packed.mlp.parameters()[layer.weight.clone()],
            inputs: layer.inputs,
            activation: config.activate_output.then_some(config.activation),
        }
    }

    /// Takes ∂L/∂f of the outputs that a row has won to the layer below:
    ///
    /// ```text
    /// z̄_j = σ′(z_j) ∂L/∂f_j,   ∂L/∂W_j = z̄_j a,   ∂L/∂a = Σ_j z̄_j W_j
    /// ```
    fn backward(
        &self,
        net: &Network<'_>,
        tile: &mut Tile,
        (row, set): (usize, usize),
        won: impl Iterator<Item = (usize, f32)>,
        sums: &mut Accumulator,
    ) {
        let last = net.packed.last();
        let table = &net.shifts[last];
        let shift = &table.data[if table.is_per_set { set } else { 0 } * table.width..];
        let input_width = net.packed.layers[last].input_width;
        let mut gradient = vec![0.0; self.inputs];
        let inputs = if last == 0 { &tile.elements } else { &tile.values[last - 1] };
        let a = &inputs.row(row)[..self.inputs];
        for (output, cotangent) in won {
            let weight = &self.weight[output * self.inputs..][..self.inputs];
            let adjoint = match self.activation {
                Some(activation) => {
                    let z = shift[output] + dot(weight, a);
                    cotangent * activation.slope(f64::from(z)) as f32
                }
                None => cotangent,
            };
            add_scaled(&mut gradient, adjoint, weight);
            if let Some(weights) = sums.weights.get_mut(last) {
                add_scaled(&mut weights[output * input_width..][..self.inputs], adjoint, a);
            }
            sums.shift_row(last, set)[output] += adjoint;
        }
        if last == 0 {
            let dims = tile.element_gradient.width.min(self.inputs);
            if dims > 0 {
                tile.element_gradient.row_mut(row)[..dims].copy_from_slice(&gradient[..dims]);
            }
            return;
        }
        // z̄ of the layer below: the gradient meets its slope.
        let config = net.packed.mlp.shape().config();
        let slopes = &mut tile.slopes[last - 1].row_mut(row)[..self.inputs];
        match config.activation.leak() {
            Some(leak) => {
                for ((slope, g), a) in slopes.iter_mut().zip(&gradient).zip(a) {
                    *slope = if *a > 0.0 { *g } else { leak * g };
                }
            }
            None => slopes.iter_mut().zip(&gradient).for_each(|(slope, g)| *slope *= g),
        }
    }
}

/// target ← target + factor · terms
fn add_scaled(target: &mut [f32], factor: f32, terms: &[f32]) {
    for (target, term) in target.iter_mut().zip(terms) {
        *target += factor * term;
    }
}
