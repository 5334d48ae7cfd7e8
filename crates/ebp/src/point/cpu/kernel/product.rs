//! The matrix product of a tile of rows with packed weights: where the time goes.
//!
//! ```text
//! out[p, j] = start[p, j] + Σ_k inputs[p, k] · weights[k, j]
//! ```
//!
//! Rows are elements, vector lanes run over the outputs j. A block of M rows × NV registers stays
//! in registers over the whole sum (24 accumulators of AVX-512's 32 registers), so every weight
//! loaded serves M rows and every input NV vectors.

use super::super::simd::Simd;

/// Weights `[depth, width]`, cut into panels of `PANEL · LANES` columns, each panel contiguous
/// row by row. The last panel may be narrower, a multiple of 16 columns.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Panels<'a> {
    pub(in super::super) data: &'a [f32],
    /// Columns, a multiple of 16.
    pub(in super::super) width: usize,
    /// Rows that were packed.
    pub(in super::super) depth: usize,
    /// The first row to use.
    pub(in super::super) skip: usize,
}

/// Where the sum starts.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Start<'a> {
    Zero,
    /// Row `rows[p]` of a table of rows `stride` apart.
    Shift {
        table: &'a [f32],
        stride: usize,
        rows: &'a [u32],
    },
}

/// Where the sum goes.
#[derive(Debug)]
pub(in super::super) enum Finish<'a> {
    /// out = sum.
    Store(&'a mut [f32]),
    /// out = out · sum: a gradient meets the slope that is stored in its place.
    Multiply(&'a mut [f32]),
    /// out = sum where it is positive, else leak · sum: ReLU without another pass.
    Rectify { out: &'a mut [f32], leak: f32 },
    /// out = sum where the rectified `values` are positive, else leak · sum: its backward pass,
    /// which needs no stored slopes.
    Gate { values: &'a [f32], out: &'a mut [f32], leak: f32 },
}

impl Finish<'_> {
    pub(super) fn out_length(&self) -> usize {
        match self {
            Self::Store(out) | Self::Multiply(out) | Self::Rectify { out, .. } => out.len(),
            Self::Gate { values, out, .. } => out.len().min(values.len()),
        }
    }
}

#[derive(Debug)]
pub(in super::super) struct Product<'a> {
    pub(in super::super) rows: usize,
    pub(in super::super) inputs: &'a [f32],
    pub(in super::super) input_stride: usize,
    /// Terms of the sum: weight rows `skip..skip + depth`.
    pub(in super::super) depth: usize,
    pub(in super::super) panels: Panels<'a>,
    pub(in super::super) start: Start<'a>,
    pub(in super::super) finish: Finish<'a>,
    pub(in super::super) out_stride: usize,
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::product`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd>(mut args: Product<'_>) {
    let panel_width = S::PANEL * S::LANES;
    let mut column = 0;
    while column < args.panels.width {
        let width = panel_width.min(args.panels.width - column);
        // SAFETY: columns column..column + width exist; see the caller.
        unsafe {
            match (S::LANES, width / S::LANES) {
                (16, 4) => panel::<S, 6, 4>(&mut args, column),
                (16, 3) => panel::<S, 8, 3>(&mut args, column),
                (16, 2) => panel::<S, 12, 2>(&mut args, column),
                (16, _) => panel::<S, 24, 1>(&mut args, column),
                (8, _) => panel::<S, 6, 2>(&mut args, column),
                _ => panel::<S, 2, 4>(&mut args, column),
            }
        }
        column += width;
    }
}

/// All rows of the columns `column..column + NV·LANES`.
#[inline(always)]
unsafe fn panel<S: Simd, const M: usize, const NV: usize>(args: &mut Product<'_>, column: usize) {
    let Panels { data, depth: packed_depth, skip, .. } = args.panels;
    // SAFETY: rows are padded to a multiple of 24, which M divides; the rest as checked.
    unsafe {
        let weights = data.as_ptr().add(packed_depth * column + skip * NV * S::LANES);
        for first in (0..args.rows).step_by(M) {
            let mut sums = match args.start {
                Start::Zero => [[S::splat(0.0); NV]; M],
                Start::Shift { table, stride, rows } => {
                    let mut sums = [[S::splat(0.0); NV]; M];
                    for (r, sum) in sums.iter_mut().enumerate() {
                        let row = *rows.get_unchecked(first + r) as usize;
                        let from = table.as_ptr().add(row * stride + column);
                        for (v, lane) in sum.iter_mut().enumerate() {
                            *lane = S::load(from.add(v * S::LANES));
                        }
                    }
                    sums
                }
            };
            let inputs = args.inputs.as_ptr().add(first * args.input_stride);
            accumulate::<S, M, NV>(&mut sums, inputs, args.input_stride, weights, args.depth);
            let offset = first * args.out_stride + column;
            // One loop per way to finish, so that the choice is made once per block.
            macro_rules! finish {
                ($out:expr, |$place:ident, $i:ident, $sum:ident| $value:expr) => {{
                    let out = $out.as_mut_ptr();
                    for (r, sum) in sums.iter().enumerate() {
                        for (v, lane) in sum.iter().enumerate() {
                            let $i = offset + r * args.out_stride + v * S::LANES;
                            let ($place, $sum) = (out.add($i), *lane);
                            S::store($place, $value);
                        }
                    }
                }};
            }
            let zero = S::splat(0.0);
            match &mut args.finish {
                Finish::Store(out) => finish!(out, |_place, _i, sum| sum),
                Finish::Multiply(out) => {
                    finish!(out, |place, _i, sum| S::mul(S::load(place), sum));
                }
                Finish::Rectify { out, leak: 0.0 } => {
                    finish!(out, |_place, _i, sum| S::max(zero, sum));
                }
                Finish::Rectify { out, leak } => {
                    let leak = S::splat(*leak);
                    finish!(out, |_place, _i, sum| {
                        S::select_gt(sum, zero, sum, S::mul(leak, sum))
                    });
                }
                Finish::Gate { values, out, leak } => {
                    let (values, leak) = (values.as_ptr(), S::splat(*leak));
                    finish!(out, |_place, i, sum| {
                        S::select_gt(S::load(values.add(i)), zero, sum, S::mul(leak, sum))
                    });
                }
            }
        }
    }
}

/// Adds Σ_k inputs\[r, k\] · weights\[k, v\] to the sum of row r and vector v.
#[inline(always)]
unsafe fn accumulate<S: Simd, const M: usize, const NV: usize>(
    sums: &mut [[S::V; NV]; M],
    inputs: *const f32,
    stride: usize,
    weights: *const f32,
    depth: usize,
) {
    // A local copy, so that the compiler keeps it in registers.
    let mut local = *sums;
    // SAFETY: the caller's pointers cover M rows and `depth` weight rows.
    unsafe {
        for k in 0..depth {
            let row = weights.add(k * NV * S::LANES);
            let mut w = [S::splat(0.0); NV];
            for (v, lane) in w.iter_mut().enumerate() {
                *lane = S::load(row.add(v * S::LANES));
            }
            for (r, sum) in local.iter_mut().enumerate() {
                let x = S::splat(*inputs.add(r * stride + k));
                for (lane, w) in sum.iter_mut().zip(w) {
                    *lane = S::fma(x, w, *lane);
                }
            }
        }
    }
    *sums = local;
}
