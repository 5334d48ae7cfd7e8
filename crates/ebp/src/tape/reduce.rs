//! Sums over rows, columns, sets and everything, in f64 and in a fixed order.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use std::sync::Arc;

use rayon::prelude::*;

use super::elementwise::{Join, Spread, join};
use super::{Array, Device, Shape, Tape, Var, cuda, loops};
use crate::error::check_length;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
use crate::{Result, SetOffsets};

/// Σ over the columns of every row, `[rows]`.
#[expect(clippy::cast_possible_truncation, reason = "sums are rounded to f32")]
pub(super) fn row_sums(device: &Device, x: &Array, (rows, columns): Shape) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut sums = vec![0.0; rows];
            loops::each_part(&mut sums, 1, |first, sums| {
                for (row, sum) in sums.iter_mut().enumerate() {
                    *sum = loops::sum(&x[(first + row) * columns..][..columns]) as f32;
                }
            });
            Ok(sums.into())
        }
        Device::Cuda(gpu) => cuda::row_sums(gpu, x.cuda()?, (rows, columns)),
    }
}

/// Σ over the rows of every column, `[columns]`.
pub(super) fn column_sums(device: &Device, x: &Array, (rows, columns): Shape) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let mut sums = vec![0.0; columns];
            sums_of_columns(&x.host()?[..rows * columns], columns, &mut sums);
            Ok(sums.into())
        }
        Device::Cuda(gpu) => cuda::column_sums(gpu, x.cuda()?, (rows, columns)),
    }
}

/// Σ over everything, `[1]`.
#[expect(clippy::cast_possible_truncation, reason = "sums are rounded to f32")]
pub(super) fn sum(device: &Device, x: &Array) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(vec![loops::sum(x.host()?) as f32].into()),
        Device::Cuda(gpu) => cuda::sum(gpu, x.cuda()?),
    }
}

/// Σ over the rows of every column of a matrix on the host: within parts of rows, then over them.
#[expect(clippy::cast_possible_truncation, reason = "sums are rounded to f32")]
pub(super) fn sums_of_columns(x: &[f32], columns: usize, out: &mut [f32]) {
    let mut sums = vec![0.0_f64; columns];
    let length = (loops::PART / columns.max(1)).max(1) * columns.max(1);
    if x.len() <= length {
        Vectoriser::new().run(AddRows { rows: x, sums: &mut sums });
    } else {
        let part = |rows: &[f32]| {
            let mut sums = vec![0.0_f64; columns];
            Vectoriser::new().run(AddRows { rows, sums: &mut sums });
            sums
        };
        for part in x.par_chunks(length).map(part).collect::<Vec<_>>() {
            sums.iter_mut().zip(part).for_each(|(sum, term)| *sum += term);
        }
    }
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum as f32);
}

/// The same by this thread alone.
#[expect(clippy::cast_possible_truncation, reason = "sums are rounded to f32")]
pub(super) fn sums_of_columns_here(rows: &[f32], out: &mut [f32]) {
    let mut sums = vec![0.0_f64; out.len()];
    Vectoriser::new().run(AddRows { rows, sums: &mut sums });
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum as f32);
}

/// Adds rows to sums of columns.
struct AddRows<'a> {
    rows: &'a [f32],
    sums: &'a mut [f64],
}

impl VectorLoop for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.rows.chunks_exact(self.sums.len().max(1)) {
            for (sum, &x) in self.sums.iter_mut().zip(row) {
                *sum += f64::from(x);
            }
        }
    }
}

/// Σ over the rows of every set, `[sets, columns]`.
pub(super) fn set_sums(
    device: &Device,
    x: &Array,
    offsets: &Arc<SetOffsets>,
    columns: usize,
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut out = vec![0.0; offsets.num_sets() * columns];
            // As many sets as have a part's worth of rows.
            let sets = (loops::PART * offsets.num_sets() / x.len().max(1)).max(1);
            let parts = out.par_chunks_mut(sets * columns.max(1)).enumerate();
            parts.for_each(|(part, out)| {
                for (set, out) in out.chunks_exact_mut(columns.max(1)).enumerate() {
                    let rows = offsets.range(part * sets + set);
                    sums_of_columns(&x[rows.start * columns..rows.end * columns], columns, out);
                }
            });
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::set_sums(gpu, x.cuda()?, offsets, columns),
    }
}

/// The row of its set for every element, `[total, columns]`.
pub(super) fn spread(
    device: &Device,
    x: &Array,
    offsets: &Arc<SetOffsets>,
    columns: usize,
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut out = vec![0.0; offsets.num_elements() * columns];
            loops::each_part(&mut out, columns, |first, out| {
                let Some(last) = (out.len() / columns.max(1)).checked_sub(1) else { return };
                for set in offsets.set_of(first)..=offsets.set_of(first + last) {
                    let rows = offsets.range(set);
                    let (start, end) = (rows.start.max(first), rows.end.min(first + last + 1));
                    let rows = &mut out[(start - first) * columns..(end - first) * columns];
                    for row in rows.chunks_exact_mut(columns) {
                        row.copy_from_slice(&x[set * columns..][..columns]);
                    }
                }
            });
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::spread(gpu, x.cuda()?, offsets, columns),
    }
}

/// One number `length` times.
fn fill(device: &Device, x: &Array, length: usize) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(vec![x.host()?[0]; length].into()),
        Device::Cuda(gpu) => cuda::fill(gpu, x.cuda()?, length),
    }
}

/// The number of its row for every entry, `[rows, columns]`.
fn repeat_columns(device: &Device, x: &Array, (rows, columns): Shape) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut out = vec![0.0; rows * columns];
            loops::each_part(&mut out, columns, |first, out| {
                let rows = out.chunks_exact_mut(columns.max(1)).zip(&x[first..]);
                rows.for_each(|(row, &x)| row.fill(x));
            });
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::repeat_columns(gpu, x.cuda()?, (rows, columns)),
    }
}

impl Tape {
    /// Σ over everything, `[1, 1]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn sum(&mut self, x: Var) -> Result<Var> {
        let value = sum(self.device(), self.array(x))?;
        let length = self.array(x).len();
        Ok(self.record(&[x], value, (1, 1), move |reversal| {
            Ok(vec![Some(fill(reversal.device, reversal.cotangent()?, length)?)])
        }))
    }

    /// The mean of everything, `[1, 1]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn mean(&mut self, x: Var) -> Result<Var> {
        let length = self.array(x).len().max(1);
        let sum = self.sum(x)?;
        self.affine(sum, 1.0 / length as f64, 0.0)
    }

    /// Σ over the columns of every row, `[rows, 1]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn row_sums(&mut self, x: Var) -> Result<Var> {
        let (rows, columns) = self.shape(x);
        let value = row_sums(self.device(), self.array(x), (rows, columns))?;
        Ok(self.record(&[x], value, (rows, 1), move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(repeat_columns(reversal.device, cotangent, (rows, columns))?)])
        }))
    }

    /// Σ over the rows of every column, `[1, columns]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn column_sums(&mut self, x: Var) -> Result<Var> {
        let shape = self.shape(x);
        let value = column_sums(self.device(), self.array(x), shape)?;
        Ok(self.record(&[x], value, (1, shape.1), move |reversal| {
            let (device, g) = (reversal.device, reversal.cotangent()?);
            let zeros = device.zeros(shape.0 * shape.1)?;
            let rows = join(device, (&zeros, shape.1), (g, Spread::PerColumn), Join::Add)?;
            Ok(vec![Some(rows)])
        }))
    }

    /// Σ over the rows of every set, `[sets, columns]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn set_sums(&mut self, x: Var, offsets: &Arc<SetOffsets>) -> Result<Var> {
        let (rows, columns) = self.shape(x);
        check_length("rows", rows, offsets.num_elements(), || "elements of the sets".into())?;
        let value = set_sums(self.device(), self.array(x), offsets, columns)?;
        let (offsets, sets) = (Arc::clone(offsets), offsets.num_sets());
        Ok(self.record(&[x], value, (sets, columns), move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(spread(reversal.device, cotangent, &offsets, columns)?)])
        }))
    }

    /// The row of its set for every element, `[total, columns]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn spread(&mut self, x: Var, offsets: &Arc<SetOffsets>) -> Result<Var> {
        let (rows, columns) = self.shape(x);
        check_length("rows", rows, offsets.num_sets(), || "sets".into())?;
        let value = spread(self.device(), self.array(x), offsets, columns)?;
        let (offsets, total) = (Arc::clone(offsets), offsets.num_elements());
        Ok(self.record(&[x], value, (total, columns), move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(set_sums(reversal.device, cotangent, &offsets, columns)?)])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More rows than one thread takes at once, against plain loops; whole numbers, exact sums.
    #[test]
    fn parts_of_many_rows_are_the_plain_sums() {
        let (rows, columns) = (9000, 5);
        let sizes = [1, 6000, 17, 2982];
        let offsets = Arc::new(SetOffsets::from_sizes(sizes).unwrap());
        let x: Vec<f32> = (0..rows * columns).map(|i| ((i * 31) % 23) as f32 - 9.0).collect();
        let array = Array::from(x.clone());
        let device = Device::default();
        let plain = |range: std::ops::Range<usize>, column: usize| -> f32 {
            range.map(|row| x[row * columns + column]).sum()
        };
        let found = column_sums(&device, &array, (rows, columns)).unwrap();
        let expected: Vec<f32> = (0..columns).map(|column| plain(0..rows, column)).collect();
        assert_eq!(found.host().unwrap()[..], expected);
        let found = row_sums(&device, &array, (rows, columns)).unwrap();
        let expected: Vec<f32> = x.chunks_exact(columns).map(|row| row.iter().sum()).collect();
        assert_eq!(found.host().unwrap()[..], expected);
        let found = set_sums(&device, &array, &offsets, columns).unwrap();
        let of_set = |set| (0..columns).map(move |column| (set, column));
        let expected: Vec<f32> = (0..sizes.len())
            .flat_map(of_set)
            .map(|(set, column)| plain(offsets.range(set), column))
            .collect();
        assert_eq!(found.host().unwrap()[..], expected);
        let spread = spread(&device, &found, &offsets, columns).unwrap();
        for (row, spread) in spread.host().unwrap().chunks_exact(columns).enumerate() {
            assert_eq!(spread, &expected[offsets.set_of(row) * columns..][..columns]);
        }
    }
}
