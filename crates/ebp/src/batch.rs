//! Many sets of numbered elements in one flat array, f32: what learned processes read.

use crate::{Error, IndexedSet, Result};

/// Sets one after the other; a set may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct SetBatch {
    location_dim: usize,
    value_dim: usize,
    /// Where each set's elements begin, and the end.
    starts: Vec<usize>,
    locations: Vec<f32>,
    values: Vec<f32>,
}

impl SetBatch {
    /// No sets of elements with `location_dim` numbers of location (may be 0) and `value_dim` of
    /// value.
    pub fn new(location_dim: usize, value_dim: usize) -> Self {
        Self { location_dim, value_dim, starts: vec![0], locations: Vec::new(), values: Vec::new() }
    }

    /// Adds a set: locations `[n, d_t]` and values `[n, d_x]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if they are not as many rows.
    pub fn push(&mut self, locations: &[f32], values: &[f32]) -> Result<()> {
        let n = values.len() / self.value_dim.max(1);
        if n * self.value_dim != values.len() || n * self.location_dim != locations.len() {
            let (dt, dx) = (self.location_dim, self.value_dim);
            let expected = format!("rows of {dt} and {dx} numbers");
            let found = format!("{} and {} numbers", locations.len(), values.len());
            return Err(Error::invalid("set", expected, found));
        }
        self.locations.extend_from_slice(locations);
        self.values.extend_from_slice(values);
        self.starts.push(self.starts[self.starts.len() - 1] + n);
        Ok(())
    }

    /// Sets of f64 numbers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a set has other dimensions.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub fn from_sets<'a>(
        location_dim: usize,
        value_dim: usize,
        sets: impl IntoIterator<Item = &'a IndexedSet>,
    ) -> Result<Self> {
        let mut batch = Self::new(location_dim, value_dim);
        let narrow = |numbers: &[f64]| numbers.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        for set in sets {
            if (set.location_dim(), set.value_dim()) != (location_dim, value_dim) {
                let expected = format!("locations of {location_dim} and values of {value_dim}");
                let found = format!("{} and {} numbers", set.location_dim(), set.value_dim());
                return Err(Error::invalid("set", expected, found));
            }
            batch.push(&narrow(set.locations()), &narrow(set.values()))?;
        }
        Ok(batch)
    }

    /// d_t.
    pub fn location_dim(&self) -> usize {
        self.location_dim
    }

    /// d_x.
    pub fn value_dim(&self) -> usize {
        self.value_dim
    }

    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many elements in all.
    pub fn num_elements(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// n of a set.
    pub fn size(&self, set: usize) -> usize {
        self.starts[set + 1] - self.starts[set]
    }

    /// t of a set's elements, `[n, d_t]`.
    pub fn locations(&self, set: usize) -> &[f32] {
        &self.locations
            [self.starts[set] * self.location_dim..self.starts[set + 1] * self.location_dim]
    }

    /// x of a set's elements, `[n, d_x]`.
    pub fn values(&self, set: usize) -> &[f32] {
        &self.values[self.starts[set] * self.value_dim..self.starts[set + 1] * self.value_dim]
    }

    /// t of all elements of all sets, `[total, d_t]`.
    pub fn all_locations(&self) -> &[f32] {
        &self.locations
    }

    /// x of all elements of all sets, `[total, d_x]`.
    pub fn all_values(&self) -> &[f32] {
        &self.values
    }

    /// How many elements each set has.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.starts.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Some elements of a set, in the order given, as a batch of that one set.
    ///
    /// # Panics
    ///
    /// If there is no such set or element, as slice indexing does.
    #[must_use]
    pub fn select(&self, set: usize, elements: &[usize]) -> Self {
        let gather = |numbers: &[f32], width: usize| -> Vec<f32> {
            elements.iter().flat_map(|&n| &numbers[n * width..][..width]).copied().collect()
        };
        Self {
            starts: vec![0, elements.len()],
            locations: gather(self.locations(set), self.location_dim),
            values: gather(self.values(set), self.value_dim),
            ..*self
        }
    }

    /// The sets of `other`, which has the same dimensions, after these.
    fn append(&mut self, other: &Self) {
        let end = self.num_elements();
        self.starts.extend(other.starts[1..].iter().map(|start| end + start));
        self.locations.extend_from_slice(&other.locations);
        self.values.extend_from_slice(&other.values);
    }

    /// Every set with the elements of the same set of `other` after its own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are not as many sets.
    pub fn union(&self, other: &Self) -> Result<Self> {
        if self.num_sets() != other.num_sets() {
            let expected = format!("{} sets", self.num_sets());
            return Err(Error::invalid("other", expected, other.num_sets()));
        }
        let mut all = Self::new(self.location_dim, self.value_dim);
        for set in 0..self.num_sets() {
            let locations = [self.locations(set), other.locations(set)].concat();
            all.push(&locations, &[self.values(set), other.values(set)].concat())?;
        }
        Ok(all)
    }
}

/// Sets of words: the distinct words of each in rising order, and how often they occur. Nothing is
/// left of the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordCounts {
    /// Where the words of each set begin, and the end.
    pub(crate) starts: Vec<usize>,
    pub(crate) words: Vec<u32>,
    pub(crate) counts: Vec<u32>,
}

impl WordCounts {
    /// Counts the words of every set; values are their numbers, whole and below `num_words`.
    pub(crate) fn new(sets: &SetBatch, num_words: usize) -> Result<Self> {
        let mut found = Self { starts: vec![0], words: Vec::new(), counts: Vec::new() };
        let mut own = Vec::new();
        for set in 0..sets.num_sets() {
            own.clear();
            for &value in sets.values(set) {
                own.push(word(f64::from(value), num_words)?);
            }
            own.sort_unstable();
            for same in own.chunk_by(|a, b| a == b) {
                found.words.push(same[0]);
                found.counts.push(u32::try_from(same.len()).unwrap_or(u32::MAX));
            }
            found.starts.push(found.words.len());
        }
        Ok(found)
    }

    pub(crate) fn num_sets(&self) -> usize {
        self.starts.len() - 1
    }

    /// The words of a set with their counts.
    pub(crate) fn of_set(&self, set: usize) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        let range = self.starts[set]..self.starts[set + 1];
        self.words[range.clone()].iter().copied().zip(self.counts[range].iter().copied())
    }

    /// How often a word occurs in a set.
    pub(crate) fn count(&self, set: usize, word: u32) -> u32 {
        let start = self.starts[set];
        let place = self.words[start..self.starts[set + 1]].binary_search(&word);
        place.map_or(0, |place| self.counts[start + place])
    }

    /// n of a set: its words, repeated ones counted as often as they occur.
    pub(crate) fn size(&self, set: usize) -> usize {
        self.of_set(set).map(|(_, count)| count as usize).sum()
    }
}

/// The word whose number a value is.
pub(crate) fn word(value: f64, num_words: usize) -> Result<u32> {
    if (0.0..num_words as f64).contains(&value) && value.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        return Ok(value as u32);
    }
    let expected = format!("the number of a word, whole and below {num_words}");
    Err(Error::invalid("word", expected, value))
}

/// Sets cut in two: what is observed, and what is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskBatch {
    /// The observed elements of every set; may be none.
    pub context: SetBatch,
    /// The elements to predict, at least one of every set.
    pub target: SetBatch,
}

impl TaskBatch {
    /// Sets of which nothing is observed.
    pub fn whole(sets: SetBatch) -> Self {
        let mut context = SetBatch::new(sets.location_dim, sets.value_dim);
        context.starts = vec![0; sets.starts.len()];
        Self { context, target: sets }
    }

    /// All sets of several batches, in their order.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no batch or their dimensions differ.
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Result<Self> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or_else(|| Error::invalid("tasks", "at least one", 0))?;
        let (dt, dx) = (all.target.location_dim, all.target.value_dim);
        for part in parts {
            part.check(dt, dx)?;
            all.context.append(&part.context);
            all.target.append(&part.target);
        }
        Ok(all)
    }

    /// How many sets.
    pub fn num_sets(&self) -> usize {
        self.target.num_sets()
    }

    /// Checks that there are sets, that each asks for something, and dimensions.
    pub(crate) fn check(&self, location_dim: usize, value_dim: usize) -> Result<()> {
        let show = |t: usize, x: usize| format!("locations of {t} and values of {x} numbers");
        for (field, part) in [("context", &self.context), ("target", &self.target)] {
            if (part.location_dim, part.value_dim) != (location_dim, value_dim) {
                let found = show(part.location_dim, part.value_dim);
                return Err(Error::invalid(field, show(location_dim, value_dim), found));
            }
        }
        if self.target.num_sets() == 0 || self.target.num_sets() != self.context.num_sets() {
            return Err(Error::invalid("tasks", "at least one set", self.target.num_sets()));
        }
        match (0..self.num_sets()).find(|&set| self.target.size(set) == 0) {
            Some(set) => {
                let field = format!("tasks[{set}].target");
                Err(Error::invalid(field, "at least one element", "none"))
            }
            None => Ok(()),
        }
    }
}
