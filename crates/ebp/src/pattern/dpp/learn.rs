//! Learns the kernel of an L-ensemble from subsets: a first guess from moments, then a climb of the
//! likelihood.
//!
//! ```text
//! P(i ∈ A) = K_ii,   P(i, j ∈ A) = K_ii K_jj − K_ij²,   P(i, j, k ∈ A) = det K_{ijk} tells sign K_ij K_jk K_ki
//! L = V Vᵀ,   ∇_V mean log P = 2 Δ V,   Δ = mean_A U_A L_A⁻¹ U_Aᵀ − (I + L)⁻¹
//! ```
//!
//! The first guess (Urschel et al., 2017) has the signs that a climb from a diagonal kernel would have to find
//! across saddles: there every off-diagonal entry has slope 0. V is climbed by L-BFGS, so that L stays
//! semidefinite. L is known up to the signs of items, D L D with D_ii = ±1.

use std::collections::BTreeMap;

use super::ensemble::Ensemble;
use crate::linalg::{Matrix, symmetric_eigen};
use crate::pattern::newton::{Expansion, inverse};
use crate::process::{Evaluation, Limits, minimise};
use crate::{Error, Result};

/// Eigenvalues of the first K stay so far from 0 and 1, where L ends.
const MARGIN: f64 = 1e-3;
/// Evaluations of the likelihood at most.
const MOST_EVALUATIONS: usize = 2000;

/// A learned kernel.
#[derive(Clone, Debug)]
pub struct EnsembleFit {
    /// At the maximum.
    pub law: Ensemble,
    /// Mean log P of the subsets there, and where the climb began.
    pub log_likelihood: f64,
    /// The same at the start.
    pub start_log_likelihood: f64,
    /// Evaluations that the climb took.
    pub num_evaluations: usize,
}

/// Different subsets and their shares.
fn shares(subsets: &[Vec<usize>], count: usize) -> Result<Vec<(Vec<usize>, f64)>> {
    if subsets.is_empty() {
        return Err(Error::refused("there is no subset to learn from"));
    }
    let mut times: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for subset in subsets {
        let mut sorted = subset.clone();
        sorted.sort_unstable();
        let is_right = sorted.windows(2).all(|pair| pair[0] < pair[1])
            && sorted.last().is_none_or(|last| *last < count);
        if !is_right {
            let expected = format!("different items below {count}");
            return Err(Error::invalid("subset", expected, format!("{subset:?}")));
        }
        *times.entry(sorted).or_default() += 1;
    }
    let total = subsets.len() as f64;
    Ok(times.into_iter().map(|(subset, times)| (subset, times as f64 / total)).collect())
}

impl Ensemble {
    /// The kernel over `count` items under which `subsets` are likeliest.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are none, [`Error::InvalidValue`] for items that repeat or do not exist.
    ///
    /// ```
    /// use ebp::pattern::Ensemble;
    ///
    /// // Either item half of the time, never both: K = ½ (1 1; 1 1).
    /// let found = Ensemble::fit(&[vec![0], vec![1]], 2)?;
    /// assert!((found.law.inclusion()[0] - 0.5).abs() < 0.01);
    /// assert!(found.law.log_likelihood(&[0, 1])? < -4.0);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    pub fn fit(subsets: &[Vec<usize>], count: usize) -> Result<EnsembleFit> {
        let shares = shares(subsets, count)?;
        from_moments(&shares, count)?.climbed(&shares)
    }

    /// The kernel that a climb from this one finds.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit); [`Error::InvalidValue`] if a subset has probability 0 here.
    pub fn learned(&self, subsets: &[Vec<usize>]) -> Result<EnsembleFit> {
        self.climbed(&shares(subsets, self.count())?)
    }

    fn climbed(&self, shares: &[(Vec<usize>, f64)]) -> Result<EnsembleFit> {
        let n = self.count();
        let start: Vec<f64> = self.root();
        let limits = Limits {
            bounds: [-1e3, 1e3],
            max_evaluations: MOST_EVALUATIONS,
            gradient_tolerance: 1e-7,
            value_tolerance: 1e-13,
        };
        let mut first = None;
        let found = minimise(&start, &limits, |root| {
            let law = Self::new(square(root, n), n)?;
            let (value, slopes) = law.expand(shares)?;
            first.get_or_insert(value);
            let gradient = product(&slopes, root, n).into_iter().map(|g| -2.0 * g).collect();
            Ok(Evaluation { value: -value, gradient, jitter: 0.0 })
        })?;
        Ok(EnsembleFit {
            law: Self::new(square(&found.parameters, n), n)?,
            log_likelihood: -found.evaluation.value,
            start_log_likelihood: first.unwrap_or(f64::NEG_INFINITY),
            num_evaluations: found.num_evaluations,
        })
    }

    /// Mean log P, and Δ.
    fn expand(&self, shares: &[(Vec<usize>, f64)]) -> Result<(f64, Vec<f64>)> {
        let (mut value, mut slopes) = (0.0, self.minus_inverse());
        for (subset, share) in shares {
            value += share * self.log_likelihood(subset)?;
            self.add_minor_inverse(subset, *share, &mut slopes)?;
        }
        Ok((value, slopes))
    }

    /// Adds share · U_A L_A⁻¹ U_Aᵀ.
    fn add_minor_inverse(&self, subset: &[usize], share: f64, out: &mut [f64]) -> Result<()> {
        let (n, size) = (self.count(), subset.len());
        let Some(factor) = self.minor(subset) else {
            let expected = "of positive probability";
            return Err(Error::invalid("subset", expected, format!("{subset:?}")));
        };
        let (inverse, _) = factor.into_inverse(Matrix::zeros(size, size));
        for (j, &column) in subset.iter().enumerate() {
            for (i, &row) in subset.iter().enumerate() {
                out[row * n + column] += share * inverse.at(i.max(j), i.min(j));
            }
        }
        Ok(())
    }

    /// −(I + L)⁻¹ = −Σ v vᵀ/(1 + λ).
    fn minus_inverse(&self) -> Vec<f64> {
        let n = self.count();
        let mut out = vec![0.0; n * n];
        for (vector, value) in self.eigenvectors() {
            for (row, left) in out.chunks_exact_mut(n).zip(vector) {
                for (entry, right) in row.iter_mut().zip(vector) {
                    *entry -= left * right / (1.0 + value);
                }
            }
        }
        out
    }

    /// V with L = V Vᵀ, `[N, N]`.
    fn root(&self) -> Vec<f64> {
        let n = self.count();
        let mut root = vec![0.0; n * n];
        for (column, (vector, value)) in self.eigenvectors().enumerate() {
            for (row, entry) in vector.iter().enumerate() {
                root[row * n + column] = entry * value.sqrt();
            }
        }
        root
    }

    /// Standard errors of the entries of L, `[N, N]`, learned from so many subsets: of the information
    /// Σ_A s sᵀ, s being the slope of log P(A) by the entries on and below the diagonal.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit); [`Error::Failed`] if the subsets say nothing about an entry.
    pub fn standard_errors(&self, subsets: &[Vec<usize>]) -> Result<Vec<f64>> {
        let n = self.count();
        let entries: Vec<(usize, usize)> =
            (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let mut information = Expansion::zero(entries.len());
        for (subset, share) in shares(subsets, n)? {
            let mut slopes = self.minus_inverse();
            self.add_minor_inverse(&subset, 1.0, &mut slopes)?;
            let both =
                |&(i, j): &(usize, usize)| slopes[i * n + j] * if i == j { 1.0 } else { 2.0 };
            let row: Vec<f64> = entries.iter().map(both).collect();
            information.add(&row, 0.0, share * subsets.len() as f64);
        }
        let covariance = inverse(&information)?;
        let mut errors = vec![0.0; n * n];
        for (number, &(i, j)) in entries.iter().enumerate() {
            let error = covariance.at(number, number).sqrt();
            (errors[i * n + j], errors[j * n + i]) = (error, error);
        }
        Ok(errors)
    }
}

/// V Vᵀ.
fn square(root: &[f64], n: usize) -> Vec<f64> {
    let row = |i: usize| &root[i * n..][..n];
    let entry = |i: usize, j: usize| row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
    (0..n * n).map(|place| entry(place / n, place % n)).collect()
}

fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n * n];
    for (left, row) in a.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        for (scale, right) in left.iter().zip(b.chunks_exact(n)) {
            row.iter_mut().zip(right).for_each(|(sum, x)| *sum += scale * x);
        }
    }
    out
}

/// The ensemble whose items, pairs and signs of triples have the shares that are seen.
fn from_moments(shares: &[(Vec<usize>, f64)], n: usize) -> Result<Ensemble> {
    let holding = |items: &[usize]| -> f64 {
        let holds = |subset: &Vec<usize>| items.iter().all(|item| subset.contains(item));
        shares.iter().filter(|(subset, _)| holds(subset)).map(|(_, share)| share).sum()
    };
    let single: Vec<f64> = (0..n).map(|i| holding(&[i])).collect();
    let mut squares = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..i {
            let found = (single[i] * single[j] - holding(&[i, j])).max(0.0);
            (squares[i * n + j], squares[j * n + i]) = (found, found);
        }
    }
    let mut marginal = vec![0.0; n * n];
    (0..n).for_each(|i| marginal[i * n + i] = single[i]);
    // Strongest pairs first: a pair that joins two groups may have any sign, the others follow triples.
    let mut pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    pairs.sort_by(|a, b| squares[b.0 * n + b.1].total_cmp(&squares[a.0 * n + a.1]));
    for (i, j) in pairs {
        let vote: f64 = (0..n)
            .filter(|&k| k != i && k != j)
            .map(|k| {
                let known = marginal[i * n + k] * marginal[j * n + k];
                if known == 0.0 {
                    return 0.0;
                }
                // 2 K_ij K_jk K_ki = P(ijk) − K_ii K_jj K_kk + Σ K_ii K_jk²
                let rest = holding(&[i, j, k]) - single[i] * single[j] * single[k]
                    + single[i] * squares[j * n + k]
                    + single[j] * squares[i * n + k]
                    + single[k] * squares[i * n + j];
                rest * known.signum()
            })
            .sum();
        let entry = squares[i * n + j].sqrt() * if vote < 0.0 { -1.0 } else { 1.0 };
        (marginal[i * n + j], marginal[j * n + i]) = (entry, entry);
    }
    let (values, vectors) = symmetric_eigen(&marginal, n);
    let mut kernel = vec![0.0; n * n];
    for (value, vector) in values.iter().zip(vectors.chunks_exact(n.max(1))) {
        let held = value.clamp(MARGIN, 1.0 - MARGIN);
        // L = K (I − K)⁻¹
        let scale = held / (1.0 - held);
        for (row, left) in kernel.chunks_exact_mut(n).zip(vector) {
            row.iter_mut().zip(vector).for_each(|(entry, right)| *entry += scale * left * right);
        }
    }
    Ensemble::new(kernel, n)
}
