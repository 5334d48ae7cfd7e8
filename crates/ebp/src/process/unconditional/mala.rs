//! Langevin proposals that are accepted or rejected: every point a chain of its own, whose law is
//! that of the model at any step size.

use super::UnconditionalProcess;
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

impl UnconditionalProcess {
    /// Metropolis-adjusted Langevin steps, every point a chain of its own:
    ///
    /// ```text
    /// y = x + (η/2) ∇u(x) + √η ξ,   accepted with min(1, exp(u(y) − u(x)) q(x|y)/q(y|x))
    /// ```
    pub(super) fn mala(
        &self,
        chains: &Chains<'_>,
        mut points: Vec<f32>,
        settings: &DrawSettings,
        stream: Stream,
    ) -> Result<(Vec<f32>, f64)> {
        let Chains { mlp, theta, offsets } = *chains;
        let dim = self.config.value_dim;
        let step_size = settings.step_size;
        let inverse = 1.0 / (self.config.base_std_dev * self.config.base_std_dev);
        let backend = self.networks.backend();
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
