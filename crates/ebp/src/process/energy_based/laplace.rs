//! A Gaussian around the mode of p(θ | set), which θ is drawn from to integrate it out.
//!
//! ```text
//! ℓ(θ) = Σᵢ u(xᵢ; θ) − n log Z(θ) + log p(θ)
//! ∇ℓ   = Σᵢ ∂u(xᵢ) − n E ∂u + ∂ log p,     Λ = n Cov ∂u + (−∂² log p),     E, Cov over p(· | θ)
//! ```
//!
//! Given θ points are an exponential family to first order, so Cov ∂u is what one point tells about θ
//! (Fisher's information), and steps Λ⁻¹∇ℓ climb from the encoder's μ to the mode (`climb.rs`). q(θ | set)
//! itself is a poor proposal: thousands of points say more about θ than an encoder passes on, so that none of its
//! draws may lie where the integrand does.

use super::EnergyBasedProcess;
use super::climb::Climbed;
use super::grid::{Weighted, effective, resample};
use crate::latent::Prior;
use crate::linalg::{Cholesky, Matrix};
use crate::point::{Cotangent, PointBatch, PointMlp, Wanted};
use crate::process::LogDensity;
use crate::process::pareto::{HOLDS, pareto_shape};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;
/// Places that compare Z of draws with Z at the mode.
const COMPARING: usize = 2048;
/// Steps of differences of log p, in standard deviations of q.
const DIFFERENCE: f32 = 0.1;

/// One set and what its θ is judged by.
pub(super) struct Question<'a> {
    pub(super) mlp: &'a PointMlp,
    /// Points inside of the domain, `[n, d]`.
    pub(super) set: &'a [f32],
    /// log σ of q(θ | set).
    pub(super) log_std_dev: &'a [f32],
    pub(super) law: &'a dyn Prior,
    /// At most so many places for a normaliser.
    pub(super) num_proposals: usize,
}

/// ℓ near its mode.
pub(super) struct Laplace {
    /// Where everything is expanded, as f32 because networks are.
    pub(super) anchor: Vec<f32>,
    /// log Z there.
    pub(super) log_partition: LogDensity,
    /// Places that follow exp u(·; anchor), `[m, d]`, with u and ∂u − E ∂u of each.
    pub(super) places: Vec<f32>,
    pub(super) potentials: Vec<f32>,
    pub(super) slopes: Vec<f64>,
    /// E ∂u by all places.
    pub(super) mean_slope: Vec<f64>,
    /// Of N(centre, Λ⁻¹).
    centre: Vec<f64>,
    precision: Cholesky,
    /// The log-likelihood by the Gaussian alone.
    pub(super) log_likelihood: f64,
    /// What errors of E ∂u by finitely many places add to ∫ exp ℓ on average, in nats.
    pub(super) excess: f64,
    /// tr(Λ⁻¹ n F): how many numbers of θ the points decide.
    decided: f64,
    /// Whether the climb came near the top, by places drawn there, and their weights have a mean that can
    /// be believed; if not, nothing here can be.
    pub(super) is_near: bool,
    /// Values of the network that were looked at, a gradient counted as two more.
    pub(super) num_evaluations: usize,
}

impl Question<'_> {
    pub(super) fn widths(&self) -> Vec<f32> {
        self.log_std_dev.iter().map(|s| DIFFERENCE * s.exp()).collect()
    }
}

impl EnergyBasedProcess {
    /// Climbs from μ; `around` are places for Z(μ) with their weights.
    pub(super) fn laplace(
        &self,
        question: &Question<'_>,
        mean: &[f32],
        around: Weighted,
        stream: Stream,
    ) -> Result<Laplace> {
        let climbed = self.climb(question, mean, around, stream.child(1))?;
        self.expanded(question, climbed, stream.child(2))
    }

    /// The Gaussian at the last θ, by all places.
    fn expanded(
        &self,
        question: &Question<'_>,
        climbed: Climbed,
        stream: Stream,
    ) -> Result<Laplace> {
        let Climbed { theta: anchor, around, has_settled, num_evaluations } = climbed;
        let (k, dim) = (anchor.len(), self.space.value_dim);
        let n = (question.set.len() / dim) as f64;
        let looked = around.log_weights.len() + COMPARING + question.set.len() / dim;
        let log_partition = LogDensity::of_mean(&around.log_weights);
        let shares: Vec<f64> = {
            let total = crate::linalg::log_sum_exp(&around.log_weights);
            around.log_weights.iter().map(|w| (w - total).exp()).collect()
        };
        let (_, mean_slope) = self.sum_of_slopes(question.mlp, &around.values, &shares, &anchor)?;
        let places = resample(&around, dim, COMPARING, stream);
        let (potentials, mut slopes) = self.slopes(question.mlp, &places, &anchor)?;
        for row in slopes.chunks_exact_mut(k) {
            row.iter_mut().zip(&mean_slope).for_each(|(slope, mean)| *slope -= mean);
        }
        let (prior_slope, prior_precision) = question.law.slope(&anchor, &question.widths())?;
        let information = information(&slopes, &vec![1.0 / COMPARING as f64; COMPARING], k);
        let precision = precision(&information, n, &prior_precision)?;
        let ones = vec![1.0; question.set.len() / dim];
        let (of_points, point_slope) =
            self.sum_of_slopes(question.mlp, question.set, &ones, &anchor)?;
        let gradient: Vec<f64> =
            (0..k).map(|j| point_slope[j] - n * mean_slope[j] + prior_slope[j]).collect();
        let step = solve(&precision, &gradient);
        let gain: f64 = step.iter().zip(&gradient).map(|(s, g)| 0.5 * s * g).sum();
        // Farther than p(θ | set) is wide the square says nothing: the top was not reached.
        let is_close = gain <= 0.5 * k as f64;
        // A few heavy places may be the edge of mass that no place is in.
        let is_even = pareto_shape(&around.log_weights).is_none_or(|k| k < HOLDS);
        let (step, gain) = if is_close { (step, gain) } else { (vec![0.0; k], 0.0) };
        let base: f64 = question.set.chunks_exact(dim).map(|x| f64::from(self.base(x))).sum();
        let log_prior = question.law.log_density(&anchor)?[0];
        let log_likelihood =
            of_points + base - n * log_partition.value + log_prior + gain + k as f64 * LOG_ROOT_TAU
                - 0.5 * precision.log_determinant();
        // Errors ε of E ∂u have the covariance F/m of m places that count. ∫ exp ℓ has −n θᵀε too
        // much in its exponent, and so ½ n² tr(Λ⁻¹ F)/m in its logarithm.
        let counted = effective(&around.log_weights);
        let decided = n * trace_of_solved(&precision, &information);
        let excess = 0.5 * n * decided / counted;
        let centre = anchor.iter().zip(&step).map(|(a, s)| f64::from(*a) + s).collect();
        Ok(Laplace {
            anchor,
            log_partition,
            places,
            potentials,
            slopes,
            mean_slope,
            centre,
            precision,
            log_likelihood,
            excess,
            decided,
            is_near: is_close && has_settled && is_even,
            num_evaluations: num_evaluations + 3 * looked,
        })
    }

    /// u and ∂u/∂θ of every point, `[n]` and `[n, k]`.
    pub(super) fn slopes(
        &self,
        mlp: &PointMlp,
        points: &[f32],
        theta: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let dim = self.space.value_dim;
        let count = points.len() / dim;
        // Every point is a set of its own, so that gradients are not summed.
        let offsets = SetOffsets::uniform(count, 1)?;
        let context = theta.repeat(count);
        let batch = PointBatch { elements: points, offsets: &offsets, context: &context };
        let wanted = Wanted { context: true, ..Wanted::NOTHING };
        let found = self.device.backend().backward(
            mlp,
            &batch,
            Cotangent::PerSet(&vec![1.0; count]),
            wanted,
        )?;
        let mut u = found.values;
        u.iter_mut().zip(points.chunks_exact(dim)).for_each(|(u, x)| *u += self.base(x));
        let slopes = found.gradients.context.unwrap_or_default();
        Ok((u, slopes.into_iter().map(f64::from).collect()))
    }

    /// Σ s f and Σ s ∂f/∂θ over points with shares s.
    pub(super) fn sum_of_slopes(
        &self,
        mlp: &PointMlp,
        points: &[f32],
        shares: &[f64],
        theta: &[f32],
    ) -> Result<(f64, Vec<f64>)> {
        let offsets = SetOffsets::from_sizes([shares.len()])?;
        let batch = PointBatch { elements: points, offsets: &offsets, context: theta };
        let wanted = Wanted { context: true, ..Wanted::NOTHING };
        #[expect(clippy::cast_possible_truncation, reason = "backends are single precision")]
        let narrow: Vec<f32> = shares.iter().map(|share| *share as f32).collect();
        let found =
            self.device.backend().backward(mlp, &batch, Cotangent::PerElement(&narrow), wanted)?;
        let sum = found.values.iter().zip(shares).map(|(f, share)| f64::from(*f) * share).sum();
        let slope = found.gradients.context.unwrap_or_default();
        Ok((sum, slope.into_iter().map(f64::from).collect()))
    }
}

impl Laplace {
    /// The standard deviation of what `excess` is the mean of, a square of so many normal numbers.
    pub(super) fn excess_error(&self) -> f64 {
        self.excess * (2.0 / self.decided.max(1.0)).sqrt()
    }

    /// θ = c + L⁻ᵀ ξ of every row of noise `[count, k]`, with log q of each.
    pub(super) fn place(&self, noise: &[f64]) -> (Vec<f32>, Vec<f64>) {
        let k = self.centre.len();
        let half = 0.5 * self.precision.log_determinant() - k as f64 * LOG_ROOT_TAU;
        let logs = noise
            .chunks_exact(k)
            .map(|xi| half - 0.5 * xi.iter().map(|xi| xi * xi).sum::<f64>())
            .collect();
        let mut columns = Matrix::zeros(k, noise.len() / k);
        columns.entries_mut().copy_from_slice(noise);
        self.precision.solve_upper(&mut columns);
        let entries = columns.entries().chunks_exact(k);
        #[expect(clippy::cast_possible_truncation, reason = "codes are single precision")]
        let theta = entries
            .flat_map(|row| row.iter().zip(&self.centre).map(|(step, c)| (c + step) as f32))
            .collect();
        (theta, logs)
    }

    /// log Z(θ) − log Z(anchor) by `potentials` of [`places`](Self::places) at θ, with its error. The
    /// part that is linear in θ − anchor is known from all places, and taken out:
    ///
    /// ```text
    /// Z(θ)/Z(a) = e^m E[ exp(Δu − m) − c ],   m = (θ − a)ᵀ E ∂u,   c = (θ − a)ᵀ(∂u − E ∂u),   E c = 0
    /// ```
    pub(super) fn ratio(&self, theta: &[f32], potentials: &[f32]) -> LogDensity {
        let k = theta.len();
        let step: Vec<f64> =
            theta.iter().zip(&self.anchor).map(|(t, a)| f64::from(*t) - f64::from(*a)).collect();
        let dot = |row: &[f64]| -> f64 { row.iter().zip(&step).map(|(a, b)| a * b).sum() };
        let m = dot(&self.mean_slope);
        let terms: Vec<f64> = potentials
            .iter()
            .zip(&self.potentials)
            .zip(self.slopes.chunks_exact(k))
            .map(|((u, before), slope)| (f64::from(*u) - f64::from(*before) - m).exp() - dot(slope))
            .collect();
        let count = terms.len() as f64;
        let mean = terms.iter().sum::<f64>() / count;
        if mean <= 0.0 {
            // Far from the anchor the linear part says nothing: without it.
            let plain = potentials.iter().zip(&self.potentials);
            let plain: Vec<f64> = plain.map(|(u, b)| f64::from(*u) - f64::from(*b)).collect();
            return LogDensity::of_mean(&plain);
        }
        let squares: f64 = terms.iter().map(|term| (term - mean).powi(2)).sum();
        let std_error = (squares / (count - 1.0) / count).sqrt() / mean;
        LogDensity { value: m + mean.ln(), std_error }
    }
}

/// Σ s r rᵀ over rows r `[m, k]` with shares s, the lower triangle.
pub(super) fn information(rows: &[f64], shares: &[f64], k: usize) -> Matrix {
    let mut columns = Matrix::zeros(k, shares.len());
    let places = columns.entries_mut().chunks_exact_mut(k).zip(rows.chunks_exact(k));
    for ((column, row), share) in places.zip(shares) {
        let root = share.sqrt();
        column.iter_mut().zip(row).for_each(|(entry, slope)| *entry = root * slope);
    }
    columns.products_of_rows()
}

/// Λ = n F + that of the prior.
pub(super) fn precision(information: &Matrix, n: f64, of_prior: &Matrix) -> Result<Cholesky> {
    let k = information.num_rows();
    Cholesky::new(Matrix::zeros(k, k), |sum| {
        let parts = information.entries().iter().zip(of_prior.entries());
        sum.entries_mut().iter_mut().zip(parts).for_each(|(sum, (f, p))| *sum = n * f + p);
    })
}

/// Λ⁻¹ g.
pub(super) fn solve(precision: &Cholesky, gradient: &[f64]) -> Vec<f64> {
    let mut column = Matrix::zeros(gradient.len(), 1);
    column.entries_mut().copy_from_slice(gradient);
    precision.solve_lower(&mut column);
    precision.solve_upper(&mut column);
    column.entries().to_vec()
}

/// tr(Λ⁻¹ F) of a lower triangle F.
fn trace_of_solved(precision: &Cholesky, lower: &Matrix) -> f64 {
    let k = lower.num_rows();
    let mut whole = Matrix::zeros(k, k);
    for j in 0..k {
        for i in 0..k {
            whole.column_mut(j)[i] = lower.at(i.max(j), i.min(j));
        }
    }
    precision.solve_lower(&mut whole);
    precision.solve_upper(&mut whole);
    (0..k).map(|j| whole.at(j, j)).sum()
}
