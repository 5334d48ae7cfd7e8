//! Langevin proposals that are accepted or rejected: every point a chain of its own, whose law is
//! that of the model at any step size.
//!
//! ```text
//! y = x + (η/2) β∇u(x) + √η ξ,   accepted with min(1, exp(β u(y) − β u(x)) q(x|y)/q(y|x))
//! ```
//!
//! β is 1 for the law of the model, less where points are on their way there (`tempered.rs`).

use super::EnergyBasedProcess;
use super::points::DrawSettings;
use crate::point::{PointBatch, PointMlp};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// What the points of several sets move on.
#[derive(Clone, Copy)]
pub(super) struct Chains<'a> {
    /// The network of f/τ.
    pub(super) mlp: &'a PointMlp,
    /// θ of every set.
    pub(super) theta: &'a [f32],
    pub(super) offsets: &'a SetOffsets,
}

/// How the points of one set move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// β, what u is multiplied by.
    pub(super) inverse_temperature: f32,
    /// η.
    pub(super) step_size: f32,
}

/// Points with what the next step needs of them.
#[derive(Debug)]
pub(super) struct Walkers {
    /// `[total, d]`.
    pub(super) points: Vec<f32>,
    /// u of every point, base measure included.
    pub(super) u: Vec<f32>,
    /// ∇u, as `points`.
    pub(super) gradient: Vec<f32>,
}

impl EnergyBasedProcess {
    /// u and ∇u at points.
    pub(super) fn walkers(&self, chains: &Chains<'_>, points: Vec<f32>) -> Result<Walkers> {
        let inverse = self.config.base().map_or(0.0, |std_dev| 1.0 / (std_dev * std_dev));
        let batch =
            PointBatch { elements: &points, offsets: chains.offsets, context: chains.theta };
        let found = self.device.backend().score(chains.mlp, &batch)?;
        let rows = points.chunks_exact(self.space.value_dim);
        let u = found.values.iter().zip(rows).map(|(f, x)| f + self.base(x)).collect();
        let gradient = found.score.iter().zip(&points).map(|(g, x)| g - inverse * x).collect();
        Ok(Walkers { points, u, gradient })
    }

    /// One step of all points, those of each set at its own pace; how many of each set moved.
    pub(super) fn mala_step(
        &self,
        chains: &Chains<'_>,
        walkers: &mut Walkers,
        paces: &[Pace],
        stream: Stream,
    ) -> Result<Vec<usize>> {
        let dim = self.space.value_dim;
        let Walkers { points, u, gradient } = walkers;
        let (mut noise, mut uniforms) = (vec![0.0; points.len()], vec![0.0; u.len()]);
        stream.child(0).fill_normal(0, 0, &mut noise);
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let mut moved = Vec::with_capacity(points.len());
        for (set, pace) in paces.iter().enumerate() {
            let Pace { inverse_temperature: beta, step_size } = *pace;
            let rows = chains.offsets.range(set);
            let range = rows.start * dim..rows.end * dim;
            let drift = gradient[range.clone()].iter().zip(&noise[range.clone()]);
            moved.extend(
                points[range]
                    .iter()
                    .zip(drift)
                    .map(|(x, (g, xi))| x + 0.5 * step_size * (beta * g) + step_size.sqrt() * xi),
            );
        }
        let moved = self.walkers(chains, moved)?;
        let mut num_accepted = vec![0; paces.len()];
        for (set, pace) in paces.iter().enumerate() {
            let Pace { inverse_temperature: beta, step_size } = *pace;
            for i in chains.offsets.range(set) {
                let row = i * dim..(i + 1) * dim;
                let (x, y) = (&points[row.clone()], &moved.points[row.clone()]);
                // log q(x | y) − log q(y | x) = (‖y − x − ηg/2‖² − ‖x − y − ηg′/2‖²)/(2η)
                let mut difference = 0.0;
                for axis in 0..dim {
                    let forward = step_size.sqrt() * noise[row.start + axis];
                    let there = beta * moved.gradient[row.start + axis];
                    let back = x[axis] - y[axis] - 0.5 * step_size * there;
                    difference += forward * forward - back * back;
                }
                let log_ratio = beta * (moved.u[i] - u[i]) + 0.5 * difference / step_size;
                let is_inside = y.iter().all(|x| x.abs() <= self.space.high);
                if is_inside && (1.0 - uniforms[i]).ln() < log_ratio {
                    num_accepted[set] += 1;
                    points[row.clone()].copy_from_slice(&moved.points[row.clone()]);
                    gradient[row.clone()].copy_from_slice(&moved.gradient[row]);
                    u[i] = moved.u[i];
                }
            }
        }
        Ok(num_accepted)
    }

    /// As many steps as the settings say, and the share that was accepted.
    pub(super) fn mala(
        &self,
        chains: &Chains<'_>,
        points: Vec<f32>,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, f64)> {
        let pace = Pace { inverse_temperature: 1.0, step_size: settings.step_size };
        let paces = vec![pace; chains.offsets.num_sets()];
        let mut walkers = self.walkers(chains, points)?;
        let mut num_accepted = 0;
        for number in 0..settings.num_steps {
            let stream = stream.child(number as u64);
            let accepted = self.mala_step(chains, &mut walkers, &paces, stream)?;
            num_accepted += accepted.iter().sum::<usize>();
        }
        let share = num_accepted as f64 / (walkers.u.len() * settings.num_steps) as f64;
        Ok((walkers.points, share))
    }
}
