//! Backward passes of a network on the GPU, and the sums over rows that they add up to.

use super::Precision;
use super::device::{Buffer, flat, launch, sums_per_set, warps};
use super::network::{Keep, Network, Rows, Trace};
use super::products::{plain, transposed};
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

/// Gradients on the GPU; empty where not wanted.
pub(super) struct Summed {
    pub(super) parameters: Buffer,
    pub(super) context: Buffer,
}

impl Network<'_> {
    /// Backward of L = Σ ⟨cotangent, f⟩ through a trace. A missing cotangent (for one output) is
    /// all ones. Returns ∂L/∂elements `[count, d]` if it is wanted; other sums go to `sums`.
    pub(super) fn backward(
        &self,
        rows: &Rows,
        trace: &Trace,
        cotangent: Option<Buffer>,
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
        let is_scalar = last.outputs == 1 && trace.output_slope.len() == 0;
        if is_scalar && num_hidden > 0 {
            let entries = count * last.inputs;
            g = device.buffer::<f32>(entries)?;
            let address = cotangent.as_ref().map_or(0, |cotangent| cotangent.at(0));
            launch!(
                device,
                scalar_output_backward,
                flat(entries),
                address,
                self.weight(last),
                trace.slopes[num_hidden - 1].at(0),
                g.at(0),
                count as u64,
                last.inputs as u32
            )?;
            if let (Some(sums), Some(cotangent)) = (sums, &cotangent) {
                let below = trace.hidden[num_hidden - 1].at(0);
                self.accumulate(rows, num_hidden, cotangent, (below, false), sums)?;
            }
            next -= 1;
        } else {
            g = match cotangent {
                Some(cotangent) => cotangent,
                None => device.upload(&vec![1.0_f32; count * last.outputs])?,
            };
            if trace.output_slope.len() > 0 {
                launch!(
                    device,
                    multiply,
                    flat(g.len().div_ceil(4)),
                    g.at(0),
                    trace.output_slope.at(0),
                    g.len() as u64
                )?;
            }
        }
        for index in (0..next).rev() {
            let layer = &layers[index];
            let below = match index {
                0 => rows.elements.at(0),
                index => trace.hidden[index - 1].at(0),
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
                plain(g.at(0), layer.outputs),
                plain(self.weight(layer), layer.inputs),
                (lower.at(0), false),
                device.precision,
            )?;
            let slope = trace.slopes[index - 1].at(0);
            launch!(
                device,
                multiply,
                flat(entries.div_ceil(4)),
                lower.at(0),
                slope,
                entries as u64
            )?;
            g = lower;
        }
        if wants_elements { self.to_elements(rows, &g) } else { Ok(Buffer::none()) }
    }

    /// ∂L/∂elements from ∂L/∂z₁.
    fn to_elements(&self, rows: &Rows, g: &Buffer) -> Result<Buffer> {
        let layer = &self.shape.layers()[0];
        let device = self.device;
        let out = device.buffer::<f32>(rows.count * layer.inputs)?;
        if layer.inputs <= 16 {
            launch!(
                device,
                first_layer_backward,
                warps(rows.count),
                g.at(0),
                self.weight(layer),
                out.at(0),
                rows.count as u64,
                layer.inputs as u32,
                layer.outputs as u32
            )?;
        } else {
            device.product(
                (rows.count, layer.inputs, layer.outputs),
                plain(g.at(0), layer.outputs),
                plain(self.weight(layer), layer.inputs),
                (out.at(0), false),
                Precision::F32,
            )?;
        }
        Ok(out)
    }

    /// Adds gᵀ a to the gradient of a layer's weights, and the sets' sums of g to that of its
    /// shift (unless g is a tangent's, which no shift moves).
    fn accumulate(
        &self,
        rows: &Rows,
        index: usize,
        g: &Buffer,
        (below, is_tangent): (u64, bool),
        sums: &Sums,
    ) -> Result<()> {
        let device = self.device;
        let layer = &self.shape.layers()[index];
        let (n, k) = (layer.outputs, layer.inputs);
        if sums.wanted.parameters {
            // Narrow sides leave tensor cores idle, and coordinates need their digits.
            let precision = if index == 0 || n == 1 { Precision::F32 } else { device.precision };
            let out = sums.parameters.at(layer.weight.start);
            device.sum_of_products((n, k, rows.count), (g.at(0), below), out, precision)?;
        }
        if !is_tangent {
            launch!(
                device,
                set_sums,
                sums_per_set(rows.num_sets, n),
                g.at(0),
                rows.starts.at(0),
                sums.shifts[index].at(0),
                rows.first_set as u32,
                n as u32
            )?;
        }
        Ok(())
    }

    /// Backward of L = Σ ⟨v, ∇ₓ f⟩ + Σ u f: ⟨v, ∇ₓ f⟩ is the tangent ḟ of f along v, so this is a
    /// reverse pass over a forward pass that carries tangents. `v` is `[count, d]` with zeros at
    /// the locations, `u` is `[count]`.
    ///
    /// ```text
    /// ż_l = ȧ_{l−1} W_lᵀ,  ȧ_l = σ′ ż_l,   cotangents p of ȧ and g of a:
    /// q = p σ′,  r = g σ′ + p σ″ ż,   ∂W_l = qᵀ ȧ_{l−1} + rᵀ a_{l−1},   p ← q W_l,  g ← r W_l
    /// ```
    pub(super) fn score_backward(
        &self,
        rows: &Rows,
        v: &Buffer,
        u: Buffer,
        sums: Option<&Sums>,
        wants_elements: bool,
    ) -> Result<Buffer> {
        let device = self.device;
        let layers = self.shape.layers();
        let count = rows.count;
        let trace = self.forward(rows, Keep::Curvatures)?;
        let has_activation =
            |index: usize| index + 1 < layers.len() || self.shape.config().activate_output;
        // Tangents on the way up: ż, and ȧ = σ′ ż.
        let (mut tangents, mut active) = (Vec::<Buffer>::new(), Vec::<Buffer>::new());
        for (index, layer) in layers.iter().enumerate().filter(|(index, _)| has_activation(*index))
        {
            let entries = count * layer.outputs;
            let tangent = device.buffer::<f32>(entries)?;
            let below = if index == 0 { v.at(0) } else { active[index - 1].at(0) };
            let precision = if index == 0 { Precision::F32 } else { device.precision };
            device.product(
                (count, layer.outputs, layer.inputs),
                plain(below, layer.inputs),
                transposed(self.weight(layer), layer.inputs),
                (tangent.at(0), false),
                precision,
            )?;
            let moved = device.buffer::<f32>(entries)?;
            let slope = trace.slope(index);
            launch!(
                device,
                product,
                flat(entries),
                moved.at(0),
                tangent.at(0),
                slope,
                entries as u64
            )?;
            tangents.push(tangent);
            active.push(moved);
        }
        // Cotangents on the way down, beginning with those of ḟ and f.
        let mut p = device.upload(&vec![1.0_f32; count])?;
        let mut g = u;
        for (index, layer) in layers.iter().enumerate().rev() {
            if has_activation(index) {
                let entries = count * layer.outputs;
                launch!(
                    device,
                    second_order,
                    flat(entries),
                    g.at(0),
                    p.at(0),
                    trace.slope(index),
                    trace.curvature(index),
                    tangents[index].at(0),
                    entries as u64
                )?;
            }
            if let Some(sums) = sums {
                let (below, tangent_below) = match index {
                    0 => (rows.elements.at(0), v.at(0)),
                    index => (trace.hidden[index - 1].at(0), active[index - 1].at(0)),
                };
                self.accumulate(rows, index, &p, (tangent_below, true), sums)?;
                self.accumulate(rows, index, &g, (below, false), sums)?;
            }
            if index == 0 {
                break;
            }
            let precision = if layer.outputs == 1 { Precision::F32 } else { device.precision };
            let lower = |from: &Buffer| -> Result<Buffer> {
                let out = device.buffer::<f32>(count * layer.inputs)?;
                device.product(
                    (count, layer.inputs, layer.outputs),
                    plain(from.at(0), layer.outputs),
                    plain(self.weight(layer), layer.inputs),
                    (out.at(0), false),
                    precision,
                )?;
                Ok(out)
            };
            (p, g) = (lower(&p)?, lower(&g)?);
        }
        if wants_elements { self.to_elements(rows, &g) } else { Ok(Buffer::none()) }
    }

    /// Sums that begin at zero.
    pub(super) fn sums(&self, wanted: Wanted) -> Result<Option<Sums>> {
        if !wanted.parameters && !wanted.context {
            return Ok(None);
        }
        let length = if wanted.parameters { self.shape.num_parameters() } else { 0 };
        Ok(Some(self.sums_into(self.device.zeros(length)?, wanted)?))
    }

    /// Sums whose parameters' part is kept in `parameters`, which holds zeros.
    pub(super) fn sums_into(&self, parameters: Buffer, wanted: Wanted) -> Result<Sums> {
        let shifts = self
            .shape
            .layers()
            .iter()
            .map(|layer| self.device.zeros(self.num_sets * layer.outputs))
            .collect::<Result<_>>()?;
        Ok(Sums { parameters, shifts, wanted })
    }

    /// The gradients that the sums over all chunks amount to:
    /// ∂b = Σ_s ∂shift_s,   ∂C = ∂shiftᵀ c,   ∂c = ∂shift C.
    pub(super) fn finish(&self, sums: Option<Sums>) -> Result<Gradients> {
        let Some(sums) = sums else { return Ok(Gradients::default()) };
        let (device, wanted) = (self.device, sums.wanted);
        let Summed { parameters, context } = self.gather(sums)?;
        Ok(Gradients {
            parameters: wanted.parameters.then(|| device.download(&parameters)).transpose()?,
            context: wanted.context.then(|| device.download(&context)).transpose()?,
            elements: None,
        })
    }

    /// As [`finish`](Self::finish), on the GPU.
    pub(super) fn gather(&self, sums: Sums) -> Result<Summed> {
        let device = self.device;
        let Sums { parameters, shifts, wanted } = sums;
        let (k, sets) = (self.shape.config().context_dim, self.num_sets);
        let context = device.zeros::<f32>(if wanted.context { sets * k } else { 0 })?;
        for (layer, shift) in self.shape.layers().iter().zip(&shifts) {
            let n = layer.outputs;
            if wanted.parameters {
                launch!(
                    device,
                    column_sums,
                    flat(n),
                    shift.at(0),
                    parameters.at(layer.bias.start),
                    sets as u32,
                    n as u32
                )?;
            }
            let Some(weight) = &layer.context_weight else { continue };
            if wanted.parameters {
                device.product(
                    (n, k, sets),
                    transposed(shift.at(0), n),
                    plain(self.context.at(0), k),
                    (parameters.at(weight.start), true),
                    Precision::F32,
                )?;
            }
            if wanted.context {
                device.product(
                    (sets, k, n),
                    plain(shift.at(0), n),
                    plain(self.parameters.at(weight.start), k),
                    (context.at(0), true),
                    Precision::F32,
                )?;
            }
        }
        Ok(Summed { parameters, context })
    }
}
