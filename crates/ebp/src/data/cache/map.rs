//! A file as memory, and its numbers as slices. The only unsafe code of `data`.
#![allow(unsafe_code, reason = "mapping a file into memory, and its bytes as numbers")]

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::Mmap;

use crate::{Error, Result};

/// What is read of a map before its pages are given back, in bytes. Pages that were read stay in the
/// system's cache of files, but count as memory of this process as long as they are mapped.
const READ_AT_ONCE: usize = 1 << 26;
/// What the system may map around a place that is read: some pages, or the whole large page of 2 MiB that its cache of
/// files keeps the place in.
const READ_AROUND: usize = 1 << 21;

/// A file mapped read-only.
#[derive(Debug)]
pub(super) struct Map {
    map: Mmap,
    /// Bytes read since pages were last given back, and what lies around them.
    read: AtomicUsize,
    /// What is read before pages are given back.
    limit: usize,
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
        Ok(Self { map, read: AtomicUsize::new(0), limit: READ_AT_ONCE })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Says that it is one of `count` maps that are read by turns and together keep as much memory as one.
    pub(super) fn share_memory(&mut self, count: usize) {
        self.limit = READ_AT_ONCE / count.max(1);
    }

    /// Says that `count` bytes in one place were read and are not needed any more. After many of them
    /// all pages are given back, so that a file larger than the memory never fills it.
    pub(super) fn was_read(&self, count: usize) {
        let more = count.saturating_add(READ_AROUND);
        let before = self.read.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) >= self.limit {
            self.read.store(0, Ordering::Relaxed);
            self.give_back();
        }
    }

    #[cfg(unix)]
    fn give_back(&self) {
        // SAFETY: the map is shared and read-only, so a page that is given back is read again from
        // the same file when it is next looked at: no byte of it ever changes.
        let advised = unsafe { self.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        // Advice may be refused, which costs memory and nothing else.
        drop(advised);
    }

    #[cfg(not(unix))]
    fn give_back(&self) {
        let _ = self;
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
