//! CSV as RFC 4180 describes it, one record at a time.

use std::io::BufRead;

use crate::{Error, Result};

use super::parse_error;

/// Longer fields and records are taken for a forgotten quote or a file that is no table.
const LONGEST_RECORD: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One row: its fields, and the line each of them starts on.
pub(super) struct Record {
    pub(super) fields: Vec<String>,
    pub(super) line: usize,
}

/// A reader of records.
pub(super) struct Records<'a, R> {
    input: R,
    file: &'a str,
    /// The first line, read ahead to find the separator.
    pending: Option<Vec<u8>>,
    separator: u8,
    /// Lines read so far.
    line: usize,
}

impl<'a, R: BufRead> Records<'a, R> {
    /// Looks at the first line that is not empty for the separator.
    pub(super) fn new(input: R, file: &'a str) -> Result<Self> {
        let mut records = Self { input, file, pending: None, separator: b',', line: 0 };
        let mut first = records.read_line()?.unwrap_or_default();
        if first.starts_with(BYTE_ORDER_MARK) {
            first.drain(..BYTE_ORDER_MARK.len());
        }
        while !first.is_empty() && without_line_end(&first).is_empty() {
            first = records.read_line()?.unwrap_or_default();
        }
        if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
            return Err(records.error("1", "UTF-8 text", "UTF-16; save the file as UTF-8"));
        }
        records.separator = separator_of(&first);
        records.pending = Some(first);
        Ok(records)
    }

    /// The line of the last record read, from 1.
    pub(super) fn line(&self) -> usize {
        self.line.max(1)
    }

    /// The next record that is not an empty line.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>> {
        loop {
            let Some(mut bytes) = self.next_line()? else { return Ok(None) };
            let start = self.line;
            // A quote that is still open continues on the next line.
            let mut is_open = has_open_quote(&bytes);
            while is_open {
                let Some(more) = self.next_line()? else {
                    return Err(parse_error(
                        self.file,
                        start,
                        "1 or later",
                        "a closing quote",
                        "the end of the file",
                    ));
                };
                is_open ^= has_open_quote(&more);
                bytes.extend_from_slice(&more);
                if bytes.len() > LONGEST_RECORD {
                    return Err(parse_error(
                        self.file,
                        start,
                        "1 or later",
                        "a closing quote",
                        "none for a megabyte",
                    ));
                }
            }
            let content = without_line_end(&bytes);
            if content.is_empty() {
                continue;
            }
            let text = std::str::from_utf8(content).map_err(|error| {
                let before = content[..error.valid_up_to()].split(|&byte| byte == self.separator);
                let place = before.count();
                parse_error(self.file, start, place.to_string(), "UTF-8 text", "other bytes")
            })?;
            return Ok(Some(Record { fields: self.split(text, start)?, line: start }));
        }
    }

    /// The fields of one record.
    fn split(&self, text: &str, line: usize) -> Result<Vec<String>> {
        let separator = char::from(self.separator);
        let mut fields = Vec::new();
        let mut rest = text;
        loop {
            let column = (fields.len() + 1).to_string();
            let after = if let Some(quoted) = rest.trim_start_matches(' ').strip_prefix('"') {
                let (field, after) = self.quoted(quoted, line, &column)?;
                fields.push(field);
                after
            } else {
                let end = rest.find(separator).unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                if field.contains('"') {
                    let expected = "a quote only at the start of a field";
                    return Err(parse_error(self.file, line, column, expected, field));
                }
                fields.push(field.trim().to_owned());
                after
            };
            match after.strip_prefix(separator) {
                Some(next) => rest = next,
                None => return Ok(fields),
            }
        }
    }

    /// A quoted field, after its opening quote: its text, and what follows it.
    fn quoted<'t>(&self, text: &'t str, line: usize, column: &str) -> Result<(String, &'t str)> {
        let mut field = String::new();
        let mut rest = text;
        while let Some(quote) = rest.find('"') {
            field.push_str(&rest[..quote]);
            rest = &rest[quote + 1..];
            if let Some(next) = rest.strip_prefix('"') {
                field.push('"');
                rest = next;
                continue;
            }
            let after = rest.trim_start_matches(' ');
            if after.is_empty() || after.starts_with(char::from(self.separator)) {
                return Ok((field, after));
            }
            return Err(parse_error(self.file, line, column, "a separator after the quote", after));
        }
        Err(parse_error(self.file, line, column, "a closing quote", "the end of the row"))
    }

    /// The next line with its end, from what was read ahead or from the input.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        match self.pending.take() {
            Some(first) if first.is_empty() => Ok(None),
            Some(first) => Ok(Some(first)),
            None => self.read_line(),
        }
    }

    fn read_line(&mut self) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        loop {
            let buffer = self.input.fill_buf().map_err(Error::io("read", self.file.to_owned()))?;
            let end = buffer.iter().position(|&byte| byte == b'\n').map(|position| position + 1);
            let count = end.unwrap_or(buffer.len());
            bytes.extend_from_slice(&buffer[..count]);
            self.input.consume(count);
            if bytes.len() > LONGEST_RECORD {
                self.line += 1;
                return Err(self.error("1 or later", "a line", "none for a megabyte"));
            }
            if end.is_some() || count == 0 {
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        Ok(Some(bytes))
    }

    fn error(&self, column: &str, expected: &str, found: &str) -> Error {
        parse_error(self.file, self.line(), column, expected, found)
    }
}

/// The most frequent of comma, semicolon and tab outside quotes; a comma if there is none.
fn separator_of(header: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut is_quoted = false;
    for &byte in header {
        is_quoted ^= byte == b'"';
        for (separator, count) in &mut counts {
            *count += usize::from(!is_quoted && byte == *separator);
        }
    }
    // The first of equals wins.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(separator, _)| *separator)
}

/// Whether the number of quotes is odd.
fn has_open_quote(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |is_open, &byte| is_open ^ (byte == b'"'))
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}
