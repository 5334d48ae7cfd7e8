//! Numbers computed on the host, entered into candle's graph with their own backward pass.
//!
//! candle runs a custom op's forward pass inside `apply_op3`, where errors lose their type and
//! by-products have no way out. So the forward pass runs first, as plain Rust, and [`record`]
//! then enters its finished result into the graph together with what its backward pass needs.

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::{Mutex, PoisonError};

use candle_core::{
    CpuStorage, CustomOp3, Device, InplaceOp1, Layout, Shape, Storage, StorageRef, Tensor, Var,
};

use crate::tensor::{self, TensorValues};
use crate::{Error, Result};

/// A borrowed view of the numbers of a contiguous f32 tensor on the host.
pub(super) struct HostView<'a> {
    storage: StorageRef<'a>,
    range: Range<usize>,
}

impl<'a> HostView<'a> {
    /// Borrows; `field` names the tensor in the error.
    pub(super) fn new(field: &str, tensor: &'a Tensor) -> Result<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        match (&*storage, layout.contiguous_offsets()) {
            (Storage::Cpu(CpuStorage::F32(_)), Some((start, end))) => {
                Ok(Self { storage, range: start..end })
            }
            _ => Err(Error::invalid(
                field,
                "a contiguous f32 tensor on the CPU",
                format!(
                    "{:?} on {:?} with layout {:?}",
                    tensor.dtype(),
                    tensor.device().location(),
                    layout.stride()
                ),
            )),
        }
    }
}

impl Deref for HostView<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(values)) => &values[self.range.clone()],
            // `new` let nothing else pass.
            _ => &[],
        }
    }
}

/// Checks dtype, device and shape, and makes the tensor contiguous where it is not.
pub(super) fn checked(field: &str, tensor: &Tensor, expected: &[usize]) -> Result<Tensor> {
    if tensor.dims() != expected {
        return Err(Error::invalid(
            field,
            format!("of shape {expected:?}"),
            format!("{:?}", tensor.dims()),
        ));
    }
    let tensor = tensor.contiguous()?;
    HostView::new(field, &tensor)?;
    Ok(tensor)
}

/// A tensor without entries, for an argument that is not there.
pub(super) fn empty(shape: impl Into<Shape>) -> Result<Tensor> {
    Ok(Tensor::from_vec(Vec::<f32>::new(), shape, &Device::Cpu)?)
}

/// Changes the numbers of a variable in place, without a copy.
pub(super) fn update(variable: &Var, change: impl FnMut(&mut [f32])) -> Result<()> {
    Ok(variable.inplace_op1(&InPlace(RefCell::new(change)))?)
}

/// Copies the numbers of a variable.
pub(crate) fn read_variable(variable: &Var, to: &mut [f32]) -> Result<()> {
    to.copy_from_slice(&HostView::new("variable", variable)?);
    Ok(())
}

/// Overwrites the numbers of a variable.
pub(crate) fn write_variable(variable: &Var, from: &[f32]) -> Result<()> {
    update(variable, |values| values.copy_from_slice(from))
}

/// A copy of candle's numbers, as checkpoints keep them.
pub(super) fn from_candle(found: &Tensor) -> Result<tensor::Tensor> {
    tensor::Tensor::new(found.dims().to_vec(), found.flatten_all()?.to_vec1()?)
}

/// The way back.
pub(super) fn to_candle(saved: &tensor::Tensor) -> Result<Tensor> {
    Ok(match saved.values() {
        TensorValues::F32(values) => Tensor::from_slice(values, saved.dims(), &Device::Cpu)?,
        TensorValues::F64(values) => Tensor::from_slice(values, saved.dims(), &Device::Cpu)?,
        TensorValues::I64(values) => Tensor::from_slice(values, saved.dims(), &Device::Cpu)?,
    })
}

struct InPlace<F>(RefCell<F>);

impl<F: FnMut(&mut [f32])> InplaceOp1 for InPlace<F> {
    fn name(&self) -> &'static str {
        "update"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        match (storage, layout.contiguous_offsets()) {
            (CpuStorage::F32(values), Some((start, end))) => {
                (self.0.borrow_mut())(&mut values[start..end]);
                Ok(())
            }
            _ => candle_core::bail!("a variable must be contiguous f32, found {layout:?}"),
        }
    }
}

/// What [`Reverse::reverse`] receives.
pub(super) struct Reversal<'a> {
    /// The three arguments of the forward pass.
    pub(super) arguments: [&'a [f32]; 3],
    /// Its result.
    pub(super) result: &'a [f32],
    /// ∂L/∂result, shaped as the result.
    pub(super) cotangent: &'a [f32],
    /// Which arguments candle wants a gradient for.
    pub(super) wanted: [bool; 3],
}

/// The backward pass of a recorded result.
pub(super) trait Reverse: Send + Sync + 'static {
    /// The operation's name, for error messages.
    fn name(&self) -> &'static str;

    /// ∂L/∂argument for each argument that is wanted, each shaped as its argument. Gradients of
    /// the others are dropped.
    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]>;
}

/// Enters `values` into the graph as a function of `arguments`.
///
/// Where no argument tracks gradients the result is a plain tensor and `reverse` is dropped.
pub(super) fn record(
    values: Vec<f32>,
    shape: impl Into<Shape>,
    arguments: [&Tensor; 3],
    reverse: impl Reverse,
) -> Result<Tensor> {
    let [first, second, third] = arguments;
    let op = Recorded { values: Mutex::new(Some(values)), shape: shape.into(), reverse };
    Ok(first.apply_op3(second, third, op)?)
}

struct Recorded<R> {
    /// Taken by the one call of `cpu_fwd`.
    values: Mutex<Option<Vec<f32>>>,
    shape: Shape,
    reverse: R,
}

impl<R: Reverse> CustomOp3 for Recorded<R> {
    fn name(&self) -> &'static str {
        self.reverse.name()
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner).take();
        match values {
            Some(values) if values.len() == self.shape.elem_count() => {
                Ok((CpuStorage::F32(values), self.shape.clone()))
            }
            Some(values) => candle_core::bail!(
                "{}: expected a result of shape {:?}, found {} entries",
                self.name(),
                self.shape,
                values.len()
            ),
            None => candle_core::bail!("{}: a recorded result was entered twice", self.name()),
        }
    }

    fn bwd(
        &self,
        first: &Tensor,
        second: &Tensor,
        third: &Tensor,
        result: &Tensor,
        cotangent: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let tensors = [first, second, third];
        let gradients =
            self.gradients(tensors, result, cotangent).map_err(|error| match error {
                Error::Tensor(error) => error,
                error => candle_core::Error::wrap(error),
            })?;
        let mut out = [None, None, None];
        for (slot, (gradient, tensor)) in out.iter_mut().zip(gradients.into_iter().zip(tensors)) {
            *slot = match gradient {
                _ if !tensor.track_op() => None,
                Some(values) => Some(Tensor::from_vec(values, tensor.dims(), tensor.device())?),
                // candle would panic over a tracked argument without gradient.
                None => candle_core::bail!("{}: a wanted gradient is missing", self.name()),
            };
        }
        let [first, second, third] = out;
        Ok((first, second, third))
    }
}

impl<R: Reverse> Recorded<R> {
    fn gradients(
        &self,
        tensors: [&Tensor; 3],
        result: &Tensor,
        cotangent: &Tensor,
    ) -> Result<[Option<Vec<f32>>; 3]> {
        // A sum hands its cotangent on as a broadcast view.
        let cotangent = cotangent.contiguous()?;
        let [first, second, third] = tensors;
        let first = HostView::new("first argument", first)?;
        let second = HostView::new("second argument", second)?;
        let third = HostView::new("third argument", third)?;
        self.reverse.reverse(&Reversal {
            arguments: [&first, &second, &third],
            result: &HostView::new("result", result)?,
            cotangent: &HostView::new("cotangent", &cotangent)?,
            wanted: tensors.map(Tensor::track_op),
        })
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;

    /// a² + 3 b, ignoring its third argument.
    struct SquarePlusTriple;

    impl Reverse for SquarePlusTriple {
        fn name(&self) -> &'static str {
            "square-plus-triple"
        }

        fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
            let Reversal { arguments, cotangent, wanted, .. } = reversal;
            assert_eq!(*wanted, [true, true, false]);
            let first = arguments[0].iter().zip(*cotangent).map(|(a, g)| 2.0 * a * g).collect();
            let second = cotangent.iter().map(|g| 3.0 * g).collect();
            Ok([Some(first), Some(second), None])
        }
    }

    #[test]
    fn a_recorded_result_has_its_own_gradient() {
        let a = Var::new(&[1.0_f32, 2.0], &Device::Cpu).unwrap();
        let b = Var::new(&[5.0_f32, 6.0], &Device::Cpu).unwrap();
        // An intermediate tensor, so that the gradient has to travel on through it.
        let scaled = (b.as_tensor() * 2.0).unwrap();
        let arguments = [a.as_tensor(), &scaled, &empty(0).unwrap()];
        let result = record(vec![31.0, 40.0], 2, arguments, SquarePlusTriple).unwrap();
        let gradients = result.sum_all().unwrap().backward().unwrap();
        assert_eq!(gradients.get(&a).unwrap().to_vec1::<f32>().unwrap(), [2.0, 4.0]);
        assert_eq!(gradients.get(&b).unwrap().to_vec1::<f32>().unwrap(), [6.0, 6.0]);
    }

    #[test]
    fn a_tensor_of_the_wrong_kind_or_shape_is_refused_by_name() {
        let wide = Tensor::zeros((2, 3), DType::F64, &Device::Cpu).unwrap();
        let message = checked("context", &wide, &[2, 3]).unwrap_err().to_string();
        assert!(message.contains("`context` must be a contiguous f32 tensor on the CPU"));
        assert!(message.contains("F64"), "{message}");
        let message = checked("context", &wide, &[3, 2]).unwrap_err().to_string();
        assert_eq!(message, "`context` must be of shape [3, 2], found [2, 3]");
    }

    #[test]
    fn a_transposed_tensor_is_made_contiguous() {
        let tensor = Tensor::new(&[[1.0_f32, 2.0], [3.0, 4.0]], &Device::Cpu).unwrap();
        let transposed = checked("elements", &tensor.t().unwrap(), &[2, 2]).unwrap();
        assert_eq!(&*HostView::new("elements", &transposed).unwrap(), &[1.0, 3.0, 2.0, 4.0]);
    }
}
