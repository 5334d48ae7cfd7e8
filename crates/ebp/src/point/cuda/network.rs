//! A network and a chunk of rows on the GPU, forward.
//!
//! Layer by layer, each a matrix product over all rows and a pass of the activation:
//!
//! ```text
//! z_l = a_{l−1} W_lᵀ + shift_l[set],   shift_l = b_l + C_l c once per set,   a_l = σ(z_l)
//! ```
//!
//! Backward passes keep a_l, σ′ (and σ″) of the chunk. The first layer, whose inputs are
//! coordinates, and single outputs are always computed in f32.

use super::Precision;
use super::chunk::Chunk;
use super::device::{Buffer, Device, flat, launch, per_set, warps};
use super::products::{plain, transposed};
use crate::Result;
use crate::point::{Activation, LayerShape, MlpShape, PointMlp};

/// A network with its sets' contexts.
pub(super) struct Network<'a> {
    pub(super) device: &'a Device,
    pub(super) shape: &'a MlpShape,
    pub(super) parameters: Buffer,
    pub(super) context: Buffer,
    pub(super) num_sets: usize,
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

/// Where the elements of a batch are.
#[derive(Clone, Copy)]
pub(super) enum Elements<'a> {
    Host(&'a [f32]),
    /// On the GPU.
    There(&'a Buffer),
}

/// What a pool compares: σ(z + shift).
pub(super) struct Unpooled {
    /// `[count, output_dim]`.
    pub(super) z: Buffer,
    /// The address of the shift; null where z has it already.
    pub(super) shift: u64,
    pub(super) has_context: bool,
    /// σ as kernels know it.
    pub(super) activation: (i32, f32),
}

/// What a forward pass keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keep {
    Output,
    Slopes,
    Curvatures,
}

/// A forward pass.
#[derive(Default)]
pub(super) struct Trace {
    /// a_l of the hidden layers; empty unless slopes are kept.
    pub(super) hidden: Vec<Buffer>,
    pub(super) slopes: Vec<Buffer>,
    curvatures: Vec<Buffer>,
    /// `[count, output_dim]`.
    pub(super) output: Buffer,
    /// σ′ and σ″ of the output, where σ is applied to it.
    pub(super) output_slope: Buffer,
    output_curvature: Buffer,
}

impl Trace {
    /// The address of σ′ of a layer.
    pub(super) fn slope(&self, index: usize) -> u64 {
        self.slopes.get(index).unwrap_or(&self.output_slope).at(0)
    }

    /// The address of σ″ of a layer.
    pub(super) fn curvature(&self, index: usize) -> u64 {
        self.curvatures.get(index).unwrap_or(&self.output_curvature).at(0)
    }
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
        let parameters = device.upload(mlp.parameters())?;
        Self::resident(device, mlp.shape(), (parameters, device.upload(context)?), num_sets)
    }

    /// A network whose parameters and contexts are on the GPU.
    pub(super) fn resident(
        device: &'a Device,
        shape: &'a MlpShape,
        (parameters, context): (Buffer, Buffer),
        num_sets: usize,
    ) -> Result<Self> {
        let mut network = Self { device, shape, parameters, context, num_sets, shifts: Vec::new() };
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
        // Kernels read four numbers at a time, from addresses that are multiples of 16 bytes.
        if layer.context_weight.is_none() && self.parameters.at(layer.bias.start).is_multiple_of(16)
        {
            return Ok(self.parameters.view(layer.bias.start, n));
        }
        let shift = device.buffer::<f32>(sets * n)?;
        // Every set's row begins as the bias.
        launch!(
            device,
            spread,
            flat(sets * n),
            self.parameters.at(layer.bias.start),
            0_u64,
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

    pub(super) fn weight(&self, layer: &LayerShape) -> u64 {
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

    pub(super) fn hidden_layers(&self) -> &[LayerShape] {
        let layers = self.shape.layers();
        &layers[..layers.len() - 1]
    }

    pub(super) fn output_layer(&self) -> &LayerShape {
        &self.shape.layers()[self.shape.layers().len() - 1]
    }

    /// Bytes a row takes in a pass that keeps `keep`.
    pub(super) fn bytes_per_row(&self, keep: Keep) -> usize {
        let widths: usize = self.shape.layers().iter().map(|layer| layer.outputs).sum();
        let widest = self.shape.layers().iter().map(|layer| layer.outputs).max().unwrap_or(1);
        // Split rows are three times as long.
        let (copies, more) = match keep {
            Keep::Output => (0, 8),
            Keep::Slopes => (2, 4),
            Keep::Curvatures => (5, 4),
        };
        4 * (copies * widths + more * widest + 4 * self.shape.element_dim() + 2)
    }

    /// Whether a layer's product is taken of split factors: in f32, where it is large enough, tensor
    /// cores are faster with three times the work. Backward passes need the rows as they are.
    fn is_split(&self, index: usize, rows: &Rows, keep: Keep) -> bool {
        const FEWEST_ROWS: usize = 4096;
        const NARROWEST: usize = 64;
        let Some(layer) = self.shape.layers().get(index) else { return false };
        let (n, k) = (layer.outputs, layer.inputs);
        self.device.precision == Precision::F32
            && self.device.has_tensor_cores
            && keep == Keep::Output
            && index > 0
            && rows.count >= FEWEST_ROWS
            && n.min(k) >= NARROWEST
            && k % 4 == 0
    }

    /// σ of a layer, as kernels know it.
    fn activation(&self, index: usize) -> (i32, f32) {
        let config = self.shape.config();
        if index + 1 == self.shape.layers().len() && !config.activate_output {
            IDENTITY
        } else {
            activation_code(config.activation)
        }
    }

    /// a_{l−1} W_lᵀ of every row.
    fn layer_product(&self, index: usize, below: u64, rows: &Rows, keep: Keep) -> Result<Buffer> {
        let device = self.device;
        let layer = &self.shape.layers()[index];
        let (n, k) = (layer.outputs, layer.inputs);
        let out = device.buffer::<f32>(rows.count * n)?;
        if self.is_split(index, rows, keep) {
            let weights = device.buffer::<f32>(3 * n * k)?;
            let weight = self.weight(layer);
            launch!(device, split_weights, flat(n * k), weight, weights.at(0), n as u32, k as u32)?;
            device.product(
                (rows.count, n, 3 * k),
                plain(below, 3 * k),
                transposed(weights.at(0), 3 * k),
                (out.at(0), false),
                Precision::Tf32,
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
        }
        Ok(out)
    }

    /// One layer of a pass that keeps `keep`: a (and σ′, σ″) from the layer below.
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
        let is_split = self.is_split(index + 1, rows, keep);
        let (kind, leak) = self.activation(index);
        // An output without σ has no slopes.
        let is_output = index + 1 == self.shape.layers().len();
        let is_curved = !is_output || self.shape.config().activate_output;
        let slopes = if is_curved && keep >= Keep::Slopes { entries } else { 0 };
        let curvatures = if is_curved && keep == Keep::Curvatures { entries } else { 0 };
        let (slope, curvature) = (device.buffer::<f32>(slopes)?, device.buffer::<f32>(curvatures)?);
        let (shift, set) = (self.shifts[index].at(0), Self::set_of(layer, rows));
        let count = rows.count as u64;
        if index == 0 && k <= 16 {
            let out = device.buffer::<f32>(if is_split { 3 * entries } else { entries })?;
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
                leak,
                i32::from(is_split)
            )?;
            return Ok((out, slope, curvature));
        }
        let z = self.layer_product(index, below, rows, keep)?;
        let split = device.buffer::<f32>(if is_split { 3 * entries } else { 0 })?;
        launch!(
            device,
            activate,
            flat(entries.div_ceil(4)),
            z.at(0),
            if is_split { split.at(0) } else { z.at(0) },
            shift,
            set,
            slope.at(0),
            curvature.at(0),
            count,
            n as u32,
            kind,
            leak,
            i32::from(is_split)
        )?;
        Ok((if is_split { split } else { z }, slope, curvature))
    }

    /// The hidden layers of every row: the last one, and in `trace` what is kept of all.
    fn hidden(&self, rows: &Rows, keep: Keep, trace: &mut Trace) -> Result<Buffer> {
        let mut below = Buffer::none();
        for index in 0..self.hidden_layers().len() {
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
        Ok(below)
    }

    /// The outputs of every row as a pool wants them: it adds shifts and applies σ itself.
    pub(super) fn unpooled(&self, rows: &Rows) -> Result<Unpooled> {
        let index = self.hidden_layers().len();
        if index == 0 {
            let (z, ..) = self.layer(0, rows.elements.at(0), rows, Keep::Output)?;
            return Ok(Unpooled { z, shift: 0, has_context: false, activation: IDENTITY });
        }
        let below = self.hidden(rows, Keep::Output, &mut Trace::default())?;
        Ok(Unpooled {
            z: self.layer_product(index, below.at(0), rows, Keep::Output)?,
            shift: self.shifts[index].at(0),
            has_context: self.has_context(index),
            activation: self.activation(index),
        })
    }

    /// f of every row.
    pub(super) fn forward(&self, rows: &Rows, keep: Keep) -> Result<Trace> {
        let device = self.device;
        let mut trace = Trace::default();
        let num_hidden = self.hidden_layers().len();
        let below = self.hidden(rows, keep, &mut trace)?;
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
            (trace.output, trace.output_slope, trace.output_curvature) =
                self.layer(num_hidden, from, rows, keep)?;
        }
        if keep >= Keep::Slopes && num_hidden > 0 {
            trace.hidden.push(below);
        }
        Ok(trace)
    }
}

impl Network<'_> {
    /// How many rows fit into the budget.
    pub(super) fn rows_at_once(&self, keep: Keep) -> usize {
        // Grids have at most 2³¹ blocks; a warp per row keeps far below.
        (self.device.budget / self.bytes_per_row(keep)).clamp(1, 1 << 24)
    }

    /// A chunk of a batch's elements, on the GPU.
    pub(super) fn rows(&self, elements: Elements<'_>, chunk: &Chunk) -> Result<Rows> {
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
            elements: match elements {
                Elements::Host(elements) => {
                    device.upload(&elements[chunk.rows.start * d..chunk.rows.end * d])?
                }
                Elements::There(elements) => {
                    elements.view(chunk.rows.start * d, chunk.rows.len() * d)
                }
            },
            set,
            starts,
            first_set: chunk.first_set,
            num_sets: chunk.starts.len() - 1,
            count: chunk.rows.len(),
        })
    }
}
