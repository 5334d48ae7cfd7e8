//! Attention of sixteen queries of one head, one query per lane.
//!
//! ```text
//! ℓ_j = s Σ_c k_jc q_c,   w_j = exp(ℓ_j − max ℓ) / Σ …,   o_c = Σ_j w_j v_jc
//! u_j = Σ_c v_jc g_c,   δ_j = s w_j (u_j − Σ w u)
//! ∂q_c = Σ_j δ_j k_jc,   ∂k_jc += δ_j q_c,   ∂v_jc += w_j g_c      the last two per lane
//! ```
//!
//! With one query per lane no sum runs across lanes, whatever the numbers of keys and columns. Numbers
//! per lane are `[…, 16]`; keys and values are rows of which a head reads `depth` columns.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "arithmetic under the contract of `Simd`, pointers as checked by `Kernels`"
)]

use super::super::buffer::LINE;
use super::super::simd::Simd;
use super::activate::exp;
use super::fits;

/// Keys, values and queries of a head.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Head<'a> {
    /// From the head's first column of the first key on.
    pub(in super::super) keys: &'a [f32],
    /// As `keys`.
    pub(in super::super) values: &'a [f32],
    pub(in super::super) num_keys: usize,
    /// From one key to the next.
    pub(in super::super) stride: usize,
    /// Columns of the head.
    pub(in super::super) depth: usize,
    /// s.
    pub(in super::super) scale: f32,
    /// q, `[depth, 16]`.
    pub(in super::super) queries: &'a [f32],
}

impl Head<'_> {
    /// Checks that all rows exist.
    pub(super) fn check(&self) {
        let shorter = self.keys.len().min(self.values.len());
        assert!(fits(self.num_keys, self.depth, self.stride, shorter));
        assert!(self.queries.len() >= self.depth * LINE);
    }
}

#[derive(Debug)]
pub(in super::super) struct Attend<'a> {
    pub(in super::super) head: Head<'a>,
    /// w on return, `[num_keys, 16]`.
    pub(in super::super) weights: &'a mut [f32],
    /// o on return, `[depth, 16]`.
    pub(in super::super) out: &'a mut [f32],
}

#[derive(Debug)]
pub(in super::super) struct AttendBackward<'a> {
    pub(in super::super) head: Head<'a>,
    /// g, `[depth, 16]`.
    pub(in super::super) cotangents: &'a [f32],
    /// Scratch, `[num_keys, 16]`.
    pub(in super::super) weights: &'a mut [f32],
    /// Scratch, `[num_keys, 16]`.
    pub(in super::super) slopes: &'a mut [f32],
    /// ∂q on return, `[depth, 16]`.
    pub(in super::super) of_queries: &'a mut [f32],
    /// ∂k is added to these, `[num_keys, depth, 16]`.
    pub(in super::super) of_keys: &'a mut [f32],
    /// ∂v is added to these, `[num_keys, depth, 16]`.
    pub(in super::super) of_values: &'a mut [f32],
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::attend`.
#[inline(always)]
pub(super) unsafe fn run<S: Simd>(args: Attend<'_>) {
    let Attend { head, weights, out } = args;
    unsafe {
        for lane in (0..LINE).step_by(S::LANES) {
            let weights = weights.as_mut_ptr().add(lane);
            softmax::<S>(&head, lane, weights);
            sums::<S>(&head, head.values, weights, out.as_mut_ptr().add(lane));
        }
    }
}

/// # Safety
///
/// The CPU has `S`, and the sizes were checked by `Kernels::attend_backward`.
#[inline(always)]
pub(super) unsafe fn backward<S: Simd>(args: AttendBackward<'_>) {
    let AttendBackward { head, cotangents, weights, slopes, of_queries, of_keys, of_values } = args;
    unsafe {
        for lane in (0..LINE).step_by(S::LANES) {
            let (weights, slopes) = (weights.as_mut_ptr().add(lane), slopes.as_mut_ptr().add(lane));
            let cotangents = cotangents.as_ptr().add(lane);
            softmax::<S>(&head, lane, weights);
            dots::<S>(&head, head.values, cotangents, slopes);
            let mut mean = S::splat(0.0);
            for j in 0..head.num_keys {
                mean = S::fma(S::load(weights.add(j * LINE)), S::load(slopes.add(j * LINE)), mean);
            }
            let queries = head.queries.as_ptr().add(lane);
            for j in 0..head.num_keys {
                let weight = S::load(weights.add(j * LINE));
                let slope = S::sub(S::load(slopes.add(j * LINE)), mean);
                let change = S::mul(S::mul(S::splat(head.scale), weight), slope);
                S::store(slopes.add(j * LINE), change);
                let place = j * head.depth * LINE + lane;
                let (keys, values) =
                    (of_keys.as_mut_ptr().add(place), of_values.as_mut_ptr().add(place));
                for c in (0..head.depth * LINE).step_by(LINE) {
                    let sum = S::load(keys.add(c));
                    S::store(keys.add(c), S::fma(change, S::load(queries.add(c)), sum));
                    let sum = S::load(values.add(c));
                    S::store(values.add(c), S::fma(weight, S::load(cotangents.add(c)), sum));
                }
            }
            sums::<S>(&head, head.keys, slopes, of_queries.as_mut_ptr().add(lane));
        }
    }
}

/// w of all keys.
#[inline(always)]
unsafe fn softmax<S: Simd>(head: &Head<'_>, lane: usize, weights: *mut f32) {
    unsafe {
        dots::<S>(head, head.keys, head.queries.as_ptr().add(lane), weights);
        let mut largest = S::splat(f32::NEG_INFINITY);
        for j in 0..head.num_keys {
            largest = S::max(largest, S::load(weights.add(j * LINE)));
        }
        let mut sum = S::splat(0.0);
        for j in 0..head.num_keys {
            let below = S::sub(S::load(weights.add(j * LINE)), largest);
            let weight = exp::<S>(S::mul(S::splat(head.scale), below));
            S::store(weights.add(j * LINE), weight);
            sum = S::add(sum, weight);
        }
        let share = S::reciprocal(sum);
        for j in 0..head.num_keys {
            S::store(weights.add(j * LINE), S::mul(share, S::load(weights.add(j * LINE))));
        }
    }
}

/// out_j = Σ_c rows_jc lanes_c.
#[inline(always)]
unsafe fn dots<S: Simd>(head: &Head<'_>, rows: &[f32], lanes: *const f32, out: *mut f32) {
    let mut j = 0;
    unsafe {
        while j + 8 <= head.num_keys {
            some_dots::<S, 8>(head, rows, lanes, out, j);
            j += 8;
        }
        while j < head.num_keys {
            some_dots::<S, 1>(head, rows, lanes, out, j);
            j += 1;
        }
    }
}

/// Several keys at once: their sums do not wait for each other.
#[inline(always)]
unsafe fn some_dots<S: Simd, const KEYS: usize>(
    head: &Head<'_>,
    rows: &[f32],
    lanes: *const f32,
    out: *mut f32,
    first: usize,
) {
    unsafe {
        let rows = rows.as_ptr().add(first * head.stride);
        let mut sums = [S::splat(0.0); KEYS];
        for c in 0..head.depth {
            let lane = S::load(lanes.add(c * LINE));
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = S::fma(S::splat(*rows.add(j * head.stride + c)), lane, *sum);
            }
        }
        for (j, sum) in sums.into_iter().enumerate() {
            S::store(out.add((first + j) * LINE), sum);
        }
    }
}

/// out_c = Σ_j weights_j rows_jc.
#[inline(always)]
unsafe fn sums<S: Simd>(head: &Head<'_>, rows: &[f32], weights: *const f32, out: *mut f32) {
    let mut c = 0;
    unsafe {
        while c + 8 <= head.depth {
            some_sums::<S, 8>(head, rows, weights, out, c);
            c += 8;
        }
        while c < head.depth {
            some_sums::<S, 1>(head, rows, weights, out, c);
            c += 1;
        }
    }
}

/// Several columns at once.
#[inline(always)]
unsafe fn some_sums<S: Simd, const COLUMNS: usize>(
    head: &Head<'_>,
    rows: &[f32],
    weights: *const f32,
    out: *mut f32,
    first: usize,
) {
    unsafe {
        let rows = rows.as_ptr();
        let mut sums = [S::splat(0.0); COLUMNS];
        for j in 0..head.num_keys {
            let weight = S::load(weights.add(j * LINE));
            for (c, sum) in sums.iter_mut().enumerate() {
                *sum = S::fma(weight, S::splat(*rows.add(j * head.stride + first + c)), *sum);
            }
        }
        for (c, sum) in sums.into_iter().enumerate() {
            S::store(out.add((first + c) * LINE), sum);
        }
    }
}
