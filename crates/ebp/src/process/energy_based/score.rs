//! How likely sets and points are.
//!
//! ```text
//! log p(x₁, …, xₙ) = log E_q(θ|x) [ ∏ᵢ p(xᵢ | θ) · p(θ)/q(θ | x) ],   p(x | θ) = exp u(x; θ)/Z(θ)
//! ```
//!
//! Z by importance sampling (`around.rs`), with as many proposals as its error asks for. θ is drawn
//! from a Gaussian around the mode of p(θ | x) (`laplace.rs`) and walks from there to p(θ | x) itself in
//! stages whose weights are light enough for their means to be believed (`walk.rs`, `pareto.rs`), as
//! long as there may be more draws. Z of all
//! draws is compared with that at the mode on the same places: an error of its own for each draw would
//! be multiplied by n, and the mean over draws would take the luckiest one. The stated error contains
//! that of the weights of θ, of Z, and of its ratios. A point on its own is judged at θ = μ of its set.
//! Points outside of the domain are impossible. A value above what the set's own nearest neighbours allow
//! (`neighbours.rs`) cannot be right, whatever its error: mass of exp u was missed.

use rayon::prelude::*;

use super::around::TARGET_ERROR;
use super::codes::standard_kl;
use super::grid::{Weighted, resample};
use super::laplace::{Laplace, Question};
use super::points::GRID_DIMENSIONS;
use super::{BoundedPartition, EnergyBasedProcess, PartitionBounds};
use crate::latent::{Prior, StandardPrior};
use crate::point::{CandidateValues, PointBatch, PointMlp};
use crate::process::LogDensity;
use crate::process::neighbours::neighbour_density;
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// How θ is integrated out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreSettings {
    /// Draws of θ per set that go together; 0: the Gaussian around the mode is taken for the law
    /// itself (Laplace's approximation).
    pub num_draws: usize,
    /// Draws that may be looked at in all, with those of every stage on the way.
    pub most_draws: usize,
    /// Proposals for a normaliser, at most.
    pub num_proposals: usize,
}

impl Default for ScoreSettings {
    fn default() -> Self {
        Self { num_draws: 32, most_draws: 2048, num_proposals: 32_768 }
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
    /// log p(μ) under the law of θ: how likely such a set is to be drawn, whatever its points.
    pub log_law: f64,
    /// The share of sets trained on for which it is as small, each by a law fitted to the others: small
    /// for sets that are not such as the model was trained on. `None` where no codes of them are known.
    pub rank: Option<f64>,
    /// Points outside of the domain, which are impossible.
    pub outside: usize,
    /// log p(x₁, …, xₙ) with θ integrated out: −∞ if a point is outside.
    pub log_likelihood: LogDensity,
    /// The same of the points inside alone.
    pub inside: LogDensity,
    /// Draws of θ that were looked at; 0 for Laplace's approximation.
    pub num_draws: usize,
    /// Those of one stage that count, (Σw)²/Σw², where they are fewest.
    pub effective_draws: f64,
    /// Pareto k̂ of the weights, the largest of all stages, where it can be told.
    pub pareto_k: Option<f64>,
    /// Whether the stated error can be believed: k̂ is below 0.7, that of the places for Z too, new places
    /// do not move the mode of p(θ | set), the error that draws of θ leave is at most what the
    /// normaliser may be off, and the value can be right.
    pub holds: bool,
    /// Nats per point of those inside by their own nearest neighbours: hardly any density has more.
    /// `None` of few points, or beyond three dimensions.
    pub neighbours: Option<LogDensity>,
    /// Whether the value is not above them by more than could be known beside them.
    pub is_possible: bool,
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
        let ordered = ordered(set, dim);
        let inside: Vec<f32> =
            ordered.chunks_exact(dim).filter(|x| is_inside(x)).flatten().copied().collect();
        let outside = (set.len() - inside.len()) / dim;
        let (around, log_partition, partition_bounds) =
            self.normaliser(mlp, &ordered, mean, settings.num_proposals, stream)?;
        let at_mean = self.log_potentials(set, mean)?;
        #[expect(clippy::cast_possible_truncation, reason = "log densities of points are f32")]
        let log_z = log_partition.value as f32;
        let points = at_mean.iter().zip(set.chunks_exact(dim));
        let log_densities =
            points.map(|(u, x)| if is_inside(x) { u - log_z } else { f32::NEG_INFINITY }).collect();
        let own = around.log_weights.len() + self.particle_evaluations() + at_mean.len();
        let question =
            Question { mlp, set: &inside, log_std_dev, law, num_proposals: settings.num_proposals };
        let mut integral = if inside.is_empty() {
            Integral::nothing()
        } else {
            let laplace = self.laplace(&question, mean, around, stream.child(4))?;
            self.integrate(&question, &laplace, settings, stream.child(5))?
        };
        integral.num_evaluations += own;
        let num_inside = inside.len() / dim;
        let can_tell = num_inside >= FEWEST_NEIGHBOURS && dim <= GRID_DIMENSIONS;
        let neighbours = if can_tell { neighbour_density(&inside, dim) } else { None };
        let is_possible = neighbours.is_none_or(|allowed| {
            let known = KNOWN_BESIDE + 4.0 * allowed.std_error;
            integral.value.value <= num_inside as f64 * (allowed.value + known)
        });
        let impossible = LogDensity { value: f64::NEG_INFINITY, std_error: 0.0 };
        Ok(SetScore {
            energies: at_mean.iter().map(|u| -u).collect(),
            log_densities,
            log_partition,
            partition_bounds,
            kl: standard_kl((mean, log_std_dev)),
            log_law: law.log_density(mean)?[0],
            rank: None,
            outside,
            log_likelihood: if outside > 0 { impossible } else { integral.value },
            inside: integral.value,
            num_draws: integral.num_draws,
            effective_draws: integral.effective_draws,
            pareto_k: integral.pareto_k,
            holds: integral.holds && is_possible,
            neighbours,
            is_possible,
            num_evaluations: integral.num_evaluations,
        })
    }

    /// log Z(θ) by importance sampling around a set's points `[n, d]` and the model's, and from both sides
    /// where a learned sampler can; with the places it was found by.
    fn normaliser(
        &self,
        mlp: &PointMlp,
        ordered: &[f32],
        theta: &[f32],
        num_proposals: usize,
        stream: Stream,
    ) -> Result<(Weighted, LogDensity, Option<PartitionBounds>)> {
        let around = self.around(mlp, ordered, theta, num_proposals, stream.child(1))?;
        let log_partition = LogDensity::of_mean(&around.log_weights);
        let count = around.log_weights.len().min(BOUND_PLACES);
        let following = resample(&around, self.space.value_dim, count, stream.child(2));
        let bounds = self.partition_bounds((theta, &[]), &following, stream.child(3))?;
        Ok((around, log_partition, bounds))
    }

    /// log Z at the code μ of a set, by as many proposals as its error asks for and from both sides; `None`
    /// without a sampler whose density is known anywhere.
    pub(crate) fn bounded_partition_of_set(
        &self,
        set: &[f32],
        mean: &[f32],
        stream: Stream,
    ) -> Result<Option<BoundedPartition>> {
        let mlp = &self.element_network()?;
        let ordered = ordered(set, self.space.value_dim);
        let num_proposals = ScoreSettings::default().num_proposals;
        let (_, estimate, bounds) = self.normaliser(mlp, &ordered, mean, num_proposals, stream)?;
        Ok(bounds.map(|bounds| BoundedPartition { estimate, bounds }))
    }

    /// log ∫ exp ℓ(θ) dθ.
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
        let per_draw = (question.set.len() + laplace.places.len()) / self.space.value_dim;
        let mut walk = self.walk(question, laplace, settings, stream)?;
        walk.value.value -= laplace.excess;
        walk.value.std_error = walk.value.std_error.hypot(n * walk.of_ratios).hypot(shared);
        Ok(Integral {
            value: walk.value,
            num_draws: walk.num_draws,
            effective_draws: walk.effective_draws,
            pareto_k: walk.pareto_k,
            holds: laplace.is_near && walk.holds && walk.of_draws <= n * TARGET_ERROR,
            num_evaluations: laplace.num_evaluations + walk.num_draws * per_draw,
        })
    }

    /// u of the same points `[n, d]` at every θ, `[θ, n]`.
    pub(super) fn candidate_potentials(
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
    /// [`Error::WrongLength`](crate::Error::WrongLength) or [`Error::NonFinite`](crate::Error::NonFinite)
    /// naming what does not fit.
    pub fn log_potentials(&self, points: &[f32], theta: &[f32]) -> Result<Vec<f32>> {
        self.potentials_at(points, &[], theta)
    }

    /// The same at places with features `[places, width]`, as many points of every place; without any, of
    /// points alone.
    pub(super) fn potentials_at(
        &self,
        points: &[f32],
        features: &[f32],
        theta: &[f32],
    ) -> Result<Vec<f32>> {
        let dim = self.space.value_dim;
        let count = points.len() / dim;
        let offsets = SetOffsets::from_sizes([count])?;
        let mut elements = points.to_vec();
        if !features.is_empty() {
            let width = self.parts.num_features;
            let per_place = count / (features.len() / width);
            let rows = features.chunks_exact(width).flat_map(|row| [row].repeat(per_place));
            let pairs = points.chunks_exact(dim).zip(rows);
            elements = pairs.flat_map(|(x, row)| [x, row].concat()).collect();
        }
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: theta };
        let f = self.device.backend().values(&self.element_network()?, &batch)?;
        Ok(f.par_iter().zip(points.par_chunks_exact(dim)).map(|(f, x)| f + self.base(x)).collect())
    }
}

/// The points in one order of their own: places are drawn around points by their numbers, and a set must
/// get the same answer in any order.
fn ordered(set: &[f32], dim: usize) -> Vec<f32> {
    let mut points: Vec<&[f32]> = set.chunks_exact(dim).collect();
    points.sort_by(|a, b| {
        let mut pairs = a.iter().zip(*b).map(|(a, b)| a.total_cmp(b));
        pairs.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    points.concat()
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

/// Fewer points leave so much to be known beside them that they bound nothing.
const FEWEST_NEIGHBOURS: usize = 256;
/// What a law may know beside the points, in nats per point: of 40 held-out chairs of 512 points none was
/// above its neighbours by more than 0.03, and half as many points lower them by log √2 on a surface.
const KNOWN_BESIDE: f64 = 0.5;
/// Points by which a learned sampler bounds log Z from above.
const BOUND_PLACES: usize = 2048;
