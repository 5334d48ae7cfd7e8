//! What a step reads of sets of points: some of them, changed as a whole (`step_views.rs`), jittered and
//! perturbed, and candidates for log Z around them.

use super::step_views::{augment, view};
use crate::data::mesh::drawn;
use crate::partition::{GridMixture, Proposals, Workspace};
use crate::point::cpu::vectorise::Vectoriser;
use crate::recipe::{EnergyBasedConfig, Space};
use crate::rng::Stream;
use crate::tape::DrawDomain;

/// How points are prepared.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointPlan {
    /// Standard deviation of the noise on the data.
    pub(super) jitter: f32,
    /// Whether what the posterior reads is perturbed and whole sets are changed.
    pub(super) is_training: bool,
    /// Candidates around the points; 0 for none.
    pub(super) num_candidates: usize,
}

/// One set, prepared.
#[derive(Debug, Default)]
pub(super) struct PreparedPoints {
    /// What the posterior reads.
    pub(super) all: Vec<f32>,
    /// What the likelihood is taken of.
    pub(super) target: Vec<f32>,
    /// What is given beforehand.
    pub(super) context: Vec<f32>,
    /// Candidates `[K, d]` with ω, and whether they are near a point.
    pub(super) candidates: Vec<f32>,
    pub(super) log_weights: Vec<f32>,
    pub(super) is_near: Vec<bool>,
}

/// What a thread keeps from set to set.
#[derive(Debug, Default)]
pub(super) struct Memory {
    noise: Vec<f32>,
    workspace: Workspace,
}

/// Prepares one set, of which `context` `[m, d]` is given and `target` `[n, d]` is asked for; where
/// nothing is given, the posterior and the likelihood read parts of the same points.
pub(super) fn prepare(
    (config, space): (&EnergyBasedConfig, &Space),
    (context, target): (&[f32], &[f32]),
    plan: PointPlan,
    stream: Stream,
    memory: &mut Memory,
) -> PreparedPoints {
    let dim = space.value_dim;
    let most = |count: usize, n: usize| if count == 0 { n } else { count.min(n) };
    let n = target.len() / dim;
    let num_all = most(config.encoder_points, n + context.len() / dim);
    let num_target = most(config.likelihood_points, n);
    let wanted = if context.is_empty() { num_all.max(num_target) } else { n };
    let mut points = context.to_vec();
    points.reserve(wanted * dim);
    for index in drawn(n, wanted, stream.child(0)) {
        points.extend_from_slice(&target[index * dim..(index + 1) * dim]);
    }
    if plan.is_training {
        augment(&mut points, &config.augmentation, space, stream.child(5));
    }
    if plan.jitter > 0.0 {
        memory.noise.resize(points.len(), 0.0);
        Vectoriser::new().fill_normal(stream.child(1), &mut memory.noise);
        for (x, noise) in points.iter_mut().zip(memory.noise.iter()) {
            *x += plan.jitter * noise;
        }
    }
    let (given, asked) = points.split_at(context.len());
    let mut prepared = PreparedPoints {
        target: asked[..num_target * dim].to_vec(),
        context: given.to_vec(),
        all: if given.is_empty() { asked[..num_all * dim].to_vec() } else { points.clone() },
        ..PreparedPoints::default()
    };
    if plan.is_training && config.perturbation.share > 0.0 {
        perturb(&mut prepared.all, config, dim, stream.child(2), &mut memory.noise);
    }
    if plan.is_training && config.view.share > 0.0 {
        view(&mut prepared.all, &config.view, dim, stream.child(6));
    }
    if plan.num_candidates > 0 {
        propose((config, space), &points, plan, stream, (&mut prepared, &mut memory.workspace));
    }
    prepared
}

/// Candidates around the points.
fn propose(
    (config, space): (&EnergyBasedConfig, &Space),
    points: &[f32],
    plan: PointPlan,
    stream: Stream,
    (prepared, workspace): (&mut PreparedPoints, &mut Workspace),
) {
    let (dim, count) = (space.value_dim, plan.num_candidates);
    let mixture = GridMixture::new(
        points.len() / dim,
        dim,
        space.high,
        &config.proposal.cell_widths,
        (count, num_uniform(config, count)),
        stream.child(3),
    );
    prepared.candidates = vec![0.0; count * dim];
    prepared.log_weights = vec![0.0; count];
    prepared.is_near = vec![false; count];
    let mut proposals = Proposals {
        values: &mut prepared.candidates,
        log_density: &mut prepared.log_weights,
        is_near: &mut prepared.is_near,
    };
    mixture.draw(points, stream.child(4), &mut proposals, workspace);
    let domain = DrawDomain { low: space.low, high: space.high, base_std_dev: config.base() };
    // Beside the sampler's the candidates count by their share, which is added in the step.
    let log_count = (count as f32).ln();
    for (y, log) in prepared.candidates.chunks_exact(dim).zip(&mut prepared.log_weights) {
        let is_inside = domain.holds(y);
        *log = if is_inside { domain.base(y) - *log - log_count } else { f32::NEG_INFINITY };
    }
}

/// How many of `count` candidates fall anywhere: at least one, and not all.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
pub(super) fn num_uniform(config: &EnergyBasedConfig, count: usize) -> usize {
    let rest = 1.0 - config.proposal.sampler_share;
    let share = config.proposal.uniform_share / rest.max(f64::MIN_POSITIVE);
    ((share * count as f64).round() as usize).clamp(1, count.max(2) - 1)
}

/// Noise everywhere, or in a ball around a random point, or none.
fn perturb(
    points: &mut [f32],
    config: &EnergyBasedConfig,
    dim: usize,
    stream: Stream,
    noise: &mut Vec<f32>,
) {
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
