//! Sets: one with its locations and values, and many of different sizes in one flat array.
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

/// One set of measurements: n elements, each a value x at a location t.
///
/// Numbers are f64 as they come from files and go to exact processes; networks round to f32.
///
/// ```
/// use ebp::IndexedSet;
///
/// // Three measurements of one number at one time each.
/// let set = IndexedSet::new(1, 1, vec![0.0, 0.5, 1.0], vec![2.0, 2.1, 1.9])?;
/// assert_eq!(set.len(), 3);
/// assert_eq!((set.location(1), set.value(1)), (&[0.5][..], &[2.1][..]));
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedSet {
    location_dim: usize,
    value_dim: usize,
    locations: Vec<f64>,
    values: Vec<f64>,
}

impl IndexedSet {
    /// From row-major `locations` `[n, location_dim]` and `values` `[n, value_dim]`. The set may
    /// be empty: a context without elements leaves a process at its prior.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a dimension is 0, the lengths do not give the same n, or a
    /// number is not finite.
    pub fn new(
        location_dim: usize,
        value_dim: usize,
        locations: Vec<f64>,
        values: Vec<f64>,
    ) -> Result<Self> {
        if value_dim == 0 {
            return Err(Error::invalid("value_dim", "at least 1", value_dim));
        }
        let n = match location_dim {
            0 => values.len() / value_dim,
            _ => locations.len() / location_dim,
        };
        if locations.len() != n * location_dim || values.len() != n * value_dim {
            return Err(Error::invalid(
                "values",
                format!("as many rows as {} locations of {location_dim} numbers", locations.len()),
                format!("{} numbers of {value_dim} each", values.len()),
            ));
        }
        for (field, numbers) in [("locations", &locations), ("values", &values)] {
            if let Some(index) = numbers.iter().position(|number| !number.is_finite()) {
                return Err(Error::invalid(format!("{field}[{index}]"), "finite", numbers[index]));
            }
        }
        Ok(Self { location_dim, value_dim, locations, values })
    }

    /// A set without elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a dimension is 0.
    pub fn empty(location_dim: usize, value_dim: usize) -> Result<Self> {
        Self::new(location_dim, value_dim, Vec::new(), Vec::new())
    }

    /// n.
    pub fn len(&self) -> usize {
        self.values.len() / self.value_dim
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// d_t.
    pub fn location_dim(&self) -> usize {
        self.location_dim
    }

    /// d_x.
    pub fn value_dim(&self) -> usize {
        self.value_dim
    }

    /// All locations, row-major `[n, d_t]`.
    pub fn locations(&self) -> &[f64] {
        &self.locations
    }

    /// All values, row-major `[n, d_x]`.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// t of element `index`.
    ///
    /// # Panics
    ///
    /// If there is no such element, as slice indexing does.
    pub fn location(&self, index: usize) -> &[f64] {
        &self.locations[index * self.location_dim..][..self.location_dim]
    }

    /// x of element `index`.
    ///
    /// # Panics
    ///
    /// If there is no such element, as slice indexing does.
    pub fn value(&self, index: usize) -> &[f64] {
        &self.values[index * self.value_dim..][..self.value_dim]
    }

    /// The elements `indices`, in that order.
    ///
    /// # Panics
    ///
    /// If there is no such element, as slice indexing does.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        Self {
            locations: indices.iter().flat_map(|&i| self.location(i).iter().copied()).collect(),
            values: indices.iter().flat_map(|&i| self.value(i).iter().copied()).collect(),
            ..*self
        }
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
    fn measurements_must_fit_their_locations_and_be_finite() {
        let message =
            |t: &[f64], x: &[f64]| IndexedSet::new(1, 2, t.to_vec(), x.to_vec()).unwrap_err();
        assert!(message(&[0.0, 1.0], &[1.0, 2.0]).to_string().contains("as many rows as 2"));
        let error = message(&[0.0], &[1.0, f64::NAN]).to_string();
        assert_eq!(error, "`values[1]` must be finite, found NaN");
        let set = IndexedSet::new(1, 2, vec![0.0, 1.0], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(set.select(&[1]).values(), [3.0, 4.0]);
        assert!(IndexedSet::empty(1, 1).unwrap().is_empty());
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
