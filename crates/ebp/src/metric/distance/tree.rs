//! Nearest neighbours by the tree of boxes: what lies farther than the best so far needs no look.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use crate::point::cpu::vectorise::VectorLoop;

use super::arranged::{ArrangedCloud, BOXES};
use super::search::{minimum, squared_box_distances, squared_distances};

/// Levels of 2³² points: 16 in a block, then eightfold.
const MOST_LEVELS: usize = 10;

/// The squared distance from every point of `from` to its nearest point of `to`.
pub(super) struct TreeSearch<'a> {
    pub(super) from: &'a ArrangedCloud,
    pub(super) to: &'a ArrangedCloud,
    /// One per point of `from`.
    pub(super) squared: &'a mut [f64],
}

impl VectorLoop for TreeSearch<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // The compiler unrolls the loops over axes where it knows their number.
        match self.to.dim() {
            2 => self.find(2),
            3 => self.find(3),
            dim => self.find(dim),
        }
    }
}

impl TreeSearch<'_> {
    #[inline(always)]
    fn find(self, dim: usize) {
        // Neighbours in space follow each other: what was near the last point is near this one.
        let mut hint = 0;
        for (slot, out) in self.squared.iter_mut().enumerate() {
            (*out, hint) = nearest(dim, self.from.point(slot), self.to, hint);
        }
    }
}

/// The squared distance to the nearest point, and the block it stands in.
#[inline(always)]
fn nearest(dim: usize, x: &[f64], cloud: &ArrangedCloud, hint: usize) -> (f64, usize) {
    let mut best = minimum(&squared_distances(dim, x, cloud.block(hint)));
    let mut place = hint;
    let levels = cloud.levels();
    let top = levels.len() - 1;
    // Of each level on the way down: the open group, its distances, and the next box to open.
    let mut groups = [0; MOST_LEVELS];
    let mut squared = [[f64::INFINITY; BOXES]; MOST_LEVELS];
    let mut next = [0; MOST_LEVELS];
    let mut level = top;
    squared[top] = squared_box_distances(dim, x, levels[top].group(0));
    loop {
        let near = (next[level]..BOXES).find(|&lane| squared[level][lane] < best);
        let Some(lane) = near else {
            if level == top {
                return (best, place);
            }
            level += 1;
            continue;
        };
        next[level] = lane + 1;
        let opened = groups[level] * BOXES + lane;
        if level == 0 {
            let least = minimum(&squared_distances(dim, x, cloud.block(opened)));
            if least < best {
                (best, place) = (least, opened);
            }
        } else {
            level -= 1;
            groups[level] = opened;
            squared[level] = squared_box_distances(dim, x, levels[level].group(opened));
            next[level] = 0;
        }
    }
}
