//! Nearest neighbours by looking at every pair once, for both clouds at the same time.
//!
//! A few points of x meet a block of y: their distances lower the minima of the points of x, which
//! stay in registers, and those of the block, which stay in the cache. No branch depends on data.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]
#![allow(clippy::needless_range_loop, reason = "lanes run through several arrays at once")]

use crate::point::cpu::vectorise::VectorLoop;

use super::arranged::{ArrangedCloud, LANES};
use super::search::{minimum, squared_distances};

/// Points of x that meet a block together.
const QUERIES: usize = 4;

/// The squared distance from every point to the nearest one of the other cloud.
pub(super) struct BruteForce<'a> {
    pub(super) x: &'a ArrangedCloud,
    pub(super) y: &'a ArrangedCloud,
    /// One per point of `x`.
    pub(super) from_x: &'a mut [f64],
    /// One per point of `y`.
    pub(super) from_y: &'a mut [f64],
}

impl VectorLoop for BruteForce<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // The compiler unrolls the loops over axes where it knows their number.
        match self.x.dim() {
            2 => self.find(2),
            3 => self.find(3),
            dim => self.find(dim),
        }
    }
}

impl BruteForce<'_> {
    #[inline(always)]
    fn find(self, dim: usize) {
        let mut columns = vec![[f64::INFINITY; LANES]; self.y.num_blocks()];
        for (group, out) in self.from_x.chunks_mut(QUERIES).enumerate() {
            // Places after the last point repeat it.
            let point =
                |query: usize| &self.x.point(group * QUERIES + query.min(out.len() - 1))[..dim];
            let queries: [&[f64]; QUERIES] = std::array::from_fn(point);
            let mut rows = [[f64::INFINITY; LANES]; QUERIES];
            for (block, column) in columns.iter_mut().enumerate() {
                let block = self.y.block(block);
                let mut least = *column;
                for query in 0..QUERIES {
                    let squared = squared_distances(dim, queries[query], block);
                    lower(&mut rows[query], &squared);
                    lower(&mut least, &squared);
                }
                *column = least;
            }
            for (out, row) in out.iter_mut().zip(&rows) {
                *out = minimum(row);
            }
        }
        self.from_y.copy_from_slice(&columns.as_flattened()[..self.y.len()]);
    }
}

/// The smaller of both, lane by lane.
#[inline(always)]
fn lower(least: &mut [f64; LANES], values: &[f64; LANES]) {
    for lane in 0..LANES {
        least[lane] = if values[lane] < least[lane] { values[lane] } else { least[lane] };
    }
}
