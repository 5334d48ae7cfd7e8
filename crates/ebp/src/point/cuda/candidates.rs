//! Log-partitions over candidates, and their gradients.

use std::ops::Range;

use super::device::{Buffer, Device, flat, launch};
use super::network::{Keep, Network, Rows};
use super::values::{append, value_part};
use crate::Result;
use crate::point::{
    CandidateValues, Candidates, Gradients, LogPartition, LogWeights, PointMlp, Wanted,
};
use cudarc::driver::LaunchConfig;

/// Anchors that are computed together, on the GPU.
pub(super) struct Part {
    pub(super) rows: Rows,
    /// ω, and how kernels read it: 0 none, 1 per anchor, 2 shared.
    pub(super) log_weights: Buffer,
    pub(super) mode: i32,
}

/// Ranges of anchors whose candidates fit into the budget together.
pub(super) fn parts(
    network: &Network<'_>,
    candidates: &Candidates<'_>,
    keep: Keep,
) -> Vec<Range<usize>> {
    let most = (network.rows_at_once(keep) / candidates.num_candidates).max(1);
    let total = candidates.num_anchors();
    (0..total.div_ceil(most)).map(|part| part * most..total.min((part + 1) * most)).collect()
}

pub(super) fn upload(
    network: &Network<'_>,
    candidates: &Candidates<'_>,
    anchors: &Range<usize>,
) -> Result<Part> {
    let device = network.device;
    let config = network.shape.config();
    let (dx, dt, k) = (config.value_dim, config.location_dim, candidates.num_candidates);
    let count = anchors.len() * k;
    let (values, is_shared) = match candidates.values {
        CandidateValues::PerAnchor(values) => {
            (device.upload(&values[anchors.start * k * dx..anchors.end * k * dx])?, 0_i32)
        }
        CandidateValues::Shared(values) => (device.upload(values)?, 1),
    };
    let locations = device.upload(&candidates.locations[anchors.start * dt..anchors.end * dt])?;
    let (log_weights, mode) = match candidates.log_weights {
        LogWeights::Zero => (Buffer::none(), 0),
        LogWeights::PerAnchor(weights) => {
            (device.upload(&weights[anchors.start * k..anchors.end * k])?, 1)
        }
        LogWeights::Shared(weights) => (device.upload(weights)?, 2),
    };
    let mut set_of = Vec::with_capacity(anchors.len());
    let (mut starts, mut first_set) = (vec![0_u32], 0);
    for set in 0..candidates.offsets.num_sets() {
        let range = candidates.offsets.range(set);
        let (begin, end) = (range.start.max(anchors.start), range.end.min(anchors.end));
        if begin < end {
            if starts.len() == 1 {
                first_set = set;
            }
            set_of.resize(end - anchors.start, set as u32);
            starts.push(((end - anchors.start) * k) as u32);
        }
    }
    let anchor_set = device.upload(&set_of)?;
    let elements = device.buffer::<f32>(count * (dx + dt))?;
    let set = device.buffer::<u32>(count)?;
    launch!(
        device,
        candidate_rows,
        flat(count),
        values.at(0),
        locations.at(0),
        anchor_set.at(0),
        elements.at(0),
        set.at(0),
        count as u64,
        k as u32,
        dx as u32,
        dt as u32,
        is_shared
    )?;
    let num_sets = starts.len() - 1;
    let starts = device.upload(&starts)?;
    Ok(Part { rows: Rows { elements, set, starts, first_set, num_sets, count }, log_weights, mode })
}

/// log Σₖ exp(f + ω) of a part's anchors, each with `k` candidates, to `out`.
pub(super) fn log_sums(
    device: &Device,
    part: &Part,
    f: &Buffer,
    k: usize,
    out: &Buffer,
) -> Result<()> {
    let grid = LaunchConfig {
        grid_dim: (out.len() as u32, 1, 1),
        block_dim: (128, 1, 1),
        shared_mem_bytes: 0,
    };
    let (omega, mode) = (part.log_weights.at(0), part.mode);
    launch!(device, log_sum_exp, grid, f.at(0), omega, out.at(0), k as u32, mode)
}

pub(super) fn log_partition(
    device: &Device,
    mlp: &PointMlp,
    candidates: &Candidates<'_>,
) -> Result<LogPartition> {
    let network = Network::new(device, mlp, candidates.context, candidates.offsets.num_sets())?;
    let k = candidates.num_candidates;
    let mut result = LogPartition { log_partition: Vec::new(), values: Vec::new() };
    for anchors in parts(&network, candidates, Keep::Output) {
        let part = upload(&network, candidates, &anchors)?;
        let f = network.forward(&part.rows, Keep::Output)?.output;
        let out = device.buffer::<f32>(anchors.len())?;
        log_sums(device, &part, &f, k, &out)?;
        append(&mut result.log_partition, device.download(&out)?);
        append(&mut result.values, device.download(&f)?);
    }
    Ok(result)
}

/// What every candidate's f gets of the cotangents `given` of its anchor's log Z: its share of Z.
pub(super) fn cotangents(
    device: &Device,
    part: &Part,
    f: &Buffer,
    (log_z, given): (&Buffer, &[f32]),
    k: usize,
) -> Result<Buffer> {
    let given = device.upload(given)?;
    let g = device.buffer::<f32>(part.rows.count)?;
    launch!(
        device,
        candidate_weights,
        flat(part.rows.count),
        f.at(0),
        part.log_weights.at(0),
        log_z.at(0),
        given.at(0),
        g.at(0),
        part.rows.count as u64,
        k as u32,
        part.mode
    )?;
    Ok(g)
}

pub(super) fn log_partition_backward(
    device: &Device,
    mlp: &PointMlp,
    candidates: &Candidates<'_>,
    (log_partition, cotangent): (&[f32], &[f32]),
    wanted: Wanted,
) -> Result<Gradients> {
    let network = Network::new(device, mlp, candidates.context, candidates.offsets.num_sets())?;
    let config = mlp.shape().config();
    let (k, dx, d) = (candidates.num_candidates, config.value_dim, mlp.shape().element_dim());
    let sums = network.sums(wanted)?;
    let is_shared = matches!(candidates.values, CandidateValues::Shared(_));
    let shared = device.zeros::<f32>(if wanted.elements && is_shared { k * dx } else { 0 })?;
    let mut elements = Vec::new();
    for anchors in parts(&network, candidates, Keep::Slopes) {
        let part = upload(&network, candidates, &anchors)?;
        let trace = network.forward(&part.rows, Keep::Slopes)?;
        let log_z = device.upload(&log_partition[anchors.clone()])?;
        let g = cotangents(device, &part, &trace.output, (&log_z, &cotangent[anchors.clone()]), k)?;
        let back = network.backward(&part.rows, &trace, Some(g), sums.as_ref(), wanted.elements)?;
        if !wanted.elements {
            continue;
        }
        if is_shared {
            launch!(
                device,
                gather_shared,
                flat(k * dx),
                back.at(0),
                shared.at(0),
                anchors.len() as u32,
                k as u32,
                d as u32,
                dx as u32
            )?;
        } else {
            append(&mut elements, value_part(device.download(&back)?, d, dx));
        }
    }
    let mut gradients = network.finish(sums)?;
    if wanted.elements {
        gradients.elements = Some(if is_shared { device.download(&shared)? } else { elements });
    }
    Ok(gradients)
}
