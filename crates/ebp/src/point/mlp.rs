//! A network: a shape and its parameters, checked once.

use super::MlpShape;
use crate::error::{check_finite, check_length};
use crate::numbers::Numbers;
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// A small network applied to every element of a set, with a per-set context:
///
/// ```text
/// a₀ = [x, t],   z_l = W_l a_{l−1} + C_l c + b_l,   a_l = σ(z_l),   f = W_o a_L + b_o
/// ```
///
/// x is the element's value, t its location and c the context of its set. C_l c is computed once
/// per set, never once per element.
#[derive(Clone, Debug)]
pub struct PointMlp {
    shape: MlpShape,
    parameters: Numbers,
}

impl PointMlp {
    /// Takes the flat parameters described in [`MlpShape`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if there are more outputs than a tile has room
    /// for; [`Error::WrongLength`](crate::Error::WrongLength) or
    /// [`Error::NonFinite`](crate::Error::NonFinite) naming `parameters`.
    pub fn new(shape: MlpShape, parameters: impl Into<Numbers>) -> Result<Self> {
        shape.check_tile()?;
        let parameters = parameters.into();
        check_length("parameters", parameters.len(), shape.num_parameters(), || {
            let widths: Vec<_> = std::iter::once(shape.element_dim())
                .chain(shape.layers().iter().map(|layer| layer.outputs))
                .map(|width| width.to_string())
                .collect();
            format!("layers {} with context {}", widths.join("-"), shape.config().context_dim)
        })?;
        check_finite(
            "parameters",
            &parameters,
            "the network diverged or its file is damaged: go back to an earlier one",
        )?;
        Ok(Self { shape, parameters })
    }

    /// Random weights of variance gain²/fan-in and zero biases, the fan-in being the inputs and
    /// the context of a layer together. The gain is √2 for ReLU (He et al., 2015) and 1 for the
    /// last layer and smooth activations.
    pub fn random(shape: MlpShape, stream: Stream) -> Self {
        let mut parameters = vec![0.0; shape.num_parameters()];
        let context_dim = shape.config().context_dim;
        let num_layers = shape.layers().len();
        for (index, layer) in shape.layers().iter().enumerate() {
            let context = layer.context_weight.as_ref().map_or(0, |_| context_dim);
            let is_rectified =
                index + 1 < num_layers && shape.config().activation.is_piecewise_linear();
            let gain = if is_rectified { 2.0_f32 } else { 1.0 };
            let std_dev = (gain / (layer.inputs + context) as f32).sqrt();
            for range in [Some(&layer.weight), layer.context_weight.as_ref()].into_iter().flatten()
            {
                let weights = &mut parameters[range.clone()];
                stream.fill_normal(0, range.start as u64, weights);
                for weight in weights {
                    *weight *= std_dev;
                }
            }
        }
        Self { shape, parameters: parameters.into() }
    }

    /// The shape.
    pub fn shape(&self) -> &MlpShape {
        &self.shape
    }

    /// The flat parameters, laid out as [`MlpShape`] says.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }
}

/// Sets to apply a network to, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct PointBatch<'a> {
    /// All elements, row-major `[total, d_x + d_t]`, each row `[value, location]`.
    pub elements: &'a [f32],
    /// Which rows belong to which set.
    pub offsets: &'a SetOffsets,
    /// One context per set, row-major `[sets, context_dim]`; empty if `context_dim` is 0.
    pub context: &'a [f32],
}

impl PointBatch<'_> {
    /// Checks lengths and finiteness against a shape.
    pub(crate) fn check(&self, shape: &MlpShape) -> Result<()> {
        let (n, d) = (self.offsets.num_elements(), shape.element_dim());
        check_length("elements", self.elements.len(), n * d, || {
            format!("elements {n} x element_dim {d}")
        })?;
        check_context(self.context, self.offsets.num_sets(), shape)?;
        check_finite("elements", self.elements, "remove or repair that element")
    }
}

/// Checks `[sets, context_dim]` numbers of context.
pub(crate) fn check_context(context: &[f32], num_sets: usize, shape: &MlpShape) -> Result<()> {
    let k = shape.config().context_dim;
    check_length("context", context.len(), num_sets * k, || {
        format!("sets {num_sets} x context_dim {k}")
    })?;
    check_finite("context", context, "the network that made this context diverged")
}
