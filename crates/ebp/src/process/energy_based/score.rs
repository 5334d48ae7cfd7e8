//! How likely sets and points are.
//!
//! ```text
//! log p(x₁, …, xₙ) = log E_q(θ|x) [ ∏ᵢ p(xᵢ | θ) · p(θ)/q(θ | x) ],   p(x | θ) = exp u(x; θ)/Z(θ)
//! ```
//!
//! Z(μ) by importance sampling (`around.rs`), with as many proposals as its error asks for; Z of every
//! draw of θ by its ratio to Z(μ) on points that follow exp u(·; μ):
//!
//! ```text
//! Z(θ)/Z(μ) = E_x∼p(·|μ) exp(u(x; θ) − u(x; μ))
//! ```
//!
//! θ is near μ, so that a few thousand points are enough, and all draws share them and the error of
//! Z(μ): an error of its own for each draw would be multiplied by n, and the mean over draws would take
//! the luckiest one. The mean is closer with more draws, of which `effective_draws` count. All parts have
//! standard errors. A point on its own is judged at θ = μ of its set.

use rayon::prelude::*;

use super::grid::{effective, resample};
use super::{EnergyBasedProcess, LOG_ROOT_TAU, PartitionBounds};
use crate::latent::{Prior, StandardPrior};
use crate::point::{CandidateValues, PointBatch, PointMlp};
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// What a model says about a set: a process in units of the standardised data, a model of clouds in
/// those of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct SetScore {
    /// −u of every point at θ = μ, without Z: low is likely.
    pub energies: Vec<f32>,
    /// log p(xᵢ | θ = μ) of every point.
    pub log_densities: Vec<f32>,
    /// log Z(μ), whose error all `log_densities` share.
    pub log_partition: LogDensity,
    /// log Z(μ) from both sides, by a learned sampler whose density is known anywhere.
    pub partition_bounds: Option<PartitionBounds>,
    /// KL(q(θ | set) ‖ N(0, I)) in nats.
    pub kl: f64,
    /// log p(x₁, …, xₙ) with θ integrated out.
    pub log_likelihood: LogDensity,
    /// Draws of θ that count in it, (Σw)²/Σw²: where they are few, more draws would raise it, by more than
    /// its error says.
    pub effective_draws: f64,
}

impl SetScore {
    /// The mean energy of the points.
    pub fn mean_energy(&self) -> f64 {
        let sum: f64 = self.energies.iter().map(|&e| f64::from(e)).sum();
        sum / self.energies.len().max(1) as f64
    }
}

impl EnergyBasedProcess {
    /// Scores sets of standardised points `[n, d]` of any sizes with θ ~ N(0, I), with `num_draws` draws
    /// of θ each and at most `num_proposals` for log Z: fewer where its standard error is already 0.01.
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
        let codes = self.encode(&self.point_sets(sets)?)?;
        let prior = StandardPrior { dim: self.config.latent_dim };
        let counts = (num_draws, num_proposals);
        let score = |(number, set): (usize, &&[f32])| {
            let stream = stream.child(1 + number as u64);
            self.score_set(set, codes.of_set(number), &prior, counts, stream)
        };
        sets.iter().enumerate().map(score).collect()
    }

    /// Scores one set by its code, μ and log σ of q(θ | set), and a law of θ.
    pub(crate) fn score_set(
        &self,
        set: &[f32],
        (mean, log_std_dev): (&[f32], &[f32]),
        law: &dyn Prior,
        (num_draws, num_proposals): (usize, usize),
        stream: Stream,
    ) -> Result<SetScore> {
        if num_draws == 0 {
            return Err(Error::invalid("num_draws", "at least 1", num_draws));
        }
        let k = self.config.latent_dim;
        let mlp = &self.element_network()?;
        let n = (set.len() / self.space.value_dim) as f64;
        let mut noise = vec![0.0; num_draws * k];
        stream.child(0).fill_normal(0, 0, &mut noise);
        let drawn = noise.chunks_exact(k).flat_map(|noise| {
            let moved = noise.iter().zip(mean.iter().zip(log_std_dev));
            moved.map(|(xi, (m, s))| m + s.exp() * xi)
        });
        // μ first, then the draws.
        let theta: Vec<f32> = mean.iter().copied().chain(drawn).collect();
        let around = self.around(mlp, set, mean, num_proposals, stream.child(1))?;
        let log_partition = LogDensity::of_mean(&around.log_weights);
        // Points that follow exp u(·; μ).
        let count = around.log_weights.len().min(RATIO_PLACES);
        let following = resample(&around, self.space.value_dim, count, stream.child(2));
        let ratios = self.partition_ratios(mlp, &following, &theta)?;
        let partition_bounds = self.partition_bounds(mean, &following, stream.child(3))?;
        let points = self.candidate_potentials(mlp, set, &theta)?;
        let (at_mean, at_draws) = points.split_at(set.len() / self.space.value_dim);
        let laws = law.log_density(&theta[k..])?;
        let terms: Vec<f64> = (0..num_draws)
            .map(|draw| {
                // log q(θ) = Σ −½ξ² − log σ − ½ log 2π
                let noise = noise[draw * k..].iter().zip(log_std_dev);
                let q: f64 = noise
                    .map(|(xi, s)| -0.5 * f64::from(xi * xi) - f64::from(*s) - LOG_ROOT_TAU)
                    .sum();
                // In f64: a sum of thousands of f32 loses digits.
                let u = at_draws[draw * at_mean.len()..][..at_mean.len()].iter();
                let sum: f64 = u.map(|&u| f64::from(u)).sum();
                sum - n * (log_partition.value + ratios[draw].value) + laws[draw] - q
            })
            .collect();
        let effective_draws = effective(&terms);
        let mut log_likelihood = LogDensity::of_mean(&terms);
        // n log Z is as uncertain as n times log Z, on top of what θ adds; of the ratios those of the
        // draws that count.
        let shares = terms.iter().map(|term| (term - log_likelihood.value).exp());
        let of_ratios: f64 =
            shares.zip(&ratios).map(|(share, ratio)| share * ratio.std_error).sum();
        let of_partition = log_partition.std_error.hypot(of_ratios / num_draws as f64);
        log_likelihood.std_error = log_likelihood.std_error.hypot(n * of_partition);
        #[expect(clippy::cast_possible_truncation, reason = "log densities of points are f32")]
        let log_z = log_partition.value as f32;
        let terms = mean.iter().zip(log_std_dev);
        Ok(SetScore {
            energies: at_mean.iter().map(|u| -u).collect(),
            log_densities: at_mean.iter().map(|u| u - log_z).collect(),
            log_partition,
            partition_bounds,
            kl: terms.map(|(m, s)| f64::from(0.5 * ((2.0 * s).exp() + m * m - 1.0) - s)).sum(),
            log_likelihood,
            effective_draws,
        })
    }

    /// log Z(θ) − log Z(μ) of every θ but the first, which is μ.
    fn partition_ratios(
        &self,
        mlp: &PointMlp,
        following: &[f32],
        theta: &[f32],
    ) -> Result<Vec<LogDensity>> {
        let count = following.len() / self.space.value_dim;
        let u = self.candidate_potentials(mlp, following, theta)?;
        let (at_mean, at_draws) = u.split_at(count);
        let difference = |(a, b): (&f32, &f32)| f64::from(*a) - f64::from(*b);
        let ratio = |u: &[f32]| -> LogDensity {
            LogDensity::of_mean(&u.iter().zip(at_mean).map(difference).collect::<Vec<f64>>())
        };
        Ok(at_draws.chunks_exact(count).map(ratio).collect())
    }

    /// u of the same points `[n, d]` at every θ, `[θ, n]`.
    fn candidate_potentials(
        &self,
        mlp: &PointMlp,
        points: &[f32],
        theta: &[f32],
    ) -> Result<Vec<f32>> {
        let dim = self.space.value_dim;
        let count = points.len() / dim;
        let mut u = self.candidate_values(mlp, theta, CandidateValues::Shared(points), count)?;
        let base: Vec<f32> = points.chunks_exact(dim).map(|x| self.base(x)).collect();
        u.par_chunks_exact_mut(count)
            .for_each(|u| u.iter_mut().zip(&base).for_each(|(u, base)| *u += base));
        Ok(u)
    }

    /// u of every point `[n, d]` at one θ `[k]`: log p up to log Z.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] or [`Error::NonFinite`] naming what does not fit.
    pub fn log_potentials(&self, points: &[f32], theta: &[f32]) -> Result<Vec<f32>> {
        let dim = self.space.value_dim;
        let offsets = SetOffsets::from_sizes([points.len() / dim])?;
        let batch = PointBatch { elements: points, offsets: &offsets, context: theta };
        let f = self.device.backend().values(&self.element_network()?, &batch)?;
        Ok(f.par_iter().zip(points.par_chunks_exact(dim)).map(|(f, x)| f + self.base(x)).collect())
    }
}

/// Points that compare Z of the draws of θ with Z(μ).
const RATIO_PLACES: usize = 2048;
