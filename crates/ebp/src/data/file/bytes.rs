//! A walk through the bytes of a file.

use crate::error::Place;
use crate::{Error, Result};

use super::{ByteOrder, NumberKind, malformed};

/// Bytes of a file from a position on.
#[derive(Clone, Debug)]
pub(crate) struct Bytes<'a> {
    file: &'a str,
    all: &'a [u8],
    position: usize,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(file: &'a str, all: &'a [u8]) -> Self {
        Self { file, all, position: 0 }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.all.get(self.position..).unwrap_or_default()
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Leaves out `count` bytes, or as many as there are.
    pub(crate) fn advance(&mut self, count: usize) {
        self.position = self.position.saturating_add(count).min(self.all.len());
    }

    /// The next `count` bytes; `what` says what they should be.
    pub(crate) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        let rest = self.rest();
        let Some(taken) = rest.get(..count) else {
            let expected = format!("{count} bytes of {what}");
            return Err(self.error(expected, format!("{} until the end", rest.len())));
        };
        self.position += count;
        Ok(taken)
    }

    /// Everything left, which must be exactly `count` bytes.
    pub(crate) fn take_rest(&mut self, count: Option<usize>, what: &str) -> Result<&'a [u8]> {
        let found = self.rest().len();
        match count {
            Some(count) if count == found => self.take(count, what),
            Some(count) => {
                let found = format!("{found} until the end");
                Err(self.error(format!("{count} bytes of {what}"), found))
            }
            None => {
                let expected = format!("{what} that fits into memory");
                Err(self.error(expected, "sizes whose product overflows"))
            }
        }
    }

    /// One number.
    pub(crate) fn number(&mut self, kind: NumberKind, order: ByteOrder, what: &str) -> Result<f64> {
        Ok(kind.read(self.take(kind.size(), what)?, order))
    }

    /// A whole number from 0.
    pub(crate) fn count(
        &mut self,
        kind: NumberKind,
        order: ByteOrder,
        what: &str,
    ) -> Result<usize> {
        let start = self.position;
        let number = self.number(kind, order, what)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        if number >= 0.0 && number <= 2_f64.powi(53) {
            return Ok(number as usize);
        }
        let expected = format!("{what}, a whole number from 0");
        Err(malformed(self.file, Place::Byte(start), expected, number.to_string()))
    }

    /// An error at the current position.
    pub(crate) fn error(&self, expected: impl Into<String>, found: impl AsRef<str>) -> Error {
        malformed(self.file, Place::Byte(self.position), expected, found)
    }
}

/// The first few bytes, as an error shows them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const SHOWN: usize = 16;
    let text: String = bytes
        .iter()
        .take(SHOWN)
        .flat_map(|&byte| std::ascii::escape_default(byte))
        .map(char::from)
        .collect();
    if bytes.is_empty() { "nothing".into() } else { format!("`{text}`") }
}
