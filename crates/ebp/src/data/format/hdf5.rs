//! HDF5, as ModelNet40 is shipped: data sets of numbers at the root of a file.
//!
//! The decoding is done by `hdf5-reader`, which is kept behind [`ArrayFile`]: nothing else of the
//! crate is used, and no more is read than deflate could have packed into the file. A panic in it
//! would be a fault of the file like any other, and is reported as such.

use hdf5_reader::{Dataset, Datatype, Hdf5File, OpenOptions};

use crate::Result;
use crate::data::file::{ByteOrder, LARGEST, NumberKind, guarded};
use crate::data::npy::Array;

/// Deflate packs at most this many bytes into one.
const LARGEST_RATIO: usize = 1032;
/// What a data set may need beside its numbers.
const SLACK: usize = 1 << 16;

/// A file of named arrays.
pub(crate) trait ArrayFile {
    /// The names of all arrays of numbers, sorted.
    fn names(&self) -> Result<Vec<String>>;
    /// One array.
    fn array(&self, name: &str) -> Result<Array<f32>>;
}

/// An HDF5 file in memory.
pub(crate) struct Hdf5<'a> {
    file: &'a str,
    inner: Hdf5File,
}

impl<'a> Hdf5<'a> {
    /// Reads the table of contents.
    pub(crate) fn parse(bytes: &[u8], file: &'a str) -> Result<Self> {
        let limit = bytes.len().saturating_mul(LARGEST_RATIO).saturating_add(SLACK).min(LARGEST);
        let inner = guarded(file, "an HDF5 file", || {
            let options = OpenOptions::default()
                .with_max_read_bytes(limit)
                .with_max_chunk_bytes(limit)
                .with_max_object_header_bytes(bytes.len());
            Hdf5File::from_bytes_with_options(bytes, options).map_err(|error| error.to_string())
        })?;
        Ok(Self { file, inner })
    }

    fn datasets(&self) -> std::result::Result<Vec<Dataset>, String> {
        let root = self.inner.root_group().map_err(|error| error.to_string())?;
        root.datasets().map_err(|error| error.to_string())
    }
}

impl ArrayFile for Hdf5<'_> {
    fn names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = guarded(self.file, "data sets", || {
            let datasets = self.datasets()?;
            let numbers = datasets.iter().filter(|dataset| kind(dataset.dtype()).is_some());
            Ok(numbers.map(|dataset| dataset.name().to_owned()).collect())
        })?;
        names.sort();
        Ok(names)
    }

    fn array(&self, name: &str) -> Result<Array<f32>> {
        guarded(self.file, &format!("data set `{name}`"), || {
            let dataset = self.inner.dataset(name).map_err(|error| error.to_string())?;
            let Some((kind, order)) = kind(dataset.dtype()) else {
                return Err(format!("{:?} instead of numbers", dataset.dtype()));
            };
            let raw = dataset.read_raw_bytes().map_err(|error| error.to_string())?;
            let shape: Vec<usize> = dataset
                .shape()
                .iter()
                .map(|&axis| usize::try_from(axis).unwrap_or(usize::MAX))
                .collect();
            Array::new(shape, kind.read_all(&raw, order)).map_err(|error| error.to_string())
        })
    }
}

/// The kind of a data set's numbers; `None` for text, records and the like.
fn kind(datatype: &Datatype) -> Option<(NumberKind, ByteOrder)> {
    let order = |order: &hdf5_reader::ByteOrder| match order {
        hdf5_reader::ByteOrder::LittleEndian => ByteOrder::Little,
        hdf5_reader::ByteOrder::BigEndian => ByteOrder::Big,
    };
    match datatype {
        Datatype::FixedPoint { size, signed, byte_order, .. } => {
            let kind = match (size, signed) {
                (1, true) => NumberKind::I8,
                (1, false) => NumberKind::U8,
                (2, true) => NumberKind::I16,
                (2, false) => NumberKind::U16,
                (4, true) => NumberKind::I32,
                (4, false) => NumberKind::U32,
                (8, true) => NumberKind::I64,
                (8, false) => NumberKind::U64,
                _ => return None,
            };
            Some((kind, order(byte_order)))
        }
        Datatype::FloatingPoint { size, byte_order, .. } => {
            let kind = match size {
                2 => NumberKind::F16,
                4 => NumberKind::F32,
                8 => NumberKind::F64,
                _ => return None,
            };
            Some((kind, order(byte_order)))
        }
        _ => None,
    }
}
