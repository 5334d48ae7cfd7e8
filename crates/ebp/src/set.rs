//! Sets of different sizes in one flat array: offsets instead of padding.
//!
//! A batch of sets is one row-major array `[total, d]` plus offsets: set `s` owns the rows
//! `offsets[s]..offsets[s + 1]`. Nothing is padded, so a batch of one large and many small sets
//! costs what its elements cost.

use std::ops::Range;

use crate::{Error, Result};

/// Where each set of a batch begins and ends, checked once.
///
/// ```
/// use ebp::SetOffsets;
///
/// let offsets = SetOffsets::from_sizes([3, 1, 2])?;
/// assert_eq!(offsets.num_sets(), 3);
/// assert_eq!(offsets.num_elements(), 6);
/// assert_eq!(offsets.range(2), 4..6);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOffsets {
    starts: Vec<usize>,
}

impl SetOffsets {
    /// From the number of elements of each set.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySet`] if a size is zero, [`Error::InvalidValue`] if there is no set or the
    /// total does not fit into 32 bits.
    pub fn from_sizes(sizes: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut starts = vec![0_usize];
        let mut total = 0_usize;
        for size in sizes {
            total = total.saturating_add(size);
            starts.push(total);
        }
        Self::from_starts(starts)
    }

    /// `num_sets` sets of `size` elements each.
    ///
    /// # Errors
    ///
    /// As [`from_sizes`](Self::from_sizes).
    pub fn uniform(num_sets: usize, size: usize) -> Result<Self> {
        Self::from_sizes(std::iter::repeat_n(size, num_sets))
    }

    /// From offsets `[0, n_1, n_1 + n_2, …]`, as Arrow and other ragged formats store them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the offsets start at 0, never fall and end below 2³²;
    /// [`Error::EmptySet`] if two neighbours are equal.
    pub fn from_starts(starts: Vec<usize>) -> Result<Self> {
        if starts.len() < 2 {
            return Err(Error::invalid("offsets", "at least one set", "none"));
        }
        if starts[0] != 0 {
            return Err(Error::invalid("offsets[0]", "0", starts[0]));
        }
        for (set, pair) in starts.windows(2).enumerate() {
            if pair[1] < pair[0] {
                return Err(Error::invalid(
                    format!("offsets[{}]", set + 1),
                    format!("at least its predecessor {}", pair[0]),
                    pair[1],
                ));
            }
            if pair[1] == pair[0] {
                return Err(Error::EmptySet { set, num_sets: starts.len() - 1 });
            }
        }
        // Row and set numbers travel as u32 through the kernels.
        let total = starts[starts.len() - 1];
        if u32::try_from(total).is_err() {
            return Err(Error::invalid("total number of elements", "below 2^32", total));
        }
        Ok(Self { starts })
    }

    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many elements in all sets together.
    pub fn num_elements(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The rows of set `set`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn range(&self, set: usize) -> Range<usize> {
        self.starts[set]..self.starts[set + 1]
    }

    /// The number of elements of set `set`.
    ///
    /// # Panics
    ///
    /// If there is no such set, as slice indexing does.
    pub fn size(&self, set: usize) -> usize {
        self.range(set).len()
    }

    /// The set that owns row `row`, by binary search.
    pub fn set_of(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_find_their_set() {
        let offsets = SetOffsets::from_sizes([2, 1, 4]).unwrap();
        let owners: Vec<_> = (0..7).map(|row| offsets.set_of(row)).collect();
        assert_eq!(owners, [0, 0, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn bad_offsets_are_refused_with_their_place() {
        let message =
            |starts: &[usize]| SetOffsets::from_starts(starts.to_vec()).unwrap_err().to_string();
        assert_eq!(message(&[0]), "`offsets` must be at least one set, found none");
        assert_eq!(message(&[1, 2]), "`offsets[0]` must be 0, found 1");
        assert_eq!(message(&[0, 3, 2]), "`offsets[2]` must be at least its predecessor 3, found 2");
        assert!(message(&[0, 3, 3]).contains("set 1 of 2 is empty"));
        assert!(SetOffsets::from_sizes([usize::MAX, 2]).is_err());
    }
}
