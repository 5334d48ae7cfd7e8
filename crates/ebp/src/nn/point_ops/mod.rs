//! The primitive's operations as tensors of candle's graph, each with its own backward pass.

mod dynamics;
mod likelihood;
mod log_partition;
mod values;

use std::sync::Arc;

use candle_core::Tensor;

pub use dynamics::{LangevinSettings, LangevinTensors, LeapfrogTensors};
pub use likelihood::{LikelihoodSets, LikelihoodTensors};
pub use log_partition::{LogPartitionTensors, TensorCandidates};

use super::host::{HostView, checked, empty};
use crate::point::{Gradients, MlpShape, PointBackend, PointBatch, PointMlp, Wanted};
use crate::{Error, Result, SetOffsets};

/// A [`PointMlp`] whose parameters are a tensor.
///
/// Every operation takes the flat parameters as an argument, so they may be a variable or the
/// result of other operations, such as a spectral norm or a hypernetwork. The gradients computed
/// are those of the arguments that track them, no others. The backward pass uses the parameters
/// as they were in the forward pass, even if an optimiser moved them in between.
///
/// All tensors are f32 on the CPU; those that are not contiguous are copied.
#[derive(Clone, Debug)]
pub struct PointModule {
    shape: MlpShape,
    backend: Arc<dyn PointBackend>,
}

/// Sets to apply a [`PointModule`] to: [`PointBatch`] and parameters, as tensors.
#[derive(Clone, Copy, Debug)]
pub struct TensorBatch<'a> {
    /// All elements, `[total, d_x + d_t]`, each row `[value, location]`.
    pub elements: &'a Tensor,
    /// One context per set, `[sets, context_dim]`; `None` if and only if `context_dim` is 0.
    pub context: Option<&'a Tensor>,
    /// The flat parameters, `[num_parameters]`.
    pub parameters: &'a Tensor,
    /// Which rows belong to which set.
    pub offsets: &'a SetOffsets,
}

impl PointModule {
    /// A network of shape `shape`, computed by `backend`.
    pub fn new(shape: MlpShape, backend: Arc<dyn PointBackend>) -> Self {
        Self { shape, backend }
    }

    /// The shape.
    pub fn shape(&self) -> &MlpShape {
        &self.shape
    }

    /// Where it is computed.
    pub fn backend(&self) -> &Arc<dyn PointBackend> {
        &self.backend
    }

    /// Checks all shapes and takes a copy of the parameters.
    fn prepare(&self, batch: &TensorBatch<'_>) -> Result<Prepared> {
        let expected = [batch.offsets.num_elements(), self.shape.element_dim()];
        let parameters = self.checked_parameters(batch.parameters)?;
        Ok(Prepared {
            elements: checked("elements", batch.elements, &expected)?,
            context: self.checked_context(batch.context, batch.offsets)?,
            call: self.call(&parameters, batch.offsets)?,
            parameters,
        })
    }

    fn checked_context(&self, context: Option<&Tensor>, offsets: &SetOffsets) -> Result<Tensor> {
        let expected = [offsets.num_sets(), self.shape.config().context_dim];
        match context {
            Some(context) => checked("context", context, &expected),
            None if expected[1] == 0 => empty((expected[0], 0)),
            None => Err(Error::invalid("context", format!("of shape {expected:?}"), "none")),
        }
    }

    fn checked_parameters(&self, parameters: &Tensor) -> Result<Tensor> {
        checked("parameters", parameters, &[self.shape.num_parameters()])
    }

    /// `parameters` must be checked.
    fn call(&self, parameters: &Tensor, offsets: &SetOffsets) -> Result<Call> {
        let values = HostView::new("parameters", parameters)?.to_vec();
        Ok(Call {
            backend: Arc::clone(&self.backend),
            mlp: PointMlp::new(self.shape.clone(), values)?,
            offsets: offsets.clone(),
        })
    }
}

/// The arguments of an operation, checked and contiguous.
struct Prepared {
    elements: Tensor,
    context: Tensor,
    parameters: Tensor,
    call: Call,
}

impl Prepared {
    /// Runs a forward pass on the arguments' numbers.
    fn run<T>(&self, forward: impl FnOnce(&Call, &PointBatch<'_>) -> Result<T>) -> Result<T> {
        let elements = HostView::new("elements", &self.elements)?;
        let context = HostView::new("context", &self.context)?;
        forward(&self.call, &self.call.batch(&elements, &context))
    }
}

/// What forward and backward pass share: the device, the network at the time, and the sets.
struct Call {
    backend: Arc<dyn PointBackend>,
    mlp: PointMlp,
    offsets: SetOffsets,
}

impl Call {
    fn batch<'a>(&'a self, elements: &'a [f32], context: &'a [f32]) -> PointBatch<'a> {
        PointBatch { elements, offsets: &self.offsets, context }
    }
}

/// candle's three arguments are elements, context and parameters.
fn wanted([elements, context, parameters]: [bool; 3]) -> Wanted {
    Wanted { parameters, context, elements, locations: false }
}

fn by_argument(gradients: Gradients) -> [Option<Vec<f32>>; 3] {
    [gradients.elements, gradients.context, gradients.parameters]
}
