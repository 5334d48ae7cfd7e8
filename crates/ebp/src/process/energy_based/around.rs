//! log Z at the code of a set, with as many proposals as its error asks for.
//!
//! They come from cells around the set's own points and around particles that follow exp u: the set may
//! lie where the model puts little mass, and a θ that climbs towards it puts mass exactly there, between
//! the places of any grid. Up to three dimensions particles are resampled from the cells of a grid
//! (`points.rs`), beyond they walk (`tempered.rs`). Either way Ẑ = mean exp(u)/r has the expectation Z.

use super::EnergyBasedProcess;
use super::grid::{CoarseGrid, Proposed, Weighted, resample};
use super::points::GRID_DIMENSIONS;
use super::step_points::num_uniform;
use crate::Result;
use crate::partition::{GridMixture, Proposals, Workspace};
use crate::point::PointMlp;
use crate::process::LogDensity;
use crate::rng::Stream;

/// Proposals that are looked at together, between two looks at the error.
const PER_ROUND: usize = 4096;
/// The standard error of log Z that is good enough.
pub(super) const TARGET_ERROR: f64 = 0.01;
/// Cells per axis that particles are found by, up to three dimensions.
const CELLS: usize = 16;
/// Particles that join the set's points.
const NUM_PARTICLES: usize = 1024;

impl EnergyBasedProcess {
    /// Places for Z(θ) of one θ with their weights exp(u)/r: at most `num_proposals`, fewer once the
    /// error is small.
    pub(super) fn around(
        &self,
        mlp: &PointMlp,
        set: &[f32],
        theta: &[f32],
        num_proposals: usize,
        stream: Stream,
    ) -> Result<Weighted> {
        let count = num_proposals.clamp(2, PER_ROUND);
        let propose = self.proposer(mlp, set, theta, count, stream.child(0))?;
        let mut found = Weighted { values: Vec::new(), log_weights: Vec::new() };
        for round in 0..num_proposals.div_ceil(count).max(1) as u64 {
            let drawn = vec![propose(stream.child(1 + round))];
            for part in self.weigh(mlp, theta, drawn)? {
                found.values.extend(part.values);
                found.log_weights.extend(part.log_weights);
            }
            if LogDensity::of_mean(&found.log_weights).std_error <= TARGET_ERROR {
                break;
            }
        }
        Ok(found)
    }

    /// Values of the energy that find particles.
    pub(super) fn particle_evaluations(&self) -> usize {
        let (dim, half) = (self.space.value_dim, self.space.high);
        let grid = CoarseGrid { dim, half, cells: CELLS };
        if dim > GRID_DIMENSIONS { 0 } else { grid.num_cells() + PER_ROUND }
    }

    /// What draws `count` places with log r, again and again.
    fn proposer(
        &self,
        mlp: &PointMlp,
        set: &[f32],
        theta: &[f32],
        count: usize,
        stream: Stream,
    ) -> Result<Box<dyn Fn(Stream) -> Proposed + '_>> {
        let (dim, half) = (self.space.value_dim, self.space.high);
        let mut points = set.to_vec();
        if dim <= GRID_DIMENSIONS {
            for weighted in self.weighted(mlp, theta, CELLS, PER_ROUND, stream)? {
                points.extend(resample(&weighted, dim, NUM_PARTICLES, stream.child(1)));
            }
        } else {
            for particles in self.tempered(mlp, theta, NUM_PARTICLES, stream)? {
                points.extend(particles.weighted(dim).values);
            }
        }
        let config = &self.config;
        Ok(Box::new(move |stream| {
            let counts = (count, num_uniform(config, count));
            let widths = &config.proposal.cell_widths;
            let num_points = points.len() / dim;
            let mixture = GridMixture::new(num_points, dim, half, widths, counts, stream.child(0));
            let (mut values, mut log_density) = (vec![0.0; count * dim], vec![0.0; count]);
            let mut out = Proposals {
                values: &mut values,
                log_density: &mut log_density,
                is_near: &mut vec![false; count],
            };
            mixture.draw(&points, stream.child(1), &mut out, &mut Workspace::default());
            (values, log_density.into_iter().map(f64::from).collect())
        }))
    }
}
