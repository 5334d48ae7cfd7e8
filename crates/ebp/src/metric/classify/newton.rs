//! The end of the search: Newton steps on the primal.
//!
//! P is quadratic where the set A of rows that violate their margin stays the same. Its minimum there
//! solves
//!
//! ```text
//! (I + 2C Σ_A xᵢ xᵢᵀ) w = 2C Σ_A yᵢ xᵢ
//! ```
//!
//! and once A no longer changes that w is the solution, to rounding. A few steps from where dual
//! descent got to are enough, where many thousands of its passes would be needed. The same w is
//! Σ_A βᵢ xᵢ, where
//!
//! ```text
//! Σ_j∈A (xᵢ·xⱼ + δᵢⱼ/2C) βⱼ = yᵢ
//! ```
//!
//! Either system costs its size cubed, and the first one |A| d² operations before; each step solves
//! the cheaper one. αᵢ = 2C max(0, 1 − yᵢ w·xᵢ) are the dual variables of w.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use crate::linalg::{Cholesky, Matrix};
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

use super::dual::{DualState, Problem};
use super::features::{Features, LANES};

/// The most steps, and halvings of one of them.
const MAX_STEPS: usize = 40;
const MAX_HALVINGS: i32 = 30;
/// Rows that are added to the matrix together, so that it is read and written less often.
const ROWS_TOGETHER: usize = 8;

impl Problem<'_> {
    /// Moves `state` to the solution, or as near as the steps get.
    pub(super) fn finish(&self, state: &mut DualState, cost: f64) {
        let mut weights = state.weights.clone();
        let mut margins = self.margins(&weights);
        let mut primal = self.primal(&weights, &margins, cost);
        let mut before = Vec::new();
        for _ in 0..MAX_STEPS {
            let active: Vec<usize> =
                (0..self.rows.len()).filter(|&i| self.signs[i] * margins[i] < 1.0).collect();
            if active == before {
                break;
            }
            let Some(goal) = self.minimum(&active, cost) else { break };
            let moved = (0..MAX_HALVINGS).find_map(|halvings| {
                let tried = between(&weights, &goal, 0.5_f64.powi(halvings));
                let margins = self.margins(&tried);
                let value = self.primal(&tried, &margins, cost);
                (value < primal).then_some((tried, margins, value, halvings > 0))
            });
            let Some((tried, tried_margins, value, is_shortened)) = moved else { break };
            // After a shortened step the same rows may be active without w being their minimum.
            before = if is_shortened { Vec::new() } else { active };
            (weights, margins, primal) = (tried, tried_margins, value);
        }
        let alpha = |(margin, sign): (&f64, &f64)| 2.0 * cost * (1.0 - sign * margin).max(0.0);
        state.alphas = margins.iter().zip(&self.signs).map(alpha).collect();
        state.weights = self.combination(&state.alphas);
    }

    /// w = Σ αᵢ yᵢ xᵢ.
    fn combination(&self, alphas: &[f64]) -> Vec<[f64; LANES]> {
        let mut weights = vec![[0.0; LANES]; self.features.blocks_per_row()];
        for ((&row, alpha), sign) in self.rows.iter().zip(alphas).zip(&self.signs) {
            if *alpha != 0.0 {
                let factor = alpha * sign;
                for (weights, values) in weights.iter_mut().zip(self.features.row(row)) {
                    weights.iter_mut().zip(values).for_each(|(w, &x)| *w += factor * f64::from(x));
                }
            }
        }
        weights
    }

    /// The minimum of P if exactly the rows `active` violate their margin.
    fn minimum(&self, active: &[usize], cost: f64) -> Option<Vec<[f64; LANES]>> {
        let (rows, dim) = (active.len() as f64, self.features.dim() as f64);
        let by_features = rows * dim.powi(2) + dim.powi(3) / 3.0;
        match self.features.products() {
            Some(products) if rows.powi(3) / 3.0 < by_features => {
                self.minimum_by_rows(active, cost, products)
            }
            _ => self.minimum_by_features(active, cost),
        }
    }

    /// By the system of |A| rows.
    fn minimum_by_rows(
        &self,
        active: &[usize],
        cost: f64,
        products: &Matrix,
    ) -> Option<Vec<[f64; LANES]>> {
        let size = active.len();
        let rows: Vec<usize> = active.iter().map(|&i| self.rows[i]).collect();
        let cholesky = Cholesky::new(Matrix::zeros(size, size), |storage| {
            for j in 0..size {
                let column = &mut storage.column_mut(j)[j..];
                for (entry, &row) in column.iter_mut().zip(&rows[j..]) {
                    *entry = products.at(row.max(rows[j]), row.min(rows[j]));
                }
                column[0] += 0.5 / cost;
            }
        })
        .ok()?;
        let signs: Vec<f64> = active.iter().map(|&i| self.signs[i]).collect();
        let mut betas = Matrix::from_rows(1, &signs);
        cholesky.solve_lower(&mut betas);
        cholesky.solve_upper(&mut betas);
        let mut alphas = vec![0.0; self.rows.len()];
        for (&i, beta) in active.iter().zip(betas.column(0)) {
            alphas[i] = beta * self.signs[i];
        }
        Some(self.combination(&alphas))
    }

    /// By the system of d features and the intercept.
    fn minimum_by_features(&self, active: &[usize], cost: f64) -> Option<Vec<[f64; LANES]>> {
        let blocks = self.features.blocks_per_row();
        let dim = self.features.dim() + 1;
        let rows: Vec<usize> = active.iter().map(|&i| self.rows[i]).collect();
        let gram = Vectoriser::new().run(Gram { features: self.features, rows: &rows });
        let cholesky = Cholesky::new(Matrix::zeros(dim, dim), |storage| {
            for j in 0..dim {
                let column = &gram[j * blocks..(j + 1) * blocks];
                let column = &column.as_flattened()[..dim];
                storage.column_mut(j).iter_mut().zip(column).for_each(|(h, g)| *h = 2.0 * cost * g);
                storage.column_mut(j)[j] += 1.0;
            }
        })
        .ok()?;
        let mut alphas = vec![0.0; self.rows.len()];
        for &i in active {
            alphas[i] = 2.0 * cost;
        }
        let right = self.combination(&alphas);
        let mut solution = Matrix::from_rows(1, &right.as_flattened()[..dim]);
        cholesky.solve_lower(&mut solution);
        cholesky.solve_upper(&mut solution);
        let mut weights = vec![[0.0; LANES]; blocks];
        weights.as_flattened_mut()[..dim].copy_from_slice(solution.column(0));
        Some(weights)
    }
}

fn between(from: &[[f64; LANES]], to: &[[f64; LANES]], share: f64) -> Vec<[f64; LANES]> {
    let block = |(a, b): (&[f64; LANES], &[f64; LANES])| {
        std::array::from_fn(|lane| a[lane] + share * (b[lane] - a[lane]))
    };
    from.iter().zip(to).map(block).collect()
}

/// Σ xᵢ xᵢᵀ over the given rows, `[dim + 1, blocks]`.
struct Gram<'a> {
    features: &'a Features,
    rows: &'a [usize],
}

impl VectorLoop for Gram<'_> {
    type Output = Vec<[f64; LANES]>;
    #[inline(always)]
    fn run(self) -> Vec<[f64; LANES]> {
        let blocks = self.features.blocks_per_row();
        let dim = self.features.dim() + 1;
        let mut gram = vec![[0.0; LANES]; dim * blocks];
        let mut wide = vec![[0.0_f64; LANES]; ROWS_TOGETHER * blocks];
        for rows in self.rows.chunks(ROWS_TOGETHER) {
            for (r, &row) in rows.iter().enumerate() {
                for (block, values) in self.features.row(row).iter().enumerate() {
                    for lane in 0..LANES {
                        wide[block * ROWS_TOGETHER + r][lane] = f64::from(values[lane]);
                    }
                }
            }
            for r in rows.len()..ROWS_TOGETHER {
                for block in 0..blocks {
                    wide[block * ROWS_TOGETHER + r] = [0.0; LANES];
                }
            }
            for j in 0..dim {
                let (block, lane) = (j / LANES, j % LANES);
                let mut factors = [0.0; ROWS_TOGETHER];
                for r in 0..ROWS_TOGETHER {
                    factors[r] = wide[block * ROWS_TOGETHER + r][lane];
                }
                // The lower triangle: rows from j on, by whole blocks.
                for below in block..blocks {
                    let mut sums = gram[j * blocks + below];
                    for r in 0..ROWS_TOGETHER {
                        let values = wide[below * ROWS_TOGETHER + r];
                        for lane in 0..LANES {
                            sums[lane] += factors[r] * values[lane];
                        }
                    }
                    gram[j * blocks + below] = sums;
                }
            }
        }
        gram
    }
}
