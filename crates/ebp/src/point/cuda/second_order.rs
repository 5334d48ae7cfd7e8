//! Backward passes of the score: derivatives of a derivative.

use super::Precision;
use super::backward::Sums;
use super::buffer::Buffer;
use super::launch::flat;
use super::network::{Keep, Network};
use super::products::{plain, transposed};
use super::rows::Rows;
use crate::Result;

impl Network<'_> {
    /// Backward of L = Σ ⟨v, ∇ₓ f⟩ + Σ u f: ⟨v, ∇ₓ f⟩ is the tangent ḟ of f along v, so this is a
    /// reverse pass over a forward pass that carries tangents. `v` is `[count, d]` with zeros at
    /// the locations, `u` is `[count]`, or zero if missing.
    ///
    /// ```text
    /// ż_l = ȧ_{l−1} W_lᵀ,  ȧ_l = σ′ ż_l,   cotangents p of ȧ and g of a:
    /// q = p σ′,  r = g σ′ + p σ″ ż,   ∂W_l = qᵀ ȧ_{l−1} + rᵀ a_{l−1},   p ← q W_l,  g ← r W_l
    /// ```
    pub(super) fn score_backward(
        &self,
        rows: &Rows,
        v: &Buffer,
        u: Option<&Buffer>,
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
            let below = if index == 0 { v } else { &active[index - 1] };
            let precision = if index == 0 { Precision::F32 } else { device.precision };
            device.product(
                (count, layer.outputs, layer.inputs),
                plain(below, layer.inputs),
                transposed(&self.weights[index], layer.inputs),
                (&tangent, false),
                precision,
            )?;
            let moved = device.buffer::<f32>(entries)?;
            device.kernels.product(
                device,
                flat(entries.div_ceil(4)),
                &moved,
                &tangent,
                trace.slope(index),
                entries as u64,
            )?;
            tangents.push(tangent);
            active.push(moved);
        }
        // Cotangents on the way down, beginning with those of ḟ and f.
        let mut p = device.filled(1.0, count)?;
        let mut g = match u {
            // The cotangent is its owner's; a layer with σ changes it in place.
            Some(u) if has_activation(layers.len() - 1) => device.duplicate(u)?,
            Some(u) => u.clone(),
            None => device.zeros(count)?,
        };
        for (index, layer) in layers.iter().enumerate().rev() {
            if has_activation(index) {
                let entries = count * layer.outputs;
                device.kernels.second_order(
                    device,
                    flat(entries),
                    &g,
                    &p,
                    trace.slope(index),
                    trace.curvature(index),
                    &tangents[index],
                    entries as u64,
                )?;
            }
            if let Some(sums) = sums {
                let (below, tangent_below) = match index {
                    0 => (&rows.elements, v),
                    index => (&trace.hidden[index - 1], &active[index - 1]),
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
                    plain(from, layer.outputs),
                    plain(&self.weights[index], layer.inputs),
                    (&out, false),
                    precision,
                )?;
                Ok(out)
            };
            (p, g) = (lower(&p)?, lower(&g)?);
        }
        if wants_elements { self.to_elements(rows, &g) } else { Ok(Buffer::none()) }
    }
}
