//! A file as memory, and its numbers as slices. The only unsafe code of `data`.
#![allow(unsafe_code, reason = "mapping a file into memory, and its bytes as numbers")]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::{Error, Result};

/// A file mapped read-only.
#[derive(Debug)]
pub(super) struct Map {
    map: Mmap,
}

impl Map {
    /// Maps a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("read", path))?;
        // SAFETY: the map is read-only. Caches are replaced by a rename, never written in place, so
        // no program of ours changes or cuts the file under the map. Another program that does so
        // changes numbers or ends this one; it cannot break types, as every pattern of bits is a
        // number here.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io("map", path))?;
        Ok(Self { map })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// Bytes as the f32 they hold, if they start at a multiple of four.
pub(super) fn floats(bytes: &[u8]) -> Option<&[f32]> {
    // SAFETY: every pattern of bits is an f32, and align_to hands out only what is aligned.
    let (before, numbers, after) = unsafe { bytes.align_to::<f32>() };
    (before.is_empty() && after.is_empty()).then_some(numbers)
}

/// Numbers as their bytes, to be written.
pub(super) fn float_bytes(numbers: &[f32]) -> &[u8] {
    // SAFETY: every f32 is four bytes, and bytes have no alignment.
    unsafe { numbers.align_to::<u8>().1 }
}
