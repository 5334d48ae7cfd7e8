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
use super::buffer::Buffer;
use super::device::Device;
use super::inputs::DeviceMlp;
use super::launch::{flat, warps};
use super::products::{plain, transposed};
use super::rows::Rows;
use crate::Result;
use crate::point::{Activation, LayerShape, MlpShape};

/// A network with its sets' contexts.
pub(super) struct Network<'a> {
    pub(super) device: &'a Device,
    pub(super) shape: &'a MlpShape,
    pub(super) parameters: Buffer,
    pub(super) context: Buffer,
    pub(super) num_sets: usize,
    /// Where the parameters' gradient is added up, if its owner says so.
    pub(super) gradient: Option<Buffer>,
    /// W of every layer, `[outputs, inputs]`.
    pub(super) weights: Vec<Buffer>,
    /// b + C c of every layer, `[sets, outputs]`, or `[1, outputs]` where no context enters.
    pub(super) shifts: Vec<Buffer>,
}

/// What a pool compares: σ(z + shift).
pub(super) struct Unpooled {
    /// `[count, output_dim]`.
    pub(super) z: Buffer,
    /// `None` where z has it already.
    pub(super) shift: Option<Buffer>,
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
    /// σ′ of a layer.
    pub(super) fn slope(&self, index: usize) -> &Buffer {
        self.slopes.get(index).unwrap_or(&self.output_slope)
    }

    /// σ″ of a layer.
    pub(super) fn curvature(&self, index: usize) -> &Buffer {
        self.curvatures.get(index).unwrap_or(&self.output_curvature)
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
        mlp: &DeviceMlp<'a>,
        context: &Buffer,
        num_sets: usize,
    ) -> Result<Self> {
        let (shape, parameters) = (mlp.shape, mlp.parameters.clone());
        let layers = shape.layers().iter();
        let weights =
            layers.map(|layer| parameters.view(layer.weight.start, layer.weight.len())).collect();
        let mut network = Self {
            device,
            shape,
            parameters,
            context: context.clone(),
            num_sets,
            gradient: mlp.gradient.cloned(),
            weights,
            shifts: Vec::new(),
        };
        for layer in shape.layers() {
            network.shifts.push(network.shift(layer)?);
        }
        Ok(network)
    }

    /// b + C c, one row per set, or one row for all where no context enters.
    fn shift(&self, layer: &LayerShape) -> Result<Buffer> {
        let device = self.device;
        let (n, k) = (layer.outputs, self.shape.config().context_dim);
        let sets = if layer.context_weight.is_some() { self.num_sets } else { 1 };
        let bias = self.parameters.view(layer.bias.start, n);
        // Kernels read four numbers at a time, from addresses that are multiples of 16 bytes.
        if layer.context_weight.is_none() && bias.address().is_multiple_of(16) {
            return Ok(bias);
        }
        let shift = device.buffer::<f32>(sets * n)?;
        // Every set's row begins as the bias.
        device.kernels.spread(
            device,
            flat(sets * n),
            &bias,
            None,
            &shift,
            sets as u64,
            n as u32,
        )?;
        if let Some(weight) = &layer.context_weight {
            device.product(
                (sets, n, k),
                plain(&self.context, k),
                transposed(&self.parameters.view(weight.start, weight.len()), k),
                (&shift, true),
                Precision::F32,
            )?;
        }
        Ok(shift)
    }

    /// Row → set for a layer's shift; `None` where one row serves all.
    fn set_of<'r>(layer: &LayerShape, rows: &'r Rows) -> Option<&'r Buffer<u32>> {
        layer.context_weight.is_some().then_some(&rows.set)
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
    fn layer_product(
        &self,
        index: usize,
        below: &Buffer,
        rows: &Rows,
        keep: Keep,
    ) -> Result<Buffer> {
        let device = self.device;
        let (layer, weight) = (&self.shape.layers()[index], &self.weights[index]);
        let (n, k) = (layer.outputs, layer.inputs);
        let out = device.buffer::<f32>(rows.count * n)?;
        if self.is_split(index, rows, keep) {
            let split = device.buffer::<f32>(3 * n * k)?;
            device.kernels.split_weights(
                device,
                flat(n * k),
                weight,
                &split,
                n as u32,
                k as u32,
            )?;
            device.product(
                (rows.count, n, 3 * k),
                plain(below, 3 * k),
                transposed(&split, 3 * k),
                (&out, false),
                Precision::Tf32,
            )?;
        } else {
            let precision = if index == 0 { Precision::F32 } else { device.precision };
            device.product(
                (rows.count, n, k),
                plain(below, k),
                transposed(weight, k),
                (&out, false),
                precision,
            )?;
        }
        Ok(out)
    }

    /// One layer of a pass that keeps `keep`: a (and σ′, σ″) from the layer below.
    fn layer(
        &self,
        index: usize,
        below: &Buffer,
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
        let (shift, set) = (&self.shifts[index], Self::set_of(layer, rows));
        let split = device.buffer::<f32>(if is_split { 3 * entries } else { 0 })?;
        if index == 0 && k <= 16 {
            let out = if is_split { split } else { device.buffer::<f32>(entries)? };
            device.kernels.first_layer(
                device,
                flat(entries),
                below,
                &self.weights[index],
                shift,
                set,
                &out,
                slope.some(),
                curvature.some(),
                rows.count as u64,
                k as u32,
                n as u32,
                kind,
                leak,
                i32::from(is_split),
            )?;
            return Ok((out, slope, curvature));
        }
        let z = self.layer_product(index, below, rows, keep)?;
        let out = if is_split { split } else { z.clone() };
        device.kernels.activate(
            device,
            flat(entries.div_ceil(4)),
            &z,
            &out,
            shift,
            set,
            slope.some(),
            curvature.some(),
            rows.count as u64,
            n as u32,
            kind,
            leak,
            i32::from(is_split),
        )?;
        Ok((out, slope, curvature))
    }

    /// The hidden layers of every row: the last one, and in `trace` what is kept of all.
    fn hidden(&self, rows: &Rows, keep: Keep, trace: &mut Trace) -> Result<Buffer> {
        let mut below = Buffer::none();
        for index in 0..self.hidden_layers().len() {
            let from = if index == 0 { &rows.elements } else { &below };
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
            let (z, ..) = self.layer(0, &rows.elements, rows, Keep::Output)?;
            return Ok(Unpooled { z, shift: None, has_context: false, activation: IDENTITY });
        }
        let below = self.hidden(rows, Keep::Output, &mut Trace::default())?;
        Ok(Unpooled {
            z: self.layer_product(index, &below, rows, Keep::Output)?,
            shift: Some(self.shifts[index].clone()),
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
        let from = if num_hidden == 0 { &rows.elements } else { &below };
        let last = self.output_layer();
        if last.outputs == 1 && num_hidden > 0 && !self.shape.config().activate_output {
            let output = device.buffer::<f32>(rows.count)?;
            device.kernels.scalar_output(
                device,
                warps(rows.count),
                from,
                &self.weights[num_hidden],
                &self.shifts[num_hidden],
                Self::set_of(last, rows),
                &output,
                rows.count as u64,
                last.inputs as u32,
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
