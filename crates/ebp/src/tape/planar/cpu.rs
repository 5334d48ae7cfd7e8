//! Planar flows on the CPU: sixteen draws side by side.
//!
//! What a layer's s = w·u gives is found once per row and layer, for sixteen layers side by side;
//! what a draw adds to a layer's gradient are sums of products with it:
//!
//! ```text
//! ψ̄ = −q̄/(1 + ψ),   h̄ = r x̄'·u − 2 h m ψ̄,   ā = (1 − h²) h̄,   x̄ = x̄' + ā w
//! b̄ = Σ ā,   s̄ = m′ Σ (1 − h²) ψ̄ + r′ u·Σ h x̄',   w̄ = Σ ā x + s̄ u,   ū = r Σ h x̄' + s̄ w
//! ```
//!
//! 1 + ψ = h² + (1 − h²)(1 + m) is a sum of positive terms, which loses no digits.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use rayon::prelude::*;

use super::super::lanes::{LANES, Lanes, hyperbolic_tangent, logarithm};
use super::Flow;
use super::terms::Terms;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

/// ½ log 2π.
const LOG_ROOT_TAU: f32 = 0.918_938_5;
/// Rows that one thread works on at a time.
const ROWS: usize = 8;

/// Values and log-densities of all draws.
pub(super) fn forward(flow: Flow, layers: &[f32], noise: &[f32]) -> [Vec<f32>; 2] {
    let Flow { draws, dims, width } = flow;
    let vectoriser = Vectoriser::new();
    let mut values = noise.to_vec();
    let mut log_densities = vec![0.0; noise.len() / dims];
    values
        .par_chunks_mut(ROWS * draws * dims)
        .zip(log_densities.par_chunks_mut(ROWS * draws))
        .enumerate()
        .for_each(|(part, (values, log_densities))| {
            let layers = rows_of(layers, part, width);
            vectoriser.run(Forward { flow, layers, values, log_densities });
        });
    [values, log_densities]
}

/// ∂L/∂layers from ∂L/∂values and ∂L/∂log q, either of which may be missing.
pub(super) fn backward(
    flow: Flow,
    layers: &[f32],
    noise: &[f32],
    [of_values, of_densities]: [Option<&[f32]>; 2],
) -> Vec<f32> {
    let Flow { draws, dims, width } = flow;
    let vectoriser = Vectoriser::new();
    let mut gradient = vec![0.0; layers.len()];
    gradient.par_chunks_mut((ROWS * width).max(1)).enumerate().for_each(|(part, gradient)| {
        vectoriser.run(Backward {
            flow,
            layers: rows_of(layers, part, width),
            noise: rows_of(noise, part, draws * dims),
            of_values: of_values.map(|all| rows_of(all, part, draws * dims)),
            of_densities: of_densities.map(|all| rows_of(all, part, draws)),
            gradient,
        });
    });
    gradient
}

/// The part of `all` that belongs to a chunk of rows.
fn rows_of(all: &[f32], part: usize, each: usize) -> &[f32] {
    &all[part * ROWS * each..all.len().min((part + 1) * ROWS * each)]
}

/// Sixteen draws on their way through the layers.
struct Block {
    /// x, `[dims]`.
    x: Vec<Lanes>,
    /// tanh and its slope 1 − tanh².
    h: Lanes,
    bent: Lanes,
}

impl Block {
    #[inline(always)]
    fn new(dims: usize) -> Self {
        Self { x: vec![[0.0; LANES]; dims], h: [0.0; LANES], bent: [0.0; LANES] }
    }

    /// Takes in up to sixteen draws; lanes without one stand at 0.
    #[inline(always)]
    fn load(&mut self, draws: &[f32]) {
        let dims = self.x.len();
        for k in 0..dims {
            self.x[k] = [0.0; LANES];
            for (lane, draw) in draws.chunks_exact(dims).enumerate() {
                self.x[k][lane] = draw[k];
            }
        }
    }

    /// h = tanh(w·x + b).
    #[inline(always)]
    fn bend(&mut self, layer: &[f32]) {
        let dims = self.x.len();
        let mut a = [layer[2 * dims]; LANES];
        for k in 0..dims {
            for lane in 0..LANES {
                a[lane] += layer[k] * self.x[k][lane];
            }
        }
        for lane in 0..LANES {
            (self.h[lane], self.bent[lane]) = hyperbolic_tangent(a[lane]);
        }
    }

    /// x ← x + r u h.
    #[inline(always)]
    fn move_along(&mut self, layer: &[f32], r: f32) {
        let dims = self.x.len();
        for k in 0..dims {
            let along = r * layer[dims + k];
            for lane in 0..LANES {
                self.x[k][lane] += along * self.h[lane];
            }
        }
    }
}

/// Draws of some rows: `values` are the noise before and the draws after.
struct Forward<'a> {
    flow: Flow,
    layers: &'a [f32],
    values: &'a mut [f32],
    log_densities: &'a mut [f32],
}

impl VectorLoop for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Flow { draws, dims, width } = self.flow;
        let step = 2 * dims + 1;
        let mut terms = Terms::new(width / step);
        let mut block = Block::new(dims);
        let rows = self.values.chunks_exact_mut(draws * dims);
        for (row, (values, log_densities)) in
            rows.zip(self.log_densities.chunks_exact_mut(draws)).enumerate()
        {
            let layers = &self.layers[row * width..][..width];
            terms.fill(layers, dims);
            let blocks = values.chunks_mut(LANES * dims).zip(log_densities.chunks_mut(LANES));
            for (values, log_densities) in blocks {
                block.load(values);
                let mut log_q = [-(dims as f32) * LOG_ROOT_TAU; LANES];
                for x in &block.x {
                    for lane in 0..LANES {
                        log_q[lane] -= 0.5 * x[lane] * x[lane];
                    }
                }
                for (index, layer) in layers.chunks_exact(step).enumerate() {
                    let [one_plus_m, _, r, ..] = terms.of(index);
                    block.bend(layer);
                    for lane in 0..LANES {
                        let h = block.h[lane];
                        log_q[lane] -= logarithm(h * h + block.bent[lane] * one_plus_m);
                    }
                    block.move_along(layer, r);
                }
                for (k, x) in block.x.iter().enumerate() {
                    let places = values.chunks_exact_mut(dims).zip(x);
                    places.for_each(|(value, x)| value[k] = *x);
                }
                log_densities.copy_from_slice(&log_q[..log_densities.len()]);
            }
        }
    }
}

/// The gradient of some rows' layers.
struct Backward<'a> {
    flow: Flow,
    layers: &'a [f32],
    noise: &'a [f32],
    of_values: Option<&'a [f32]>,
    of_densities: Option<&'a [f32]>,
    gradient: &'a mut [f32],
}

/// Where sixteen draws were on entry to a layer, and what it did to them.
#[derive(Clone, Copy)]
struct Passed {
    h: Lanes,
    bent: Lanes,
}

/// What a layer's gradient is made of, lane by lane: Σ ā and Σ (1 − h²) ψ̄.
#[derive(Clone, Copy)]
struct LayerSums {
    a: Lanes,
    psi: Lanes,
}

/// Arrays that one row after the other uses.
struct Scratch {
    terms: Terms,
    block: Block,
    passed: Vec<Passed>,
    /// x on entry to each layer, `[layers, dims]`.
    places: Vec<Lanes>,
    sums: Vec<LayerSums>,
    /// Σ ā x and Σ h x̄', `[layers, dims]`.
    products: Vec<[Lanes; 2]>,
    /// x̄, `[dims]`.
    adjoint: Block,
}

impl VectorLoop for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Flow { draws, dims, width } = self.flow;
        let num_layers = width / (2 * dims + 1);
        let zero = [0.0; LANES];
        let mut scratch = Scratch {
            terms: Terms::new(num_layers),
            block: Block::new(dims),
            passed: vec![Passed { h: zero, bent: zero }; num_layers],
            places: vec![zero; num_layers * dims],
            sums: vec![LayerSums { a: zero, psi: zero }; num_layers],
            products: vec![[zero; 2]; num_layers * dims],
            adjoint: Block::new(dims),
        };
        for (row, gradient) in self.gradient.chunks_exact_mut(width).enumerate() {
            let layers = &self.layers[row * width..][..width];
            scratch.terms.fill(layers, dims);
            scratch.sums.fill(LayerSums { a: zero, psi: zero });
            scratch.products.fill([zero; 2]);
            for first in (row * draws..(row + 1) * draws).step_by(LANES) {
                let end = (first + LANES).min((row + 1) * draws);
                scratch.block.load(&self.noise[first * dims..end * dims]);
                match self.of_values {
                    Some(given) => scratch.adjoint.load(&given[first * dims..end * dims]),
                    None => scratch.adjoint.load(&[]),
                }
                let mut of_density = zero;
                if let Some(given) = self.of_densities {
                    of_density[..end - first].copy_from_slice(&given[first..end]);
                }
                scratch.there(layers);
                scratch.back(layers, &of_density);
            }
            scratch.finish(layers, gradient);
        }
    }
}

impl Scratch {
    /// Forward through all layers, keeping what the way back needs.
    #[inline(always)]
    fn there(&mut self, layers: &[f32]) {
        let dims = self.block.x.len();
        for (index, layer) in layers.chunks_exact(2 * dims + 1).enumerate() {
            self.places[index * dims..][..dims].copy_from_slice(&self.block.x);
            self.block.bend(layer);
            self.passed[index] = Passed { h: self.block.h, bent: self.block.bent };
            self.block.move_along(layer, self.terms.of(index)[2]);
        }
    }

    /// Back through all layers, adding to their sums.
    #[inline(always)]
    fn back(&mut self, layers: &[f32], of_density: &Lanes) {
        let dims = self.block.x.len();
        let adjoint = &mut self.adjoint.x;
        for (index, layer) in layers.chunks_exact(2 * dims + 1).enumerate().rev() {
            let [one_plus_m, m, r, ..] = self.terms.of(index);
            let Passed { h, bent } = &self.passed[index];
            let sums = &mut self.sums[index];
            let mut along = [0.0; LANES];
            for k in 0..dims {
                for lane in 0..LANES {
                    along[lane] += layer[dims + k] * adjoint[k][lane];
                }
            }
            let mut a = [0.0; LANES];
            for lane in 0..LANES {
                let (h, bent) = (h[lane], bent[lane]);
                let psi = -of_density[lane] / (h * h + bent * one_plus_m);
                a[lane] = bent * (r * along[lane] - 2.0 * h * m * psi);
                sums.a[lane] += a[lane];
                sums.psi[lane] += bent * psi;
            }
            for k in 0..dims {
                let [of_place, of_adjoint] = &mut self.products[index * dims + k];
                let place = &self.places[index * dims + k];
                for lane in 0..LANES {
                    of_place[lane] += a[lane] * place[lane];
                    of_adjoint[lane] += h[lane] * adjoint[k][lane];
                    adjoint[k][lane] += a[lane] * layer[k];
                }
            }
        }
    }

    /// The gradient of the row's layers, from their sums.
    #[inline(always)]
    fn finish(&self, layers: &[f32], gradient: &mut [f32]) {
        let dims = self.block.x.len();
        let step = 2 * dims + 1;
        let whole = |lanes: &Lanes| lanes.iter().sum::<f32>();
        let of_layers = layers.chunks_exact(step).zip(gradient.chunks_exact_mut(step));
        for (index, (layer, gradient)) in of_layers.enumerate() {
            let [_, _, r, m_slope, r_slope] = self.terms.of(index);
            let products = &self.products[index * dims..][..dims];
            let mut along = 0.0;
            for (u, [_, of_adjoint]) in layer[dims..2 * dims].iter().zip(products) {
                along += u * whole(of_adjoint);
            }
            let s = m_slope * whole(&self.sums[index].psi) + r_slope * along;
            for (k, [of_place, of_adjoint]) in products.iter().enumerate() {
                gradient[k] = whole(of_place) + s * layer[dims + k];
                gradient[dims + k] = r * whole(of_adjoint) + s * layer[k];
            }
            gradient[2 * dims] = whole(&self.sums[index].a);
        }
    }
}
