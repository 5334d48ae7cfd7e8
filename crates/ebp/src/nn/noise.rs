//! Standard normals as tensors.

use candle_core::{Device, Shape, Tensor};

use crate::Result;
use crate::rng::Stream;

/// Standard normals of any shape, the first ones of step 0 of `stream`; a constant.
///
/// # Errors
///
/// None in practice: the numbers fit the shape.
pub fn normals(shape: impl Into<Shape>, stream: Stream) -> Result<Tensor> {
    let shape = shape.into();
    let mut noise = vec![0.0; shape.elem_count()];
    stream.fill_normal(0, 0, &mut noise);
    Ok(Tensor::from_vec(noise, shape, &Device::Cpu)?)
}
