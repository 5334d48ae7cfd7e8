//! What a training step reads: points of every set, thinned out, jittered and perturbed, and
//! candidates for log Z.

#[cfg(test)]
mod pinned;

use rayon::prelude::*;

use super::config::{AugmentationConfig, CloudEstimator, UnconditionalConfig};
use super::proposal::GridMixture;
use crate::data::mesh::drawn;
use crate::nn::Step;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Makes what steps read. It knows no parameter of the networks, so that the next batch can be made
/// on another thread while this one is learned from.
#[derive(Clone, Debug)]
pub struct BatchMaker {
    config: UnconditionalConfig,
}

impl BatchMaker {
    pub(super) fn new(config: &UnconditionalConfig) -> Self {
        Self { config: config.clone() }
    }

    /// What the step reads of `sets` of standardised points: a function of the sets, the step's
    /// number and its stream.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a set is empty or not of the right dimension.
    pub fn prepare(&self, sets: &[&[f32]], step: &Step) -> Result<CloudBatch> {
        let num_sampled = self.config.num_sampled();
        let plan = BatchPlan {
            jitter: self.jitter(step),
            is_perturbed: self.config.perturbation.share > 0.0,
            is_augmented: self.config.augmentation != AugmentationConfig::default(),
            num_candidates: self.config.num_proposals - num_sampled,
            num_sampled,
        };
        Ok(CloudBatch(Batch::new(sets, &self.config, plan, step.stream.child(0))?))
    }

    #[expect(clippy::cast_possible_truncation, reason = "noise is f32")]
    fn jitter(&self, step: &Step) -> f32 {
        let (start, end) = (self.config.jitter, self.config.final_jitter);
        end + (start - end) * step.cosine() as f32
    }
}

impl UnconditionalConfig {
    /// How many of the proposals of a step the learned sampler draws.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    pub(super) fn num_sampled(&self) -> usize {
        if self.estimator != CloudEstimator::Importance {
            return 0;
        }
        (self.proposal.sampler_share * self.num_proposals as f64).round() as usize
    }

    /// −‖x‖²/(2 s₀²).
    pub(super) fn base(&self, x: &[f32]) -> f32 {
        let scale = -0.5 / (self.base_std_dev * self.base_std_dev);
        scale * x.iter().map(|x| x * x).sum::<f32>()
    }

    /// ω of a candidate, one of `count`: −∞ outside of the domain.
    pub(super) fn log_weight(&self, y: &[f32], log_density: f32, count: usize) -> f32 {
        let is_inside = y.iter().all(|x| x.abs() <= self.half_width);
        if is_inside { self.base(y) - log_density - (count as f32).ln() } else { f32::NEG_INFINITY }
    }
}

/// What a step reads, ready to be learned from.
#[derive(Debug)]
pub struct CloudBatch(pub(super) Batch);

/// Points of several sets.
#[derive(Debug)]
pub(super) struct Batch {
    /// n of every whole set: what is drawn here stands for all of it.
    pub(super) whole: SetOffsets,
    /// What the encoder reads, `[total, d]`.
    pub(super) encoder_points: Vec<f32>,
    pub(super) encoder_offsets: SetOffsets,
    /// What the likelihood is taken of.
    pub(super) points: Vec<f32>,
    pub(super) offsets: SetOffsets,
    /// The mean of the base measure's −‖x‖²/(2 s₀²) over the points of each set.
    pub(super) bases: Vec<f64>,
    /// Candidates for log Z, `[sets, K, d]`, and ω of each; empty where none were asked for.
    pub(super) candidates: Vec<f32>,
    pub(super) log_weights: Vec<f32>,
    pub(super) is_near: Vec<bool>,
}

#[derive(Default)]
struct Prepared {
    encoder_points: Vec<f32>,
    points: Vec<f32>,
    base: f64,
    candidates: Vec<f32>,
    log_weights: Vec<f32>,
    is_near: Vec<bool>,
}

/// How a batch is made.
#[derive(Clone, Copy)]
pub(super) struct BatchPlan {
    /// Standard deviation of the noise on the data.
    pub(super) jitter: f32,
    /// Whether the encoder's points are perturbed.
    pub(super) is_perturbed: bool,
    /// Whether whole sets are changed.
    pub(super) is_augmented: bool,
    /// Candidates from the grids; 0 for none.
    pub(super) num_candidates: usize,
    /// Further candidates, which the learned sampler draws in the step.
    pub(super) num_sampled: usize,
}

impl Batch {
    /// `sets` are standardised points `[n, d]`.
    pub(super) fn new(
        sets: &[&[f32]],
        config: &UnconditionalConfig,
        plan: BatchPlan,
        stream: Stream,
    ) -> Result<Self> {
        let dim = config.value_dim;
        for (number, set) in sets.iter().enumerate() {
            if set.is_empty() || set.len() % dim != 0 {
                let expected = format!("at least one point of {dim} numbers");
                return Err(Error::invalid(format!("sets[{number}]"), expected, set.len()));
            }
        }
        let prepared: Vec<Prepared> = sets
            .par_iter()
            .enumerate()
            .map(|(number, set)| prepare(set, config, plan, stream.child(number as u64)))
            .collect();
        let gather = |part: fn(&Prepared) -> &Vec<f32>| -> Vec<f32> {
            prepared.iter().map(|set| part(set).as_slice()).collect::<Vec<_>>().concat()
        };
        let sizes = |part: fn(&Prepared) -> &Vec<f32>| {
            SetOffsets::from_sizes(prepared.iter().map(|set| part(set).len() / dim))
        };
        Ok(Self {
            whole: SetOffsets::from_sizes(sets.iter().map(|set| set.len() / dim))?,
            encoder_points: gather(|set| &set.encoder_points),
            encoder_offsets: sizes(|set| &set.encoder_points)?,
            points: gather(|set| &set.points),
            offsets: sizes(|set| &set.points)?,
            bases: prepared.iter().map(|set| set.base).collect(),
            candidates: gather(|set| &set.candidates),
            log_weights: gather(|set| &set.log_weights),
            is_near: prepared.iter().flat_map(|set| set.is_near.iter().copied()).collect(),
        })
    }
}

fn prepare(set: &[f32], config: &UnconditionalConfig, plan: BatchPlan, stream: Stream) -> Prepared {
    let dim = config.value_dim;
    let n = set.len() / dim;
    let count = n.min(config.encoder_points.max(config.likelihood_points));
    let mut points: Vec<f32> = drawn(n, count, stream.child(0))
        .into_iter()
        .flat_map(|index| &set[index * dim..(index + 1) * dim])
        .copied()
        .collect();
    if plan.is_augmented {
        augment(&mut points, config, stream.child(5));
    }
    if plan.jitter > 0.0 {
        let mut noise = vec![0.0; points.len()];
        stream.child(1).fill_normal(0, 0, &mut noise);
        for (x, noise) in points.iter_mut().zip(noise) {
            *x += plan.jitter * noise;
        }
    }
    let first = |count: usize| points[..points.len().min(count * dim)].to_vec();
    let mut prepared = Prepared {
        encoder_points: first(config.encoder_points),
        points: first(config.likelihood_points),
        ..Prepared::default()
    };
    let sum: f64 = prepared.points.chunks_exact(dim).map(|x| f64::from(config.base(x))).sum();
    prepared.base = sum / (prepared.points.len() / dim) as f64;
    if plan.is_perturbed {
        perturb(&mut prepared.encoder_points, config, stream.child(2));
    }
    if plan.num_candidates > 0 {
        let num_uniform = num_uniform(config, plan.num_candidates);
        let mixture = GridMixture::new(
            &points,
            dim,
            config.half_width,
            &config.proposal.cell_widths,
            (plan.num_candidates, num_uniform),
            stream.child(3),
        );
        let drawn = mixture.draw(&points, num_uniform, stream.child(4));
        let count = plan.num_candidates + plan.num_sampled;
        let rows = drawn.values.chunks_exact(dim).zip(&drawn.log_density);
        prepared.log_weights =
            rows.map(|(y, &log_density)| config.log_weight(y, log_density, count)).collect();
        prepared.candidates = drawn.values;
        prepared.is_near = drawn.is_near;
    }
    prepared
}

/// How many of `count` candidates fall anywhere.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
fn num_uniform(config: &UnconditionalConfig, count: usize) -> usize {
    let rest = 1.0 - config.proposal.sampler_share;
    let share = config.proposal.uniform_share / rest.max(f64::MIN_POSITIVE);
    ((share * count as f64).round() as usize).clamp(1, count.max(2) - 1)
}

/// Mirrors and stretches a set.
fn augment(points: &mut [f32], config: &UnconditionalConfig, stream: Stream) {
    let dim = config.value_dim;
    let mut factors = vec![0.0; dim];
    stream.child(0).fill_normal(0, 0, &mut factors);
    for factor in &mut factors {
        *factor = (config.augmentation.stretch * *factor).exp();
    }
    let mut coins = vec![0.0; config.augmentation.mirror_axes.len()];
    stream.child(1).fill_uniform(0, 0, &mut coins);
    for (&axis, coin) in config.augmentation.mirror_axes.iter().zip(coins) {
        if coin < 0.5 {
            factors[axis] = -factors[axis];
        }
    }
    for point in points.chunks_exact_mut(dim) {
        for (x, factor) in point.iter_mut().zip(&factors) {
            // A point that would leave the domain stays at its wall, where Z is still taken.
            *x = (*x * factor).clamp(-config.half_width, config.half_width);
        }
    }
}

/// Noise everywhere, or in a ball around a random point, or none.
fn perturb(points: &mut [f32], config: &UnconditionalConfig, stream: Stream) {
    let dim = config.value_dim;
    let mut draws = [0.0; 4];
    stream.child(0).fill_uniform(0, 0, &mut draws);
    let settings = &config.perturbation;
    if f64::from(draws[0]) >= settings.share {
        return;
    }
    let mut noise = vec![0.0; points.len()];
    stream.child(1).fill_normal(0, 0, &mut noise);
    if draws[1] < 0.5 {
        for (x, noise) in points.iter_mut().zip(noise) {
            *x += draws[2] * settings.everywhere * noise;
        }
        return;
    }
    let n = points.len() / dim;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below n")]
    let index = ((f64::from(draws[3]) * n as f64) as usize).min(n - 1);
    let centre = points[index * dim..(index + 1) * dim].to_vec();
    for (point, noise) in points.chunks_exact_mut(dim).zip(noise.chunks_exact(dim)) {
        let square: f32 = point.iter().zip(&centre).map(|(x, c)| (x - c) * (x - c)).sum();
        if square < settings.radius * settings.radius {
            for (x, noise) in point.iter_mut().zip(noise) {
                *x += draws[2] * settings.in_ball * noise;
            }
        }
    }
}
