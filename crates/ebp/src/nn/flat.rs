//! A layer-by-layer view of the flat parameters of a [`PointMlp`](crate::point::PointMlp).

use std::ops::Range;

use candle_core::Tensor;

use super::host::checked;
use crate::Result;
use crate::point::MlpShape;

/// The parameters of one layer, as differentiable views of the flat tensor.
#[derive(Clone, Debug)]
pub struct LayerTensors {
    /// W, `[outputs, inputs]`.
    pub weight: Tensor,
    /// C, `[outputs, context_dim]`, if the layer receives the context.
    pub context_weight: Option<Tensor>,
    /// b, `[outputs]`.
    pub bias: Tensor,
}

/// Splits `flat` into the layers of `shape`, first to last. Gradients flow back into `flat`.
///
/// # Shapes
///
/// `flat`: `[num_parameters]`.
///
/// # Errors
///
/// [`Error::InvalidValue`](crate::Error::InvalidValue) if `flat` has another shape, dtype or
/// device.
pub fn layer_tensors(shape: &MlpShape, flat: &Tensor) -> Result<Vec<LayerTensors>> {
    let flat = checked("parameters", flat, &[shape.num_parameters()])?;
    let view = |range: &Range<usize>| flat.narrow(0, range.start, range.len());
    let context_dim = shape.config().context_dim;
    shape
        .layers()
        .iter()
        .map(|layer| {
            let context_weight = match &layer.context_weight {
                Some(range) => Some(view(range)?.reshape((layer.outputs, context_dim))?),
                None => None,
            };
            Ok(LayerTensors {
                weight: view(&layer.weight)?.reshape((layer.outputs, layer.inputs))?,
                context_weight,
                bias: view(&layer.bias)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Parameters;
    use crate::point::{ContextAt, MlpConfig};

    #[test]
    fn layers_tile_the_flat_parameters_and_pass_gradients_back() {
        let shape = MlpShape::new(MlpConfig {
            context_dim: 2,
            hidden_widths: vec![4, 3],
            context_at: ContextAt::EveryLayer,
            ..MlpConfig::default()
        })
        .unwrap();
        let flat = Parameters::new(1).point_mlp("energy", &shape).unwrap();
        let layers = layer_tensors(&shape, &flat).unwrap();
        let pieces: Vec<f32> = layers
            .iter()
            .flat_map(|layer| {
                [Some(&layer.weight), layer.context_weight.as_ref(), Some(&layer.bias)]
            })
            .flatten()
            .flat_map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .collect();
        assert_eq!(pieces, flat.to_vec1::<f32>().unwrap());

        let loss = layers[1].weight.sum_all().unwrap();
        let gradient = loss.backward().unwrap().get(&flat).unwrap().to_vec1::<f32>().unwrap();
        let mut expected = vec![0.0; shape.num_parameters()];
        expected[shape.layers()[1].weight.clone()].fill(1.0);
        assert_eq!(gradient, expected);
    }
}
