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

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::point::Points;
use super::{Array, Device, Tape, Var};
use crate::error::check_finite;
use crate::point::{Activation, MlpShape};
use crate::{Error, Result, SetOffsets};

/// Rows of a result that one thread computes: the same whatever the number of threads.
const ROWS_AT_ONCE: usize = 32;

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
        let trace = forward(shape, arguments.parameters.host()?, arguments.elements.host()?, rows);
        let value: Array = match trace.last() {
            Some(layer) => layer.clone(),
            None => return Err(Error::invalid("shape", "at least one layer", "none")),
        };
        check_finite("values", value.host()?, "the network's numbers overflow")?;
        let shape = Arc::clone(shape);
        let outputs = (rows, shape.config().output_dim);
        Ok(self.record(&inputs, value, outputs, move |reversal| {
            let Device::Cpu(_) = reversal.device else {
                return Err(Error::invalid("device", "that of the forward pass", "another"));
            };
            let weights = arguments.parameters.host()?;
            let g = reversal.cotangent()?.host()?.to_vec();
            let wanted = (reversal.wanted[0], reversal.wanted[1]);
            let below = (&arguments.elements.host()?[..], &trace[..]);
            let (parameters, elements) = backward(&shape, weights, below, (g, rows), wanted)?;
            Ok(vec![parameters.map(Array::from), elements.map(Array::from)])
        }))
    }
}

/// z of every layer, the last one being the output.
fn forward(shape: &MlpShape, parameters: &[f32], x: &[f32], rows: usize) -> Vec<Array> {
    let activation = shape.config().activation;
    let mut trace: Vec<Array> = Vec::with_capacity(shape.layers().len());
    let mut active = x.to_vec();
    for (index, layer) in shape.layers().iter().enumerate() {
        let (n, k) = (layer.outputs, layer.inputs);
        let (weight, bias) = (&parameters[layer.weight.clone()], &parameters[layer.bias.clone()]);
        let mut z = bias.repeat(rows);
        z.par_chunks_mut(ROWS_AT_ONCE * n).zip(active.par_chunks(ROWS_AT_ONCE * k)).for_each(
            |(z, a)| {
                let count = z.len() / n;
                let out = MatMut::from_row_major_slice_mut(z, count, n);
                let left = MatRef::from_row_major_slice(a, count, k);
                let right = MatRef::from_row_major_slice(weight, n, k).transpose();
                matmul(out, Accum::Add, left, right, 1.0, Par::Seq);
            },
        );
        if index + 1 < shape.layers().len() {
            active = z.par_iter().map(|&z| value(activation, z)).collect();
        }
        trace.push(z.into());
    }
    trace
}

type Found = (Option<Vec<f32>>, Option<Vec<f32>>);

/// Gradients of parameters and rows.
fn backward(
    shape: &MlpShape,
    parameters: &[f32],
    (x, trace): (&[f32], &[Array]),
    (mut g, rows): (Vec<f32>, usize),
    (wants_parameters, wants_rows): (bool, bool),
) -> Result<Found> {
    let activation = shape.config().activation;
    let mut gradient = vec![0.0; if wants_parameters { shape.num_parameters() } else { 0 }];
    for (index, layer) in shape.layers().iter().enumerate().rev() {
        let (n, k) = (layer.outputs, layer.inputs);
        let below = match index.checked_sub(1) {
            Some(lower) => Some(trace[lower].host()?),
            None => None,
        };
        if wants_parameters {
            let a: Vec<f32> = match below {
                Some(z) => z.par_iter().map(|&z| value(activation, z)).collect(),
                None => x.to_vec(),
            };
            let (g, a) = (&g[..], &a[..]);
            let to = &mut gradient[layer.weight.clone()];
            to.par_chunks_mut(ROWS_AT_ONCE * k).enumerate().for_each(|(block, to)| {
                let (first, count) = (block * ROWS_AT_ONCE, to.len() / k);
                let out = MatMut::from_row_major_slice_mut(to, count, k);
                let left = MatRef::from_row_major_slice(g, rows, n).transpose();
                let right = MatRef::from_row_major_slice(a, rows, k);
                matmul(out, Accum::Add, left.subrows(first, count), right, 1.0, Par::Seq);
            });
            for (sum, column) in gradient[layer.bias.clone()].iter_mut().zip(0..n) {
                #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
                let total =
                    g.iter().skip(column).step_by(n).map(|&g| f64::from(g)).sum::<f64>() as f32;
                *sum = total;
            }
        }
        if index == 0 && !wants_rows {
            return Ok((wants_parameters.then_some(gradient), None));
        }
        let weight = &parameters[layer.weight.clone()];
        let mut lower = vec![0.0; rows * k];
        lower.par_chunks_mut(ROWS_AT_ONCE * k).zip(g.par_chunks(ROWS_AT_ONCE * n)).for_each(
            |(to, g)| {
                let count = to.len() / k;
                let out = MatMut::from_row_major_slice_mut(to, count, k);
                let left = MatRef::from_row_major_slice(g, count, n);
                let right = MatRef::from_row_major_slice(weight, n, k);
                matmul(out, Accum::Add, left, right, 1.0, Par::Seq);
            },
        );
        if let Some(z) = below {
            lower.par_iter_mut().zip(z.par_iter()).for_each(|(g, &z)| *g *= slope(activation, z));
        }
        g = lower;
    }
    Ok((wants_parameters.then_some(gradient), wants_rows.then_some(g)))
}

#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn value(activation: Activation, z: f32) -> f32 {
    match activation {
        Activation::Relu => z.max(0.0),
        Activation::Silu => z / (1.0 + (-z).exp()),
        other => other.value(f64::from(z)) as f32,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn slope(activation: Activation, z: f32) -> f32 {
    match activation {
        Activation::Relu => f32::from(u8::from(z > 0.0)),
        Activation::Silu => {
            let share = 1.0 / (1.0 + (-z).exp());
            share * (1.0 + z * (1.0 - share))
        }
        other => other.slope(f64::from(z)) as f32,
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
