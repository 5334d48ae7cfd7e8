//! Points in cells, so that those near a place are found without looking at all of them.
//!
//! A cell is at least as wide as the longest distance that is asked for, so that the nine cells around a
//! place hold every point within it. The cost of a question does not grow with the pattern.

use super::window::{Window, square};

/// Cells along an axis at most: beyond it cells are only wider than they need to be.
const MOST_CELLS: usize = 256;

/// Points that come and go.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    window: Window,
    reach: f64,
    shape: [usize; 2],
    points: Vec<[f64; 2]>,
    /// Numbers of the points in each cell.
    cells: Vec<Vec<usize>>,
}

impl Near {
    /// `points` in cells for questions up to `reach`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub(crate) fn new(window: Window, reach: f64, points: &[[f64; 2]]) -> Self {
        let count = |length: f64| (length / reach).clamp(1.0, MOST_CELLS as f64) as usize;
        let shape = window.lengths().map(count);
        let cells = vec![Vec::new(); shape[0] * shape[1]];
        let mut near = Self { window, reach, shape, points: Vec::new(), cells };
        for &point in points {
            near.insert(point);
        }
        near
    }

    pub(crate) fn points(&self) -> &[[f64; 2]] {
        &self.points
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn cell(&self, place: [f64; 2]) -> [usize; 2] {
        let (sides, lengths) = (self.window.sides(), self.window.lengths());
        let along = |axis: usize| {
            let share = (place[axis] - sides[axis][0]) / lengths[axis];
            let count = self.shape[axis];
            (share * count as f64).clamp(0.0, (count - 1) as f64) as usize
        };
        [along(0), along(1)]
    }

    fn cell_of(&mut self, place: [f64; 2]) -> &mut Vec<usize> {
        let [column, row] = self.cell(place);
        &mut self.cells[row * self.shape[0] + column]
    }

    pub(crate) fn insert(&mut self, point: [f64; 2]) {
        let number = self.points.len();
        self.cell_of(point).push(number);
        self.points.push(point);
    }

    /// Takes a point away; the last one gets its number.
    pub(crate) fn remove(&mut self, number: usize) {
        let last = self.points.len() - 1;
        let (gone, moved) = (self.points[number], self.points[last]);
        self.cell_of(gone).retain(|&other| other != number);
        if number != last {
            for other in self.cell_of(moved) {
                if *other == last {
                    *other = number;
                }
            }
        }
        self.points.swap_remove(number);
    }

    /// Calls `visit` with number and squared distance of every point within `radius` of `place`, but
    /// for the point `skip`. The radius must not exceed the reach.
    pub(crate) fn visit(
        &self,
        place: [f64; 2],
        radius: f64,
        skip: Option<usize>,
        mut visit: impl FnMut(usize, f64),
    ) {
        debug_assert!(radius <= self.reach * (1.0 + 1e-12));
        let [column, row] = self.cell(place);
        let range = |middle: usize, count: usize| middle.saturating_sub(1)..(middle + 2).min(count);
        for row in range(row, self.shape[1]) {
            for column in range(column, self.shape[0]) {
                for &number in &self.cells[row * self.shape[0] + column] {
                    let away = square(self.points[number], place);
                    if Some(number) != skip && away <= radius * radius {
                        visit(number, away);
                    }
                }
            }
        }
    }

    /// How many points are within `radius`.
    pub(crate) fn count(&self, place: [f64; 2], radius: f64, skip: Option<usize>) -> usize {
        let mut count = 0;
        self.visit(place, radius, skip, |_, _| count += 1);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::draws::Draws;
    use crate::rng::Stream;

    #[test]
    fn cells_find_what_a_search_through_all_points_finds() {
        let window = Window::new([[-1.0, 2.0], [0.0, 1.3]]).unwrap();
        let mut draws = Draws::new(Stream::new(2, "near"));
        let mut near = Near::new(window, 0.2, &[]);
        for step in 0..600 {
            if step % 3 == 2 {
                near.remove(draws.below(near.points().len()));
            } else {
                near.insert(window.draw(&mut draws));
            }
            let place = window.draw(&mut draws);
            let radius = 0.2 * draws.uniform();
            let close = |point: &&[f64; 2]| square(**point, place) <= radius * radius;
            let expected = near.points().iter().filter(close).count();
            assert_eq!(near.count(place, radius, None), expected);
        }
        let point = near.points()[5];
        assert_eq!(near.count(point, 0.1, Some(5)) + 1, near.count(point, 0.1, None));
    }
}
