//! The places where elements can stand: the pixels of a picture. The one grid of the crate: readers,
//! processes and drawings all take a pixel's place and location from here.

use crate::{Error, Result};

/// How far a location may lie from its place, as a share of the distance between places.
const TOLERANCE: f64 = 1e-3;

/// Places in rows and columns on [−1, 1]²; the first coordinate goes right, the second down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    width: usize,
    height: usize,
}

impl Default for Grid {
    /// MNIST's 28 × 28.
    fn default() -> Self {
        Self { width: 28, height: 28 }
    }
}

impl Grid {
    /// A grid of `width` columns and `height` rows.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no place, or there are more than 2¹⁶.
    pub fn new(width: usize, height: usize) -> Result<Self> {
        if width == 0 || height == 0 || width.saturating_mul(height) > 1 << 16 {
            let found = format!("{width} x {height}");
            return Err(Error::invalid("grid", "from 1 to 65536 places", found));
        }
        Ok(Self { width, height })
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// How many places.
    pub fn num_places(&self) -> usize {
        self.width * self.height
    }

    /// t of a place, counted row by row.
    pub fn location(&self, place: usize) -> [f64; 2] {
        let coordinate = |index: usize, count: usize| match count {
            1 => 0.0,
            _ => 2.0 * index as f64 / (count - 1) as f64 - 1.0,
        };
        [coordinate(place % self.width, self.width), coordinate(place / self.width, self.height)]
    }

    /// The place at a location.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if no place is there.
    pub fn place(&self, location: &[f64]) -> Result<usize> {
        let index = |coordinate: f64, count: usize| {
            let position = 0.5 * (coordinate + 1.0) * (count - 1) as f64;
            let is_near = if count == 1 {
                coordinate.abs() <= TOLERANCE
            } else {
                (position - position.round()).abs() <= TOLERANCE
                    && position > -0.5
                    && position < count as f64 - 0.5
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be one of the places"
            )]
            is_near.then_some(if count == 1 { 0 } else { position.round() as usize })
        };
        let found = match *location {
            [x, y] => index(x, self.width).zip(index(y, self.height)),
            _ => None,
        };
        found.map(|(column, row)| row * self.width + column).ok_or_else(|| {
            let expected = format!("a place of the grid of {} x {}", self.width, self.height);
            Error::invalid("location", expected, format!("{location:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_at_its_location_and_nothing_elsewhere() {
        for (width, height) in [(1, 1), (1, 5), (28, 28), (7, 3)] {
            let grid = Grid::new(width, height).unwrap();
            for place in 0..grid.num_places() {
                assert_eq!(grid.place(&grid.location(place)).unwrap(), place);
            }
        }
        let grid = Grid::new(5, 5).unwrap();
        for wrong in [&[0.1, 0.0][..], &[1.5, 0.0], &[-1.5, 0.0], &[f64::NAN, 0.0], &[0.0]] {
            assert!(grid.place(wrong).is_err(), "{wrong:?}");
        }
        assert!(Grid::new(0, 3).is_err() && Grid::new(1000, 1000).is_err());
    }
}
