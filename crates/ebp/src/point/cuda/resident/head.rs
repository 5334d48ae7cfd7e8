//! ρ: from a set's pooled features to μ and log σ of θ, a rectifier before each layer. All of it is
//! one row per set, in f32 whatever the precision.

use super::super::launch::flat;
use super::super::{Buffer, Device, Precision, plain, transposed};
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
        let (device, sets) = (self.device, self.sets);
        let (mut inputs, mut below) = (Vec::new(), pooled.clone());
        for layer in self.layers {
            let (n, k) = (layer.outputs, layer.inputs);
            let (rectified, count) = (device.buffer::<f32>(below.len())?, below.len());
            device.kernels.rectify(device, flat(count), &below, &rectified, count as u64)?;
            let z = device.buffer::<f32>(sets * n)?;
            device.product(
                (sets, n, k),
                plain(&rectified, k),
                transposed(&self.parameters.view(layer.weight, n * k), k),
                (&z, false),
                Precision::F32,
            )?;
            device.kernels.activate(
                device,
                flat(sets * n),
                &z,
                &z,
                &self.parameters.view(layer.bias, n),
                None,
                None,
                None,
                sets as u64,
                n as u32,
                0,
                0.0,
                0,
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
                transposed(&g, n),
                plain(input, k),
                (&self.gradient.view(layer.weight, n * k), false),
                Precision::F32,
            )?;
            let bias = self.gradient.view(layer.bias, n);
            device.kernels.column_sums(device, flat(n), &g, &bias, sets as u32, n as u32)?;
            let lower = device.buffer::<f32>(sets * k)?;
            device.product(
                (sets, k, n),
                plain(&g, n),
                plain(&self.parameters.view(layer.weight, n * k), k),
                (&lower, false),
                Precision::F32,
            )?;
            let count = sets * k;
            device.kernels.rectify_backward(device, flat(count), &lower, input, count as u64)?;
            g = lower;
        }
        Ok(g)
    }
}
