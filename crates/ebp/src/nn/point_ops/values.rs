//! Values, sums, scores and pools of sets.

use candle_core::Tensor;

use super::{Call, PointModule, TensorBatch, by_argument, wanted};
use crate::Result;
use crate::nn::host::{Reversal, Reverse, record};
use crate::point::{Cotangent, Pooled, Pooling, ScoreCotangent};

impl PointModule {
    /// f(x, t; c) of every element.
    ///
    /// # Shapes
    ///
    /// `[total, output_dim]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming a tensor of the wrong shape,
    /// dtype or device; [`Error::NonFinite`](crate::Error::NonFinite) if an argument or the
    /// result is not finite. Errors of the backward pass come out of candle's `backward`.
    pub fn values(&self, batch: &TensorBatch<'_>) -> Result<Tensor> {
        let prepared = self.prepare(batch)?;
        let values = prepared.run(|call, batch| call.backend.values(&call.mlp, batch))?;
        let shape = (batch.offsets.num_elements(), self.shape().config().output_dim);
        let arguments = [&prepared.elements, &prepared.context, &prepared.parameters];
        record(values, shape, arguments, ReverseValues(prepared.call))
    }

    /// Σᵢ f(xᵢ, tᵢ; c) over each set.
    ///
    /// # Shapes
    ///
    /// `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    pub fn set_sums(&self, batch: &TensorBatch<'_>) -> Result<Tensor> {
        let prepared = self.prepare(batch)?;
        let sums = prepared.run(|call, batch| call.backend.set_sums(&call.mlp, batch))?;
        let shape = (batch.offsets.num_sets(), self.shape().config().output_dim);
        let arguments = [&prepared.elements, &prepared.context, &prepared.parameters];
        record(sums, shape, arguments, ReverseSetSums(prepared.call))
    }

    /// ∇ₓ f of every element, itself differentiable: for penalties and score matching. The
    /// network must have one output.
    ///
    /// # Shapes
    ///
    /// `[total, d_x]`.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values), and if `output_dim` is not 1.
    pub fn score(&self, batch: &TensorBatch<'_>) -> Result<Tensor> {
        let prepared = self.prepare(batch)?;
        let score = prepared.run(|call, batch| call.backend.score(&call.mlp, batch))?.score;
        let shape = (batch.offsets.num_elements(), self.shape().config().value_dim);
        let arguments = [&prepared.elements, &prepared.context, &prepared.parameters];
        record(score, shape, arguments, ReverseScore(prepared.call))
    }

    /// The outputs of each set, pooled. Under [`Pooling::Max`] the backward pass visits only the
    /// elements that attain a maximum.
    ///
    /// # Shapes
    ///
    /// `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    pub fn pool(&self, batch: &TensorBatch<'_>, pooling: Pooling) -> Result<Tensor> {
        let prepared = self.prepare(batch)?;
        let pooled = prepared.run(|call, batch| call.backend.pool(&call.mlp, batch, pooling))?;
        let shape = (batch.offsets.num_sets(), self.shape().config().output_dim);
        let arguments = [&prepared.elements, &prepared.context, &prepared.parameters];
        let values = pooled.values.clone();
        record(values, shape, arguments, ReversePool { call: prepared.call, pooled })
    }
}

struct ReverseValues(Call);

impl Reverse for ReverseValues {
    fn name(&self) -> &'static str {
        "point-values"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        reverse_linear(&self.0, reversal, Cotangent::PerElement(reversal.cotangent))
    }
}

struct ReverseSetSums(Call);

impl Reverse for ReverseSetSums {
    fn name(&self) -> &'static str {
        "point-set-sums"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        reverse_linear(&self.0, reversal, Cotangent::PerSet(reversal.cotangent))
    }
}

fn reverse_linear(
    call: &Call,
    reversal: &Reversal<'_>,
    cotangent: Cotangent<'_>,
) -> Result<[Option<Vec<f32>>; 3]> {
    let [elements, context, _] = reversal.arguments;
    let batch = call.batch(elements, context);
    let backward = call.backend.backward(&call.mlp, &batch, cotangent, wanted(reversal.wanted))?;
    Ok(by_argument(backward.gradients))
}

struct ReverseScore(Call);

impl Reverse for ReverseScore {
    fn name(&self) -> &'static str {
        "point-score"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let Call { backend, mlp, .. } = &self.0;
        let [elements, context, _] = reversal.arguments;
        let batch = self.0.batch(elements, context);
        let cotangent = ScoreCotangent { score: reversal.cotangent, values: None };
        backend.score_backward(mlp, &batch, cotangent, wanted(reversal.wanted)).map(by_argument)
    }
}

struct ReversePool {
    call: Call,
    pooled: Pooled,
}

impl Reverse for ReversePool {
    fn name(&self) -> &'static str {
        "point-pool"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let Call { backend, mlp, .. } = &self.call;
        let [elements, context, _] = reversal.arguments;
        let batch = self.call.batch(elements, context);
        let wanted = wanted(reversal.wanted);
        backend
            .pool_backward(mlp, &batch, &self.pooled, reversal.cotangent, wanted)
            .map(by_argument)
    }
}
