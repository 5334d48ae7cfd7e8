//! ρ: from a set's pooled features to μ and log σ of θ, a rectifier before each layer. All of it is
//! one row per set, in f32 whatever the precision.

use super::super::Precision;
use super::super::device::{Buffer, Device, flat, launch};
use super::super::products::{plain, transposed};
use crate::Result;
use crate::point::PlacedLinear;

pub(super) struct Head<'a> {
    pub(super) device: &'a Device,
    pub(super) layers: &'a [PlacedLinear],
    /// The flat arrays of all parameters and their gradient.
    pub(super) parameters: &'a Buffer,
    pub(super) gradient: &'a Buffer,
    pub(super) sets: usize,
}

/// A forward pass.
pub(super) struct HeadTrace {
    /// What each layer read, rectified.
    inputs: Vec<Buffer>,
    /// `[sets, 2 k]`.
    pub(super) output: Buffer,
}

impl Head<'_> {
    /// z_l = relu(z_{l−1}) W_lᵀ + b_l, z₀ = pooled.
    pub(super) fn forward(&self, pooled: &Buffer) -> Result<HeadTrace> {
        let device = self.device;
        let (mut inputs, mut below) = (Vec::new(), pooled.view(0, pooled.len()));
        for layer in self.layers {
            let rectified = device.buffer::<f32>(below.len())?;
            launch!(
                device,
                rectify,
                flat(below.len()),
                below.at(0),
                rectified.at(0),
                below.len() as u64
            )?;
            let entries = self.sets * layer.outputs;
            let z = device.buffer::<f32>(entries)?;
            device.product(
                (self.sets, layer.outputs, layer.inputs),
                plain(rectified.at(0), layer.inputs),
                transposed(self.parameters.at(layer.weight), layer.inputs),
                (z.at(0), false),
                Precision::F32,
            )?;
            launch!(
                device,
                activate,
                flat(entries),
                z.at(0),
                z.at(0),
                self.parameters.at(layer.bias),
                0_u64,
                0_u64,
                0_u64,
                self.sets as u64,
                layer.outputs as u32,
                0_i32,
                0.0_f32,
                0_i32
            )?;
            inputs.push(rectified);
            below = z;
        }
        Ok(HeadTrace { inputs, output: below })
    }

    /// Puts the layers' gradients in their places and returns ∂L/∂pooled.
    pub(super) fn backward(&self, trace: &HeadTrace, mut g: Buffer) -> Result<Buffer> {
        let (device, sets) = (self.device, self.sets);
        for (layer, input) in self.layers.iter().zip(&trace.inputs).rev() {
            let (n, k) = (layer.outputs, layer.inputs);
            // ∂W = gᵀ a,  ∂b = Σ g,  ∂a = g W.
            device.product(
                (n, k, sets),
                transposed(g.at(0), n),
                plain(input.at(0), k),
                (self.gradient.at(layer.weight), false),
                Precision::F32,
            )?;
            launch!(
                device,
                column_sums,
                flat(n),
                g.at(0),
                self.gradient.at(layer.bias),
                sets as u32,
                n as u32
            )?;
            let lower = device.buffer::<f32>(sets * k)?;
            device.product(
                (sets, k, n),
                plain(g.at(0), n),
                plain(self.parameters.at(layer.weight), k),
                (lower.at(0), false),
                Precision::F32,
            )?;
            launch!(
                device,
                rectify_backward,
                flat(sets * k),
                lower.at(0),
                input.at(0),
                (sets * k) as u64
            )?;
            g = lower;
        }
        Ok(g)
    }
}
