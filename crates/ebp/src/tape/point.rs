//! The primitive's operations: values, sums, pools and scores of networks over sets.

use std::sync::Arc;

use super::{Array, Device, Tape, Var, cuda};
use crate::point::{
    Cotangent, CpuBackend, Gradients, MlpShape, PointBackend, PointBatch, PointMlp, Pooled,
    Pooling, ScoreCotangent, Wanted,
};
use crate::{Error, Result, SetOffsets};

/// A network and the sets it is applied to.
#[derive(Clone, Debug)]
pub struct Points {
    /// The network's shape.
    pub shape: Arc<MlpShape>,
    /// Its flat parameters.
    pub parameters: Var,
    /// [x, t] of every element, `[total, d_x + d_t]`.
    pub elements: Var,
    /// One context per set, `[sets, context_dim]`; `None` if the network takes none.
    pub context: Option<Var>,
    /// Which elements belong to which set.
    pub offsets: Arc<SetOffsets>,
}

/// The arguments of an operation, kept for the way back.
#[derive(Clone)]
pub(super) struct Arguments {
    pub(super) shape: Arc<MlpShape>,
    pub(super) offsets: Arc<SetOffsets>,
    pub(super) parameters: Array,
    pub(super) elements: Array,
    /// Empty where there is none.
    pub(super) context: Array,
}

impl Arguments {
    pub(super) fn mlp(&self) -> Result<PointMlp> {
        PointMlp::new((*self.shape).clone(), self.parameters.host()?.clone())
    }

    pub(super) fn batch(&self) -> Result<PointBatch<'_>> {
        Ok(PointBatch {
            elements: self.elements.host()?,
            offsets: &self.offsets,
            context: self.context.host()?,
        })
    }
}

/// Gradients with respect to parameters, elements and context, in this order.
pub(super) fn ordered(gradients: Gradients) -> Vec<Option<Array>> {
    [gradients.parameters, gradients.elements, gradients.context]
        .map(|gradient| gradient.map(Array::from))
        .into()
}

pub(super) fn wanted(wanted: &[bool]) -> Wanted {
    let is_wanted = |input: usize| wanted.get(input).copied().unwrap_or(false);
    Wanted {
        parameters: is_wanted(0),
        elements: is_wanted(1),
        context: is_wanted(2),
        locations: false,
    }
}

impl Tape {
    /// Checks shapes, and says what an operation reads and what flows back.
    pub(super) fn arguments(&self, points: &Points) -> Result<(Vec<Var>, Arguments)> {
        let Points { shape, parameters, elements, context, offsets } = points;
        let (sets, total) = (offsets.num_sets(), offsets.num_elements());
        self.check("elements", *elements, (total, shape.element_dim()))?;
        let context_dim = shape.config().context_dim;
        if self.array(*parameters).len() != shape.num_parameters() {
            let expected = format!("{} numbers", shape.num_parameters());
            return Err(Error::invalid("parameters", expected, self.array(*parameters).len()));
        }
        let mut inputs = vec![*parameters, *elements];
        let of_context = match context {
            Some(context) => {
                self.check("context", *context, (sets, context_dim))?;
                inputs.push(*context);
                self.array(*context).clone()
            }
            None if context_dim == 0 => self.device().zeros(0)?,
            None => {
                let expected = format!("{sets} x {context_dim}");
                return Err(Error::invalid("context", expected, "none"));
            }
        };
        let arguments = Arguments {
            shape: Arc::clone(shape),
            offsets: Arc::clone(offsets),
            parameters: self.array(*parameters).clone(),
            elements: self.array(*elements).clone(),
            context: of_context,
        };
        Ok((inputs, arguments))
    }

    /// f of every element, `[total, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine), and [`Error::NonFinite`] if the network overflows.
    pub fn point_values(&mut self, points: &Points) -> Result<Var> {
        let (inputs, arguments) = self.arguments(points)?;
        let value = match self.device() {
            Device::Cpu(cpu) => cpu.values(&arguments.mlp()?, &arguments.batch()?)?.into(),
            Device::Cuda(gpu) => cuda::point_values(gpu, &arguments)?,
        };
        let shape = (points.offsets.num_elements(), points.shape.config().output_dim);
        Ok(self.record(&inputs, value, shape, move |reversal| {
            let (g, wanted) = (reversal.cotangent()?, wanted(reversal.wanted));
            let mut found = match reversal.device {
                Device::Cpu(cpu) => {
                    backward(*cpu, &arguments, Cotangent::PerElement(g.host()?), wanted)?
                }
                Device::Cuda(gpu) => cuda::point_backward(
                    gpu,
                    &arguments,
                    cuda::Given::PerElement(g.cuda()?),
                    wanted,
                )?,
            };
            found.truncate(reversal.wanted.len());
            Ok(found)
        }))
    }

    /// Σ f over each set, `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn point_sums(&mut self, points: &Points) -> Result<Var> {
        let (inputs, arguments) = self.arguments(points)?;
        let value = match self.device() {
            Device::Cpu(cpu) => cpu.set_sums(&arguments.mlp()?, &arguments.batch()?)?.into(),
            Device::Cuda(gpu) => cuda::point_sums(gpu, &arguments)?,
        };
        let shape = (points.offsets.num_sets(), points.shape.config().output_dim);
        Ok(self.record(&inputs, value, shape, move |reversal| {
            let (g, wanted) = (reversal.cotangent()?, wanted(reversal.wanted));
            let mut found = match reversal.device {
                Device::Cpu(cpu) => {
                    backward(*cpu, &arguments, Cotangent::PerSet(g.host()?), wanted)?
                }
                Device::Cuda(gpu) => {
                    cuda::point_backward(gpu, &arguments, cuda::Given::PerSet(g.cuda()?), wanted)?
                }
            };
            found.truncate(reversal.wanted.len());
            Ok(found)
        }))
    }

    /// ∇ₓ f of every element, `[total, d_x]`. The network must have one output.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn point_score(&mut self, points: &Points) -> Result<Var> {
        let (inputs, arguments) = self.arguments(points)?;
        let value = match self.device() {
            Device::Cpu(cpu) => cpu.score(&arguments.mlp()?, &arguments.batch()?)?.score.into(),
            Device::Cuda(gpu) => cuda::point_score(gpu, &arguments)?,
        };
        let shape = (points.offsets.num_elements(), points.shape.config().value_dim);
        Ok(self.record(&inputs, value, shape, move |reversal| {
            let (g, wanted) = (reversal.cotangent()?, wanted(reversal.wanted));
            let mut found = match reversal.device {
                Device::Cpu(cpu) => {
                    let cotangent = ScoreCotangent { score: g.host()?, values: None };
                    let (mlp, batch) = (arguments.mlp()?, arguments.batch()?);
                    ordered(cpu.score_backward(&mlp, &batch, cotangent, wanted)?)
                }
                Device::Cuda(gpu) => {
                    cuda::point_score_backward(gpu, &arguments, g.cuda()?, wanted)?
                }
            };
            found.truncate(reversal.wanted.len());
            Ok(found)
        }))
    }

    /// The pooled outputs of each set, `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn point_pool(&mut self, points: &Points, pooling: Pooling) -> Result<Var> {
        let (inputs, arguments) = self.arguments(points)?;
        let shape = (points.offsets.num_sets(), points.shape.config().output_dim);
        let (value, critical) = match self.device() {
            Device::Cpu(cpu) => {
                let pooled = cpu.pool(&arguments.mlp()?, &arguments.batch()?, pooling)?;
                (Array::from(pooled.values), Critical::Host(pooled.critical))
            }
            Device::Cuda(gpu) => {
                let will_go_back = inputs.iter().any(|&input| self.is_tracked(input));
                let (value, critical) = cuda::point_pool(gpu, &arguments, pooling, will_go_back)?;
                (value, Critical::Cuda(Box::new(critical)))
            }
        };
        Ok(self.record(&inputs, value, shape, move |reversal| {
            let (g, wanted) = (reversal.cotangent()?, wanted(reversal.wanted));
            let mut found = match (reversal.device, critical) {
                (Device::Cpu(cpu), Critical::Host(critical)) => {
                    let pooled = Pooled { pooling, values: Vec::new(), critical };
                    let (mlp, batch) = (arguments.mlp()?, arguments.batch()?);
                    ordered(cpu.pool_backward(&mlp, &batch, &pooled, g.host()?, wanted)?)
                }
                (Device::Cuda(gpu), Critical::Cuda(critical)) => {
                    cuda::point_pool_backward(gpu, &arguments, &critical, g.cuda()?, wanted)?
                }
                _ => return Err(Error::invalid("device", "that of the forward pass", "another")),
            };
            found.truncate(reversal.wanted.len());
            Ok(found)
        }))
    }
}

/// The rows that attain the maxima, where the device keeps them.
enum Critical {
    Host(Vec<u32>),
    Cuda(Box<cuda::Maxima>),
}

fn backward(
    cpu: CpuBackend,
    arguments: &Arguments,
    cotangent: Cotangent<'_>,
    wanted: Wanted,
) -> Result<Vec<Option<Array>>> {
    let (mlp, batch) = (arguments.mlp()?, arguments.batch()?);
    Ok(ordered(cpu.backward(&mlp, &batch, cotangent, wanted)?.gradients))
}
