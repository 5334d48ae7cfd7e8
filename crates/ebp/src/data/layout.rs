//! Data sets that people use: what they are, where they come from, how their folders look, and
//! whether a copy is complete. Nothing is ever downloaded.

mod count;
mod known;

use std::path::Path;

use crate::{Error, Result};

use count::count;
pub use known::LAYOUTS;

/// One data set.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How it is called on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Under which terms it may be used.
    pub licence: &'static str,
    /// Where people get it.
    pub origin: &'static str,
    /// How its folder looks.
    pub folder: &'static str,
    /// What a complete copy holds.
    pub expectations: &'static [Expectation],
}

/// Something to count.
#[derive(Clone, Copy, Debug)]
pub struct Expectation {
    /// What is counted, in words.
    pub what: &'static str,
    /// Where: a path below the folder, empty for the folder itself.
    pub place: &'static str,
    /// How.
    pub count: Count,
    /// How many there should be; `None` where copies differ.
    pub expected: Option<usize>,
}

/// A way to count.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Files with an ending, in all folders below.
    Files(&'static str),
    /// Files with an ending whose path has a folder of that name.
    FilesIn(&'static str, &'static str),
    /// Entries of the first axis of a NumPy file, or of all those in a folder.
    Rows,
    /// Items that an IDX file, packed or not, says it has.
    Items,
    /// Pictures in a folder, or in the only zip archive there.
    Pictures,
    /// Lines of a text.
    Lines,
    /// Points that a point pattern says it has.
    Points,
}

/// What was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// What, in words.
    pub what: &'static str,
    /// How many there are; `None` if the place does not exist.
    pub found: Option<usize>,
    /// How many there should be.
    pub expected: Option<usize>,
}

impl Counted {
    /// Whether the copy is as expected here.
    pub fn is_right(&self) -> bool {
        self.found.is_some() && (self.expected.is_none() || self.expected == self.found)
    }
}

impl Layout {
    /// By its name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] with all names if there is no such data set.
    pub fn named(name: &str) -> Result<&'static Self> {
        LAYOUTS.iter().find(|layout| layout.name == name).ok_or_else(|| {
            let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
            Error::invalid("name", format!("one of {}", names.join(", ")), name)
        })
    }

    /// Counts what a copy holds.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Malformed`] if something is there but cannot be read.
    pub fn check(&self, folder: &Path) -> Result<Vec<Counted>> {
        self.expectations
            .iter()
            .map(|expectation| {
                let place = folder.join(expectation.place);
                let found =
                    if place.exists() { Some(count(&place, expectation.count)?) } else { None };
                Ok(Counted { what: expectation.what, found, expected: expectation.expected })
            })
            .collect()
    }
}
