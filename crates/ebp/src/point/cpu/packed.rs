//! A network's weights rearranged for the kernels, once per call.

use super::buffer::{Buffer, padded};
use super::kernel::{Kernels, Panels};
use crate::point::{LayerShape, PointMlp};

/// Outputs below this many are computed as dot products instead of padded vectors.
const NARROW: usize = 8;

/// One layer: `[inputs, outputs]` in panels for the forward pass, `[outputs, inputs]` for the
/// backward pass.
pub(super) struct PackedLayer {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// `inputs` and `outputs` padded to whole vectors.
    pub(super) input_width: usize,
    pub(super) output_width: usize,
    /// Whether the forward weights are rows for dot products: an output layer of few outputs.
    pub(super) is_narrow: bool,
    forward: Buffer,
    backward: Buffer,
}

impl PackedLayer {
    /// Forward weights, from input `skip` on.
    pub(super) fn forward_panels(&self, skip: usize) -> Panels<'_> {
        Panels { data: &self.forward, width: self.output_width, depth: self.inputs, skip }
    }

    /// Forward weights of a narrow layer, `[outputs, input_width]`.
    pub(super) fn forward_rows(&self) -> &[f32] {
        &self.forward
    }

    /// Weights that take a gradient from the outputs to the inputs.
    pub(super) fn backward_panels(&self) -> Panels<'_> {
        Panels { data: &self.backward, width: self.input_width, depth: self.outputs, skip: 0 }
    }
}

/// The first layer's weights as needed for the gradient of the first `dims` numbers of an element.
pub(super) struct ElementWeights {
    pub(super) dims: usize,
    /// `[dims, output_width]` for dot products, or panels `[outputs, padded dims]`.
    pub(super) is_narrow: bool,
    data: Buffer,
    depth: usize,
}

impl ElementWeights {
    pub(super) fn rows(&self) -> &[f32] {
        &self.data
    }

    pub(super) fn panels(&self) -> Panels<'_> {
        Panels { data: &self.data, width: padded(self.dims), depth: self.depth, skip: 0 }
    }
}

/// Which packings a call needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Gradients of any kind.
    pub(super) backward: bool,
    /// The gradient of the first so many numbers of each element.
    pub(super) element_dims: usize,
}

/// All layers of a network.
pub(super) struct PackedMlp<'a> {
    pub(super) mlp: &'a PointMlp,
    pub(super) layers: Vec<PackedLayer>,
    pub(super) element: Option<ElementWeights>,
}

impl<'a> PackedMlp<'a> {
    pub(super) fn new(mlp: &'a PointMlp, kernels: &Kernels, needs: Needs) -> Self {
        let shapes = mlp.shape().layers();
        let panel = kernels.panel_width;
        let last = shapes.len() - 1;
        let layers = shapes
            .iter()
            .enumerate()
            .map(|(index, shape)| {
                let needs_backward = needs.backward && index > 0;
                pack_layer(mlp, shape, index == last, needs_backward, panel)
            })
            .collect();
        let element = (needs.element_dims > 0)
            .then(|| pack_element(mlp, &shapes[0], needs.element_dims, panel));
        Self { mlp, layers, element }
    }

    pub(super) fn last(&self) -> usize {
        self.layers.len() - 1
    }
}

fn pack_layer(
    mlp: &PointMlp,
    shape: &LayerShape,
    is_last: bool,
    needs_backward: bool,
    panel: usize,
) -> PackedLayer {
    let weight = &mlp.parameters()[shape.weight.clone()];
    let (inputs, outputs) = (shape.inputs, shape.outputs);
    let (input_width, output_width) = (padded(inputs), padded(outputs));
    let is_narrow = is_last && outputs < NARROW;
    let at = |k: usize, j: usize| weight[j * inputs + k];
    let forward = if is_narrow {
        pack_rows(outputs, inputs, input_width, |j, k| at(k, j))
    } else {
        pack_panels(inputs, outputs, panel, at)
    };
    let backward = if needs_backward {
        pack_panels(outputs, inputs, panel, |k, j| at(j, k))
    } else {
        Buffer::default()
    };
    PackedLayer { inputs, outputs, input_width, output_width, is_narrow, forward, backward }
}

fn pack_element(mlp: &PointMlp, shape: &LayerShape, dims: usize, panel: usize) -> ElementWeights {
    let weight = &mlp.parameters()[shape.weight.clone()];
    let at = |k: usize, j: usize| weight[k * shape.inputs + j];
    let is_narrow = dims < NARROW;
    let data = if is_narrow {
        pack_rows(dims, shape.outputs, padded(shape.outputs), |j, k| at(k, j))
    } else {
        pack_panels(shape.outputs, dims, panel, at)
    };
    ElementWeights { dims, is_narrow, data, depth: shape.outputs }
}

/// Rows `[rows, width]`, zero beyond `columns`.
fn pack_rows(
    rows: usize,
    columns: usize,
    width: usize,
    at: impl Fn(usize, usize) -> f32,
) -> Buffer {
    let mut buffer = Buffer::zeros(rows * width);
    for row in 0..rows {
        for column in 0..columns {
            buffer[row * width + column] = at(row, column);
        }
    }
    buffer
}

/// Panels as `Panels` describes, zero beyond `columns`.
pub(super) fn pack_panels(
    depth: usize,
    columns: usize,
    panel: usize,
    at: impl Fn(usize, usize) -> f32,
) -> Buffer {
    let width = padded(columns);
    let mut buffer = Buffer::zeros(depth * width);
    for first in (0..width).step_by(panel) {
        let panel_width = panel.min(width - first);
        let used = panel_width.min(columns - first.min(columns));
        let target = &mut buffer[depth * first..];
        for k in 0..depth {
            let row = &mut target[k * panel_width..][..used];
            for (j, place) in row.iter_mut().enumerate() {
                *place = at(k, first + j);
            }
        }
    }
    buffer
}
