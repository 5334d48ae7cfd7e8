//! Points of given θ where space has too many dimensions for a grid: particles that walk from the
//! uniform law on the domain to exp u, through exp(β u) with growing β (a sequential Monte Carlo
//! sampler; Del Moral, Doucet and Jasra, 2006).
//!
//! ```text
//! 1  x ~ U[−b, b]ᵈ,  β = 0,  Ẑ = (2b)ᵈ
//! 2  w = exp((β′ − β) u(x));   Ẑ ← Ẑ mean w;   particles by systematic resampling on w
//! 3  a few MALA steps on exp(β′ u), which separate copies;   2 again until β = 1
//! ```
//!
//! A pilot of few particles chooses how β grows (so that the weights of a stage stay worth most of
//! their number) and the step sizes (so that most steps are accepted). The particles proper do not
//! look at it again, so E Ẑ = Z exactly, for any number of them and of steps. They come in groups that
//! know nothing of each other: the spread of their Ẑ is the standard error. Its logarithm is too small
//! by half of its variance on average, as every log of a mean is.
//!
//! What they may miss is a needle: a part that is small until β is nearly 1 and outweighs all others
//! then. Few groups have a particle in it, so that Ẑ is right on average but its stated error is not.
//! The parts of a shape are alike at every β.
//!
//! The work grows with the number of stages, which grows as √d and as the logarithm of how narrow
//! the law is, where the cells of a grid grow as a power of d.

use super::EnergyBasedProcess;
use super::grid::{Weighted, effective, systematic};
use super::mala::{Chains, Pace, Walkers};
use crate::point::PointMlp;
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// Particles of a θ that choose temperatures and step sizes.
const PILOT: usize = 512;
/// Groups of particles that know nothing of each other.
const NUM_GROUPS: usize = 8;
/// The fewest particles of a group: fewer would lose parts of a shape when they are resampled.
const FEWEST_PARTICLES: usize = 128;
/// What the weights of a stage are worth at least, as a share of the particles.
const EFFECTIVE_SHARE: f64 = 0.7;
/// MALA steps of a stage, and after the last one.
const STEPS_PER_STAGE: usize = 2;
const LAST_STEPS: usize = 6;
/// More stages than any law should need; the last of them goes all the way.
const MOST_STAGES: usize = 400;
/// The share of accepted steps that step sizes aim at: the best one for MALA in many dimensions.
const ACCEPTANCE: f64 = 0.57;
/// Widths of the domain that a first step is long.
const FIRST_STEP: f32 = 0.1;

/// The particles of one θ in groups of equal size.
pub(super) struct Particles {
    /// `[groups, n, d]`; given its group's Ẑ every particle counts the same.
    values: Vec<f32>,
    /// log Ẑ of every group.
    pub(super) log_partitions: Vec<f64>,
}

impl Particles {
    /// Every particle with its group's Ẑ as its weight.
    pub(super) fn weighted(self, dim: usize) -> Weighted {
        let size = self.values.len() / dim / self.log_partitions.len();
        let repeat = |&log: &f64| std::iter::repeat_n(log, size);
        let log_weights = self.log_partitions.iter().flat_map(repeat).collect();
        Weighted { values: self.values, log_weights }
    }
}

/// Particles of several θ, in groups: the range of group g of set s, and streams by set.
struct Layout {
    num_sets: usize,
    num_groups: usize,
    /// Particles of a group.
    size: usize,
    offsets: SetOffsets,
}

impl Layout {
    fn new(num_sets: usize, num_groups: usize, size: usize) -> Result<Self> {
        let offsets = SetOffsets::uniform(num_sets, num_groups * size)?;
        Ok(Self { num_sets, num_groups, size, offsets })
    }
}

impl EnergyBasedProcess {
    /// About `count` particles for each θ of `theta`.
    pub(super) fn tempered(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        count: usize,
        stream: Stream,
    ) -> Result<Vec<Particles>> {
        let num_sets = theta.len() / self.config.latent_dim;
        let plans = self.plan(mlp, theta, stream.child(0))?;
        let size = count.div_ceil(NUM_GROUPS).max(FEWEST_PARTICLES);
        let layout = Layout::new(num_sets, NUM_GROUPS, size)?;
        let chains = Chains { mlp, theta, offsets: &layout.offsets };
        let stream = stream.child(1);
        let mut walkers = self.first_walkers(&chains, stream.child(0))?;
        let volume = f64::from(2.0 * self.space.high).ln() * self.space.value_dim as f64;
        let mut log_partitions = vec![volume; num_sets * NUM_GROUPS];
        let num_stages = plans.iter().map(Vec::len).max().unwrap_or(0);
        let mut reached = vec![0.0_f32; num_sets];
        for stage in 0..num_stages {
            let stream = stream.child(1 + stage as u64);
            // A θ that has arrived goes on walking where it is.
            let paces: Vec<Pace> =
                plans.iter().map(|plan| plan[stage.min(plan.len() - 1)]).collect();
            let growths = growths(&paces, &reached);
            let means = self.resample_walkers(&layout, &mut walkers, &growths, stream);
            log_partitions.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean);
            reached = paces.iter().map(|pace| pace.inverse_temperature).collect();
            let is_last = stage + 1 == num_stages;
            let num_steps = if is_last { LAST_STEPS } else { STEPS_PER_STAGE };
            for step in 0..num_steps as u64 {
                self.mala_step(&chains, &mut walkers, &paces, stream.child(1).child(step))?;
            }
        }
        let length = NUM_GROUPS * size * self.space.value_dim;
        Ok(walkers
            .points
            .chunks_exact(length)
            .zip(log_partitions.chunks_exact(NUM_GROUPS))
            .map(|(values, logs)| Particles {
                values: values.to_vec(),
                log_partitions: logs.to_vec(),
            })
            .collect())
    }

    /// Temperatures and step sizes of every θ, stage by stage.
    fn plan(&self, mlp: &PointMlp, theta: &[f32], stream: Stream) -> Result<Vec<Vec<Pace>>> {
        let num_sets = theta.len() / self.config.latent_dim;
        let layout = Layout::new(num_sets, 1, PILOT)?;
        let chains = Chains { mlp, theta, offsets: &layout.offsets };
        let mut walkers = self.first_walkers(&chains, stream.child(0))?;
        let first = (2.0 * FIRST_STEP * self.space.high).powi(2);
        let start = Pace { inverse_temperature: 0.0, step_size: first };
        let mut paces = vec![start; num_sets];
        let mut plans = vec![Vec::new(); num_sets];
        for stage in 0..MOST_STAGES {
            let stream = stream.child(1 + stage as u64);
            let reached: Vec<f32> = paces.iter().map(|pace| pace.inverse_temperature).collect();
            if reached.iter().all(|&beta| beta >= 1.0) {
                break;
            }
            for (set, pace) in paces.iter_mut().enumerate() {
                let u = &walkers.u[layout.offsets.range(set)];
                let is_last = stage + 1 == MOST_STAGES;
                let next = if is_last { 1.0 } else { next_temperature(u, reached[set]) };
                pace.inverse_temperature = next;
            }
            let growths = growths(&paces, &reached);
            self.resample_walkers(&layout, &mut walkers, &growths, stream);
            for step in 0..STEPS_PER_STAGE as u64 {
                let stream = stream.child(1).child(step);
                let accepted = self.mala_step(&chains, &mut walkers, &paces, stream)?;
                for (pace, accepted) in paces.iter_mut().zip(accepted) {
                    let excess = accepted as f64 / PILOT as f64 - ACCEPTANCE;
                    #[expect(clippy::cast_possible_truncation, reason = "a factor near 1")]
                    let factor = (2.0 * excess).exp() as f32;
                    pace.step_size = (pace.step_size * factor).min(first);
                }
            }
            for ((plan, pace), reached) in plans.iter_mut().zip(&paces).zip(&reached) {
                if *reached < 1.0 {
                    plan.push(*pace);
                }
            }
        }
        Ok(plans)
    }

    /// Places anywhere in the domain.
    fn first_walkers(&self, chains: &Chains<'_>, stream: Stream) -> Result<Walkers> {
        let half = self.space.high;
        let mut points = vec![0.0; chains.offsets.num_elements() * self.space.value_dim];
        stream.fill_uniform(0, 0, &mut points);
        for x in &mut points {
            *x = (2.0 * *x - 1.0) * half;
        }
        self.walkers(chains, points)
    }

    /// Particles of every group by their weights exp(growth · u), and log of the mean weight.
    fn resample_walkers(
        &self,
        layout: &Layout,
        walkers: &mut Walkers,
        growths: &[f64],
        stream: Stream,
    ) -> Vec<f64> {
        let dim = self.space.value_dim;
        let mut means = vec![0.0; layout.num_sets * layout.num_groups];
        let stream = stream.child(0);
        for (group, mean) in means.iter_mut().enumerate() {
            let growth = growths[group / layout.num_groups];
            if growth <= 0.0 {
                continue;
            }
            let rows = group * layout.size..(group + 1) * layout.size;
            let logs: Vec<f64> =
                walkers.u[rows.clone()].iter().map(|&u| growth * f64::from(u)).collect();
            let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
            *mean = largest + (weights.iter().sum::<f64>() / weights.len() as f64).ln();
            let chosen = systematic(&weights, layout.size, stream.child(group as u64));
            let numbers = rows.start * dim..rows.end * dim;
            pick(&mut walkers.points[numbers.clone()], dim, &chosen);
            pick(&mut walkers.gradient[numbers], dim, &chosen);
            pick(&mut walkers.u[rows], 1, &chosen);
        }
        means
    }
}

/// What β grows by, set by set.
fn growths(paces: &[Pace], reached: &[f32]) -> Vec<f64> {
    let grown = paces.iter().zip(reached);
    grown.map(|(pace, &from)| f64::from(pace.inverse_temperature) - f64::from(from)).collect()
}

/// Rows of `width` numbers in another order, some of them several times.
fn pick(values: &mut [f32], width: usize, chosen: &[usize]) {
    let from = values.to_vec();
    for (row, &index) in values.chunks_exact_mut(width).zip(chosen) {
        row.copy_from_slice(&from[index * width..(index + 1) * width]);
    }
}

/// The largest β up to 1 at which the weights are still worth their share.
fn next_temperature(u: &[f32], reached: f32) -> f32 {
    let is_far = |beta: f32| {
        let growth = f64::from(beta) - f64::from(reached);
        let logs: Vec<f64> = u.iter().map(|&u| growth * f64::from(u)).collect();
        effective(&logs) < EFFECTIVE_SHARE * u.len() as f64
    };
    if !is_far(1.0) {
        return 1.0;
    }
    // Half of what is left is taken off until it is near enough, then halved back: 40 comparisons.
    let (mut near, mut far) = (reached, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (near + far);
        if is_far(middle) { far = middle } else { near = middle }
    }
    // β must grow, however little.
    if near > reached { near } else { far }
}
