//! Planar flows (Rezende and Mohamed, 2015): draws with an exact log-density, fused.
//!
//! Starting from a standard normal z, every layer bends space along one direction:
//!
//! ```text
//! h = tanh(w·x + b),   s = w·u,   x' = x + r(s) u h,   log q' = log q − log(1 + (1 − h²) m(s))
//! m(s) = softplus(s + ln(e − 1)) − 1,   r(s) = m(s)/s
//! ```
//!
//! w·(r u) = m(s) > −1 keeps the layer invertible. The usual û = u + (m − s) w/‖w‖² is singular at
//! w = 0 and, with softplus(0) − 1 = −0.307, starts as a shrinking map; this form is the identity
//! at zero parameters and smooth everywhere.
//!
//! All layers of all draws run as one operation, forward and back.

mod cpu;
mod terms;

use super::{Array, Device, Tape, Var, cuda};
use crate::rng::Stream;
use crate::{Error, Result};

/// Draws of a sampler on a tape.
#[derive(Clone, Copy, Debug)]
pub struct PlanarDraws {
    /// `[rows · draws, d]`.
    pub values: Var,
    /// log q, `[rows · draws, 1]`.
    pub log_density: Var,
}

/// How many draws each row of layers makes, and in how many dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) draws: usize,
    pub(super) dims: usize,
    /// Numbers of all layers of a row.
    pub(super) width: usize,
}

impl Tape {
    /// `draws` draws of every row's flow; the layers `[rows, layers · (2 d + 1)]` are w, u and b of
    /// one layer after the other.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn planar(
        &mut self,
        layers: Var,
        dims: usize,
        draws: usize,
        stream: Stream,
    ) -> Result<PlanarDraws> {
        let (rows, width) = self.shape(layers);
        if dims == 0 || !width.is_multiple_of(2 * dims + 1) {
            let expected = format!("a multiple of 2 d + 1 = {} columns", 2 * dims + 1);
            return Err(Error::invalid("layers", expected, width));
        }
        if draws == 0 {
            return Err(Error::invalid("draws", "at least 1", draws));
        }
        let flow = Flow { draws, dims, width };
        let noise = self.normals((rows * draws, dims), stream)?;
        let (written, noise) = (self.array(layers).clone(), self.array(noise).clone());
        let [values, log_density] = forward(self.device(), flow, [&written, &noise])?;
        let total = rows * draws;
        let outputs = vec![(values, (total, dims)), (log_density, (total, 1))];
        let values = self.record_all(&[layers], outputs, move |reversal| {
            let cotangents = [reversal.cotangents[0].as_ref(), reversal.cotangents[1].as_ref()];
            let found = backward(reversal.device, flow, [&written, &noise], cotangents)?;
            Ok(vec![Some(found)])
        });
        Ok(PlanarDraws { values, log_density: Var(values.0 + 1) })
    }
}

fn forward(device: &Device, flow: Flow, [layers, noise]: [&Array; 2]) -> Result<[Array; 2]> {
    match device {
        Device::Cpu(_) => Ok(cpu::forward(flow, layers.host()?, noise.host()?).map(Array::from)),
        Device::Cuda(gpu) => cuda::planar(gpu, flow, [layers.cuda()?, noise.cuda()?]),
    }
}

fn backward(
    device: &Device,
    flow: Flow,
    [layers, noise]: [&Array; 2],
    cotangents: [Option<&Array>; 2],
) -> Result<Array> {
    let [of_values, of_densities] = cotangents;
    match device {
        Device::Cpu(_) => {
            let of_values = of_values.map(Array::host).transpose()?;
            let of_densities = of_densities.map(Array::host).transpose()?;
            let cotangents =
                [of_values.map(|given| &given[..]), of_densities.map(|given| &given[..])];
            Ok(cpu::backward(flow, layers.host()?, noise.host()?, cotangents).into())
        }
        Device::Cuda(gpu) => {
            let of_values = of_values.map(Array::cuda).transpose()?;
            let of_densities = of_densities.map(Array::cuda).transpose()?;
            let arrays = [layers.cuda()?, noise.cuda()?];
            cuda::planar_backward(gpu, flow, arrays, [of_values, of_densities])
        }
    }
}
