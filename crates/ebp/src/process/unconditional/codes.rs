//! Codes of sets, and a law of codes to draw new ones from.

use super::UnconditionalProcess;
use crate::linalg::{Cholesky, Matrix};
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Sets that are encoded together.
const ENCODED_AT_ONCE: usize = 64;

/// What the encoder says about sets: q(θ | set) = N(μ, diag σ²), and the features before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatentCodes {
    /// k, the size of θ.
    pub latent_dim: usize,
    /// μ, `[sets, k]`.
    pub mean: Vec<f32>,
    /// log σ, `[sets, k]`.
    pub log_std_dev: Vec<f32>,
    /// The pooled features, `[sets, width]`.
    pub pooled: Vec<f32>,
}

impl LatentCodes {
    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.mean.len() / self.latent_dim.max(1)
    }

    /// Latent coordinates whose KL to N(0, 1) exceeds 0.01 nats on average.
    pub fn num_active(&self) -> usize {
        let mut kl = vec![0.0_f64; self.latent_dim];
        let rows = self.mean.chunks_exact(self.latent_dim.max(1));
        for (mean, log_std_dev) in rows.zip(self.log_std_dev.chunks_exact(self.latent_dim.max(1))) {
            for (kl, (m, s)) in kl.iter_mut().zip(mean.iter().zip(log_std_dev)) {
                let (m, s) = (f64::from(*m), f64::from(*s));
                *kl += 0.5 * ((2.0 * s).exp() + m * m - 1.0) - s;
            }
        }
        kl.iter().filter(|kl| **kl > 0.01 * self.num_sets() as f64).count()
    }
}

impl UnconditionalProcess {
    /// Encodes sets of standardised points `[n, d]` of any sizes, whole and without noise.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySet`] if a set has no points, [`Error::InvalidValue`] if one does not have
    /// whole points, [`Error::NonFinite`] if a number is not finite.
    pub fn encode(&self, sets: &[&[f32]]) -> Result<LatentCodes> {
        let dim = self.config.value_dim;
        let mut codes =
            LatentCodes { latent_dim: self.config.latent_dim, ..LatentCodes::default() };
        for part in sets.chunks(ENCODED_AT_ONCE) {
            if let Some(set) = part.iter().find(|set| set.len() % dim != 0) {
                let expected = format!("points of {dim} numbers");
                return Err(Error::invalid("sets", expected, format!("{} numbers", set.len())));
            }
            let offsets = SetOffsets::from_sizes(part.iter().map(|set| set.len() / dim))?;
            let encoded = self.encoder.encode(part.concat(), &offsets)?;
            let flat = |tensor: &candle_core::Tensor| -> Result<Vec<f32>> {
                Ok(tensor.flatten_all()?.to_vec1()?)
            };
            codes.mean.extend(flat(&encoded.posterior.mean)?);
            codes.log_std_dev.extend(flat(&encoded.posterior.log_std_dev)?);
            codes.pooled.extend(flat(&encoded.pooled)?);
        }
        Ok(codes)
    }
}

/// A Gaussian with full covariance, fitted to codes: the law of μ + σ ξ over the sets. A learned
/// p(θ); results that use it say so.
#[derive(Clone, Debug)]
pub struct GaussianCodes {
    mean: Vec<f64>,
    factor: Cholesky,
}

impl GaussianCodes {
    /// Fits mean and covariance.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are no codes, [`Error::NotPositiveDefinite`] if they are
    /// not finite.
    pub fn fit(codes: &LatentCodes) -> Result<Self> {
        let (k, n) = (codes.latent_dim, codes.num_sets());
        if n == 0 {
            return Err(Error::invalid("codes", "of at least one set", n));
        }
        let mut mean = vec![0.0; k];
        for code in codes.mean.chunks_exact(k) {
            mean.iter_mut().zip(code).for_each(|(sum, m)| *sum += f64::from(*m) / n as f64);
        }
        // Cov[μ + σ ξ] = Cov[μ] + diag E[σ²]
        let mut covariance = Matrix::zeros(k, k);
        for code in codes.mean.chunks_exact(k) {
            let centred: Vec<f64> =
                code.iter().zip(&mean).map(|(m, c)| f64::from(*m) - c).collect();
            for (column, factor) in centred.iter().enumerate() {
                let entries = &mut covariance.column_mut(column)[column..];
                for (entry, row) in entries.iter_mut().zip(&centred[column..]) {
                    *entry += factor * row / n as f64;
                }
            }
        }
        for code in codes.log_std_dev.chunks_exact(k) {
            for (axis, log_std_dev) in code.iter().enumerate() {
                let variance = (2.0 * f64::from(*log_std_dev)).exp();
                covariance.column_mut(axis)[axis] += variance / n as f64;
            }
        }
        let factor = Cholesky::new(Matrix::zeros(k, k), |storage| {
            storage.entries_mut().copy_from_slice(covariance.entries());
        })?;
        Ok(Self { mean, factor })
    }

    /// `count` codes, `[count, k]`.
    #[expect(clippy::cast_possible_truncation, reason = "codes are f32")]
    pub fn sample(&self, count: usize, stream: Stream) -> Vec<f32> {
        let k = self.mean.len();
        let mut codes = Vec::with_capacity(count * k);
        let mut noise = vec![0.0; k];
        for number in 0..count {
            stream.fill_normal(0, (number * k) as u64, &mut noise);
            let noise: Vec<f64> = noise.iter().map(|&xi| f64::from(xi)).collect();
            let moved = self.factor.multiply_lower(&noise);
            codes.extend(moved.iter().zip(&self.mean).map(|(x, m)| (x + m) as f32));
        }
        codes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fitted_gaussian_has_the_moments_of_the_codes() {
        // μ on a line (t, −2 t + 1), σ = (0.5, 1): covariance [[v + ¼, −2v], [−2v, 4v + 1]].
        let t: Vec<f32> = (0..9_u8).map(|i| f32::from(i) / 4.0 - 1.0).collect();
        let codes = LatentCodes {
            latent_dim: 2,
            mean: t.iter().flat_map(|t| [*t, 1.0 - 2.0 * t]).collect(),
            log_std_dev: t.iter().flat_map(|_| [0.5_f32.ln(), 0.0]).collect(),
            pooled: Vec::new(),
        };
        let fitted = GaussianCodes::fit(&codes).unwrap();
        let count = 20_000;
        let drawn = fitted.sample(count, Stream::new(1, "codes"));
        let n = f64::from(u32::try_from(count).unwrap());
        let mean =
            |g: fn(&[f32]) -> f32| drawn.chunks_exact(2).map(|c| f64::from(g(c))).sum::<f64>() / n;
        let v = t.iter().map(|t| f64::from(t * t)).sum::<f64>() / 9.0;
        // Standard errors of means are √(var/n) ≤ 0.014, of products about √2 times the product.
        assert!(mean(|c| c[0]).abs() < 0.03);
        assert!((mean(|c| c[1]) - 1.0).abs() < 0.06);
        assert!((mean(|c| c[0] * c[0]) - v - 0.25).abs() < 0.03);
        assert!((mean(|c| c[0] * (c[1] - 1.0)) + 2.0 * v).abs() < 0.06);
        assert!((mean(|c| (c[1] - 1.0) * (c[1] - 1.0)) - 4.0 * v - 1.0).abs() < 0.13);
        assert_eq!(codes.num_active(), 2);
    }
}
