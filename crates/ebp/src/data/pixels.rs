//! Pictures as sets of pixels: what a pixel shows is its value, where it stands its location.
//!
//! ```text
//! x = (2 level + 1)/256 − 1                        level 0 … 255, one a channel
//! t = ((2 column + 1)/width − 1, (2 row + 1)/height − 1)
//! ```
//!
//! Both are the middles of equal cells that fill [−1, 1], so that a picture of another size has its
//! pixels in the same square, and x + U(−1/256, 1/256) has a density wherever x may lie.

use std::ops::Range;

use crate::{Error, Result};

use super::cache::Cache;

/// Levels of a channel.
const NUM_LEVELS: usize = 256;

/// The value of a level of 8 bits.
pub fn value_of_level(level: u8) -> f32 {
    middle(usize::from(level), NUM_LEVELS)
}

/// The level whose cell holds a value; what lies outside [−1, 1] goes to the nearest level.
pub fn level_of_value(value: f32) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
    let level = ((value + 1.0) * 128.0).floor().clamp(0.0, 255.0) as u8;
    level
}

/// The middle of cell `index` of `count` cells that fill [−1, 1].
fn middle(index: usize, count: usize) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    let middle = ((2 * index + 1) as f64 / count as f64 - 1.0) as f32;
    middle
}

/// The places of a picture's pixels, row by row.
#[derive(Clone, Debug)]
pub struct Grid {
    channels: usize,
    /// The location of each column, of each row.
    columns: Vec<f32>,
    rows: Vec<f32>,
    /// The value of each level.
    values: Vec<f32>,
}

impl Grid {
    /// Of pictures with `channels` numbers a pixel.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are no pixels.
    pub fn new(width: usize, height: usize, channels: usize) -> Result<Self> {
        if width == 0 || height == 0 || channels == 0 {
            let found = format!("{width} x {height} x {channels}");
            return Err(Error::invalid("picture", "at least one pixel and channel", found));
        }
        Ok(Self {
            channels,
            columns: (0..width).map(|column| middle(column, width)).collect(),
            rows: (0..height).map(|row| middle(row, height)).collect(),
            values: (0..=u8::MAX).map(value_of_level).collect(),
        })
    }

    /// Of the pictures of a cache.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it holds no pictures, or pictures of another size than it says.
    pub fn of_cache(cache: &Cache) -> Result<Self> {
        let Some([width, height]) = cache.meta().picture_size else {
            return Err(Error::invalid("cache", "of pictures", "no size of pictures"));
        };
        // Before anything is made for a size that a damaged file may claim.
        let offsets = cache.offsets();
        let mut sizes = (0..offsets.num_sets()).map(|set| offsets.size(set));
        let num_pixels = width.checked_mul(height);
        if let Some(size) = sizes.find(|&size| Some(size) != num_pixels) {
            let expected = format!("pictures of {width} x {height} pixels");
            return Err(Error::invalid("cache", expected, format!("one of {size}")));
        }
        Self::new(width, height, cache.meta().dim)
    }

    /// Pixels of a picture.
    pub fn num_pixels(&self) -> usize {
        self.columns.len() * self.rows.len()
    }

    /// Numbers of an element: the channels and the two of its place.
    pub fn dim(&self) -> usize {
        self.channels + 2
    }

    /// Appends the elements `[value, location]` of the pixels in `places`, counted row by row.
    ///
    /// # Panics
    ///
    /// If the picture has no such pixels, as slice indexing does.
    pub fn push(&self, picture: &[u8], places: Range<usize>, elements: &mut Vec<f32>) {
        elements.reserve(places.len() * self.dim());
        let width = self.columns.len();
        for place in places {
            let levels = &picture[place * self.channels..(place + 1) * self.channels];
            elements.extend(levels.iter().map(|&level| self.values[usize::from(level)]));
            elements.push(self.columns[place % width]);
            elements.push(self.rows[place / width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_places_are_the_middles_of_cells() {
        assert_eq!((value_of_level(0), value_of_level(255)), (-255.0 / 256.0, 255.0 / 256.0));
        for level in 0..=u8::MAX {
            let value = value_of_level(level);
            assert_eq!(level_of_value(value), level);
            assert_eq!(level_of_value(value + 0.99 / 256.0), level, "its cell reaches that far");
            assert_eq!(level_of_value(value - 0.99 / 256.0), level);
        }
        assert_eq!((level_of_value(-7.0), level_of_value(7.0)), (0, 255));
        // Two rows of four: columns at ±3/4 and ±1/4, rows at ±1/2.
        let grid = Grid::new(4, 2, 1).unwrap();
        let mut elements = Vec::new();
        grid.push(&[0, 1, 2, 3, 4, 5, 6, 7], 3..5, &mut elements);
        assert_eq!(elements, [value_of_level(3), 0.75, -0.5, value_of_level(4), -0.75, 0.5]);
        assert!(Grid::new(0, 2, 1).is_err());
    }
}
