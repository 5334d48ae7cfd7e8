//! What a training step reads: points of every set, thinned out, jittered and perturbed, and
//! candidates for log Z.

#[cfg(test)]
mod pinned;

use std::sync::Arc;

use rayon::prelude::*;

use super::config::{AugmentationConfig, CloudEstimator, UnconditionalConfig};
use super::proposal::{GridMixture, Proposals, Workspace};
use crate::data::SetView;
use crate::data::mesh::drawn;
use crate::nn::Step;
use crate::point::cpu::vectorise::Vectoriser;
use crate::point::{ResidentBatch, ResidentLearner, SentBatch};
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Makes what steps read. It knows no parameter of the networks, so that the next batch can be made
/// on another thread while this one is learned from.
#[derive(Clone, Debug)]
pub struct BatchMaker {
    config: UnconditionalConfig,
    /// Where batches are sent as soon as they are made.
    learner: Option<Arc<dyn ResidentLearner>>,
}

impl BatchMaker {
    pub(super) fn new(
        config: &UnconditionalConfig,
        learner: Option<Arc<dyn ResidentLearner>>,
    ) -> Self {
        Self { config: config.clone(), learner }
    }

    /// What the step reads of `sets` of standardised points: a function of the sets, the step's
    /// number and its stream.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a set is empty or not of the right dimension.
    pub fn prepare(&self, sets: &[SetView<'_>], step: &Step) -> Result<CloudBatch> {
        let num_sampled = self.config.num_sampled();
        let plan = BatchPlan {
            jitter: self.jitter(step),
            is_perturbed: self.config.perturbation.share > 0.0,
            is_augmented: self.config.augmentation != AugmentationConfig::default(),
            num_candidates: self.config.num_proposals - num_sampled,
            num_sampled,
        };
        let batch = Batch::new(sets, &self.config, plan, step.stream.child(0))?;
        let sent = match &self.learner {
            Some(learner) => Some(learner.send(&batch.to_send())?),
            None => None,
        };
        Ok(CloudBatch { batch, sent })
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

    /// ω of a candidate, one of `exp(log_count)`: −∞ outside of the domain.
    pub(super) fn log_weight(&self, y: &[f32], log_density: f32, log_count: f32) -> f32 {
        let is_inside = y.iter().all(|x| x.abs() <= self.half_width);
        if is_inside { self.base(y) - log_density - log_count } else { f32::NEG_INFINITY }
    }
}

/// What a step reads, ready to be learned from.
#[derive(Debug)]
pub struct CloudBatch {
    pub(super) batch: Batch,
    /// The same numbers on a device, or on their way there.
    pub(super) sent: Option<Box<dyn SentBatch>>,
}

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
    fn to_send(&self) -> ResidentBatch<'_> {
        ResidentBatch {
            encoder_points: &self.encoder_points,
            encoder_offsets: &self.encoder_offsets,
            points: &self.points,
            offsets: &self.offsets,
            candidates: &self.candidates,
            log_weights: &self.log_weights,
            is_near: &self.is_near,
        }
    }

    /// `sets` are standardised points `[n, d]`.
    pub(super) fn new(
        sets: &[SetView<'_>],
        config: &UnconditionalConfig,
        plan: BatchPlan,
        stream: Stream,
    ) -> Result<Self> {
        let dim = config.value_dim;
        for (number, set) in sets.iter().enumerate() {
            let length = set.stored().len();
            if length == 0 || length % dim != 0 {
                let expected = format!("at least one point of {dim} numbers");
                return Err(Error::invalid(format!("sets[{number}]"), expected, length));
            }
        }
        let sizes = |most: usize| {
            SetOffsets::from_sizes(sets.iter().map(|set| (set.stored().len() / dim).min(most)))
        };
        let (encoder_offsets, offsets) =
            (sizes(config.encoder_points)?, sizes(config.likelihood_points)?);
        let num_candidates = sets.len() * plan.num_candidates;
        let mut batch = Self {
            whole: sizes(usize::MAX)?,
            encoder_points: vec![0.0; encoder_offsets.num_elements() * dim],
            encoder_offsets,
            points: vec![0.0; offsets.num_elements() * dim],
            offsets,
            bases: vec![0.0; sets.len()],
            candidates: vec![0.0; num_candidates * dim],
            log_weights: vec![0.0; num_candidates],
            is_near: vec![false; num_candidates],
        };
        batch.parts(dim, plan.num_candidates).into_par_iter().zip(sets).enumerate().for_each_init(
            Memory::default,
            |memory, (number, (part, set))| {
                prepare(set, part, config, plan, stream.child(number as u64), memory);
            },
        );
        Ok(batch)
    }

    /// What belongs to each set, to be written by a thread each.
    fn parts(&mut self, dim: usize, num_candidates: usize) -> Vec<SetPart<'_>> {
        let mut encoder_points = self.encoder_points.as_mut_slice();
        let mut points = self.points.as_mut_slice();
        let mut candidates = self.candidates.as_mut_slice();
        let mut log_weights = self.log_weights.as_mut_slice();
        let mut is_near = self.is_near.as_mut_slice();
        let sizes = self.bases.iter_mut().enumerate();
        sizes
            .map(|(set, base)| SetPart {
                encoder_points: cut(&mut encoder_points, self.encoder_offsets.size(set) * dim),
                points: cut(&mut points, self.offsets.size(set) * dim),
                base,
                candidates: cut(&mut candidates, num_candidates * dim),
                log_weights: cut(&mut log_weights, num_candidates),
                is_near: cut(&mut is_near, num_candidates),
            })
            .collect()
    }
}

/// The first `count` of what is left.
#[expect(clippy::mut_mut, reason = "what is left is a slice that shrinks")]
fn cut<'a, T>(left: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (first, rest) = std::mem::take(left).split_at_mut(count);
    *left = rest;
    first
}

/// One set of a [`Batch`].
struct SetPart<'a> {
    encoder_points: &'a mut [f32],
    points: &'a mut [f32],
    base: &'a mut f64,
    candidates: &'a mut [f32],
    log_weights: &'a mut [f32],
    is_near: &'a mut [bool],
}

/// What a thread keeps from set to set.
#[derive(Default)]
struct Memory {
    points: Vec<f32>,
    noise: Vec<f32>,
    workspace: Workspace,
}

fn prepare(
    set: &SetView<'_>,
    part: SetPart<'_>,
    config: &UnconditionalConfig,
    plan: BatchPlan,
    stream: Stream,
    memory: &mut Memory,
) {
    let dim = config.value_dim;
    let stored = set.stored();
    let n = stored.len() / dim;
    let count = n.min(config.encoder_points.max(config.likelihood_points));
    let Memory { points, noise, .. } = memory;
    points.resize(count * dim, 0.0);
    let indices = drawn(n, count, stream.child(0));
    match dim {
        2 => gather::<2>(stored, &indices, points),
        3 => gather::<3>(stored, &indices, points),
        _ => {
            for (point, index) in points.chunks_exact_mut(dim).zip(indices) {
                point.copy_from_slice(&stored[index * dim..(index + 1) * dim]);
            }
        }
    }
    set.apply(points);
    if plan.is_augmented {
        augment(points, config, stream.child(5));
    }
    if plan.jitter > 0.0 {
        noise.resize(points.len(), 0.0);
        Vectoriser::new().fill_normal(stream.child(1), noise);
        for (x, noise) in points.iter_mut().zip(noise.iter()) {
            *x += plan.jitter * noise;
        }
    }
    part.encoder_points.copy_from_slice(&points[..part.encoder_points.len()]);
    part.points.copy_from_slice(&points[..part.points.len()]);
    let sum: f64 = part.points.chunks_exact(dim).map(|x| f64::from(config.base(x))).sum();
    *part.base = sum / (part.points.len() / dim) as f64;
    if plan.is_perturbed {
        perturb(part.encoder_points, config, stream.child(2), noise);
    }
    if plan.num_candidates > 0 {
        let num_uniform = num_uniform(config, plan.num_candidates);
        let mixture = GridMixture::new(
            count,
            dim,
            config.half_width,
            &config.proposal.cell_widths,
            (plan.num_candidates, num_uniform),
            stream.child(3),
        );
        let mut proposals = Proposals {
            values: &mut *part.candidates,
            log_density: &mut *part.log_weights,
            is_near: part.is_near,
        };
        mixture.draw(points, stream.child(4), &mut proposals, &mut memory.workspace);
        let log_count = ((plan.num_candidates + plan.num_sampled) as f32).ln();
        for (y, log) in part.candidates.chunks_exact(dim).zip(part.log_weights) {
            *log = config.log_weight(y, *log, log_count);
        }
    }
}

/// Rows by number; for a known size copying one is no call.
fn gather<const D: usize>(set: &[f32], indices: &[usize], points: &mut [f32]) {
    let (rows, _) = set.as_chunks::<D>();
    let (points, _) = points.as_chunks_mut::<D>();
    for (point, &index) in points.iter_mut().zip(indices) {
        *point = rows[index];
    }
}

/// How many of `count` candidates fall anywhere.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
pub(super) fn num_uniform(config: &UnconditionalConfig, count: usize) -> usize {
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
fn perturb(points: &mut [f32], config: &UnconditionalConfig, stream: Stream, noise: &mut Vec<f32>) {
    let dim = config.value_dim;
    let mut draws = [0.0; 4];
    stream.child(0).fill_uniform(0, 0, &mut draws);
    let settings = &config.perturbation;
    if f64::from(draws[0]) >= settings.share {
        return;
    }
    noise.resize(points.len(), 0.0);
    Vectoriser::new().fill_normal(stream.child(1), noise);
    if draws[1] < 0.5 {
        for (x, noise) in points.iter_mut().zip(noise.iter()) {
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
            for (x, noise) in point.iter_mut().zip(noise.iter()) {
                *x += draws[2] * settings.in_ball * noise;
            }
        }
    }
}
