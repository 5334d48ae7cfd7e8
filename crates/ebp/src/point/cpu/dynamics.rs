//! Langevin and leapfrog steps, all of them without leaving the tile.

use std::ops::Range;

use super::call::{Call, concat};
use super::motion::Mover;
use super::packed::Needs;
use super::schedule::{tile_rows, tiles};
use super::sums::dot;
use super::tile::{Keep, Tile};
use crate::point::{Langevin, LangevinRun, Leapfrog, LeapfrogRun};

/// Per set and step Σ‖v‖², Σ⟨∇u(x_T), g⟩ and Σ⟨v, g⟩ of one chunk, in f64.
struct StepSums {
    first_set: usize,
    sums: [Vec<f64>; 3],
}

/// Adds Σ ⟨a, b⟩ over each set's rows of `[rows, dims]` arrays.
fn add_by_set(
    tile: &Tile,
    first_set: usize,
    (step, steps): (usize, usize),
    sums: &mut [f64],
    (a, b): (&[f32], &[f32]),
) {
    let dims = a.len() / tile.rows;
    for run in &tile.runs {
        let entries = run.rows.start * dims..run.rows.end * dims;
        let total = dot(&a[entries.clone()], &b[entries]);
        sums[(run.set - first_set) * steps + step] += f64::from(total);
    }
}

/// The rows of a moved tile: whole elements, f and ∇u.
#[derive(Default)]
struct Ended {
    elements: Vec<f32>,
    values: Vec<f32>,
    score: Vec<f32>,
}

impl Ended {
    fn extend(&mut self, tile: &Tile, dim: usize, score: &[f32]) {
        tile.elements.push_rows(tile.rows, dim, &mut self.elements);
        tile.push_outputs(1, &mut self.values);
        self.score.extend_from_slice(score);
    }
}

pub(super) fn langevin(call: &Call<'_>, run: &Langevin<'_>) -> LangevinRun {
    let (dims, dim) = (call.value_dim(), call.mlp.shape().element_dim());
    let steps = run.step_sizes.len();
    let net = call.network(Needs { backward: true, element_dims: dims });
    let capacity = tile_rows(&net.packed, 2);
    let work = |tile: &mut Tile, chunk: Range<usize>| {
        let sets = call.sets_of(&chunk);
        let first_set = sets.start;
        let mut sums: [Vec<f64>; 3] = std::array::from_fn(|_| vec![0.0; sets.len() * steps]);
        let [kinetic, final_alignment, kinetic_alignment] = &mut sums;
        let mut ended = Ended::default();
        let (mut of_elements, mut of_noise) = (Vec::new(), Vec::new());
        for range in tiles(chunk, capacity) {
            let mover = Mover { motion: &run.motion, dims, first: range.start };
            call.load(tile, range);
            let length = tile.rows * dims;
            let mut positions = mover.positions(tile);
            let mut gradient = vec![0.0; length];
            let mut velocity = vec![0.0; length];
            let mut drifts = vec![0.0; steps * length];
            let mut energies = vec![0.0_f32; tile.rows];
            let mut noises = vec![0.0_f32; tile.rows];
            for (step, (&step_size, &scale)) in
                run.step_sizes.iter().zip(run.noise_scales).enumerate()
            {
                mover.gradient(&net, tile, &mut gradient);
                let drift = &mut drifts[step * length..][..length];
                mover.clip(&gradient, drift);
                let start = (mover.first * dims) as u64;
                net.kernels.normals(run.noise, step as u32, start, &mut velocity);
                for (row, (noise, xi)) in
                    noises.iter_mut().zip(velocity.chunks_exact(dims)).enumerate()
                {
                    if !mover.is_fixed(row) {
                        *noise += scale * scale * xi.iter().map(|xi| xi * xi).sum::<f32>();
                    }
                }
                // v = s ξ + (η/2) g,  x ← x + v
                for (v, g) in velocity.iter_mut().zip(&*drift) {
                    *v = scale * *v + 0.5 * step_size * g;
                }
                if run.motion.is_fixed.is_some() {
                    for (row, v) in velocity.chunks_exact_mut(dims).enumerate() {
                        if mover.is_fixed(row) {
                            v.fill(0.0);
                        }
                    }
                }
                for (x, v) in positions.iter_mut().zip(&velocity) {
                    *x += v;
                }
                if run.motion.bounds.is_some() {
                    for (row, x) in positions.chunks_exact_mut(dims).enumerate() {
                        if !mover.is_fixed(row) {
                            for x in x {
                                *x = mover.reflect(*x).0;
                            }
                        }
                    }
                }
                mover.place(tile, &positions);
                for (energy, v) in energies.iter_mut().zip(velocity.chunks_exact(dims)) {
                    *energy += v.iter().map(|v| v * v).sum::<f32>();
                }
                let place = (step, steps);
                add_by_set(tile, first_set, place, kinetic, (&velocity, &velocity));
                add_by_set(tile, first_set, place, kinetic_alignment, (&velocity, drift));
            }
            mover.gradient(&net, tile, &mut gradient);
            for (step, drift) in drifts.chunks_exact(length).enumerate() {
                add_by_set(tile, first_set, (step, steps), final_alignment, (&gradient, drift));
            }
            ended.extend(tile, dim, &gradient);
            of_elements.extend(energies);
            of_noise.extend(noises);
        }
        (ended, [of_elements, of_noise], StepSums { first_set, sums })
    };
    let parts = call.run(capacity, || Tile::new(&net, capacity, Keep::Slopes), work);
    let (mut ended, mut of_elements, mut sums) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
    for (part, [energies, noises], part_sums) in parts {
        ended.push(part);
        of_elements[0].push(energies);
        of_elements[1].push(noises);
        sums.push(part_sums);
    }
    let (elements, values, score) = join(ended);
    let [element_kinetic, element_noise] = of_elements.map(concat);
    let [kinetic, final_alignment, kinetic_alignment] =
        std::array::from_fn(|which| merge_sums(call, steps, &sums, which));
    LangevinRun {
        elements,
        values,
        score,
        kinetic,
        element_kinetic,
        element_noise,
        final_alignment,
        kinetic_alignment,
    }
}

fn join(parts: Vec<Ended>) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let (mut elements, mut values, mut score) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        elements.push(part.elements);
        values.push(part.values);
        score.push(part.score);
    }
    (concat(elements), concat(values), concat(score))
}

/// The chunks' sums in order, `[sets, columns]`.
fn merge_sums(call: &Call<'_>, columns: usize, parts: &[StepSums], which: usize) -> Vec<f32> {
    let mut totals = vec![0.0_f64; call.batch.offsets.num_sets() * columns];
    for part in parts {
        for (total, term) in totals[part.first_set * columns..].iter_mut().zip(&part.sums[which]) {
            *total += term;
        }
    }
    totals.into_iter().map(|total| total as f32).collect()
}

pub(super) fn leapfrog(call: &Call<'_>, momentum: &[f32], run: &Leapfrog<'_>) -> LeapfrogRun {
    let (dims, dim) = (call.value_dim(), call.mlp.shape().element_dim());
    let net = call.network(Needs { backward: true, element_dims: dims });
    let capacity = tile_rows(&net.packed, 2);
    let work = |tile: &mut Tile, chunk: Range<usize>| {
        let sets = call.sets_of(&chunk);
        let first_set = sets.start;
        let mut kinetic = vec![0.0; sets.len()];
        let mut ended = Ended::default();
        let mut momenta = Vec::new();
        for range in tiles(chunk, capacity) {
            let mover = Mover { motion: &run.motion, dims, first: range.start };
            let mut velocity = momentum[range.start * dims..range.end * dims].to_vec();
            call.load(tile, range);
            let mut positions = mover.positions(tile);
            let mut gradient = vec![0.0; positions.len()];
            let mut drift = vec![0.0; positions.len()];
            mover.gradient(&net, tile, &mut gradient);
            mover.clip(&gradient, &mut drift);
            for &step_size in run.step_sizes {
                half_kick(&mut velocity, &drift, step_size);
                for (row, (x, v)) in positions
                    .chunks_exact_mut(dims)
                    .zip(velocity.chunks_exact_mut(dims))
                    .enumerate()
                {
                    if mover.is_fixed(row) {
                        continue;
                    }
                    for (x, v) in x.iter_mut().zip(v) {
                        let (place, slope) = mover.reflect(*x + step_size * *v);
                        *x = place;
                        // A wall turns the momentum around, also where the step was cut short.
                        if slope < 1.0 {
                            *v = -*v;
                        }
                    }
                }
                mover.place(tile, &positions);
                mover.gradient(&net, tile, &mut gradient);
                mover.clip(&gradient, &mut drift);
                half_kick(&mut velocity, &drift, step_size);
            }
            let mut moving = velocity.clone();
            for (row, v) in moving.chunks_exact_mut(dims).enumerate() {
                if mover.is_fixed(row) {
                    v.fill(0.0);
                }
            }
            add_by_set(tile, first_set, (0, 1), &mut kinetic, (&moving, &moving));
            ended.extend(tile, dim, &gradient);
            momenta.extend_from_slice(&velocity);
        }
        let sums = [kinetic, Vec::new(), Vec::new()];
        (ended, momenta, StepSums { first_set, sums })
    };
    let parts = call.run(capacity, || Tile::new(&net, capacity, Keep::Slopes), work);
    let (mut ended, mut momenta, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for (part_ended, part_momenta, part_sums) in parts {
        ended.push(part_ended);
        momenta.push(part_momenta);
        sums.push(part_sums);
    }
    let (elements, values, score) = join(ended);
    let kinetic = merge_sums(call, 1, &sums, 0);
    LeapfrogRun { elements, momentum: concat(momenta), values, score, kinetic }
}

/// v ← v + (η/2) g; g is zero for fixed elements, whose momentum therefore stays.
pub(super) fn half_kick(velocity: &mut [f32], drift: &[f32], step_size: f32) {
    for (v, g) in velocity.iter_mut().zip(drift) {
        *v += 0.5 * step_size * g;
    }
}
