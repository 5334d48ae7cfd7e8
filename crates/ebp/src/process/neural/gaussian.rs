//! Gaussians with independent coordinates: outputs of decoders and laws of latents.

use candle_core::{D, Tensor};

use super::ragged::host_numbers;
use crate::Result;

const LOG_TWO_PI: f64 = 1.837_877_066_409_345_3;

/// N(mean, std_dev²), coordinate by coordinate; both tensors of the same shape.
#[derive(Clone, Debug)]
pub(super) struct Gaussian {
    pub(super) mean: Tensor,
    pub(super) std_dev: Tensor,
}

impl Gaussian {
    /// The output law of a decoder: the first half of each row of `raw` `[rows, 2 d]` is the
    /// mean, the second gives σ = floor + (1 − floor) softplus(s).
    pub(super) fn from_decoder(raw: &Tensor, min_std_dev: f64) -> Result<Self> {
        let (mean, s) = halves(raw)?;
        // softplus(s) = max(s, 0) + log(1 + exp(−|s|))
        let softplus = (s.relu()? + (s.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
        let std_dev = softplus.affine(1.0 - min_std_dev, min_std_dev)?;
        Ok(Self { mean, std_dev })
    }

    /// The law of a latent, as published: σ = 0.1 + 0.9 sigmoid(s).
    pub(super) fn from_latent_head(raw: &Tensor) -> Result<Self> {
        let (mean, s) = halves(raw)?;
        let std_dev = candle_nn::ops::sigmoid(&s)?.affine(0.9, 0.1)?;
        Ok(Self { mean, std_dev })
    }

    /// mean + σ ε.
    pub(super) fn reparameterised(&self, noise: &Tensor) -> Result<Tensor> {
        Ok((&self.mean + (&self.std_dev * noise)?)?)
    }

    /// Σ log N(x; mean, σ²) over all entries.
    pub(super) fn log_density_sum(&self, values: &Tensor) -> Result<Tensor> {
        let z = ((values - &self.mean)? / &self.std_dev)?;
        // log N = −½ z² − log σ − ½ log 2π
        let terms = (z.sqr()?.affine(-0.5, -0.5 * LOG_TWO_PI)? - self.std_dev.log()?)?;
        Ok(terms.sum_all()?)
    }

    /// Σ KL(self ‖ prior) over all entries.
    pub(super) fn kl_sum(&self, prior: &Self) -> Result<Tensor> {
        let ratio = (&self.std_dev / &prior.std_dev)?;
        let shift = ((&self.mean - &prior.mean)? / &prior.std_dev)?;
        // KL = ½ (σ²/σ₀² + (μ − μ₀)²/σ₀² − 1) − log(σ/σ₀)
        let terms = ((ratio.sqr()? + shift.sqr()?)?.affine(0.5, -0.5)? - ratio.log()?)?;
        Ok(terms.sum_all()?)
    }

    /// The same numbers on the host, row-major.
    pub(super) fn to_host(&self) -> Result<HostGaussian> {
        Ok(HostGaussian { mean: host_numbers(&self.mean)?, std_dev: host_numbers(&self.std_dev)? })
    }
}

/// As [`Gaussian`], in f64.
#[derive(Clone, Debug)]
pub(super) struct HostGaussian {
    pub(super) mean: Vec<f64>,
    pub(super) std_dev: Vec<f64>,
}

impl HostGaussian {
    /// log N of `values`, which stand at the entries from `start` on.
    pub(super) fn log_density(&self, start: usize, values: &[f64]) -> f64 {
        let moments = self.mean[start..].iter().zip(&self.std_dev[start..]);
        let terms = values.iter().zip(moments).map(|(x, (mean, std_dev))| {
            let z = (x - mean) / std_dev;
            // log N = −½ z² − log σ − ½ log 2π
            -0.5 * z * z - std_dev.ln() - 0.5 * LOG_TWO_PI
        });
        terms.sum()
    }

    /// mean + σ ε at each entry.
    pub(super) fn shifted(&self, noise: &[f32]) -> Vec<f64> {
        let moments = self.mean.iter().zip(&self.std_dev);
        moments.zip(noise).map(|((mean, std_dev), &e)| mean + std_dev * f64::from(e)).collect()
    }
}

/// The first and the second half of each row.
fn halves(raw: &Tensor) -> Result<(Tensor, Tensor)> {
    let half = raw.dim(D::Minus1)? / 2;
    Ok((raw.narrow(D::Minus1, 0, half)?, raw.narrow(D::Minus1, half, half)?))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn gaussian(mean: f32, std_dev: f32) -> Gaussian {
        let tensor = |x: f32| Tensor::new(&[[x]], &Device::Cpu).unwrap();
        Gaussian { mean: tensor(mean), std_dev: tensor(std_dev) }
    }

    #[test]
    fn densities_and_divergences_have_their_closed_forms() {
        let p = gaussian(1.0, 2.0);
        let x = Tensor::new(&[[4.0_f32]], &Device::Cpu).unwrap();
        // −½ (3/2)² − log 2 − ½ log 2π
        let expected = -1.125 - 2_f64.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln();
        let found = p.log_density_sum(&x).unwrap().to_scalar::<f32>().unwrap();
        assert!((f64::from(found) - expected).abs() < 1e-6);
        assert!((p.to_host().unwrap().log_density(0, &[4.0]) - expected).abs() < 1e-12);
        // KL(N(0, 1) ‖ N(1, 4)) = log 2 + (1 + 1)/8 − ½
        let kl = gaussian(0.0, 1.0).kl_sum(&p).unwrap().to_scalar::<f32>().unwrap();
        assert!((f64::from(kl) - (2_f64.ln() - 0.25)).abs() < 1e-6, "{kl}");
        assert!(p.kl_sum(&p).unwrap().to_scalar::<f32>().unwrap().abs() < 1e-7);
    }

    #[test]
    fn the_floor_holds_and_large_outputs_do_not_overflow() {
        let raw =
            Tensor::new(&[[0.0_f32, -200.0], [0.0, 0.0], [0.0, 200.0]], &Device::Cpu).unwrap();
        let std_dev = Gaussian::from_decoder(&raw, 0.1).unwrap().to_host().unwrap().std_dev;
        for (found, expected) in std_dev.iter().zip([0.1, 0.1 + 0.9 * 2_f64.ln(), 180.1]) {
            assert!((found - expected).abs() < 1e-5 * expected, "{found} {expected}");
        }
    }
}
