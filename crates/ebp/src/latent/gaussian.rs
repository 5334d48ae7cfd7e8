//! Gaussian laws of θ: the standard one, and one with the mean and covariance of codes.

use rayon::prelude::*;

use super::{Codes, LOG_ROOT_TAU, Prior, PriorState, check_rows, log_standard};
use crate::linalg::{Cholesky, Matrix};
use crate::rng::Stream;
use crate::tensor::Tensor;
use crate::{Error, Result};

/// N(0, I), the paper's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardPrior {
    /// k.
    pub dim: usize,
}

impl Prior for StandardPrior {
    fn name(&self) -> &'static str {
        "standard normal"
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn sample(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        let mut draws = vec![0.0; count * self.dim];
        stream.fill_normal(0, 0, &mut draws);
        Ok(draws)
    }

    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>> {
        check_rows("thetas", thetas.len(), self.dim)?;
        let wide: Vec<f64> = thetas.iter().map(|&theta| f64::from(theta)).collect();
        Ok(wide.chunks_exact(self.dim).map(log_standard).collect())
    }

    fn state(&self) -> Result<PriorState> {
        Ok(PriorState::new())
    }
}

/// N(m, L Lᵀ) with full covariance.
///
/// ```
/// use ebp::latent::{Codes, GaussianPrior, Prior};
/// use ebp::rng::Stream;
///
/// // Variance 1 along the first axis, 4 along the second.
/// let means = [-1.0, 2.0, 1.0, -2.0, 1.0, 2.0, -1.0, -2.0, 0.0, 0.0];
/// let prior = GaussianPrior::fit(&Codes::new(2, &means, None)?)?;
/// // log p(0) = −log 2π − ½ log |Σ|
/// let expected = -(2.0 * std::f64::consts::PI).ln() - 0.5 * 4_f64.ln();
/// assert!((prior.log_density(&[0.0, 0.0])?[0] - expected).abs() < 1e-6);
/// assert_eq!(prior.sample(3, Stream::new(0, "prior"))?.len(), 6);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianPrior {
    mean: Vec<f32>,
    /// L `[k, k]`, row-major, zero above the diagonal; in single precision from the start, so that a
    /// restored prior is the same to the last bit.
    factor: Vec<f32>,
}

impl GaussianPrior {
    /// The mean and covariance of all codes, noise included.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] if there are too few codes for their dimension and they carry
    /// no noise.
    pub fn fit(codes: &Codes) -> Result<Self> {
        Self::fit_rows(codes, &(0..codes.len()).collect::<Vec<_>>())
    }

    #[expect(clippy::cast_possible_truncation, reason = "stored in single precision")]
    pub(super) fn fit_rows(codes: &Codes, rows: &[usize]) -> Result<Self> {
        let dim = codes.dim();
        let mean = codes.mean(rows);
        let covariance = codes.covariance(rows, &mean);
        let cholesky = Cholesky::new(Matrix::zeros(dim, dim), |storage| {
            storage.entries_mut().copy_from_slice(&covariance); // symmetric: rows are columns
        })?;
        let at =
            |(i, j): (usize, usize)| if j <= i { cholesky.factor().at(i, j) as f32 } else { 0.0 };
        let factor = (0..dim * dim).map(|place| at((place / dim, place % dim))).collect();
        Ok(Self { mean: mean.into_iter().map(|m| m as f32).collect(), factor })
    }

    /// What [`Prior::state`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a tensor is missing or has another shape.
    pub fn restore(state: &PriorState) -> Result<Self> {
        let (mean, _) = saved(state, "mean")?;
        let (factor, dims) = saved(state, "factor")?;
        if mean.is_empty() || dims != [mean.len(), mean.len()] {
            let expected = format!("of shape [{0}, {0}]", mean.len());
            return Err(Error::invalid("factor", expected, format!("{dims:?}")));
        }
        Ok(Self { mean, factor })
    }

    /// u = L⁻¹ (θ − m) of every row.
    pub(super) fn whiten(&self, thetas: &[f32]) -> Vec<f64> {
        let dim = self.mean.len();
        let row = |theta: &[f32]| {
            let mut white = Vec::with_capacity(dim);
            for (i, line) in self.factor.chunks_exact(dim).enumerate() {
                let rest = f64::from(theta[i]) - f64::from(self.mean[i]) - dot(line, &white);
                white.push(rest / f64::from(line[i]));
            }
            white
        };
        thetas.par_chunks_exact(dim).flat_map_iter(row).collect()
    }

    /// θ = m + L u of every row.
    #[expect(clippy::cast_possible_truncation, reason = "codes are single precision")]
    pub(super) fn colour(&self, white: &[f32]) -> Vec<f32> {
        let dim = self.mean.len();
        let mut thetas = Vec::with_capacity(white.len());
        for u in white.chunks_exact(dim) {
            for (i, line) in self.factor.chunks_exact(dim).enumerate() {
                let sum: f64 =
                    line[..=i].iter().zip(u).map(|(&l, &u)| f64::from(l) * f64::from(u)).sum();
                thetas.push((f64::from(self.mean[i]) + sum) as f32);
            }
        }
        thetas
    }

    /// Σᵢ log Lᵢᵢ.
    pub(super) fn log_volume(&self) -> f64 {
        let dim = self.mean.len();
        (0..dim).map(|i| f64::from(self.factor[i * dim + i]).ln()).sum()
    }

    /// Expected −log density of its own draws: k log √(2πe) + Σᵢ log Lᵢᵢ.
    pub fn entropy(&self) -> f64 {
        self.mean.len() as f64 * (LOG_ROOT_TAU + 0.5) + self.log_volume()
    }
}

/// Σ l u over the numbers of the shorter list, in eight sums: one would wait for every addition.
fn dot(line: &[f32], known: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (whole, rest) = known.as_chunks::<8>();
    let (of_line, _) = line.as_chunks::<8>();
    for (l, u) in of_line.iter().zip(whole) {
        for lane in 0..8 {
            sums[lane] += f64::from(l[lane]) * u[lane];
        }
    }
    let after = line[known.len() - rest.len()..].iter().zip(rest);
    sums.iter().sum::<f64>() + after.map(|(&l, u)| f64::from(l) * u).sum::<f64>()
}

/// A saved tensor and its shape.
pub(super) fn saved<'a>(state: &'a PriorState, name: &str) -> Result<(Vec<f32>, &'a [usize])> {
    let found = state.get(name).and_then(|tensor| Some((tensor.as_f32()?, tensor.dims())));
    found.map(|(values, dims)| (values.to_vec(), dims)).ok_or_else(|| missing(name))
}

pub(super) fn missing(name: &str) -> Error {
    Error::invalid(name, "a tensor of the saved prior", "none")
}

impl Prior for GaussianPrior {
    fn name(&self) -> &'static str {
        "fitted Gaussian"
    }

    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn sample(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        let mut noise = vec![0.0; count * self.dim()];
        stream.fill_normal(0, 0, &mut noise);
        Ok(self.colour(&noise))
    }

    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>> {
        check_rows("thetas", thetas.len(), self.dim())?;
        let white = self.whiten(thetas);
        Ok(white.chunks_exact(self.dim()).map(|u| log_standard(u) - self.log_volume()).collect())
    }

    fn state(&self) -> Result<PriorState> {
        let dim = self.dim();
        let mean = Tensor::new(vec![dim], self.mean.clone())?;
        let factor = Tensor::new(vec![dim, dim], self.factor.clone())?;
        Ok(PriorState::from([("mean".to_owned(), mean), ("factor".to_owned(), factor)]))
    }
}
