//! How many points lie in a cell, for any number of cells: a table by open addressing.

use super::cells::{Grid, cell};
use super::columns::Columns;

/// Counts of a set's points by cell.
#[derive(Clone, Debug)]
pub(super) struct HashedCounts {
    mask: usize,
    /// 64 less the number of the table's bits: slots are the upper bits of a product, where all
    /// axes of a cell meet.
    shift: u32,
    keys: Vec<u64>,
    counts: Vec<u32>,
}

impl HashedCounts {
    pub(super) fn new(grid: &Grid, points: &Columns) -> Self {
        let mut table = Self::with_room_for(points.num_rows());
        for number in 0..points.num_rows() {
            let key = cell_key(grid, points, number);
            let slot = table.slot(key);
            table.keys[slot] = key;
            table.counts[slot] += 1;
        }
        table
    }

    /// How many points lie in the cell of each of `places`.
    pub(super) fn look_up(&self, grid: &Grid, places: &Columns, found: &mut [u32]) {
        for (number, found) in found.iter_mut().enumerate() {
            *found = self.counts[self.slot(cell_key(grid, places, number))];
        }
    }

    /// At most half full with `num_points` different cells.
    fn with_room_for(num_points: usize) -> Self {
        let size = (2 * num_points.max(1)).next_power_of_two();
        let shift = 64 - size.trailing_zeros();
        Self { mask: size - 1, shift, keys: vec![0; size], counts: vec![0; size] }
    }

    /// Where the key is, or where it would go.
    fn slot(&self, key: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "as many bits as the table has")]
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize & self.mask;
        while self.counts[slot] > 0 && self.keys[slot] != key {
            slot = (slot + 1) & self.mask;
        }
        slot
    }
}

/// The cell of a point, as one number: axis after axis is mixed in by bijections, so that two cells
/// share theirs by an accident of 64 bits only.
#[expect(clippy::cast_sign_loss, reason = "the bits of a cell's number")]
fn cell_key(grid: &Grid, points: &Columns, number: usize) -> u64 {
    grid.origin.iter().enumerate().fold(0_u64, |key, (axis, origin)| {
        let cell = cell(points.axis(axis)[number], *origin, grid.width);
        (key.rotate_left(25) ^ u64::from(cell as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 3ᵈ cells around the origin have numbers of their own, in every dimension.
    #[test]
    fn cells_that_differ_in_any_axis_are_different() {
        for dim in 1..=8_usize {
            let powers: Vec<usize> = (0..8).map(|axis| 3_usize.pow(axis)).collect();
            let num_cells = 3 * powers[dim - 1];
            let powers = &powers[..dim];
            let rows: Vec<f32> = (0..num_cells)
                .flat_map(|cell| powers.iter().map(move |power| (cell / power % 3) as f32 - 1.5))
                .collect();
            let grid = Grid { width: 1.0, origin: vec![0.0; dim] };
            let mut points = Columns::default();
            points.read_rows(&rows, dim);
            let mut keys: Vec<u64> =
                (0..num_cells).map(|number| cell_key(&grid, &points, number)).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), num_cells, "{dim}");
        }
    }
}
