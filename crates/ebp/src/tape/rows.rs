//! Rows and columns: side by side, cut out, chosen.

use std::sync::Arc;

use super::{Array, Device, Shape, Tape, Var, cuda, loops};
use crate::{Error, Result};

/// Chosen rows of a matrix, and for every row of the matrix who chose it: gradients are summed in
/// the order of the choices, on every device.
#[derive(Debug)]
pub struct Choice {
    /// Rows of the matrix that is chosen from.
    pub(super) num_rows: usize,
    /// The chosen rows.
    pub(super) rows: Vec<u32>,
    /// Choices sorted by row, those of row r at `starts[r]..starts[r + 1]`.
    pub(super) choices: Vec<u32>,
    pub(super) starts: Vec<u32>,
}

impl Choice {
    /// Rows `rows` of a matrix of `num_rows`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a row does not exist.
    pub fn new(num_rows: usize, rows: Vec<u32>) -> Result<Self> {
        if let Some(row) = rows.iter().find(|&&row| row as usize >= num_rows) {
            return Err(Error::invalid("rows", format!("below {num_rows}"), row));
        }
        let mut starts = vec![0_u32; num_rows + 1];
        for &row in &rows {
            starts[row as usize + 1] += 1;
        }
        for row in 0..num_rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut choices = vec![0; rows.len()];
        for (choice, &row) in (0_u32..).zip(&rows) {
            choices[next[row as usize] as usize] = choice;
            next[row as usize] += 1;
        }
        Ok(Self { num_rows, rows, choices, starts })
    }

    /// Every one of `num_rows` rows `count` times, copies side by side.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn repeated(num_rows: usize, count: usize) -> Result<Self> {
        let each = |row: usize| std::iter::repeat_n(u32::try_from(row).unwrap_or(u32::MAX), count);
        Self::new(num_rows, (0..num_rows).flat_map(each).collect())
    }

    /// All of `num_rows` rows, `count` times one after the other.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn tiled(num_rows: usize, count: usize) -> Result<Self> {
        let number = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
        Self::new(num_rows, (0..count).flat_map(|_| (0..num_rows).map(number)).collect())
    }

    /// How many rows are chosen.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn gather(device: &Device, x: &Array, choice: &Arc<Choice>, columns: usize) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut out = vec![0.0; choice.len() * columns];
            loops::each_part(&mut out, columns, |first, out| {
                let rows = out.chunks_exact_mut(columns.max(1)).zip(&choice.rows[first..]);
                for (to, &row) in rows {
                    to.copy_from_slice(&x[row as usize * columns..][..columns]);
                }
            });
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::gather(gpu, x.cuda()?, choice, columns),
    }
}

fn gather_backward(
    device: &Device,
    g: &Array,
    choice: &Arc<Choice>,
    columns: usize,
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let g = g.host()?;
            let mut out = vec![0.0; choice.num_rows * columns];
            loops::each_part(&mut out, columns, |first, out| {
                for (row, sums) in out.chunks_exact_mut(columns.max(1)).enumerate() {
                    let [start, end] = [0, 1].map(|next| choice.starts[first + row + next]);
                    for &choice in &choice.choices[start as usize..end as usize] {
                        let g = &g[choice as usize * columns..][..columns];
                        sums.iter_mut().zip(g).for_each(|(sum, g)| *sum += g);
                    }
                }
            });
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::gather_backward(gpu, g.cuda()?, choice, columns),
    }
}

/// Columns `start..start + width` of a matrix of `columns`.
fn cut(
    device: &Device,
    x: &Array,
    columns: usize,
    (start, width): (usize, usize),
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut out = vec![0.0; x.len() / columns.max(1) * width];
            loops::each_part(&mut out, width, |first, out| {
                let rows = x[first * columns..].chunks_exact(columns.max(1));
                for (to, row) in out.chunks_exact_mut(width.max(1)).zip(rows) {
                    to.copy_from_slice(&row[start..start + width]);
                }
            });
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::cut(gpu, x.cuda()?, columns, (start, width)),
    }
}

/// A matrix `[rows, columns]`, zero but for `x` at columns `start..start + width`.
fn place(
    device: &Device,
    x: &Array,
    (rows, columns): Shape,
    (start, width): (usize, usize),
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let mut out = vec![0.0; rows * columns];
            write_columns(&mut out, columns, &[(x, (start, width))]);
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::place(gpu, x.cuda()?, (rows, columns), (start, width)),
    }
}

/// Writes matrices to their columns, each given by where it begins and its width.
fn write_columns(out: &mut [f32], columns: usize, parts: &[(&[f32], (usize, usize))]) {
    loops::each_part(out, columns, |first, out| {
        for &(part, (start, width)) in parts.iter().filter(|(_, (_, width))| *width > 0) {
            let rows = out.chunks_exact_mut(columns).zip(part[first * width..].chunks_exact(width));
            rows.for_each(|(to, from)| to[start..start + width].copy_from_slice(from));
        }
    });
}

fn concat(device: &Device, parts: &[(Array, usize)], rows: usize) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let columns: usize = parts.iter().map(|(_, width)| width).sum();
            let mut out = vec![0.0; rows * columns];
            let mut start = 0;
            let mut places = Vec::with_capacity(parts.len());
            for (part, width) in parts {
                places.push((&part.host()?[..], (start, *width)));
                start += width;
            }
            write_columns(&mut out, columns, &places);
            Ok(out.into())
        }
        Device::Cuda(gpu) => cuda::concat(gpu, parts, rows),
    }
}

impl Tape {
    /// Matrices of equal height side by side.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn concat(&mut self, parts: &[Var]) -> Result<Var> {
        if let [only] = parts {
            return Ok(*only);
        }
        let rows = parts.first().map_or(0, |&part| self.shape(part).0);
        let mut arrays = Vec::with_capacity(parts.len());
        for &part in parts {
            let (height, width) = self.shape(part);
            if height != rows {
                return Err(Error::invalid("parts", format!("all of {rows} rows"), height));
            }
            arrays.push((self.array(part).clone(), width));
        }
        let value = concat(self.device(), &arrays, rows)?;
        let widths: Vec<usize> = arrays.iter().map(|(_, width)| *width).collect();
        let columns: usize = widths.iter().sum();
        Ok(self.record(parts, value, (rows, columns), move |reversal| {
            let mut start = 0;
            let mut gradients = Vec::with_capacity(widths.len());
            for (input, &width) in widths.iter().enumerate() {
                gradients.push(reversal.when(input, || {
                    cut(reversal.device, reversal.cotangent()?, columns, (start, width))
                })?);
                start += width;
            }
            Ok(gradients)
        }))
    }

    /// Columns `start..start + width`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn columns(&mut self, x: Var, start: usize, width: usize) -> Result<Var> {
        let (rows, columns) = self.shape(x);
        if start.checked_add(width).is_none_or(|end| end > columns) {
            let found = format!("{width} from {start} on");
            return Err(Error::invalid("columns", format!("within {columns}"), found));
        }
        if (start, width) == (0, columns) {
            return Ok(x);
        }
        let value = cut(self.device(), self.array(x), columns, (start, width))?;
        Ok(self.record(&[x], value, (rows, width), move |reversal| {
            let cotangent = reversal.cotangent()?;
            let (shape, part) = ((rows, columns), (start, width));
            Ok(vec![Some(place(reversal.device, cotangent, shape, part)?)])
        }))
    }

    /// All rows, `count` times one after the other.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn tile(&mut self, x: Var, count: usize) -> Result<Var> {
        if count == 1 {
            return Ok(x);
        }
        let choice = Choice::tiled(self.shape(x).0, count)?;
        self.gather(x, &Arc::new(choice))
    }

    /// Chosen rows.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn gather(&mut self, x: Var, choice: &Arc<Choice>) -> Result<Var> {
        let (rows, columns) = self.shape(x);
        if rows != choice.num_rows {
            return Err(Error::invalid("rows", choice.num_rows.to_string(), rows));
        }
        let value = gather(self.device(), self.array(x), choice, columns)?;
        let choice = Arc::clone(choice);
        Ok(self.record(&[x], value, (choice.len(), columns), move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(gather_backward(reversal.device, cotangent, &choice, columns)?)])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More rows than one thread takes at once, against plain loops; whole numbers, exact sums.
    #[test]
    fn parts_of_many_rows_are_the_plain_copies() {
        let (num_rows, columns) = (700, 6);
        let chosen: Vec<u32> = (0..8000_u32).map(|i| (i * 37) % 699).collect();
        let choice = Arc::new(Choice::new(num_rows, chosen.clone()).unwrap());
        let numbers =
            |length: usize| -> Vec<f32> { (0..length).map(|i| (i % 19) as f32).collect() };
        let (x, g) = (numbers(num_rows * columns), numbers(chosen.len() * columns));
        let device = Device::default();
        let found = gather(&device, &Array::from(x.clone()), &choice, columns).unwrap();
        let mut sums = vec![0.0; x.len()];
        for (place, &row) in chosen.iter().enumerate() {
            let row = row as usize * columns;
            assert_eq!(found.host().unwrap()[place * columns..][..columns], x[row..row + columns]);
            for column in 0..columns {
                sums[row + column] += g[place * columns + column];
            }
        }
        let g = Array::from(g);
        let found = gather_backward(&device, &g, &choice, columns).unwrap();
        assert_eq!(found.host().unwrap()[..], sums);
        // Two parts of the columns, cut out and put together again.
        let parts = [(0, 2), (2, 4)].map(|part| (cut(&device, &g, columns, part).unwrap(), part.1));
        let whole = concat(&device, &parts, chosen.len()).unwrap();
        assert_eq!(whole.host().unwrap()[..], g.host().unwrap()[..]);
        let shape = (chosen.len(), columns);
        let placed = place(&device, &parts[1].0, shape, (2, 4)).unwrap();
        for (placed, g) in placed
            .host()
            .unwrap()
            .chunks_exact(columns)
            .zip(whole.host().unwrap().chunks_exact(columns))
        {
            assert_eq!((&placed[..2], &placed[2..]), (&[0.0, 0.0][..], &g[2..]));
        }
    }
}
