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
//! weights of 2 also give log Z with its error.

use rayon::prelude::*;

use super::UnconditionalProcess;
use crate::point::{
    Bounds, CandidateValues, Candidates, Clip, Langevin, LogWeights, Motion, PointBatch, PointMlp,
};
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

/// Sets whose points are drawn together.
const DRAWN_AT_ONCE: usize = 16;
/// What cells get beside exp(u/2), as a share of all proposals.
const EVERYWHERE: f64 = 0.03;
/// The temperature at which the coarse values choose cells.
const COARSE_TEMPERATURE: f64 = 2.0;

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

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawSettings {
    /// Coarse cells per axis.
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
            cells_per_axis: 32,
            proposals_per_point: 8,
            method: PointMethod::Annealed,
            num_steps: 10,
            step_size: 2e-4,
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
}

/// Weighted places of one set.
struct Weighted {
    values: Vec<f32>,
    log_weights: Vec<f64>,
}

impl UnconditionalProcess {
    /// `num_points` points for each θ of `theta` `[sets, k]`, as `[sets, num_points, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is 0 or `theta` does not fit, [`Error::NonFinite`] if
    /// a point leaves the numbers.
    pub fn draw_points(
        &self,
        theta: &[f32],
        num_points: usize,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, DrawReport)> {
        let k = self.config.latent_dim;
        for (field, found) in [
            ("num_points", num_points),
            ("cells_per_axis", settings.cells_per_axis),
            ("proposals_per_point", settings.proposals_per_point),
        ] {
            if found == 0 {
                return Err(Error::invalid(field, "at least 1", found));
            }
        }
        let mlp = self.calibrated_mlp()?;
        let count = (settings.proposals_per_point * num_points).max(FEWEST_PROPOSALS);
        let num_sets = theta.len() / k;
        let (mut points, mut accepted) = (Vec::new(), 0.0);
        let mut report = DrawReport { num_proposals: count, ..DrawReport::default() };
        for (number, theta) in theta.chunks(DRAWN_AT_ONCE * k).enumerate() {
            let stream = stream.child(number as u64);
            let weighted = self.weighted(&mlp, theta, settings.cells_per_axis, count, stream)?;
            let chosen: Vec<Vec<f32>> = weighted
                .par_iter()
                .enumerate()
                .map(|(set, weighted)| {
                    let stream = stream.child(1_000 + set as u64);
                    resample(weighted, self.config.value_dim, num_points, stream)
                })
                .collect();
            let effective: f64 = weighted.iter().map(|set| effective(&set.log_weights)).sum();
            report.effective_proposals += effective / num_sets as f64;
            let (moved, acceptance) =
                self.move_points(&mlp, theta, chosen.concat(), settings, stream.child(2))?;
            accepted += acceptance * (theta.len() / k) as f64 / num_sets as f64;
            points.extend(moved);
        }
        if settings.method == PointMethod::Mala {
            report.acceptance = Some(accepted);
        }
        Ok((points, report))
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
        let mlp = self.calibrated_mlp()?;
        let cells = DrawSettings::default().cells_per_axis;
        let mut found = Vec::new();
        for (number, theta) in theta.chunks(DRAWN_AT_ONCE * self.config.latent_dim).enumerate() {
            let stream = stream.child(number as u64);
            let weighted = self.weighted(&mlp, theta, cells, num_proposals.max(2), stream)?;
            found.extend(weighted.iter().map(|set| LogDensity::of_mean(&set.log_weights)));
        }
        Ok(found)
    }

    /// Steps 1 and 2: `count` places for every θ, with log exp(u)/r.
    fn weighted(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        cells: usize,
        count: usize,
        stream: Stream,
    ) -> Result<Vec<Weighted>> {
        let (dim, half) = (self.config.value_dim, self.config.half_width);
        let grid = CoarseGrid { dim, half, cells };
        let num_cells = grid.num_cells();
        let places = grid.places(stream.child(0));
        let num_sets = theta.len() / self.config.latent_dim;
        let offsets = SetOffsets::uniform(num_sets, 1)?;
        let values = |values: CandidateValues<'_>, num_candidates: usize| -> Result<Vec<f32>> {
            let candidates = Candidates {
                values,
                num_candidates,
                locations: &[],
                offsets: &offsets,
                context: theta,
                log_weights: LogWeights::Zero,
            };
            Ok(self.energy.module.backend().log_partition(mlp, &candidates)?.values)
        };
        let coarse = values(CandidateValues::Shared(&places), num_cells)?;
        let base: Vec<f32> = places.chunks_exact(dim).map(|x| self.base(x)).collect();
        let drawn: Vec<(Vec<f32>, Vec<f64>)> = coarse
            .par_chunks_exact(num_cells)
            .enumerate()
            .map(|(set, f)| {
                let u: Vec<f64> = f.iter().zip(&base).map(|(f, b)| f64::from(f + b)).collect();
                grid.propose(&u, count, stream.child(10 + set as u64))
            })
            .collect();
        let all: Vec<f32> = drawn.iter().flat_map(|(places, _)| places.iter().copied()).collect();
        let fine = values(CandidateValues::PerAnchor(&all), count)?;
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
            SetOffsets::uniform(num_sets, points.len() / self.config.value_dim / num_sets)?;
        if settings.num_steps == 0 {
            return Ok((points, 1.0));
        }
        if settings.method == PointMethod::Mala {
            return self.mala(mlp, theta, points, &offsets, settings, stream);
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
        let run = self.energy.module.backend().langevin(mlp, &batch, &langevin)?;
        Ok((run.elements, 1.0))
    }

    /// What every motion of points has in common.
    pub(super) fn motion(&self) -> Motion<'static> {
        let half = self.config.half_width;
        Motion {
            clip: Clip::Norm(LONGEST_GRADIENT),
            base_std_dev: Some(self.config.base_std_dev),
            bounds: Some(Bounds { low: -half, high: half }),
            is_fixed: None,
        }
    }

    /// Metropolis-adjusted Langevin steps, every point a chain of its own:
    ///
    /// ```text
    /// y = x + (η/2) ∇u(x) + √η ξ,   accepted with min(1, exp(u(y) − u(x)) q(x|y)/q(y|x))
    /// ```
    fn mala(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        mut points: Vec<f32>,
        offsets: &SetOffsets,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, f64)> {
        let dim = self.config.value_dim;
        let step_size = settings.step_size;
        let inverse = 1.0 / (self.config.base_std_dev * self.config.base_std_dev);
        let backend = self.energy.module.backend();
        // u and ∇u, base measure included.
        let score = |points: &[f32]| -> Result<(Vec<f32>, Vec<f32>)> {
            let batch = PointBatch { elements: points, offsets, context: theta };
            let found = backend.score(mlp, &batch)?;
            let u = found.values.iter().zip(points.chunks_exact(dim));
            let u = u.map(|(f, x)| f + self.base(x)).collect();
            let gradient = found.score.iter().zip(points).map(|(g, x)| g - inverse * x).collect();
            Ok((u, gradient))
        };
        let (mut u, mut gradient) = score(&points)?;
        let n = u.len();
        let (mut noise, mut uniforms) = (vec![0.0; points.len()], vec![0.0; n]);
        let mut num_accepted = 0_usize;
        for number in 0..settings.num_steps {
            let stream = stream.child(number as u64);
            stream.child(0).fill_normal(0, 0, &mut noise);
            stream.child(1).fill_uniform(0, 0, &mut uniforms);
            let moved: Vec<f32> = points
                .iter()
                .zip(gradient.iter().zip(&noise))
                .map(|(x, (g, xi))| x + 0.5 * step_size * g + step_size.sqrt() * xi)
                .collect();
            let (moved_u, moved_gradient) = score(&moved)?;
            for i in 0..n {
                let row = i * dim..(i + 1) * dim;
                let (x, y) = (&points[row.clone()], &moved[row.clone()]);
                // log q(x | y) − log q(y | x) = (‖y − x − ηg/2‖² − ‖x − y − ηg′/2‖²)/(2η)
                let mut difference = 0.0;
                for axis in 0..dim {
                    let forward = step_size.sqrt() * noise[row.start + axis];
                    let back =
                        x[axis] - y[axis] - 0.5 * step_size * moved_gradient[row.start + axis];
                    difference += forward * forward - back * back;
                }
                let log_ratio = moved_u[i] - u[i] + 0.5 * difference / step_size;
                let is_inside = y.iter().all(|x| x.abs() <= self.config.half_width);
                if is_inside && (1.0 - uniforms[i]).ln() < log_ratio {
                    num_accepted += 1;
                    points[row.clone()].copy_from_slice(&moved[row.clone()]);
                    gradient[row.clone()].copy_from_slice(&moved_gradient[row]);
                    u[i] = moved_u[i];
                }
            }
        }
        let share = num_accepted as f64 / (n * settings.num_steps) as f64;
        Ok((points, share))
    }
}

/// Fewer would miss thin parts of a shape, however few points are wanted.
const FEWEST_PROPOSALS: usize = 8192;
/// Longer gradients of u are shortened to this: at a step of 10⁻³ a point moves by half a unit.
const LONGEST_GRADIENT: f32 = 1000.0;

/// Cubes that fill the domain.
struct CoarseGrid {
    dim: usize,
    half: f32,
    cells: usize,
}

impl CoarseGrid {
    fn num_cells(&self) -> usize {
        self.cells.pow(u32::try_from(self.dim).unwrap_or(3))
    }

    fn width(&self) -> f32 {
        2.0 * self.half / self.cells as f32
    }

    /// The lower corner of a cell.
    fn corner(&self, mut cell: usize, axis: usize) -> f32 {
        for _ in 0..axis {
            cell /= self.cells;
        }
        (cell % self.cells) as f32 * self.width() - self.half
    }

    /// One random place in every cell, `[cells, d]`.
    fn places(&self, stream: Stream) -> Vec<f32> {
        let mut places = vec![0.0; self.num_cells() * self.dim];
        stream.fill_uniform(0, 0, &mut places);
        for (cell, place) in places.chunks_exact_mut(self.dim).enumerate() {
            for (axis, x) in place.iter_mut().enumerate() {
                *x = self.corner(cell, axis) + *x * self.width();
            }
        }
        places
    }

    /// `count` places in cells chosen by `u`, and log r of each.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a position below the number of cells; networks compute in f32"
    )]
    fn propose(&self, u: &[f64], count: usize, stream: Stream) -> (Vec<f32>, Vec<f64>) {
        let largest = u.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let tempered: Vec<f64> =
            u.iter().map(|u| ((u - largest) / COARSE_TEMPERATURE).exp()).collect();
        let sum: f64 = tempered.iter().sum();
        let everywhere = EVERYWHERE / tempered.len() as f64;
        let shares: Vec<f64> =
            tempered.iter().map(|t| (1.0 - EVERYWHERE) * t / sum + everywhere).collect();
        let volume = f64::from(self.width()).powi(i32::try_from(self.dim).unwrap_or(3));
        let mut uniforms = vec![0.0; count * self.dim];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let mut log_densities = Vec::with_capacity(count);
        for (place, cell) in
            uniforms.chunks_exact_mut(self.dim).zip(systematic(&shares, count, stream.child(1)))
        {
            for (axis, x) in place.iter_mut().enumerate() {
                *x = self.corner(cell, axis) + *x * self.width();
            }
            log_densities.push((shares[cell] / volume).ln());
        }
        (uniforms, log_densities)
    }
}

/// `count` numbers, number i about `count · shares[i]` times: one draw moves a comb over the sums.
fn systematic(shares: &[f64], count: usize, stream: Stream) -> Vec<usize> {
    let mut start = [0.0];
    stream.fill_uniform(0, 0, &mut start);
    let total: f64 = shares.iter().sum();
    let mut chosen = Vec::with_capacity(count);
    let (mut sum, mut index) = (shares[0], 0);
    for tooth in 0..count {
        let place = (tooth as f64 + f64::from(start[0])) / count as f64 * total;
        while sum <= place && index + 1 < shares.len() {
            index += 1;
            sum += shares[index];
        }
        chosen.push(index);
    }
    chosen
}

/// `count` of the places by their weights, in a drawn order.
fn resample(weighted: &Weighted, dim: usize, count: usize, stream: Stream) -> Vec<f32> {
    let largest = weighted.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = weighted.log_weights.iter().map(|w| (w - largest).exp()).collect();
    let chosen = systematic(&weights, count, stream.child(0));
    crate::data::mesh::shuffled(count, stream.child(1))
        .into_iter()
        .flat_map(|place| &weighted.values[chosen[place] * dim..(chosen[place] + 1) * dim])
        .copied()
        .collect()
}

/// (Σ w)²/Σ w².
fn effective(log_weights: &[f64]) -> f64 {
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = log_weights.iter().map(|w| (w - largest).exp());
    let (sum, squares) = weights.fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
    sum * sum / squares
}
