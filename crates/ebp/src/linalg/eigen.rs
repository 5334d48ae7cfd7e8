//! Eigenvalues and eigenvectors of small symmetric matrices, by Jacobi's rotations.
//!
//! ```text
//! A = V Λ Vᵀ,   each rotation makes one entry above the diagonal zero:  A ← Jᵀ A J,  V ← V J
//! ```
//!
//! Sequential, so that the result is the same to the last bit whatever the number of threads.

/// Sweeps over all entries; symmetric matrices of any size need about ten.
const MOST_SWEEPS: usize = 60;
/// Off-diagonal entries of this size, relative to the whole matrix, are rounding.
const NEGLIGIBLE: f64 = 1e-14;

/// Λ, largest first, and rows vᵢ with A vᵢ = λᵢ vᵢ, `[k, k]`; `matrix` `[k, k]` is symmetric.
pub(crate) fn symmetric_eigen(matrix: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors = vec![0.0; dim * dim];
    for i in 0..dim {
        vectors[i * dim + i] = 1.0;
    }
    let total: f64 = a.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
    for _ in 0..MOST_SWEEPS {
        let mut largest = 0.0_f64;
        for p in 0..dim {
            for q in p + 1..dim {
                let entry = a[p * dim + q];
                largest = largest.max(entry.abs());
                if entry.abs() <= NEGLIGIBLE * total {
                    continue;
                }
                // tan of the angle, the smaller root of t² + 2 t cot 2φ − 1 = 0
                let cot = (a[q * dim + q] - a[p * dim + p]) / (2.0 * entry);
                let tan = cot.signum() / (cot.abs() + cot.hypot(1.0));
                let cos = 1.0 / tan.hypot(1.0);
                rotate(&mut a, dim, (p, q), (cos, tan * cos));
                let (head, tail) = vectors.split_at_mut(q * dim);
                let rows = head[p * dim..(p + 1) * dim].iter_mut().zip(&mut tail[..dim]);
                turn(rows, cos, tan * cos);
            }
        }
        if largest <= NEGLIGIBLE * total {
            break;
        }
    }
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&i, &j| a[j * dim + j].total_cmp(&a[i * dim + i]));
    let values = order.iter().map(|&i| a[i * dim + i]).collect();
    let vectors = order.iter().flat_map(|&i| vectors[i * dim..(i + 1) * dim].to_vec()).collect();
    (values, vectors)
}

/// Jᵀ A J for the rotation of coordinates p < q.
fn rotate(a: &mut [f64], dim: usize, (p, q): (usize, usize), (cos, sin): (f64, f64)) {
    let (head, tail) = a.split_at_mut(q * dim);
    turn(head[p * dim..(p + 1) * dim].iter_mut().zip(&mut tail[..dim]), cos, sin);
    for row in a.chunks_exact_mut(dim) {
        let (left, right) = (row[p], row[q]);
        row[p] = cos * left - sin * right;
        row[q] = sin * left + cos * right;
    }
}

fn turn<'a>(pairs: impl Iterator<Item = (&'a mut f64, &'a mut f64)>, cos: f64, sin: f64) {
    for (left, right) in pairs {
        (*left, *right) = (cos * *left - sin * *right, sin * *left + cos * *right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_parts_make_the_matrix_again() {
        let dim = 17;
        let mut noise = vec![0.0_f32; dim * dim];
        Stream::new(1, "matrix").fill_normal(0, 0, &mut noise);
        let at = |i: usize, j: usize| f64::from(noise[i * dim + j]) + f64::from(noise[j * dim + i]);
        let matrix: Vec<f64> = (0..dim * dim).map(|place| at(place / dim, place % dim)).collect();
        let (values, vectors) = symmetric_eigen(&matrix, dim);
        assert!(values.is_sorted_by(|a, b| a >= b));
        for i in 0..dim {
            for j in 0..dim {
                let dot = |f: &dyn Fn(usize) -> f64| (0..dim).map(f).sum::<f64>();
                let back = dot(&|e| values[e] * vectors[e * dim + i] * vectors[e * dim + j]);
                assert!((back - matrix[i * dim + j]).abs() < 1e-12);
                let unit = dot(&|c| vectors[i * dim + c] * vectors[j * dim + c]);
                assert!((unit - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_known_matrix() {
        // [[2, 1], [1, 2]]: 3 along (1, 1), 1 along (1, −1).
        let (values, vectors) = symmetric_eigen(&[2.0, 1.0, 1.0, 2.0], 2);
        assert!((values[0] - 3.0).abs() < 1e-15 && (values[1] - 1.0).abs() < 1e-15);
        assert!((vectors[0] - vectors[1]).abs() < 1e-15);
    }
}
