//! A network of the primitive together with its parameters.

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use crate::nn::{Parameters, PointModule, TensorBatch};
use crate::point::{MlpConfig, MlpShape, PointBackend, Pooling};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// What an element's own d numbers weigh at the start, whatever the size of the context and of
/// the representation beside them: the first layer's weights for them are N(0, gain²/d).
///
/// [`PointMlp::random`](crate::point::PointMlp::random) counts the context into the fan-in, so
/// that a location of one number next to a context of 128 would hardly be seen, and training
/// would stall at predictions that are flat in t.
const INPUT_GAIN: f32 = 2.0;

/// What networks are built from.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub(super) parameters: Parameters,
    pub(super) seed: u64,
    pub(super) backend: Arc<dyn PointBackend>,
}

impl Builder {
    pub(super) fn new(seed: u64, backend: Arc<dyn PointBackend>) -> Self {
        Self { parameters: Parameters::new(seed), seed, backend }
    }

    /// A network whose flat parameters are called `name`. The first `num_own` numbers of an
    /// element are its own; the others were computed by another network.
    pub(super) fn network(&self, name: &str, config: MlpConfig, num_own: usize) -> Result<Network> {
        let shape = MlpShape::new(config)?;
        let parameters = self.parameters.point_mlp(name, &shape)?;
        let biases = Stream::new(self.seed, &format!("{name}.biases"));
        spread_first_layer(&shape, &parameters, num_own, biases)?;
        let module = PointModule::new(shape, Arc::clone(&self.backend));
        Ok(Network { module, parameters })
    }
}

/// A [`PointModule`] that owns its parameters.
#[derive(Clone, Debug)]
pub(super) struct Network {
    module: PointModule,
    parameters: Var,
}

impl Network {
    pub(super) fn output_dim(&self) -> usize {
        self.module.shape().config().output_dim
    }

    /// Outputs of every element, `[total, outputs]`.
    pub(super) fn values(
        &self,
        elements: &Tensor,
        context: Option<&Tensor>,
        offsets: &SetOffsets,
    ) -> Result<Tensor> {
        self.module.values(&self.batch(elements, context, offsets))
    }

    /// Outputs of every set, pooled, `[sets, outputs]`.
    pub(super) fn pool(
        &self,
        elements: &Tensor,
        offsets: &SetOffsets,
        pooling: Pooling,
    ) -> Result<Tensor> {
        self.module.pool(&self.batch(elements, None, offsets), pooling)
    }

    fn batch<'a>(
        &'a self,
        elements: &'a Tensor,
        context: Option<&'a Tensor>,
        offsets: &'a SetOffsets,
    ) -> TensorBatch<'a> {
        TensorBatch { elements, context, parameters: self.parameters.as_tensor(), offsets }
    }
}

/// Gives the first layer weights of standard deviation gain/√d for an element's own d numbers, and
/// biases of standard deviation gain, so that its units bend at different places rather than all
/// at 0. Other weights stay as they are.
fn spread_first_layer(
    shape: &MlpShape,
    variable: &Var,
    num_own: usize,
    stream: Stream,
) -> Result<()> {
    let layer = &shape.layers()[0];
    let mut values = variable.to_vec1::<f32>()?;
    let context = layer.context_weight.as_ref().map_or(0, |_| shape.config().context_dim);
    let is_rectified = shape.layers().len() > 1 && shape.config().activation.is_piecewise_linear();
    let found = (if is_rectified { 2.0 } else { 1.0 } / (layer.inputs + context) as f32).sqrt();
    let wanted = INPUT_GAIN / (num_own as f32).sqrt();
    for row in values[layer.weight.clone()].chunks_exact_mut(layer.inputs) {
        for weight in &mut row[..num_own] {
            *weight *= wanted / found;
        }
    }
    let biases = &mut values[layer.bias.clone()];
    stream.fill_normal(0, 0, biases);
    for bias in biases {
        *bias *= INPUT_GAIN;
    }
    variable.set(&Tensor::new(values, &Device::Cpu)?)?;
    Ok(())
}
