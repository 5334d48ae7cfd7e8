//! Dense linear algebra in f64 for exact processes: K = L Lᵀ, and what follows from L.
//!
//! ```text
//! log |K| = 2 Σᵢ log Lᵢᵢ,    K⁻¹ b = L⁻ᵀ (L⁻¹ b),    K⁻¹ = L⁻ᵀ L⁻¹
//! ```
//!
//! A covariance with nearly equal rows is singular in floating point. [`Cholesky::new`] then adds
//! a *jitter* to the diagonal, as little as does: 0, then 10⁻¹⁰ of the mean diagonal, ten times
//! more at each failure, at most 10⁻⁴. The jitter that was used is reported, never hidden; when
//! none suffices the matrix is wrong rather than rounded, and that is an error.
//!
//! Symmetric matrices are stored in their lower triangle; what stands above is never read. Large
//! matrices are worked on by all of rayon's threads, small ones by the caller's alone.

mod eigen;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, MatMut, MatRef, Par};

use crate::{Error, Result};

pub(crate) use eigen::symmetric_eigen;

/// Below this dimension the threads cost more than they bring.
const PARALLEL_DIM: usize = 256;
/// The ladder of jitters relative to the mean diagonal: 0, 10⁻¹⁰, 10⁻⁹, …, 10⁻⁴.
const JITTERS: [f64; 8] = [0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4];

/// A dense matrix in column-major order: column j is contiguous.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    num_rows: usize,
    num_columns: usize,
    entries: Vec<f64>,
}

impl Matrix {
    /// All entries zero.
    pub fn zeros(num_rows: usize, num_columns: usize) -> Self {
        Self { num_rows, num_columns, entries: vec![0.0; num_rows * num_columns] }
    }

    /// From rows, as locations and values are stored: `rows` is `[num_rows, num_columns]`.
    pub fn from_rows(num_columns: usize, rows: &[f64]) -> Self {
        let num_rows = rows.len() / num_columns.max(1);
        let mut matrix = Self::zeros(num_rows, num_columns);
        for (i, row) in rows.chunks_exact(num_columns.max(1)).enumerate() {
            for (j, &entry) in row.iter().enumerate() {
                matrix.entries[j * num_rows + i] = entry;
            }
        }
        matrix
    }

    /// The same memory with other dimensions; entries are left as they come.
    #[must_use]
    pub fn resized(mut self, num_rows: usize, num_columns: usize) -> Self {
        self.entries.resize(num_rows * num_columns, 0.0);
        Self { num_rows, num_columns, entries: self.entries }
    }

    /// How many rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// How many columns.
    pub fn num_columns(&self) -> usize {
        self.num_columns
    }

    /// Column `j`.
    ///
    /// # Panics
    ///
    /// If there is no such column, as slice indexing does.
    pub fn column(&self, j: usize) -> &[f64] {
        &self.entries[j * self.num_rows..][..self.num_rows]
    }

    /// Column `j`, to be changed.
    ///
    /// # Panics
    ///
    /// If there is no such column, as slice indexing does.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.entries[j * self.num_rows..][..self.num_rows]
    }

    /// All entries, column after column.
    pub fn entries(&self) -> &[f64] {
        &self.entries
    }

    /// All entries, to be changed.
    pub fn entries_mut(&mut self) -> &mut [f64] {
        &mut self.entries
    }

    /// The entry in row `i` and column `j`.
    ///
    /// # Panics
    ///
    /// If there is no such entry, as slice indexing does.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.column(j)[i]
    }

    /// The lower triangle of A Aᵀ for this A `[n, m]`, by the caller's thread alone.
    #[must_use]
    pub fn products_of_rows(&self) -> Self {
        let mut products = Self::zeros(self.num_rows, self.num_rows);
        matmul(
            products.view_mut(),
            BlockStructure::TriangularLower,
            Accum::Replace,
            self.view(),
            BlockStructure::Rectangular,
            self.view().transpose(),
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
        products
    }

    /// A B for this A `[n, m]` and B `[m, k]`, by the caller's thread alone.
    ///
    /// # Panics
    ///
    /// If B has not as many rows as A columns.
    #[must_use]
    pub fn times(&self, right: &Self) -> Self {
        let mut product = Self::zeros(self.num_rows, right.num_columns);
        matmul(
            product.view_mut(),
            BlockStructure::Rectangular,
            Accum::Replace,
            self.view(),
            BlockStructure::Rectangular,
            right.view(),
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
        product
    }

    /// Aᵀ.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::from_rows(self.num_rows, &self.entries)
    }

    /// The square matrix whose lower triangle this is.
    #[must_use]
    pub fn mirrored(mut self) -> Self {
        for j in 0..self.num_columns {
            for i in 0..j {
                self.entries[j * self.num_rows + i] = self.entries[i * self.num_rows + j];
            }
        }
        self
    }

    fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.entries, self.num_rows, self.num_columns)
    }

    fn view_mut(&mut self) -> MatMut<'_, f64> {
        MatMut::from_column_major_slice_mut(&mut self.entries, self.num_rows, self.num_columns)
    }
}

/// K + jitter·I = L Lᵀ.
///
/// ```
/// use ebp::linalg::{Cholesky, Matrix};
///
/// // K = [4 2; 2 5] has L = [2 0; 1 2].
/// let cholesky = Cholesky::new(Matrix::zeros(2, 2), |k| {
///     k.entries_mut().copy_from_slice(&[4.0, 2.0, 0.0, 5.0]);
/// })?;
/// assert_eq!(cholesky.factor().at(1, 0), 1.0);
/// assert_eq!(cholesky.jitter(), 0.0);
/// assert!((cholesky.log_determinant() - 16_f64.ln()).abs() < 1e-15);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cholesky {
    factor: Matrix,
    jitter: f64,
}

impl Cholesky {
    /// Factorises the matrix whose lower triangle `fill` writes into `storage`.
    ///
    /// The matrix is overwritten by its factor; `fill` runs again for each step of the ladder, so
    /// that the usual case needs no copy.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `storage` is not square, [`Error::NotPositiveDefinite`] if no
    /// jitter of the ladder suffices or an entry is not finite.
    pub fn new(storage: Matrix, mut fill: impl FnMut(&mut Matrix)) -> Result<Self> {
        let dim = storage.num_rows;
        if storage.num_columns != dim {
            return Err(Error::invalid(
                "storage",
                "square",
                format!("{dim} rows, {} columns", storage.num_columns),
            ));
        }
        let par = parallelism(dim);
        let mut factor = storage;
        let mut scratch =
            MemBuffer::new(cholesky_in_place_scratch::<f64>(dim, par, faer::Spec::default()));
        let mut failure = Error::NotPositiveDefinite { row: 0, dim, jitter: 0.0 };
        for relative in JITTERS {
            fill(&mut factor);
            let mean = (0..dim).map(|i| factor.at(i, i)).sum::<f64>() / dim.max(1) as f64;
            let jitter = relative * mean;
            if jitter > 0.0 {
                (0..dim).for_each(|i| factor.column_mut(i)[i] += jitter);
            }
            let outcome = cholesky_in_place(
                factor.view_mut(),
                faer::linalg::cholesky::llt::factor::LltRegularization::default(),
                par,
                MemStack::new(&mut scratch),
                faer::Spec::default(),
            );
            let bad_row = match outcome {
                Ok(_) => (0..dim).find(|&i| !factor.at(i, i).is_finite()),
                Err(faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index }) => {
                    Some(index)
                }
            };
            match bad_row {
                None => return Ok(Self { factor, jitter }),
                Some(row) => failure = Error::NotPositiveDefinite { row, dim, jitter },
            }
        }
        Err(failure)
    }

    /// n.
    pub fn dim(&self) -> usize {
        self.factor.num_rows
    }

    /// What had to be added to the diagonal; 0 for a well-conditioned matrix.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }

    /// L, in the lower triangle.
    pub fn factor(&self) -> &Matrix {
        &self.factor
    }

    /// log |K + jitter·I|.
    pub fn log_determinant(&self) -> f64 {
        // log |K| = 2 Σᵢ log Lᵢᵢ
        2.0 * (0..self.dim()).map(|i| self.factor.at(i, i).ln()).sum::<f64>()
    }

    /// Replaces the columns of B `[n, m]` by L⁻¹ B.
    ///
    /// # Panics
    ///
    /// If B does not have n rows.
    pub fn solve_lower(&self, right_side: &mut Matrix) {
        let par = parallelism(self.dim().min(right_side.num_columns));
        solve_lower_triangular_in_place(self.factor.view(), right_side.view_mut(), par);
    }

    /// Replaces the columns of B `[n, m]` by L⁻ᵀ B.
    ///
    /// # Panics
    ///
    /// If B does not have n rows.
    pub fn solve_upper(&self, right_side: &mut Matrix) {
        let par = parallelism(self.dim().min(right_side.num_columns));
        solve_upper_triangular_in_place(self.factor.view().transpose(), right_side.view_mut(), par);
    }

    /// L ξ for `noise` ξ `[n]`: a vector with covariance K if ξ has covariance I.
    ///
    /// # Panics
    ///
    /// If ξ does not have n entries.
    pub fn multiply_lower(&self, noise: &[f64]) -> Vec<f64> {
        assert_eq!(noise.len(), self.dim(), "one number per row");
        let mut product = vec![0.0; self.dim()];
        for (j, factor) in noise.iter().enumerate() {
            let column = &self.factor.column(j)[j..];
            product[j..].iter_mut().zip(column).for_each(|(sum, l)| *sum += factor * l);
        }
        product
    }

    /// The lower triangle of (K + jitter·I)⁻¹, written over L; `scratch` must be `[n, n]` too and
    /// comes back as the second matrix. n³ operations with the factorisation, against 7n³/3 for
    /// n solves.
    ///
    /// # Panics
    ///
    /// If `scratch` has other dimensions.
    pub fn into_inverse(self, mut scratch: Matrix) -> (Matrix, Matrix) {
        let par = parallelism(self.dim());
        let mut inverse = self.factor;
        invert_lower_triangular(scratch.view_mut(), inverse.view(), par);
        // K⁻¹ = L⁻ᵀ L⁻¹
        matmul(
            inverse.view_mut(),
            BlockStructure::TriangularLower,
            Accum::Replace,
            scratch.view().transpose(),
            BlockStructure::TriangularUpper,
            scratch.view(),
            BlockStructure::TriangularLower,
            1.0,
            par,
        );
        (inverse, scratch)
    }
}

/// log Σᵢ exp vᵢ without overflow; −∞ for no values.
///
/// ```
/// use ebp::linalg::log_sum_exp;
///
/// assert_eq!(log_sum_exp(&[1000.0, 1000.0]), 1000.0 + 2_f64.ln());
/// assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
/// ```
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        // Nothing to scale by; a NaN among the values stays one.
        return values.iter().fold(largest, |sum, v| if v.is_nan() { *v } else { sum });
    }
    // log Σ exp vᵢ = m + log Σ exp(vᵢ − m)
    largest + values.iter().map(|v| (v - largest).exp()).sum::<f64>().ln()
}

/// By the size alone, so that results do not depend on who else is working.
fn parallelism(dim: usize) -> Par {
    if dim < PARALLEL_DIM { Par::Seq } else { Par::rayon(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A = 3·I + the matrix of ones/(1 + |i − j|): positive definite by its diagonal dominance
    /// over harmonic rows only for small n, and by Bochner for all.
    fn well_conditioned(k: &mut Matrix) {
        let dim = k.num_rows();
        for j in 0..dim {
            for i in j..dim {
                k.column_mut(j)[i] = 1.0 / (1.0 + (i - j) as f64) + if i == j { 3.0 } else { 0.0 };
            }
        }
    }

    fn product_with(k: &Matrix, x: &[f64]) -> Vec<f64> {
        let entry = |i: usize, j: usize| if i >= j { k.at(i, j) } else { k.at(j, i) };
        (0..x.len()).map(|i| (0..x.len()).map(|j| entry(i, j) * x[j]).sum()).collect()
    }

    #[test]
    fn solves_and_the_inverse_undo_the_matrix_at_any_size() {
        for dim in [1, 2, 5, 64, 300] {
            let mut k = Matrix::zeros(dim, dim);
            well_conditioned(&mut k);
            let x: Vec<f64> = (0..dim).map(|i| (i as f64).sin()).collect();
            let mut b = Matrix::from_rows(1, &product_with(&k, &x));
            let rows = b.entries().to_vec();
            let cholesky = Cholesky::new(Matrix::zeros(dim, dim), well_conditioned).unwrap();
            assert!(cholesky.jitter().abs() < f64::MIN_POSITIVE);
            cholesky.solve_lower(&mut b);
            cholesky.solve_upper(&mut b);
            // The condition number is below 10, so errors are a few roundings.
            let error =
                |a: &[f64]| a.iter().zip(&x).map(|(a, x)| (a - x).abs()).fold(0.0, f64::max);
            assert!(error(b.entries()) < 1e-13, "{dim}: {}", error(b.entries()));
            let (inverse, _) = cholesky.into_inverse(Matrix::zeros(dim, dim));
            let again = product_with(&inverse, &rows);
            assert!(error(&again) < 1e-13, "{dim}: {}", error(&again));
        }
    }

    #[test]
    fn the_empty_matrix_has_determinant_one() {
        let cholesky = Cholesky::new(Matrix::zeros(0, 0), |_| {}).unwrap();
        assert!(cholesky.log_determinant().abs() < f64::MIN_POSITIVE);
        cholesky.solve_lower(&mut Matrix::zeros(0, 1));
        cholesky.into_inverse(Matrix::zeros(0, 0));
    }

    /// Ones everywhere: rank 1. The ladder stops at the first jitter that helps, and says so.
    #[test]
    fn a_singular_matrix_gets_the_least_jitter_that_helps() {
        let cholesky = Cholesky::new(Matrix::zeros(40, 40), |k| k.entries_mut().fill(1.0)).unwrap();
        assert!(cholesky.jitter() > 0.0 && cholesky.jitter() <= 1e-8, "{}", cholesky.jitter());
        // |11ᵀ + jI| = jⁿ⁻¹ (j + n); each factor (1 + j) − 1 of the elimination rounds to ±ε/j.
        let jitter = cholesky.jitter();
        let expected = 39.0 * jitter.ln() + (jitter + 40.0).ln();
        let tolerance = 39.0 * 40.0 * f64::EPSILON / jitter;
        assert!((cholesky.log_determinant() - expected).abs() < tolerance);
    }

    #[test]
    fn an_indefinite_matrix_is_refused_with_its_row_and_a_remedy() {
        let error = Cholesky::new(Matrix::zeros(2, 2), |k| {
            k.entries_mut().copy_from_slice(&[1.0, 2.0, 0.0, 1.0]);
        });
        let message = error.unwrap_err().to_string();
        assert!(message.contains("row 1 of 2") && message.contains("0.0001"), "{message}");
        assert!(message.contains("noise variance"), "{message}");
        let error = Cholesky::new(Matrix::zeros(1, 1), |k| k.entries_mut()[0] = f64::NAN);
        assert!(error.is_err());
        assert!(Cholesky::new(Matrix::zeros(1, 2), |_| {}).is_err());
    }

    #[test]
    fn products_of_rows_are_dots() {
        let matrix = Matrix::from_rows(2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let products = matrix.products_of_rows();
        let lower: Vec<f64> = (0..3).flat_map(|j| products.column(j)[j..].to_vec()).collect();
        assert_eq!(lower, [5.0, 11.0, 17.0, 25.0, 39.0, 61.0]);
    }

    #[test]
    fn rows_become_columns() {
        let matrix = Matrix::from_rows(2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(matrix.column(1), [2.0, 4.0, 6.0]);
        assert_eq!((matrix.num_rows(), matrix.num_columns()), (3, 2));
    }

    #[test]
    fn log_sum_exp_keeps_infinities_and_nan() {
        assert!(log_sum_exp(&[f64::NEG_INFINITY; 2]) < f64::MIN);
        assert!(log_sum_exp(&[f64::INFINITY, 0.0]) > f64::MAX);
        assert!(log_sum_exp(&[f64::NAN, f64::INFINITY]).is_nan());
        assert!(log_sum_exp(&[f64::NAN, 0.0]).is_nan());
        assert!((log_sum_exp(&[0.0, 1.0]) - (1.0 + 1_f64.exp()).ln()).abs() < 1e-15);
    }
}
