//! Gradients through a whole run of steps, exact for every activation.
//!
//! The trajectory is recomputed (the noise is a function of its index) and kept in the tile:
//! d_x numbers per element and step. Going back, a step needs the Hessian of u only along one
//! direction w, which is one second-order pass of the tile:
//!
//! ```text
//! Langevin   x' = R(x + v),  v = s ξ + (η/2) g(x)
//!            μ = ∂L/∂v,  ∂L/∂η = ½ ⟨μ, g⟩,  ∂L/∂x = R′ ∂L/∂x' + H w,  w = J_clipᵀ (η/2) μ
//! ```
//!
//! For piecewise linear σ the network's Hessian vanishes and no pass is made.

use std::ops::Range;

use super::accumulator::Accumulator;
use super::call::{Call, concat};
use super::dynamics::half_kick;
use super::motion::Mover;
use super::packed::Needs;
use super::schedule::{tile_rows, tiles};
use super::tile::{Keep, Network, Tile};
use crate::point::{DynamicsCotangent, DynamicsGradients, Langevin, Leapfrog, Wanted};

/// Dynamics hold the parameters fixed; only the context's path through the drift is kept.
const CONTEXT: Wanted = Wanted { context: true, ..Wanted::NOTHING };

/// What one chunk contributes.
struct Part {
    values: Vec<f32>,
    momentum: Vec<f32>,
    step_sizes: Vec<f64>,
    sums: Accumulator,
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum()
}

/// adjoint += H w at `positions`, where H is the Hessian of u and w = J_clipᵀ `push`; also adds
/// the context's share.
struct HessianStep<'a, 'n> {
    net: &'a Network<'n>,
    mover: &'a Mover<'a>,
    is_curved: bool,
}

impl HessianStep<'_, '_> {
    fn apply(
        &self,
        tile: &mut Tile,
        sums: &mut Accumulator,
        (positions, gradient): (&[f32], &[f32]),
        push: &mut [f32],
        adjoint: &mut [f32],
    ) {
        let dims = self.mover.dims;
        self.mover.clip_backward(gradient, push);
        let precision = self.mover.precision();
        for (adjoint, push) in adjoint.iter_mut().zip(&*push) {
            *adjoint -= precision * push;
        }
        if !self.is_curved {
            return;
        }
        self.mover.place(tile, positions);
        for (row, push) in push.chunks_exact(dims).enumerate() {
            tile.element_tangent.row_mut(row)[..dims].copy_from_slice(push);
        }
        tile.forward(self.net, Keep::Curvatures, false);
        tile.second_order(self.net, |_| 0.0);
        tile.accumulate_second_order(self.net, sums);
        tile.second_order_to_elements(self.net);
        for (row, adjoint) in adjoint.chunks_exact_mut(dims).enumerate() {
            for (adjoint, term) in adjoint.iter_mut().zip(tile.element_gradient.row(row)) {
                *adjoint += term;
            }
        }
    }
}

/// Runs `work` on every tile of every chunk and puts the gradients together.
fn run(
    call: &Call<'_>,
    steps: usize,
    work: impl Fn(&Network<'_>, &mut Tile, &mut Part, Range<usize>) + Sync + Send,
) -> DynamicsGradients {
    let net = call.network(Needs { backward: true, element_dims: call.value_dim() });
    let capacity = tile_rows(&net.packed, 5);
    let parts = call.run(
        capacity,
        || Tile::new(&net, capacity, Keep::Curvatures),
        |tile, chunk| {
            let mut part = Part {
                values: Vec::new(),
                momentum: Vec::new(),
                step_sizes: vec![0.0; steps],
                sums: Accumulator::new(&net, call.sets_of(&chunk), CONTEXT),
            };
            for range in tiles(chunk, capacity) {
                work(&net, tile, &mut part, range);
            }
            part
        },
    );
    let mut step_sizes = vec![0.0_f64; steps];
    let (mut values, mut momentum, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        for (total, term) in step_sizes.iter_mut().zip(&part.step_sizes) {
            *total += term;
        }
        values.push(part.values);
        momentum.push(part.momentum);
        sums.push(part.sums);
    }
    DynamicsGradients {
        values: concat(values),
        momentum: concat(momentum),
        step_sizes: step_sizes.into_iter().map(|total| total as f32).collect(),
        context: call.finish(&net, &sums, CONTEXT).context.unwrap_or_default(),
    }
}

pub(super) fn langevin_backward(
    call: &Call<'_>,
    settings: &Langevin<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> DynamicsGradients {
    let dims = call.value_dim();
    let is_curved = !call.mlp.shape().config().activation.is_piecewise_linear();
    let steps = settings.step_sizes.len();
    run(call, steps, |net, tile, part, range| {
        let mover = Mover { motion: &settings.motion, dims, first: range.start };
        let hessian = HessianStep { net, mover: &mover, is_curved };
        let rows = range.clone();
        call.load(tile, range);
        let length = tile.rows * dims;

        // Forward again: x_t, ∇u(x_t), g_t and v_t of every step.
        let mut positions = vec![mover.positions(tile)];
        let mut gradients = vec![vec![0.0; length]; steps];
        let mut drifts = vec![vec![0.0; length]; steps];
        let mut velocities = vec![vec![0.0; length]; steps];
        for step in 0..steps {
            mover.place(tile, &positions[step]);
            mover.gradient(net, tile, &mut gradients[step]);
            mover.clip(&gradients[step], &mut drifts[step]);
            let start = (mover.first * dims) as u64;
            net.kernels.normals(settings.noise, step as u32, start, &mut velocities[step]);
            let (scale, step_size) = (settings.noise_scales[step], settings.step_sizes[step]);
            let mut next = positions[step].clone();
            for row in 0..tile.rows {
                for i in row * dims..(row + 1) * dims {
                    if mover.is_fixed(row) {
                        velocities[step][i] = 0.0;
                    } else {
                        let v = &mut velocities[step][i];
                        *v = scale * *v + 0.5 * step_size * drifts[step][i];
                        next[i] = mover.reflect(next[i] + *v).0;
                    }
                }
            }
            positions.push(next);
        }

        // And back.
        let mut adjoint = cotangent.values[rows.start * dims..rows.end * dims].to_vec();
        for step in (0..steps).rev() {
            let step_size = settings.step_sizes[step];
            let mut push = vec![0.0; length];
            for row in 0..tile.rows {
                if mover.is_fixed(row) {
                    continue;
                }
                let kinetic = cotangent.kinetic.map_or(0.0, |kinetic| kinetic[rows.start + row]);
                for i in row * dims..(row + 1) * dims {
                    let v = velocities[step][i];
                    adjoint[i] *= mover.reflect(positions[step][i] + v).1;
                    push[i] = adjoint[i] + 2.0 * kinetic * v;
                }
            }
            part.step_sizes[step] += 0.5 * dot(&push, &drifts[step]);
            for push in &mut push {
                *push *= 0.5 * step_size;
            }
            let place = (&positions[step][..], &gradients[step][..]);
            hessian.apply(tile, &mut part.sums, place, &mut push, &mut adjoint);
        }
        part.values.extend_from_slice(&adjoint);
    })
}

pub(super) fn leapfrog_backward(
    call: &Call<'_>,
    momentum: &[f32],
    settings: &Leapfrog<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> DynamicsGradients {
    let dims = call.value_dim();
    let is_curved = !call.mlp.shape().config().activation.is_piecewise_linear();
    let steps = settings.step_sizes.len();
    run(call, steps, |net, tile, part, range| {
        let mover = Mover { motion: &settings.motion, dims, first: range.start };
        let hessian = HessianStep { net, mover: &mover, is_curved };
        let entries = range.start * dims..range.end * dims;
        call.load(tile, range);
        let length = tile.rows * dims;

        // Forward again: positions and drifts at both ends of every step, momenta half-way, and
        // the sign that a wall gave to each coordinate.
        let mut velocity = momentum[entries.clone()].to_vec();
        let mut positions = vec![mover.positions(tile)];
        let mut gradients = vec![vec![0.0; length]; steps + 1];
        let mut drifts = vec![vec![0.0; length]; steps + 1];
        let mut half_velocities = Vec::with_capacity(steps);
        let mut slopes = vec![vec![1.0; length]; steps];
        mover.gradient(net, tile, &mut gradients[0]);
        mover.clip(&gradients[0], &mut drifts[0]);
        for (step, &step_size) in settings.step_sizes.iter().enumerate() {
            half_kick(&mut velocity, &drifts[step], step_size);
            half_velocities.push(velocity.clone());
            let mut next = positions[step].clone();
            for row in (0..tile.rows).filter(|&row| !mover.is_fixed(row)) {
                for i in row * dims..(row + 1) * dims {
                    (next[i], slopes[step][i]) = mover.reflect(next[i] + step_size * velocity[i]);
                    if slopes[step][i] < 1.0 {
                        velocity[i] = -velocity[i];
                    }
                }
            }
            mover.place(tile, &next);
            mover.gradient(net, tile, &mut gradients[step + 1]);
            mover.clip(&gradients[step + 1], &mut drifts[step + 1]);
            half_kick(&mut velocity, &drifts[step + 1], step_size);
            positions.push(next);
        }

        // And back. `push` collects ∂L/∂g at one position from the two half kicks that use it.
        let mut adjoint = cotangent.values[entries.clone()].to_vec();
        let mut adjoint_v =
            cotangent.momentum.map_or_else(|| vec![0.0; length], |m| m[entries.clone()].to_vec());
        let mut push = vec![0.0; length];
        for (step, &step_size) in settings.step_sizes.iter().enumerate().rev() {
            part.step_sizes[step] += 0.5 * dot(&adjoint_v, &drifts[step + 1]);
            half_kick(&mut push, &adjoint_v, step_size);
            let place = (&positions[step + 1][..], &gradients[step + 1][..]);
            hessian.apply(tile, &mut part.sums, place, &mut push, &mut adjoint);
            for row in (0..tile.rows).filter(|&row| !mover.is_fixed(row)) {
                for i in row * dims..(row + 1) * dims {
                    let slope = slopes[step][i];
                    if slope < 1.0 {
                        adjoint_v[i] = -adjoint_v[i];
                    }
                    adjoint[i] *= slope;
                    part.step_sizes[step] +=
                        f64::from(adjoint[i]) * f64::from(half_velocities[step][i]);
                    adjoint_v[i] += step_size * adjoint[i];
                }
            }
            part.step_sizes[step] += 0.5 * dot(&adjoint_v, &drifts[step]);
            push.fill(0.0);
            half_kick(&mut push, &adjoint_v, step_size);
        }
        if steps > 0 {
            let place = (&positions[0][..], &gradients[0][..]);
            hessian.apply(tile, &mut part.sums, place, &mut push, &mut adjoint);
        }
        part.values.extend_from_slice(&adjoint);
        part.momentum.extend_from_slice(&adjoint_v);
    })
}
