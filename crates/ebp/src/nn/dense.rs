//! Stacks of linear layers, as networks of the primitive over rows.
//!
//! ```text
//! y = W_L σ(… σ(W₁ x + b₁) …) + b_L
//! ```

use std::sync::Arc;

use super::Initialiser;
use crate::Result;
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape};
use crate::tape::{Group, Parameter, Tape, Var};

/// A stack of linear layers.
#[derive(Clone, Debug)]
pub struct Dense {
    shape: Arc<MlpShape>,
    parameters: Parameter,
}

/// Widths and starting values of a [`Dense`].
#[derive(Clone, Copy, Debug)]
pub struct DenseConfig<'a> {
    /// Columns of x.
    pub inputs: usize,
    /// Widths between.
    pub hidden: &'a [usize],
    /// Columns of y.
    pub outputs: usize,
    /// σ.
    pub activation: Activation,
    /// The law of weights; biases start at zero.
    pub weights: Initialiser,
    /// What the last layer's weights are multiplied by at the start.
    pub output_scale: f32,
}

impl DenseConfig<'_> {
    /// One linear map; with hidden widths, SiLU between.
    pub fn linear(inputs: usize, outputs: usize, weights: Initialiser) -> Self {
        let activation = Activation::Silu;
        Self { inputs, hidden: &[], outputs, activation, weights, output_scale: 1.0 }
    }
}

impl Dense {
    /// A stack called `name`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a width is zero or the name taken.
    pub fn new(group: &mut Group<'_>, name: &str, config: &DenseConfig<'_>) -> Result<Self> {
        let shape = MlpShape::new(MlpConfig {
            value_dim: config.inputs,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: config.hidden.to_vec(),
            output_dim: config.outputs,
            activation: config.activation,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        })?;
        let parameters = group.point_mlp(name, &shape)?;
        let streams: Vec<_> =
            (0..shape.layers().len()).map(|i| group.stream(&format!("{name}.{i}"))).collect();
        let values = group.values_mut(&parameters);
        for (index, (layer, stream)) in shape.layers().iter().zip(streams).enumerate() {
            let drawn = config.weights.draw(&[layer.outputs, layer.inputs], stream)?;
            let is_last = index + 1 == shape.layers().len();
            let scale = if is_last { config.output_scale } else { 1.0 };
            let places = values[layer.weight.clone()].iter_mut().zip(drawn);
            places.for_each(|(weight, drawn)| *weight = scale * drawn);
        }
        Ok(Self { shape: Arc::new(shape), parameters })
    }

    /// Its layers.
    pub fn shape(&self) -> &MlpShape {
        &self.shape
    }

    /// Its flat parameters.
    pub fn parameters(&self) -> &Parameter {
        &self.parameters
    }

    /// y of every row.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn forward(&self, tape: &mut Tape, x: Var) -> Result<Var> {
        let parameters = tape.parameter(&self.parameters)?;
        tape.dense(&self.shape, parameters, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    #[test]
    fn a_layer_is_affine_in_its_rows() {
        let mut builder = ParameterBuilder::new(1);
        let config = DenseConfig::linear(2, 1, Initialiser::Constant(3.0));
        let layer = Dense::new(&mut builder.group("model"), "layer", &config).unwrap();
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        let rows = tape.upload(vec![1.0, 2.0, 0.0, -1.0], (2, 2)).unwrap();
        let found = layer.forward(&mut tape, rows).unwrap();
        assert_eq!(tape.download(found).unwrap(), [9.0, -3.0]);
    }

    #[test]
    fn gradients_reach_every_layer() {
        let mut builder = ParameterBuilder::new(1);
        let config = DenseConfig { hidden: &[4], ..DenseConfig::linear(3, 2, Initialiser::He) };
        let layers = Dense::new(&mut builder.group("model"), "layers", &config).unwrap();
        let parameters = [("layers", *layers.parameters())];
        crate::nn::differences::check(builder, &parameters, |tape| {
            let rows = tape.normals((5, 3), Stream::new(2, "rows"))?;
            layers.forward(tape, rows)
        });
    }
}
