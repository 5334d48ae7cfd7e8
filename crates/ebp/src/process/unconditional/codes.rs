//! Codes of sets.

use std::borrow::Cow;

use super::UnconditionalProcess;
use crate::data::CloudSource;
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

    /// σ, `[sets, k]`.
    pub fn std_devs(&self) -> Vec<f32> {
        self.log_std_dev.iter().map(|log_std_dev| log_std_dev.exp()).collect()
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
        let mut codes = self.no_codes();
        for part in sets.chunks(ENCODED_AT_ONCE) {
            self.encode_some(part, &mut codes)?;
        }
        Ok(codes)
    }

    /// The same of all sets of a source, a few at a time: they need not fit into memory together.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_source(&self, source: &CloudSource) -> Result<LatentCodes> {
        let mut codes = self.no_codes();
        for first in (0..source.num_sets()).step_by(ENCODED_AT_ONCE) {
            let last = source.num_sets().min(first + ENCODED_AT_ONCE);
            let sets: Vec<Cow<'_, [f32]>> = (first..last).map(|index| source.set(index)).collect();
            self.encode_some(&sets, &mut codes)?;
        }
        Ok(codes)
    }

    fn no_codes(&self) -> LatentCodes {
        LatentCodes { latent_dim: self.config.latent_dim, ..LatentCodes::default() }
    }

    fn encode_some<S: AsRef<[f32]>>(&self, sets: &[S], codes: &mut LatentCodes) -> Result<()> {
        let dim = self.config.value_dim;
        let mut points = Vec::new();
        for set in sets.iter().map(AsRef::as_ref) {
            if set.len() % dim != 0 {
                let expected = format!("points of {dim} numbers");
                return Err(Error::invalid("sets", expected, format!("{} numbers", set.len())));
            }
            points.extend_from_slice(set);
        }
        let offsets = SetOffsets::from_sizes(sets.iter().map(|set| set.as_ref().len() / dim))?;
        let encoded = self.networks.encoder()?.encode(points, &offsets)?;
        let flat = |tensor: &candle_core::Tensor| -> Result<Vec<f32>> {
            Ok(tensor.flatten_all()?.to_vec1()?)
        };
        codes.mean.extend(flat(&encoded.posterior.mean)?);
        codes.log_std_dev.extend(flat(&encoded.posterior.log_std_dev)?);
        codes.pooled.extend(flat(&encoded.pooled)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_that_follow_the_prior_are_not_active() {
        let codes = LatentCodes {
            latent_dim: 3,
            mean: vec![0.0, 1.0, 0.0, 0.0, -1.0, 0.0],
            // The third coordinate is N(0, 0.5²): it says something, though the same of every set.
            log_std_dev: vec![0.0, 0.0, 0.5_f32.ln(), 0.0, 0.0, 0.5_f32.ln()],
            pooled: Vec::new(),
        };
        assert_eq!((codes.num_sets(), codes.num_active()), (2, 2));
    }
}
