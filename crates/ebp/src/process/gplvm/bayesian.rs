//! The variational Bayesian model (Titsias and Lawrence, 2010): q(t) in the place of an estimate, and
//! inducing points z that make the expectations tractable.
//!
//! ```text
//! log p(x) ≥ F = (nd/2) log(β/2π) + (d/2) log |K_zz| − (d/2) log |A| − (β/2) tr(XᵀX)
//!              + (β²/2) tr(Cᵀ A⁻¹ C) − (βd/2) (n v − tr(K_zz⁻¹ Ψ₂)) − KL(q(t) ‖ N(0, I))
//! A = β Ψ₂ + K_zz,   C = Ψ₁ᵀ X,   β = 1/σ²
//! ```
//!
//! with Ψ of `psi.rs`. A dimension that the data do not need gets a long ℓ and q(t) = p(t) there, and
//! costs nothing: the model chooses its dimension. The kernel is the squared exponential alone.

use super::conditional::{Conditional, mirrored_inverse};
use super::psi::{Locations, Slopes, Statistics};
use super::{LatentMap, Objective, check_table};
use crate::error::check_length;
use crate::kernel::{Kernel, Pairs, RbfArd};
use crate::linalg::{Cholesky, Matrix};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// Added to the diagonal of K_zz, as in GPy, so that equal parameters have equal bounds.
const JITTER: f64 = 1e-8;
/// S of q(t) at the start.
const START_VARIANCE: f64 = 0.1;

/// Rows at latent locations, by q(t).
#[derive(Clone, Debug)]
pub struct BayesianGplvm {
    /// (μ, x) of every row.
    rows: IndexedSet,
    /// log S `[n, q]`.
    log_variance: Vec<f64>,
    /// z `[m, q]`.
    inducing: Vec<f64>,
    kernel: RbfArd,
    noise_variance: f64,
}

/// What the bound is made of.
struct Bound {
    value: f64,
    jitter: f64,
    statistics: Statistics,
    /// K_zz⁻¹ and A⁻¹.
    inverses: [Matrix; 2],
    /// E = A⁻¹ C `[m, d]`.
    solved: Matrix,
    /// tr(Cᵀ A⁻¹ C) and tr(K_zz⁻¹ Ψ₂).
    traces: [f64; 2],
}

impl BayesianGplvm {
    /// Rows `values` `[n, d]` whose q(t) begins around `latents` `[n, q]`, with `num_inducing` of these
    /// as inducing points and v = 1, ℓ = 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the table is too small or not finite, there are more inducing points
    /// than rows or none, or the noise is not positive.
    pub fn new(
        latents: Vec<f64>,
        latent_dim: usize,
        values: Vec<f64>,
        value_dim: usize,
        num_inducing: usize,
        noise_variance: f64,
    ) -> Result<Self> {
        let n = check_table(&values, value_dim, latent_dim)?;
        if num_inducing == 0 || num_inducing > n {
            let expected = format!("1 to {n}, the number of rows");
            return Err(Error::invalid("num_inducing", expected, num_inducing));
        }
        let rows = IndexedSet::new(latent_dim, value_dim, latents, values)?;
        let order = Stream::new(0, "inducing points").permutation(n);
        let chosen = order[..num_inducing].iter();
        let inducing = chosen.flat_map(|&row| rows.location(row).iter().copied()).collect();
        let kernel = RbfArd::new(1.0, &vec![1.0; latent_dim])?;
        let log_variance = vec![START_VARIANCE.ln(); n * latent_dim];
        Self { rows, log_variance, inducing, kernel, noise_variance }.checked()
    }

    fn checked(self) -> Result<Self> {
        let noise = self.noise_variance;
        if noise > 0.0 && noise.is_finite() {
            return Ok(self);
        }
        Err(Error::invalid("noise_variance", "positive and finite", noise))
    }

    /// F, the lower bound of log p(x).
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] if a covariance cannot be factorised.
    pub fn bound(&self) -> Result<f64> {
        Ok(self.evaluate()?.value)
    }

    /// S of q(t), `[n, q]`.
    pub fn latent_variances(&self) -> Vec<f64> {
        self.log_variance.iter().map(|log| log.exp()).collect()
    }

    fn locations<'a>(&'a self, variance: &'a [f64]) -> Locations<'a> {
        Locations {
            signal_variance: self.kernel.signal_variance(),
            length_scales: self.kernel.length_scales(),
            mean: self.rows.locations(),
            variance,
            inducing: &self.inducing,
        }
    }

    fn fill_inducing(&self, matrix: &mut Matrix) {
        let dim = self.rows.location_dim();
        for (j, z) in self.inducing.chunks_exact(dim).enumerate() {
            let column = matrix.column_mut(j);
            self.kernel.fill_row(z, &self.inducing, column);
            column[j] += JITTER;
        }
    }

    fn evaluate(&self) -> Result<Bound> {
        let (n, d) = (self.rows.len() as f64, self.rows.value_dim() as f64);
        let variance = self.latent_variances();
        let statistics = self.locations(&variance).statistics();
        let m = statistics.second.num_rows();
        let beta = 1.0 / self.noise_variance;
        let of_inducing = Cholesky::new(Matrix::zeros(m, m), |k| self.fill_inducing(k))?;
        let of_sum = Cholesky::new(Matrix::zeros(m, m), |a| {
            self.fill_inducing(a);
            let second = statistics.second.entries();
            a.entries_mut().iter_mut().zip(second).for_each(|(a, psi)| *a += beta * psi);
        })?;
        let values = Matrix::from_rows(self.rows.value_dim(), self.rows.values());
        let mut solved = statistics.first.times(&values);
        of_sum.solve_lower(&mut solved);
        let form: f64 = solved.entries().iter().map(|x| x * x).sum();
        of_sum.solve_upper(&mut solved);
        let log_determinants = of_inducing.log_determinant() - of_sum.log_determinant();
        let jitter = of_inducing.jitter().max(of_sum.jitter());
        let inverses = [mirrored_inverse(of_inducing), mirrored_inverse(of_sum)];
        let trace = dot(inverses[0].entries(), statistics.second.entries());
        let squares = dot(values.entries(), values.entries());
        let kl: f64 = self
            .rows
            .locations()
            .iter()
            .zip(&variance)
            .map(|(m, s)| 0.5 * (m * m + s - s.ln() - 1.0))
            .sum();
        let value = 0.5 * n * d * (beta / std::f64::consts::TAU).ln() + 0.5 * d * log_determinants
            - 0.5 * beta * squares
            + 0.5 * beta * beta * form
            - 0.5 * beta * d * (n * self.kernel.signal_variance() - trace)
            - kl;
        Ok(Bound { value, jitter, statistics, inverses, solved, traces: [form, trace] })
    }
}

impl LatentMap for BayesianGplvm {
    fn parameters(&self) -> Vec<f64> {
        let noise = [self.noise_variance.ln()];
        let kernel = self.kernel.log_parameters();
        [self.rows.locations(), &self.log_variance, &self.inducing, &kernel, &noise].concat()
    }

    fn with_parameters(&self, parameters: &[f64]) -> Result<Self> {
        let (num_latents, num_inducing) = (self.log_variance.len(), self.inducing.len());
        let dim = self.rows.location_dim();
        let count = 2 * num_latents + num_inducing + dim + 2;
        check_length("parameters", parameters.len(), count, || "μ, log S, z, logarithms".into())?;
        let (mean, rest) = parameters.split_at(num_latents);
        let (log_variance, rest) = rest.split_at(num_latents);
        let (inducing, rest) = rest.split_at(num_inducing);
        let scales: Vec<f64> = rest[1..=dim].iter().map(|log| log.exp()).collect();
        let values = self.rows.values().to_vec();
        Self {
            rows: IndexedSet::new(dim, self.rows.value_dim(), mean.to_vec(), values)?,
            log_variance: log_variance.to_vec(),
            inducing: inducing.to_vec(),
            kernel: RbfArd::new(rest[0].exp(), &scales)?,
            noise_variance: rest[1 + dim].exp(),
        }
        .checked()
    }

    fn objective(&self) -> Result<Objective> {
        let Bound { value, jitter, statistics, inverses, solved, traces } = self.evaluate()?;
        let [of_inducing, of_sum] = &inverses;
        let (n, d, dim) =
            (self.rows.len() as f64, self.rows.value_dim() as f64, self.rows.location_dim());
        let (beta, v) = (1.0 / self.noise_variance, self.kernel.signal_variance());
        let values = Matrix::from_rows(self.rows.value_dim(), self.rows.values());
        // ∂F/∂A = −(d/2) A⁻¹ − (β²/2) E Eᵀ
        let mut by_sum = solved.products_of_rows().mirrored();
        for (entry, inverse) in by_sum.entries_mut().iter_mut().zip(of_sum.entries()) {
            *entry = -0.5 * (d * inverse + beta * beta * *entry);
        }
        // ∂F/∂Ψ₁ᵀ = β² E Xᵀ,  ∂F/∂Ψ₂ = β ∂F/∂A + (βd/2) K_zz⁻¹
        let mut by_first = solved.times(&values.transposed());
        by_first.entries_mut().iter_mut().for_each(|x| *x *= beta * beta);
        let mut by_second = by_sum.clone();
        for (entry, inverse) in by_second.entries_mut().iter_mut().zip(of_inducing.entries()) {
            *entry = beta * (*entry + 0.5 * d * inverse);
        }
        // ∂F/∂K_zz = (d/2) K_zz⁻¹ + ∂F/∂A − (βd/2) K_zz⁻¹ Ψ₂ K_zz⁻¹
        let mut by_inducing = of_inducing.times(&statistics.second).times(of_inducing);
        let terms = of_inducing.entries().iter().zip(by_sum.entries());
        for (entry, (inverse, sum)) in by_inducing.entries_mut().iter_mut().zip(terms) {
            *entry = 0.5 * d * inverse + sum - 0.5 * beta * d * *entry;
        }
        let variance = self.latent_variances();
        let mut slopes: Slopes = self.locations(&variance).slopes(&by_first, &by_second);
        let mut kernel = vec![0.0; 1 + dim];
        for (j, z) in self.inducing.chunks_exact(dim).enumerate() {
            let weights = by_inducing.column(j);
            self.kernel.add_gradient(Pairs::new(z, &self.inducing, weights), &mut kernel);
            let twice: Vec<f64> = weights.iter().map(|w| 2.0 * w).collect();
            let own = &mut slopes.inducing[j * dim..][..dim];
            self.kernel.add_location_gradient(Pairs::new(z, &self.inducing, &twice), own);
        }
        kernel[0] += slopes.log_signal_variance - 0.5 * beta * d * n * v;
        kernel[1..].iter_mut().zip(&slopes.log_length_scales).for_each(|(sum, s)| *sum += s);
        // −KL: by μ −μ, by S ½ (1/S − 1)
        let mut gradient: Vec<f64> =
            slopes.mean.iter().zip(self.rows.locations()).map(|(slope, m)| slope - m).collect();
        gradient.extend(
            slopes.variance.iter().zip(&variance).map(|(slope, s)| s * slope + 0.5 * (1.0 - s)),
        );
        gradient.extend(slopes.inducing);
        gradient.extend(kernel);
        let [form, trace] = traces;
        let by_beta = 0.5 * n * d / beta - 0.5 * dot(values.entries(), values.entries())
            + beta * form
            - 0.5 * d * (n * v - trace)
            + dot(by_sum.entries(), statistics.second.entries());
        // ∂/∂log σ² = −β ∂/∂β
        gradient.push(-beta * by_beta);
        Ok(Objective { value, gradient, jitter })
    }

    fn rows(&self) -> &IndexedSet {
        &self.rows
    }

    fn length_scales(&self) -> Vec<f64> {
        self.kernel.length_scales().to_vec()
    }

    fn conditional(&self) -> Result<Conditional> {
        let Bound { inverses: [of_inducing, of_sum], mut solved, .. } = self.evaluate()?;
        let beta = 1.0 / self.noise_variance;
        solved.entries_mut().iter_mut().for_each(|x| *x *= beta);
        let mut reduction = of_inducing;
        reduction.entries_mut().iter_mut().zip(of_sum.entries()).for_each(|(k, a)| *k -= a);
        Ok(Conditional {
            kernel: std::sync::Arc::new(self.kernel.clone()),
            points: self.inducing.clone(),
            weights: solved,
            reduction,
            noise_variance: self.noise_variance,
            has_prior: true,
            rows: self.rows.clone(),
        })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
