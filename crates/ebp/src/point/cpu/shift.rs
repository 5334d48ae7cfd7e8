//! What the context adds to each layer: computed once per set, and its gradients.
//!
//! ```text
//! shift_l[s] = b_l + C_l c_s                               [sets, outputs]
//! ∂L/∂b_l = Σ_s ∂L/∂shift_l[s]      ∂L/∂C_l = Σ_s ∂L/∂shift_l[s] c_sᵀ
//! ∂L/∂c_s = Σ_l C_lᵀ ∂L/∂shift_l[s]
//! ```
//!
//! A layer without context has one shift for all sets, its bias.

use rayon::prelude::*;

use super::buffer::{Buffer, Matrix, padded};
use super::kernel::{Finish, Kernels, Outer, Panels, Product, ROW_BLOCK, Start};
use super::packed::pack_panels;
use crate::point::{LayerShape, PointMlp};

/// Sets per parallel task.
const SETS_PER_TASK: usize = 2 * ROW_BLOCK;

/// The shifts of one layer: a row per set, or one row for all.
pub(super) struct ShiftTable {
    pub(super) data: Buffer,
    pub(super) width: usize,
    pub(super) is_per_set: bool,
}

/// The shifts of all layers.
pub(super) fn shift_tables(
    mlp: &PointMlp,
    kernels: &Kernels,
    context: &[f32],
    num_sets: usize,
) -> Vec<ShiftTable> {
    let context_dim = mlp.shape().config().context_dim;
    let rows = padded_context(context, context_dim, num_sets);
    let zeros = vec![0; num_sets.next_multiple_of(ROW_BLOCK)];
    mlp.shape()
        .layers()
        .iter()
        .map(|layer| {
            let width = padded(layer.outputs);
            let mut bias = Buffer::zeros(width);
            bias[..layer.outputs].copy_from_slice(&mlp.parameters()[layer.bias.clone()]);
            let Some(range) = &layer.context_weight else {
                return ShiftTable { data: bias, width, is_per_set: false };
            };
            let weight = &mlp.parameters()[range.clone()];
            let packed = pack_panels(context_dim, layer.outputs, kernels.panel_width, |k, j| {
                weight[j * context_dim + k]
            });
            let panels = Panels { data: &packed, width, depth: context_dim, skip: 0 };
            let mut data = Buffer::zeros(num_sets.next_multiple_of(ROW_BLOCK) * width);
            data.par_chunks_mut(SETS_PER_TASK * width).enumerate().for_each(|(task, out)| {
                let first = task * SETS_PER_TASK;
                kernels.product(Product {
                    rows: SETS_PER_TASK.min(num_sets.saturating_sub(first)),
                    inputs: &rows.data[first * rows.stride..],
                    input_stride: rows.stride,
                    depth: context_dim,
                    panels,
                    start: Start::Shift { table: &bias, stride: 0, rows: &zeros },
                    finish: Finish::Store(out),
                    out_stride: width,
                });
            });
            ShiftTable { data, width, is_per_set: true }
        })
        .collect()
}

/// The context as rows that kernels can read.
fn padded_context(context: &[f32], context_dim: usize, num_sets: usize) -> Matrix {
    let mut rows = Matrix::zeros(num_sets.next_multiple_of(ROW_BLOCK), context_dim.max(1));
    if context_dim > 0 {
        for (set, from) in context.chunks_exact(context_dim).enumerate() {
            rows.row_mut(set)[..context_dim].copy_from_slice(from);
        }
    }
    rows
}

/// Gradients of one layer's shifts, `[sets or 1, width]`.
pub(super) struct ShiftGradient {
    pub(super) data: Buffer,
    pub(super) width: usize,
}

/// Writes ∂L/∂b and ∂L/∂C into the flat parameter gradient.
pub(super) fn parameter_gradients(
    mlp: &PointMlp,
    kernels: &Kernels,
    context: &[f32],
    num_sets: usize,
    gradients: &[ShiftGradient],
    flat: &mut [f32],
) {
    let context_dim = mlp.shape().config().context_dim;
    let rows = padded_context(context, context_dim, num_sets);
    for (layer, gradient) in mlp.shape().layers().iter().zip(gradients) {
        let num_rows = if layer.context_weight.is_some() { num_sets } else { 1 };
        let bias = &mut flat[layer.bias.clone()];
        for row in gradient.data.chunks_exact(gradient.width).take(num_rows) {
            for (total, term) in bias.iter_mut().zip(row) {
                *total += term;
            }
        }
        let Some(range) = &layer.context_weight else { continue };
        let width = rows.width;
        let mut product = Buffer::zeros(layer.outputs * width);
        // Rows of the result are independent: split them over the threads.
        let per_task = layer.outputs.div_ceil(8).next_multiple_of(4);
        product.par_chunks_mut(per_task * width).enumerate().for_each(|(task, out)| {
            let first = task * per_task;
            if first >= layer.outputs {
                return;
            }
            kernels.outer(Outer {
                rows: num_sets,
                left: &gradient.data[first..],
                left_stride: gradient.width,
                left_width: per_task.min(layer.outputs - first),
                right: &rows.data,
                right_stride: rows.stride,
                right_width: width,
                gradient: out,
                gradient_stride: width,
            });
        });
        let flat_rows = flat[range.clone()].chunks_exact_mut(context_dim);
        for (target, row) in flat_rows.zip(product.chunks_exact(width)) {
            target.copy_from_slice(&row[..context_dim]);
        }
    }
}

/// ∂L/∂c, `[sets, context_dim]`.
pub(super) fn context_gradient(
    mlp: &PointMlp,
    kernels: &Kernels,
    num_sets: usize,
    gradients: &[ShiftGradient],
) -> Vec<f32> {
    let context_dim = mlp.shape().config().context_dim;
    if context_dim == 0 {
        return Vec::new();
    }
    let mut sums = Matrix::zeros(num_sets.next_multiple_of(SETS_PER_TASK), context_dim);
    let identity: Vec<u32> = (0..SETS_PER_TASK as u32).collect();
    for (layer, gradient) in mlp.shape().layers().iter().zip(gradients) {
        let Some(range) = &layer.context_weight else { continue };
        let packed = context_panels(mlp, layer, &mlp.parameters()[range.clone()], kernels);
        let panels = Panels { data: &packed, width: sums.width, depth: layer.outputs, skip: 0 };
        let stride = sums.stride;
        sums.data.par_chunks_mut(SETS_PER_TASK * stride).enumerate().for_each(|(task, out)| {
            let first = task * SETS_PER_TASK;
            let rows = SETS_PER_TASK.min(num_sets.saturating_sub(first));
            let before = out.to_vec();
            kernels.product(Product {
                rows,
                inputs: &gradient.data[first.min(num_sets) * gradient.width..],
                input_stride: gradient.width,
                depth: layer.outputs,
                panels,
                start: Start::Shift { table: &before, stride, rows: &identity },
                finish: Finish::Store(out),
                out_stride: stride,
            });
        });
    }
    (0..num_sets).flat_map(|set| sums.row(set)[..context_dim].iter().copied()).collect()
}

fn context_panels(mlp: &PointMlp, layer: &LayerShape, weight: &[f32], kernels: &Kernels) -> Buffer {
    let context_dim = mlp.shape().config().context_dim;
    pack_panels(layer.outputs, context_dim, kernels.panel_width, |k, j| weight[k * context_dim + j])
}
