//! IDX, the format of MNIST: a big-endian header of axes, then the numbers; often in gzip.
//!
//! ```text
//! 0 0 type axes  n₁ n₂ …   type: 8 u8, 9 i8, 11 i16, 12 i32, 13 f32, 14 f64
//! ```

use std::borrow::Cow;

use crate::Result;
use crate::data::file::{ByteOrder, Bytes, NumberKind, inflate_gzip};

/// Axes and numbers as they stand in the file.
pub(crate) struct Idx {
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: NumberKind,
    /// Big-endian numbers.
    pub(crate) raw: Vec<u8>,
}

impl Idx {
    /// All numbers.
    pub(crate) fn numbers(&self) -> Vec<f32> {
        self.kind.read_all(&self.raw, ByteOrder::Big)
    }
}

/// The longest header: 255 axes.
const LONGEST_HEADER: usize = 4 + 4 * 255;

/// Reads an array, unpacking it first if it is in gzip: as far as its header says.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Idx> {
    let content = if bytes.starts_with(&[0x1f, 0x8b]) {
        let length_of = |head: &[u8]| {
            let mut bytes = Bytes::new(file, head);
            let (shape, kind) = header(&mut bytes)?;
            let length = product(&shape, kind).and_then(|size| size.checked_add(bytes.position()));
            length.ok_or_else(|| bytes.error("numbers that fit into memory", format!("{shape:?}")))
        };
        Cow::Owned(inflate_gzip(file, bytes, LONGEST_HEADER, length_of)?)
    } else {
        Cow::Borrowed(bytes)
    };
    let mut bytes = Bytes::new(file, &content);
    let (shape, kind) = header(&mut bytes)?;
    let raw =
        bytes.take_rest(product(&shape, kind), &format!("numbers of shape {shape:?}"))?.to_vec();
    Ok(Idx { shape, kind, raw })
}

/// The bytes of all numbers, if a machine can count them.
fn product(shape: &[usize], kind: NumberKind) -> Option<usize> {
    shape.iter().try_fold(kind.size(), |size, &axis| size.checked_mul(axis))
}

fn header(bytes: &mut Bytes<'_>) -> Result<(Vec<usize>, NumberKind)> {
    let mark = bytes.clone();
    let magic = bytes.take(4, "the mark of an IDX file")?;
    let kind = match magic {
        [0, 0, 8, _] => NumberKind::U8,
        [0, 0, 9, _] => NumberKind::I8,
        [0, 0, 11, _] => NumberKind::I16,
        [0, 0, 12, _] => NumberKind::I32,
        [0, 0, 13, _] => NumberKind::F32,
        [0, 0, 14, _] => NumberKind::F64,
        _ => {
            return Err(
                mark.error("0 0, a known type and the number of axes", format!("{magic:?}"))
            );
        }
    };
    let mut shape = Vec::new();
    for _ in 0..magic[3] {
        shape.push(bytes.count(NumberKind::U32, ByteOrder::Big, "the length of an axis")?);
    }
    Ok((shape, kind))
}

/// The bytes of an IDX file of bytes.
pub(crate) fn write(shape: &[usize], raw: &[u8]) -> Vec<u8> {
    let num_axes = u8::try_from(shape.len()).unwrap_or(u8::MAX);
    let mut bytes = vec![0, 0, 8, num_axes];
    for &axis in shape {
        bytes.extend(u32::try_from(axis).unwrap_or(u32::MAX).to_be_bytes());
    }
    bytes.extend_from_slice(raw);
    bytes
}
