//! One class against the rest by dual coordinate descent (Hsieh et al., 2008).
//!
//! ```text
//! primal  P(w) = ½ ‖w‖² + C Σᵢ max(0, 1 − yᵢ w·xᵢ)²
//! dual    D(α) = Σᵢ αᵢ − ½ ‖w‖² − Σᵢ αᵢ²/(4C),   w = Σᵢ αᵢ yᵢ xᵢ,   αᵢ ≥ 0
//! ```
//!
//! D ≤ P for every α, with equality at the solution, so (P − D)/P bounds what is left to gain. A
//! step maximises D over one αᵢ:
//!
//! ```text
//! gᵢ = yᵢ w·xᵢ − 1 + αᵢ/(2C),   αᵢ ← max(0, αᵢ − gᵢ/(‖xᵢ‖² + 1/(2C)))
//! ```
//!
//! Rows whose αᵢ stays at 0 are left out of most passes. Convergence is linear, and slow where rows
//! are long and alike. Where passes alone do not get there, Newton steps finish (`newton.rs`) unless
//! rows and features are both too many; what was not reached stands in the gap.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
use crate::rng::Stream;

use super::features::{Features, LANES};
use super::svm::SvmConfig;

/// Where Newton steps can finish, descent stops after so many passes.
const FIRST_PASSES: usize = 50;
/// Without products of rows, Newton steps solve a system of this size at most.
const MOST_FEATURES: usize = 2048;

/// One binary problem: which rows, and which of them are positive.
pub(super) struct Problem<'a> {
    pub(super) features: &'a Features,
    /// The rows that take part.
    pub(super) rows: &'a [usize],
    /// yᵢ = ±1 of each of `rows`.
    pub(super) signs: Vec<f64>,
    /// ‖xᵢ‖² of each of `rows`, its intercept's 1 included.
    pub(super) squares: &'a [f64],
}

/// α and w.
#[derive(Clone)]
pub(super) struct DualState {
    pub(super) alphas: Vec<f64>,
    pub(super) weights: Vec<[f64; LANES]>,
}

impl Problem<'_> {
    pub(super) fn start(&self) -> DualState {
        DualState {
            alphas: vec![0.0; self.rows.len()],
            weights: vec![[0.0; LANES]; self.features.blocks_per_row()],
        }
    }

    /// Solves for one C from wherever `state` is, and returns (P − D)/P.
    pub(super) fn solve(&self, state: &mut DualState, config: &SvmConfig, stream: Stream) -> f64 {
        let SvmConfig { cost, tolerance, max_passes } = *config;
        let may_finish = self.features.dim() < self.rows.len().min(MOST_FEATURES)
            || self.features.has_products();
        let passes = if may_finish { max_passes.min(FIRST_PASSES) } else { max_passes };
        let is_done = self.descend(state, cost, tolerance, passes, stream);
        if !is_done && may_finish && passes < max_passes {
            self.finish(state, cost);
        }
        let margins = self.margins(&state.weights);
        let primal = self.primal(&state.weights, &margins, config.cost);
        (primal - state.objective(config.cost)) / primal
    }

    /// Runs up to `max_passes` passes and stops when no αᵢ wants to move by more than `tolerance`
    /// (as a gradient). True if it did.
    pub(super) fn descend(
        &self,
        state: &mut DualState,
        cost: f64,
        tolerance: f64,
        max_passes: usize,
        stream: Stream,
    ) -> bool {
        let everyone: Vec<usize> = (0..self.rows.len()).collect();
        let mut active = everyone.clone();
        // Rows at 0 whose gradient exceeds the last pass's largest violation will hardly return.
        let mut shrink_above = f64::INFINITY;
        for pass in 0..max_passes {
            let order = stream.child(pass as u64).permutation(active.len());
            let sweep = Sweep {
                problem: self,
                order: order.into_iter().map(|place| active[place]),
                alphas: &mut state.alphas,
                weights: &mut state.weights,
                half_inverse_cost: 0.5 / cost,
                shrink_above,
            };
            let (violation, kept) = Vectoriser::new().run(sweep);
            if violation <= tolerance {
                if active.len() == everyone.len() {
                    return true;
                }
                active.clone_from(&everyone);
                shrink_above = f64::INFINITY;
            } else {
                active = kept;
                active.sort_unstable();
                shrink_above = violation;
            }
        }
        false
    }

    /// The margins w·xᵢ of all rows.
    pub(super) fn margins(&self, weights: &[[f64; LANES]]) -> Vec<f64> {
        products(self.features, self.rows, weights)
    }

    /// P, from the margins.
    pub(super) fn primal(&self, weights: &[[f64; LANES]], margins: &[f64], cost: f64) -> f64 {
        let square = |margin: f64, sign: f64| (1.0 - sign * margin).max(0.0).powi(2);
        let losses: f64 = margins.iter().zip(&self.signs).map(|(&m, &y)| square(m, y)).sum();
        0.5 * square_norm(weights) + cost * losses
    }
}

impl DualState {
    /// D.
    fn objective(&self, cost: f64) -> f64 {
        let sum: f64 = self.alphas.iter().map(|alpha| alpha - alpha * alpha / (4.0 * cost)).sum();
        sum - 0.5 * square_norm(&self.weights)
    }
}

pub(super) fn square_norm(weights: &[[f64; LANES]]) -> f64 {
    weights.as_flattened().iter().map(|w| w * w).sum()
}

/// w·xᵢ of the given rows.
pub(super) fn products(features: &Features, rows: &[usize], weights: &[[f64; LANES]]) -> Vec<f64> {
    Vectoriser::new().run(Products { features, rows, weights })
}

struct Products<'a> {
    features: &'a Features,
    rows: &'a [usize],
    weights: &'a [[f64; LANES]],
}

impl VectorLoop for Products<'_> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let mut products = Vec::with_capacity(self.rows.len());
        for &row in self.rows {
            products.push(dot(self.features.row(row), self.weights));
        }
        products
    }
}

/// One pass over the rows in `order`.
struct Sweep<'a, I> {
    problem: &'a Problem<'a>,
    order: I,
    alphas: &'a mut [f64],
    weights: &'a mut [[f64; LANES]],
    half_inverse_cost: f64,
    shrink_above: f64,
}

impl<I: Iterator<Item = usize>> VectorLoop for Sweep<'_, I> {
    /// The largest violation, and the rows that stay in play.
    type Output = (f64, Vec<usize>);
    #[inline(always)]
    fn run(self) -> (f64, Vec<usize>) {
        let Problem { features, rows, signs, squares } = self.problem;
        let mut violation = 0.0_f64;
        let mut kept = Vec::with_capacity(rows.len());
        for i in self.order {
            let row = features.row(rows[i]);
            let alpha = self.alphas[i];
            let gradient = signs[i] * dot(row, self.weights) - 1.0 + alpha * self.half_inverse_cost;
            if alpha == 0.0 && gradient > self.shrink_above {
                continue;
            }
            kept.push(i);
            let projected = if alpha == 0.0 { gradient.min(0.0) } else { gradient };
            violation = violation.max(projected.abs());
            if projected == 0.0 {
                continue;
            }
            let moved = (alpha - gradient / (squares[i] + self.half_inverse_cost)).max(0.0);
            self.alphas[i] = moved;
            let step = (moved - alpha) * signs[i];
            for (weights, values) in self.weights.iter_mut().zip(row) {
                for lane in 0..LANES {
                    weights[lane] += step * f64::from(values[lane]);
                }
            }
        }
        (violation, kept)
    }
}

#[inline(always)]
fn dot(row: &[[f32; LANES]], weights: &[[f64; LANES]]) -> f64 {
    // Two chains of sums, so that one addition need not wait for the other.
    let mut sums = [[0.0_f64; LANES]; 2];
    let mut pairs = row.chunks_exact(2).zip(weights.chunks_exact(2));
    for (values, weights) in &mut pairs {
        for chain in 0..2 {
            for lane in 0..LANES {
                sums[chain][lane] += f64::from(values[chain][lane]) * weights[chain][lane];
            }
        }
    }
    if row.len() % 2 == 1 {
        let last = row.len() - 1;
        for lane in 0..LANES {
            sums[0][lane] += f64::from(row[last][lane]) * weights[last][lane];
        }
    }
    let [even, odd] = sums;
    even.iter().zip(&odd).map(|(a, b)| a + b).sum()
}
