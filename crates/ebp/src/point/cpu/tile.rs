//! A tile: a few dozen elements on their way through the network, in cache all the time.
//!
//! Each layer owns two buffers, its values a_l and its slopes σ′(z_l). A backward pass multiplies
//! the gradient into the slopes, in place, so that they become z̄_l = ∂L/∂z_l:
//!
//! ```text
//! z̄_{l−1} = (z̄_l W_l) ∘ σ′(z_{l−1})
//! ```
//!
//! The second-order pass (file `second_order.rs`) has two more buffers per layer.

use std::ops::Range;

use super::accumulator::Accumulator;
use super::buffer::Matrix;
use super::kernel::{Activate, Dots, Finish, Kernels, Outer, Product, ROW_BLOCK, RowSum, Start};
use super::packed::PackedMlp;
use super::shift::ShiftTable;
use crate::SetOffsets;

/// For dot products without a shift.
pub(super) const NO_SHIFT: [f32; 8] = [0.0; 8];

/// What a forward pass should leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Only the outputs.
    Values,
    /// Also σ′, for a backward pass.
    Slopes,
    /// Also σ″, for a second-order pass.
    Curvatures,
}

/// Consecutive rows of one set inside a tile.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) set: usize,
    pub(super) rows: Range<usize>,
}

/// What every tile of a call shares.
pub(super) struct Network<'a> {
    pub(super) packed: PackedMlp<'a>,
    pub(super) shifts: Vec<ShiftTable>,
    pub(super) kernels: &'static Kernels,
}

impl Network<'_> {
    pub(super) fn output_is_activated(&self) -> bool {
        self.packed.mlp.shape().config().activate_output
    }
}

/// The scratch memory of one tile and the elements in it.
pub(super) struct Tile {
    /// Elements in the tile now.
    pub(super) rows: usize,
    /// `[value, location]`, or only the value for candidates.
    pub(super) elements: Matrix,
    /// a_l per layer; the last one holds the outputs.
    pub(super) values: Vec<Matrix>,
    /// σ′(z_l), then z̄_l.
    pub(super) slopes: Vec<Matrix>,
    /// σ″(z_l), then σ″ ż_l, then z̄_l of a second-order pass.
    pub(super) curvatures: Vec<Matrix>,
    /// ȧ_l.
    pub(super) tangents: Vec<Matrix>,
    /// The direction of a second-order pass, as `elements`.
    pub(super) element_tangent: Matrix,
    /// Scratch of the second-order pass.
    pub(super) adjoints: [Matrix; 2],
    /// ∂L/∂element, the first dims of each row.
    pub(super) element_gradient: Matrix,
    /// The set of each row.
    pub(super) set_rows: Vec<u32>,
    /// The row of the first layer's shift table for each row, if not by set.
    pub(super) first_rows: Option<Vec<u32>>,
    /// The first layer's own shift table, if not by set.
    pub(super) first_shifts: Matrix,
    pub(super) runs: Vec<Run>,
    zeros: Vec<u32>,
}

impl Tile {
    pub(super) fn new(net: &Network<'_>, capacity: usize, keep: Keep) -> Self {
        let layers = &net.packed.layers;
        let matrices = |is_needed: bool| -> Vec<Matrix> {
            let rows = if is_needed { capacity } else { 0 };
            layers.iter().map(|layer| Matrix::zeros(rows, layer.output_width)).collect()
        };
        let is_second = keep == Keep::Curvatures;
        let second_rows = if is_second { capacity } else { 0 };
        let widest = layers.iter().map(|layer| layer.output_width).max().unwrap_or(0);
        Self {
            rows: 0,
            elements: if layers[0].is_narrow {
                Matrix::zeros(capacity, layers[0].inputs)
            } else {
                Matrix::compact(capacity, layers[0].inputs)
            },
            values: matrices(true),
            slopes: matrices(keep != Keep::Values),
            curvatures: matrices(is_second),
            tangents: matrices(is_second),
            element_tangent: Matrix::zeros(second_rows, layers[0].inputs),
            adjoints: std::array::from_fn(|_| Matrix::zeros(second_rows, widest)),
            element_gradient: match &net.packed.element {
                Some(element) if !element.is_narrow => Matrix::zeros(capacity, element.dims),
                Some(element) => Matrix::compact(capacity, element.dims),
                None => Matrix::default(),
            },
            set_rows: vec![0; capacity],
            first_rows: None,
            first_shifts: Matrix::default(),
            runs: Vec::new(),
            zeros: vec![0; capacity],
        }
    }

    /// Takes the rows `range` of a batch.
    pub(super) fn load(
        &mut self,
        elements: &[f32],
        dim: usize,
        offsets: &SetOffsets,
        range: Range<usize>,
    ) {
        self.rows = range.len();
        let from = &elements[range.start * dim..range.end * dim];
        if self.elements.stride == dim {
            self.elements.data[..from.len()].copy_from_slice(from);
        } else {
            for (row, element) in from.chunks_exact(dim).enumerate() {
                self.elements.row_mut(row)[..dim].copy_from_slice(element);
            }
        }
        self.assign_sets(offsets, range);
    }

    /// Notes which set each of the rows `range` belongs to.
    pub(super) fn assign_sets(&mut self, offsets: &SetOffsets, range: Range<usize>) {
        self.runs.clear();
        let mut row = range.start;
        while row < range.end {
            let set = offsets.set_of(row);
            let end = offsets.range(set).end.min(range.end);
            self.push_run(set, row - range.start..end - range.start);
            row = end;
        }
    }

    /// Appends a run of rows that belong to `set`; padding rows follow the last run.
    pub(super) fn push_run(&mut self, set: usize, rows: Range<usize>) {
        self.set_rows[rows.start..].fill(set as u32);
        self.runs.push(Run { set, rows });
    }

    /// Carries the elements through all layers. With `is_raw_output` the output's activation is
    /// left out (for a maximum, which commutes with a monotone σ).
    pub(super) fn forward(&mut self, net: &Network<'_>, keep: Keep, is_raw_output: bool) {
        self.forward_layers(net, keep, is_raw_output, net.packed.layers.len());
    }

    /// The hidden layers only.
    pub(super) fn forward_hidden(&mut self, net: &Network<'_>, keep: Keep) {
        self.forward_layers(net, keep, false, net.packed.last());
    }

    fn forward_layers(
        &mut self,
        net: &Network<'_>,
        keep: Keep,
        is_raw_output: bool,
        num_layers: usize,
    ) {
        let activation = net.packed.mlp.shape().config().activation;
        let last = net.packed.last();
        let leak = activation.leak();
        // A rectifier rides on the product and needs no slopes, except for a second-order pass.
        let is_fused = leak.is_some() && keep != Keep::Curvatures;
        for (index, layer) in net.packed.layers[..num_layers].iter().enumerate() {
            let (before, here) = self.values.split_at_mut(index);
            let inputs = before.last().unwrap_or(&self.elements);
            let out = &mut here[0];
            let table = &net.shifts[index];
            let is_activated = index < last || (net.output_is_activated() && !is_raw_output);
            if layer.is_narrow {
                net.kernels.dots(Dots {
                    rows: self.rows,
                    inputs: &inputs.data,
                    input_stride: inputs.stride,
                    depth: layer.input_width,
                    weights: layer.forward_rows(),
                    outputs: layer.outputs,
                    shift: if table.is_per_set { &NO_SHIFT } else { &table.data },
                    out: &mut out.data,
                    out_stride: out.stride,
                });
                // Only a network of one layer has a context at its output.
                if table.is_per_set {
                    for row in 0..self.rows {
                        let shift = &table.data[self.set_rows[row] as usize * table.width..];
                        let row = &mut out.row_mut(row)[..layer.outputs];
                        row.iter_mut().zip(shift).for_each(|(value, shift)| *value += shift);
                    }
                }
            } else {
                let start = match (&self.first_rows, index) {
                    (Some(rows), 0) => Start::Shift {
                        table: &self.first_shifts.data,
                        stride: self.first_shifts.stride,
                        rows,
                    },
                    _ => Start::Shift {
                        table: &table.data,
                        stride: table.width,
                        rows: if table.is_per_set { &self.set_rows } else { &self.zeros },
                    },
                };
                // Candidates bring only their value; the rest of the row is in the shift.
                let depth = match (&self.first_rows, index) {
                    (Some(_), 0) => net.packed.mlp.shape().config().value_dim,
                    _ => layer.inputs,
                };
                net.kernels.product(Product {
                    rows: self.rows,
                    inputs: &inputs.data,
                    input_stride: inputs.stride,
                    depth,
                    panels: layer.forward_panels(0),
                    start,
                    out_stride: out.stride,
                    finish: match leak {
                        Some(leak) if is_fused && index < last => {
                            Finish::Rectify { out: &mut out.data, leak }
                        }
                        _ => Finish::Store(&mut out.data),
                    },
                });
            }
            if is_activated && !(is_fused && index < last) {
                let stored = |matrix: &mut Vec<Matrix>, is_kept: bool| {
                    is_kept.then(|| std::mem::take(&mut matrix[index]))
                };
                let mut slopes = stored(&mut self.slopes, keep != Keep::Values);
                let mut curvatures = stored(&mut self.curvatures, keep == Keep::Curvatures);
                net.kernels.activate(Activate {
                    activation,
                    rows: self.rows,
                    width: out.width,
                    stride: out.stride,
                    values: &mut out.data,
                    slopes: slopes.as_mut().map(|matrix| &mut matrix.data[..]),
                    curvatures: curvatures.as_mut().map(|matrix| &mut matrix.data[..]),
                });
                if let Some(matrix) = slopes {
                    self.slopes[index] = matrix;
                }
                if let Some(matrix) = curvatures {
                    self.curvatures[index] = matrix;
                }
            }
        }
    }

    /// The outputs of a row.
    pub(super) fn output(&self, row: usize) -> &[f32] {
        self.values[self.values.len() - 1].row(row)
    }

    /// Appends the outputs of all rows, `[rows, outputs]`.
    pub(super) fn push_outputs(&self, outputs: usize, into: &mut Vec<f32>) {
        self.values[self.values.len() - 1].push_rows(self.rows, outputs, into);
    }

    /// Appends the element gradients of all rows, `[rows, dims]`.
    pub(super) fn push_element_gradients(&self, dims: usize, into: &mut Vec<f32>) {
        self.element_gradient.push_rows(self.rows, dims, into);
    }

    /// Starts a backward pass: z̄ of the output layer from ∂L/∂f, which `cotangent` writes row by
    /// row.
    pub(super) fn set_cotangent(
        &mut self,
        net: &Network<'_>,
        cotangent: impl Fn(&Self, usize, &mut [f32]),
    ) {
        let last = net.packed.last();
        let outputs = net.packed.layers[last].outputs;
        let mut matrix = std::mem::take(&mut self.slopes[last]);
        if net.output_is_activated() {
            let mut gradient = vec![0.0; outputs];
            for row in 0..self.rows {
                cotangent(self, row, &mut gradient);
                let (used, padding) = matrix.row_mut(row).split_at_mut(outputs);
                used.iter_mut().zip(&gradient).for_each(|(slope, g)| *slope *= g);
                padding.fill(0.0);
            }
        } else {
            for row in 0..self.rows {
                cotangent(self, row, &mut matrix.row_mut(row)[..outputs]);
            }
        }
        self.slopes[last] = matrix;
    }

    /// Turns every layer's slopes into z̄.
    pub(super) fn backward(&mut self, net: &Network<'_>) {
        self.backward_from(net, net.packed.last());
    }

    /// Turns the slopes below layer `top` into z̄, which layer `top` has already.
    pub(super) fn backward_from(&mut self, net: &Network<'_>, top: usize) {
        let leak = net.packed.mlp.shape().config().activation.leak();
        for index in (1..=top).rev() {
            let layer = &net.packed.layers[index];
            let (before, here) = self.slopes.split_at_mut(index);
            let out = &mut before[index - 1];
            net.kernels.product(Product {
                rows: self.rows,
                inputs: &here[0].data,
                input_stride: here[0].stride,
                depth: layer.outputs,
                panels: layer.backward_panels(),
                start: Start::Zero,
                out_stride: out.stride,
                finish: match leak {
                    Some(leak) => Finish::Gate {
                        values: &self.values[index - 1].data,
                        out: &mut out.data,
                        leak,
                    },
                    None => Finish::Multiply(&mut out.data),
                },
            });
        }
    }

    /// ∂L/∂element of every row, from z̄ of the first layer.
    pub(super) fn backward_to_elements(&mut self, net: &Network<'_>) {
        element_gradient(net, self.rows, &self.slopes[0], &mut self.element_gradient);
    }

    /// Adds the tile's weight and shift gradients.
    pub(super) fn accumulate(&self, net: &Network<'_>, into: &mut Accumulator) {
        self.accumulate_layers(net, net.packed.layers.len(), into);
    }

    /// Adds those of the first `num_layers` layers.
    pub(super) fn accumulate_layers(
        &self,
        net: &Network<'_>,
        num_layers: usize,
        into: &mut Accumulator,
    ) {
        for index in 0..num_layers {
            let inputs = if index == 0 { &self.elements } else { &self.values[index - 1] };
            self.add_weights(net, index, inputs, &self.slopes[index], into);
            self.add_shifts(net, index, &self.slopes[index], into);
        }
    }

    /// Adds Σ_p inputs_p ⊗ z̄_p to a layer's weight gradient.
    pub(super) fn add_weights(
        &self,
        net: &Network<'_>,
        index: usize,
        inputs: &Matrix,
        gradient: &Matrix,
        into: &mut Accumulator,
    ) {
        let layer = &net.packed.layers[index];
        let Some(weights) = into.weights.get_mut(index) else { return };
        let has_own_shift = index == 0 && self.first_rows.is_some();
        let depth =
            if has_own_shift { net.packed.mlp.shape().config().value_dim } else { layer.inputs };
        let (left, left_width, right) = if layer.is_narrow {
            (gradient, layer.outputs, inputs)
        } else {
            (inputs, depth, gradient)
        };
        net.kernels.outer(Outer {
            rows: self.rows,
            left: &left.data,
            left_stride: left.stride,
            left_width,
            right: &right.data,
            right_stride: right.stride,
            right_width: right.width,
            gradient: weights,
            gradient_stride: right.width,
        });
    }

    /// Adds z̄ to a layer's shift gradient, set by set. The first layer of candidates is left to
    /// the caller, who knows the anchors.
    pub(super) fn add_shifts(
        &self,
        net: &Network<'_>,
        index: usize,
        gradient: &Matrix,
        into: &mut Accumulator,
    ) {
        if index == 0 && self.first_rows.is_some() {
            return;
        }
        let all = [Run { set: into.first_set, rows: 0..self.rows }];
        let runs = if net.shifts[index].is_per_set { &self.runs[..] } else { &all };
        for run in runs {
            net.kernels.row_sum(RowSum {
                rows: run.rows.len(),
                from: &gradient.data[run.rows.start * gradient.stride..],
                stride: gradient.stride,
                width: gradient.width,
                into: into.shift_row(index, run.set),
            });
        }
    }
}

/// The first `dims` of z̄₀ W₀.
pub(super) fn element_gradient(
    net: &Network<'_>,
    rows: usize,
    gradient: &Matrix,
    out: &mut Matrix,
) {
    let Some(element) = &net.packed.element else { return };
    let layer = &net.packed.layers[0];
    if element.is_narrow {
        net.kernels.dots(Dots {
            rows,
            inputs: &gradient.data,
            input_stride: gradient.stride,
            depth: layer.output_width,
            weights: element.rows(),
            outputs: element.dims,
            shift: &NO_SHIFT,
            out_stride: out.stride,
            out: &mut out.data,
        });
    } else {
        net.kernels.product(Product {
            rows,
            inputs: &gradient.data,
            input_stride: gradient.stride,
            depth: layer.outputs,
            panels: element.panels(),
            start: Start::Zero,
            out_stride: out.stride,
            finish: Finish::Store(&mut out.data),
        });
    }
}

/// Rounds a number of rows up to what kernels may touch.
pub(super) fn row_capacity(rows: usize) -> usize {
    rows.next_multiple_of(ROW_BLOCK)
}
