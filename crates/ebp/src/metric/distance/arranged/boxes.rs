//! Boxes around blocks of points, and boxes around groups of boxes: an 8-ary tree without pointers.
//!
//! Box b of a level holds the boxes 8 b … 8 b + 7 of the level below, which are tested at once.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

/// Boxes that are tested at once.
pub(in super::super) const BOXES: usize = 8;

/// Lower and upper ends `[axis][box]` of a group of boxes.
pub(in super::super) type BoxEnds<'a> = (&'a [[f64; BOXES]], &'a [[f64; BOXES]]);

/// The boxes of one level.
#[derive(Clone, Debug)]
pub(in super::super) struct Boxes {
    dim: usize,
    count: usize,
    /// `[group][axis][BOXES]`: the least coordinate; +∞ where there is no box.
    low: Vec<f64>,
    /// The same for the largest coordinate, +∞ again, so that what is absent is far away.
    high: Vec<f64>,
}

impl Boxes {
    /// Room for boxes, none of them there yet.
    pub(super) fn absent(dim: usize, count: usize) -> Self {
        let ends = vec![f64::INFINITY; count.div_ceil(BOXES) * dim * BOXES];
        Self { dim, count, low: ends.clone(), high: ends }
    }

    pub(super) fn set(&mut self, number: usize, axis: usize, low: f64, high: f64) {
        let place = (number / BOXES * self.dim + axis) * BOXES + number % BOXES;
        (self.low[place], self.high[place]) = (low, high);
    }

    /// The boxes around the groups of these; `None` if there is only one group.
    pub(super) fn above(&self) -> Option<Self> {
        let num_groups = self.count.div_ceil(BOXES);
        if num_groups == 1 {
            return None;
        }
        let mut above = Self::absent(self.dim, num_groups);
        for group in 0..num_groups {
            let present = BOXES.min(self.count - group * BOXES);
            let (low, high) = self.group(group);
            for axis in 0..self.dim {
                let least = low[axis][..present].iter().copied().fold(f64::INFINITY, f64::min);
                let most = high[axis][..present].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                above.set(group, axis, least, most);
            }
        }
        Some(above)
    }

    /// The ends of a group.
    #[inline(always)]
    pub(in super::super) fn group(&self, group: usize) -> BoxEnds<'_> {
        let width = self.dim * BOXES;
        let range = group * width..(group + 1) * width;
        (self.low[range.clone()].as_chunks().0, self.high[range].as_chunks().0)
    }
}
