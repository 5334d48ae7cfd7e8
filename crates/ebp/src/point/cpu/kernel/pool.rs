//! Running maxima over the rows of a set, with the row that attains each.

use super::super::simd::Simd;

#[derive(Debug)]
pub(in super::super) struct MaxPool<'a> {
    pub(in super::super) rows: usize,
    pub(in super::super) from: &'a [f32],
    pub(in super::super) stride: usize,
    /// Columns, a multiple of 16.
    pub(in super::super) width: usize,
    /// The number of the first row, exact as f32.
    pub(in super::super) first: f32,
    /// The largest so far, `[width]`.
    pub(in super::super) best: &'a mut [f32],
    /// The number of the row that attains it.
    pub(in super::super) argument: &'a mut [f32],
    /// Σ 0·z: NaN once any z was NaN or infinite, which comparisons alone would hide.
    pub(in super::super) poison: &'a mut [f32],
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::max_pool`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd>(args: &mut MaxPool<'_>) {
    // SAFETY: `width` is a multiple of LANES and rows exist as checked.
    unsafe {
        for column in (0..args.width).step_by(S::LANES) {
            let best_at = args.best.as_mut_ptr().add(column);
            let argument_at = args.argument.as_mut_ptr().add(column);
            let poison_at = args.poison.as_mut_ptr().add(column);
            let mut best = S::load(best_at);
            let mut argument = S::load(argument_at);
            let mut poison = S::load(poison_at);
            for row in 0..args.rows {
                let z = S::load(args.from.as_ptr().add(row * args.stride + column));
                let number = S::splat(args.first + row as f32);
                // Strictly greater: the first row wins a tie.
                argument = S::select_gt(z, best, number, argument);
                best = S::select_gt(z, best, z, best);
                poison = S::fma(z, S::splat(0.0), poison);
            }
            S::store(best_at, best);
            S::store(argument_at, argument);
            S::store(poison_at, poison);
        }
    }
}
