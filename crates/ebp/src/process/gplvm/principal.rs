//! Principal components: where latent locations begin.
//!
//! ```text
//! Y = U S Vᵀ,   T = √n U₁…U_q: the scores of the first q components, each of variance 1
//! ```
//!
//! By orthogonal iteration, V ← orth(Yᵀ Y V), with some more columns than are wanted, and Rayleigh and
//! Ritz's eigenvectors of Vᵀ Yᵀ Y V at the end. The largest entry of a component's direction is positive.

use super::check_table;
use crate::linalg::{Matrix, symmetric_eigen};
use crate::rng::Stream;
use crate::{Error, Result};

/// Columns beyond those wanted, which make the iteration converge like (λ_{q+9}/λ_q)ᵏ.
const MORE: usize = 8;
/// Iterations at most; the directions need not be exact, only the same every time.
const ITERATIONS: usize = 200;
/// Where the eigenvalues change by less, relative to the largest, they have settled.
const SETTLED: f64 = 1e-12;
/// A component with a smaller share of the variance is rounding.
const NEGLIGIBLE: f64 = 1e-10;

/// The scores `[n, q]` of the first q = `latent_dim` components of the rows `values` `[n, d]`, each of
/// mean 0 and variance 1, and the share of the variance that each explains.
///
/// # Errors
///
/// [`Error::InvalidValue`] unless there are more rows than components and the rows vary in as many
/// directions.
pub fn principal_components(
    values: &[f64],
    value_dim: usize,
    latent_dim: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let num_rows = check_table(values, value_dim, latent_dim)?;
    let mut rows = Matrix::from_rows(value_dim, values);
    for d in 0..value_dim {
        let column = rows.column_mut(d);
        let mean = column.iter().sum::<f64>() / num_rows as f64;
        for x in &mut *column {
            *x -= mean;
        }
    }
    let total: f64 = rows.entries().iter().map(|x| x * x).sum();
    let rank = |found: usize| {
        let expected = format!("at most {found}, the directions in which the rows vary");
        Error::invalid("latent_dim", expected, latent_dim)
    };
    if latent_dim > value_dim.min(num_rows - 1) {
        return Err(rank(value_dim.min(num_rows - 1)));
    }
    let columns = rows.transposed();
    let count = (latent_dim + MORE).min(value_dim);
    let mut start = vec![0.0_f32; count * value_dim];
    Stream::new(0, "principal components").fill_normal(0, 0, &mut start);
    let start: Vec<f64> = start.iter().map(|&x| f64::from(x)).collect();
    let mut basis = orthogonal(Matrix::from_rows(count, &start));
    let mut before = vec![f64::INFINITY; count];
    for _ in 0..ITERATIONS {
        let image = columns.times(&rows.times(&basis));
        let lengths: Vec<f64> = (0..count).map(|j| dot(image.column(j), basis.column(j))).collect();
        let moved = lengths.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        basis = orthogonal(image);
        if moved <= SETTLED * total {
            break;
        }
        before = lengths;
    }
    let scores = rows.times(&basis);
    let products = scores.transposed().products_of_rows().mirrored();
    let (eigenvalues, vectors) = symmetric_eigen(products.entries(), count);
    if let Some(found) = eigenvalues[..latent_dim].iter().position(|&l| l <= NEGLIGIBLE * total) {
        return Err(rank(found));
    }
    let mut latents = vec![0.0; num_rows * latent_dim];
    for (c, eigenvalue) in eigenvalues[..latent_dim].iter().enumerate() {
        let turn = Matrix::from_rows(1, &vectors[c * count..][..count]);
        let direction = basis.times(&turn);
        let largest = direction
            .entries()
            .iter()
            .fold(0.0, |a: f64, &b| if b.abs() > a.abs() { b } else { a });
        // A column of scores has the squared length λ; variance 1 is the squared length n.
        let scale = largest.signum() * (num_rows as f64 / eigenvalue).sqrt();
        for (i, score) in scores.times(&turn).entries().iter().enumerate() {
            latents[i * latent_dim + c] = scale * score;
        }
    }
    let shares = eigenvalues[..latent_dim].iter().map(|l| l / total).collect();
    Ok((latents, shares))
}

/// The same space with orthonormal columns, by Gram and Schmidt twice over; what vanishes stays 0.
fn orthogonal(mut basis: Matrix) -> Matrix {
    for j in 0..basis.num_columns() {
        for _ in 0..2 {
            for i in 0..j {
                let share = dot(basis.column(i), basis.column(j));
                let other = basis.column(i).to_vec();
                basis.column_mut(j).iter_mut().zip(other).for_each(|(x, y)| *x -= share * y);
            }
            let length = dot(basis.column(j), basis.column(j)).sqrt();
            let scale = if length > f64::MIN_POSITIVE { 1.0 / length } else { 0.0 };
            basis.column_mut(j).iter_mut().for_each(|x| *x *= scale);
        }
    }
    basis
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 5 a u + 2 b v + 0.1 c w with u, v, w orthonormal and a, b, c orthogonal of variance 1.
    #[test]
    fn components_of_a_known_table_are_found() {
        let n = 64;
        let wave = |i: usize, k: f64| {
            let angle = std::f64::consts::TAU * k * i as f64 / n as f64;
            2_f64.sqrt() * angle.cos()
        };
        let (u, v, w) = ([0.6, 0.8, 0.0], [0.8, -0.6, 0.0], [0.0, 0.0, 1.0]);
        let values: Vec<f64> = (0..n)
            .flat_map(|i| {
                let (a, b, c) = (5.0 * wave(i, 1.0), 2.0 * wave(i, 2.0), 0.1 * wave(i, 3.0));
                (0..3).map(move |d| 7.0 + a * u[d] + b * v[d] + c * w[d])
            })
            .collect();
        let (latents, shares) = principal_components(&values, 3, 2).unwrap();
        for i in 0..n {
            assert!((latents[2 * i] - wave(i, 1.0)).abs() < 1e-9);
            assert!((latents[2 * i + 1] - wave(i, 2.0)).abs() < 1e-9);
        }
        assert!(
            (shares[0] - 25.0 / 29.01).abs() < 1e-12 && (shares[1] - 4.0 / 29.01).abs() < 1e-12
        );
    }

    #[test]
    fn tables_without_enough_directions_are_refused() {
        let line: Vec<f64> = (0..10).flat_map(|i| [f64::from(i), 2.0 * f64::from(i)]).collect();
        let message = |values: &[f64], dim, latent| {
            principal_components(values, dim, latent).unwrap_err().to_string()
        };
        assert!(message(&line, 2, 2).contains("at most 1, the directions"));
        assert!(message(&line, 2, 10).contains("below 10, the number of rows"));
        assert!(message(&line, 3, 1).contains("whole rows of 3"));
        assert!(message(&[1.0, f64::NAN], 1, 1).contains("values[1][0]"));
        assert!(message(&[1.0], 1, 1).contains("at least 2"));
        assert!(message(&[], 0, 1).contains("value_dim"));
    }
}
