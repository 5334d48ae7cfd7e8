//! The second-order pass: gradients of L = Σ ⟨v, ∇ₓf⟩ + Σ u f.
//!
//! ⟨v, ∇ₓf⟩ is the derivative ḟ of f along v. Carrying the tangent v forward beside the values and
//! then differentiating backward gives every second-order term without forming a Hessian:
//!
//! ```text
//! forward    ȧ₀ = v,  ż_l = W_l ȧ_{l−1},  ȧ_l = σ′(z_l) ż_l
//! backward   with ā, ᾱ the adjoints of a, ȧ:
//!            adjoint of ż_l = σ′ ᾱ_l,     z̄_l = σ′ ā_l + σ″ ż_l ᾱ_l
//!            ∂L/∂W_l = z̄_l a_{l−1}ᵀ + (adjoint of ż_l) ȧ_{l−1}ᵀ,     ∂L/∂shift_l = z̄_l
//! ```
//!
//! For piecewise linear σ, σ″ = 0: z̄ vanishes unless u does not, and with it every gradient
//! except ∂L/∂W.

use super::accumulator::Accumulator;
use super::buffer::Matrix;
use super::kernel::{Adjoint, Dots, Finish, Product, Start, Tangent};
use super::tile::{NO_SHIFT, Network, Tile, element_gradient};

impl Tile {
    /// Carries `element_tangent` forward. Call after `forward` with `Keep::Curvatures`.
    fn forward_tangent(&mut self, net: &Network<'_>) {
        let last = net.packed.last();
        for (index, layer) in net.packed.layers.iter().enumerate() {
            let (before, here) = self.tangents.split_at_mut(index);
            let inputs = before.last().unwrap_or(&self.element_tangent);
            let out = &mut here[0];
            if layer.is_narrow {
                net.kernels.dots(Dots {
                    rows: self.rows,
                    inputs: &inputs.data,
                    input_stride: inputs.stride,
                    depth: layer.input_width,
                    weights: layer.forward_rows(),
                    outputs: layer.outputs,
                    shift: &NO_SHIFT,
                    out_stride: out.stride,
                    out: &mut out.data,
                });
            } else {
                net.kernels.product(Product {
                    rows: self.rows,
                    inputs: &inputs.data,
                    input_stride: inputs.stride,
                    depth: layer.inputs,
                    panels: layer.forward_panels(0),
                    start: Start::Zero,
                    out_stride: out.stride,
                    finish: Finish::Store(&mut out.data),
                });
            }
            if index < last {
                let used = self.rows * out.stride;
                net.kernels.tangent(Tangent {
                    slopes: &self.slopes[index].data[..used],
                    tangents: &mut out.data[..used],
                    curvatures: &mut self.curvatures[index].data[..used],
                });
            }
        }
    }

    /// Runs the whole pass for the direction in `element_tangent`, with u given per row. Leaves
    /// the adjoints of ż in `slopes` and z̄ in `curvatures`.
    pub(super) fn second_order(
        &mut self,
        net: &Network<'_>,
        value_cotangent: impl Fn(usize) -> f32,
    ) {
        self.forward_tangent(net);
        let last = net.packed.last();
        // One output, and the derivative of L with respect to ḟ is one.
        for row in 0..self.rows {
            let u = value_cotangent(row);
            let (slope, bend) = if net.output_is_activated() {
                let tangent = self.tangents[last].row(row)[0];
                (self.slopes[last].row(row)[0], self.curvatures[last].row(row)[0] * tangent)
            } else {
                (1.0, 0.0)
            };
            let slopes = self.slopes[last].row_mut(row);
            slopes.fill(0.0);
            slopes[0] = slope;
            let curvatures = self.curvatures[last].row_mut(row);
            curvatures.fill(0.0);
            curvatures[0] = slope * u + bend;
        }
        for index in (1..=last).rev() {
            self.second_order_layer(net, index);
        }
    }

    fn second_order_layer(&mut self, net: &Network<'_>, index: usize) {
        let layer = &net.packed.layers[index];
        let width = layer.input_width;
        let stride = self.slopes[index - 1].stride;
        let sources = [&self.curvatures[index], &self.slopes[index]];
        for (from, to) in sources.into_iter().zip(&mut self.adjoints) {
            net.kernels.product(Product {
                rows: self.rows,
                inputs: &from.data,
                input_stride: from.stride,
                depth: layer.outputs,
                panels: layer.backward_panels(),
                start: Start::Zero,
                // The same stride as the layer's buffers, so that they combine entry by entry.
                out_stride: stride,
                finish: Finish::Store(&mut to.data),
            });
        }
        debug_assert!(width <= stride);
        let used = self.rows * stride;
        let [value_adjoints, tangent_adjoints] = &self.adjoints;
        net.kernels.adjoint(Adjoint {
            slopes: &mut self.slopes[index - 1].data[..used],
            curvatures: &mut self.curvatures[index - 1].data[..used],
            value_adjoints: &value_adjoints.data[..used],
            tangent_adjoints: &tangent_adjoints.data[..used],
        });
    }

    /// Adds the pass's weight and shift gradients.
    pub(super) fn accumulate_second_order(&self, net: &Network<'_>, into: &mut Accumulator) {
        for index in 0..net.packed.layers.len() {
            let (values, tangents): (&Matrix, &Matrix) = if index == 0 {
                (&self.elements, &self.element_tangent)
            } else {
                (&self.values[index - 1], &self.tangents[index - 1])
            };
            self.add_weights(net, index, values, &self.curvatures[index], into);
            self.add_weights(net, index, tangents, &self.slopes[index], into);
            self.add_shifts(net, index, &self.curvatures[index], into);
        }
    }

    /// ∂L/∂element of every row: for u = 0 the Hessian of f applied to v.
    pub(super) fn second_order_to_elements(&mut self, net: &Network<'_>) {
        element_gradient(net, self.rows, &self.curvatures[0], &mut self.element_gradient);
    }
}
