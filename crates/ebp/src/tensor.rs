//! Named numbers with a shape: what checkpoints hold.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Error, Result};

/// Tensors by name.
pub type Tensors = BTreeMap<String, Tensor>;

/// Numbers with a shape, on the host.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    dims: Vec<usize>,
    values: TensorValues,
}

/// The numbers of a [`Tensor`], row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorValues {
    /// Weights and their like.
    F32(Vec<f32>),
    /// Hyperparameters of exact processes.
    F64(Vec<f64>),
    /// Counts.
    I64(Vec<i64>),
}

impl Tensor {
    /// f32 numbers of a shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are not as many as the shape says.
    pub fn new(dims: Vec<usize>, values: Vec<f32>) -> Result<Self> {
        Self::from_values(dims, TensorValues::F32(values))
    }

    /// Numbers of a shape.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_values(dims: Vec<usize>, values: TensorValues) -> Result<Self> {
        let found = match &values {
            TensorValues::F32(values) => values.len(),
            TensorValues::F64(values) => values.len(),
            TensorValues::I64(values) => values.len(),
        };
        let expected = dims.iter().product::<usize>();
        if found == expected {
            return Ok(Self { dims, values });
        }
        Err(Error::invalid("tensor", format!("{expected} numbers of shape {dims:?}"), found))
    }

    /// A single count.
    pub fn integer(value: i64) -> Self {
        Self { dims: Vec::new(), values: TensorValues::I64(vec![value]) }
    }

    /// The shape; empty for a single number.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The numbers.
    pub fn values(&self) -> &TensorValues {
        &self.values
    }

    /// The numbers, if they are f32.
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.values {
            TensorValues::F32(values) => Some(values),
            TensorValues::F64(_) | TensorValues::I64(_) => None,
        }
    }

    /// The number, if it is a single count.
    pub fn as_integer(&self) -> Option<i64> {
        match (&self.dims[..], &self.values) {
            ([], TensorValues::I64(values)) => values.first().copied(),
            _ => None,
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.values {
            TensorValues::F32(_) => "f32",
            TensorValues::F64(_) => "f64",
            TensorValues::I64(_) => "i64",
        };
        write!(formatter, "{kind} of shape {:?}", self.dims)
    }
}
