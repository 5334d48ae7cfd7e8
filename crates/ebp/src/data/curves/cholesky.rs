//! The Cholesky factor of a small well-conditioned matrix.

use crate::{Error, Result};

/// L with A = L Lᵀ.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    /// Row i holds `L[i][0..=i]`.
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// Of the symmetric matrix with the given entries, of which only j ≤ i are read.
    pub(super) fn new(size: usize, entry: impl Fn(usize, usize) -> f64) -> Result<Self> {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(size);
        for i in 0..size {
            let mut row = Vec::with_capacity(i + 1);
            for (j, other) in rows.iter().enumerate() {
                // L_ij = (A_ij − Σ_k L_ik L_jk) / L_jj
                row.push((entry(i, j) - dot(&row, other)) / other[j]);
            }
            // L_ii = √(A_ii − Σ_k L_ik²)
            let pivot = entry(i, i) - dot(&row, &row);
            if pivot <= 0.0 || !pivot.is_finite() {
                return Err(Error::invalid("kernel matrix", "positive definite", pivot));
            }
            row.push(pivot.sqrt());
            rows.push(row);
        }
        Ok(Self { rows })
    }

    /// L⁻¹ b
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut solution = Vec::with_capacity(right.len());
        for (i, row) in self.rows.iter().enumerate() {
            solution.push((right[i] - dot(&solution, row)) / row[i]);
        }
        solution
    }

    /// L⁻ᵀ b
    pub(super) fn solve_transposed(&self, right: &[f64]) -> Vec<f64> {
        let mut solution = right.to_vec();
        for (i, row) in self.rows.iter().enumerate().rev() {
            let value = solution[i] / row[i];
            solution[i] = value;
            for (earlier, l) in solution[..i].iter_mut().zip(row) {
                *earlier -= l * value;
            }
        }
        solution
    }
}

/// Σ a_k b_k over the shorter length.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_by_two() {
        // [[4, 2], [2, 5]] = L Lᵀ with L = [[2, 0], [1, 2]]
        let matrix = [[4.0, 2.0], [2.0, 5.0]];
        let factor = Cholesky::new(2, |i, j| matrix[i][j]).unwrap();
        assert_eq!(factor.rows, [vec![2.0], vec![1.0, 2.0]]);
        // A⁻¹ [8, 9] = [22/16, 20/16]
        assert_eq!(factor.solve_transposed(&factor.solve(&[8.0, 9.0])), [1.375, 1.25]);
        assert!(Cholesky::new(2, |_, _| 1.0).is_err());
    }
}
