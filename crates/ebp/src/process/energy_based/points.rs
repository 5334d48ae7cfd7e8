//! Points of given θ: importance resampling on a grid, then small Langevin or MALA steps.
//!
//! ```text
//! 1  u at one random place of every coarse cell           rough:  where is mass?
//! 2  cells ∝ exp(u/2), mixed with all; many places in them, weights exp(u)/r
//! 3  n of them, by systematic resampling on the weights    exact as their number grows
//! 4  steps along ∇u with noise, which separate copies      MALA: exact at any step size
//! ```
//!
//! Three dimensions are few enough for this to work without a learned sampler, for any n. The
//! weights of 2 also give log Z with its error. Beyond three, `tempered.rs` takes the place of 1 and 2.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::EnergyBasedProcess;
use super::grid::{CoarseGrid, Proposed, Weighted, effective, reject, resample};
use super::mala::Chains;
use crate::point::{
    Bounds, CandidateValues, Candidates, Clip, Langevin, LogWeights, Motion, PointBatch, PointMlp,
};
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Sets whose points are drawn together.
const DRAWN_AT_ONCE: usize = 16;

/// What moves points after resampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointMethod {
    /// Langevin steps whose noise falls to zero: sharp surfaces, a law slightly too narrow.
    Annealed,
    /// Langevin steps with full noise.
    Langevin,
    /// Langevin proposals that are accepted or rejected: the law itself.
    Mala,
}

/// Where points come from before they are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointStart {
    /// Importance resampling of places in cells over the domain; beyond three dimensions, particles
    /// that walk from the uniform law to that of the model.
    Grid,
    /// The learned sampler's draws as they are.
    Sampler,
    /// The learned sampler's draws, resampled by their weights exp(u − L).
    SamplerResampled,
    /// The learned sampler's draws, each kept with probability w/max w.
    SamplerRejected,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawSettings {
    /// Where they come from.
    pub start: PointStart,
    /// Coarse cells per axis, up to three dimensions.
    pub cells_per_axis: usize,
    /// Proposals per point that is wanted.
    pub proposals_per_point: usize,
    /// What moves the points afterwards.
    pub method: PointMethod,
    /// How many steps of it.
    pub num_steps: usize,
    /// η of each step.
    pub step_size: f32,
}

impl Default for DrawSettings {
    fn default() -> Self {
        Self {
            start: PointStart::Grid,
            cells_per_axis: 32,
            proposals_per_point: 8,
            method: PointMethod::Annealed,
            num_steps: 10,
            // Surfaces of samples are thicker than those of data. Ten steps of this size thin them as
            // far as distances to held-out sets allow: with 2e-4 samples are nearer to each other
            // than real sets are, with 1e-3 farther from real sets.
            step_size: 5e-4,
        }
    }
}

/// How well it went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrawReport {
    /// Proposals per set.
    pub num_proposals: usize,
    /// Their effective number (Σ w)²/Σ w², the mean over sets.
    pub effective_proposals: f64,
    /// The share of MALA's proposals that were accepted.
    pub acceptance: Option<f64>,
    /// The share of the learned sampler's draws that rejection kept.
    pub kept: Option<f64>,
}

/// How well it went for the sets of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawTally {
    /// Sets of the group.
    pub num_sets: usize,
    /// Proposals per set.
    pub num_proposals: usize,
    /// Their effective number, the sum over sets.
    pub effective: f64,
    /// The share of moves that were accepted.
    pub acceptance: f64,
    /// The share of draws that were kept, of every set.
    pub kept: Vec<f64>,
}

impl DrawReport {
    /// Of all groups, in their order.
    pub fn of(groups: &[DrawTally], settings: &DrawSettings) -> Self {
        let num_sets = groups.iter().map(|group| group.num_sets).sum::<usize>() as f64;
        let num_proposals = groups.last().map_or(0, |group| group.num_proposals);
        let mut report = Self { num_proposals, ..Self::default() };
        let (mut accepted, mut kept) = (0.0, 0.0);
        for group in groups {
            report.effective_proposals += group.effective / num_sets;
            for share in &group.kept {
                kept += share / num_sets;
            }
            accepted += group.acceptance * group.num_sets as f64 / num_sets;
        }
        report.acceptance = (settings.method == PointMethod::Mala).then_some(accepted);
        report.kept = (settings.start == PointStart::SamplerRejected).then_some(kept);
        report
    }
}

/// Groups in which points of so many sets are drawn.
pub(crate) fn num_draw_groups(num_sets: usize) -> usize {
    num_sets.div_ceil(DRAWN_AT_ONCE)
}

impl EnergyBasedProcess {
    /// `num_points` points for each θ of `theta` `[sets, k]`, as `[sets, num_points, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is 0, `theta` does not fit, there is no learned sampler
    /// to start from or too few of its draws are kept; [`Error::NonFinite`] if a point leaves the
    /// numbers.
    pub fn draw_points(
        &self,
        theta: &[f32],
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, DrawReport)> {
        self.draw_points_watched(theta, num_points, settings, stream, &mut |_| {})
    }

    /// The same; `watch` is called with the number of sets that are done, after every few.
    ///
    /// # Errors
    ///
    /// As [`draw_points`](Self::draw_points).
    pub fn draw_points_watched(
        &self,
        theta: &[f32],
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
        watch: &mut dyn FnMut(usize),
    ) -> Result<(Vec<f32>, DrawReport)> {
        let mut tallies = Vec::new();
        let mut points = Vec::new();
        for number in 0..num_draw_groups(theta.len() / self.config.latent_dim) {
            let (drawn, tally) = self.draw_group(theta, number, num_points, settings, stream)?;
            points.extend(drawn);
            tallies.push(tally);
            watch(tallies.iter().map(|tally: &DrawTally| tally.num_sets).sum());
        }
        Ok((points, DrawReport::of(&tallies, settings)))
    }

    /// The points of group `number` of the sets of `theta`, as
    /// [`draw_points`](Self::draw_points) has them, 16 sets each: no number depends on other groups.
    ///
    /// # Errors
    ///
    /// As [`draw_points`](Self::draw_points).
    pub fn draw_group(
        &self,
        theta: &[f32],
        number: usize,
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, DrawTally)> {
        for (field, found) in [
            ("num_points", num_points),
            ("cells_per_axis", settings.cells_per_axis),
            ("proposals_per_point", settings.proposals_per_point),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        let k = self.config.latent_dim;
        let Some(theta) = theta.chunks(DRAWN_AT_ONCE * k).nth(number) else {
            let expected = format!("below {}", num_draw_groups(theta.len() / k));
            return Err(Error::invalid("number", expected, number));
        };
        let mlp = self.element_network()?;
        let count = match settings.start {
            PointStart::Grid => (settings.proposals_per_point * num_points).max(FEWEST_PROPOSALS),
            PointStart::Sampler => num_points,
            _ => settings.proposals_per_point * num_points,
        };
        let stream = stream.child(number as u64);
        let weighted = match settings.start {
            PointStart::Grid => {
                self.weighted(&mlp, theta, settings.cells_per_axis, count, stream)?
            }
            start => self.sampler_weighted(&mlp, theta, count, start, stream)?,
        };
        let is_rejected = settings.start == PointStart::SamplerRejected;
        let chosen: Vec<Result<(Vec<f32>, f64)>> = weighted
            .par_iter()
            .enumerate()
            .map(|(set, weighted)| {
                let stream = stream.child(1_000 + set as u64);
                if is_rejected {
                    return reject(weighted, self.space.value_dim, num_points, stream);
                }
                Ok((resample(weighted, self.space.value_dim, num_points, stream), 1.0))
            })
            .collect();
        let (mut start, mut kept) = (Vec::new(), Vec::new());
        for found in chosen {
            let (found, share) = found?;
            start.extend(found);
            kept.push(share);
        }
        let (moved, acceptance) =
            self.move_points(&mlp, theta, start, settings, stream.child(2))?;
        let tally = DrawTally {
            num_sets: theta.len() / k,
            num_proposals: weighted.first().map_or(count, |set| set.log_weights.len()),
            effective: weighted.iter().map(|set| effective(&set.log_weights)).sum(),
            acceptance,
            kept,
        };
        Ok((moved, tally))
    }

    /// log Z(θ) for each θ of `theta` `[sets, k]` from `num_proposals` weights, with its error.
    ///
    /// # Errors
    ///
    /// As [`draw_points`](Self::draw_points).
    pub fn log_partition(
        &self,
        theta: &[f32],
        num_proposals: usize,
        stream: Stream,
    ) -> Result<Vec<LogDensity>> {
        let mlp = self.element_network()?;
        let cells = DrawSettings::default().cells_per_axis;
        let mut found = Vec::new();
        for (number, theta) in theta.chunks(DRAWN_AT_ONCE * self.config.latent_dim).enumerate() {
            let stream = stream.child(number as u64);
            if self.space.value_dim > GRID_DIMENSIONS {
                let count = num_proposals / PROPOSALS_PER_PARTICLE;
                let particles = self.tempered(&mlp, theta, count, stream)?;
                found.extend(particles.iter().map(|set| LogDensity::of_mean(&set.log_partitions)));
                continue;
            }
            let weighted = self.weighted(&mlp, theta, cells, num_proposals.max(2), stream)?;
            found.extend(weighted.iter().map(|set| LogDensity::of_mean(&set.log_weights)));
        }
        Ok(found)
    }

    /// Steps 1 and 2: `count` places for every θ, with log exp(u)/r.
    pub(super) fn weighted(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        cells: usize,
        count: usize,
        stream: Stream,
    ) -> Result<Vec<Weighted>> {
        let (dim, half) = (self.space.value_dim, self.space.high);
        if dim > GRID_DIMENSIONS {
            let particles = self.tempered(mlp, theta, count / PROPOSALS_PER_PARTICLE, stream)?;
            return Ok(particles.into_iter().map(|set| set.weighted(dim)).collect());
        }
        let grid = CoarseGrid { dim, half, cells };
        let drawn: Vec<Proposed> = self
            .coarse(mlp, theta, &grid, stream)?
            .into_par_iter()
            .enumerate()
            .map(|(set, u)| grid.propose(&u, count, stream.child(10 + set as u64)))
            .collect();
        self.weigh(mlp, theta, drawn)
    }

    /// Step 1: u at a place of every cell, for every θ.
    pub(super) fn coarse(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        grid: &CoarseGrid,
        stream: Stream,
    ) -> Result<Vec<Vec<f64>>> {
        let places = grid.places(stream.child(0));
        let num_cells = grid.num_cells();
        let found =
            self.candidate_values(mlp, theta, CandidateValues::Shared(&places), num_cells)?;
        let base: Vec<f32> = places.chunks_exact(grid.dim).map(|x| self.base(x)).collect();
        let sum = |f: &[f32]| f.iter().zip(&base).map(|(f, b)| f64::from(f + b)).collect();
        Ok(found.par_chunks_exact(num_cells).map(sum).collect())
    }

    /// f at places for every θ, as many for each.
    pub(super) fn candidate_values(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        values: CandidateValues<'_>,
        num_candidates: usize,
    ) -> Result<Vec<f32>> {
        let offsets = SetOffsets::uniform(theta.len() / self.config.latent_dim, 1)?;
        let candidates = Candidates {
            values,
            num_candidates,
            locations: &[],
            offsets: &offsets,
            context: theta,
            log_weights: LogWeights::Zero,
        };
        Ok(self.device.backend().log_partition(mlp, &candidates)?.values)
    }

    /// Step 2: proposals of every θ with their weights.
    pub(super) fn weigh(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        drawn: Vec<Proposed>,
    ) -> Result<Vec<Weighted>> {
        let dim = self.space.value_dim;
        let count = drawn.first().map_or(0, |(_, log_densities)| log_densities.len());
        let all: Vec<f32> = drawn.iter().flat_map(|(places, _)| places.iter().copied()).collect();
        let fine = self.candidate_values(mlp, theta, CandidateValues::PerAnchor(&all), count)?;
        Ok(drawn
            .into_par_iter()
            .zip(fine.par_chunks_exact(count))
            .map(|((values, log_densities), f)| {
                let log_weights = values
                    .chunks_exact(dim)
                    .zip(f)
                    .zip(&log_densities)
                    .map(|((x, f), log_r)| f64::from(f + self.base(x)) - log_r)
                    .collect();
                Weighted { values, log_weights }
            })
            .collect())
    }

    /// Step 4, and the share of moves that were accepted.
    fn move_points(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        points: Vec<f32>,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, f64)> {
        let num_sets = theta.len() / self.config.latent_dim;
        let offsets =
            SetOffsets::uniform(num_sets, points.len() / self.space.value_dim / num_sets)?;
        if settings.num_steps == 0 {
            return Ok((points, 1.0));
        }
        if settings.method == PointMethod::Mala {
            let chains = Chains { mlp, theta, offsets: &offsets };
            return self.mala(&chains, points, settings, stream);
        }
        let steps = settings.num_steps;
        let noise_scales: Vec<f32> = (0..steps)
            .map(|t| match settings.method {
                PointMethod::Annealed => (steps - 1 - t) as f32 / (steps.max(2) - 1) as f32,
                _ => 1.0,
            })
            .map(|share| share * settings.step_size.sqrt())
            .collect();
        let langevin = Langevin {
            step_sizes: &vec![settings.step_size; steps],
            noise_scales: &noise_scales,
            noise: stream,
            motion: self.motion(),
        };
        let batch = PointBatch { elements: &points, offsets: &offsets, context: theta };
        let run = self.device.backend().langevin(mlp, &batch, &langevin)?;
        Ok((run.elements, 1.0))
    }

    /// What every motion of points has in common.
    pub(super) fn motion(&self) -> Motion<'static> {
        let half = self.space.high;
        Motion {
            clip: Clip::Norm(LONGEST_GRADIENT),
            base_std_dev: self.config.base(),
            bounds: Some(Bounds { low: -half, high: half }),
            is_fixed: None,
        }
    }
}

/// Cells of a grid are as many as points beyond this many dimensions.
pub(super) const GRID_DIMENSIONS: usize = 3;
/// A particle looks at the energy some dozens of times on its way, a proposal once.
const PROPOSALS_PER_PARTICLE: usize = 8;
/// Fewer would miss thin parts of a shape, however few points are wanted.
const FEWEST_PROPOSALS: usize = 8192;
/// Longer gradients of u are shortened to this: at a step of 10⁻³ a point moves by half a unit.
const LONGEST_GRADIENT: f32 = 1000.0;
