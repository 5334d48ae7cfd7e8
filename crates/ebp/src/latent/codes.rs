//! Codes of sets: one posterior N(μ, diag σ²) per set.

use crate::error::check_length;
use crate::rng::Stream;
use crate::{Error, Result};

/// The posteriors of a collection of sets.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    dim: usize,
    means: &'a [f32],
    std_devs: Option<&'a [f32]>,
}

impl<'a> Codes<'a> {
    /// `means` μ `[n, k]` and, where there is noise, `std_devs` σ of the same shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless there are at least two whole rows, σ has the shape of μ, and σ
    /// is not negative.
    pub fn new(dim: usize, means: &'a [f32], std_devs: Option<&'a [f32]>) -> Result<Self> {
        if dim == 0 || means.len() < 2 * dim || !means.len().is_multiple_of(dim) {
            let expected = format!("two or more whole rows of k = {dim} ≥ 1 numbers");
            return Err(Error::invalid("means", expected, format!("{} numbers", means.len())));
        }
        let remedy = "go back to an earlier checkpoint of the encoder";
        crate::error::check_finite("means", means, remedy)?;
        if let Some(std_devs) = std_devs {
            check_length("std_devs", std_devs.len(), means.len(), || "as many as means".into())?;
            crate::error::check_finite("std_devs", std_devs, remedy)?;
            if let Some(negative) = std_devs.iter().find(|&&s| s < 0.0) {
                return Err(Error::invalid("std_devs", "at least 0", negative));
            }
        }
        Ok(Self { dim, means, std_devs })
    }

    /// k.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// μ, `[n, k]`.
    pub(super) fn means(&self) -> &[f32] {
        self.means
    }

    /// How many sets.
    #[expect(clippy::len_without_is_empty, reason = "there are always two or more")]
    pub fn len(&self) -> usize {
        self.means.len() / self.dim
    }

    /// One draw μ + σ ξ for each of `rows`, `[rows, k]`.
    pub fn draw(&self, rows: &[usize], stream: Stream) -> Vec<f32> {
        let mut drawn = Vec::with_capacity(rows.len() * self.dim);
        for &row in rows {
            drawn.extend_from_slice(&self.means[row * self.dim..][..self.dim]);
        }
        if let Some(std_devs) = self.std_devs {
            let mut noise = vec![0.0; drawn.len()];
            stream.fill_normal(0, 0, &mut noise);
            for (place, &row) in rows.iter().enumerate() {
                let range = place * self.dim..(place + 1) * self.dim;
                let std_devs = &std_devs[row * self.dim..][..self.dim];
                for ((theta, xi), sigma) in
                    drawn[range.clone()].iter_mut().zip(&noise[range]).zip(std_devs)
                {
                    *theta += sigma * xi;
                }
            }
        }
        drawn
    }

    /// The mean of all μ, `[k]`.
    pub(super) fn mean(&self, rows: &[usize]) -> Vec<f64> {
        let mut mean = vec![0.0; self.dim];
        for &row in rows {
            for (sum, &mu) in mean.iter_mut().zip(&self.means[row * self.dim..]) {
                *sum += f64::from(mu);
            }
        }
        mean.iter().map(|sum| sum / rows.len() as f64).collect()
    }

    /// The covariance of μ + σ ξ over the given sets and the noise, `[k, k]` row-major:
    /// Σ (μ − m)(μ − m)ᵀ/(n − 1) + diag mean σ².
    pub(super) fn covariance(&self, rows: &[usize], mean: &[f64]) -> Vec<f64> {
        let dim = self.dim;
        let mut covariance = vec![0.0; dim * dim];
        let share = 1.0 / (rows.len().max(2) - 1) as f64;
        let mut centred = vec![0.0; dim];
        for &row in rows {
            let means = &self.means[row * dim..][..dim];
            for ((c, &mu), m) in centred.iter_mut().zip(means).zip(mean) {
                *c = f64::from(mu) - m;
            }
            for (i, line) in covariance.chunks_exact_mut(dim).enumerate() {
                let left = share * centred[i];
                line.iter_mut().zip(&centred).for_each(|(sum, right)| *sum += left * right);
            }
        }
        if let Some(std_devs) = self.std_devs {
            for &row in rows {
                for i in 0..dim {
                    let sigma = f64::from(std_devs[row * dim + i]);
                    covariance[i * dim + i] += sigma * sigma / rows.len() as f64;
                }
            }
        }
        covariance
    }
}
