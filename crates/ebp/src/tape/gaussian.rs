//! Diagonal Gaussians: noise, draws and divergences.
//!
//! ```text
//! θ = μ + σ ξ,    KL(q ‖ p) = log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²)/(2 σ_p²) − ½   per coordinate
//! ```

use super::{Array, Device, Shape, Tape, Var, cuda};
use crate::Result;
use crate::point::cpu::vectorise::Vectoriser;
use crate::rng::Stream;

/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

/// A diagonal Gaussian per row, on a tape.
#[derive(Clone, Copy, Debug)]
pub struct Gaussian {
    /// μ, `[rows, k]`.
    pub mean: Var,
    /// log σ, `[rows, k]`.
    pub log_std_dev: Var,
}

fn normals(device: &Device, length: usize, stream: Stream) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let mut noise = vec![0.0; length];
            Vectoriser::new().fill_normal(stream, &mut noise);
            Ok(noise.into())
        }
        Device::Cuda(gpu) => cuda::normals(gpu, length, stream),
    }
}

fn draw(device: &Device, [mean, log_std_dev, noise]: [&Array; 3]) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let (mean, log_std_dev) = (mean.host()?, log_std_dev.host()?);
            let rows = mean.iter().zip(log_std_dev.iter()).zip(noise.host()?.iter());
            Ok(rows.map(|((m, s), xi)| m + s.exp() * xi).collect::<Vec<_>>().into())
        }
        Device::Cuda(gpu) => cuda::draw(gpu, [mean.cuda()?, log_std_dev.cuda()?, noise.cuda()?]),
    }
}

/// ∂L/∂ log σ = g σ ξ.
fn draw_backward(device: &Device, [log_std_dev, noise, g]: [&Array; 3]) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let (log_std_dev, noise) = (log_std_dev.host()?, noise.host()?);
            let rows = log_std_dev.iter().zip(noise.iter()).zip(g.host()?.iter());
            Ok(rows.map(|((s, xi), g)| g * s.exp() * xi).collect::<Vec<_>>().into())
        }
        Device::Cuda(gpu) => {
            cuda::draw_backward(gpu, [log_std_dev.cuda()?, noise.cuda()?, g.cuda()?])
        }
    }
}

/// μ_q, log σ_q, μ_p, log σ_p.
type Laws = [Array; 4];

fn kl(device: &Device, laws: &Laws) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let [mean, log_std_dev, prior_mean, prior_log_std_dev] = laws;
            let (m, s) = (mean.host()?, log_std_dev.host()?);
            let (pm, ps) = (prior_mean.host()?, prior_log_std_dev.host()?);
            let term = |i: usize| {
                let squares = (2.0 * s[i]).exp() + (m[i] - pm[i]).powi(2);
                ps[i] - s[i] + 0.5 * squares * (-2.0 * ps[i]).exp() - 0.5
            };
            Ok((0..m.len()).map(term).collect::<Vec<_>>().into())
        }
        Device::Cuda(gpu) => cuda::kl(gpu, laws),
    }
}

/// Gradients with respect to the four arguments.
fn kl_backward(device: &Device, laws: &Laws, g: &Array) -> Result<Laws> {
    match device {
        Device::Cpu(_) => {
            let [mean, log_std_dev, prior_mean, prior_log_std_dev] = laws;
            let (m, s) = (mean.host()?, log_std_dev.host()?);
            let (pm, ps) = (prior_mean.host()?, prior_log_std_dev.host()?);
            let g = g.host()?;
            let mut out: [Vec<f32>; 4] = std::array::from_fn(|_| Vec::with_capacity(m.len()));
            for i in 0..m.len() {
                let precision = (-2.0 * ps[i]).exp();
                let (variance, way) = ((2.0 * s[i]).exp(), m[i] - pm[i]);
                let pull = g[i] * way * precision;
                out[0].push(pull);
                out[1].push(g[i] * (variance * precision - 1.0));
                out[2].push(-pull);
                out[3].push(g[i] * (1.0 - (variance + way * way) * precision));
            }
            Ok(out.map(Array::from))
        }
        Device::Cuda(gpu) => cuda::kl_backward(gpu, laws, g.cuda()?),
    }
}

impl Tape {
    /// Standard normals of a stream, the same numbers on every device.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn normals(&mut self, shape: Shape, stream: Stream) -> Result<Var> {
        let noise = normals(self.device(), shape.0 * shape.1, stream)?;
        self.constant(noise, shape)
    }

    /// N(0, I) in every row.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn standard_gaussian(&mut self, shape: Shape) -> Result<Gaussian> {
        let zeros = self.device().zeros(shape.0 * shape.1)?;
        let zeros = self.constant(zeros, shape)?;
        Ok(Gaussian { mean: zeros, log_std_dev: zeros })
    }

    /// μ + σ ξ with ξ from a stream.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn draw(&mut self, law: Gaussian, stream: Stream) -> Result<Var> {
        let shape = self.shape(law.mean);
        self.check("log_std_dev", law.log_std_dev, shape)?;
        let (mean, log_std_dev) = (self.array(law.mean), self.array(law.log_std_dev).clone());
        let noise = normals(self.device(), shape.0 * shape.1, stream)?;
        let value = draw(self.device(), [mean, &log_std_dev, &noise])?;
        Ok(self.record(&[law.mean, law.log_std_dev], value, shape, move |reversal| {
            let g = reversal.cotangent()?;
            let of_scale =
                reversal.when(1, || draw_backward(reversal.device, [&log_std_dev, &noise, g]))?;
            Ok(vec![Some(g.clone()), of_scale])
        }))
    }

    /// log N(x; μ, σ²) of every coordinate, `[rows, k]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn log_density(&mut self, values: Var, law: Gaussian) -> Result<Var> {
        self.check("values", values, self.shape(law.mean))?;
        // z = (x − μ)/σ,   log N = −½ z² − log σ − ½ log 2π
        let centred = self.subtract(values, law.mean)?;
        let shrink = self.affine(law.log_std_dev, -1.0, 0.0)?;
        let shrink = self.exp(shrink)?;
        let standard = self.multiply(centred, shrink)?;
        let squares = self.square(standard)?;
        let terms = self.affine(squares, -0.5, -LOG_ROOT_TAU)?;
        self.subtract(terms, law.log_std_dev)
    }

    /// KL(law ‖ prior) of every coordinate, `[rows, k]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn kl(&mut self, law: Gaussian, prior: Gaussian) -> Result<Var> {
        let shape = self.shape(law.mean);
        let inputs = [law.mean, law.log_std_dev, prior.mean, prior.log_std_dev];
        for (field, var) in
            ["mean", "log_std_dev", "prior mean", "prior log_std_dev"].iter().zip(inputs)
        {
            self.check(field, var, shape)?;
        }
        let laws = inputs.map(|var| self.array(var).clone());
        let value = kl(self.device(), &laws)?;
        Ok(self.record(&inputs, value, shape, move |reversal| {
            let found = kl_backward(reversal.device, &laws, reversal.cotangent()?)?;
            Ok(found.into_iter().map(Some).collect())
        }))
    }
}
