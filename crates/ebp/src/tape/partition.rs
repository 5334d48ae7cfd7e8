//! Log-partitions over candidates, and the likelihood of sets.

use std::sync::Arc;

use rayon::prelude::*;

use super::elementwise::{Join, Spread, join};
use super::point::{Arguments, Points};
use super::{Array, Device, Tape, Var, cuda};
use crate::error::check_length;
use crate::point::{
    CandidateValues, Candidates, CpuBackend, LogWeights, MlpShape, PointBackend, PointMlp, Wanted,
};
use crate::{Error, Result, SetOffsets};

/// Values that could stand at anchors: places within sets, each with as many candidates.
#[derive(Clone, Debug)]
pub struct CandidateVars {
    /// `[anchors · K, d_x]`, or `[K, d_x]` where all anchors share them.
    pub values: Var,
    /// K.
    pub count: usize,
    /// Whether all anchors share the values and their weights.
    pub is_shared: bool,
    /// t of each anchor, `[anchors, d_t]`; `None` where there is none.
    pub locations: Option<Var>,
    /// ω, `[anchors, K]` or, shared, `[1, K]`: added to f before the log-sum-exp; `None` is zero.
    pub log_weights: Option<Var>,
    /// Which anchors belong to which set.
    pub offsets: Arc<SetOffsets>,
}

/// The arguments of an operation over candidates, kept for the way back.
#[derive(Clone)]
pub(super) struct CandidateArrays {
    pub(super) shape: Arc<MlpShape>,
    pub(super) offsets: Arc<SetOffsets>,
    pub(super) count: usize,
    pub(super) is_shared: bool,
    pub(super) parameters: Array,
    pub(super) values: Array,
    /// Empty where there is none.
    pub(super) locations: Array,
    /// Empty where there is none.
    pub(super) context: Array,
    pub(super) log_weights: Option<Array>,
}

impl CandidateArrays {
    fn mlp(&self) -> Result<PointMlp> {
        PointMlp::new((*self.shape).clone(), self.parameters.host()?.clone())
    }

    fn host(&self) -> Result<Candidates<'_>> {
        let values = self.values.host()?;
        Ok(Candidates {
            values: if self.is_shared {
                CandidateValues::Shared(values)
            } else {
                CandidateValues::PerAnchor(values)
            },
            num_candidates: self.count,
            locations: self.locations.host()?,
            offsets: &self.offsets,
            context: self.context.host()?,
            log_weights: match &self.log_weights {
                None => LogWeights::Zero,
                Some(weights) if self.is_shared => LogWeights::Shared(weights.host()?),
                Some(weights) => LogWeights::PerAnchor(weights.host()?),
            },
        })
    }
}

/// log Z of every anchor.
#[derive(Clone, Copy, Debug)]
pub struct PartitionVars {
    /// log Σ_k exp(f_k + ω_k), `[anchors, 1]`.
    pub log_partition: Var,
    /// f of every candidate, `[anchors, K]`, a constant.
    pub values: Var,
}

/// The negative log-likelihood of sets, by its parts.
#[derive(Clone, Copy, Debug)]
pub struct LikelihoodVars {
    /// mean over sets of (mean over anchors of log Z − mean over elements of f), `[1, 1]`.
    pub nats: Var,
    /// log Z of every anchor, `[anchors, 1]`, a constant.
    pub log_partition: Var,
    /// f of every candidate, `[anchors, K]`, a constant.
    pub values: Var,
}

impl Tape {
    fn candidate_arrays(
        &self,
        (shape, parameters, context): (&Arc<MlpShape>, Var, Option<Var>),
        candidates: &CandidateVars,
    ) -> Result<CandidateArrays> {
        let CandidateVars { values, count, is_shared, locations, log_weights, offsets } =
            candidates;
        let anchors = offsets.num_elements();
        let config = shape.config();
        let rows = if *is_shared { *count } else { anchors * count };
        self.check("candidate values", *values, (rows, config.value_dim))?;
        let optional = |field: &str, var: Option<Var>, rows: usize, columns: usize| match var {
            Some(var) => {
                self.check(field, var, (rows, columns))?;
                Ok(self.array(var).clone())
            }
            None if columns == 0 => self.device().zeros(0),
            None => Err(Error::invalid(field, format!("{rows} x {columns}"), "none")),
        };
        let log_weights = match log_weights {
            Some(weights) => {
                let rows = if *is_shared { 1 } else { anchors };
                self.check("log weights", *weights, (rows, *count))?;
                Some(self.array(*weights).clone())
            }
            None => None,
        };
        Ok(CandidateArrays {
            shape: Arc::clone(shape),
            offsets: Arc::clone(offsets),
            count: *count,
            is_shared: *is_shared,
            parameters: self.array(parameters).clone(),
            values: self.array(*values).clone(),
            locations: optional("locations", *locations, anchors, config.location_dim)?,
            context: optional("context", context, offsets.num_sets(), config.context_dim)?,
            log_weights,
        })
    }

    /// log Σ_k exp(f_k + ω_k) of every anchor. Gradients flow to parameters, candidates, context and
    /// locations, none to the weights.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn log_partition(
        &mut self,
        network: (&Arc<MlpShape>, Var, Option<Var>),
        candidates: &CandidateVars,
    ) -> Result<PartitionVars> {
        let arrays = self.candidate_arrays(network, candidates)?;
        let (anchors, count) = (candidates.offsets.num_elements(), candidates.count);
        let (log_partition, values) = match self.device() {
            Device::Cpu(cpu) => {
                let found = cpu.log_partition(&arrays.mlp()?, &arrays.host()?)?;
                (found.log_partition.into(), found.values.into())
            }
            Device::Cuda(gpu) => cuda::log_partition(gpu, &arrays)?,
        };
        let (_, parameters, context) = network;
        let inputs: Vec<Var> = [parameters, candidates.values]
            .into_iter()
            .chain(context)
            .chain(candidates.locations)
            .collect();
        let has_context = context.is_some();
        let values = self.constant(values, (anchors, count))?;
        let result: Array = log_partition;
        let kept = result.clone();
        let log_partition = self.record(&inputs, result, (anchors, 1), move |reversal| {
            let g = reversal.cotangent()?;
            let is_wanted = |input: usize| reversal.wanted.get(input).copied().unwrap_or(false);
            let wanted = Wanted {
                parameters: is_wanted(0),
                elements: is_wanted(1),
                context: has_context && is_wanted(2),
                locations: is_wanted(2 + usize::from(has_context)),
            };
            let [parameters, elements, of_context, locations] = match reversal.device {
                Device::Cpu(cpu) => {
                    let (mlp, candidates) = (arrays.mlp()?, arrays.host()?);
                    let (log_z, g) = (kept.host()?, g.host()?);
                    let found = cpu.log_partition_backward(&mlp, &candidates, log_z, g, wanted)?;
                    [found.parameters, found.elements, found.context, found.locations]
                        .map(|gradient| gradient.map(Array::from))
                }
                Device::Cuda(gpu) => {
                    cuda::log_partition_backward(gpu, &arrays, [kept.cuda()?, g.cuda()?], wanted)?
                }
            };
            let mut found = vec![parameters, elements];
            if has_context {
                found.push(of_context);
            }
            found.push(locations);
            found.truncate(reversal.wanted.len());
            Ok(found)
        });
        Ok(PartitionVars { log_partition, values })
    }

    /// The negative log-likelihood of sets in one pass; gradients flow to parameters and context.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn likelihood(
        &mut self,
        points: &Points,
        candidates: &CandidateVars,
    ) -> Result<LikelihoodVars> {
        let (_, arguments) = self.arguments(points)?;
        let network = (&points.shape, points.parameters, points.context);
        let arrays = self.candidate_arrays(network, candidates)?;
        let (sets, found) = (points.offsets.num_sets(), candidates.offsets.num_sets());
        check_length("candidate sets", found, sets, || "the sets of the elements".into())?;
        let inputs: Vec<Var> = std::iter::once(points.parameters).chain(points.context).collect();
        let wanted = Wanted {
            parameters: self.is_tracked(points.parameters),
            context: points.context.is_some_and(|context| self.is_tracked(context)),
            ..Wanted::NOTHING
        };
        let (anchors, count) = (candidates.offsets.num_elements(), candidates.count);
        let parts = match self.device() {
            Device::Cpu(cpu) => on_cpu(*cpu, &arguments, &arrays, wanted)?,
            Device::Cuda(gpu) => cuda::likelihood(gpu, &arguments, &arrays, wanted)?,
        };
        let LikelihoodParts { nats, log_partition, values, gradients } = parts;
        let log_partition = self.constant(log_partition, (anchors, 1))?;
        let values = self.constant(values, (anchors, count))?;
        let nats = self.record(&inputs, nats, (1, 1), move |reversal| {
            let g = reversal.cotangent()?;
            gradients
                .into_iter()
                .take(reversal.wanted.len())
                .map(|gradient| match gradient {
                    Some(gradient) => {
                        let right = (g, Spread::One);
                        join(reversal.device, (&gradient, 1), right, Join::Multiply).map(Some)
                    }
                    None => Ok(None),
                })
                .collect()
        });
        Ok(LikelihoodVars { nats, log_partition, values })
    }

    /// What weights w ∝ exp(f + ω) look like, on average over anchors, as `[1, 3]`: the effective
    /// number (Σw)²/Σw², the share of candidates marked as near, and the largest share.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn weight_figures(
        &mut self,
        values: Var,
        log_weights: Option<Var>,
        is_near: Option<Var>,
    ) -> Result<Var> {
        let (anchors, count) = self.shape(values);
        if let Some(weights) = log_weights
            && self.shape(weights) != (1, count)
        {
            self.check("log weights", weights, (anchors, count))?;
        }
        if let Some(near) = is_near {
            self.check("near candidates", near, (anchors, count))?;
        }
        let array = |var: Option<Var>| var.map(|var| self.array(var).clone());
        let (weights, near) = (array(log_weights), array(is_near));
        let found = match self.device() {
            Device::Cpu(_) => {
                figures(self.array(values), weights.as_ref(), near.as_ref(), (anchors, count))?
            }
            Device::Cuda(gpu) => {
                let values = self.array(values).cuda()?;
                let weights = weights.as_ref().map(Array::cuda).transpose()?;
                let near = near.as_ref().map(Array::cuda).transpose()?;
                cuda::weight_figures(gpu, values, [weights, near], (anchors, count))?
            }
        };
        self.constant(found, (1, 3))
    }
}

/// What a device finds in one pass.
pub(super) struct LikelihoodParts {
    pub(super) nats: Array,
    pub(super) log_partition: Array,
    pub(super) values: Array,
    /// Of parameters and context.
    pub(super) gradients: Vec<Option<Array>>,
}

fn on_cpu(
    cpu: CpuBackend,
    arguments: &Arguments,
    arrays: &CandidateArrays,
    wanted: Wanted,
) -> Result<LikelihoodParts> {
    let found = cpu.likelihood(&arguments.mlp()?, &arguments.batch()?, &arrays.host()?, wanted)?;
    let sets = arguments.offsets.num_sets();
    let anchors = &arrays.offsets;
    let mean_partition = |set: usize| {
        let range = anchors.range(set);
        let size = range.len() as f64;
        found.log_partition[range].iter().map(|&z| f64::from(z)).sum::<f64>() / size
    };
    let terms = (0..sets).map(|set| mean_partition(set) - f64::from(found.means[set]));
    #[expect(clippy::cast_possible_truncation, reason = "values on a tape are f32")]
    let nats = (terms.sum::<f64>() / sets as f64) as f32;
    let gradients = [found.gradients.parameters, found.gradients.context];
    Ok(LikelihoodParts {
        nats: vec![nats].into(),
        log_partition: found.log_partition.into(),
        values: found.candidate_values.into(),
        gradients: gradients.map(|gradient| gradient.map(Array::from)).into(),
    })
}

fn figures(
    values: &Array,
    log_weights: Option<&Array>,
    is_near: Option<&Array>,
    (anchors, count): (usize, usize),
) -> Result<Array> {
    let host = |array: Option<&Array>| array.map(|array| array.host().cloned()).transpose();
    let (values, weights, near) = (values.host()?, host(log_weights)?, host(is_near)?);
    let row = |anchor: usize| {
        let range = anchor * count..(anchor + 1) * count;
        // Shared weights have one row.
        let shift = |k: usize| match &weights {
            Some(weights) if weights.len() == count => weights[k],
            Some(weights) => weights[range.start + k],
            None => 0.0,
        };
        let logs: Vec<f32> = (0..count).map(|k| values[range.start + k] + shift(k)).collect();
        let largest = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let (mut sum, mut squares, mut close) = (0.0, 0.0, 0.0);
        for (k, log) in logs.iter().enumerate() {
            let weight = f64::from((log - largest).exp());
            sum += weight;
            squares += weight * weight;
            close += weight * near.as_ref().map_or(0.0, |near| f64::from(near[range.start + k]));
        }
        [sum * sum / squares, close / sum, 1.0 / sum]
    };
    let all: Vec<[f64; 3]> = (0..anchors).into_par_iter().map(row).collect();
    #[expect(clippy::cast_possible_truncation, reason = "values on a tape are f32")]
    let mean = |figure: usize| {
        (all.iter().map(|row| row[figure]).sum::<f64>() / anchors.max(1) as f64) as f32
    };
    Ok(vec![mean(0), mean(1), mean(2)].into())
}
