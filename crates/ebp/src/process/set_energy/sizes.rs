//! The law of n, the number of elements of a set.
//!
//! An energy of whole sets is a law for every n, exp u/Zₙ; with p(n) beside it sets of random size are
//! drawn. p(n) is a histogram: how often each n was seen.

use std::collections::BTreeMap;

use crate::rng::Stream;
use crate::{Error, Result};

/// Sizes with their shares.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeLaw {
    /// Ascending, each with the share of sets that are no larger; the last is 1.
    cumulative: Vec<(usize, f64)>,
}

impl SizeLaw {
    /// Every set has `size` elements.
    ///
    /// # Errors
    ///
    /// As [`fitted`](Self::fitted).
    pub fn fixed(size: usize) -> Result<Self> {
        Self::fitted([size])
    }

    /// How often sizes were seen.
    ///
    /// ```
    /// use ebp::process::SizeLaw;
    ///
    /// let law = SizeLaw::fitted([3, 5, 5, 5]).unwrap();
    /// assert_eq!(law.shares(), [(3, 0.25), (5, 0.75)]);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are none, or a set is empty.
    pub fn fitted(sizes: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut counts = BTreeMap::new();
        for size in sizes {
            *counts.entry(size).or_insert(0.0) += 1.0;
        }
        Self::from_shares(counts)
    }

    /// From sizes and their shares, which need not sum to 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are none, a size is 0, or a share is negative or not finite.
    pub fn from_shares(shares: impl IntoIterator<Item = (usize, f64)>) -> Result<Self> {
        let mut cumulative: Vec<(usize, f64)> = shares.into_iter().collect();
        cumulative.sort_unstable_by_key(|&(size, _)| size);
        let mut total = 0.0;
        for (size, share) in &mut cumulative {
            if *size == 0 {
                return Err(Error::invalid("set size", "at least 1", *size));
            }
            if !(*share >= 0.0 && share.is_finite()) {
                return Err(Error::invalid("share of a set size", "finite, at least 0", *share));
            }
            total += *share;
            *share = total;
        }
        if total <= 0.0 {
            return Err(Error::invalid("set sizes", "at least one with a share", "none"));
        }
        for (_, share) in &mut cumulative {
            *share /= total;
        }
        Ok(Self { cumulative })
    }

    /// Sizes and their shares, ascending.
    pub fn shares(&self) -> Vec<(usize, f64)> {
        let before = std::iter::once(0.0).chain(self.cumulative.iter().map(|&(_, share)| share));
        self.cumulative
            .iter()
            .zip(before)
            .map(|(&(size, share), last)| (size, share - last))
            .collect()
    }

    /// Draw `number` of the stream.
    pub fn draw(&self, stream: Stream, number: u64) -> usize {
        let mut uniform = [0.0];
        stream.fill_uniform(0, number, &mut uniform);
        let is_reached = |&&(_, share): &&(usize, f64)| f64::from(uniform[0]) < share;
        let found = self.cumulative.iter().find(is_reached).or(self.cumulative.last());
        found.map_or(1, |&(size, _)| size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_fitted_shares() {
        let law = SizeLaw::from_shares([(9, 1.0), (4, 3.0), (7, 0.0)]).unwrap();
        assert_eq!(law.shares(), [(4, 0.75), (7, 0.0), (9, 0.25)]);
        let count = 4000;
        let stream = Stream::new(1, "sizes");
        let fours = (0..count).filter(|&number| law.draw(stream, number) == 4).count();
        assert!((0..count).all(|number| law.draw(stream, number) != 7));
        // A standard error of √(0.75 · 0.25/4000) = 0.007.
        assert!((fours as f64 / count as f64 - 0.75).abs() < 4.0 * 0.007, "{fours}");
    }

    #[test]
    fn laws_that_are_none_are_refused() {
        assert!(SizeLaw::fitted([]).is_err());
        assert!(SizeLaw::fitted([0]).unwrap_err().to_string().contains("`set size`"));
        assert!(SizeLaw::from_shares([(3, f64::NAN)]).is_err());
        assert!(SizeLaw::from_shares([(3, 0.0)]).is_err());
    }
}
