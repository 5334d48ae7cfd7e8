//! Gradient sums of one chunk, and their merger in the order of the chunks.

use std::ops::Range;

use rayon::prelude::*;

use super::buffer::Buffer;
use super::kernel::ROW_BLOCK;
use super::shift::{ShiftGradient, context_gradient, parameter_gradients};
use super::tile::Network;
use crate::point::{Gradients, Wanted};

/// Gradients of weights and shifts, summed over a chunk's elements.
pub(super) struct Accumulator {
    /// Per layer `[inputs, output_width]`, or `[outputs, input_width]` where `is_by_output`; empty
    /// if parameters are not wanted.
    pub(super) weights: Vec<Buffer>,
    is_by_output: Vec<bool>,
    /// Per layer `[sets of the chunk or 1, output_width]`; empty if nothing of them is wanted.
    pub(super) shifts: Vec<Buffer>,
    /// The set that the first row of `shifts` belongs to.
    pub(super) first_set: usize,
    num_sets: usize,
    widths: Vec<usize>,
    is_per_set: Vec<bool>,
}

impl Accumulator {
    pub(super) fn new(net: &Network<'_>, sets: Range<usize>, wanted: Wanted) -> Self {
        let layers = &net.packed.layers;
        Self::with_layout(net, sets, wanted, layers.iter().map(|layer| layer.is_narrow).collect())
    }

    /// With a given choice, per layer, between rows by input and rows by output.
    pub(super) fn with_layout(
        net: &Network<'_>,
        sets: Range<usize>,
        wanted: Wanted,
        is_by_output: Vec<bool>,
    ) -> Self {
        let weights = net.packed.layers.iter().zip(&is_by_output).map(|(layer, &is_by_output)| {
            Buffer::zeros(if is_by_output {
                layer.outputs * layer.input_width
            } else {
                layer.inputs * layer.output_width
            })
        });
        let shifts = net.shifts.iter().map(|table| {
            let rows = if table.is_per_set { sets.len() } else { 1 };
            Buffer::zeros(rows.next_multiple_of(ROW_BLOCK) * table.width)
        });
        Self {
            weights: if wanted.parameters { weights.collect() } else { Vec::new() },
            is_by_output,
            shifts: shifts.collect(),
            first_set: sets.start,
            num_sets: sets.len(),
            widths: net.shifts.iter().map(|table| table.width).collect(),
            is_per_set: net.shifts.iter().map(|table| table.is_per_set).collect(),
        }
    }

    /// Where the shift gradient of `set` in layer `index` is summed.
    pub(super) fn shift_row(&mut self, index: usize, set: usize) -> &mut [f32] {
        let row = if self.is_per_set[index] { set - self.first_set } else { 0 };
        let width = self.widths[index];
        &mut self.shifts[index][row * width..][..width]
    }

    /// Adds up the chunks' sums, always in the same order.
    pub(super) fn merge(
        net: &Network<'_>,
        num_sets: usize,
        wanted: Wanted,
        parts: &[Self],
    ) -> Self {
        let layout = parts[0].is_by_output.clone();
        let mut total = Self::with_layout(net, 0..num_sets, wanted, layout);
        for (index, sum) in total.weights.iter_mut().enumerate() {
            // Columns are independent, so threads may share them; each adds the parts in order.
            sum.par_chunks_mut(4096).enumerate().for_each(|(block, sum)| {
                for part in parts {
                    let terms = &part.weights[index][block * 4096..][..sum.len()];
                    for (total, term) in sum.iter_mut().zip(terms) {
                        *total += term;
                    }
                }
            });
        }
        for part in parts {
            for index in 0..total.shifts.len() {
                let sets = if total.is_per_set[index] { part.num_sets } else { 1 };
                let width = total.widths[index];
                for (row, terms) in part.shifts[index].chunks_exact(width).take(sets).enumerate() {
                    let sum = total.shift_row(index, part.first_set + row);
                    for (total, term) in sum.iter_mut().zip(terms) {
                        *total += term;
                    }
                }
            }
        }
        total
    }

    /// The gradients as the caller knows them.
    pub(super) fn finish(self, net: &Network<'_>, context: &[f32], wanted: Wanted) -> Gradients {
        let mlp = net.packed.mlp;
        let shifts: Vec<_> = self
            .shifts
            .into_iter()
            .zip(&self.widths)
            .map(|(data, &width)| ShiftGradient { data, width })
            .collect();
        let parameters = wanted.parameters.then(|| {
            let mut flat = vec![0.0; mlp.shape().num_parameters()];
            let layers = mlp.shape().layers().iter().zip(&net.packed.layers);
            for ((shape, layer), (sums, is_by_output)) in
                layers.zip(self.weights.iter().zip(self.is_by_output))
            {
                let weight = &mut flat[shape.weight.clone()];
                if is_by_output {
                    let rows = weight.chunks_exact_mut(layer.inputs);
                    for (row, sums) in rows.zip(sums.chunks_exact(layer.input_width)) {
                        row.copy_from_slice(&sums[..layer.inputs]);
                    }
                } else {
                    transpose(sums, layer.output_width, weight, layer.inputs);
                }
            }
            parameter_gradients(mlp, net.kernels, context, self.num_sets, &shifts, &mut flat);
            flat
        });
        let context =
            wanted.context.then(|| context_gradient(mlp, net.kernels, self.num_sets, &shifts));
        Gradients { parameters, context, ..Gradients::default() }
    }
}

/// Outputs that are written side by side: a line of the cache.
const SIDE: usize = 16;

/// out[j, i] = sums[i, j], by squares that fit into the cache.
fn transpose(sums: &[f32], output_width: usize, out: &mut [f32], inputs: usize) {
    for (block, rows) in out.chunks_mut(SIDE * inputs).enumerate() {
        let first = block * SIDE;
        for (input, sums) in sums.chunks_exact(output_width).take(inputs).enumerate() {
            for (row, sum) in rows.chunks_exact_mut(inputs).zip(&sums[first..]) {
                row[input] = *sum;
            }
        }
    }
}
