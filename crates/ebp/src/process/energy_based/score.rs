//! How likely sets and points are.
//!
//! ```text
//! log p(x₁, …, xₙ) = log E_q(θ|x) [ ∏ᵢ p(xᵢ | θ) · p(θ)/q(θ | x) ],   p(x | θ) = exp u(x; θ)/Z(θ)
//! ```
//!
//! Z by importance sampling (`around.rs`), with as many proposals as its error asks for. θ is drawn
//! from a Gaussian around the mode of p(θ | x) (`laplace.rs`), with more draws until the tail of their
//! weights is light enough for the mean to be believed (`pareto.rs`) or there may be no more. Z of all
//! draws is compared with that at the mode on the same places: an error of its own for each draw would
//! be multiplied by n, and the mean over draws would take the luckiest one. The stated error contains
//! that of the weights of θ, of Z, and of its ratios. A point on its own is judged at θ = μ of its set.
//! Points outside of the domain are impossible.

use rayon::prelude::*;

use super::grid::{effective, resample};
use super::laplace::{Laplace, Question};
use super::{EnergyBasedProcess, PartitionBounds};
use crate::latent::{Prior, StandardPrior};
use crate::point::{CandidateValues, PointBatch, PointMlp};
use crate::process::pareto::{HOLDS, pareto_shape};
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// How θ is integrated out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreSettings {
    /// Draws of θ per set at first; 0: the Gaussian around the mode is taken for the law itself
    /// (Laplace's approximation).
    pub num_draws: usize,
    /// Draws are doubled up to this many until the result holds.
    pub most_draws: usize,
    /// Proposals for a normaliser, at most.
    pub num_proposals: usize,
}

impl Default for ScoreSettings {
    fn default() -> Self {
        Self { num_draws: 32, most_draws: 128, num_proposals: 32_768 }
    }
}

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
    /// Points outside of the domain, which are impossible.
    pub outside: usize,
    /// log p(x₁, …, xₙ) with θ integrated out: −∞ if a point is outside.
    pub log_likelihood: LogDensity,
    /// The same of the points inside alone.
    pub inside: LogDensity,
    /// Draws of θ; 0 for Laplace's approximation.
    pub num_draws: usize,
    /// Those that count, (Σw)²/Σw².
    pub effective_draws: f64,
    /// Pareto k̂ of their weights, where it can be told: see [`pareto_shape`].
    pub pareto_k: Option<f64>,
    /// Whether the stated error can be believed: k̂ is below 0.7, and the error that draws of θ leave
    /// is at most what the normaliser may be off.
    pub holds: bool,
    /// Values of the energy that were computed, a gradient counted as two.
    pub num_evaluations: usize,
}

impl SetScore {
    /// The mean energy of the points.
    pub fn mean_energy(&self) -> f64 {
        let sum: f64 = self.energies.iter().map(|&e| f64::from(e)).sum();
        sum / self.energies.len().max(1) as f64
    }
}

impl EnergyBasedProcess {
    /// Scores sets of standardised points `[n, d]` of any sizes with θ ~ N(0, I).
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn score(
        &self,
        sets: &[&[f32]],
        settings: &ScoreSettings,
        stream: Stream,
    ) -> Result<Vec<SetScore>> {
        let codes = self.encode(&self.point_sets(sets)?)?;
        let prior = StandardPrior { dim: self.config.latent_dim };
        let score = |(number, set): (usize, &&[f32])| {
            let stream = stream.child(1 + number as u64);
            self.score_set(set, codes.of_set(number), &prior, settings, stream)
        };
        sets.iter().enumerate().map(score).collect()
    }

    /// Scores one set by its code, μ and log σ of q(θ | set), and a law of θ.
    pub(crate) fn score_set(
        &self,
        set: &[f32],
        (mean, log_std_dev): (&[f32], &[f32]),
        law: &dyn Prior,
        settings: &ScoreSettings,
        stream: Stream,
    ) -> Result<SetScore> {
        let dim = self.space.value_dim;
        let mlp = &self.element_network()?;
        let domain = self.space.low..=self.space.high;
        let is_inside = |x: &[f32]| x.iter().all(|x| domain.contains(x));
        let inside: Vec<f32> =
            set.chunks_exact(dim).filter(|x| is_inside(x)).flatten().copied().collect();
        let outside = (set.len() - inside.len()) / dim;
        let around = self.around(mlp, set, mean, settings.num_proposals, stream.child(1))?;
        let log_partition = LogDensity::of_mean(&around.log_weights);
        let count = around.log_weights.len().min(BOUND_PLACES);
        let following = resample(&around, dim, count, stream.child(2));
        let partition_bounds = self.partition_bounds(mean, &following, stream.child(3))?;
        let at_mean = self.log_potentials(set, mean)?;
        #[expect(clippy::cast_possible_truncation, reason = "log densities of points are f32")]
        let log_z = log_partition.value as f32;
        let points = at_mean.iter().zip(set.chunks_exact(dim));
        let log_densities = points
            .map(|(u, x)| if is_inside(x) { u - log_z } else { f32::NEG_INFINITY })
            .collect();
        let own = around.log_weights.len() + self.coarse_cells() + at_mean.len();
        let question =
            Question { mlp, set: &inside, log_std_dev, law, num_proposals: settings.num_proposals };
        let mut integral = if inside.is_empty() {
            Integral::nothing()
        } else {
            let laplace = self.laplace(&question, mean, &around, stream.child(4))?;
            self.integrate(&question, &laplace, settings, stream.child(5))?
        };
        integral.num_evaluations += own;
        let impossible = LogDensity { value: f64::NEG_INFINITY, std_error: 0.0 };
        let terms = mean.iter().zip(log_std_dev);
        Ok(SetScore {
            energies: at_mean.iter().map(|u| -u).collect(),
            log_densities,
            log_partition,
            partition_bounds,
            kl: terms.map(|(m, s)| f64::from(0.5 * ((2.0 * s).exp() + m * m - 1.0) - s)).sum(),
            outside,
            log_likelihood: if outside > 0 { impossible } else { integral.value },
            inside: integral.value,
            num_draws: integral.num_draws,
            effective_draws: integral.effective_draws,
            pareto_k: integral.pareto_k,
            holds: integral.holds,
            num_evaluations: integral.num_evaluations,
        })
    }

    /// log ∫ exp ℓ by draws of θ from the Gaussian, more and more of them.
    fn integrate(
        &self,
        question: &Question<'_>,
        laplace: &Laplace,
        settings: &ScoreSettings,
        stream: Stream,
    ) -> Result<Integral> {
        let n = (question.set.len() / self.space.value_dim) as f64;
        // n log Z is as uncertain as n times log Z, whatever θ is; so is what its slope adds.
        let shared = (n * laplace.log_partition.std_error).hypot(laplace.excess_error());
        if settings.num_draws == 0 {
            let value = laplace.log_likelihood - laplace.excess;
            return Ok(Integral {
                value: LogDensity { value, std_error: shared },
                num_evaluations: laplace.num_evaluations,
                ..Integral::nothing()
            });
        }
        let (mut terms, mut errors) = (Vec::new(), Vec::new());
        let mut wanted = settings.num_draws;
        for round in 0..u64::from(u32::MAX) {
            let count = wanted - terms.len();
            let (more, more_errors) = self.weigh_draws(question, laplace, count, stream.child(round))?;
            terms.extend(more);
            errors.extend(more_errors);
            let mut value = LogDensity::of_mean(&terms);
            let of_draws = value.std_error;
            // Of the ratios those of the draws that count.
            let shares = terms.iter().map(|term| (term - value.value).exp());
            let of_ratios: f64 = shares.zip(&errors).map(|(share, error)| share * error).sum();
            let of_ratios = n * of_ratios / terms.len() as f64;
            let pareto_k = pareto_shape(&terms);
            let holds = pareto_k.is_some_and(|k| k < HOLDS) && of_draws <= n * super::TARGET_ERROR;
            if holds || terms.len() >= settings.most_draws {
                let per_draw = (question.set.len() + laplace.places.len()) / self.space.value_dim;
                value.value -= laplace.excess;
                value.std_error = of_draws.hypot(of_ratios).hypot(shared);
                return Ok(Integral {
                    value,
                    num_draws: terms.len(),
                    effective_draws: effective(&terms),
                    pareto_k,
                    holds,
                    num_evaluations: laplace.num_evaluations + terms.len() * per_draw,
                });
            }
            wanted = (2 * terms.len()).min(settings.most_draws);
        }
        Ok(Integral::nothing())
    }

    /// log of the integrand over the proposal's density for fresh draws, and errors of their ratios of Z.
    fn weigh_draws(
        &self,
        question: &Question<'_>,
        laplace: &Laplace,
        count: usize,
        stream: Stream,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let k = self.config.latent_dim;
        let n = question.set.len() / self.space.value_dim;
        let (theta, log_q) = laplace.draw(count, stream);
        let laws = question.law.log_density(&theta)?;
        let of_points = self.candidate_potentials(question.mlp, question.set, &theta)?;
        let of_places = self.candidate_potentials(question.mlp, &laplace.places, &theta)?;
        let num_places = laplace.potentials.len();
        let term = |draw: usize| {
            let places = &of_places[draw * num_places..][..num_places];
            let ratio = laplace.ratio(&theta[draw * k..][..k], places);
            // In f64: a sum of thousands of f32 loses digits.
            let sum: f64 = of_points[draw * n..][..n].iter().map(|&u| f64::from(u)).sum();
            let log_z = laplace.log_partition.value + ratio.value;
            (sum - n as f64 * log_z + laws[draw] - log_q[draw], ratio.std_error)
        };
        Ok((0..count).map(term).unzip())
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

/// log ∫ p(x | θ) p(θ) dθ, and how well it is known.
struct Integral {
    value: LogDensity,
    num_draws: usize,
    effective_draws: f64,
    pareto_k: Option<f64>,
    holds: bool,
    num_evaluations: usize,
}

impl Integral {
    /// Of no points and without draws.
    fn nothing() -> Self {
        let value = LogDensity { value: 0.0, std_error: 0.0 };
        let (num_draws, num_evaluations) = (0, 0);
        let (effective_draws, pareto_k, holds) = (0.0, None, false);
        Self { value, num_draws, effective_draws, pareto_k, holds, num_evaluations }
    }
}

/// Points by which a learned sampler bounds log Z from above.
const BOUND_PLACES: usize = 2048;
