//! Products with few outputs, as dot products along the rows.
//!
//! ```text
//! out[p, j] = shift[j] + Σ_k inputs[p, k] · weights[j, k]        for j < outputs < 8
//! ```
//!
//! An energy has one output and an element three coordinates: padding those to a whole vector
//! would waste most of it. Lanes run over k instead, and four rows are summed across at once.

use super::super::simd::Simd;

#[derive(Debug)]
pub(in super::super) struct Dots<'a> {
    pub(in super::super) rows: usize,
    pub(in super::super) inputs: &'a [f32],
    pub(in super::super) input_stride: usize,
    /// Terms, a multiple of 16.
    pub(in super::super) depth: usize,
    /// `[outputs, depth]`.
    pub(in super::super) weights: &'a [f32],
    pub(in super::super) outputs: usize,
    /// `[outputs]`.
    pub(in super::super) shift: &'a [f32],
    pub(in super::super) out: &'a mut [f32],
    pub(in super::super) out_stride: usize,
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::dots`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd>(mut args: Dots<'_>) {
    let mut j = 0;
    // SAFETY: outputs j.. exist.
    unsafe {
        while j < args.outputs {
            match args.outputs - j {
                1 => outputs::<S, 1>(&mut args, j),
                2 => outputs::<S, 2>(&mut args, j),
                3 => outputs::<S, 3>(&mut args, j),
                _ => outputs::<S, 4>(&mut args, j),
            }
            j += 4;
        }
    }
}

#[inline(always)]
unsafe fn outputs<S: Simd, const J: usize>(args: &mut Dots<'_>, first_output: usize) {
    const ROWS: usize = 4;
    // SAFETY: rows are padded to a multiple of 24, which 4 divides; the rest as checked.
    unsafe {
        let weights = args.weights.as_ptr().add(first_output * args.depth);
        for first in (0..args.rows).step_by(ROWS) {
            let inputs = args.inputs.as_ptr().add(first * args.input_stride);
            let mut sums = [[S::splat(0.0); ROWS]; J];
            for k in (0..args.depth).step_by(S::LANES) {
                let mut x = [S::splat(0.0); ROWS];
                for (r, lane) in x.iter_mut().enumerate() {
                    *lane = S::load(inputs.add(r * args.input_stride + k));
                }
                for (j, sum) in sums.iter_mut().enumerate() {
                    let w = S::load(weights.add(j * args.depth + k));
                    for (lane, x) in sum.iter_mut().zip(x) {
                        *lane = S::fma(x, w, *lane);
                    }
                }
            }
            for (j, sum) in sums.iter().enumerate() {
                let totals = S::sum4(*sum);
                let shift = *args.shift.get_unchecked(first_output + j);
                for (r, total) in totals.iter().enumerate() {
                    let place = (first + r) * args.out_stride + first_output + j;
                    *args.out.get_unchecked_mut(place) = *total + shift;
                }
            }
        }
    }
}
