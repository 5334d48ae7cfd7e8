//! Backward passes of a network on the GPU, and the sums over rows that they add up to.

use super::Precision;
use super::buffer::Buffer;
use super::launch::{flat, warps};
use super::network::{Network, Trace};
use super::products::{plain, transposed};
use super::rows::Rows;
use crate::Result;
use crate::point::{Gradients, Wanted};

/// Sums over all chunks of a batch, on the GPU.
pub(super) struct Sums {
    /// ∂L/∂w, all but biases and context weights, which come from `shifts` at the end.
    parameters: Buffer,
    /// ∂L/∂shift of every layer, `[sets, outputs]`.
    shifts: Vec<Buffer>,
    wanted: Wanted,
}

impl Network<'_> {
    /// Backward of L = Σ ⟨cotangent, f⟩ through a trace. A missing cotangent (for one output) is
    /// all ones. Returns ∂L/∂elements `[count, d]` if it is wanted; other sums go to `sums`.
    pub(super) fn backward(
        &self,
        rows: &Rows,
        trace: &Trace,
        cotangent: Option<&Buffer>,
        sums: Option<&Sums>,
        wants_elements: bool,
    ) -> Result<Buffer> {
        let device = self.device;
        let layers = self.shape.layers();
        let num_hidden = self.hidden_layers().len();
        let count = rows.count;
        let last = self.output_layer();
        let mut g; // ∂L/∂z of the layer at hand
        let mut next = layers.len();
        let is_scalar = last.outputs == 1 && trace.output_slope.is_empty();
        if is_scalar && num_hidden > 0 {
            let entries = count * last.inputs;
            g = device.buffer::<f32>(entries)?;
            device.kernels.scalar_output_backward(
                device,
                flat(entries),
                cotangent,
                &self.weights[num_hidden],
                &trace.slopes[num_hidden - 1],
                &g,
                count as u64,
                last.inputs as u32,
            )?;
            if let (Some(sums), Some(cotangent)) = (sums, cotangent) {
                let below = &trace.hidden[num_hidden - 1];
                self.accumulate(rows, num_hidden, cotangent, (below, false), sums)?;
            }
            next -= 1;
        } else {
            g = match cotangent {
                Some(cotangent) => cotangent.clone(),
                None => device.filled(1.0, count * last.outputs)?,
            };
            if let Some(slope) = trace.output_slope.some() {
                // The cotangent is its owner's: what is changed is a new array.
                let scaled = device.buffer::<f32>(g.len())?;
                device.kernels.product(
                    device,
                    flat(g.len().div_ceil(4)),
                    &scaled,
                    &g,
                    slope,
                    g.len() as u64,
                )?;
                g = scaled;
            }
        }
        for index in (0..next).rev() {
            let layer = &layers[index];
            let below = match index {
                0 => &rows.elements,
                index => &trace.hidden[index - 1],
            };
            if let Some(sums) = sums {
                self.accumulate(rows, index, &g, (below, false), sums)?;
            }
            if index == 0 {
                break;
            }
            let entries = count * layer.inputs;
            let lower = device.buffer::<f32>(entries)?;
            device.product(
                (count, layer.inputs, layer.outputs),
                plain(&g, layer.outputs),
                plain(&self.weights[index], layer.inputs),
                (&lower, false),
                device.precision,
            )?;
            let slope = &trace.slopes[index - 1];
            let grid = flat(entries.div_ceil(4));
            device.kernels.product(device, grid, &lower, &lower, slope, entries as u64)?;
            g = lower;
        }
        if wants_elements { self.to_elements(rows, &g) } else { Ok(Buffer::none()) }
    }

    /// ∂L/∂elements from ∂L/∂z₁.
    pub(super) fn to_elements(&self, rows: &Rows, g: &Buffer) -> Result<Buffer> {
        let (layer, weight) = (&self.shape.layers()[0], &self.weights[0]);
        let device = self.device;
        let out = device.buffer::<f32>(rows.count * layer.inputs)?;
        if layer.inputs <= 16 {
            device.kernels.first_layer_backward(
                device,
                warps(rows.count),
                g,
                weight,
                &out,
                rows.count as u64,
                layer.inputs as u32,
                layer.outputs as u32,
            )?;
        } else {
            device.product(
                (rows.count, layer.inputs, layer.outputs),
                plain(g, layer.outputs),
                plain(weight, layer.inputs),
                (&out, false),
                Precision::F32,
            )?;
        }
        Ok(out)
    }

    /// Adds gᵀ a to the gradient of a layer's weights, and the sets' sums of g to that of its
    /// shift (unless g is a tangent's, which no shift moves).
    pub(super) fn accumulate(
        &self,
        rows: &Rows,
        index: usize,
        g: &Buffer,
        (below, is_tangent): (&Buffer, bool),
        sums: &Sums,
    ) -> Result<()> {
        let device = self.device;
        let layer = &self.shape.layers()[index];
        let (n, k) = (layer.outputs, layer.inputs);
        if sums.wanted.parameters {
            // Narrow sides leave tensor cores idle, and coordinates need their digits.
            let precision = if index == 0 || n == 1 { Precision::F32 } else { device.precision };
            let out = sums.parameters.view(layer.weight.start, n * k);
            device.sum_of_products((n, k, rows.count), (g, below), &out, precision)?;
        }
        if is_tangent {
            return Ok(());
        }
        rows.add_sums(device, (g, n), &sums.shifts[index])
    }

    /// Sums that begin at zero, or at what the owner of the parameters' gradient has so far.
    pub(super) fn sums(&self, wanted: Wanted) -> Result<Option<Sums>> {
        if !wanted.parameters && !wanted.context {
            return Ok(None);
        }
        let parameters = match &self.gradient {
            _ if !wanted.parameters => Buffer::none(),
            Some(gradient) => gradient.clone(),
            None => self.device.zeros(self.shape.num_parameters())?,
        };
        let shifts = self
            .shape
            .layers()
            .iter()
            .map(|layer| self.device.zeros(self.num_sets * layer.outputs))
            .collect::<Result<_>>()?;
        Ok(Some(Sums { parameters, shifts, wanted }))
    }

    /// The gradients that the sums over all chunks amount to:
    /// ∂b = Σ_s ∂shift_s,   ∂C = ∂shiftᵀ c,   ∂c = ∂shift C.
    pub(super) fn finish(&self, sums: Option<Sums>) -> Result<Gradients<Buffer>> {
        let Some(sums) = sums else { return Ok(Gradients::default()) };
        let device = self.device;
        let Sums { parameters, shifts, wanted } = sums;
        let (k, sets) = (self.shape.config().context_dim, self.num_sets);
        let context = device.zeros::<f32>(if wanted.context { sets * k } else { 0 })?;
        for (layer, shift) in self.shape.layers().iter().zip(&shifts) {
            let n = layer.outputs;
            if wanted.parameters {
                let bias = parameters.view(layer.bias.start, n);
                device.kernels.column_sums(device, flat(n), shift, &bias, sets as u32, n as u32)?;
            }
            let Some(weight) = &layer.context_weight else { continue };
            if wanted.parameters {
                device.product(
                    (n, k, sets),
                    transposed(shift, n),
                    plain(&self.context, k),
                    (&parameters.view(weight.start, n * k), true),
                    Precision::F32,
                )?;
            }
            if wanted.context {
                device.product(
                    (sets, k, n),
                    plain(shift, n),
                    plain(&self.parameters.view(weight.start, n * k), k),
                    (&context, true),
                    Precision::F32,
                )?;
            }
        }
        Ok(Gradients {
            parameters: wanted.parameters.then_some(parameters),
            context: wanted.context.then_some(context),
            ..Gradients::default()
        })
    }
}
