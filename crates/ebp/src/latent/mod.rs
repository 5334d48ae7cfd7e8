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

    /// log p(θ) of every row of `thetas` `[n, k]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the rows are whole.
    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>>;

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
