//! Windows over sixteen channels of a picture with a border of zeros: a line of sixteen numbers per
//! place.
//!
//! ```text
//! out[i, j] = Σ_ab w[a, b] plane[s i + a, s j + b]          plane[s i + a, s j + b] += w[a, b] from[i, j]
//! sums[a, b] += Σ_ij from[i, j] plane[s i + a, s j + b]
//! ```

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "arithmetic under the contract of `Simd`, pointers as checked by `Kernels`"
)]

use super::super::buffer::LINE;
use super::super::simd::Simd;

/// Where windows lie. Lengths are in lines.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Layout {
    /// Of a row of the plane, with its borders.
    pub(in super::super) plane_width: usize,
    /// k.
    pub(in super::super) side: usize,
    /// s.
    pub(in super::super) stride: usize,
    /// Rows of windows.
    pub(in super::super) rows: usize,
    /// Windows of a row.
    pub(in super::super) columns: usize,
}

impl Layout {
    /// Lines of the plane that windows reach.
    fn reach(&self) -> usize {
        let Self { plane_width, side, stride, rows, columns } = *self;
        ((rows - 1) * stride + side - 1) * plane_width + (columns - 1) * stride + side
    }

    /// Checks that there are windows, and lines for all they read or write.
    pub(super) fn check(&self, plane: &[f32], each: &[f32], windows: &[f32]) {
        assert!(self.rows > 0 && self.columns > 0 && self.side > 0);
        assert!(self.reach() * LINE <= plane.len());
        assert!(self.rows * self.columns * LINE <= each.len());
        assert!(self.side * self.side * LINE <= windows.len());
    }
}

#[derive(Debug)]
pub(in super::super) struct Convolve<'a> {
    pub(in super::super) layout: Layout,
    pub(in super::super) plane: &'a [f32],
    /// `[k², 16]`.
    pub(in super::super) weights: &'a [f32],
    /// `[rows, columns, 16]` on return.
    pub(in super::super) out: &'a mut [f32],
}

#[derive(Debug)]
pub(in super::super) struct ConvolveTransposed<'a> {
    pub(in super::super) layout: Layout,
    /// `[rows, columns, 16]`.
    pub(in super::super) from: &'a [f32],
    /// `[k², 16]`.
    pub(in super::super) weights: &'a [f32],
    /// What windows put there is added.
    pub(in super::super) plane: &'a mut [f32],
}

#[derive(Debug)]
pub(in super::super) struct ConvolveWeights<'a> {
    pub(in super::super) layout: Layout,
    pub(in super::super) plane: &'a [f32],
    /// `[rows, columns, 16]`.
    pub(in super::super) from: &'a [f32],
    /// `[k², 16]` on return.
    pub(in super::super) sums: &'a mut [f32],
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::convolve`.
#[inline(always)]
pub(super) unsafe fn convolve<S: Simd>(args: Convolve<'_>) {
    let Convolve { layout, plane, weights, out } = args;
    unsafe {
        for lane in (0..LINE).step_by(S::LANES) {
            let (plane, weights) = (plane.as_ptr().add(lane), weights.as_ptr().add(lane));
            for row in 0..layout.rows {
                let from = plane.add(row * layout.stride * layout.plane_width * LINE);
                let to = out.as_mut_ptr().add(row * layout.columns * LINE + lane);
                let mut column = 0;
                while column + 4 <= layout.columns {
                    let from = from.add(column * layout.stride * LINE);
                    some_windows::<S, 4>(&layout, from, weights, to.add(column * LINE));
                    column += 4;
                }
                while column < layout.columns {
                    let from = from.add(column * layout.stride * LINE);
                    some_windows::<S, 1>(&layout, from, weights, to.add(column * LINE));
                    column += 1;
                }
            }
        }
    }
}

/// Several windows at once: their sums do not wait for each other, and share the weights.
#[inline(always)]
unsafe fn some_windows<S: Simd, const WINDOWS: usize>(
    layout: &Layout,
    from: *const f32,
    weights: *const f32,
    to: *mut f32,
) {
    unsafe {
        let mut sums = [S::splat(0.0); WINDOWS];
        for down in 0..layout.side {
            let from = from.add(down * layout.plane_width * LINE);
            let weights = weights.add(down * layout.side * LINE);
            for across in 0..layout.side {
                let weight = S::load(weights.add(across * LINE));
                for (window, sum) in sums.iter_mut().enumerate() {
                    let x = S::load(from.add((window * layout.stride + across) * LINE));
                    *sum = S::fma(weight, x, *sum);
                }
            }
        }
        for (window, sum) in sums.into_iter().enumerate() {
            S::store(to.add(window * LINE), sum);
        }
    }
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::convolve_transposed`.
#[inline(always)]
pub(super) unsafe fn convolve_transposed<S: Simd>(args: ConvolveTransposed<'_>) {
    let ConvolveTransposed { layout, from, weights, plane } = args;
    let Layout { plane_width, side, stride, rows, columns } = layout;
    unsafe {
        for lane in (0..LINE).step_by(S::LANES) {
            let weights = weights.as_ptr().add(lane);
            for window in 0..rows * columns {
                let own = S::load(from.as_ptr().add(window * LINE + lane));
                let start = window / columns * stride * plane_width + window % columns * stride;
                for down in 0..side {
                    let to = plane.as_mut_ptr().add((start + down * plane_width) * LINE + lane);
                    for across in 0..side {
                        let to = to.add(across * LINE);
                        let weight = S::load(weights.add((down * side + across) * LINE));
                        S::store(to, S::fma(weight, own, S::load(to)));
                    }
                }
            }
        }
    }
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::convolve_weights`.
#[inline(always)]
pub(super) unsafe fn convolve_weights<S: Simd>(args: ConvolveWeights<'_>) {
    let ConvolveWeights { layout, plane, from, sums } = args;
    unsafe {
        for lane in (0..LINE).step_by(S::LANES) {
            let (plane, from) = (plane.as_ptr().add(lane), from.as_ptr().add(lane));
            for down in 0..layout.side {
                let plane = plane.add(down * layout.plane_width * LINE);
                let sums = sums.as_mut_ptr().add(down * layout.side * LINE + lane);
                let mut across = 0;
                while across < layout.side {
                    let (plane, sums) = (plane.add(across * LINE), sums.add(across * LINE));
                    // Several numbers of a window at once: their sums do not wait for each other.
                    across += match layout.side - across {
                        1 | 2 => some_sums::<S, 1>(&layout, plane, from, sums),
                        3 | 4 => some_sums::<S, 3>(&layout, plane, from, sums),
                        5 | 6 => some_sums::<S, 5>(&layout, plane, from, sums),
                        _ => some_sums::<S, 7>(&layout, plane, from, sums),
                    };
                }
            }
        }
    }
}

/// `NUMBERS` of a row of the windows; how many they are.
#[inline(always)]
unsafe fn some_sums<S: Simd, const NUMBERS: usize>(
    layout: &Layout,
    plane: *const f32,
    from: *const f32,
    to: *mut f32,
) -> usize {
    unsafe {
        let mut sums = [S::splat(0.0); NUMBERS];
        for row in 0..layout.rows {
            let plane = plane.add(row * layout.stride * layout.plane_width * LINE);
            let from = from.add(row * layout.columns * LINE);
            for column in 0..layout.columns {
                let own = S::load(from.add(column * LINE));
                let near = plane.add(column * layout.stride * LINE);
                for (number, sum) in sums.iter_mut().enumerate() {
                    *sum = S::fma(own, S::load(near.add(number * LINE)), *sum);
                }
            }
        }
        for (number, sum) in sums.into_iter().enumerate() {
            S::store(to.add(number * LINE), sum);
        }
    }
    NUMBERS
}
