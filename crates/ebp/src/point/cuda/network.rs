//! A network and a chunk of rows on the GPU: forward, backward, and backward of the score.
//!
//! Layer by layer, each a matrix product over all rows and a pass of the activation:
//!
//! ```text
//! z_l = a_{l−1} W_lᵀ + shift_l[set],   shift_l = b_l + C_l c once per set,   a_l = σ(z_l)
//! ```
//!
//! Backward passes keep a_l, σ′ (and σ″) of the chunk. The first layer, whose inputs are
//! coordinates, and single outputs are always computed in f32.

use std::ops::Range;

use super::Precision;
use super::device::{Buffer, Device, flat, launch, per_set, plain, transposed, warps};
use crate::point::{Activation, Gradients, LayerShape, MlpShape, PointMlp, Wanted};
use crate::{Result, SetOffsets};

/// A network with its sets' contexts.
pub(super) struct Network<'a> {
    pub(super) device: &'a Device,
    pub(super) shape: &'a MlpShape,
    parameters: Buffer,
    context: Buffer,
    num_sets: usize,
    /// b + C c of every layer, `[sets, outputs]`, or `[1, outputs]` where no context enters.
    shifts: Vec<Buffer>,
}

/// Rows of a batch that are computed together.
pub(super) struct Rows {
    /// `[count, d]`.
    pub(super) elements: Buffer,
    /// The set of each row.
    pub(super) set: Buffer<u32>,
    /// Where the chunk's sets begin and end, counted from its first row.
    pub(super) starts: Buffer<u32>,
    pub(super) first_set: usize,
    pub(super) num_sets: usize,
    pub(super) count: usize,
}

/// What a forward pass keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keep {
    Output,
    Slopes,
    Curvatures,
}

/// A forward pass.
pub(super) struct Trace {
    /// a_l of the hidden layers; empty unless slopes are kept.
    hidden: Vec<Buffer>,
    slopes: Vec<Buffer>,
    curvatures: Vec<Buffer>,
    /// `[count, output_dim]`.
    pub(super) output: Buffer,
    /// σ′ and σ″ of the output, where σ is applied to it.
    output_slope: Buffer,
    output_curvature: Buffer,
}

impl Trace {
    /// The address of σ′ of a layer.
    fn slope(&self, index: usize) -> u64 {
        self.slopes.get(index).unwrap_or(&self.output_slope).at(0)
    }

    /// The address of σ″ of a layer.
    fn curvature(&self, index: usize) -> u64 {
        self.curvatures.get(index).unwrap_or(&self.output_curvature).at(0)
    }
}

/// Sums over all chunks of a batch, on the GPU.
pub(super) struct Sums {
    /// ∂L/∂w, all but biases and context weights, which come from `shifts` at the end.
    parameters: Buffer,
    /// ∂L/∂shift of every layer, `[sets, outputs]`.
    shifts: Vec<Buffer>,
    wanted: Wanted,
}

/// σ as kernels know it: a number and a leak.
pub(super) fn activation_code(activation: Activation) -> (i32, f32) {
    match activation {
        Activation::Relu => (1, 0.0),
        Activation::LeakyRelu { slope } => (1, slope),
        Activation::Silu => (2, 0.0),
        Activation::Softplus => (3, 0.0),
        Activation::Tanh => (4, 0.0),
    }
}

const IDENTITY: (i32, f32) = (0, 0.0);

impl<'a> Network<'a> {
    pub(super) fn new(
        device: &'a Device,
        mlp: &'a PointMlp,
        context: &[f32],
        num_sets: usize,
    ) -> Result<Self> {
        let mut network = Self {
            device,
            shape: mlp.shape(),
            parameters: device.upload(mlp.parameters())?,
            context: device.upload(context)?,
            num_sets,
            shifts: Vec::new(),
        };
        for layer in network.shape.layers() {
            network.shifts.push(network.shift(layer)?);
        }
        Ok(network)
    }

    /// b + C c, one row per set, or one row for all where no context enters.
    fn shift(&self, layer: &LayerShape) -> Result<Buffer> {
        let device = self.device;
        let (n, k) = (layer.outputs, self.shape.config().context_dim);
        let sets = if layer.context_weight.is_some() { self.num_sets } else { 1 };
        let shift = device.buffer::<f32>(sets * n)?;
        let bias = self.parameters.at(layer.bias.start);
        // Every set's row begins as the bias.
        let zero = device.zeros::<u32>(sets)?;
        launch!(
            device,
            spread,
            flat(sets * n),
            bias,
            zero.at(0),
            shift.at(0),
            sets as u64,
            n as u32
        )?;
        if let Some(weight) = &layer.context_weight {
            device.product(
                (sets, n, k),
                plain(self.context.at(0), k),
                transposed(self.parameters.at(weight.start), k),
                (shift.at(0), true),
                Precision::F32,
            )?;
        }
        Ok(shift)
    }

    /// The address of row → set for a layer's shift: null where one row serves all.
    fn set_of(layer: &LayerShape, rows: &Rows) -> u64 {
        if layer.context_weight.is_some() { rows.set.at(0) } else { 0 }
    }

    fn weight(&self, layer: &LayerShape) -> u64 {
        self.parameters.at(layer.weight.start)
    }

    /// The address of a layer's weights.
    pub(super) fn weight_address(&self, index: usize) -> u64 {
        self.weight(&self.shape.layers()[index])
    }

    /// The address of a layer's shifts.
    pub(super) fn shift_address(&self, index: usize) -> u64 {
        self.shifts[index].at(0)
    }

    /// Whether a layer has a shift per set.
    pub(super) fn has_context(&self, index: usize) -> bool {
        self.shape.layers()[index].context_weight.is_some()
    }

    fn hidden_layers(&self) -> &[LayerShape] {
        let layers = self.shape.layers();
        &layers[..layers.len() - 1]
    }

    fn output_layer(&self) -> &LayerShape {
        &self.shape.layers()[self.shape.layers().len() - 1]
    }

    /// Bytes a row takes in a pass that keeps `keep`.
    pub(super) fn bytes_per_row(&self, keep: Keep) -> usize {
        let widths: usize = self.shape.layers().iter().map(|layer| layer.outputs).sum();
        let widest = self.shape.layers().iter().map(|layer| layer.outputs).max().unwrap_or(1);
        let copies = match keep {
            Keep::Output => 1,
            Keep::Slopes => 2,
            Keep::Curvatures => 5,
        };
        4 * (copies * widths + 4 * widest + 4 * self.shape.element_dim() + 2)
    }

    /// One hidden layer: a (and σ′, σ″) from the layer below.
    fn layer(
        &self,
        index: usize,
        below: u64,
        rows: &Rows,
        keep: Keep,
    ) -> Result<(Buffer, Buffer, Buffer)> {
        let device = self.device;
        let layer = &self.shape.layers()[index];
        let (n, k) = (layer.outputs, layer.inputs);
        let entries = rows.count * n;
        let out = device.buffer::<f32>(entries)?;
        let slope = device.buffer::<f32>(if keep >= Keep::Slopes { entries } else { 0 })?;
        let curvature = device.buffer::<f32>(if keep == Keep::Curvatures { entries } else { 0 })?;
        let is_output = index + 1 == self.shape.layers().len();
        let (kind, leak) = if is_output && !self.shape.config().activate_output {
            IDENTITY
        } else {
            activation_code(self.shape.config().activation)
        };
        let (shift, set) = (self.shifts[index].at(0), Self::set_of(layer, rows));
        let count = rows.count as u64;
        if index == 0 && k <= 16 {
            launch!(
                device,
                first_layer,
                flat(entries),
                below,
                self.weight(layer),
                shift,
                set,
                out.at(0),
                slope.at(0),
                curvature.at(0),
                count,
                k as u32,
                n as u32,
                kind,
                leak
            )?;
        } else {
            let precision = if index == 0 { Precision::F32 } else { device.precision };
            device.product(
                (rows.count, n, k),
                plain(below, k),
                transposed(self.weight(layer), k),
                (out.at(0), false),
                precision,
            )?;
            launch!(
                device,
                activate,
                flat(entries.div_ceil(4)),
                out.at(0),
                shift,
                set,
                slope.at(0),
                curvature.at(0),
                count,
                n as u32,
                kind,
                leak
            )?;
        }
        Ok((out, slope, curvature))
    }

    /// f of every row.
    pub(super) fn forward(&self, rows: &Rows, keep: Keep) -> Result<Trace> {
        let device = self.device;
        let mut trace = Trace {
            hidden: Vec::new(),
            slopes: Vec::new(),
            curvatures: Vec::new(),
            output: Buffer::none(),
            output_slope: Buffer::none(),
            output_curvature: Buffer::none(),
        };
        let num_hidden = self.hidden_layers().len();
        let mut below = Buffer::none();
        for index in 0..num_hidden {
            let from = if index == 0 { rows.elements.at(0) } else { below.at(0) };
            let (out, slope, curvature) = self.layer(index, from, rows, keep)?;
            if keep >= Keep::Slopes {
                if index > 0 {
                    trace.hidden.push(below);
                }
                trace.slopes.push(slope);
                trace.curvatures.push(curvature);
            }
            below = out;
        }
        let from = if num_hidden == 0 { rows.elements.at(0) } else { below.at(0) };
        let last = self.output_layer();
        if last.outputs == 1 && num_hidden > 0 && !self.shape.config().activate_output {
            let output = device.buffer::<f32>(rows.count)?;
            launch!(
                device,
                scalar_output,
                warps(rows.count),
                from,
                self.weight(last),
                self.shifts[num_hidden].at(0),
                Self::set_of(last, rows),
                output.at(0),
                rows.count as u64,
                last.inputs as u32
            )?;
            trace.output = output;
        } else {
            let keep = if self.shape.config().activate_output { keep } else { Keep::Output };
            (trace.output, trace.output_slope, trace.output_curvature) =
                self.layer(num_hidden, from, rows, keep)?;
        }
        if keep >= Keep::Slopes && num_hidden > 0 {
            trace.hidden.push(below);
        }
        Ok(trace)
    }

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
                per_set(rows.num_sets, n),
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
        let shifts = self
            .shape
            .layers()
            .iter()
            .map(|layer| self.device.zeros(self.num_sets * layer.outputs))
            .collect::<Result<_>>()?;
        let length = if wanted.parameters { self.shape.num_parameters() } else { 0 };
        Ok(Some(Sums { parameters: self.device.zeros(length)?, shifts, wanted }))
    }

    /// The gradients that the sums over all chunks amount to:
    /// ∂b = Σ_s ∂shift_s,   ∂C = ∂shiftᵀ c,   ∂c = ∂shift C.
    pub(super) fn finish(&self, sums: Option<Sums>) -> Result<Gradients> {
        let device = self.device;
        let Some(Sums { parameters, shifts, wanted }) = sums else {
            return Ok(Gradients::default());
        };
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
        Ok(Gradients {
            parameters: wanted.parameters.then(|| device.download(&parameters)).transpose()?,
            context: wanted.context.then(|| device.download(&context)).transpose()?,
            elements: None,
        })
    }
}

/// A chunk of rows and the sets it touches.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) rows: Range<usize>,
    pub(super) first_set: usize,
    /// From the chunk's first row.
    pub(super) starts: Vec<u32>,
}

/// Cuts a batch into chunks of at most `most` rows; a set may lie in several.
pub(super) fn chunks(offsets: &SetOffsets, most: usize) -> Vec<Chunk> {
    let mut out = Vec::new();
    let total = offsets.num_elements();
    let (mut begin, mut set) = (0, 0);
    while begin < total {
        let end = total.min(begin + most.max(1));
        let first_set = set;
        let mut starts = vec![0];
        while set < offsets.num_sets() {
            let stop = offsets.range(set).end.min(end);
            starts.push((stop - begin) as u32);
            if offsets.range(set).end > end {
                break;
            }
            set += 1;
            if stop == end {
                break;
            }
        }
        out.push(Chunk { rows: begin..end, first_set, starts });
        begin = end;
    }
    out
}

impl Network<'_> {
    /// How many rows fit into the budget.
    pub(super) fn rows_at_once(&self, keep: Keep) -> usize {
        // Grids have at most 2³¹ blocks; a warp per row keeps far below.
        (self.device.budget / self.bytes_per_row(keep)).clamp(1, 1 << 24)
    }

    /// Puts a chunk of a batch's elements on the GPU.
    pub(super) fn rows(&self, elements: &[f32], chunk: &Chunk) -> Result<Rows> {
        let d = self.shape.element_dim();
        let device = self.device;
        let starts = device.upload(&chunk.starts)?;
        let set = device.buffer::<u32>(chunk.rows.len())?;
        let num_sets = chunk.starts.len() - 1;
        launch!(
            device,
            name_sets,
            per_set(num_sets, 1),
            starts.at(0),
            set.at(0),
            chunk.first_set as u32
        )?;
        Ok(Rows {
            elements: device.upload(&elements[chunk.rows.start * d..chunk.rows.end * d])?,
            set,
            starts,
            first_set: chunk.first_set,
            num_sets: chunk.starts.len() - 1,
            count: chunk.rows.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_row_once_and_know_its_set() {
        let offsets = SetOffsets::from_sizes([3, 1, 7, 2]).unwrap();
        for most in 1..=14 {
            let mut next = 0;
            for chunk in chunks(&offsets, most) {
                assert_eq!(chunk.rows.start, next);
                assert!(chunk.rows.len() <= most && !chunk.rows.is_empty());
                assert_eq!(*chunk.starts.last().unwrap() as usize, chunk.rows.len());
                for (local, bounds) in chunk.starts.windows(2).enumerate() {
                    let set = offsets.range(chunk.first_set + local);
                    assert!(bounds[0] < bounds[1]);
                    assert!(set.contains(&(chunk.rows.start + bounds[0] as usize)));
                    assert!(set.contains(&(chunk.rows.start + bounds[1] as usize - 1)));
                }
                next = chunk.rows.end;
            }
            assert_eq!(next, 13);
        }
    }
}
