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

use rayon::prelude::*;

use super::{Array, Device, Tape, Var, cuda};
use crate::rng::Stream;
use crate::{Error, Result};

/// ½ log 2π.
const LOG_ROOT_TAU: f32 = 0.918_938_5;

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
    let Flow { draws, dims, width } = flow;
    if let Device::Cuda(gpu) = device {
        return cuda::planar(gpu, flow, [layers.cuda()?, noise.cuda()?]);
    }
    let (layers, noise) = (layers.host()?, noise.host()?);
    let mut values = noise.to_vec();
    let mut log_densities = vec![0.0; noise.len() / dims];
    values
        .par_chunks_mut(draws * dims)
        .zip(log_densities.par_chunks_mut(draws))
        .enumerate()
        .for_each(|(row, (values, log_densities))| {
            let layers = &layers[row * width..][..width];
            for (x, log_density) in values.chunks_exact_mut(dims).zip(log_densities) {
                // log N(z; 0, I)
                let mut log_q: f32 = x.iter().map(|z| -0.5 * z * z - LOG_ROOT_TAU).sum();
                for layer in layers.chunks_exact(2 * dims + 1) {
                    let bend = bend(layer, x);
                    log_q -= (1.0 + (1.0 - bend.h * bend.h) * bend.m).ln();
                    for (x, u) in x.iter_mut().zip(&layer[dims..2 * dims]) {
                        *x += bend.r * u * bend.h;
                    }
                }
                *log_density = log_q;
            }
        });
    Ok([values.into(), log_densities.into()])
}

fn backward(
    device: &Device,
    flow: Flow,
    [layers, noise]: [&Array; 2],
    [of_values, of_densities]: [Option<&Array>; 2],
) -> Result<Array> {
    let Flow { draws, dims, width } = flow;
    if let Device::Cuda(gpu) = device {
        let cotangents =
            [of_values.map(Array::cuda).transpose()?, of_densities.map(Array::cuda).transpose()?];
        return cuda::planar_backward(gpu, flow, [layers.cuda()?, noise.cuda()?], cotangents);
    }
    let (layers, noise) = (layers.host()?, noise.host()?);
    let host = |array: Option<&Array>| array.map(|array| array.host().cloned()).transpose();
    let (of_values, of_densities) = (host(of_values)?, host(of_densities)?);
    let step = 2 * dims + 1;
    let num_layers = width / step;
    let mut gradient = vec![0.0_f32; layers.len()];
    gradient.par_chunks_mut(width.max(1)).enumerate().for_each(|(row, gradient)| {
        let layers = &layers[row * width..][..width];
        // The places x on entry to every layer, and then the adjoint of x.
        let mut places = vec![0.0; num_layers * dims];
        let mut adjoint = vec![0.0; dims];
        for draw in row * draws..(row + 1) * draws {
            let mut x = noise[draw * dims..][..dims].to_vec();
            for (place, layer) in places.chunks_exact_mut(dims).zip(layers.chunks_exact(step)) {
                place.copy_from_slice(&x);
                let bend = bend(layer, &x);
                for (x, u) in x.iter_mut().zip(&layer[dims..2 * dims]) {
                    *x += bend.r * u * bend.h;
                }
            }
            match &of_values {
                Some(given) => adjoint.copy_from_slice(&given[draw * dims..][..dims]),
                None => adjoint.fill(0.0),
            }
            let density_adjoint = of_densities.as_ref().map_or(0.0, |given| given[draw]);
            for index in (0..num_layers).rev() {
                layer_backward(
                    &layers[index * step..][..step],
                    &places[index * dims..][..dims],
                    density_adjoint,
                    &mut adjoint,
                    &mut gradient[index * step..][..step],
                );
            }
        }
    });
    Ok(gradient.into())
}

/// What a layer computes on the way forward.
struct Bend {
    h: f32,
    s: f32,
    m: f32,
    r: f32,
}

fn bend(layer: &[f32], x: &[f32]) -> Bend {
    let dims = x.len();
    let (w, u, b) = (&layer[..dims], &layer[dims..2 * dims], layer[2 * dims]);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let s = dot(w, u);
    let (m, r, _, _) = slope_terms(s);
    Bend { h: (dot(w, x) + b).tanh(), s, m, r }
}

/// m(s), r(s) = m(s)/s and their derivatives.
fn slope_terms(s: f32) -> (f32, f32, f32, f32) {
    const SHIFT: f32 = 0.541_324_85; // ln(e − 1), where softplus is 1
    let z = s + SHIFT;
    let m = z.max(0.0) + (-z.abs()).exp().ln_1p() - 1.0;
    let m_slope = 1.0 / (1.0 + (-z).exp());
    // Near zero m/s loses its digits; Taylor: m′(0) + m″(0) s/2 + m‴(0) s²/6 + …
    if s.abs() < 0.05 {
        let (a, b, c) = (0.632_120_55, 0.116_272_08, -0.010_241_27);
        return (s * (a + s * (b + s * c)), a + s * (b + s * c), m_slope, b + 2.0 * s * c);
    }
    let r = m / s;
    (m, r, m_slope, (m_slope - r) / s)
}

/// Takes the adjoint of x' to that of x and adds to the layer's gradient. With q̄ = ∂L/∂log q:
///
/// ```text
/// ψ = (1 − h²) m,  ψ̄ = −q̄/(1 + ψ),  h̄ = r x̄'·u − 2 h m ψ̄,  m̄ = (1 − h²) ψ̄,  r̄ = h x̄'·u
/// ā = (1 − h²) h̄,  s̄ = m′ m̄ + r′ r̄,   w̄ = ā x + s̄ u,  ū = r h x̄' + s̄ w,  b̄ = ā,  x̄ = x̄' + ā w
/// ```
fn layer_backward(
    layer: &[f32],
    x: &[f32],
    density_adjoint: f32,
    adjoint: &mut [f32],
    gradient: &mut [f32],
) {
    let dims = x.len();
    let Bend { h, s, m, r } = bend(layer, x);
    let (_, _, m_slope, r_slope) = slope_terms(s);
    let (w, u) = (&layer[..dims], &layer[dims..2 * dims]);
    let bent = 1.0 - h * h;
    let along: f32 = adjoint.iter().zip(u).map(|(a, u)| a * u).sum();
    let psi_adjoint = -density_adjoint / (1.0 + bent * m);
    let h_adjoint = r * along - 2.0 * h * m * psi_adjoint;
    let a_adjoint = bent * h_adjoint;
    let s_adjoint = m_slope * bent * psi_adjoint + r_slope * h * along;
    for i in 0..dims {
        gradient[i] += a_adjoint * x[i] + s_adjoint * u[i];
        gradient[dims + i] += r * h * adjoint[i] + s_adjoint * w[i];
        adjoint[i] += a_adjoint * w[i];
    }
    gradient[2 * dims] += a_adjoint;
}
