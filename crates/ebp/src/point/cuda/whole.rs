//! An array that chunks fill one after the other.

use super::buffer::Buffer;
use super::device::Device;
use crate::Result;

/// An array of `length` numbers, not all of which are there yet.
pub(super) struct Whole<'a> {
    device: &'a Device,
    length: usize,
    numbers: Buffer,
}

impl<'a> Whole<'a> {
    pub(super) fn new(device: &'a Device, length: usize) -> Self {
        Self { device, length, numbers: Buffer::none() }
    }

    /// Puts `part` at number `start`. A part that is everything is kept as it is, not copied.
    pub(super) fn put(&mut self, start: usize, part: Buffer) -> Result<()> {
        if part.len() == self.length {
            self.numbers = part;
            return Ok(());
        }
        if self.numbers.is_empty() {
            self.numbers = self.device.buffer(self.length)?;
        }
        self.device.copy(&part, &self.numbers.view(start, part.len()))
    }

    pub(super) fn done(self) -> Buffer {
        self.numbers
    }
}
