//! What is known about pairs of clouds, on disk: a file that only grows.
//!
//! Every record carries its own checksum, so that a file whose writer was killed in the middle of a
//! record is read up to that record and goes on from there.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Begins every file; the last digit is the version of the format.
const MAGIC: [u8; 8] = *b"ebppair1";
/// Magic and fingerprint.
const HEADER: usize = 16;
const RECORD: usize = 32;

/// What is known about the distance of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// Its value, and one more number: for Chamfer a lower bound of the exact earth mover's
    /// distance, for the earth mover's distance its relative gap.
    Value(f64, f64),
    /// That it is not below this.
    AtLeast(f64),
}

/// One pair, `first` < `second`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) known: Known,
}

impl Record {
    #[allow(clippy::cast_possible_truncation, reason = "nobody has 2^32 clouds")]
    pub(super) fn new(first: usize, second: usize, known: Known) -> Self {
        Self { first: first as u32, second: second as u32, known }
    }
}

/// A file of records about the pairs of one list of clouds by one method.
#[derive(Debug)]
pub(super) struct PairStore {
    path: PathBuf,
    file: File,
}

impl PairStore {
    /// Where the file of `fingerprint` lies.
    fn path(folder: &Path, name: &str, fingerprint: u64) -> PathBuf {
        folder.join(format!("{fingerprint:016x}-{name}.pairs"))
    }

    /// Whether there is a file of `fingerprint` in `folder`.
    pub(super) fn exists(folder: &Path, name: &str, fingerprint: u64) -> bool {
        Self::path(folder, name, fingerprint).is_file()
    }

    /// What the file of `fingerprint` in `folder` holds, which must be whole.
    pub(super) fn read(folder: &Path, name: &str, fingerprint: u64) -> Result<Vec<Record>> {
        let path = Self::path(folder, name, fingerprint);
        let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
        let records = decode_all(&bytes, fingerprint)
            .filter(|records| HEADER + records.len() * RECORD == bytes.len());
        let reason = "it is cut off, or has bytes that were not written so".into();
        records.ok_or(Error::Damaged { path, reason })
    }

    /// Opens or begins the file of `fingerprint` in `folder` and reads what it holds.
    pub(super) fn open(folder: &Path, name: &str, fingerprint: u64) -> Result<(Self, Vec<Record>)> {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let path = Self::path(folder, name, fingerprint);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(Error::io("open", &path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io("read", &path))?;
        let mut records = Vec::new();
        if bytes.len() >= HEADER {
            let Some(found) = decode_all(&bytes, fingerprint) else {
                let reason = "it does not begin as the cache of these clouds; delete it".into();
                return Err(Error::Damaged { path, reason });
            };
            records = found;
        }
        // What follows the last whole record was being written when somebody died.
        let length = (HEADER + records.len() * RECORD) as u64;
        file.set_len(if bytes.len() >= HEADER { length } else { 0 })
            .map_err(Error::io("write", &path))?;
        file.seek(SeekFrom::End(0)).map_err(Error::io("write", &path))?;
        if bytes.len() < HEADER {
            file.write_all(&header(fingerprint)).map_err(Error::io("write", &path))?;
        }
        Ok((Self { path, file }, records))
    }

    /// Adds records; they are in the system's hands when this returns.
    pub(super) fn append(&mut self, records: &[Record]) -> Result<()> {
        let bytes: Vec<u8> = records.iter().flat_map(encode).collect();
        self.file.write_all(&bytes).map_err(Error::io("write", &self.path))
    }
}

/// The start of a file.
fn header(fingerprint: u64) -> Vec<u8> {
    MAGIC.into_iter().chain(fingerprint.to_le_bytes()).collect()
}

/// The records up to the first that is not whole; `None` if the file begins otherwise.
fn decode_all(bytes: &[u8], fingerprint: u64) -> Option<Vec<Record>> {
    let records = bytes.strip_prefix(&header(fingerprint)[..])?;
    Some(records.chunks_exact(RECORD).map_while(decode).collect())
}

fn encode(record: &Record) -> [u8; RECORD] {
    let (kind, value, more) = match record.known {
        Known::Value(value, more) => (0_u32, value, more),
        Known::AtLeast(bound) => (1, bound, 0.0),
    };
    let mut bytes = [0; RECORD];
    bytes[0..4].copy_from_slice(&record.first.to_le_bytes());
    bytes[4..8].copy_from_slice(&record.second.to_le_bytes());
    bytes[8..12].copy_from_slice(&kind.to_le_bytes());
    bytes[16..24].copy_from_slice(&value.to_le_bytes());
    bytes[24..32].copy_from_slice(&more.to_le_bytes());
    let check = checksum(&bytes);
    bytes[12..16].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Record> {
    let bytes: [u8; RECORD] = bytes.try_into().ok()?;
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let real = |at: usize| {
        let half = |at: usize| u64::from(word(at));
        f64::from_bits(half(at) | half(at + 4) << 32)
    };
    let mut unchecked = bytes;
    unchecked[12..16].fill(0);
    if word(12) != checksum(&unchecked) {
        return None;
    }
    let known = match word(8) {
        0 => Known::Value(real(16), real(24)),
        1 => Known::AtLeast(real(16)),
        _ => return None,
    };
    Some(Record { first: word(0), second: word(4), known })
}

fn checksum(bytes: &[u8]) -> u32 {
    let hash = hash(bytes.iter().copied());
    u32::try_from((hash ^ (hash >> 32)) & 0xffff_ffff).unwrap_or(0)
}

/// FNV-1a: enough to notice torn records and other inputs; nobody forges a cache of their own.
pub(super) fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cut_anywhere_is_read_up_to_the_cut() {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<Record> = (0..5)
            .map(|i| Record {
                first: i,
                second: i + 7,
                known: if i % 2 == 0 {
                    Known::Value(f64::from(i) + 0.5, 1e-15)
                } else {
                    Known::AtLeast(0.25)
                },
            })
            .collect();
        let (mut store, before) = PairStore::open(folder.path(), "emd", 9).unwrap();
        assert!(before.is_empty());
        store.append(&records).unwrap();
        let path = store.path.clone();
        drop(store);
        let whole = fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let (mut store, found) = PairStore::open(folder.path(), "emd", 9).unwrap();
            assert_eq!(found, records[..length.saturating_sub(HEADER) / RECORD]);
            store.append(&records[found.len()..]).unwrap();
            drop(store);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn a_changed_byte_ends_the_reading_and_a_strange_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = PairStore::open(folder.path(), "cd", 1).unwrap();
        let record = |first| Record { first, second: 9, known: Known::Value(1.0, 2.0) };
        store.append(&[record(0), record(1), record(2)]).unwrap();
        let mut bytes = fs::read(&store.path).unwrap();
        bytes[HEADER + RECORD + 20] ^= 4;
        fs::write(&store.path, &bytes).unwrap();
        assert_eq!(PairStore::open(folder.path(), "cd", 1).unwrap().1, [record(0)]);
        fs::write(&store.path, b"something else entirely").unwrap();
        assert!(PairStore::open(folder.path(), "cd", 1).is_err());
    }
}
