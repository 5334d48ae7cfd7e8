//! Gradients of weights and shifts: sums over the rows of a tile.
//!
//! ```text
//! gradient[i, j] += Σ_p left[p, i] · right[p, j]        (weights: an outer product per element)
//! gradient[s, j] += Σ_{p in set s} right[p, j]          (shifts)
//! ```

use super::super::simd::Simd;

#[derive(Debug)]
pub(in super::super) struct Outer<'a> {
    pub(in super::super) rows: usize,
    pub(in super::super) left: &'a [f32],
    pub(in super::super) left_stride: usize,
    /// Columns of `left` to use.
    pub(in super::super) left_width: usize,
    pub(in super::super) right: &'a [f32],
    pub(in super::super) right_stride: usize,
    /// Columns of `right`, a multiple of 16.
    pub(in super::super) right_width: usize,
    /// `[left_width, right_width]`, rows `gradient_stride` apart.
    pub(in super::super) gradient: &'a mut [f32],
    pub(in super::super) gradient_stride: usize,
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::outer`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd>(mut args: Outer<'_>) {
    let panel_width = S::PANEL * S::LANES;
    let mut column = 0;
    while column < args.right_width {
        let width = panel_width.min(args.right_width - column);
        // SAFETY: columns column..column + width exist; see the caller.
        unsafe {
            match (S::LANES, width / S::LANES) {
                (16, 4) => columns::<S, 6, 4>(&mut args, column),
                (16, 3) => columns::<S, 8, 3>(&mut args, column),
                (16, 2) => columns::<S, 12, 2>(&mut args, column),
                (16, _) => columns::<S, 12, 1>(&mut args, column),
                (8, _) => columns::<S, 6, 2>(&mut args, column),
                _ => columns::<S, 2, 4>(&mut args, column),
            }
        }
        column += width;
    }
}

#[inline(always)]
unsafe fn columns<S: Simd, const M: usize, const NV: usize>(args: &mut Outer<'_>, column: usize) {
    let mut i = 0;
    // SAFETY: i + M ≤ left_width; the rest as checked by the caller.
    unsafe {
        while i + M <= args.left_width {
            block::<S, M, NV>(args, i, column);
            i += M;
        }
        while i + 3 <= args.left_width {
            block::<S, 3, NV>(args, i, column);
            i += 3;
        }
        match args.left_width - i {
            2 => block::<S, 2, NV>(args, i, column),
            1 => block::<S, 1, NV>(args, i, column),
            _ => {}
        }
    }
}

#[inline(always)]
unsafe fn block<S: Simd, const M: usize, const NV: usize>(
    args: &mut Outer<'_>,
    i: usize,
    column: usize,
) {
    // SAFETY: the block lies inside `gradient`, the rows inside `left` and `right`.
    unsafe {
        let gradient = args.gradient.as_mut_ptr().add(i * args.gradient_stride + column);
        let left = args.left.as_ptr().add(i);
        let right = args.right.as_ptr().add(column);
        let mut sums = [[S::splat(0.0); NV]; M];
        for (r, sum) in sums.iter_mut().enumerate() {
            for (v, lane) in sum.iter_mut().enumerate() {
                *lane = S::load(gradient.add(r * args.gradient_stride + v * S::LANES));
            }
        }
        for p in 0..args.rows {
            let row = right.add(p * args.right_stride);
            let mut y = [S::splat(0.0); NV];
            for (v, lane) in y.iter_mut().enumerate() {
                *lane = S::load(row.add(v * S::LANES));
            }
            let factors = left.add(p * args.left_stride);
            for (r, sum) in sums.iter_mut().enumerate() {
                let x = S::splat(*factors.add(r));
                for (lane, y) in sum.iter_mut().zip(y) {
                    *lane = S::fma(x, y, *lane);
                }
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            for (v, lane) in sum.iter().enumerate() {
                S::store(gradient.add(r * args.gradient_stride + v * S::LANES), *lane);
            }
        }
    }
}

#[derive(Debug)]
pub(in super::super) struct RowSum<'a> {
    pub(in super::super) rows: usize,
    pub(in super::super) from: &'a [f32],
    pub(in super::super) stride: usize,
    /// Columns, a multiple of 16.
    pub(in super::super) width: usize,
    pub(in super::super) into: &'a mut [f32],
}

/// into\[j\] += Σ_p from\[p, j\]
///
/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::row_sum`.
#[inline(always)]
pub(super) unsafe fn row_sum<S: Simd>(mut args: RowSum<'_>) {
    let mut column = 0;
    // SAFETY: `width` is a multiple of 16 and so of LANES; rows exist as checked.
    unsafe {
        while column < args.width {
            let vectors = (args.width - column) / S::LANES;
            match vectors {
                1 => row_sum_columns::<S, 1>(&mut args, column),
                2 | 3 => row_sum_columns::<S, 2>(&mut args, column),
                _ => row_sum_columns::<S, 4>(&mut args, column),
            }
            column += S::LANES * if vectors >= 4 { 4 } else { vectors.min(2) };
        }
    }
}

#[inline(always)]
unsafe fn row_sum_columns<S: Simd, const NV: usize>(args: &mut RowSum<'_>, column: usize) {
    // SAFETY: NV vectors from `column` on exist in every row.
    unsafe {
        let into = args.into.as_mut_ptr().add(column);
        let from = args.from.as_ptr().add(column);
        let mut sums = [S::splat(0.0); NV];
        for p in 0..args.rows {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = S::add(*sum, S::load(from.add(p * args.stride + v * S::LANES)));
            }
        }
        for (v, sum) in sums.iter().enumerate() {
            let place = into.add(v * S::LANES);
            S::store(place, S::add(S::load(place), *sum));
        }
    }
}
