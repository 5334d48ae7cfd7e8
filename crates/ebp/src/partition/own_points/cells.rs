//! How many points share a cell of a grid with each of many places.
//!
//! Cells of the domain are counted in pages of 4ᵈ cells: a directory over the domain says where a
//! page's counts lie, and all pages without points are one page of zeros. A look-up is two loads and
//! no branch, and a set of a few thousand points stays in the cache. Grids too fine for a directory,
//! and more than three dimensions, go through a hash table ([`HashedCounts`]).

use super::columns::Columns;
use super::hashed::HashedCounts;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

/// Cubes of one width.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) width: f32,
    /// Where cell 0 begins, per axis.
    pub(super) origin: Vec<f32>,
}

/// ⌊(x − origin)/width⌋, in loops over vectors.
#[inline(always)]
#[allow(clippy::inline_always, reason = "vector loops reach their instruction set by inlining")]
pub(super) fn cell_start(x: f32, origin: f32, width: f32) -> f32 {
    ((x - origin) / width).floor()
}

/// The same as a whole number, without a call of the mathematical library.
#[expect(clippy::cast_possible_truncation, reason = "cells that matter are few")]
pub(super) fn cell(x: f32, origin: f32, width: f32) -> i32 {
    let place = (x - origin) / width;
    let towards_zero = place as i32;
    towards_zero.saturating_sub(i32::from(towards_zero as f32 > place))
}

/// log₂ of the cells of a page along an axis.
const PAGE_BITS: u32 = 2;
/// The most axes with pages: 64 cells in each.
const MOST_PAGED_AXES: usize = 3;
/// The most pages of a directory, of 4 bytes each.
const MOST_PAGES: u64 = 1 << 18;

/// Counts cells, with memory that is kept from grid to grid and from set to set.
#[derive(Debug, Default)]
pub(super) struct CellCounter {
    slots: Vec<u32>,
    /// Where a page's counts begin; all 0, the page of zeros, between two calls.
    directory: Vec<u32>,
    /// All 0 between two calls.
    counts: Vec<u32>,
}

impl CellCounter {
    /// For each of `places` in [−b, b]ᵈ, how many of `points` lie in its cell. What is written for
    /// places outside means nothing.
    pub(super) fn count(
        &mut self,
        grid: &Grid,
        half_width: f32,
        points: &Columns,
        places: &Columns,
        found: &mut [u32],
    ) {
        if let Some(pages) = Pages::new(grid, half_width) {
            self.count_in_pages(&pages, grid, points, places, found);
        } else {
            HashedCounts::new(grid, points).look_up(grid, places, found);
        }
    }

    fn count_in_pages(
        &mut self,
        pages: &Pages,
        grid: &Grid,
        points: &Columns,
        places: &Columns,
        found: &mut [u32],
    ) {
        let size = 1_u32 << pages.bits;
        let split = |slot: u32| ((slot >> pages.bits) as usize, slot & (size - 1));
        if self.directory.len() < pages.count {
            self.directory.resize(pages.count, 0);
        }
        // The first page stays empty, and a page is taken whenever a point is the first in its own.
        let most = (pages.count.min(points.num_rows()) + 1) << pages.bits;
        if self.counts.len() < most {
            self.counts.resize(most, 0);
        }
        let mut end = size;
        pages.slots(grid, points, &mut self.slots);
        for &slot in &self.slots {
            let (page, place) = split(slot);
            // Whether a page is new is anyone's guess: no branch.
            let is_new = self.directory[page] == 0;
            let start = if is_new { end } else { self.directory[page] };
            end += if is_new { size } else { 0 };
            self.directory[page] = start;
            self.counts[(start + place) as usize] += 1;
        }
        pages.slots(grid, places, &mut self.slots);
        for (found, &slot) in found.iter_mut().zip(&self.slots) {
            let (page, place) = split(slot);
            *found = self.counts[(self.directory[page] + place) as usize];
        }
        self.directory[..pages.count].fill(0);
        self.counts[..end as usize].fill(0);
    }
}

/// The domain's cells in pages, and around them one more layer of cells, where everything outside
/// is counted. As [`cell`] never falls when x grows, no place of the domain is in that layer.
#[derive(Debug)]
struct Pages {
    /// Per axis: the first and last cell, and how far apart neighbouring pages are.
    axes: Vec<PagedAxis>,
    /// log₂ of the cells of a page.
    bits: u32,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct PagedAxis {
    low: i32,
    high: i32,
    stride: u32,
    shift: u32,
}

impl Pages {
    /// `None` if there would be too many.
    fn new(grid: &Grid, half_width: f32) -> Option<Self> {
        if grid.origin.len() > MOST_PAGED_AXES {
            return None;
        }
        let mut axes = Vec::with_capacity(grid.origin.len());
        let (mut count, mut bits) = (1_u64, 0);
        for &origin in &grid.origin {
            let low = cell(-half_width, origin, grid.width).saturating_sub(1);
            let high = cell(half_width, origin, grid.width).saturating_add(1);
            let num_cells = u64::try_from(i64::from(high) - i64::from(low) + 1).ok()?;
            axes.push((low, high, count));
            count *= num_cells.div_ceil(1 << PAGE_BITS);
            if count > MOST_PAGES {
                return None;
            }
            bits += PAGE_BITS;
        }
        let axes = (0_u32..).zip(axes).map(|(axis, (low, high, before))| {
            let stride = u32::try_from(before << bits).ok()?;
            Some(PagedAxis { low, high, stride, shift: axis * PAGE_BITS })
        });
        Some(Self { axes: axes.collect::<Option<_>>()?, bits, count: usize::try_from(count).ok()? })
    }

    /// The slot of every point: its page, then its place therein.
    fn slots(&self, grid: &Grid, points: &Columns, slots: &mut Vec<u32>) {
        slots.clear();
        slots.resize(points.num_rows(), 0);
        let vectoriser = Vectoriser::new();
        for (number, (&axis, &origin)) in self.axes.iter().zip(&grid.origin).enumerate() {
            let column = points.axis(number);
            vectoriser.run(AddToSlots { column, origin, width: grid.width, axis, slots });
        }
    }
}

/// slot += page · stride + (place in the page) · 4^axis, of every point along an axis.
struct AddToSlots<'a> {
    column: &'a [f32],
    origin: f32,
    width: f32,
    axis: PagedAxis,
    slots: &'a mut [u32],
}

impl VectorLoop for AddToSlots<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // The conversion of a float that may be too large for an integer has no vector form; a whole
        // number n < 2²³ stands in the last bits of the float 2²³ + n.
        const SHIFT: f32 = 8_388_608.0;
        let PagedAxis { low, high, stride, shift } = self.axis;
        let (low, high) = (low as f32, high as f32);
        for (slot, &x) in self.slots.iter_mut().zip(self.column) {
            let place = cell_start(x, self.origin, self.width).max(low).min(high) - low;
            let place = (place + SHIFT).to_bits() - SHIFT.to_bits();
            let within = place & ((1 << PAGE_BITS) - 1);
            *slot += (place >> PAGE_BITS) * stride + (within << shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Pages and the hash table against counting all pairs, twice with one counter: it must leave
    /// its tables empty. Some points lie outside of the domain.
    #[test]
    fn both_tables_count_what_shares_a_cell() {
        let mut counter = CellCounter::default();
        for (number, (dim, width)) in
            (0_u64..).zip([(1, 0.2), (2, 0.07), (3, 0.9), (3, 0.3), (3, 0.3), (3, 0.004)])
        {
            let stream = Stream::new(number, "cells");
            let mut rows = vec![0.0; 400 * dim];
            stream.child(0).fill_normal(0, 0, &mut rows);
            let mut points = Columns::default();
            points.read_rows(&rows, dim);
            // Half of the places are points of the set, at the wall if outside.
            for x in &mut rows {
                *x = x.clamp(-1.0, 1.0);
            }
            stream.child(1).fill_uniform(0, 0, &mut rows[200 * dim..]);
            let mut places = Columns::default();
            places.read_rows(&rows, dim);
            let grid =
                Grid { width, origin: (0..dim).map(|j| -1.01 - 0.1 * width * j as f32).collect() };
            let of = |columns: &Columns, row: usize| -> Vec<i32> {
                (0..dim).map(|j| cell(columns.axis(j)[row], grid.origin[j], width)).collect()
            };
            let expected: Vec<u32> = (0..400)
                .map(|place| {
                    let home = of(&places, place);
                    (0..400).map(|point| u32::from(of(&points, point) == home)).sum()
                })
                .collect();
            assert_eq!(Pages::new(&grid, 1.0).is_some(), width > 0.01);
            let mut found = vec![0; 400];
            counter.count(&grid, 1.0, &points, &places, &mut found);
            assert_eq!(found, expected, "{dim} {width}");
            HashedCounts::new(&grid, &points).look_up(&grid, &places, &mut found);
            assert_eq!(found, expected, "{dim} {width}, hashed");
            assert!(width < 0.01 || expected.iter().any(|&count| count > 0));
        }
    }
}
