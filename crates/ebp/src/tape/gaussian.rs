//! Diagonal Gaussians: noise, draws and divergences.
//!
//! ```text
//! θ = μ + σ ξ,    KL(q ‖ p) = log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²)/(2 σ_p²) − ½   per coordinate
//! ```
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use super::lanes::exponential_of_any;
use super::{Array, Device, Shape, Tape, Var, cuda, loops};
use crate::Result;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
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
            let moved = |s, xi| exponential_of_any(s) * xi;
            let mut drawn = loops::zip(log_std_dev, noise.host()?, moved);
            loops::update(&mut drawn, mean, |moved, m| m + moved);
            Ok(drawn.into())
        }
        Device::Cuda(gpu) => cuda::draw(gpu, [mean.cuda()?, log_std_dev.cuda()?, noise.cuda()?]),
    }
}

/// ∂L/∂ log σ = g σ ξ.
fn draw_backward(device: &Device, [log_std_dev, noise, g]: [&Array; 3]) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let (log_std_dev, noise) = (log_std_dev.host()?, noise.host()?);
            let mut found = loops::zip(log_std_dev, g.host()?, |s, g| g * exponential_of_any(s));
            loops::update(&mut found, noise, |slope, xi| slope * xi);
            Ok(found.into())
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
            let mut terms = vec![0.0; m.len()];
            loops::each_part(&mut terms, 1, |start, terms| {
                let range = start..start + terms.len();
                let laws = [m, s, pm, ps].map(|law| &law[range.clone()]);
                Vectoriser::new().run(Divergence { laws, terms });
            });
            Ok(terms.into())
        }
        Device::Cuda(gpu) => cuda::kl(gpu, laws),
    }
}

/// log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²)/(2 σ_p²) − ½ of every coordinate.
struct Divergence<'a> {
    laws: [&'a [f32]; 4],
    terms: &'a mut [f32],
}

impl VectorLoop for Divergence<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [mean, log_std_dev, prior_mean, prior_log_std_dev] = self.laws;
        let own = mean.iter().zip(log_std_dev);
        let prior = prior_mean.iter().zip(prior_log_std_dev);
        for (term, ((&m, &s), (&pm, &ps))) in self.terms.iter_mut().zip(own.zip(prior)) {
            let squares = exponential_of_any(2.0 * s) + (m - pm) * (m - pm);
            *term = ps - s + 0.5 * squares * exponential_of_any(-2.0 * ps) - 0.5;
        }
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
            let precision = loops::map(ps, |ps| exponential_of_any(-2.0 * ps));
            let variance = loops::map(s, |s| exponential_of_any(2.0 * s));
            let way = loops::zip(m, pm, |m, pm| m - pm);
            // (σ_q²/σ_p² − 1) g and (1 − (σ_q² + way²)/σ_p²) g
            let mut of_scale = loops::zip(&variance, &precision, |v, p| v * p - 1.0);
            loops::update(&mut of_scale, g, |slope, g| g * slope);
            let mut of_prior_scale = loops::zip(&variance, &way, |v, way| v + way * way);
            loops::update(&mut of_prior_scale, &precision, |v, p| 1.0 - v * p);
            loops::update(&mut of_prior_scale, g, |slope, g| g * slope);
            let mut pull = loops::zip(g, &way, |g, way| g * way);
            loops::update(&mut pull, &precision, |pull, p| pull * p);
            let of_prior_mean = loops::map(&pull, |pull| -pull);
            Ok([pull, of_scale, of_prior_mean, of_prior_scale].map(Array::from))
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
