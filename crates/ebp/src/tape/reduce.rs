//! Sums over rows, columns, sets and everything, in f64 and in a fixed order.

use std::sync::Arc;

use super::{Array, Device, Shape, Tape, Var, cuda};
use crate::error::check_length;
use crate::{Result, SetOffsets};

#[expect(clippy::cast_possible_truncation, reason = "sums are rounded to f32")]
fn total<'a>(values: impl IntoIterator<Item = &'a f32>) -> f32 {
    values.into_iter().map(|&x| f64::from(x)).sum::<f64>() as f32
}

/// Σ over the columns of every row, `[rows]`.
pub(super) fn row_sums(device: &Device, x: &Array, (rows, columns): Shape) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            Ok((0..rows)
                .map(|row| total(&x[row * columns..][..columns]))
                .collect::<Vec<_>>()
                .into())
        }
        Device::Cuda(gpu) => cuda::row_sums(gpu, x.cuda()?, (rows, columns)),
    }
}

/// Σ over the rows of every column, `[columns]`.
pub(super) fn column_sums(device: &Device, x: &Array, (rows, columns): Shape) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(sums_by_range(x.host()?, std::slice::from_ref(&(0..rows)), columns)),
        Device::Cuda(gpu) => cuda::column_sums(gpu, x.cuda()?, (rows, columns)),
    }
}

/// Σ over everything, `[1]`.
pub(super) fn sum(device: &Device, x: &Array) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(vec![total(x.host()?.iter())].into()),
        Device::Cuda(gpu) => cuda::sum(gpu, x.cuda()?),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "sums are rounded to f32")]
fn sums_by_range(x: &[f32], ranges: &[std::ops::Range<usize>], columns: usize) -> Array {
    let mut out = Vec::with_capacity(ranges.len() * columns);
    let mut sums = vec![0.0_f64; columns];
    for range in ranges {
        sums.fill(0.0);
        for row in x[range.start * columns..range.end * columns].chunks_exact(columns) {
            sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        out.extend(sums.iter().map(|&sum| sum as f32));
    }
    out.into()
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
            let ranges: Vec<_> = (0..offsets.num_sets()).map(|set| offsets.range(set)).collect();
            Ok(sums_by_range(x.host()?, &ranges, columns))
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
            let mut out = Vec::with_capacity(offsets.num_elements() * columns);
            for set in 0..offsets.num_sets() {
                for _ in offsets.range(set) {
                    out.extend_from_slice(&x[set * columns..][..columns]);
                }
            }
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
            let row = |row: usize| std::iter::repeat_n(x[row], columns);
            Ok((0..rows).flat_map(row).collect::<Vec<_>>().into())
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

    /// Σ over the rows of every column, `[1, columns]`; no gradient flows through it.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn column_sums(&mut self, x: Var) -> Result<Var> {
        let shape = self.shape(x);
        let value = column_sums(self.device(), self.array(x), shape)?;
        self.constant(value, (1, shape.1))
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
