//! A walk through the lines of a text file, and the numbers in them.

use crate::error::Place;
use crate::{Error, Result};

use super::malformed;

/// The lines of a file that are not empty, without comments.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'a> {
    file: &'a str,
    rest: &'a [u8],
    /// Lines read so far.
    number: usize,
    comment: Option<&'static str>,
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    file: &'a str,
    pub(crate) number: usize,
    pub(crate) text: &'a str,
}

impl<'a> Lines<'a> {
    /// Of a text whose comments start with `comment` and go to the end of the line.
    pub(crate) fn new(file: &'a str, bytes: &'a [u8], comment: Option<&'static str>) -> Self {
        let rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        Self { file, rest, number: 0, comment }
    }

    /// The next line that holds something.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'a>>> {
        while !self.rest.is_empty() {
            let raw = self.take_raw();
            let text = std::str::from_utf8(raw).map_err(|error| {
                let found = format!("other bytes after {} of its bytes", error.valid_up_to());
                malformed(self.file, Place::Line(self.number), "UTF-8 text", found)
            })?;
            let text = match self.comment {
                Some(mark) => text.split(mark).next().unwrap_or_default(),
                None => text,
            };
            let text = text.trim();
            if !text.is_empty() {
                return Ok(Some(Line { file: self.file, number: self.number, text }));
            }
        }
        Ok(None)
    }

    /// The next line, or an error that says what it should have been.
    pub(crate) fn expect(&mut self, what: &str) -> Result<Line<'a>> {
        match self.next_line()? {
            Some(line) => Ok(line),
            None => Err(self.at_end(what)),
        }
    }

    /// Bytes that no line has taken yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// That something is missing at the end of the file.
    pub(crate) fn at_end(&self, expected: impl Into<String>) -> Error {
        let found = "the end of the file";
        malformed(self.file, Place::Line(self.number.max(1)), expected, found)
    }

    fn take_raw(&mut self) -> &'a [u8] {
        self.number += 1;
        let end = self.rest.iter().position(|&byte| byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        line
    }
}

impl<'a> Line<'a> {
    /// A part of this line.
    pub(crate) fn part(&self, text: &'a str) -> Self {
        Self { text, ..*self }
    }

    /// Its words: blanks, commas and semicolons separate.
    pub(crate) fn words(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.text
            .split(|c: char| c.is_ascii_whitespace() || c == ',' || c == ';')
            .filter(|word| !word.is_empty())
    }

    /// A word as a number. NaN and infinities are numbers of files, too.
    pub(crate) fn number(&self, word: &str) -> Result<f64> {
        match word.parse() {
            Ok(number) => Ok(number),
            Err(_) => Err(self.error("a number", word)),
        }
    }

    /// A word as a whole number from 0.
    pub(crate) fn count(&self, word: Option<&str>, what: &str) -> Result<usize> {
        let Some(word) = word else { return Err(self.error(what, "the end of the line")) };
        let wrong = |_: std::num::ParseIntError| {
            self.error(format!("{what}, a whole number"), format!("`{word}`"))
        };
        word.parse().map_err(wrong)
    }

    /// An error on this line.
    pub(crate) fn error(&self, expected: impl Into<String>, found: impl AsRef<str>) -> Error {
        malformed(self.file, Place::Line(self.number), expected, found)
    }
}
