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

/// The cell of a point, as one number: cells far away share theirs with none near the data.
#[expect(clippy::cast_sign_loss, reason = "21 bits hold any cell that matters")]
fn cell_key(grid: &Grid, points: &Columns, number: usize) -> u64 {
    const BITS: u32 = 21;
    const OFFSET: i32 = 1 << 20;
    grid.origin.iter().enumerate().fold(0_u64, |key, (axis, origin)| {
        let cell = cell(points.axis(axis)[number], *origin, grid.width).wrapping_add(OFFSET);
        key.wrapping_shl(BITS) ^ u64::from(cell as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_below_and_above_the_origin_are_different() {
        let grid = Grid { width: 1.0, origin: vec![0.0; 3] };
        let mut rows = Vec::new();
        for x in [-1.5, -0.5, 0.5] {
            for y in [-1.5, -0.5, 0.5] {
                for z in [-1.5, -0.5, 0.5] {
                    rows.extend([x, y, z]);
                }
            }
        }
        let mut points = Columns::default();
        points.read_rows(&rows, 3);
        let mut keys: Vec<u64> = (0..27).map(|number| cell_key(&grid, &points, number)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 27);
    }
}
