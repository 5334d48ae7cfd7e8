//! TensorBoard's event files, written by hand.
//!
//! A file is a row of records, and a record one protocol-buffer message `Event`:
//!
//! ```text
//! record = length (u64), mask(crc32c(length)), message, mask(crc32c(message))   little endian
//! mask(c) = (c rotated right by 15 bits) + 0xa282ead8
//! Event = { 1: wall_time, 2: step, 3: file_version | 5: Summary | 7: SessionLog }
//! Summary = { 1: { 1: tag, 2: simple_value } … },   SessionLog = { 1: status (1 is START) }
//! ```
//!
//! Each process writes a file of its own, which begins with a START at its first step; TensorBoard
//! then drops what earlier files say of that step and later ones. So does a rollback.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Event, Observer};
use crate::checkpoint::crc32c;
use crate::files::entries;
use crate::{Error, Result};

/// Begins the name of every event file; TensorBoard looks for `tfevents`.
pub(super) const FILE_PREFIX: &str = "events.out.tfevents.";

/// Writes the scalars of a run.
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: BufWriter<File>,
    record_every: u64,
    /// Seconds since 1970 at `started`.
    start_time: f64,
    started: Instant,
    num_taken: u64,
}

impl TensorBoard {
    /// Begins a new event file in `folder`; one step in `record_every` is written.
    ///
    /// `start_time` is the present in seconds since 1970, for TensorBoard's axis of time; the
    /// library does not look at the clock on the wall, and 0 is as good.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `record_every` is 0, [`Error::Io`] if the file cannot be made.
    pub fn create(folder: &Path, record_every: u64, start_time: f64) -> Result<Self> {
        if record_every == 0 {
            return Err(Error::invalid("record_every", "at least 1", record_every));
        }
        // TensorBoard reads the files of a folder in the order of their names.
        let number = entries(folder)?
            .iter()
            .filter_map(|name| name.strip_prefix(FILE_PREFIX)?.split('.').next()?.parse().ok())
            .max()
            .map_or(0, |number: u64| number.saturating_add(1));
        let path = folder.join(format!("{FILE_PREFIX}{number:010}.ebp"));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(Error::io("create", &path))?;
        let file = BufWriter::new(file);
        let started = Instant::now();
        let mut writer = Self { path, file, record_every, start_time, started, num_taken: 0 };
        writer.write(0, &text_field(3, "brain.Event:2"))?;
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, step: u64, content: &[u8]) -> Result<()> {
        let wall_time = self.start_time + self.started.elapsed().as_secs_f64();
        let mut message = vec![tag(1, FIXED_64)];
        message.extend(wall_time.to_le_bytes());
        message.push(tag(2, VARINT));
        push_varint(&mut message, step);
        message.extend(content);
        self.file.write_all(&record(&message)).map_err(Error::io("write", &self.path))
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(Error::io("write", &self.path))
    }

    /// Tells TensorBoard to forget `step` and what follows it.
    fn write_start(&mut self, step: u64) -> Result<()> {
        self.write(step, &field(7, &[tag(1, VARINT), 1]))?;
        self.flush()
    }
}

impl Observer for TensorBoard {
    fn observe(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Started { step, .. } => self.write_start(*step),
            Event::RolledBack { rollback, .. } => self.write_start(rollback.to_step),
            Event::Step(numbers) => {
                self.num_taken += 1;
                if !numbers.is_kept(self.record_every) {
                    return Ok(());
                }
                let mut summary = Vec::new();
                for (name, value) in numbers.iter() {
                    push_scalar(&mut summary, name, value);
                }
                let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
                push_scalar(&mut summary, "steps_per_second", self.num_taken as f64 / seconds);
                self.write(numbers.step, &field(5, &summary))
            }
            Event::Checkpoint { .. } | Event::Interrupted { .. } | Event::Finished { .. } => {
                self.flush()
            }
            Event::Damaged(_) => Ok(()),
        }
    }
}

/// Wire types of protocol buffers.
const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

/// What precedes a field; one byte, as all our numbers are below 16.
const fn tag(number: u8, wire_type: u8) -> u8 {
    number << 3 | wire_type
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag(number, BYTES)];
    push_varint(&mut out, content.len() as u64);
    out.extend(content);
    out
}

fn text_field(number: u8, text: &str) -> Vec<u8> {
    field(number, text.as_bytes())
}

#[expect(clippy::cast_possible_truncation, reason = "TensorBoard's scalars are f32")]
fn push_scalar(summary: &mut Vec<u8>, name: &str, value: f64) {
    let mut content = text_field(1, name);
    content.push(tag(2, FIXED_32));
    content.extend((value as f32).to_le_bytes());
    summary.extend(field(1, &content));
}

fn record(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(masked(&length));
    out.extend(message);
    out.extend(masked(message));
    out
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(&[bytes]).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_the_protocol_buffer_guide() {
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let cases = [(0, &[0_u8][..]), (1, &[1]), (150, &[0x96, 0x01]), (u64::MAX, &largest)];
        for (value, expected) in cases {
            let mut out = Vec::new();
            push_varint(&mut out, value);
            assert_eq!(out, expected);
        }
    }

    /// `{ tag: "a", simple_value: 1.5 }` put together from the wire format by hand.
    #[test]
    fn a_scalar_has_the_bytes_of_the_wire_format() {
        let mut out = Vec::new();
        push_scalar(&mut out, "a", 1.5);
        assert_eq!(out, [0x0a, 8, 0x0a, 1, b'a', 0x15, 0, 0, 0xc0, 0x3f]);
    }

    /// The masked checksum of the length 24 as TensorFlow writes it at the start of the files
    /// whose first message has 24 bytes.
    #[test]
    fn the_mask_rotates_and_adds() {
        assert_eq!(masked(&24_u64.to_le_bytes()), [0xa3, 0x7f, 0x4b, 0x22]);
    }
}
