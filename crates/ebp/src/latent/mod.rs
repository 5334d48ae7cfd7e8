//! Laws of the latent θ of a set: what sets are drawn from before any element is.
//!
//! Training with a small weight of the KL term leaves the codes of real sets, taken together, far from
//! N(0, I). A prior that is fitted to them after training is still a p(θ), and makes better sets;
//! results should say which of them was used ([`Prior::name`]).
//!
//! ```text
//! StandardPrior   θ ~ N(0, I)
//! DirichletPrior  softmax(θ) ~ Dirichlet(α): topics
//! GaussianPrior   θ ~ N(m, Σ), fitted to codes
//! KernelPrior     kernels around codes, one bandwidth for every principal direction
//! FlowPrior       θ = m + L g(u), u ~ N(0, I): couplings g after the fitted Gaussian, Σ = L Lᵀ
//! ```
//!
//! A code is a posterior N(μ, diag σ²); fitting sees its draws, not its mean alone, so that no density
//! can become infinitely sharp on the training sets.

mod codes;
mod dirichlet;
mod flow;
mod gaussian;
mod kernel;

use crate::linalg::Matrix;
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

pub use codes::Codes;
pub use dirichlet::DirichletPrior;
pub use flow::{FlowConfig, FlowFit, FlowPrior};
pub use gaussian::{GaussianPrior, StandardPrior};
pub use kernel::{KernelConfig, KernelFit, KernelPrior};

/// Tensors by name, as checkpoints keep them.
pub type PriorState = Tensors;

/// A law of θ with an exact density.
pub trait Prior: std::fmt::Debug + Send + Sync {
    /// What results call it.
    fn name(&self) -> &'static str;

    /// k.
    fn dim(&self) -> usize;

    /// `count` draws, `[count, k]`; a function of the stream alone.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] if a draw overflows.
    fn sample(&self, count: usize, stream: Stream) -> Result<Vec<f32>>;

    /// Draws that are spread more evenly than independent ones, where a law has them: each has the law,
    /// together they are not independent, and results must say that they are such.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample).
    fn sample_in_turn(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        self.sample(count, stream)
    }

    /// log p(θ) of every row of `thetas` `[n, k]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the rows are whole.
    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>>;

    /// log p of the means of the codes that the law was fitted to, in their order, each by the law without
    /// what that code itself added to it, where a law can leave that out.
    ///
    /// # Errors
    ///
    /// As [`log_density`](Self::log_density).
    fn log_density_left_out(&self, means: &[f32]) -> Result<Vec<f64>> {
        self.log_density(means)
    }

    /// ∇ log p(θ) and a positive definite `[k, k]` near −∇² log p(θ), the lower triangle in columns, for
    /// one θ. `widths` are the steps of central differences, which find both unless a law knows better:
    /// the second along the axes alone.
    ///
    /// # Errors
    ///
    /// As [`log_density`](Self::log_density).
    fn slope(&self, theta: &[f32], widths: &[f32]) -> Result<(Vec<f64>, Matrix)> {
        let k = self.dim();
        let mut rows = theta.repeat(2 * k + 1);
        for (axis, width) in widths.iter().enumerate() {
            rows[(2 * axis + 1) * k + axis] += width;
            rows[(2 * axis + 2) * k + axis] -= width;
        }
        let logs = self.log_density(&rows)?;
        let mut precision = Matrix::zeros(k, k);
        let mut slope = Vec::with_capacity(k);
        for (axis, &width) in widths.iter().enumerate() {
            let (up, down) = (logs[2 * axis + 1], logs[2 * axis + 2]);
            let width = f64::from(width);
            slope.push((up - down) / (2.0 * width));
            let bend = (2.0 * logs[0] - up - down) / (width * width);
            // Where a law bends up it is taken to be as wide as ten steps.
            precision.column_mut(axis)[axis] = bend.max(0.01 / (width * width));
        }
        Ok((slope, precision))
    }

    /// Everything a checkpoint must keep.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    fn state(&self) -> Result<PriorState>;
}

/// log √(2π)
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

/// log N(u; 0, I).
fn log_standard(row: &[f64]) -> f64 {
    row.iter().map(|u| -0.5 * u * u - LOG_ROOT_TAU).sum()
}

fn check_rows(field: &'static str, found: usize, dim: usize) -> Result<usize> {
    if found.is_multiple_of(dim) {
        return Ok(found / dim);
    }
    Err(Error::invalid(
        field,
        format!("whole rows of k = {dim} numbers"),
        format!("{found} numbers"),
    ))
}
