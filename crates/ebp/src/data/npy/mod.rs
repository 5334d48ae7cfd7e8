//! Arrays of NumPy: `.npy` files and `.npz` archives of them, read and written.
//!
//! Floats of 16, 32 and 64 bits, whole numbers and booleans are read, in either byte order and in
//! C or Fortran order; what is returned is always in C order, last index fastest. The header's
//! shape is compared with the file's length before any number is read. Objects, records and text
//! are refused: they would need Python.

mod header;
mod npz;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::{Error, Result};

use super::file::write::write_whole;
use super::file::{Bytes, NumberKind, Real, name_of, read_bytes};

pub use npz::{parse_npz, read_npz, write_npz};

/// An array of any number of axes, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// The length of every axis; their product is the number of values.
    pub shape: Vec<usize>,
    /// All values, last index fastest.
    pub values: Vec<T>,
}

/// How floats are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 16 bits: eleven binary digits, up to 65504.
    Half,
    /// 32 bits.
    #[default]
    Single,
    /// 64 bits.
    Double,
}

impl<T: Real> Array<T> {
    /// From its axes and values.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the product of the axes is the number of values.
    pub fn new(shape: Vec<usize>, values: Vec<T>) -> Result<Self> {
        let product = shape.iter().try_fold(1_usize, |product, &axis| product.checked_mul(axis));
        if product == Some(values.len()) {
            return Ok(Self { shape, values });
        }
        let expected = format!("of {} numbers", values.len());
        Err(Error::invalid("shape", expected, format!("{shape:?}")))
    }
}

/// Reads a `.npy` file.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, otherwise as [`parse_npy`].
pub fn read_npy<T: Real>(path: &Path) -> Result<Array<T>> {
    parse_npy(&read_bytes(path)?, &name_of(path))
}

/// The axes of a `.npy` file, from its header alone.
///
/// # Errors
///
/// As [`read_npy`].
pub fn npy_shape(path: &Path) -> Result<Vec<usize>> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(Error::io("read", path))?;
    file.take(header::LONGEST as u64 + 12)
        .read_to_end(&mut head)
        .map_err(Error::io("read", path))?;
    Ok(header::read(&mut Bytes::new(&name_of(path), &head))?.shape)
}

/// Reads the bytes of a `.npy` file; `file` is how errors call it.
///
/// ```
/// use ebp::data::npy::{Array, Precision, npy_bytes, parse_npy};
///
/// let array = Array::new(vec![2, 3], vec![0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// let mut bytes = npy_bytes(&array, Precision::Half)?;
/// assert_eq!(parse_npy::<f32>(&bytes, "a.npy")?, array);
///
/// bytes.pop();
/// let error = parse_npy::<f32>(&bytes, "a.npy").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "a.npy, byte 128: expected 12 bytes of numbers of shape [2, 3], found 11 until the end"
/// );
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Malformed`] with the byte where something else stands than should.
pub fn parse_npy<T: Real>(bytes: &[u8], file: &str) -> Result<Array<T>> {
    let mut bytes = Bytes::new(file, bytes);
    let header = header::read(&mut bytes)?;
    // The product of the axes times the size of a number, or nothing if it overflows.
    let product = header.shape.iter().try_fold(header.kind.size(), |size, &n| size.checked_mul(n));
    let what = format!("numbers of shape {:?}", header.shape);
    let raw = bytes.take_rest(product, &what)?;
    let values = header.kind.read_all(raw, header.order);
    let values = if header.is_fortran { from_fortran(&header.shape, &values) } else { values };
    Ok(Array { shape: header.shape, values })
}

/// Writes a `.npy` file, in C order.
///
/// # Errors
///
/// [`Error::Io`], and [`Error::InvalidValue`] if the shape does not fit the values.
pub fn write_npy<T: Real>(path: &Path, array: &Array<T>, precision: Precision) -> Result<()> {
    let bytes = npy_bytes(array, precision)?;
    write_whole(path, |out| out.write_all(&bytes))
}

/// The bytes of a `.npy` file, in C order.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the shape does not fit the values.
pub fn npy_bytes<T: Real>(array: &Array<T>, precision: Precision) -> Result<Vec<u8>> {
    let array = Array::new(array.shape.clone(), array.values.clone())?;
    let kind = match precision {
        Precision::Half => NumberKind::F16,
        Precision::Single => NumberKind::F32,
        Precision::Double => NumberKind::F64,
    };
    let mut bytes = header::write(&array.shape, kind);
    bytes.reserve(array.values.len() * kind.size());
    for value in &array.values {
        kind.write(value.wide(), &mut bytes);
    }
    Ok(bytes)
}

/// From first index fastest to last index fastest.
fn from_fortran<T: Real>(shape: &[usize], values: &[T]) -> Vec<T> {
    // Strides of the file: 1, n₁, n₁ n₂, …
    let strides: Vec<usize> = shape
        .iter()
        .scan(1_usize, |next, &axis| {
            let stride = *next;
            *next = next.saturating_mul(axis);
            Some(stride)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut place = 0;
    let mut sorted = Vec::with_capacity(values.len());
    while sorted.len() < values.len() {
        sorted.push(values[place]);
        // The next index, last axis first, like an odometer.
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            place += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            place -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    sorted
}
