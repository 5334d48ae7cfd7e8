//! Finite determinantal processes: L-ensembles and k-DPPs (Kulesza and Taskar, 2012).
//!
//! ```text
//! P(A) = det L_A / det(I + L)              P(A | |A| = k) = det L_A / e_k(λ₁, …, λ_N)
//! P(i ∈ A) = K_ii,  K = L (I + L)⁻¹
//! ```
//!
//! e_k is the k-th elementary symmetric polynomial of the eigenvalues, kept as a logarithm. Sampling is
//! exact: eigenvectors are chosen first, then items one by one from the projection onto them. `learn.rs` learns
//! L from subsets.

use crate::linalg::{Cholesky, Matrix, symmetric_eigen};
use crate::pattern::draws::Draws;
use crate::rng::Stream;
use crate::{Error, Result};

/// An L-ensemble over N items.
#[derive(Clone, Debug)]
pub struct Ensemble {
    count: usize,
    kernel: Vec<f64>,
    eigenvalues: Vec<f64>,
    /// Rows.
    eigenvectors: Vec<f64>,
}

impl Ensemble {
    /// With kernel L, `[N, N]`, symmetric and positive semidefinite.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it is none.
    ///
    /// ```
    /// use ebp::pattern::Ensemble;
    ///
    /// // Two items that never come together: det L = 0.
    /// let pair = Ensemble::new(vec![1.0, 1.0, 1.0, 1.0], 2)?;
    /// assert!((pair.log_likelihood(&[0])? - (1_f64 / 3.0).ln()).abs() < 1e-12);
    /// assert_eq!(pair.log_likelihood(&[0, 1])?, f64::NEG_INFINITY);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    pub fn new(kernel: Vec<f64>, count: usize) -> Result<Self> {
        let at = |i: usize, j: usize| kernel[i * count + j];
        let is_right = kernel.len() == count * count && kernel.iter().all(|x| x.is_finite());
        let is_even = || {
            let scale = kernel.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            (0..count).all(|i| (0..i).all(|j| (at(i, j) - at(j, i)).abs() <= 1e-9 * scale))
        };
        if !(is_right && is_even()) {
            let expected = format!("a symmetric matrix of {count} x {count} finite numbers");
            return Err(Error::invalid("kernel", expected, format!("{} numbers", kernel.len())));
        }
        let (mut eigenvalues, eigenvectors) = symmetric_eigen(&kernel, count);
        let largest = eigenvalues.first().copied().unwrap_or(0.0).max(0.0);
        if let Some(least) = eigenvalues.last().filter(|least| **least < -1e-9 * largest) {
            return Err(Error::invalid(
                "kernel",
                "positive semidefinite",
                format!("eigenvalue {least}"),
            ));
        }
        for value in &mut eigenvalues {
            *value = value.max(0.0);
        }
        Ok(Self { count, kernel, eigenvalues, eigenvectors })
    }

    /// L, `[N, N]`.
    pub fn kernel(&self) -> &[f64] {
        &self.kernel
    }

    /// N.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Eigenvectors of L with their eigenvalues.
    pub(super) fn eigenvectors(&self) -> impl Iterator<Item = (&[f64], f64)> {
        let rows = self.eigenvectors.chunks_exact(self.count.max(1));
        rows.zip(self.eigenvalues.iter().copied())
    }

    /// log det L_A.
    fn log_minor(&self, subset: &[usize]) -> Result<f64> {
        let mut sorted = subset.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != subset.len() || sorted.last().is_some_and(|last| *last >= self.count) {
            let expected = format!("different items below {}", self.count);
            return Err(Error::invalid("subset", expected, format!("{subset:?}")));
        }
        Ok(match self.minor(&sorted) {
            Some(cholesky) => cholesky.log_determinant(),
            None => f64::NEG_INFINITY,
        })
    }

    /// The factor of L_A; none if it is singular.
    pub(super) fn minor(&self, subset: &[usize]) -> Option<Cholesky> {
        let size = subset.len();
        let factor = Cholesky::new(Matrix::zeros(size, size), |k| {
            for (j, &column) in subset.iter().enumerate() {
                for (i, &row) in subset.iter().enumerate() {
                    k.column_mut(j)[i] = self.kernel[row * self.count + column];
                }
            }
        });
        factor.ok().filter(|cholesky| cholesky.jitter() == 0.0)
    }

    /// log P(A) of a subset of any size.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for items that repeat or do not exist.
    pub fn log_likelihood(&self, subset: &[usize]) -> Result<f64> {
        let normaliser: f64 = self.eigenvalues.iter().map(|value| value.ln_1p()).sum();
        Ok(self.log_minor(subset)? - normaliser)
    }

    /// log P(A | |A| = k), k being the subset's size.
    ///
    /// # Errors
    ///
    /// As [`log_likelihood`](Self::log_likelihood); [`Error::InvalidValue`] if L has lower rank than k.
    pub fn log_likelihood_of_size(&self, subset: &[usize]) -> Result<f64> {
        let table = self.elementary(subset.len());
        let normaliser = table[subset.len()][self.count];
        self.check_rank(subset.len(), normaliser)?;
        Ok(self.log_minor(subset)? - normaliser)
    }

    fn check_rank(&self, size: usize, normaliser: f64) -> Result<()> {
        if normaliser > f64::NEG_INFINITY {
            return Ok(());
        }
        let rank = self.eigenvalues.iter().filter(|value| **value > 0.0).count();
        Err(Error::invalid("size", format!("at most the kernel's rank {rank}"), size))
    }

    /// log e_l(λ₁, …, λ_m) at `[l][m]` for l up to `size`.
    fn elementary(&self, size: usize) -> Vec<Vec<f64>> {
        let mut table = vec![vec![0.0; self.count + 1]];
        for order in 1..=size {
            // e_l(m) = e_l(m − 1) + λ_m e_{l−1}(m − 1)
            let mut row = vec![f64::NEG_INFINITY; self.count + 1];
            for m in 1..=self.count {
                let taken = self.eigenvalues[m - 1].ln() + table[order - 1][m - 1];
                row[m] = crate::linalg::log_sum_exp(&[row[m - 1], taken]);
            }
            table.push(row);
        }
        table
    }

    /// K_ii, the probability of each item.
    pub fn inclusion(&self) -> Vec<f64> {
        let share = |i: usize, (v, value): (&[f64], f64)| v[i] * v[i] * value / (1.0 + value);
        (0..self.count).map(|i| self.eigenvectors().map(|pair| share(i, pair)).sum()).collect()
    }

    /// A subset, in rising order.
    pub fn sample(&self, stream: Stream) -> Vec<usize> {
        let mut draws = Draws::new(stream);
        let chosen = (0..self.count)
            .filter(|&e| draws.uniform() * (1.0 + self.eigenvalues[e]) <= self.eigenvalues[e])
            .collect::<Vec<_>>();
        self.project(&chosen, &mut draws)
    }

    /// A subset of `size` items, in rising order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if L has lower rank.
    pub fn sample_of_size(&self, size: usize, stream: Stream) -> Result<Vec<usize>> {
        let table = self.elementary(size.min(self.count + 1));
        let normaliser =
            if size > self.count { f64::NEG_INFINITY } else { table[size][self.count] };
        self.check_rank(size, normaliser)?;
        let mut draws = Draws::new(stream);
        let (mut chosen, mut rest) = (Vec::with_capacity(size), size);
        for m in (1..=self.count).rev() {
            if rest == 0 {
                break;
            }
            // λ_m e_{l−1}(m − 1) / e_l(m)
            let share =
                (self.eigenvalues[m - 1].ln() + table[rest - 1][m - 1] - table[rest][m]).exp();
            if draws.uniform() <= share {
                chosen.push(m - 1);
                rest -= 1;
            }
        }
        Ok(self.project(&chosen, &mut draws))
    }

    /// Items from the projection onto chosen eigenvectors: each by what is left of its squared length, which
    /// a step of Cholesky's elimination takes away.
    fn project(&self, chosen: &[usize], draws: &mut Draws) -> Vec<usize> {
        let vector = |e: usize| &self.eigenvectors[e * self.count..][..self.count];
        let entry =
            |i: usize, j: usize| chosen.iter().map(|&e| vector(e)[i] * vector(e)[j]).sum::<f64>();
        let mut left: Vec<f64> = (0..self.count).map(|i| entry(i, i)).collect();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let mut items = Vec::new();
        for _ in chosen {
            let mut place = draws.uniform() * left.iter().sum::<f64>();
            let found = left.iter().position(|share| {
                place -= share;
                place <= 0.0 && *share > 0.0
            });
            let most = || (0..self.count).max_by(|&i, &j| left[i].total_cmp(&left[j]));
            let Some(item) = found.or_else(most) else { break };
            let root = left[item].sqrt();
            let column: Vec<f64> = (0..self.count)
                .map(|i| {
                    let known: f64 = columns.iter().map(|c| c[i] * c[item]).sum();
                    (entry(i, item) - known) / root
                })
                .collect();
            for (share, c) in left.iter_mut().zip(&column) {
                *share = (*share - c * c).max(0.0);
            }
            left[item] = 0.0;
            columns.push(column);
            items.push(item);
        }
        items.sort_unstable();
        items
    }
}
