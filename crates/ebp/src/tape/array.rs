//! Numbers on a device.

use super::cuda::Buffer;
use crate::numbers::Numbers;
use crate::{Error, Result};

/// f32 numbers on the host or on a GPU. A clone shares them.
#[derive(Clone, Debug)]
pub struct Array(pub(super) Storage);

#[derive(Clone, Debug)]
pub(super) enum Storage {
    Host(Numbers),
    Cuda(Buffer),
}

impl From<Vec<f32>> for Array {
    fn from(values: Vec<f32>) -> Self {
        Self(Storage::Host(values.into()))
    }
}

impl From<Buffer> for Array {
    fn from(buffer: Buffer) -> Self {
        Self(Storage::Cuda(buffer))
    }
}

impl Array {
    /// How many.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Host(numbers) => numbers.len(),
            Storage::Cuda(buffer) => buffer.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers `start..start + length`, shared.
    #[must_use]
    pub(crate) fn view(&self, start: usize, length: usize) -> Self {
        match &self.0 {
            Storage::Host(numbers) => Self(Storage::Host(numbers.view(start, length))),
            Storage::Cuda(buffer) => Self(Storage::Cuda(buffer.view(start, length))),
        }
    }

    /// The numbers, which must be on the host.
    pub(crate) fn host(&self) -> Result<&Numbers> {
        match &self.0 {
            Storage::Host(numbers) => Ok(numbers),
            Storage::Cuda(_) => Err(mixed("on the host", "on a GPU")),
        }
    }

    /// The numbers to be changed, which must be on the host.
    pub(crate) fn host_mut(&mut self) -> Result<&mut [f32]> {
        match &mut self.0 {
            Storage::Host(numbers) => Ok(numbers.make_mut()),
            Storage::Cuda(_) => Err(mixed("on the host", "on a GPU")),
        }
    }

    /// The numbers, which must be on a GPU.
    pub(crate) fn cuda(&self) -> Result<&Buffer> {
        match &self.0 {
            Storage::Cuda(buffer) => Ok(buffer),
            Storage::Host(_) => Err(mixed("on the GPU", "on the host")),
        }
    }
}

fn mixed(expected: &str, found: &str) -> Error {
    Error::invalid("numbers of a step", format!("all {expected}"), format!("some {found}"))
}
