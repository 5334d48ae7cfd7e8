//! How likely clouds and their points are.
//!
//! ```text
//! log p(x₁, …, xₙ) = log E_q(θ|x) [ ∏ᵢ p(xᵢ | θ) · p(θ)/q(θ | x) ],   p(x | θ) = exp u(x; θ)/Z(θ)
//! ```
//!
//! p(θ) is the law that clouds are drawn with. Z by importance sampling on a grid, the expectation by
//! a mean over draws of θ: an estimate from below on average, closer with more draws. Both have
//! standard errors. A point on its own is judged at θ = μ of its set.

use super::{CloudModel, PriorKind};
use crate::data::CloudSource;
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result};

/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ScoreOptions {
    /// The law of θ.
    pub prior: PriorKind,
    /// Draws of θ per set.
    pub num_draws: usize,
    /// Proposals for each normaliser.
    pub num_proposals: usize,
    /// All randomness.
    pub stream: Stream,
}

impl Default for ScoreOptions {
    fn default() -> Self {
        Self {
            prior: PriorKind::Kernel,
            num_draws: 8,
            num_proposals: 32_768,
            stream: Stream::new(0, "score"),
        }
    }
}

/// What a model says about a cloud, densities in the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudScore {
    /// −u of every point at θ = μ, without Z: low is likely.
    pub energies: Vec<f32>,
    /// log p(xᵢ | θ = μ) of every point.
    pub log_densities: Vec<f32>,
    /// KL(q(θ | set) ‖ N(0, I)) in nats.
    pub kl: f64,
    /// log p(x₁, …, xₙ) with θ integrated out.
    pub log_likelihood: LogDensity,
}

impl CloudScore {
    /// The mean energy of the points.
    pub fn mean_energy(&self) -> f64 {
        let sum: f64 = self.energies.iter().map(|&energy| f64::from(energy)).sum();
        sum / self.energies.len().max(1) as f64
    }
}

impl CloudModel {
    /// Scores clouds in the units of the data, one after the other: `take` gets the number of each and
    /// what was found, so that neither the clouds nor all their points' numbers need be in memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the clouds do not fit or there are no draws; as
    /// [`prior`](Self::prior).
    pub fn score(
        &self,
        clouds: &CloudSource,
        options: &ScoreOptions,
        take: &mut dyn FnMut(usize, CloudScore),
    ) -> Result<()> {
        let ScoreOptions { prior, num_draws, num_proposals, stream } = *options;
        if num_draws == 0 {
            return Err(Error::invalid("num_draws", "at least 1", num_draws));
        }
        let prior = self.prior(prior).map_err(|error| {
            let message = format!("the law of θ needs the codes of the training sets: {error}");
            Error::refused(message).with_help("`--prior standard` needs none")
        })?;
        let clouds = self.standardise(clouds)?;
        let codes = self.encode_standardised(&clouds)?;
        let k = self.latent_dim();
        let at_mean = self.process.log_partition(&codes.mean, num_proposals, stream.child(0))?;
        // Densities of data are those of standardised points over scaleᵈ.
        let shift = self.dim() as f64 * f64::from(self.scale.affine.scale).ln();
        for (number, at_mean) in at_mean.iter().enumerate() {
            let cloud = &*clouds.set(number);
            let stream = stream.child(1 + number as u64);
            let mean = &codes.mean[number * k..][..k];
            let log_std_dev = &codes.log_std_dev[number * k..][..k];
            let mut noise = vec![0.0; num_draws * k];
            stream.child(0).fill_normal(0, 0, &mut noise);
            let moved = |noise: &[f32]| -> Vec<f32> {
                let terms = noise.iter().zip(mean.iter().zip(log_std_dev));
                terms.map(|(xi, (m, s))| m + s.exp() * xi).collect()
            };
            let theta: Vec<f32> = noise.chunks_exact(k).flat_map(moved).collect();
            let partitions = self.process.log_partition(&theta, num_proposals, stream.child(1))?;
            let n = (cloud.len() / self.dim()) as f64;
            let mut terms = Vec::with_capacity(num_draws);
            let priors = prior.log_density(&theta)?;
            for (draw, (theta, noise)) in
                theta.chunks_exact(k).zip(noise.chunks_exact(k)).enumerate()
            {
                // In f64: a sum of thousands of f32 loses digits.
                let u = self.process.log_potentials(cloud, theta)?;
                let u: f64 = u.iter().map(|&u| f64::from(u)).sum();
                // log q(θ) = Σ −½ξ² − log σ − ½ log 2π
                let q: f64 = noise
                    .iter()
                    .zip(log_std_dev)
                    .map(|(xi, s)| -0.5 * f64::from(xi * xi) - f64::from(*s) - LOG_ROOT_TAU)
                    .sum();
                terms.push(u - n * partitions[draw].value + priors[draw] - q);
            }
            let mut log_likelihood = LogDensity::of_mean(&terms);
            log_likelihood.value -= n * shift;
            // n log Z is as uncertain as n times log Z, on top of what θ adds.
            let from_partition = n * at_mean.std_error;
            log_likelihood.std_error = log_likelihood.std_error.hypot(from_partition);
            let u = self.process.log_potentials(cloud, mean)?;
            #[expect(clippy::cast_possible_truncation, reason = "log densities of points are f32")]
            let log_z = (at_mean.value + shift) as f32;
            let kl = mean.iter().zip(log_std_dev);
            let score = CloudScore {
                energies: u.iter().map(|u| -u).collect(),
                log_densities: u.iter().map(|u| u - log_z).collect(),
                kl: kl.map(|(m, s)| f64::from(0.5 * ((2.0 * s).exp() + m * m - 1.0) - s)).sum(),
                log_likelihood,
            };
            take(number, score);
        }
        Ok(())
    }
}
