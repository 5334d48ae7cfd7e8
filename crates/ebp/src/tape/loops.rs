//! Loops over entries: as vector instructions, and in parallel where there are many.
//!
//! Work is cut into parts by its size alone, and no two parts write the same entry: the bits depend
//! neither on the number of threads nor on the instruction set.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use rayon::prelude::*;

use super::lanes::LANES;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

/// Entries that one thread works on at a time: some microseconds, many times what it costs to hand
/// work to a thread.
pub(super) const PART: usize = 1 << 14;

/// f(x) of every entry.
pub(super) fn map(x: &[f32], f: impl Fn(f32) -> f32 + Copy + Sync) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    each_part(&mut out, 1, |start, out| {
        Vectoriser::new().run(Map { x: &x[start..start + out.len()], out, f });
    });
    out
}

/// f(a, b) of every pair.
pub(super) fn zip(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32 + Copy + Sync) -> Vec<f32> {
    let mut out = vec![0.0; a.len()];
    each_part(&mut out, 1, |start, out| {
        let range = start..start + out.len();
        Vectoriser::new().run(Zip { a: &a[range.clone()], b: &b[range], out, f });
    });
    out
}

/// a ← f(a, b) for every pair.
pub(super) fn update(a: &mut [f32], b: &[f32], f: impl Fn(f32, f32) -> f32 + Copy + Sync) {
    each_part(a, 1, |start, a| {
        Vectoriser::new().run(Update { b: &b[start..start + a.len()], a, f });
    });
}

/// f(x) of every entry, by this thread alone.
pub(super) fn map_into(x: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32 + Copy) {
    Vectoriser::new().run(Map { x, out, f });
}

/// x ← f(x) for every entry, by this thread alone.
pub(super) fn map_here(x: &mut [f32], f: impl Fn(f32) -> f32 + Copy) {
    Vectoriser::new().run(MapHere { x, f });
}

/// a ← f(a, b) for every pair, by this thread alone.
pub(super) fn pairs_here(a: &mut [f32], b: &[f32], f: impl Fn(f32, f32) -> f32 + Copy) {
    Vectoriser::new().run(Update { a, b, f });
}

/// x ← f(x, b) for every entry, b of its column; by this thread alone.
pub(super) fn rows_here(rows: &mut [f32], b: &[f32], f: impl Fn(f32, f32) -> f32 + Copy) {
    Vectoriser::new().run(UpdateRows { rows, b, f });
}

/// Calls `work` with the first row and the entries of parts of whole rows of `columns`.
pub(super) fn each_part(
    all: &mut [f32],
    columns: usize,
    work: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let rows = (PART / columns.max(1)).max(1);
    let length = rows * columns.max(1);
    if all.len() <= length {
        work(0, all);
        return;
    }
    let parts = all.par_chunks_mut(length).enumerate();
    parts.for_each(|(part, entries)| work(part * rows, entries));
}

/// Σ x in f64: one sum per lane, then over the lanes, part by part.
pub(super) fn sum(x: &[f32]) -> f64 {
    by_part(x, |x| Vectoriser::new().run(Sum { x, f: f64::from }))
}

/// Σ x² in f64, in the same order.
pub(super) fn sum_of_squares(x: &[f32]) -> f64 {
    by_part(x, |x| Vectoriser::new().run(Sum { x, f: |x| f64::from(x) * f64::from(x) }))
}

fn by_part(x: &[f32], sum: impl Fn(&[f32]) -> f64 + Sync + Send) -> f64 {
    if x.len() <= PART {
        return sum(x);
    }
    x.par_chunks(PART).map(sum).collect::<Vec<f64>>().into_iter().sum()
}

struct Map<'a, F> {
    x: &'a [f32],
    out: &'a mut [f32],
    f: F,
}

impl<F: Fn(f32) -> f32> VectorLoop for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.x) {
            *out = (self.f)(x);
        }
    }
}

struct Zip<'a, F> {
    a: &'a [f32],
    b: &'a [f32],
    out: &'a mut [f32],
    f: F,
}

impl<F: Fn(f32, f32) -> f32> VectorLoop for Zip<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, (&a, &b)) in self.out.iter_mut().zip(self.a.iter().zip(self.b)) {
            *out = (self.f)(a, b);
        }
    }
}

struct Update<'a, F> {
    a: &'a mut [f32],
    b: &'a [f32],
    f: F,
}

impl<F: Fn(f32, f32) -> f32> VectorLoop for Update<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (a, &b) in self.a.iter_mut().zip(self.b) {
            *a = (self.f)(*a, b);
        }
    }
}

struct MapHere<'a, F> {
    x: &'a mut [f32],
    f: F,
}

impl<F: Fn(f32) -> f32> VectorLoop for MapHere<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for x in self.x.iter_mut() {
            *x = (self.f)(*x);
        }
    }
}

struct UpdateRows<'a, F> {
    rows: &'a mut [f32],
    b: &'a [f32],
    f: F,
}

impl<F: Fn(f32, f32) -> f32> VectorLoop for UpdateRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.rows.chunks_exact_mut(self.b.len().max(1)) {
            for (x, &b) in row.iter_mut().zip(self.b) {
                *x = (self.f)(*x, b);
            }
        }
    }
}

struct Sum<'a, F> {
    x: &'a [f32],
    f: F,
}

impl<F: Fn(f32) -> f64> VectorLoop for Sum<'_, F> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let (whole, rest) = self.x.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        for block in whole {
            for lane in 0..LANES {
                sums[lane] += (self.f)(block[lane]);
            }
        }
        sums.iter().sum::<f64>() + rest.iter().map(|&x| (self.f)(x)).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One part, its end, and many parts with a rest.
    const LENGTHS: [usize; 5] = [0, 5, PART, PART + 1, 3 * PART + 77];

    fn numbers(length: usize) -> Vec<f32> {
        (0..length).map(|i| ((i * 37) % 101) as f32 * 0.25 - 12.0).collect()
    }

    #[test]
    fn parts_in_parallel_are_the_plain_loop() {
        for length in LENGTHS {
            let x = numbers(length);
            let y: Vec<f32> = x.iter().rev().copied().collect();
            assert_eq!(map(&x, |x| 2.0 * x), x.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x * y - x).collect();
            assert_eq!(zip(&x, &y, |x, y| x * y - x), expected);
            let mut updated = x.clone();
            update(&mut updated, &y, |x, y| x * y - x);
            assert_eq!(updated, expected);
            // Quarters of whole numbers: sums are exact, whatever their order.
            let total = x.iter().fold(0.0, |sum, &x| sum + f64::from(x));
            assert_eq!(sum(&x).to_bits(), total.to_bits());
            let squares = x.iter().fold(0.0, |sum, &x| sum + f64::from(x) * f64::from(x));
            assert_eq!(sum_of_squares(&x).to_bits(), squares.to_bits());
        }
    }

    #[test]
    fn parts_are_whole_rows_and_know_where_they_begin() {
        for columns in [0, 1, 7, 1000, PART + 3] {
            let mut found = vec![0.0; 5 * columns];
            each_part(&mut found, columns, |first, part| {
                for (row, entries) in part.chunks_mut(columns.max(1)).enumerate() {
                    entries.fill((first + row) as f32);
                }
            });
            let expected = (0..5).flat_map(|row| std::iter::repeat_n(row as f32, columns));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}
