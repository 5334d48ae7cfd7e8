//! The covariance K̃ = K + σ²I of noisy values, and all that exact processes ask of it.
//!
//! ```text
//! K̃ = L Lᵀ,   A = K̃⁻¹ X,   β_d = x_dᵀ K̃⁻¹ x_d,   x_d the d-th output (column of X)
//! ∂ log p/∂log θ = ½ Σ_ij W_ij ∂K̃_ij/∂log θ,   W = Σ_d (s_d a_d a_dᵀ − K̃⁻¹),
//! where s_d = −2 ∂ log p/∂β_d is 1 for Gaussians
//! ```
//!
//! One factorisation and one inverse (n³ operations together) give every derivative: the sum over
//! i, j runs over the lower triangle column by column while the kernel recomputes its entries, so
//! that no derivative of K is ever stored.

use std::sync::Arc;

use rayon::prelude::*;

use crate::Result;
use crate::kernel::{Kernel, Pairs};
use crate::linalg::{Cholesky, Matrix};

/// Columns that one task computes; fixed, so that sums do not depend on the number of threads.
const COLUMNS: usize = 16;
/// Below this size one thread does it all.
const PARALLEL_DIM: usize = 256;

/// A kernel with observation noise.
#[derive(Clone, Debug)]
pub(super) struct Covariance {
    pub(super) kernel: Arc<dyn Kernel>,
    pub(super) noise_variance: f64,
    pub(super) location_dim: usize,
}

/// K̃ = L Lᵀ together with A, β and log |K̃|.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) cholesky: Cholesky,
    /// A = K̃⁻¹ X, `[n, d_x]`.
    pub(super) weights: Matrix,
    /// β_d = x_dᵀ K̃⁻¹ x_d.
    pub(super) forms: Vec<f64>,
    pub(super) log_determinant: f64,
}

/// Memory of two `[n, n]` matrices, kept between evaluations.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub(super) storage: Matrix,
    pub(super) scratch: Matrix,
}

impl Covariance {
    /// log θ of the kernel, then log σ².
    pub(super) fn log_parameters(&self) -> Vec<f64> {
        let mut parameters = self.kernel.log_parameters();
        parameters.push(self.noise_variance.ln());
        parameters
    }

    /// With other values of [`log_parameters`](Self::log_parameters).
    pub(super) fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Self> {
        let (noise, of_kernel) = log_parameters.split_last().unwrap_or((&0.0, &[]));
        Ok(Self {
            kernel: self.kernel.with_log_parameters(of_kernel)?.into(),
            noise_variance: noise.exp(),
            location_dim: self.location_dim,
        })
    }

    fn rows<'a>(&self, locations: &'a [f64], from: usize) -> (&'a [f64], &'a [f64]) {
        let rest = &locations[from * self.location_dim..];
        (&rest[..self.location_dim], rest)
    }

    /// The lower triangle of K̃ at `locations`.
    fn fill(&self, locations: &[f64], matrix: &mut Matrix) {
        let dim = matrix.num_rows();
        let fill_column = |(j, column): (usize, &mut [f64])| {
            let (location, rest) = self.rows(locations, j);
            self.kernel.fill_row(location, rest, &mut column[j..]);
            column[j] += self.noise_variance;
        };
        if dim < PARALLEL_DIM {
            matrix.entries_mut().chunks_exact_mut(dim.max(1)).enumerate().for_each(fill_column);
        } else {
            matrix.entries_mut().par_chunks_exact_mut(dim).enumerate().for_each(fill_column);
        }
    }

    /// Factorises K̃ at `locations` `[n, d_t]` and solves for the `values` `[n, d_x]`.
    pub(super) fn solve(
        &self,
        locations: &[f64],
        values: Matrix,
        storage: Matrix,
    ) -> Result<Solved> {
        let n = values.num_rows();
        let cholesky = Cholesky::new(storage.resized(n, n), |k| self.fill(locations, k))?;
        let mut weights = values;
        cholesky.solve_lower(&mut weights);
        // β_d = ‖L⁻¹ x_d‖²
        let forms = (0..weights.num_columns())
            .map(|d| weights.column(d).iter().map(|w| w * w).sum())
            .collect();
        cholesky.solve_upper(&mut weights);
        Ok(Solved { log_determinant: cholesky.log_determinant(), cholesky, weights, forms })
    }

    /// ½ Σ_ij W_ij ∂K̃_ij/∂log θ for the kernel's hyperparameters and the noise variance, with
    /// `scales` s_d. A jitter is taken as a constant.
    pub(super) fn gradient(
        &self,
        locations: &[f64],
        solved: Solved,
        scales: &[f64],
        scratch: Matrix,
    ) -> (Vec<f64>, Workspace) {
        let weights = &solved.weights;
        let (n, num_outputs) = (weights.num_rows(), weights.num_columns() as f64);
        let (mut inverse, scratch) = solved.cholesky.into_inverse(scratch.resized(n, n));
        let num_parameters = self.kernel.log_parameters().len();
        let contract = |(task, block): (usize, &mut [f64])| {
            let mut gradient = vec![0.0; num_parameters + 1];
            for (offset, column) in block.chunks_exact_mut(n).enumerate() {
                let j = task * COLUMNS + offset;
                // Entries below the diagonal stand for two: ½ · 2 W_ij there, ½ W_jj on it.
                let column = &mut column[j..];
                for entry in &mut *column {
                    *entry *= -num_outputs;
                }
                for (d, scale) in scales.iter().enumerate() {
                    let a = &weights.column(d)[j..];
                    let factor = scale * a[0];
                    column.iter_mut().zip(a).for_each(|(entry, a)| *entry += factor * a);
                }
                column[0] *= 0.5;
                // ∂K̃/∂log σ² = σ² I
                gradient[num_parameters] += self.noise_variance * column[0];
                let (location, rest) = self.rows(locations, j);
                let pairs = Pairs::new(location, rest, column);
                self.kernel.add_gradient(pairs, &mut gradient[..num_parameters]);
            }
            gradient
        };
        let block_length = COLUMNS * n.max(1);
        let blocks: Vec<Vec<f64>> = if n < PARALLEL_DIM {
            inverse.entries_mut().chunks_mut(block_length).enumerate().map(contract).collect()
        } else {
            inverse.entries_mut().par_chunks_mut(block_length).enumerate().map(contract).collect()
        };
        let mut gradient = vec![0.0; num_parameters + 1];
        for block in blocks {
            gradient.iter_mut().zip(block).for_each(|(sum, part)| *sum += part);
        }
        (gradient, Workspace { storage: inverse, scratch })
    }

    /// K between the context's locations (rows) and `locations` (columns).
    fn cross(&self, context: &[f64], locations: &[f64]) -> Matrix {
        let n = context.len() / self.location_dim;
        let mut matrix = Matrix::zeros(n, locations.len() / self.location_dim);
        matrix
            .entries_mut()
            .par_chunks_exact_mut(n.max(1))
            .zip(locations.par_chunks_exact(self.location_dim))
            .for_each(|(column, location)| self.kernel.fill_row(location, context, column));
        matrix
    }

    /// Means K*ᵀ A `[m, d_x]`, and V = L⁻¹ K* `[n, m]`, from which the covariance follows.
    fn regress(&self, context: &[f64], solved: &Solved, locations: &[f64]) -> (Matrix, Matrix) {
        let mut cross = self.cross(context, locations);
        let mut means = Matrix::zeros(cross.num_columns(), solved.weights.num_columns());
        for d in 0..means.num_columns() {
            for (j, mean) in means.column_mut(d).iter_mut().enumerate() {
                *mean = dot(cross.column(j), solved.weights.column(d));
            }
        }
        solved.cholesky.solve_lower(&mut cross);
        (means, cross)
    }

    /// Means `[m, d_x]` and variances `[m]` of values at `locations`, noise included. Rounding
    /// cannot bring a variance below that of the noise.
    pub(super) fn moments(
        &self,
        context: &[f64],
        solved: &Solved,
        locations: &[f64],
    ) -> (Matrix, Vec<f64>) {
        let (means, v) = self.regress(context, solved, locations);
        // k̃(t, t) − ‖L⁻¹ k*‖²
        let variances = locations
            .chunks_exact(self.location_dim)
            .enumerate()
            .map(|(j, location)| {
                let explained = dot(v.column(j), v.column(j));
                (self.kernel.variance(location) - explained).max(0.0) + self.noise_variance
            })
            .collect();
        (means, variances)
    }

    /// Means `[m, d_x]` and the factor of the joint covariance `[m, m]`, noise included.
    pub(super) fn joint(
        &self,
        context: &[f64],
        solved: &Solved,
        locations: &[f64],
    ) -> Result<(Matrix, Cholesky)> {
        let (means, v) = self.regress(context, solved, locations);
        let m = v.num_columns();
        let cholesky = Cholesky::new(Matrix::zeros(m, m), |k| {
            // K̃** − Vᵀ V
            self.fill(locations, k);
            for j in 0..m {
                for (i, entry) in k.column_mut(j).iter_mut().enumerate().skip(j) {
                    *entry -= dot(v.column(i), v.column(j));
                }
            }
        })?;
        Ok((means, cholesky))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
