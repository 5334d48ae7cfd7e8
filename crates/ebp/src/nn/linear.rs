//! Linear layers y = W x + b.

pub use candle_nn::Linear;

use super::{Initialiser, Parameters};
use crate::Result;

/// A linear layer with trained `weight` and zero `bias` in the group `parameters`.
///
/// The starting law is an argument because the layers here differ in it: He before `ReLU`,
/// small or zero for the last layer of a posterior or a flow.
///
/// # Shapes
///
/// `weight`: `[outputs, inputs]`, `bias`: `[outputs]`; maps `[…, inputs]` to `[…, outputs]`.
///
/// # Errors
///
/// As [`Parameters::trained`].
pub fn linear(
    parameters: &Parameters,
    inputs: usize,
    outputs: usize,
    weight: Initialiser,
) -> Result<Linear> {
    let weight = parameters.trained("weight", &[outputs, inputs], weight)?;
    let bias = parameters.trained("bias", &[outputs], Initialiser::Zeros)?;
    Ok(Linear::new(weight.into_inner(), Some(bias.into_inner())))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Module, Tensor};

    use super::*;

    #[test]
    fn the_layer_is_affine_in_its_input() {
        let parameters = Parameters::new(1);
        let layer = linear(&parameters, 2, 1, Initialiser::Constant(3.0)).unwrap();
        let bias = parameters.get("bias").unwrap();
        bias.set(&Tensor::new(&[0.5_f32], &Device::Cpu).unwrap()).unwrap();
        let input = Tensor::new(&[[1.0_f32, 2.0], [0.0, -1.0]], &Device::Cpu).unwrap();
        let output: Vec<Vec<f32>> = layer.forward(&input).unwrap().to_vec2().unwrap();
        assert_eq!(output, [[9.5], [-2.5]]);
    }
}
