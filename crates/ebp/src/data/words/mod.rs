//! Bags of words: documents as sets of words with counts.
//!
//! | format | a document |
//! |---|---|
//! | svmlight | a line `label id:count id:count …` |
//! | UCI docword | lines `document word count` after three lines with the numbers of documents, words and such lines |
//!
//! Documents without words are left out, because no set is empty; `ids` says which remain.

mod docword;
mod svmlight;

use std::path::Path;

use crate::{Result, SetOffsets};

use super::file::{Lines, name_of, read_bytes};

pub use docword::{docword_bytes, parse_docword};
pub use svmlight::{parse_svmlight, svmlight_bytes};

/// Documents as bags of words.
#[derive(Clone, Debug, PartialEq)]
pub struct Bags {
    /// Where the words of each document begin and end.
    pub offsets: SetOffsets,
    /// The words, by their numbers from 0.
    pub words: Vec<u32>,
    /// How often each of them occurs in its document, at least once.
    pub counts: Vec<u32>,
    /// The number of each document in the file, from 0.
    pub ids: Vec<usize>,
    /// What each document is labelled; empty where the format has no labels.
    pub labels: Vec<f64>,
}

impl Bags {
    /// One above the largest word's number.
    pub fn num_words(&self) -> usize {
        self.words.iter().max().map_or(0, |&word| word as usize + 1)
    }
}

/// Reads documents: UCI's docword by its name, `docword…`, everything else as svmlight.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io), otherwise as [`parse_docword`] and [`parse_svmlight`].
pub fn read_bags(path: &Path) -> Result<Bags> {
    let (bytes, file) = (read_bytes(path)?, name_of(path));
    if file.starts_with("docword") {
        parse_docword(&bytes, &file)
    } else {
        parse_svmlight(&bytes, &file)
    }
}

/// Reads a vocabulary: a word a line, what follows it (a count) left out.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io), or [`Error::Malformed`](crate::Error::Malformed) if it is no
/// text.
pub fn read_vocabulary(path: &Path) -> Result<Vec<String>> {
    let (bytes, file) = (read_bytes(path)?, name_of(path));
    let mut lines = Lines::new(&file, &bytes, None);
    let mut words = Vec::new();
    while let Some(line) = lines.next_line()? {
        words.extend(line.text.split_ascii_whitespace().next().map(str::to_owned));
    }
    Ok(words)
}
