//! Gradients through a run of steps, by replaying it with a backend's scores.
//!
//! The trajectory is computed again (the noise is a function of its index) and kept: d_x numbers
//! per element and step. Going back, a step needs the Hessian of u only along one direction, which
//! is one `score_backward`:
//!
//! ```text
//! Langevin   x' = R(x + v),  v = s ξ + (η/2) g(x)
//!            μ = ∂L/∂v,  ∂L/∂η = ½ ⟨μ, g⟩,  ∂L/∂x = R′ ∂L/∂x' + H w,  w = J_clipᵀ (η/2) μ
//! ```
//!
//! For piecewise linear σ the network's Hessian vanishes and no pass is made. A backend with its
//! own fused passes, such as the CPU's, does not need this.
#![allow(clippy::cast_possible_truncation, reason = "sums are rounded to f32, steps are few")]

use rayon::prelude::*;

use super::mover::Mover;
use super::{
    DynamicsCotangent, DynamicsGradients, Langevin, Leapfrog, Motion, PointBackend, PointBatch,
    PointMlp, ScoreCotangent, Wanted,
};
use crate::Result;

/// Rows that one thread takes at a time. Sums are taken block by block and added in order, so that
/// threads do not change them.
const BLOCK: usize = 1024;

/// A batch whose values move.
struct Replay<'a> {
    backend: &'a dyn PointBackend,
    mlp: &'a PointMlp,
    batch: &'a PointBatch<'a>,
    motion: &'a Motion<'a>,
    dims: usize,
    /// The elements as they stand, `[total, d]`.
    elements: Vec<f32>,
    context_gradient: Vec<f32>,
}

/// ∇u and g = clip(∇u) at one position.
struct Drift {
    elements: Vec<f32>,
    gradient: Vec<f32>,
    clipped: Vec<f32>,
}

impl<'a> Replay<'a> {
    fn new(
        backend: &'a dyn PointBackend,
        mlp: &'a PointMlp,
        batch: &'a PointBatch<'a>,
        motion: &'a Motion<'a>,
    ) -> Self {
        Self {
            backend,
            mlp,
            batch,
            motion,
            dims: mlp.shape().config().value_dim,
            elements: batch.elements.to_vec(),
            context_gradient: vec![0.0; batch.context.len()],
        }
    }

    fn at<'b>(&'b self, elements: &'b [f32]) -> PointBatch<'b> {
        PointBatch { elements, ..*self.batch }
    }

    /// What moves the rows of a block.
    fn mover(&self, block: usize) -> Mover<'a> {
        Mover { motion: self.motion, dims: self.dims, first: block * BLOCK }
    }

    fn drift(&self) -> Result<Drift> {
        let (d, dims) = (self.mlp.shape().element_dim(), self.dims);
        let mut gradient = self.backend.score(self.mlp, &self.at(&self.elements))?.score;
        let mut clipped = vec![0.0; gradient.len()];
        let blocks =
            gradient.par_chunks_mut(BLOCK * dims).zip(clipped.par_chunks_mut(BLOCK * dims));
        blocks.zip(self.elements.par_chunks(BLOCK * d)).enumerate().for_each(
            |(block, ((gradient, clipped), elements))| {
                let mover = self.mover(block);
                let precision = mover.precision();
                for (gradient, row) in gradient.chunks_exact_mut(dims).zip(elements.chunks_exact(d))
                {
                    gradient.iter_mut().zip(row).for_each(|(g, x)| *g -= x * precision);
                }
                mover.clip(gradient, clipped);
            },
        );
        Ok(Drift { elements: self.elements.clone(), gradient, clipped })
    }

    /// x ← R(x + `scale` v) for the moving elements; the slopes of R.
    fn advance(&mut self, velocity: &[f32], scale: f32) -> Vec<f32> {
        let (d, dims) = (self.mlp.shape().element_dim(), self.dims);
        let mut slopes = vec![1.0; velocity.len()];
        let (motion, blocks) = (self.motion, self.elements.par_chunks_mut(BLOCK * d));
        blocks
            .zip(slopes.par_chunks_mut(BLOCK * dims))
            .zip(velocity.par_chunks(BLOCK * dims))
            .enumerate()
            .for_each(|(block, ((elements, slopes), velocity))| {
                let mover = Mover { motion, dims, first: block * BLOCK };
                let rows = elements.chunks_exact_mut(d).zip(slopes.chunks_exact_mut(dims));
                for (row, ((x, slopes), v)) in rows.zip(velocity.chunks_exact(dims)).enumerate() {
                    if mover.is_fixed(row) {
                        continue;
                    }
                    for ((x, slope), v) in x.iter_mut().zip(slopes).zip(v) {
                        (*x, *slope) = mover.reflect(*x + scale * v);
                    }
                }
            });
        slopes
    }

    /// adjoint += H w at a drift's position, w = J_clipᵀ `push`; the context's share is kept.
    fn pull_back(&mut self, drift: &Drift, mut push: Vec<f32>, adjoint: &mut [f32]) -> Result<()> {
        let dims = self.dims;
        let blocks = push.par_chunks_mut(BLOCK * dims).zip(adjoint.par_chunks_mut(BLOCK * dims));
        blocks.zip(drift.gradient.par_chunks(BLOCK * dims)).enumerate().for_each(
            |(block, ((push, adjoint), gradient))| {
                let mover = self.mover(block);
                mover.clip_backward(gradient, push);
                let precision = mover.precision();
                adjoint.iter_mut().zip(push).for_each(|(a, push)| *a -= precision * *push);
            },
        );
        if self.mlp.shape().config().activation.is_piecewise_linear() {
            return Ok(());
        }
        let wanted = Wanted { parameters: false, context: true, elements: true };
        let cotangent = ScoreCotangent { score: &push, values: None };
        let batch = self.at(&drift.elements);
        let gradients = self.backend.score_backward(self.mlp, &batch, cotangent, wanted)?;
        let d = self.mlp.shape().element_dim();
        let terms = gradients.elements.unwrap_or_default();
        adjoint.par_chunks_mut(dims).zip(terms.par_chunks(d)).with_min_len(BLOCK).for_each(
            |(adjoint, term)| adjoint.iter_mut().zip(term).for_each(|(a, term)| *a += term),
        );
        let context = gradients.context.unwrap_or_default();
        self.context_gradient.iter_mut().zip(&context).for_each(|(sum, term)| *sum += term);
        Ok(())
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let block =
        |(a, b): (&[f32], &[f32])| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let sums: Vec<f64> = a.par_chunks(BLOCK).zip(b.par_chunks(BLOCK)).map(block).collect();
    sums.iter().sum()
}

fn scaled(values: &[f32], scale: f32) -> Vec<f32> {
    values.par_iter().with_min_len(BLOCK).map(|value| scale * value).collect()
}

fn multiply(values: &mut [f32], by: &[f32]) {
    let pairs = values.par_iter_mut().zip(by).with_min_len(BLOCK);
    pairs.for_each(|(value, by)| *value *= by);
}

pub(super) fn langevin_backward(
    backend: &dyn PointBackend,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    settings: &Langevin<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> Result<DynamicsGradients> {
    let mut replay = Replay::new(backend, mlp, batch, &settings.motion);
    let dims = replay.dims;
    let mut path = Vec::with_capacity(settings.step_sizes.len());
    for (step, (eta, noise)) in settings.step_sizes.iter().zip(settings.noise_scales).enumerate() {
        let drift = replay.drift()?;
        let mut velocity = vec![0.0; drift.clipped.len()];
        let step = u32::try_from(step).unwrap_or(u32::MAX);
        let blocks = velocity.par_chunks_mut(BLOCK * dims);
        blocks.zip(drift.clipped.par_chunks(BLOCK * dims)).enumerate().for_each(
            |(block, (velocity, clipped))| {
                let mover = replay.mover(block);
                settings.noise.fill_normal(step, (block * BLOCK * dims) as u64, velocity);
                let rows = velocity.chunks_exact_mut(dims).zip(clipped.chunks_exact(dims));
                for (row, (velocity, clipped)) in rows.enumerate() {
                    // v = s ξ + (η/2) g, zero where an element is fixed
                    let scale = if mover.is_fixed(row) { 0.0 } else { *noise };
                    for (v, g) in velocity.iter_mut().zip(clipped) {
                        *v = scale * *v + 0.5 * eta * g;
                    }
                }
            },
        );
        let slopes = replay.advance(&velocity, 1.0);
        path.push((drift, velocity, slopes));
    }
    let mut adjoint = cotangent.values.to_vec();
    let mut step_sizes = vec![0.0; settings.step_sizes.len()];
    for (step, (drift, velocity, slopes)) in path.iter().enumerate().rev() {
        multiply(&mut adjoint, slopes);
        let mut push = adjoint.clone();
        if let Some(kinetic) = cotangent.kinetic {
            let rows = push.par_chunks_mut(dims).zip(velocity.par_chunks(dims));
            rows.zip(kinetic).with_min_len(BLOCK).for_each(|((push, v), kinetic)| {
                push.iter_mut().zip(v).for_each(|(push, v)| *push += 2.0 * kinetic * v);
            });
        }
        step_sizes[step] = (0.5 * dot(&drift.clipped, &push)) as f32;
        let push = scaled(&push, 0.5 * settings.step_sizes[step]);
        replay.pull_back(drift, push, &mut adjoint)?;
    }
    Ok(DynamicsGradients {
        values: adjoint,
        momentum: Vec::new(),
        step_sizes,
        context: replay.context_gradient,
    })
}

pub(super) fn leapfrog_backward(
    backend: &dyn PointBackend,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    momentum: &[f32],
    settings: &Leapfrog<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> Result<DynamicsGradients> {
    let mut replay = Replay::new(backend, mlp, batch, &settings.motion);
    let kick = |velocity: &mut [f32], drift: &Drift, eta: f32| {
        velocity.iter_mut().zip(&drift.clipped).for_each(|(v, g)| *v += 0.5 * eta * g);
    };
    let mut velocity = momentum.to_vec();
    let mut path = Vec::with_capacity(settings.step_sizes.len());
    for &eta in settings.step_sizes {
        let before = replay.drift()?;
        kick(&mut velocity, &before, eta);
        let halfway = velocity.clone();
        let slopes = replay.advance(&velocity, eta);
        // A wall turns the momentum round, also where the element was clamped to it.
        let signs: Vec<_> = slopes.iter().map(|&s| if s < 1.0 { -1.0 } else { 1.0 }).collect();
        multiply(&mut velocity, &signs);
        let after = replay.drift()?;
        kick(&mut velocity, &after, eta);
        path.push((before, halfway, slopes, signs, after));
    }
    let mut adjoint = cotangent.values.to_vec();
    let mut pull = cotangent.momentum.map_or_else(|| vec![0.0; adjoint.len()], <[f32]>::to_vec);
    let mut step_sizes = vec![0.0; settings.step_sizes.len()];
    let dims = replay.dims;
    for (step, (before, halfway, slopes, signs, after)) in path.iter().enumerate().rev() {
        let eta = settings.step_sizes[step];
        let mut total = 0.5 * dot(&after.clipped, &pull);
        replay.pull_back(after, scaled(&pull, 0.5 * eta), &mut adjoint)?;
        // A fixed element keeps place and momentum: nothing passes between the two.
        let mover = replay.mover(0);
        for row in 0..adjoint.len() / dims {
            if mover.is_fixed(row) {
                continue;
            }
            for k in row * dims..(row + 1) * dims {
                adjoint[k] *= slopes[k];
                total += f64::from(halfway[k] * adjoint[k]);
                pull[k] = signs[k] * pull[k] + eta * adjoint[k];
            }
        }
        total += 0.5 * dot(&before.clipped, &pull);
        replay.pull_back(before, scaled(&pull, 0.5 * eta), &mut adjoint)?;
        step_sizes[step] = total as f32;
    }
    Ok(DynamicsGradients {
        values: adjoint,
        momentum: pull,
        step_sizes,
        context: replay.context_gradient,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetOffsets;
    use crate::point::{Activation, Bounds, Clip, ContextAt, CpuBackend, MlpConfig, MlpShape};
    use crate::rng::Stream;

    fn assert_same(what: &str, found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "{what}");
        }
    }

    /// The CPU's fused passes are proven by the twin; a replay with its scores must agree.
    #[test]
    fn replays_agree_with_the_fused_passes_of_the_cpu() {
        // The larger sets take several blocks, the last one not full.
        for sizes in [[3, 5], [1500, 1111]] {
            compare(sizes);
        }
    }

    fn compare(sizes: [usize; 2]) {
        let cpu = CpuBackend::new();
        let offsets = SetOffsets::from_sizes(sizes).unwrap();
        let total = offsets.num_elements();
        let is_fixed: Vec<bool> = (0..total).map(|row| row % 4 == 1).collect();
        let clips = [Clip::Off, Clip::Elementwise(0.3), Clip::Norm(0.4)];
        for (activation, clip) in
            [Activation::Silu, Activation::Tanh, Activation::Relu].into_iter().zip(clips)
        {
            let config = MlpConfig {
                value_dim: 2,
                location_dim: 1,
                context_dim: 2,
                hidden_widths: vec![9, 7],
                context_at: ContextAt::EveryLayer,
                activation,
                ..MlpConfig::default()
            };
            let stream = Stream::new(2, "replay");
            let mlp = PointMlp::random(MlpShape::new(config).unwrap(), stream);
            let (mut elements, mut context) = (vec![0.0; 3 * total], vec![0.0; 4]);
            let (mut momentum, mut cotangent) = (vec![0.0; 2 * total], vec![0.0; 2 * total]);
            for (step, values) in
                [&mut elements, &mut context, &mut momentum, &mut cotangent].into_iter().enumerate()
            {
                stream.fill_normal(step as u32, 0, values);
            }
            let batch = PointBatch { elements: &elements, offsets: &offsets, context: &context };
            let motion = Motion {
                clip,
                base_std_dev: Some(1.5),
                bounds: Some(Bounds { low: -1.2, high: 1.0 }),
                is_fixed: Some(&is_fixed),
            };
            let kinetic = vec![0.3_f32; total];
            let langevin = Langevin {
                step_sizes: &[0.3, 0.2, 0.4],
                noise_scales: &[0.5, 0.0, 0.1],
                noise: stream.child(7),
                motion,
            };
            let values =
                DynamicsCotangent { values: &cotangent, momentum: None, kinetic: Some(&kinetic) };
            let found = langevin_backward(&cpu, &mlp, &batch, &langevin, values).unwrap();
            let expected = cpu.langevin_backward(&mlp, &batch, &langevin, values).unwrap();
            assert_same("x", &found.values, &expected.values);
            assert_same("steps", &found.step_sizes, &expected.step_sizes);
            assert_same("context", &found.context, &expected.context);

            let leapfrog = Leapfrog { step_sizes: &[0.3, 0.2], motion };
            let values =
                DynamicsCotangent { values: &cotangent, momentum: Some(&momentum), kinetic: None };
            let found =
                leapfrog_backward(&cpu, &mlp, &batch, &momentum, &leapfrog, values).unwrap();
            let expected =
                cpu.leapfrog_backward(&mlp, &batch, &momentum, &leapfrog, values).unwrap();
            assert_same("x", &found.values, &expected.values);
            assert_same("v", &found.momentum, &expected.momentum);
            assert_same("steps", &found.step_sizes, &expected.step_sizes);
            assert_same("context", &found.context, &expected.context);
        }
    }
}
