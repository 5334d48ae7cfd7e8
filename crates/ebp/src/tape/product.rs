//! Products of matrices on the host, in blocks that threads share.
//!
//! Blocks are cut by the sizes alone and no two write the same entry: the same bits on any number of
//! threads. The longer side of the result is cut, so that of a few rows and many weights every weight is
//! read once. Where the result is small and its sums are long, as in gradients of weights by many rows, the
//! sums are cut instead, and their parts added in order.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Rows or columns of a block; of a long side twice as many.
const BLOCK: usize = 64;
/// A side with as many blocks has enough of them for every thread.
const MANY_BLOCKS: usize = 8;
/// Sums of as many terms are cut if the result is small,
const LONG: usize = 1 << 13;
/// into parts of so many terms.
const PART: usize = 1 << 11;
/// A result of so many numbers is small.
const FEW: usize = 1 << 16;
/// Products of fewer multiplications take less time than sharing them out.
const SMALL: usize = 1 << 17;

/// out ← left · right, or out ← out + left · right.
pub(super) fn multiply(
    out: MatMut<'_, f32>,
    accumulate: Accum,
    left: MatRef<'_, f32>,
    right: MatRef<'_, f32>,
) {
    let (rows, columns) = (out.nrows(), out.ncols());
    let longer = rows.max(columns);
    if left.ncols() >= LONG && rows * columns <= FEW {
        by_parts(out, accumulate, left, right);
        return;
    }
    if rows * columns * left.ncols() < SMALL || longer <= BLOCK {
        matmul(out, accumulate, left, right, 1.0, Par::Seq);
        return;
    }
    let size = if longer >= MANY_BLOCKS * BLOCK { 2 * BLOCK } else { BLOCK };
    if columns > rows {
        out.par_col_chunks_mut(size).enumerate().for_each(|(block, out)| {
            let right = right.subcols(block * size, out.ncols());
            matmul(out, accumulate, left, right, 1.0, Par::Seq);
        });
    } else {
        out.par_row_chunks_mut(size).enumerate().for_each(|(block, out)| {
            let left = left.subrows(block * size, out.nrows());
            matmul(out, accumulate, left, right, 1.0, Par::Seq);
        });
    }
}

/// The same with long sums cut into parts.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn by_parts(
    mut out: MatMut<'_, f32>,
    accumulate: Accum,
    left: MatRef<'_, f32>,
    right: MatRef<'_, f32>,
) {
    let (rows, columns, terms) = (out.nrows(), out.ncols(), left.ncols());
    let parts: Vec<Vec<f32>> = (0..terms.div_ceil(PART))
        .into_par_iter()
        .map(|part| {
            let (first, count) = (part * PART, PART.min(terms - part * PART));
            let mut sums = vec![0.0; rows * columns];
            let to = MatMut::from_row_major_slice_mut(&mut sums, rows, columns);
            let (left, right) = (left.subcols(first, count), right.subrows(first, count));
            matmul(to, Accum::Replace, left, right, 1.0, Par::Seq);
            sums
        })
        .collect();
    for row in 0..rows {
        for column in 0..columns {
            let sum: f64 = parts.iter().map(|part| f64::from(part[row * columns + column])).sum();
            let before = match accumulate {
                Accum::Add => out[(row, column)],
                Accum::Replace => 0.0,
            };
            out[(row, column)] = before + sum as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small, cut by rows, cut by columns, with a rest: whole numbers, so that sums are exact.
    #[test]
    fn blocks_are_the_plain_sums() {
        for (rows, inner, columns) in
            [(3, 4, 5), (70, 33, 700), (600, 20, 65), (1, 300, 513), (5, 9001, 7)]
        {
            let numbers = |count: usize, factor: usize| -> Vec<f32> {
                (0..count).map(|i| ((i * factor) % 7) as f32 - 3.0).collect()
            };
            let (left, right) = (numbers(rows * inner, 5), numbers(inner * columns, 3));
            for accumulate in [Accum::Replace, Accum::Add] {
                let mut found = vec![2.0; rows * columns];
                multiply(
                    MatMut::from_row_major_slice_mut(&mut found, rows, columns),
                    accumulate,
                    MatRef::from_row_major_slice(&left, rows, inner),
                    MatRef::from_row_major_slice(&right, inner, columns),
                );
                let start = if matches!(accumulate, Accum::Add) { 2.0 } else { 0.0 };
                for (place, found) in found.iter().enumerate() {
                    let (row, column) = (place / columns, place % columns);
                    let term = |i: usize| left[row * inner + i] * right[i * columns + column];
                    let expected = start + (0..inner).map(term).sum::<f32>();
                    assert_eq!(found.to_bits(), expected.to_bits(), "{row} {column}");
                }
            }
        }
    }
}
