//! The point estimate: log p(x | t) and its gradient by locations and hyperparameters.
//!
//! ```text
//! log p = −(d/2) log |K̃| − ½ tr(Xᵀ K̃⁻¹ X) − (nd/2) log 2π,   K̃ = K(t) + σ²I
//! ∂ log p = ½ Σ_ij G_ij ∂K̃_ij,   G = A Aᵀ − d K̃⁻¹,  A = K̃⁻¹ X;   by tᵢ: Σ_j G_ij ∂₁k(tᵢ, t_j)
//! ```

use rayon::prelude::*;

use super::conditional::{Conditional, mirrored_inverse};
use super::{LatentMap, Objective, check_table};
use crate::error::check_length;
use crate::kernel::{Constant, Kernel, Linear, Pairs, RbfArd, Sum};
use crate::linalg::Matrix;
use crate::process::covariance::Covariance;
use crate::process::{ExactProcess, ExactProcessConfig, GaussianProcess, Predictive, Process};
use crate::{Error, IndexedSet, Result};

/// Rows that one task takes; fixed, so that sums do not depend on the number of threads.
const ROWS: usize = 16;

/// Rows at latent locations, by their point estimate.
#[derive(Debug)]
pub struct Gplvm {
    covariance: Covariance,
    /// The same law of values at locations, for whoever asks it.
    process: GaussianProcess,
    /// (t, x) of every row.
    rows: IndexedSet,
    /// Where ℓ stand among the kernel's hyperparameters.
    length_scales: std::ops::Range<usize>,
}

impl Gplvm {
    /// Rows `values` `[n, d]` that begin at `latents` `[n, q]`, with v = 1 and ℓ = 1 in every
    /// dimension, plus a linear trend and an unknown level where asked for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the table is too small or not finite, or the noise not positive.
    pub fn new(
        latents: Vec<f64>,
        latent_dim: usize,
        values: Vec<f64>,
        value_dim: usize,
        [has_linear, has_constant]: [bool; 2],
        noise_variance: f64,
    ) -> Result<Self> {
        let mut kernel: Box<dyn Kernel> = Box::new(RbfArd::new(1.0, &vec![1.0; latent_dim])?);
        if has_linear {
            kernel = Box::new(Sum::new(kernel, Box::new(Linear::new(1.0)?)));
        }
        if has_constant {
            kernel = Box::new(Sum::new(kernel, Box::new(Constant::new(0.1)?)));
        }
        check_table(&values, value_dim, latent_dim)?;
        let rows = IndexedSet::new(latent_dim, value_dim, latents, values)?;
        Self::from_parts(kernel, noise_variance, rows, 1..1 + latent_dim)
    }

    fn from_parts(
        kernel: Box<dyn Kernel>,
        noise_variance: f64,
        rows: IndexedSet,
        length_scales: std::ops::Range<usize>,
    ) -> Result<Self> {
        let (location_dim, value_dim) = (rows.location_dim(), rows.value_dim());
        let config = ExactProcessConfig { location_dim, value_dim, noise_variance };
        let copy = kernel.with_log_parameters(&kernel.log_parameters())?;
        let process = GaussianProcess::new(copy, &config)?;
        let covariance = Covariance { kernel: kernel.into(), noise_variance, location_dim };
        Ok(Self { covariance, process, rows, length_scales })
    }

    /// The Gaussian process of values at latent locations, before any row is known.
    pub fn process(&self) -> &GaussianProcess {
        &self.process
    }

    /// log p(x | t) of all rows.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] if the covariance cannot be factorised.
    pub fn log_marginal(&self) -> Result<f64> {
        self.process.log_marginal(&self.rows)
    }
}

impl LatentMap for Gplvm {
    fn parameters(&self) -> Vec<f64> {
        [self.rows.locations(), &self.covariance.log_parameters()].concat()
    }

    fn with_parameters(&self, parameters: &[f64]) -> Result<Self> {
        let num_latents = self.rows.locations().len();
        let count = num_latents + self.covariance.log_parameters().len();
        check_length("parameters", parameters.len(), count, || "latents and logarithms".into())?;
        let (latents, logarithms) = parameters.split_at(num_latents);
        let (of_kernel, noise) = logarithms.split_at(logarithms.len() - 1);
        let kernel = self.covariance.kernel.with_log_parameters(of_kernel)?;
        let (location_dim, value_dim) = (self.rows.location_dim(), self.rows.value_dim());
        let values = self.rows.values().to_vec();
        let rows = IndexedSet::new(location_dim, value_dim, latents.to_vec(), values)?;
        Self::from_parts(kernel, noise[0].exp(), rows, self.length_scales.clone())
    }

    fn objective(&self) -> Result<Objective> {
        let (latents, kernel) = (self.rows.locations(), &self.covariance.kernel);
        let (n, dim, num_outputs) =
            (self.rows.len(), self.rows.location_dim(), self.rows.value_dim());
        let values = Matrix::from_rows(num_outputs, self.rows.values());
        let solved = self.covariance.solve(latents, values, Matrix::default())?;
        let form: f64 = solved.forms.iter().sum();
        let outputs = num_outputs as f64;
        let log_tau = std::f64::consts::TAU.ln();
        let value = -0.5 * (outputs * solved.log_determinant + form + n as f64 * outputs * log_tau);
        let jitter = solved.cholesky.jitter();
        let products = solved.weights.products_of_rows().mirrored();
        let mut pull = mirrored_inverse(solved.cholesky);
        for (entry, product) in pull.entries_mut().iter_mut().zip(products.entries()) {
            *entry = product - outputs * *entry;
        }
        let num_parameters = kernel.log_parameters().len();
        let task = |(task, (block, moves)): (usize, (&[f64], &mut [f64]))| {
            let mut gradient = vec![0.0; num_parameters];
            let rows = block.chunks_exact(n).zip(moves.chunks_exact_mut(dim)).enumerate();
            for (offset, (row, moved)) in rows {
                let location = &latents[(task * ROWS + offset) * dim..][..dim];
                let pairs = Pairs::new(location, latents, row);
                kernel.add_gradient(pairs, &mut gradient);
                kernel.add_location_gradient(pairs, moved);
            }
            gradient
        };
        let mut gradient = vec![0.0; latents.len()];
        let blocks = pull.entries().par_chunks(ROWS * n).zip(gradient.par_chunks_mut(ROWS * dim));
        let parts: Vec<Vec<f64>> = blocks.enumerate().map(task).collect();
        let mut logarithms = vec![0.0; num_parameters];
        for part in parts {
            logarithms.iter_mut().zip(part).for_each(|(sum, part)| *sum += 0.5 * part);
        }
        let trace: f64 = (0..n).map(|i| pull.at(i, i)).sum();
        logarithms.push(0.5 * trace * self.covariance.noise_variance);
        gradient.extend(logarithms);
        Ok(Objective { value, gradient, jitter })
    }

    fn rows(&self) -> &IndexedSet {
        &self.rows
    }

    fn length_scales(&self) -> Vec<f64> {
        let logarithms = self.covariance.kernel.log_parameters();
        logarithms[self.length_scales.clone()].iter().map(|log| log.exp()).collect()
    }

    fn conditional(&self) -> Result<Conditional> {
        let latents = self.rows.locations();
        let values = Matrix::from_rows(self.rows.value_dim(), self.rows.values());
        let solved = self.covariance.solve(latents, values, Matrix::default())?;
        Ok(Conditional {
            kernel: self.covariance.kernel.clone(),
            points: latents.to_vec(),
            weights: solved.weights,
            reduction: mirrored_inverse(solved.cholesky),
            noise_variance: self.covariance.noise_variance,
            has_prior: false,
            rows: self.rows.clone(),
        })
    }
}

impl Process for Gplvm {
    fn name(&self) -> &'static str {
        "gplvm"
    }

    /// The Gaussian process at latent locations, given all rows and those of `context` too.
    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        let dims = [
            (self.rows.location_dim(), context.location_dim()),
            (self.rows.value_dim(), context.value_dim()),
        ];
        if let Some((expected, found)) =
            dims.into_iter().find(|(expected, found)| expected != found)
        {
            return Err(Error::invalid("context", format!("of dimension {expected}"), found));
        }
        let join = |own: &[f64], more: &[f64]| [own, more].concat();
        let all = IndexedSet::new(
            context.location_dim(),
            context.value_dim(),
            join(self.rows.locations(), context.locations()),
            join(self.rows.values(), context.values()),
        )?;
        Ok(Box::new(self.process.posterior(&all)?))
    }
}
