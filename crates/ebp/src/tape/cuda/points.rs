//! The primitive on arrays of the GPU.

use std::sync::Arc;

use super::super::dynamics::Steps;
use super::super::partition::{CandidateArrays, LikelihoodParts};
use super::super::point::Arguments;
use super::super::{Array, Shape};
use super::entries::{cut_columns, place_columns};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::Result;
use crate::point::cuda::launch::blocks;
use crate::point::cuda::{
    DeviceBatch, DeviceCandidateValues, DeviceCandidates, DeviceCotangent, DeviceLangevin,
    DeviceLeapfrog, DeviceLogWeights, DeviceMlp, DeviceMotion, DevicePooled, Sets,
};
use crate::point::{DynamicsGradients, Gradients, Pooling, Wanted};

/// ∂L/∂f, for every element or once per set.
#[derive(Clone, Copy)]
pub(in super::super) enum Given<'a> {
    PerElement(&'a Buffer),
    PerSet(&'a Buffer),
}

/// Pooled sets, with the rows that attain their maxima.
pub(in super::super) struct Maxima(DevicePooled);

/// The arguments of an operation, as the primitive reads them.
struct Ready<'a> {
    arguments: &'a Arguments,
    parameters: &'a Buffer,
    elements: &'a Buffer,
    context: &'a Buffer,
    sets: Arc<Sets>,
}

impl<'a> Ready<'a> {
    fn new(gpu: &Open<'_>, arguments: &'a Arguments) -> Result<Self> {
        Ok(Self {
            parameters: arguments.parameters.cuda()?,
            elements: arguments.elements.cuda()?,
            context: arguments.context.cuda()?,
            sets: gpu.sets(&arguments.offsets)?,
            arguments,
        })
    }

    fn mlp(&self) -> DeviceMlp<'_> {
        let (shape, parameters) = (&self.arguments.shape, self.parameters);
        DeviceMlp { shape, parameters, gradient: None }
    }

    fn batch(&self) -> DeviceBatch<'_> {
        DeviceBatch { elements: self.elements, sets: &self.sets, context: self.context }
    }
}

/// Gradients with respect to parameters, elements and context, in this order.
fn ordered(found: Gradients<Buffer>) -> Vec<Option<Array>> {
    [found.parameters, found.elements, found.context].map(|part| part.map(Array::from)).into()
}

pub(in super::super) fn point_values(gpu: &Gpu, arguments: &Arguments) -> Result<Array> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    Ok(gpu.values(&ready.mlp(), &ready.batch())?.into())
}

pub(in super::super) fn point_sums(gpu: &Gpu, arguments: &Arguments) -> Result<Array> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    Ok(gpu.pool(&ready.mlp(), &ready.batch(), Pooling::Sum, false)?.values.into())
}

pub(in super::super) fn point_backward(
    gpu: &Gpu,
    arguments: &Arguments,
    given: Given<'_>,
    wanted: Wanted,
) -> Result<Vec<Option<Array>>> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    let cotangent = match given {
        Given::PerElement(given) => DeviceCotangent::PerElement(given),
        Given::PerSet(given) => DeviceCotangent::PerSet(given),
    };
    Ok(ordered(gpu.backward(&ready.mlp(), &ready.batch(), cotangent, wanted)?.gradients))
}

pub(in super::super) fn point_score(gpu: &Gpu, arguments: &Arguments) -> Result<Array> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    Ok(gpu.score(&ready.mlp(), &ready.batch())?.score.into())
}

pub(in super::super) fn point_score_backward(
    gpu: &Gpu,
    arguments: &Arguments,
    g: &Buffer,
    wanted: Wanted,
) -> Result<Vec<Option<Array>>> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    Ok(ordered(gpu.score_backward(&ready.mlp(), &ready.batch(), (g, None), wanted)?))
}

/// Pools; if `will_go_back`, the critical rows of maxima are gathered at once, and their number is
/// on its way to the host while it goes on.
pub(in super::super) fn point_pool(
    gpu: &Gpu,
    arguments: &Arguments,
    pooling: Pooling,
    will_go_back: bool,
) -> Result<(Array, Maxima)> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    let found = gpu.pool(&ready.mlp(), &ready.batch(), pooling, will_go_back)?;
    Ok((found.values.clone().into(), Maxima(found)))
}

pub(in super::super) fn point_pool_backward(
    gpu: &Gpu,
    arguments: &Arguments,
    maxima: &Maxima,
    g: &Buffer,
    wanted: Wanted,
) -> Result<Vec<Option<Array>>> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    Ok(ordered(gpu.pool_backward(&ready.mlp(), &ready.batch(), &maxima.0, g, wanted)?))
}

/// Candidates, as the primitive reads them.
struct ReadyCandidates<'a> {
    arrays: &'a CandidateArrays,
    parameters: &'a Buffer,
    values: &'a Buffer,
    locations: &'a Buffer,
    context: &'a Buffer,
    log_weights: Option<&'a Buffer>,
    sets: Arc<Sets>,
}

impl<'a> ReadyCandidates<'a> {
    fn new(gpu: &Open<'_>, arrays: &'a CandidateArrays) -> Result<Self> {
        Ok(Self {
            parameters: arrays.parameters.cuda()?,
            values: arrays.values.cuda()?,
            locations: arrays.locations.cuda()?,
            context: arrays.context.cuda()?,
            log_weights: arrays.log_weights.as_ref().map(Array::cuda).transpose()?,
            sets: gpu.sets(&arrays.offsets)?,
            arrays,
        })
    }

    fn mlp(&self) -> DeviceMlp<'_> {
        DeviceMlp { shape: &self.arrays.shape, parameters: self.parameters, gradient: None }
    }

    fn candidates(&self) -> DeviceCandidates<'_> {
        let is_shared = self.arrays.is_shared;
        DeviceCandidates {
            values: if is_shared {
                DeviceCandidateValues::Shared(self.values)
            } else {
                DeviceCandidateValues::PerAnchor(self.values)
            },
            num_candidates: self.arrays.count,
            locations: self.locations,
            sets: &self.sets,
            context: self.context,
            log_weights: match self.log_weights {
                None => DeviceLogWeights::Zero,
                Some(weights) if is_shared => DeviceLogWeights::Shared(weights),
                Some(weights) => DeviceLogWeights::PerAnchor(weights),
            },
        }
    }
}

/// log Z of every anchor, and f of every candidate.
pub(in super::super) fn log_partition(
    gpu: &Gpu,
    arrays: &CandidateArrays,
) -> Result<(Array, Array)> {
    let gpu = open(gpu)?;
    let ready = ReadyCandidates::new(&gpu, arrays)?;
    let found = gpu.log_partition(&ready.mlp(), &ready.candidates())?;
    Ok((found.log_partition.into(), found.values.into()))
}

/// Gradients of parameters, candidates, context and locations, where wanted.
pub(in super::super) fn log_partition_backward(
    gpu: &Gpu,
    arrays: &CandidateArrays,
    [log_partition, g]: [&Buffer; 2],
    wanted: Wanted,
) -> Result<[Option<Array>; 4]> {
    let gpu = open(gpu)?;
    let ready = ReadyCandidates::new(&gpu, arrays)?;
    let given = (log_partition, g);
    let found = gpu.log_partition_backward(&ready.mlp(), &ready.candidates(), given, wanted)?;
    Ok([found.parameters, found.elements, found.context, found.locations]
        .map(|gradient| gradient.map(Array::from)))
}

pub(in super::super) fn likelihood(
    gpu: &Gpu,
    arguments: &Arguments,
    arrays: &CandidateArrays,
    wanted: Wanted,
) -> Result<LikelihoodParts> {
    let gpu = open(gpu)?;
    let (ready, others) = (Ready::new(&gpu, arguments)?, ReadyCandidates::new(&gpu, arrays)?);
    let found = gpu.likelihood(&ready.mlp(), &ready.batch(), &others.candidates(), wanted)?;
    let nats = gpu.buffer::<f32>(1)?;
    gpu.kernels().mean_nats(
        &gpu,
        blocks(1, 1024),
        &found.log_partition,
        others.sets.starts(),
        &found.means,
        &nats,
        others.sets.num_sets() as u32,
    )?;
    let gradients = [found.gradients.parameters, found.gradients.context];
    Ok(LikelihoodParts {
        nats: nats.into(),
        log_partition: found.log_partition.into(),
        values: found.candidate_values.into(),
        gradients: gradients.map(|gradient| gradient.map(Array::from)).into(),
    })
}

/// Rows of elements, and the columns that move.
fn widths(arguments: &Arguments) -> (usize, (usize, usize)) {
    (arguments.shape.element_dim(), (0, arguments.shape.config().value_dim))
}

/// The value columns of elements.
fn value_columns(gpu: &Open<'_>, arguments: &Arguments, elements: Buffer) -> Result<Array> {
    let (width, moving) = widths(arguments);
    let all = moving.1 == width;
    Ok(if all { elements } else { cut_columns(gpu, &elements, width, moving)? }.into())
}

/// Gradients of elements (zero at the locations, which never move), context and step sizes.
fn gradients(
    gpu: &Open<'_>,
    arguments: &Arguments,
    found: DynamicsGradients<Buffer>,
) -> Result<([Array; 3], Array)> {
    let (width, moving) = widths(arguments);
    let shape: Shape = (arguments.offsets.num_elements(), width);
    let elements = if moving.1 == width {
        found.values
    } else {
        place_columns(gpu, &found.values, shape, moving)?
    };
    Ok(([elements.into(), found.context.into(), found.step_sizes.into()], found.momentum.into()))
}

/// Values, Σ ‖v‖² and Σ s² ‖ξ‖² of every element.
pub(in super::super) fn langevin(
    gpu: &Gpu,
    arguments: &Arguments,
    steps: &Steps,
) -> Result<[Array; 3]> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    let motion = DeviceMotion::new(&gpu, &steps.rules.motion())?;
    let settings = settings(steps, &motion)?;
    let found = gpu.langevin(&ready.mlp(), &ready.batch(), &settings)?;
    let values = value_columns(&gpu, arguments, found.elements)?;
    Ok([values, found.element_kinetic.into(), found.element_noise.into()])
}

fn settings<'a>(steps: &'a Steps, motion: &'a DeviceMotion) -> Result<DeviceLangevin<'a>> {
    Ok(DeviceLangevin {
        step_sizes: steps.step_sizes.cuda()?,
        noise_scales: &steps.noise_scales,
        noise: steps.noise,
        motion,
    })
}

pub(in super::super) fn langevin_backward(
    gpu: &Gpu,
    arguments: &Arguments,
    steps: &Steps,
    of_values: &Buffer,
    of_kinetic: Option<&Buffer>,
) -> Result<[Array; 3]> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    let motion = DeviceMotion::new(&gpu, &steps.rules.motion())?;
    let (settings, given) = (settings(steps, &motion)?, (of_values, of_kinetic));
    let found = gpu.langevin_backward(&ready.mlp(), &ready.batch(), &settings, given)?;
    Ok(gradients(&gpu, arguments, found)?.0)
}

pub(in super::super) fn leapfrog(
    gpu: &Gpu,
    arguments: &Arguments,
    steps: &Steps,
    momentum: &Buffer,
) -> Result<(Array, Array)> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    let motion = DeviceMotion::new(&gpu, &steps.rules.motion())?;
    let settings = DeviceLeapfrog { step_sizes: steps.step_sizes.cuda()?, motion: &motion };
    let found = gpu.leapfrog(&ready.mlp(), &ready.batch(), momentum, &settings)?;
    Ok((value_columns(&gpu, arguments, found.elements)?, found.momentum.into()))
}

pub(in super::super) fn leapfrog_backward(
    gpu: &Gpu,
    arguments: &Arguments,
    steps: &Steps,
    momentum: &Buffer,
    [of_values, of_momentum]: [&Buffer; 2],
) -> Result<([Array; 3], Array)> {
    let gpu = open(gpu)?;
    let ready = Ready::new(&gpu, arguments)?;
    let motion = DeviceMotion::new(&gpu, &steps.rules.motion())?;
    let settings = DeviceLeapfrog { step_sizes: steps.step_sizes.cuda()?, motion: &motion };
    let (mlp, batch, given) = (ready.mlp(), ready.batch(), (of_values, Some(of_momentum)));
    let found = gpu.leapfrog_backward(&mlp, &batch, momentum, &settings, given)?;
    gradients(&gpu, arguments, found)
}
