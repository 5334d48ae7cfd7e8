//! Points axis by axis, so that a loop over them runs through whole vectors.

use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};

/// `[d, n]`: all first coordinates, all second ones, ….
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    num_rows: usize,
    values: Vec<f32>,
}

impl Columns {
    /// Of this size from now on; what they hold is to be written.
    pub(super) fn resize(&mut self, num_axes: usize, num_rows: usize) {
        self.num_rows = num_rows;
        self.values.resize(num_axes * num_rows, 0.0);
    }

    /// Holds rows `[n, d]` from now on.
    pub(super) fn read_rows(&mut self, rows: &[f32], num_axes: usize) {
        self.resize(num_axes, rows.len() / num_axes);
        let vectoriser = Vectoriser::new();
        for axis in 0..num_axes {
            let column = self.axis_mut(axis);
            // The compiler has vectors for strides that it knows.
            match num_axes {
                2 => vectoriser.run(ReadColumn::<2> { rows, axis, column }),
                3 => vectoriser.run(ReadColumn::<3> { rows, axis, column }),
                4 => vectoriser.run(ReadColumn::<4> { rows, axis, column }),
                _ => {
                    let every = rows[axis..].iter().step_by(num_axes);
                    column.iter_mut().zip(every).for_each(|(value, x)| *value = *x);
                }
            }
        }
    }

    /// As rows `[n, d]`.
    pub(super) fn write_rows(&self, rows: &mut [f32]) {
        let num_axes = self.num_axes();
        for axis in 0..num_axes {
            let every = rows[axis..].iter_mut().step_by(num_axes);
            every.zip(self.axis(axis)).for_each(|(x, value)| *x = *value);
        }
    }

    pub(super) fn num_axes(&self) -> usize {
        self.values.len() / self.num_rows.max(1)
    }

    pub(super) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// The coordinates of all points along an axis.
    pub(super) fn axis(&self, axis: usize) -> &[f32] {
        &self.values[axis * self.num_rows..][..self.num_rows]
    }

    pub(super) fn axis_mut(&mut self, axis: usize) -> &mut [f32] {
        &mut self.values[axis * self.num_rows..][..self.num_rows]
    }
}

struct ReadColumn<'a, const D: usize> {
    rows: &'a [f32],
    axis: usize,
    column: &'a mut [f32],
}

impl<const D: usize> VectorLoop for ReadColumn<'_, D> {
    type Output = ();
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "that is how it reaches its instruction set")]
    fn run(self) {
        let (rows, _) = self.rows.as_chunks::<D>();
        for (value, row) in self.column.iter_mut().zip(rows) {
            *value = row[self.axis % D];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut columns = Columns::default();
        columns.read_rows(&rows, 3);
        assert_eq!((columns.num_axes(), columns.num_rows()), (3, 2));
        assert_eq!(columns.axis(1).to_vec(), [2.0, 5.0]);
        let mut back = [0.0; 6];
        columns.write_rows(&mut back);
        assert_eq!(back.map(f32::to_bits), rows.map(f32::to_bits));
    }
}
