//! Mixtures on the CPU: sixteen components side by side.
//!
//! With z = T⁻¹ (x − μ), w = T⁻ᵀ z and responsibilities r_j = π_j N_j(x)/q(x):
//!
//! ```text
//! ∂log q/∂x = −Σ_j r_j w_j,   ∂/∂μ_j = r_j w_j,   ∂/∂T_j[ab] = r_j w_a z_b,
//! ∂/∂log σ_j[a] = r_j (w_a z_a σ_a − 1),   ∂/∂a_j = r_j − π_j Σ_i r_i
//! ```
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use rayon::prelude::*;

use super::super::lanes::{LANES, Lanes, exponential, logarithm};
use super::{Density, LOG_SCALES, MixtureLaw};
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

/// ½ log 2π.
const LOG_ROOT_TAU: f32 = 0.918_938_5;
/// The log weight of a lane without a component.
const ABSENT: f32 = -1e30;

/// Where the numbers of a component begin: μ, log σ, below the diagonal. The logit is the first.
fn places(dims: usize) -> (usize, usize, usize) {
    (1, 1 + dims, 1 + 2 * dims)
}

/// The number below the diagonal in row a > b.
#[inline(always)]
fn below(a: usize, b: usize) -> usize {
    a * (a - 1) / 2 + b
}

fn scale(log_scale: f32) -> f32 {
    log_scale.clamp(LOG_SCALES.0, LOG_SCALES.1).exp()
}

/// log π of a row's components.
fn log_shares(law: MixtureLaw, row: &[f32]) -> Vec<f32> {
    let logits = || row.iter().step_by(law.component_width());
    let largest = logits().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits().map(|a| (a - largest).exp()).sum();
    let log_sum = largest + sum.ln();
    logits().map(|a| a - log_sum).collect()
}

/// μ + T ξ of a component.
fn draw(law: MixtureLaw, component: &[f32], xi: &[f32], to: &mut [f32]) {
    let (mean, log_scale, under) = places(law.dims);
    for a in 0..law.dims {
        let mut x = component[mean + a] + scale(component[log_scale + a]) * xi[a];
        for b in 0..a {
            x += component[under + below(a, b)] * xi[b];
        }
        to[a] = x;
    }
}

/// Values of all draws and their log shares.
pub(super) fn draws(law: MixtureLaw, each: usize, written: &[f32], noise: &[f32]) -> [Vec<f32>; 2] {
    let (dims, per_row) = (law.dims, law.components * each);
    let mut values = vec![0.0; noise.len()];
    let mut shares = vec![0.0; noise.len() / dims];
    let rows = values.par_chunks_mut(per_row * dims).zip(shares.par_chunks_mut(per_row));
    rows.enumerate().for_each(|(row, (values, shares))| {
        let numbers = &written[row * law.width()..][..law.width()];
        let log_each = (each as f32).ln();
        let log_pi = log_shares(law, numbers);
        for number in 0..per_row {
            let component = &numbers[number / each * law.component_width()..];
            let xi = &noise[(row * per_row + number) * dims..][..dims];
            draw(law, component, xi, &mut values[number * dims..][..dims]);
            shares[number] = log_pi[number / each] - log_each;
        }
    });
    [values, shares]
}

/// ∂L/∂numbers from those of the values and of the log shares.
pub(super) fn draws_backward(
    law: MixtureLaw,
    each: usize,
    written: &[f32],
    noise: &[f32],
    [of_values, of_shares]: [Option<&[f32]>; 2],
) -> Vec<f32> {
    let (dims, width, per_row) = (law.dims, law.component_width(), law.components * each);
    let (mean, log_scale, under) = places(dims);
    let mut gradient = vec![0.0; written.len()];
    gradient.par_chunks_mut(law.width()).enumerate().for_each(|(row, gradient)| {
        let numbers = &written[row * law.width()..][..law.width()];
        if let Some(g) = of_values {
            for number in 0..per_row {
                let at = (row * per_row + number) * dims;
                let (g, xi) = (&g[at..][..dims], &noise[at..][..dims]);
                let component = &numbers[number / each * width..][..width];
                let to = &mut gradient[number / each * width..][..width];
                for a in 0..dims {
                    to[mean + a] += g[a];
                    to[log_scale + a] += g[a] * xi[a] * scale(component[log_scale + a]);
                    for b in 0..a {
                        to[under + below(a, b)] += g[a] * xi[b];
                    }
                }
            }
        }
        if let Some(g) = of_shares {
            let g = &g[row * per_row..][..per_row];
            let total: f32 = g.iter().sum();
            for (component, log_pi) in log_shares(law, numbers).iter().enumerate() {
                let own: f32 = g[component * each..][..each].iter().sum();
                gradient[component * width] += own - log_pi.exp() * total;
            }
        }
        stop_at_limits(law, numbers, gradient);
    });
    gradient
}

/// No gradient flows where log σ was cut.
fn stop_at_limits(law: MixtureLaw, numbers: &[f32], gradient: &mut [f32]) {
    let (width, first) = (law.component_width(), 1 + law.dims);
    let components = numbers.chunks_exact(width).zip(gradient.chunks_exact_mut(width));
    for (numbers, gradient) in components {
        for a in first..first + law.dims {
            if !(LOG_SCALES.0..=LOG_SCALES.1).contains(&numbers[a]) {
                gradient[a] = 0.0;
            }
        }
    }
}

/// Draws of whole mixtures.
pub(super) fn picks(law: MixtureLaw, written: &[f32], uniforms: &[f32], noise: &[f32]) -> Vec<f32> {
    let dims = law.dims;
    let per_row = uniforms.len() / (written.len() / law.width());
    let mut values = vec![0.0; noise.len()];
    values.par_chunks_mut(per_row * dims).enumerate().for_each(|(row, values)| {
        let numbers = &written[row * law.width()..][..law.width()];
        let log_pi = log_shares(law, numbers);
        for (number, value) in values.chunks_exact_mut(dims).enumerate() {
            let at = row * per_row + number;
            let mut left = uniforms[at];
            // Rounding may leave a rest behind the last component, which takes it.
            let mut chosen = law.components - 1;
            for (component, log_pi) in log_pi.iter().enumerate() {
                left -= log_pi.exp();
                if left < 0.0 {
                    chosen = component;
                    break;
                }
            }
            let component = &numbers[chosen * law.component_width()..];
            draw(law, component, &noise[at * dims..][..dims], value);
        }
    });
    values
}

/// log q of all places.
pub(super) fn log_density(density: Density, written: &[f32], x: &[f32]) -> Vec<f32> {
    let Density { law, count, .. } = density;
    let vectoriser = Vectoriser::new();
    let mut out = vec![0.0; x.len() / law.dims];
    out.par_chunks_mut(count.max(1)).enumerate().for_each(|(row, out)| {
        let mut terms = Terms::new(law, &written[row * law.width()..][..law.width()]);
        let places = &x[row * count * law.dims..][..count * law.dims];
        vectoriser.run(Densities { density, terms: &mut terms, places, out });
    });
    out
}

/// ∂L/∂numbers and ∂L/∂places.
pub(super) fn log_density_backward(
    density: Density,
    [written, x, log_density, g]: [&[f32]; 4],
) -> [Vec<f32>; 2] {
    let Density { law, count, .. } = density;
    let vectoriser = Vectoriser::new();
    let (mut gradient, mut of_places) = (vec![0.0; written.len()], vec![0.0; x.len()]);
    gradient
        .par_chunks_mut(law.width())
        .zip(of_places.par_chunks_mut(count * law.dims))
        .enumerate()
        .for_each(|(row, (gradient, of_places))| {
            let numbers = &written[row * law.width()..][..law.width()];
            let mut terms = Terms::new(law, numbers);
            vectoriser.run(DensitiesBackward {
                density,
                terms: &mut terms,
                places: &x[row * count * law.dims..][..count * law.dims],
                log_density: &log_density[row * count..][..count],
                g: &g[row * count..][..count],
                of_places,
            });
            terms.finish(gradient);
            stop_at_limits(law, numbers, gradient);
        });
    [gradient, of_places]
}

/// Sixteen components of a mixture.
struct Block {
    /// log π − Σ log σ − (d/2) log 2π.
    constant: Lanes,
    log_pi: Lanes,
    mean: Vec<Lanes>,
    scale: Vec<Lanes>,
    inverse: Vec<Lanes>,
    under: Vec<Lanes>,
    /// log π N at the present place, and z and w there.
    log: Lanes,
    z: Vec<Lanes>,
    w: Vec<Lanes>,
    /// Sums over places, in the order of a component's numbers.
    sums: Vec<Lanes>,
}

/// All components of a row.
struct Terms {
    law: MixtureLaw,
    blocks: Vec<Block>,
}

impl Terms {
    fn new(law: MixtureLaw, numbers: &[f32]) -> Self {
        let (dims, width) = (law.dims, law.component_width());
        let (mean, log_scale, under) = places(dims);
        let log_pi = log_shares(law, numbers);
        let zero = [0.0; LANES];
        let mut blocks = Vec::with_capacity(law.components.div_ceil(LANES));
        for first in (0..law.components).step_by(LANES) {
            let mut block = Block {
                constant: [ABSENT; LANES],
                log_pi: [ABSENT; LANES],
                mean: vec![zero; dims],
                scale: vec![[1.0; LANES]; dims],
                inverse: vec![[1.0; LANES]; dims],
                under: vec![zero; width - under],
                log: zero,
                z: vec![zero; dims],
                w: vec![zero; dims],
                sums: vec![zero; width],
            };
            for lane in 0..LANES.min(law.components - first) {
                let own = &numbers[(first + lane) * width..][..width];
                let mut constant = log_pi[first + lane] - dims as f32 * LOG_ROOT_TAU;
                for a in 0..dims {
                    let log = own[log_scale + a].clamp(LOG_SCALES.0, LOG_SCALES.1);
                    constant -= log;
                    block.mean[a][lane] = own[mean + a];
                    block.scale[a][lane] = log.exp();
                    block.inverse[a][lane] = (-log).exp();
                }
                for (to, from) in block.under.iter_mut().zip(&own[under..]) {
                    to[lane] = *from;
                }
                block.constant[lane] = constant;
                block.log_pi[lane] = log_pi[first + lane];
            }
            blocks.push(block);
        }
        Self { law, blocks }
    }

    /// log π N of every component at x, and the largest of them.
    #[inline(always)]
    fn look(&mut self, x: &[f32]) -> f32 {
        let mut largest = [ABSENT; LANES];
        for block in &mut self.blocks {
            let mut square = [0.0; LANES];
            for a in 0..x.len() {
                let mut way = [0.0; LANES];
                for lane in 0..LANES {
                    way[lane] = x[a] - block.mean[a][lane];
                }
                for b in 0..a {
                    let (under, z) = (&block.under[below(a, b)], &block.z[b]);
                    for lane in 0..LANES {
                        way[lane] -= under[lane] * z[lane];
                    }
                }
                for lane in 0..LANES {
                    let z = way[lane] * block.inverse[a][lane];
                    block.z[a][lane] = z;
                    square[lane] += z * z;
                }
            }
            for lane in 0..LANES {
                let log = block.constant[lane] - 0.5 * square[lane];
                block.log[lane] = log;
                largest[lane] = if log > largest[lane] { log } else { largest[lane] };
            }
        }
        largest.iter().copied().fold(ABSENT, f32::max)
    }

    /// ∂L/∂numbers of all components.
    fn finish(&self, gradient: &mut [f32]) {
        let width = self.law.component_width();
        // Σ over components of their responsibilities, weighed by the cotangents.
        let sum = |block: &Block| block.sums[0].iter().sum::<f32>();
        let total: f32 = self.blocks.iter().map(sum).sum();
        for (number, to) in gradient.chunks_exact_mut(width).enumerate() {
            let (block, lane) = (&self.blocks[number / LANES], number % LANES);
            to.iter_mut().zip(&block.sums).for_each(|(to, sums)| *to = sums[lane]);
            to[0] -= block.log_pi[lane].exp() * total;
        }
    }
}

struct Densities<'a> {
    density: Density,
    terms: &'a mut Terms,
    places: &'a [f32],
    out: &'a mut [f32],
}

impl VectorLoop for Densities<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Density { law, uniform, .. } = self.density;
        let parts = uniform.map(|uniform| (uniform, uniform.log_parts(law.dims)));
        for (x, out) in self.places.chunks_exact(law.dims).zip(self.out) {
            let largest = self.terms.look(x);
            let mut sums = [0.0; LANES];
            for block in &self.terms.blocks {
                for lane in 0..LANES {
                    sums[lane] += exponential(block.log[lane] - largest);
                }
            }
            let log_q = largest + logarithm(sums.iter().sum::<f32>());
            *out = match &parts {
                None => log_q,
                Some((uniform, (log_rest, log_even))) => {
                    let rest = log_q + log_rest;
                    if uniform.holds(x) {
                        let (more, less) =
                            if rest > *log_even { (rest, *log_even) } else { (*log_even, rest) };
                        more + logarithm(1.0 + exponential(less - more))
                    } else {
                        rest
                    }
                }
            };
        }
    }
}

struct DensitiesBackward<'a> {
    density: Density,
    terms: &'a mut Terms,
    places: &'a [f32],
    log_density: &'a [f32],
    g: &'a [f32],
    of_places: &'a mut [f32],
}

impl VectorLoop for DensitiesBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Density { law, uniform, .. } = self.density;
        let dims = law.dims;
        let log_rest = uniform.map_or(0.0, |uniform| uniform.log_parts(dims).0);
        let (first_mean, first_scale, first_under) = (1, 1 + dims, 1 + 2 * dims);
        for (number, x) in self.places.chunks_exact(dims).enumerate() {
            let (log_q, g) = (self.log_density[number], self.g[number]);
            let of_place = &mut self.of_places[number * dims..][..dims];
            self.terms.look(x);
            for block in &mut self.terms.blocks {
                let mut share = [0.0; LANES];
                for lane in 0..LANES {
                    share[lane] = g * exponential(block.log[lane] + log_rest - log_q);
                    block.sums[0][lane] += share[lane];
                }
                for a in (0..dims).rev() {
                    let mut w = block.z[a];
                    for b in a + 1..dims {
                        let (under, above) = (&block.under[below(b, a)], &block.w[b]);
                        for lane in 0..LANES {
                            w[lane] -= under[lane] * above[lane];
                        }
                    }
                    let mut total = [0.0; LANES];
                    for lane in 0..LANES {
                        w[lane] *= block.inverse[a][lane];
                        total[lane] = share[lane] * w[lane];
                        block.sums[first_mean + a][lane] += total[lane];
                        block.sums[first_scale + a][lane] +=
                            total[lane] * block.z[a][lane] * block.scale[a][lane] - share[lane];
                    }
                    for b in 0..a {
                        let (to, z) = (&mut block.sums[first_under + below(a, b)], &block.z[b]);
                        for lane in 0..LANES {
                            to[lane] += total[lane] * z[lane];
                        }
                    }
                    block.w[a] = w;
                    of_place[a] -= total.iter().sum::<f32>();
                }
            }
        }
    }
}
