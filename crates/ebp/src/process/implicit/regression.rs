//! Bayesian linear regression on sampled functions: the Gaussian that stands for an implicit
//! process.
//!
//! With functions f₁, …, f_S evaluated at n rows, m their mean and W = (f_s − m)/√S `[n, S]`:
//!
//! ```text
//! x = m + W a + σ ε,   a ~ N(0, I_S),   ε ~ N(0, I_n),    so x ~ N(m, W Wᵀ + σ² I)
//! B = I + WᵀW/σ²,   b = Wᵀ(x − m)/σ²,    a | x ~ N(B⁻¹ b, B⁻¹)
//! log p(x) = −½ [n log 2πσ² + log |B| + ‖x − m‖²/σ² − bᵀB⁻¹b]
//! ```
//!
//! All is S × S, whatever n.

const LOG_TWO_PI: f64 = 1.837_877_066_409_345_3;

/// Functions evaluated at some rows: their mean, and their scaled differences from it.
#[derive(Clone, Debug)]
pub(super) struct Features {
    /// m, `[n]`.
    pub(super) mean: Vec<f64>,
    /// W, row-major `[n, S]`.
    pub(super) weights: Vec<f64>,
    /// S.
    pub(super) num_functions: usize,
}

impl Features {
    /// From `functions` `[S][n]`.
    pub(super) fn new(functions: &[&[f64]]) -> Self {
        let count = functions.len();
        let num_rows = functions.first().map_or(0, |function| function.len());
        let root = (count as f64).sqrt();
        let column = |row: usize| functions.iter().map(move |function| function[row]);
        let mean: Vec<f64> =
            (0..num_rows).map(|row| column(row).sum::<f64>() / count as f64).collect();
        let weights = (0..num_rows)
            .flat_map(|row| column(row).map(|f| (f - mean[row]) / root).collect::<Vec<_>>());
        Self { weights: weights.collect(), mean, num_functions: count }
    }

    /// Row `index` of W.
    pub(super) fn row(&self, index: usize) -> &[f64] {
        &self.weights[index * self.num_functions..][..self.num_functions]
    }
}

/// The law of a given values x.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    /// B⁻¹ b, `[S]`.
    pub(super) mean: Vec<f64>,
    /// L of B = L Lᵀ.
    precision: Cholesky,
    /// log p(x).
    pub(super) log_marginal: f64,
}

impl Posterior {
    /// Conditions on `values` `[n]`; n may be 0, which leaves the prior.
    pub(super) fn new(features: &Features, values: &[f64], variance: f64) -> Self {
        let size = features.num_functions;
        let mut matrix = vec![0.0; size * size];
        let mut b = vec![0.0; size];
        let mut squares = 0.0;
        for (index, (x, m)) in values.iter().zip(&features.mean).enumerate() {
            let row = features.row(index);
            let residual = x - m;
            squares += residual * residual;
            for (i, w) in row.iter().enumerate() {
                b[i] += w * residual / variance;
                for (entry, v) in matrix[i * size..].iter_mut().zip(row) {
                    *entry += w * v / variance;
                }
            }
        }
        for i in 0..size {
            matrix[i * size + i] += 1.0;
        }
        let precision = Cholesky::new(matrix, size);
        let mean = precision.solve(&b);
        // log p(x) = −½ [n log 2πσ² + log |B| + ‖x − m‖²/σ² − bᵀB⁻¹b]
        let log_marginal = -0.5
            * (values.len() as f64 * (LOG_TWO_PI + variance.ln())
                + precision.log_determinant()
                + squares / variance
                - dot(&b, &mean));
        Self { mean, precision, log_marginal }
    }

    /// B⁻¹ w.
    pub(super) fn covariance_times(&self, w: &[f64]) -> Vec<f64> {
        self.precision.solve(w)
    }

    /// A draw B⁻¹ b + L⁻ᵀ ε.
    pub(super) fn draw(&self, noise: &[f32]) -> Vec<f64> {
        let mut step: Vec<f64> = noise.iter().map(|&e| f64::from(e)).collect();
        self.precision.solve_upper(&mut step);
        self.mean.iter().zip(&step).map(|(mean, step)| mean + step).collect()
    }
}

/// ∂ log p(x) / ∂ functions and ∂ log σ.
#[derive(Clone, Debug)]
pub(super) struct MarginalGradient {
    /// As the functions, `[S][n]`.
    pub(super) functions: Vec<Vec<f64>>,
    /// With respect to log σ.
    pub(super) log_std_dev: f64,
}

impl MarginalGradient {
    /// With K = W Wᵀ + σ² I and α = K⁻¹(x − m) = (x − m − W B⁻¹b)/σ²:
    ///
    /// ```text
    /// ∂/∂m = α,   ∂/∂W = α (B⁻¹b)ᵀ − W B⁻¹/σ²,   ∂/∂σ² = ½ (αᵀα − tr K⁻¹)
    /// ∂/∂f_s = (∂/∂W_s − mean_s' ∂/∂W_s')/√S + α/S
    /// ```
    pub(super) fn new(
        features: &Features,
        values: &[f64],
        variance: f64,
        posterior: &Posterior,
    ) -> Self {
        let size = features.num_functions;
        let (count, root) = (size as f64, (size as f64).sqrt());
        let mut functions = vec![vec![0.0; values.len()]; size];
        let mut alpha_squares = 0.0;
        // tr K⁻¹ = (n − tr(W B⁻¹ Wᵀ)/σ²)/σ²
        let mut trace = 0.0;
        for (index, (x, m)) in values.iter().zip(&features.mean).enumerate() {
            let row = features.row(index);
            let alpha = (x - m - dot(row, &posterior.mean)) / variance;
            alpha_squares += alpha * alpha;
            let solved = posterior.covariance_times(row);
            trace += (1.0 - dot(row, &solved) / variance) / variance;
            let slopes: Vec<f64> = posterior
                .mean
                .iter()
                .zip(&solved)
                .map(|(mean, solved)| alpha * mean - solved / variance)
                .collect();
            let mean_slope = slopes.iter().sum::<f64>() / count;
            for (function, slope) in functions.iter_mut().zip(&slopes) {
                function[index] = (slope - mean_slope) / root + alpha / count;
            }
        }
        // ∂σ²/∂ log σ = 2 σ²
        let log_std_dev = variance * (alpha_squares - trace);
        Self { functions, log_std_dev }
    }
}

/// L of a positive definite matrix, lower triangle, row-major.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    lower: Vec<f64>,
    size: usize,
}

impl Cholesky {
    /// Of a symmetric `matrix` whose eigenvalues are not below those of a positive multiple of I,
    /// so that no pivot can vanish.
    pub(super) fn new(mut matrix: Vec<f64>, size: usize) -> Self {
        for i in 0..size {
            for j in 0..=i {
                let (row_i, row_j) = (i * size, j * size);
                let sum = dot(&matrix[row_i..row_i + j], &matrix[row_j..row_j + j]);
                let rest = matrix[row_i + j] - sum;
                matrix[row_i + j] = if i == j { rest.sqrt() } else { rest / matrix[row_j + j] };
            }
        }
        Self { lower: matrix, size }
    }

    pub(super) fn log_determinant(&self) -> f64 {
        (0..self.size).map(|i| 2.0 * self.lower[i * self.size + i].ln()).sum()
    }

    /// (L Lᵀ)⁻¹ v.
    pub(super) fn solve(&self, v: &[f64]) -> Vec<f64> {
        let mut solution = v.to_vec();
        self.solve_lower(&mut solution);
        self.solve_upper(&mut solution);
        solution
    }

    /// v ← L⁻¹ v.
    pub(super) fn solve_lower(&self, v: &mut [f64]) {
        for i in 0..self.size {
            let row = &self.lower[i * self.size..][..=i];
            v[i] = (v[i] - dot(&row[..i], &v[..i])) / row[i];
        }
    }

    /// v ← L⁻ᵀ v.
    pub(super) fn solve_upper(&self, v: &mut [f64]) {
        for i in (0..self.size).rev() {
            v[i] /= self.lower[i * self.size + i];
            let (head, tail) = v.split_at_mut(i);
            for (entry, l) in head.iter_mut().zip(&self.lower[i * self.size..]) {
                *entry -= l * tail[0];
            }
        }
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [[f64; 3]; 4] =
        [[0.3, -1.0, 0.7], [1.1, 0.2, -0.4], [-0.6, 0.9, 0.1], [0.5, 0.4, 1.3]];
    const VALUES: [f64; 3] = [0.2, -0.3, 0.9];

    fn log_marginal(functions: &[[f64; 3]], std_dev: f64) -> f64 {
        let functions: Vec<&[f64]> = functions.iter().map(|f| &f[..]).collect();
        Posterior::new(&Features::new(&functions), &VALUES, std_dev * std_dev).log_marginal
    }

    /// log N(x; m, W Wᵀ + σ² I) by the n × n matrix itself.
    #[test]
    fn the_marginal_is_that_of_the_full_covariance() {
        let functions: Vec<&[f64]> = FUNCTIONS.iter().map(|f| &f[..]).collect();
        let features = Features::new(&functions);
        let variance = 0.09;
        let mut k = vec![0.0; 9];
        for i in 0..3 {
            for j in 0..3 {
                k[3 * i + j] = dot(features.row(i), features.row(j));
            }
            k[4 * i] += variance;
        }
        let full = Cholesky::new(k, 3);
        let residual: Vec<f64> = VALUES.iter().zip(&features.mean).map(|(x, m)| x - m).collect();
        let square = dot(&residual, &full.solve(&residual));
        let expected = -0.5 * (3.0 * LOG_TWO_PI + full.log_determinant() + square);
        assert!((log_marginal(&FUNCTIONS, 0.3) - expected).abs() < 1e-10);
    }

    #[test]
    fn gradients_are_differences() {
        let functions: Vec<&[f64]> = FUNCTIONS.iter().map(|f| &f[..]).collect();
        let features = Features::new(&functions);
        let posterior = Posterior::new(&features, &VALUES, 0.09);
        let gradient = MarginalGradient::new(&features, &VALUES, 0.09, &posterior);
        let step = 1e-5;
        for s in 0..4 {
            for row in 0..3 {
                let moved = |by: f64| {
                    let mut functions = FUNCTIONS;
                    functions[s][row] += by;
                    log_marginal(&functions, 0.3)
                };
                let difference = (moved(step) - moved(-step)) / (2.0 * step);
                let found = gradient.functions[s][row];
                assert!((found - difference).abs() < 1e-6, "{s} {row}: {found} {difference}");
            }
        }
        let scaled = |by: f64| log_marginal(&FUNCTIONS, 0.3 * by.exp());
        let difference = (scaled(step) - scaled(-step)) / (2.0 * step);
        assert!((gradient.log_std_dev - difference).abs() < 1e-6);
    }

    #[test]
    fn nothing_known_leaves_the_prior() {
        let features = Features::new(&[&[], &[]]);
        let posterior = Posterior::new(&features, &[], 0.09);
        assert_eq!((posterior.mean.as_slice(), posterior.log_marginal), (&[0.0, 0.0][..], 0.0));
        assert_eq!(posterior.draw(&[0.5, -1.5]), [0.5, -1.5]);
    }
}
