//! Covariance kernels k(t, t′) of values at locations, with ∂k/∂log θ for every hyperparameter θ.
//!
//! | kernel | k(t, t′) with r = ‖t − t′‖ |
//! |---|---|
//! | [`Rbf`] | v exp(−r²/(2ℓ²)): infinitely smooth |
//! | [`Matern`] | v times a polynomial in a = √(2s) r/ℓ times exp(−a): s = 1/2, 3/2, 5/2 |
//! | [`Periodic`] | v exp(−2 Σ_d sin²(π (t − t′)_d/p)/ℓ²) |
//! | [`RbfArd`] | v exp(−Σ_d (t − t′)_d²/(2ℓ_d²)): a length scale for every dimension |
//! | [`Linear`], [`Constant`] | v t·t′, and v: a linear trend, an unknown level |
//! | [`Sum`], [`Product`] | of two kernels |
//!
//! v is `signal_variance` and ℓ `length_scale`. Hyperparameters are positive and travel as their
//! logarithms, in which a step of 0.1 means ten per cent whatever the unit.
//!
//! Kernels work on one location against a block of others, so that a covariance is computed column
//! by column and its gradient is contracted without ever being stored.

mod ard;
mod combined;
mod linear;
mod matern;
mod periodic;
mod rbf;

use std::fmt::Debug;

pub use ard::RbfArd;
pub use combined::{Product, Sum};
pub use linear::{Constant, Linear};
pub use matern::{Matern, Smoothness};
pub use periodic::Periodic;
pub use rbf::Rbf;

use crate::error::check_length;
use crate::{Error, Result};

/// A positive definite function of two locations.
///
/// ```
/// use ebp::kernel::{Kernel, Rbf};
///
/// let kernel = Rbf::new(2.0, 0.5)?;
/// let mut row = [0.0; 2];
/// kernel.fill_row(&[1.0], &[1.0, 2.0], &mut row); // two locations of one dimension
/// assert_eq!(row, [2.0, 2.0 * (-2_f64).exp()]);
/// # Ok::<(), ebp::Error>(())
/// ```
pub trait Kernel: Debug + Send + Sync {
    /// The names of the hyperparameters, in the order of their values.
    fn parameter_names(&self) -> Vec<&'static str>;

    /// log θ.
    fn log_parameters(&self) -> Vec<f64>;

    /// The same kernel with other hyperparameters.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] if there are more or fewer, [`Error::InvalidValue`] if one leaves the
    /// range of f64.
    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>>;

    /// k(t, t).
    fn variance(&self, location: &[f64]) -> f64;

    /// Writes k(t, t′) for `location` t `[d_t]` and every row t′ of `others` `[m, d_t]` into `out`
    /// `[m]`.
    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]);

    /// Adds Σ_j w_j ∂k(t, t′_j)/∂log θ to `gradient`.
    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]);

    /// Adds Σ_j w_j ∂k(t, t′_j)/∂t to `gradient` `[d_t]`; 0 where t = t′_j and the kernel has a kink.
    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]);
}

/// One location with others, and what each pair counts.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// t, `[d_t]`.
    pub location: &'a [f64],
    /// t′, `[m, d_t]`.
    pub others: &'a [f64],
    /// w, `[m]`.
    pub weights: &'a [f64],
}

impl<'a> Pairs<'a> {
    /// `location` t with every row t′ of `others`, weighed.
    pub fn new(location: &'a [f64], others: &'a [f64], weights: &'a [f64]) -> Self {
        Self { location, others, weights }
    }

    /// The same with other weights.
    fn with(self, weights: &'a [f64]) -> Self {
        Self { weights, ..self }
    }

    /// w and t′ of every pair.
    fn each(self) -> impl Iterator<Item = (&'a f64, &'a [f64])> {
        self.weights.iter().zip(self.others.chunks_exact(self.location.len()))
    }

    /// ‖t − t′‖² of every pair.
    fn squares(self) -> impl Iterator<Item = f64> + 'a {
        squared_distances(self.location, self.others)
    }
}

/// Adds Σ_j f_j (t − t′_j) to `gradient`, for `factors` f.
fn add_differences(
    location: &[f64],
    others: &[f64],
    factors: impl Iterator<Item = f64>,
    gradient: &mut [f64],
) {
    for (factor, other) in factors.zip(others.chunks_exact(location.len())) {
        for ((sum, a), b) in gradient.iter_mut().zip(location).zip(other) {
            *sum += factor * (a - b);
        }
    }
}

/// A hyperparameter must be a positive number.
fn check_positive(field: &'static str, value: f64) -> Result<f64> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(Error::invalid(field, "positive and finite", value))
}

/// θ from log θ, as many as the kernel has.
fn from_logarithms<const N: usize>(log_parameters: &[f64]) -> Result<[f64; N]> {
    check_length("log_parameters", log_parameters.len(), N, || "one per hyperparameter".into())?;
    let mut parameters = [0.0; N];
    for (parameter, log_parameter) in parameters.iter_mut().zip(log_parameters) {
        *parameter = log_parameter.exp();
    }
    Ok(parameters)
}

/// ‖t − t′‖² for every row t′ of `others`, in order.
fn squared_distances<'a>(location: &'a [f64], others: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    others
        .chunks_exact(location.len())
        .map(move |other| other.iter().zip(location).map(|(a, b)| (a - b) * (a - b)).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCATIONS: [f64; 10] = [0.0, 0.3, -1.2, 0.5, 0.9, 2.0, 0.0, 0.3, 0.4, -0.7];

    fn kernels() -> Vec<Box<dyn Kernel>> {
        let matern = |smoothness| Box::new(Matern::new(smoothness, 1.3, 0.7).unwrap());
        let rbf = || Box::new(Rbf::new(0.8, 1.1).unwrap());
        let periodic = || Box::new(Periodic::new(1.7, 0.9, 1.4).unwrap());
        vec![
            rbf(),
            matern(Smoothness::Half),
            matern(Smoothness::ThreeHalves),
            matern(Smoothness::FiveHalves),
            periodic(),
            Box::new(Linear::new(0.6).unwrap()),
            Box::new(Constant::new(0.4).unwrap()),
            Box::new(Sum::new(rbf(), periodic())),
            Box::new(Product::new(rbf(), periodic())),
        ]
    }

    /// Σ_j w_j k(t, t′_j).
    fn weighted(kernel: &dyn Kernel, dim: usize, weights: &[f64]) -> f64 {
        let mut row = vec![0.0; weights.len()];
        kernel.fill_row(&LOCATIONS[..dim], &LOCATIONS, &mut row);
        row.iter().zip(weights).map(|(k, w)| k * w).sum()
    }

    #[test]
    fn gradients_equal_central_differences_in_every_dimension() {
        for kernel in kernels() {
            for dim in [1, 2, 5] {
                let num = LOCATIONS.len() / dim;
                let weights: Vec<f64> = (0..num).map(|j| 1.0 + (j as f64).cos()).collect();
                let at = kernel.log_parameters();
                let mut gradient = vec![0.0; at.len()];
                let pairs = Pairs::new(&LOCATIONS[..dim], &LOCATIONS, &weights);
                kernel.add_gradient(pairs, &mut gradient);
                for (p, &analytic) in gradient.iter().enumerate() {
                    // Error of the difference: h²/6 times a third derivative of order 10, and ε/h.
                    let h = 1e-5;
                    let shifted = |step: f64| {
                        let mut moved = at.clone();
                        moved[p] += step;
                        weighted(&*kernel.with_log_parameters(&moved).unwrap(), dim, &weights)
                    };
                    let numeric = (shifted(h) - shifted(-h)) / (2.0 * h);
                    let name = kernel.parameter_names()[p];
                    assert!((analytic - numeric).abs() < 1e-8, "{kernel:?} {name} {dim}");
                }
            }
        }
    }

    #[test]
    fn location_gradients_equal_central_differences_in_every_dimension() {
        let ard = |dim: usize| {
            let scales: Vec<f64> = (0..dim).map(|d| 0.5 + 0.3 * d as f64).collect();
            Box::new(RbfArd::new(1.2, &scales).unwrap()) as Box<dyn Kernel>
        };
        for dim in [1, 2, 5] {
            for kernel in kernels().into_iter().chain([ard(dim)]) {
                let num = LOCATIONS.len() / dim;
                let weights: Vec<f64> = (0..num).map(|j| 1.0 + (j as f64).cos()).collect();
                let at = &LOCATIONS[..dim];
                let mut gradient = vec![0.0; dim];
                kernel.add_location_gradient(Pairs::new(at, &LOCATIONS, &weights), &mut gradient);
                for (d, analytic) in gradient.iter().enumerate() {
                    // As above; a kink at t = t′ is symmetric and cancels.
                    let h = 1e-5;
                    let shifted = |step: f64| {
                        let mut moved = at.to_vec();
                        moved[d] += step;
                        let mut row = vec![0.0; num];
                        kernel.fill_row(&moved, &LOCATIONS, &mut row);
                        row.iter().zip(&weights).map(|(k, w)| k * w).sum::<f64>()
                    };
                    let numeric = (shifted(h) - shifted(-h)) / (2.0 * h);
                    assert!((analytic - numeric).abs() < 1e-8, "{kernel:?} {d} of {dim}");
                }
            }
        }
    }

    #[test]
    fn kernels_are_symmetric_and_have_their_variance_on_the_diagonal() {
        for kernel in kernels() {
            let (a, b) = (&LOCATIONS[..2], &LOCATIONS[2..4]);
            let mut forth = [0.0];
            let mut back = [0.0];
            kernel.fill_row(a, b, &mut forth);
            kernel.fill_row(b, a, &mut back);
            assert_eq!(forth[0].to_bits(), f64::to_bits(back[0]), "{kernel:?}");
            kernel.fill_row(a, a, &mut forth);
            assert!((forth[0] - kernel.variance(a)).abs() < 1e-15, "{kernel:?}");
            assert_eq!(kernel.parameter_names().len(), kernel.log_parameters().len());
        }
    }

    /// All eigenvalues are positive, hence the factor exists, also of the periodic kernel in more
    /// than one dimension (where sin² of the Euclidean distance would not do).
    #[test]
    fn covariances_are_positive_definite() {
        use crate::linalg::{Cholesky, Matrix};
        let locations: Vec<f64> = (0..60).map(|i| (f64::from(i) * 1.7).sin() * 3.0).collect();
        for kernel in kernels() {
            for dim in [1, 2, 3] {
                let n = locations.len() / dim;
                let cholesky = Cholesky::new(Matrix::zeros(n, n), |k| {
                    for j in 0..n {
                        kernel.fill_row(
                            &locations[j * dim..][..dim],
                            &locations[j * dim..],
                            &mut k.column_mut(j)[j..],
                        );
                        k.column_mut(j)[j] += 1e-9;
                    }
                });
                assert!(cholesky.is_ok_and(|c| c.jitter() < 1e-8), "{kernel:?} {dim}");
            }
        }
    }

    #[test]
    fn bad_hyperparameters_are_refused() {
        assert!(Rbf::new(0.0, 1.0).unwrap_err().to_string().contains("signal_variance"));
        assert!(Periodic::new(1.0, 1.0, f64::NAN).unwrap_err().to_string().contains("period"));
        for kernel in kernels() {
            assert!(kernel.with_log_parameters(&[]).is_err());
            assert!(kernel.with_log_parameters(&[0.0; 9]).is_err());
            let infinite = vec![1e3; kernel.log_parameters().len()];
            assert!(kernel.with_log_parameters(&infinite).is_err());
        }
    }
}
