//! Work cut into shares, one for each of several processes.
//!
//! ```text
//! share 2/4 of 10 things   in one piece: 2, 3, 4    (range)     dealt out: 1, 5, 9   (has)
//! ```
//!
//! Shares are counted from 1 where people write them, as job arrays are.

use std::fmt::{self, Display};
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One of several shares that together are everything, none twice.
///
/// ```
/// use ebp::Share;
///
/// let share: Share = "2/4".parse()?;
/// assert_eq!(share.range(10), 2..5);
/// assert!(share.has(1) && share.has(5) && !share.has(2));
/// assert!("5/4".parse::<Share>().is_err());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Share {
    /// From 0.
    index: usize,
    count: usize,
}

impl Share {
    /// Share `number`, from 1, of `count`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no such share.
    pub fn new(number: usize, count: usize) -> Result<Self> {
        match number.checked_sub(1) {
            Some(index) if index < count => Ok(Self { index, count }),
            _ => {
                let expected = "a number from 1 and of how many, such as 2/4";
                Err(Error::invalid("share", expected, format!("{number}/{count}")))
            }
        }
    }

    /// Which one it is, from 1.
    pub fn number(self) -> usize {
        self.index + 1
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.count
    }

    /// Its part of `things`, in one piece: parts differ by one thing at most, and follow each other.
    pub fn range(self, things: usize) -> Range<usize> {
        let (each, rest) = (things / self.count, things % self.count);
        let start = |index: usize| index * each + index * rest / self.count;
        start(self.index)..start(self.index + 1)
    }

    /// Whether thing `number`, from 0, belongs to it where things are dealt out one by one.
    pub fn has(self, number: usize) -> bool {
        number % self.count == self.index
    }
}

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number(), self.count)
    }
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some((number.trim().parse().ok()?, count.trim().parse().ok()?))
        });
        let expected = "a number from 1 and of how many, such as 2/4";
        let (number, count) = numbers.ok_or_else(|| Error::invalid("share", expected, text))?;
        Self::new(number, count)
    }
}

impl TryFrom<String> for Share {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Share> for String {
    fn from(share: Share) -> Self {
        share.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_everything_and_nothing_twice() {
        for count in 1..9 {
            let shares: Vec<Share> =
                (1..=count).map(|number| Share::new(number, count).unwrap()).collect();
            for things in 0..30 {
                let pieces: Vec<usize> =
                    shares.iter().flat_map(|share| share.range(things)).collect();
                assert_eq!(pieces, (0..things).collect::<Vec<_>>());
                let sizes = shares.iter().map(|share| share.range(things).len());
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
                for thing in 0..things {
                    assert_eq!(shares.iter().filter(|share| share.has(thing)).count(), 1);
                }
            }
        }
    }

    #[test]
    fn what_is_no_share_is_said() {
        for text in ["0/4", "5/4", "1/0", "2", "a/b", "2/4/8", "-1/4", ""] {
            let error = text.parse::<Share>().unwrap_err().to_string();
            assert!(error.contains("such as 2/4") && error.contains(text), "{error}");
        }
    }
}
