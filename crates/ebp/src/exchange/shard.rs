//! One part of every step.

use crate::rng::Stream;
use crate::{Error, Result};

/// Streams of shards lie beyond the numbers by which a step divides its own.
const FIRST_STREAM: u64 = 1 << 20;

/// Shard `index` of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl Shard {
    /// A step that is not cut.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no such shard.
    pub fn new(index: usize, count: usize) -> Result<Self> {
        if index < count {
            return Ok(Self { index, count });
        }
        Err(Error::invalid("shard", format!("below the number of shards, {count}"), index))
    }

    /// Which, from 0.
    pub fn index(self) -> usize {
        self.index
    }

    /// Of how many.
    pub fn count(self) -> usize {
        self.count
    }

    /// How many of `total` things of a step are this shard's; `field` is the setting that says how many.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if not all shards get as many, as a mean over shards must be one over sets.
    pub fn part_of(self, field: &str, total: usize) -> Result<usize> {
        // A step that is not cut has all; who takes its settings judges them.
        if self.count == 1 || (total.is_multiple_of(self.count) && total > 0) {
            return Ok(total / self.count);
        }
        let expected = format!("a multiple of `train.shards` = {}", self.count);
        Err(Error::invalid(field, expected, total))
    }

    /// The stream of this shard of a step; the step's own if it is not cut.
    pub fn stream(self, step: Stream) -> Stream {
        if self.count == 1 { step } else { step.child(FIRST_STREAM + self.index as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_equal_parts_and_streams_of_their_own() {
        let shard = Shard::new(2, 4).unwrap();
        assert_eq!(shard.part_of("batch_size", 12).unwrap(), 3);
        let error = shard.part_of("batch_size", 6).unwrap_err().to_string();
        assert_eq!(error, "`batch_size` must be a multiple of `train.shards` = 4, found 6");
        assert!(shard.part_of("batch_size", 0).is_err() && Shard::new(4, 4).is_err());
        let step = Stream::new(1, "train").child(7);
        let streams: Vec<_> = (0..4).map(|i| Shard::new(i, 4).unwrap().stream(step)).collect();
        for (index, stream) in streams.iter().enumerate() {
            assert!(*stream != step && !streams[..index].contains(stream));
        }
        assert_eq!(Shard::WHOLE.stream(step), step);
    }
}
