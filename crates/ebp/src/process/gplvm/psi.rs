//! Expectations of the squared exponential under Gaussian locations, in closed form (Titsias and
//! Lawrence, 2010), and their derivatives.
//!
//! ```text
//! Ψ₁[i, a]    = E k(tᵢ, z_a)             = v ∏ (1 + S/ℓ²)^−½ exp(−½ (μ − z_a)²/(ℓ² + S))
//! Ψ₂[a, b]    = Σᵢ E k(tᵢ, z_a) k(tᵢ, z_b)
//!             = v² Σᵢ ∏ (1 + 2S/ℓ²)^−½ exp(−(z_a − z_b)²/(4ℓ²) − (μ − ½(z_a + z_b))²/(ℓ² + 2S))
//! ```
//!
//! with products over the latent dimensions. n m² q operations; entries are computed again on the way
//! back rather than kept.

use rayon::prelude::*;

use crate::linalg::Matrix;

/// Rows that one task takes; fixed, so that sums do not depend on the number of threads.
const ROWS: usize = 16;

/// What the statistics are of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locations<'a> {
    /// v.
    pub(super) signal_variance: f64,
    /// ℓ `[q]`.
    pub(super) length_scales: &'a [f64],
    /// μ `[n, q]`.
    pub(super) mean: &'a [f64],
    /// S `[n, q]`.
    pub(super) variance: &'a [f64],
    /// z `[m, q]`.
    pub(super) inducing: &'a [f64],
}

/// The statistics.
#[derive(Clone, Debug)]
pub(super) struct Statistics {
    /// Ψ₁ᵀ `[m, n]`.
    pub(super) first: Matrix,
    /// Ψ₂ `[m, m]`, both triangles.
    pub(super) second: Matrix,
}

/// Derivatives of a function of the statistics.
#[derive(Clone, Debug, Default)]
pub(super) struct Slopes {
    /// By log v, through Ψ₁ and Ψ₂.
    pub(super) log_signal_variance: f64,
    /// By log ℓ.
    pub(super) log_length_scales: Vec<f64>,
    /// By μ.
    pub(super) mean: Vec<f64>,
    /// By S.
    pub(super) variance: Vec<f64>,
    /// By z.
    pub(super) inducing: Vec<f64>,
}

impl<'a> Locations<'a> {
    fn dim(&self) -> usize {
        self.length_scales.len()
    }

    fn num_inducing(&self) -> usize {
        self.inducing.len() / self.dim()
    }

    fn point(&self, a: usize) -> &'a [f64] {
        &self.inducing[a * self.dim()..][..self.dim()]
    }

    /// v ∏ (1 + S/ℓ²)^−½ and v² ∏ (1 + 2S/ℓ²)^−½ of a row.
    fn scales(&self, variance: &[f64]) -> [f64; 2] {
        let root = |factor: f64| {
            let terms = variance.iter().zip(self.length_scales);
            terms.map(|(s, l)| 1.0 + factor * s / (l * l)).product::<f64>().sqrt()
        };
        let v = self.signal_variance;
        [v / root(1.0), v * v / root(2.0)]
    }

    /// The exponent of Ψ₁ at a row and z_a.
    fn first_exponent(&self, (mean, variance): (&[f64], &[f64]), a: usize) -> f64 {
        let terms = mean.iter().zip(variance).zip(self.point(a)).zip(self.length_scales);
        terms.map(|(((m, s), z), l)| -0.5 * (m - z).powi(2) / (l * l + s)).sum()
    }

    /// The exponent of Ψ₂ at a row, z_a and z_b.
    fn second_exponent(&self, (mean, variance): (&[f64], &[f64]), [a, b]: [usize; 2]) -> f64 {
        let points = self.point(a).iter().zip(self.point(b));
        let terms = mean.iter().zip(variance).zip(points).zip(self.length_scales);
        terms
            .map(|(((m, s), (za, zb)), l)| {
                let square = l * l;
                -(za - zb).powi(2) / (4.0 * square)
                    - (m - 0.5 * (za + zb)).powi(2) / (square + 2.0 * s)
            })
            .sum()
    }

    /// Ψ₁ and Ψ₂.
    pub(super) fn statistics(&self) -> Statistics {
        let (dim, m) = (self.dim(), self.num_inducing());
        let n = self.mean.len() / dim;
        let mut first = Matrix::zeros(m, n);
        let blocks = first.entries_mut().par_chunks_mut(ROWS * m);
        let rows = self.mean.par_chunks(ROWS * dim).zip(self.variance.par_chunks(ROWS * dim));
        let parts: Vec<Matrix> = blocks
            .zip(rows)
            .map(|(columns, (means, variances))| {
                let mut second = Matrix::zeros(m, m);
                let rows = means.chunks_exact(dim).zip(variances.chunks_exact(dim));
                for (column, row) in columns.chunks_exact_mut(m).zip(rows) {
                    let [of_first, of_second] = self.scales(row.1);
                    for (b, value) in column.iter_mut().enumerate() {
                        *value = of_first * self.first_exponent(row, b).exp();
                        for (a, sum) in second.column_mut(b).iter_mut().enumerate().skip(b) {
                            *sum += of_second * self.second_exponent(row, [a, b]).exp();
                        }
                    }
                }
                second
            })
            .collect();
        let mut second = Matrix::zeros(m, m);
        for part in parts {
            second.entries_mut().iter_mut().zip(part.entries()).for_each(|(sum, x)| *sum += x);
        }
        Statistics { first, second: second.mirrored() }
    }

    /// Derivatives of F by everything, from ∂F/∂Ψ₁ᵀ `[m, n]` and ∂F/∂Ψ₂ `[m, m]`, symmetric.
    pub(super) fn slopes(&self, by_first: &Matrix, by_second: &Matrix) -> Slopes {
        let (dim, m) = (self.dim(), self.num_inducing());
        let rows = self.mean.par_chunks(ROWS * dim).zip(self.variance.par_chunks(ROWS * dim));
        let parts: Vec<Slopes> = by_first
            .entries()
            .par_chunks(ROWS * m)
            .zip(rows)
            .map(|(columns, (means, variances))| {
                let mut part = Slopes {
                    log_signal_variance: 0.0,
                    log_length_scales: vec![0.0; dim],
                    mean: vec![0.0; means.len()],
                    variance: vec![0.0; means.len()],
                    inducing: vec![0.0; m * dim],
                };
                let rows = means.chunks_exact(dim).zip(variances.chunks_exact(dim));
                for (i, (column, row)) in columns.chunks_exact(m).zip(rows).enumerate() {
                    self.add_row(&mut part, i * dim, (column, by_second), row);
                }
                part
            })
            .collect();
        let mut total = Slopes {
            log_length_scales: vec![0.0; dim],
            inducing: vec![0.0; m * dim],
            ..Slopes::default()
        };
        for part in parts {
            total.log_signal_variance += part.log_signal_variance;
            add(&mut total.log_length_scales, &part.log_length_scales);
            add(&mut total.inducing, &part.inducing);
            total.mean.extend(part.mean);
            total.variance.extend(part.variance);
        }
        total
    }

    /// What one row adds; its own entries begin at `at`.
    fn add_row(
        &self,
        slopes: &mut Slopes,
        at: usize,
        (by_first, by_second): (&[f64], &Matrix),
        row: (&[f64], &[f64]),
    ) {
        let dim = self.dim();
        let [of_first, of_second] = self.scales(row.1);
        for (a, slope) in by_first.iter().enumerate() {
            let weight = slope * of_first * self.first_exponent(row, a).exp();
            slopes.log_signal_variance += weight;
            for q in 0..dim {
                let (s, square) = (row.1[q], self.length_scales[q].powi(2));
                let inverse = 1.0 / (square + s);
                let far = row.0[q] - self.inducing[a * dim + q];
                let pull = weight * inverse * far;
                slopes.mean[at + q] -= pull;
                slopes.inducing[a * dim + q] += pull;
                // ∂ log Ψ₁/∂S = ½ (r² a² − a),  ∂/∂log ℓ = S a + ℓ² r² a²,  a = 1/(ℓ² + S)
                let bent = (far * inverse).powi(2);
                slopes.variance[at + q] += 0.5 * weight * (bent - inverse);
                slopes.log_length_scales[q] += weight * (s * inverse + square * bent);
            }
            for b in 0..=a {
                // Entries below the diagonal stand for two.
                let twice = if a == b { 1.0 } else { 2.0 };
                let value = of_second * self.second_exponent(row, [a, b]).exp();
                let weight = twice * by_second.at(a, b) * value;
                slopes.log_signal_variance += 2.0 * weight;
                for q in 0..dim {
                    let (s, square) = (row.1[q], self.length_scales[q].powi(2));
                    let inverse = 1.0 / (square + 2.0 * s);
                    let (za, zb) = (self.inducing[a * dim + q], self.inducing[b * dim + q]);
                    let (apart, far) = (za - zb, row.0[q] - 0.5 * (za + zb));
                    let pull = weight * inverse * far;
                    let push = weight * apart / (2.0 * square);
                    slopes.mean[at + q] -= 2.0 * pull;
                    slopes.inducing[a * dim + q] += pull - push;
                    slopes.inducing[b * dim + q] += pull + push;
                    // ∂ log Ψ₂/∂S = 2 r² b² − b,  ∂/∂log ℓ = 2 S b + d²/(2ℓ²) + 2ℓ² r² b²
                    let bent = (far * inverse).powi(2);
                    slopes.variance[at + q] += weight * (2.0 * bent - inverse);
                    slopes.log_length_scales[q] += weight
                        * (2.0 * s * inverse
                            + apart * apart / (2.0 * square)
                            + 2.0 * square * bent);
                }
            }
        }
    }
}

fn add(sum: &mut [f64], part: &[f64]) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the integrals themselves, by the trapezoidal rule, which is exact for Gaussians to
    /// exp(−2π²σ²/h²): h = 0.02 against σ ≥ 0.3.
    #[test]
    fn statistics_are_expectations() {
        let (v, l) = (1.7, 0.8);
        let (mean, variance) = ([0.3, -1.1], [0.09, 0.4]);
        let inducing = [-0.5, 0.2, 1.4];
        let locations = Locations {
            signal_variance: v,
            length_scales: &[l],
            mean: &mean,
            variance: &variance,
            inducing: &inducing,
        };
        let found = locations.statistics();
        let expect = |i: usize, f: &dyn Fn(f64) -> f64| -> f64 {
            let (m, s): (f64, f64) = (mean[i], variance[i]);
            let density =
                |t: f64| (-0.5 * (t - m).powi(2) / s).exp() / (std::f64::consts::TAU * s).sqrt();
            (-1000..=1000).map(|k| 0.02 * f64::from(k)).map(|t| 0.02 * density(t) * f(t)).sum()
        };
        let k = |t: f64, z: f64| v * (-0.5 * ((t - z) / l).powi(2)).exp();
        for (a, &za) in inducing.iter().enumerate() {
            for i in 0..2 {
                let expected = expect(i, &|t| k(t, za));
                assert!((found.first.at(a, i) - expected).abs() < 1e-12);
            }
            for (b, &zb) in inducing.iter().enumerate() {
                let expected: f64 = (0..2).map(|i| expect(i, &|t| k(t, za) * k(t, zb))).sum();
                assert!((found.second.at(a, b) - expected).abs() < 1e-12);
            }
        }
    }
}
