//! Codes of sets: q(θ | set).

use std::ops::Range;

use super::EnergyBasedProcess;
use crate::batch::SetBatch;
use crate::{Error, Result};

/// Sets that are encoded at once.
pub(crate) const ENCODED_AT_ONCE: usize = 64;

/// Posteriors of sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatentCodes {
    /// k.
    pub latent_dim: usize,
    /// μ, `[sets, k]`.
    pub mean: Vec<f32>,
    /// log σ, `[sets, k]`.
    pub log_std_dev: Vec<f32>,
    /// What the posterior pooled, `[sets, width]`: features for other uses.
    pub pooled: Vec<f32>,
}

impl LatentCodes {
    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.mean.len() / self.latent_dim.max(1)
    }

    /// μ and log σ of a set.
    pub(crate) fn of_set(&self, set: usize) -> (&[f32], &[f32]) {
        let k = self.latent_dim;
        (&self.mean[set * k..][..k], &self.log_std_dev[set * k..][..k])
    }

    /// KL(q(θ | set) ‖ N(0, I)) in nats.
    pub(crate) fn kl_of_set(&self, set: usize) -> f64 {
        standard_kl(self.of_set(set))
    }

    /// Those of some sets.
    fn rows(mut self, sets: Range<usize>) -> Self {
        let count = self.num_sets().max(1);
        for values in [&mut self.mean, &mut self.log_std_dev, &mut self.pooled] {
            let width = values.len() / count;
            values.truncate(sets.end * width);
            values.drain(..sets.start * width);
        }
        self
    }

    /// The codes of further sets after these.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.mean.append(&mut others.mean);
        self.log_std_dev.append(&mut others.log_std_dev);
        self.pooled.append(&mut others.pooled);
    }

    /// σ, `[sets, k]`.
    pub fn std_devs(&self) -> Vec<f32> {
        self.log_std_dev.iter().map(|log_std_dev| log_std_dev.exp()).collect()
    }

    /// Coordinates whose KL from N(0, 1) is above 0.01 nats on average.
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

/// KL(N(μ, diag σ²) ‖ N(0, I)) of μ and log σ.
pub(super) fn standard_kl((mean, log_std_dev): (&[f32], &[f32])) -> f64 {
    let terms = mean.iter().zip(log_std_dev);
    terms.map(|(m, s)| f64::from(0.5 * ((2.0 * s).exp() + m * m - 1.0) - s)).sum()
}

impl EnergyBasedProcess {
    /// q(θ | set) of every set, with all of its elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if sets do not fit the process.
    pub fn encode(&self, sets: &SetBatch) -> Result<LatentCodes> {
        let (found, space) = ((sets.location_dim(), sets.value_dim()), &self.space);
        if found != (space.location_dim, space.value_dim) {
            let (dt, dx) = (space.location_dim, space.value_dim);
            let expected = format!("locations of {dt} and values of {dx} numbers");
            return Err(Error::invalid("sets", expected, format!("{found:?}")));
        }
        self.encode_each(sets.num_sets(), |set, part| {
            part.push(sets.locations(set), sets.values(set))
        })
    }

    /// The same of `count` sets that are fetched as they are needed: `push` puts the set with the
    /// number it is given into a batch. Only a few are in memory at a time.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode) and `push`.
    pub fn encode_each(
        &self,
        count: usize,
        push: impl Fn(usize, &mut SetBatch) -> Result<()>,
    ) -> Result<LatentCodes> {
        self.encode_range(count, 0..count, push)
    }

    /// The sets `range` of `count`, in the company in which all of them are encoded, so that no bit of
    /// their codes depends on the range.
    ///
    /// # Errors
    ///
    /// As [`encode_each`](Self::encode_each).
    pub fn encode_range(
        &self,
        count: usize,
        range: Range<usize>,
        push: impl Fn(usize, &mut SetBatch) -> Result<()>,
    ) -> Result<LatentCodes> {
        let mut codes =
            LatentCodes { latent_dim: self.config.latent_dim, ..LatentCodes::default() };
        let start = range.start / ENCODED_AT_ONCE * ENCODED_AT_ONCE;
        let end = range.end.next_multiple_of(ENCODED_AT_ONCE).min(count);
        for first in (start..end).step_by(ENCODED_AT_ONCE) {
            let mut part = SetBatch::new(self.space.location_dim, self.space.value_dim);
            for set in first..count.min(first + ENCODED_AT_ONCE) {
                push(set, &mut part)?;
            }
            let rows = self.parts.posterior.rows(&part)?.upload(&self.device)?;
            let mut tape = self.device.tape();
            tape.read(&self.parameters);
            let read = self.parts.posterior.read(&mut tape, &rows)?;
            codes.mean.extend(tape.download(read.law.mean)?);
            codes.log_std_dev.extend(tape.download(read.law.log_std_dev)?);
            codes.pooled.extend(tape.download(read.features)?);
        }
        Ok(codes.rows(range.start - start..range.end - start))
    }

    /// Sets of points `[n, d]` as a batch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if one is not of whole points.
    pub fn point_sets<S: AsRef<[f32]>>(&self, sets: &[S]) -> Result<SetBatch> {
        let mut batch = SetBatch::new(0, self.space.value_dim);
        sets.iter().try_for_each(|set| batch.push(&[], set.as_ref()))?;
        Ok(batch)
    }

    /// −‖x‖²/(2 s₀²).
    pub(super) fn base(&self, x: &[f32]) -> f32 {
        self.domain().base(x)
    }
}
