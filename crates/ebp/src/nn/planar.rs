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
//! All layers of all draws run as one operation, forward and back: as candle operations they
//! would be dozens of passes over small arrays.

use candle_core::Tensor;
use rayon::prelude::*;

use super::host::{HostView, Reversal, Reverse, checked, empty, record};
use crate::{Error, Result};

/// log √(2π)
const LOG_ROOT_TAU: f32 = 0.918_938_5;

/// What [`planar_flow`] gives back.
#[derive(Clone, Debug)]
pub struct PlanarTensors {
    /// The draws x, `[n, draws, d]`, in the graph.
    pub values: Tensor,
    /// log q(x), `[n, draws]`, in the graph.
    pub log_density: Tensor,
}

/// Sends `noise` through the planar layers whose parameters are `layers`.
///
/// # Shapes
///
/// `layers`: `[n, num_layers · (2 d + 1)]`, per layer `[w, u, b]`, differentiable. `noise`:
/// `[n, draws, d]`, standard normal numbers, a constant.
///
/// # Errors
///
/// [`Error::InvalidValue`] if shapes do not fit, [`Error::NonFinite`] if a draw overflows.
pub fn planar_flow(layers: &Tensor, noise: &Tensor) -> Result<PlanarTensors> {
    let &[n, draws, dims] = noise.dims() else {
        return Err(Error::invalid(
            "noise",
            "of shape [n, draws, d]",
            format!("{:?}", noise.dims()),
        ));
    };
    let &[_, width] = layers.dims() else {
        return Err(Error::invalid(
            "layers",
            "of shape [n, width]",
            format!("{:?}", layers.dims()),
        ));
    };
    if dims == 0 || !width.is_multiple_of(2 * dims + 1) {
        let expected = format!("a multiple of 2 d + 1 = {} columns", 2 * dims + 1);
        return Err(Error::invalid("layers", expected, width));
    }
    let layers = checked("layers", layers, &[n, width])?;
    let noise = checked("noise", noise, &[n, draws, dims])?;
    let flow = Flow { draws, dims, width };
    let values = {
        let layers = HostView::new("layers", &layers)?;
        let noise = HostView::new("noise", &noise)?;
        flow.forward(&layers, &noise)
    };
    crate::error::check_finite("planar draws", &values, "use smaller flow parameters")?;
    let nothing = empty((0, 0))?;
    let packed = record(values, (n, draws, dims + 1), [&layers, &noise, &nothing], flow)?;
    Ok(PlanarTensors {
        values: packed.narrow(2, 0, dims)?.contiguous()?,
        log_density: packed.narrow(2, dims, 1)?.squeeze(2)?,
    })
}

struct Flow {
    draws: usize,
    dims: usize,
    width: usize,
}

/// What a layer computes on the way forward.
struct Bend {
    h: f32,
    s: f32,
    m: f32,
    r: f32,
}

impl Flow {
    /// `[n, draws, d + 1]`: draws and their log-densities.
    fn forward(&self, layers: &[f32], noise: &[f32]) -> Vec<f32> {
        let (dims, per_set) = (self.dims, self.draws * self.dims);
        let mut out = vec![0.0; noise.len() / dims * (dims + 1)];
        out.par_chunks_mut(self.draws * (dims + 1)).enumerate().for_each(|(set, out)| {
            let layers = &layers[set * self.width..][..self.width];
            let noise = &noise[set * per_set..][..per_set];
            for (row, z) in out.chunks_exact_mut(dims + 1).zip(noise.chunks_exact(dims)) {
                let (x, log_density) = row.split_at_mut(dims);
                x.copy_from_slice(z);
                // log N(z; 0, I)
                let mut log_q: f32 = z.iter().map(|z| -0.5 * z * z - LOG_ROOT_TAU).sum();
                for layer in layers.chunks_exact(2 * dims + 1) {
                    let bend = bend(layer, x);
                    log_q -= (1.0 + (1.0 - bend.h * bend.h) * bend.m).ln();
                    for (x, u) in x.iter_mut().zip(&layer[dims..2 * dims]) {
                        *x += bend.r * u * bend.h;
                    }
                }
                log_density[0] = log_q;
            }
        });
        out
    }
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

impl Reverse for Flow {
    fn name(&self) -> &'static str {
        "planar-flow"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let [layers, noise, _] = reversal.arguments;
        let (dims, step) = (self.dims, 2 * self.dims + 1);
        let num_layers = self.width / step;
        let mut gradient = vec![0.0_f32; layers.len()];
        gradient.par_chunks_mut(self.width.max(1)).enumerate().for_each(|(set, gradient)| {
            let layers = &layers[set * self.width..][..self.width];
            // The places x on entry to every layer, and then the adjoint of x.
            let mut places = vec![0.0; num_layers * dims];
            let mut adjoint = vec![0.0; dims];
            for draw in 0..self.draws {
                let row = set * self.draws + draw;
                let mut x = noise[row * dims..][..dims].to_vec();
                for (place, layer) in places.chunks_exact_mut(dims).zip(layers.chunks_exact(step)) {
                    place.copy_from_slice(&x);
                    let bend = bend(layer, &x);
                    for (x, u) in x.iter_mut().zip(&layer[dims..2 * dims]) {
                        *x += bend.r * u * bend.h;
                    }
                }
                let cotangent = &reversal.cotangent[row * (dims + 1)..][..=dims];
                adjoint.copy_from_slice(&cotangent[..dims]);
                for index in (0..num_layers).rev() {
                    layer_backward(
                        &layers[index * step..][..step],
                        &places[index * dims..][..dims],
                        cotangent[dims],
                        &mut adjoint,
                        &mut gradient[index * step..][..step],
                    );
                }
            }
        });
        Ok([Some(gradient), Some(vec![0.0; noise.len()]), Some(Vec::new())])
    }
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

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::rng::Stream;

    fn normal(name: &str, shape: &[usize], scale: f32) -> Tensor {
        let mut values = vec![0.0; shape.iter().product()];
        Stream::new(3, name).fill_normal(0, 0, &mut values);
        for value in &mut values {
            *value *= scale;
        }
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    #[test]
    fn zero_parameters_are_the_identity() {
        let noise = normal("noise", &[2, 3, 2], 1.0);
        let layers = Tensor::zeros((2, 20), candle_core::DType::F32, &Device::Cpu).unwrap();
        let flow = planar_flow(&layers, &noise).unwrap();
        let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(flat(&flow.values), flat(&noise));
        let expected =
            -0.5 * flat(&noise)[..2].iter().map(|z| z * z).sum::<f32>() - 2.0 * LOG_ROOT_TAU;
        assert!((flat(&flow.log_density)[0] - expected).abs() < 1e-6);
    }

    /// The change of variables in one dimension: q(x) dx = N(z) dz along a fine grid of z.
    #[test]
    fn log_densities_follow_the_change_of_variables() {
        let count = 2001;
        let noise: Vec<f32> = (0..count).map(|i| (i as f32 - 1000.0) * 4e-3).collect();
        let noise = Tensor::from_vec(noise, (1, count, 1), &Device::Cpu).unwrap();
        let flow = planar_flow(&normal("layers", &[1, 15], 1.5), &noise).unwrap();
        let x = flow.values.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let log_q = flow.log_density.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let mut mass = 0.0_f64;
        for i in 1..count {
            assert!(x[i] > x[i - 1], "the flow keeps the order");
            let mean = 0.5 * (f64::from(log_q[i]).exp() + f64::from(log_q[i - 1]).exp());
            mass += mean * f64::from(x[i] - x[i - 1]);
        }
        // A normal has all but 6e-5 of its mass within 4; the rule's error is O(h²).
        assert!((mass - 1.0).abs() < 3e-4, "{mass}");
    }

    /// Fourth-order central differences of a loss that weighs draws and densities.
    #[test]
    fn gradients_match_differences() {
        for dims in [1, 2, 3] {
            let width = 4 * (2 * dims + 1);
            let noise = normal("noise", &[2, 3, dims], 1.0);
            let weights = normal("weights", &[2, 3, dims], 1.0);
            let density_weights = normal("density weights", &[2, 3], 1.0);
            let start = normal("layers", &[2, width], 0.8);
            let loss = |layers: &Tensor| {
                let flow = planar_flow(layers, &noise).unwrap();
                let a = (flow.values * &weights).unwrap().sum_all().unwrap();
                let b = (flow.log_density * &density_weights).unwrap().sum_all().unwrap();
                (a + b).unwrap()
            };
            let layers = Var::from_tensor(&start).unwrap();
            let gradients = loss(&layers).backward().unwrap();
            let gradient =
                gradients.get(&layers).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let flat = start.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for (index, expected) in gradient.iter().enumerate() {
                let at = |h: f32| {
                    let mut moved = flat.clone();
                    moved[index] += h;
                    let moved = Tensor::from_vec(moved, (2, width), &Device::Cpu).unwrap();
                    f64::from(loss(&moved).to_scalar::<f32>().unwrap())
                };
                let h = 2e-2_f32;
                let found =
                    (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * f64::from(h));
                // f32 losses of size ten: rounding 1e-6/h, truncation h⁴.
                assert!(
                    (found - f64::from(*expected)).abs() < 2e-3 * (1.0 + found.abs()),
                    "{dims} {index}: {found} {expected}"
                );
            }
        }
    }
}
