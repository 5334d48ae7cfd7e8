//! The annealed soft matching of Fan, Su and Guibas (2017), by which PointFlow and most papers after
//! it measure the earth mover's distance. It is not the distance: it is 20 to 50 % above it.
//!
//! Every x has the mass L, every y room R. At each level λ = 4⁷, 4⁶, …, 4⁻¹:
//!
//! ```text
//! K_ij = exp(−λ ‖x_i − y_j‖²)
//! a_i  = L_i / (Σ_j K_ij R_j + 10⁻⁹)
//! s_j  = R_j Σ_i a_i K_ij,    b_j = R_j min(R_j / (s_j + 10⁻⁹), 1),    R_j ← max(R_j − s_j, 0)
//! W_ij = K_ij a_i b_j,        L_i ← max(L_i − Σ_j W_ij, 0)
//! ```
//!
//! and the result is Σ W_ij ‖x_i − y_j‖ over all levels, divided by the number of points. What is
//! left after the last level stays unmatched. The levels are lengths: scaling both clouds does not
//! scale the result. For n ≠ m the smaller cloud has max(n, m)/min(n, m) per point and the divisor
//! is max(n, m).
//!
//! The last step of a level and the first of the next are done in one sweep over the pairs, because
//! the one kernel is the fourth power of the other: one exponential per pair and level. Pairs so
//! far apart that K is nothing are left out block by block. As in the original, coordinates, K, a, b and
//! W are f32; masses and sums over rows are f64. For coordinates that are f32 numbers the result agrees
//! with f64 throughout to 10⁻⁶ nearly always. Where all mass is matched, what is left over is rounding
//! that the floor of 10⁻⁹ lets go anywhere: 10⁻⁴ has been seen. Other coordinates are rounded: where
//! e^{−λd²} matters at λ = 4⁷, 10⁻⁷ changes the exponent by 10⁻⁴.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::cast_possible_truncation, reason = "what is f32 in the original is rounded to it")]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use crate::point::cpu::vectorise::VectorLoop;

use super::arranged::{ArrangedCloud, BOXES, LANES};
use super::exponential::exponential_f32;
use super::search::{Searcher, squared_box_distances};

/// λ = 4⁷ … 4⁻¹.
const LEVELS: [f32; 9] = [16384.0, 4096.0, 1024.0, 256.0, 64.0, 16.0, 4.0, 1.0, 0.25];
/// What keeps the divisions finite; part of the definition.
const FLOOR: f64 = 1e-9;
/// Smaller exponents are left out: e⁻⁶⁰ = 10⁻²⁶, and with ratios of at most 10⁹ what is left out
/// stays below 10⁻¹⁷ of a point's mass.
const LEAST_EXPONENT: f64 = -60.0;

/// What the matching costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// ‖x − y‖.
    Distance,
    /// ‖x − y‖².
    Squared,
}

/// The mean cost of the matching.
pub(super) fn mean(x: &ArrangedCloud, y: &ArrangedCloud, cost: Cost) -> f64 {
    let largest = x.len().max(y.len()) as f64;
    let searcher = Searcher::new();
    let width = y.num_blocks() * LANES;
    let mut room = vec![0.0; width];
    room[..y.len()].fill(largest / y.len() as f64);
    let mut state = State {
        mass: vec![largest / x.len() as f64; x.len()],
        room_f32: room.iter().map(|&room| room as f32).collect(),
        room,
        row_ratio: vec![0.0; x.len()],
        column_ratio: vec![0.0; width],
        taken: vec![0.0; width],
        row: vec![0.0; width],
        lanes: (0..y.num_blocks())
            .flat_map(|block| y.block(block).as_flattened())
            .map(|&c| c as f32)
            .collect(),
        cost: 0.0,
    };
    for number in 0..=LEVELS.len() {
        searcher.run(Sweep { x, y, number, cost, state: &mut state });
        state.share();
    }
    state.cost / largest
}

#[derive(Debug)]
struct State {
    /// L.
    mass: Vec<f64>,
    /// R; 0 on lanes after the last point.
    room: Vec<f64>,
    room_f32: Vec<f32>,
    /// a of the last level.
    row_ratio: Vec<f64>,
    /// b of the last level.
    column_ratio: Vec<f32>,
    /// Σ_i a_i K_ij of this level.
    taken: Vec<f64>,
    /// One row of K.
    row: Vec<f32>,
    /// Coordinates of y, `[block][axis][lane]`.
    lanes: Vec<f32>,
    cost: f64,
}

impl State {
    /// From Σ_i a_i K_ij to b and R.
    fn share(&mut self) {
        for slot in 0..self.room.len() {
            let room = self.room[slot];
            let s = self.taken[slot] * room;
            self.column_ratio[slot] = ((room / (s + FLOOR)).min(1.0) * room) as f32;
            self.room[slot] = (room - s).max(0.0);
            self.room_f32[slot] = self.room[slot] as f32;
            self.taken[slot] = 0.0;
        }
    }
}

/// One pass over all pairs: the end of level `number` − 1 and the beginning of level `number`.
struct Sweep<'a> {
    x: &'a ArrangedCloud,
    y: &'a ArrangedCloud,
    number: usize,
    cost: Cost,
    state: &'a mut State,
}

impl VectorLoop for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if self.y.dim() == 3 {
            self.sweep(3);
        } else {
            let dim = self.y.dim();
            self.sweep(dim);
        }
    }
}

impl Sweep<'_> {
    #[inline(always)]
    fn sweep(self, dim: usize) {
        let Self { x, y, number, cost, state } = self;
        // After the last level only its end is left to do.
        let is_end = number == LEVELS.len();
        let level = if is_end { LEVELS[number - 1] } else { LEVELS[number] };
        let farthest = -LEAST_EXPONENT / f64::from(level);
        for index in 0..x.len() {
            let point = x.point(index);
            let (mut matched, mut paid, mut reach) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for group in 0..y.num_blocks().div_ceil(BOXES) {
                let boxes = squared_box_distances(dim, point, y.boxes(group));
                for block in group * BOXES..((group + 1) * BOXES).min(y.num_blocks()) {
                    let row = &mut state.row.as_chunks_mut::<LANES>().0[block];
                    let nearest = boxes[block % BOXES];
                    if nearest > farthest {
                        *row = [0.0; LANES];
                        continue;
                    }
                    let lanes = &state.lanes.as_chunks::<LANES>().0[block * dim..(block + 1) * dim];
                    let squared = squared_distances(dim, point, lanes);
                    let mut exponents = [0.0; LANES];
                    for lane in 0..LANES {
                        exponents[lane] = -level * squared[lane];
                    }
                    let kernel = exponential_f32(&exponents);
                    // K of the level before is K⁴ of this one.
                    if number > 0 && (is_end || 4.0 * nearest < farthest) {
                        let ratio = &state.column_ratio.as_chunks::<LANES>().0[block];
                        for lane in 0..LANES {
                            let square = kernel[lane] * kernel[lane];
                            let before = if is_end { kernel[lane] } else { square * square };
                            let weight = before * ratio[lane];
                            matched[lane] += weight;
                            let length = match cost {
                                Cost::Distance => squared[lane].sqrt(),
                                Cost::Squared => squared[lane],
                            };
                            paid[lane] += weight * length;
                        }
                    }
                    let room = &state.room_f32.as_chunks::<LANES>().0[block];
                    for lane in 0..LANES {
                        reach[lane] += kernel[lane] * room[lane];
                    }
                    *row = kernel;
                }
            }
            let ratio = state.row_ratio[index];
            state.cost += ratio * total(&paid);
            state.mass[index] = (state.mass[index] - ratio * total(&matched)).max(0.0);
            let ratio = state.mass[index] / (total(&reach) + FLOOR);
            state.row_ratio[index] = ratio;
            if is_end || ratio == 0.0 {
                continue;
            }
            for (taken, &kernel) in state.taken.iter_mut().zip(&state.row) {
                *taken += ratio * f64::from(kernel);
            }
        }
    }
}

/// Σ_axis (x − y)² for the points of a block.
#[inline(always)]
fn squared_distances(dim: usize, x: &[f64], block: &[[f32; LANES]]) -> [f32; LANES] {
    let mut sums = [0.0; LANES];
    for (&x, lanes) in x[..dim].iter().zip(&block[..dim]) {
        for lane in 0..LANES {
            let difference = lanes[lane] - x as f32;
            sums[lane] += difference * difference;
        }
    }
    sums
}

/// The sum of the lanes, by halving.
#[inline(always)]
fn total(lanes: &[f32; LANES]) -> f64 {
    let mut sums = lanes.map(f64::from);
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}
