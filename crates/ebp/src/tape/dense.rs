//! A network without context over plain rows: few rows, wide layers.
//!
//! ```text
//! z_l = a_{l−1} W_lᵀ + b_l,   a_l = σ(z_l)          ∂W_l = g_lᵀ a_{l−1},   ∂a_{l−1} = g_l W_l
//! ```
//!
//! The primitive keeps a tile of many rows in the cache and sums gradients chunk by chunk; here the
//! weights are the larger part, and plain products over whole layers are faster. On a GPU both are the
//! same products.

use std::sync::Arc;

use faer::{Accum, MatMut, MatRef};

use super::elementwise::{silu, silu_slope};
use super::point::Points;
use super::{Array, Device, Tape, Var, loops, product, reduce};
use crate::error::check_finite;
use crate::point::{Activation, MlpShape};
use crate::{Error, Result, SetOffsets};

impl Tape {
    /// The outputs of a network for every row, `[rows, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn dense(&mut self, shape: &Arc<MlpShape>, parameters: Var, x: Var) -> Result<Var> {
        let rows = self.shape(x).0;
        let points = Points {
            shape: Arc::clone(shape),
            parameters,
            elements: x,
            context: None,
            offsets: Arc::new(SetOffsets::uniform(1, rows.max(1))?),
        };
        if self.device().is_gpu() || shape.config().activate_output {
            return self.point_values(&points);
        }
        let (inputs, arguments) = self.arguments(&points)?;
        let (trace, value) =
            forward(shape, arguments.parameters.host()?, &arguments.elements, rows)?;
        check_finite("values", value.host()?, "the network's numbers overflow")?;
        let shape = Arc::clone(shape);
        let outputs = (rows, shape.config().output_dim);
        Ok(self.record(&inputs, value, outputs, move |reversal| {
            let Device::Cpu(_) = reversal.device else {
                return Err(Error::invalid("device", "that of the forward pass", "another"));
            };
            let weights = arguments.parameters.host()?;
            let mut sums = match (reversal.wanted[0], reversal.take_sum(0)) {
                (true, Some(sum)) => Some((sum, Accum::Add)),
                (true, None) => {
                    Some((reversal.device.zeros(shape.num_parameters())?, Accum::Replace))
                }
                (false, _) => None,
            };
            let to = match &mut sums {
                Some((sum, accumulate)) => Some((sum.host_mut()?, *accumulate)),
                None => None,
            };
            let g = reversal.cotangent()?;
            let elements = backward(&shape, weights, &trace, (g, rows), to, reversal.wanted[1])?;
            Ok(vec![sums.map(|(sum, _)| sum), elements])
        }))
    }
}

/// What the way back needs of a layer.
struct Kept {
    /// a_{l−1}.
    input: Array,
    /// z_{l−1}, of which `input` is the activation; nothing below the first layer.
    before: Option<Array>,
}

/// The outputs, and what is kept of every layer.
fn forward(
    shape: &MlpShape,
    parameters: &[f32],
    x: &Array,
    rows: usize,
) -> Result<(Vec<Kept>, Array)> {
    let activation = shape.config().activation;
    let mut trace = Vec::with_capacity(shape.layers().len());
    let mut output: Option<Array> = None;
    for layer in shape.layers() {
        let (n, k) = (layer.outputs, layer.inputs);
        let (weight, bias) = (&parameters[layer.weight.clone()], &parameters[layer.bias.clone()]);
        let kept = match output {
            Some(z) => Kept { input: activate(activation, z.host()?).into(), before: Some(z) },
            None => Kept { input: x.clone(), before: None },
        };
        let mut z = bias.repeat(rows);
        product::multiply(
            MatMut::from_row_major_slice_mut(&mut z, rows, n),
            Accum::Add,
            MatRef::from_row_major_slice(kept.input.host()?, rows, k),
            MatRef::from_row_major_slice(weight, n, k).transpose(),
        );
        output = Some(z.into());
        trace.push(kept);
    }
    match output {
        Some(output) => Ok((trace, output)),
        None => Err(Error::invalid("shape", "at least one layer", "none")),
    }
}

/// Writes the gradient of the parameters, or adds it to what is there; that of the rows if wanted.
fn backward(
    shape: &MlpShape,
    parameters: &[f32],
    trace: &[Kept],
    (cotangent, rows): (&Array, usize),
    mut to: Option<(&mut [f32], Accum)>,
    wants_rows: bool,
) -> Result<Option<Array>> {
    let mut g = cotangent.clone();
    for (index, (layer, kept)) in shape.layers().iter().zip(trace).enumerate().rev() {
        let (n, k) = (layer.outputs, layer.inputs);
        if let Some((gradient, accumulate)) = &mut to {
            product::multiply(
                MatMut::from_row_major_slice_mut(&mut gradient[layer.weight.clone()], n, k),
                *accumulate,
                MatRef::from_row_major_slice(g.host()?, rows, n).transpose(),
                MatRef::from_row_major_slice(kept.input.host()?, rows, k),
            );
            let mut sums = vec![0.0; n];
            reduce::sums_of_columns(g.host()?, n, &mut sums);
            let bias = &mut gradient[layer.bias.clone()];
            match accumulate {
                Accum::Add => bias.iter_mut().zip(&sums).for_each(|(bias, sum)| *bias += sum),
                Accum::Replace => bias.copy_from_slice(&sums),
            }
        }
        if index == 0 && !wants_rows {
            return Ok(None);
        }
        let mut lower = vec![0.0; rows * k];
        product::multiply(
            MatMut::from_row_major_slice_mut(&mut lower, rows, k),
            Accum::Replace,
            MatRef::from_row_major_slice(g.host()?, rows, n),
            MatRef::from_row_major_slice(&parameters[layer.weight.clone()], n, k),
        );
        if let Some(z) = &kept.before {
            times_slope(shape.config().activation, &mut lower, z.host()?);
        }
        g = lower.into();
    }
    Ok(Some(g))
}

#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn activate(activation: Activation, z: &[f32]) -> Vec<f32> {
    match activation {
        Activation::Relu => loops::map(z, |z| z.max(0.0)),
        Activation::Silu => loops::map(z, silu),
        other => loops::map(z, |z| other.value(f64::from(z)) as f32),
    }
}

/// g ← g σ′(z).
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn times_slope(activation: Activation, g: &mut [f32], z: &[f32]) {
    match activation {
        Activation::Relu => loops::update(g, z, |g, z| g * f32::from(u8::from(z > 0.0))),
        Activation::Silu => loops::update(g, z, |g, z| g * silu_slope(z)),
        other => loops::update(g, z, |g, z| g * other.slope(f64::from(z)) as f32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{ContextAt, MlpConfig};
    use crate::rng::Stream;
    use crate::tape::{AdamConfig, ParameterBuilder, ParameterSet};

    /// The same outputs and gradients as the primitive's.
    #[test]
    fn rows_are_those_of_the_primitive() {
        for (activation, hidden) in [
            (Activation::Silu, vec![33, 40]),
            (Activation::Relu, vec![]),
            (Activation::Tanh, vec![7]),
        ] {
            let config = MlpConfig {
                value_dim: 19,
                location_dim: 0,
                context_dim: 0,
                hidden_widths: hidden,
                output_dim: 11,
                activation,
                context_at: ContextAt::FirstLayer,
                activate_output: false,
            };
            let shape = Arc::new(MlpShape::new(config).unwrap());
            let device = Device::default();
            let mut builder = ParameterBuilder::new(1);
            let mut group = builder.group("net");
            let flat = group.point_mlp("flat", &shape).unwrap();
            let rows = group.point_mlp("unused", &shape).unwrap();
            assert!(rows.len() > 70);
            let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
            let mut x = vec![0.0; 70 * 19];
            Stream::new(2, "x").fill_normal(0, 0, &mut x);
            let run = |is_dense: bool| {
                let mut tape = device.tape();
                tape.train(&set);
                let parameters = tape.parameter(&flat).unwrap();
                let x = tape.upload(x.clone(), (70, 19)).unwrap();
                let y = if is_dense {
                    tape.dense(&shape, parameters, x).unwrap()
                } else {
                    let offsets = Arc::new(SetOffsets::uniform(1, 70).unwrap());
                    let (shape, elements) = (Arc::clone(&shape), x);
                    let points = Points { shape, parameters, elements, context: None, offsets };
                    tape.point_values(&points).unwrap()
                };
                let squares = tape.square(y).unwrap();
                let loss = tape.sum(squares).unwrap();
                let values = tape.download(y).unwrap();
                let gradients = tape.backward(loss).unwrap();
                (values, gradients.of(&flat, &device).unwrap().unwrap())
            };
            let ((found, found_gradient), (expected, expected_gradient)) = (run(true), run(false));
            for (found, expected) in [(found, expected), (found_gradient, expected_gradient)] {
                let largest = expected.iter().fold(0.0_f32, |l, x| l.max(x.abs()));
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-5 * largest, "{found} {expected}");
                }
            }
        }
    }
}
