//! The law of a row at a latent location, and the location of a new row.
//!
//! ```text
//! x | t ~ N(Bᵀk, s² I),   k = k(t, P),   s² = k(t, t) − kᵀ R k + σ²
//! point      P = t₁…ₙ, B = K̃⁻¹ X, R = K̃⁻¹
//! bayesian   P inducing points, B = β A⁻¹ Ψ₁ᵀ X, R = K_PP⁻¹ − A⁻¹
//! t*(x) = argmax log p(x | t), with log N(t; 0, I) for the Bayesian model
//! ```
//!
//! The search for t* begins at the locations of the rows nearest to x, and keeps the best end.

use std::sync::Arc;

use crate::error::check_length;
use crate::kernel::{Kernel, Pairs};
use crate::linalg::{Cholesky, Matrix};
use crate::process::Prediction;
use crate::process::lbfgs::{Evaluation, Limits, minimise};
use crate::{IndexedSet, Result};

/// Nearest rows from which the search begins.
const STARTS: usize = 3;
/// Evaluations of each search.
const EVALUATIONS: usize = 200;

/// The law of a row at a latent location, given the rows of a fit.
#[derive(Clone, Debug)]
pub struct Conditional {
    pub(super) kernel: Arc<dyn Kernel>,
    /// P `[p, q]`.
    pub(super) points: Vec<f64>,
    /// B `[p, d]`.
    pub(super) weights: Matrix,
    /// R `[p, p]`.
    pub(super) reduction: Matrix,
    pub(super) noise_variance: f64,
    /// Whether locations have the prior N(0, I).
    pub(super) has_prior: bool,
    /// (t, x) of every row of the fit.
    pub(super) rows: IndexedSet,
}

/// Where a new row belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// t* `[q]`.
    pub latent: Vec<f64>,
    /// log p(x | t*).
    pub log_density: f64,
}

/// K⁻¹, both triangles.
pub(super) fn mirrored_inverse(cholesky: Cholesky) -> Matrix {
    let dim = cholesky.dim();
    cholesky.into_inverse(Matrix::zeros(dim, dim)).0.mirrored()
}

/// What is known about values at one location.
struct Moments {
    reduced: Vec<f64>,
    mean: Vec<f64>,
    variance: f64,
}

impl Conditional {
    fn moments(&self, location: &[f64]) -> Moments {
        let count = self.weights.num_rows();
        let mut cross = vec![0.0; count];
        self.kernel.fill_row(location, &self.points, &mut cross);
        let reduced: Vec<f64> = (0..count).map(|j| dot(self.reduction.column(j), &cross)).collect();
        let mean =
            (0..self.weights.num_columns()).map(|d| dot(self.weights.column(d), &cross)).collect();
        let explained = dot(&cross, &reduced);
        let variance = (self.kernel.variance(location) - explained).max(0.0) + self.noise_variance;
        Moments { reduced, mean, variance }
    }

    /// Means and variances of rows at `locations` `[m, q]`, noise included.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`](crate::Error::WrongLength) unless these are whole locations.
    pub fn predict(&self, locations: &[f64]) -> Result<Prediction> {
        let (dim, count) = (self.rows.location_dim(), self.rows.value_dim());
        let whole = locations.len() / dim * dim;
        check_length("locations", locations.len(), whole, || format!("rows of {dim}"))?;
        let mut prediction = Prediction { mean: Vec::new(), variance: Vec::new() };
        for location in locations.chunks_exact(dim) {
            let found = self.moments(location);
            prediction.mean.extend(found.mean);
            prediction.variance.extend(std::iter::repeat_n(found.variance, count));
        }
        Ok(prediction)
    }

    /// log p(x | t).
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`](crate::Error::WrongLength) unless x and t have their dimensions.
    pub fn log_density(&self, value: &[f64], location: &[f64]) -> Result<f64> {
        self.check(value)?;
        check_length("location", location.len(), self.rows.location_dim(), || "q".into())?;
        let Moments { mean, variance, .. } = self.moments(location);
        let square: f64 = mean.iter().zip(value).map(|(m, x)| (x - m).powi(2)).sum();
        let log_tau = std::f64::consts::TAU.ln();
        Ok(-0.5 * (mean.len() as f64 * (log_tau + variance.ln()) + square / variance))
    }

    fn check(&self, value: &[f64]) -> Result<()> {
        check_length("value", value.len(), self.rows.value_dim(), || "one per column".into())
    }

    /// −log p(x | t) − log p(t) and its gradient by t, per column of x.
    fn loss(&self, value: &[f64], location: &[f64]) -> Result<Evaluation> {
        let share = 1.0 / value.len() as f64;
        let Moments { reduced, mean, variance } = self.moments(location);
        let errors: Vec<f64> = value.iter().zip(&mean).map(|(x, m)| (x - m) / variance).collect();
        let square = variance * variance * dot(&errors, &errors);
        // h = ∂ log p/∂s²
        let by_variance = 0.5 * (square / variance - value.len() as f64) / variance;
        // ∂ log p/∂k = B e − 2 h R k
        let mut by_cross: Vec<f64> = reduced.iter().map(|r| -2.0 * by_variance * r).collect();
        for (d, error) in errors.iter().enumerate() {
            let column = self.weights.column(d);
            by_cross.iter_mut().zip(column).for_each(|(sum, b)| *sum += error * b);
        }
        let mut gradient = vec![0.0; location.len()];
        let across = Pairs::new(location, &self.points, &by_cross);
        self.kernel.add_location_gradient(across, &mut gradient);
        // ∂k(t, t)/∂t is twice that by one argument.
        let own = [2.0 * by_variance];
        self.kernel.add_location_gradient(Pairs::new(location, location, &own), &mut gradient);
        let mut log_density = self.log_density(value, location)?;
        if self.has_prior {
            log_density -= 0.5 * dot(location, location);
            gradient.iter_mut().zip(location).for_each(|(slope, t)| *slope -= t);
        }
        let gradient = gradient.iter().map(|slope| -share * slope).collect();
        Ok(Evaluation { value: -share * log_density, gradient, jitter: 0.0 })
    }

    /// The location of a new row `[d]`.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`](crate::Error::WrongLength) unless the row has d numbers,
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if one is not finite.
    pub fn embed(&self, value: &[f64]) -> Result<Embedding> {
        self.check(value)?;
        let dim = self.rows.value_dim();
        // Says which number is not finite.
        IndexedSet::new(0, dim, Vec::new(), value.to_vec())?;
        let far = |row: usize| -> f64 {
            self.rows.value(row).iter().zip(value).map(|(a, b)| (a - b).powi(2)).sum()
        };
        let mut order: Vec<(f64, usize)> =
            (0..self.rows.len()).map(|row| (far(row), row)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let limits = Limits {
            bounds: [-super::FARTHEST, super::FARTHEST],
            max_evaluations: EVALUATIONS,
            gradient_tolerance: 1e-9,
            value_tolerance: 1e-13,
        };
        let mut best: Option<(f64, Vec<f64>)> = None;
        for &(_, row) in order.iter().take(STARTS) {
            let start = self.rows.location(row);
            let found = minimise(start, &limits, |location| self.loss(value, location))?;
            if best.as_ref().is_none_or(|(least, _)| found.evaluation.value < *least) {
                best = Some((found.evaluation.value, found.parameters));
            }
        }
        let latent = best.map_or_else(|| vec![0.0; self.rows.location_dim()], |(_, found)| found);
        Ok(Embedding { log_density: self.log_density(value, &latent)?, latent })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{BayesianGplvm, Gplvm, LatentMap};

    /// The gradient by which new rows are placed, against central differences, for both models.
    #[test]
    fn slopes_of_new_rows_equal_differences() {
        let n = 9;
        let latents: Vec<f64> = (0..2 * n).map(|i| (1.3 * f64::from(i)).sin()).collect();
        let values: Vec<f64> = (0..3 * n).map(|i| (0.7 * f64::from(i)).cos()).collect();
        let point = Gplvm::new(latents.clone(), 2, values.clone(), 3, [true, true], 0.05).unwrap();
        let bayesian = BayesianGplvm::new(latents, 2, values, 3, 5, 0.05).unwrap();
        for conditional in [point.conditional().unwrap(), bayesian.conditional().unwrap()] {
            let (value, at) = ([0.3, -0.2, 0.9], [0.2, -0.4]);
            let found = conditional.loss(&value, &at).unwrap();
            for d in 0..2 {
                let h = 1e-5;
                let moved = |step: f64| {
                    let mut place = at;
                    place[d] += step;
                    conditional.loss(&value, &place).unwrap().value
                };
                let expected = (moved(h) - moved(-h)) / (2.0 * h);
                // h² times a third derivative, and rounding over h.
                let error = (found.gradient[d] - expected).abs();
                assert!(error < 1e-7 * expected.abs().max(1.0), "{d}: {error}");
            }
        }
    }
}
