//! How likely sets and points are.
//!
//! ```text
//! log p(x₁, …, xₙ) = log E_q(θ|x) [ ∏ᵢ p(xᵢ | θ) · p(θ)/q(θ | x) ],   p(x | θ) = exp u(x; θ)/Z(θ)
//! ```
//!
//! Z by importance sampling on a grid, the expectation by a mean over draws of θ: an estimate from
//! below on average, closer with more draws. Both have standard errors. A point on its own is judged
//! at θ = μ of its set.

use rayon::prelude::*;

use super::UnconditionalProcess;
use crate::point::PointBatch;
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// What a model says about a set, in units of the standardised data.
#[derive(Clone, Debug, PartialEq)]
pub struct SetScore {
    /// −u of every point at θ = μ, without Z: low is likely.
    pub energies: Vec<f32>,
    /// log p(xᵢ | θ = μ) of every point.
    pub log_densities: Vec<f32>,
    /// log Z(μ), whose error all `log_densities` share.
    pub log_partition: LogDensity,
    /// KL(q(θ | set) ‖ N(0, I)) in nats.
    pub kl: f64,
    /// log p(x₁, …, xₙ) with θ ~ N(0, I).
    pub log_likelihood: LogDensity,
}

impl SetScore {
    /// The mean energy of the points.
    pub fn mean_energy(&self) -> f64 {
        let sum: f64 = self.energies.iter().map(|&e| f64::from(e)).sum();
        sum / self.energies.len().max(1) as f64
    }
}

impl UnconditionalProcess {
    /// Scores sets of standardised points `[n, d]` of any sizes, with `num_draws` draws of θ each
    /// and `num_proposals` for every log Z.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode); [`Error::InvalidValue`] if there are no draws.
    pub fn score(
        &self,
        sets: &[&[f32]],
        num_draws: usize,
        num_proposals: usize,
        stream: Stream,
    ) -> Result<Vec<SetScore>> {
        if num_draws == 0 {
            return Err(Error::invalid("num_draws", "at least 1", num_draws));
        }
        let codes = self.encode(sets)?;
        let (k, dim) = (self.config.latent_dim, self.config.value_dim);
        let at_mean = self.log_partition(&codes.mean, num_proposals, stream.child(0))?;
        let mut scores = Vec::with_capacity(sets.len());
        for (number, set) in sets.iter().enumerate() {
            let stream = stream.child(1 + number as u64);
            let (mean, log_std_dev) =
                (&codes.mean[number * k..][..k], &codes.log_std_dev[number * k..][..k]);
            let mut noise = vec![0.0; num_draws * k];
            stream.child(0).fill_normal(0, 0, &mut noise);
            let theta: Vec<f32> = noise
                .chunks_exact(k)
                .flat_map(|noise| {
                    let moved = noise.iter().zip(mean.iter().zip(log_std_dev));
                    moved.map(|(xi, (m, s))| m + s.exp() * xi)
                })
                .collect();
            let partitions = self.log_partition(&theta, num_proposals, stream.child(1))?;
            let n = (set.len() / dim) as f64;
            let sums = self.sums(set, &theta)?;
            let terms: Vec<f64> = (0..num_draws)
                .map(|draw| {
                    let row = draw * k..(draw + 1) * k;
                    let theta = theta[row.clone()].iter().zip(&noise[row]);
                    // log p(θ) − log q(θ) = Σ ½(ξ² − θ²) + log σ
                    let prior: f64 = theta
                        .zip(log_std_dev)
                        .map(|((t, xi), s)| f64::from(0.5 * (xi * xi - t * t) + s))
                        .sum();
                    sums[draw] - n * partitions[draw].value + prior
                })
                .collect();
            let mut log_likelihood = LogDensity::of_mean(&terms);
            // n log Z is as uncertain as n times log Z, on top of what θ adds.
            let from_partition = n * at_mean[number].std_error;
            log_likelihood.std_error = log_likelihood.std_error.hypot(from_partition);
            let u = self.log_potentials(set, mean)?;
            #[expect(clippy::cast_possible_truncation, reason = "log densities of points are f32")]
            let log_z = at_mean[number].value as f32;
            let terms = mean.iter().zip(log_std_dev);
            scores.push(SetScore {
                energies: u.iter().map(|u| -u).collect(),
                log_densities: u.iter().map(|u| u - log_z).collect(),
                log_partition: at_mean[number],
                kl: terms.map(|(m, s)| f64::from(0.5 * ((2.0 * s).exp() + m * m - 1.0) - s)).sum(),
                log_likelihood,
            });
        }
        Ok(scores)
    }

    /// u of every point `[n, d]` at one θ `[k]`: log p up to log Z.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] or [`Error::NonFinite`] naming what does not fit.
    pub fn log_potentials(&self, points: &[f32], theta: &[f32]) -> Result<Vec<f32>> {
        let dim = self.config.value_dim;
        let offsets = SetOffsets::from_sizes([points.len() / dim])?;
        let batch = PointBatch { elements: points, offsets: &offsets, context: theta };
        let f = self.networks.backend().values(&self.calibrated_mlp()?, &batch)?;
        Ok(f.par_iter().zip(points.par_chunks_exact(dim)).map(|(f, x)| f + self.base(x)).collect())
    }

    /// Σᵢ u(xᵢ; θ) for each row of `theta`, in f64: a sum of thousands of f32 loses digits.
    fn sums(&self, points: &[f32], theta: &[f32]) -> Result<Vec<f64>> {
        theta
            .chunks_exact(self.config.latent_dim)
            .map(|theta| {
                Ok(self.log_potentials(points, theta)?.iter().map(|&u| f64::from(u)).sum())
            })
            .collect()
    }
}
