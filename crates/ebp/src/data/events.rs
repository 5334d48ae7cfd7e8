//! Times of events: numbers that rise, separated by blanks, commas or lines; `#` begins a comment.

use std::path::Path;

use crate::Result;

use super::file::{Lines, name_of, read_bytes};

/// Reads the times of a file.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) if it cannot be read, otherwise as [`parse_events`].
pub fn read_events(path: &Path) -> Result<Vec<f64>> {
    parse_events(&read_bytes(path)?, &name_of(path))
}

/// Reads the bytes of such a file; `file` is how errors call it.
///
/// # Errors
///
/// [`Error::Malformed`](crate::Error::Malformed) with the line of the first time that is no number from 0 or
/// not later than the one before, or if there is none.
///
/// ```
/// use ebp::data::events::parse_events;
///
/// assert_eq!(parse_events(b"0.5 2 # two\n7\n", "times.txt")?, [0.5, 2.0, 7.0]);
/// let error = parse_events(b"3\n2\n", "times.txt").unwrap_err();
/// assert!(error.to_string().starts_with("times.txt, line 2"));
/// # Ok::<(), ebp::Error>(())
/// ```
pub fn parse_events(bytes: &[u8], file: &str) -> Result<Vec<f64>> {
    let mut lines = Lines::new(file, bytes, Some("#"));
    let mut times: Vec<f64> = Vec::new();
    while let Some(line) = lines.next_line()? {
        for word in line.words() {
            let time = line.number(word)?;
            let is_later = times.last().is_none_or(|last| time > *last);
            if !(is_later && time >= 0.0 && time.is_finite()) {
                return Err(line.error("a time of 0 or more, later than the one before", word));
            }
            times.push(time);
        }
    }
    if times.is_empty() {
        return Err(lines.at_end("a time"));
    }
    Ok(times)
}

/// The times as text, one a line.
pub fn events_bytes(times: &[f64]) -> Vec<u8> {
    times.iter().flat_map(|time| format!("{time}\n").into_bytes()).collect()
}
