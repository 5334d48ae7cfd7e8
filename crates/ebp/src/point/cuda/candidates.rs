//! Log-partitions over candidates, and their gradients.

use super::buffer::Buffer;
use super::device::Device;
use super::inputs::{DeviceCandidateValues, DeviceCandidates, DeviceLogWeights, DeviceMlp};
use super::launch::{blocks, flat, per_set};
use super::network::{Keep, Network};
use super::rows::Rows;
use super::sets::Chunk;
use super::whole::Whole;
use crate::Result;
use crate::point::{Gradients, LogPartition, Wanted};

/// Anchors that are computed together: a row for each of their candidates.
pub(super) struct Part {
    pub(super) rows: Rows,
    /// ω, and how kernels read it: 0 none, 1 per anchor, 2 shared.
    log_weights: Buffer,
    mode: i32,
    num_candidates: usize,
}

/// Anchors in chunks whose candidates fit into the budget together.
pub(super) fn chunks(
    network: &Network<'_>,
    candidates: &DeviceCandidates<'_>,
    keep: Keep,
) -> Vec<Chunk> {
    candidates.sets.chunks((network.rows_at_once(keep) / candidates.num_candidates).max(1))
}

impl Part {
    pub(super) fn new(
        network: &Network<'_>,
        candidates: &DeviceCandidates<'_>,
        anchors: &Chunk,
    ) -> Result<Self> {
        let (device, k) = (network.device, candidates.num_candidates);
        let (first, num_anchors) = (anchors.rows.start, anchors.rows.len());
        let count = num_anchors * k;
        let starts: Vec<u32> = anchors.starts.iter().map(|start| start * k as u32).collect();
        let (starts, num_sets) = (device.upload(&starts)?, anchors.starts.len() - 1);
        let (elements, set) = elements_of(network, candidates, anchors, &starts)?;
        let (log_weights, mode) = match candidates.log_weights {
            DeviceLogWeights::Zero => (Buffer::none(), 0),
            DeviceLogWeights::PerAnchor(weights) => (weights.view(first * k, count), 1),
            DeviceLogWeights::Shared(weights) => (weights.clone(), 2),
        };
        let first_set = anchors.first_set;
        let rows = Rows { elements, set, starts, first_set, num_sets, count };
        Ok(Self { rows, log_weights, mode, num_candidates: k })
    }

    /// log Σₖ exp(f + ω) of every anchor.
    pub(super) fn log_sums(&self, device: &Device, f: &Buffer) -> Result<Buffer> {
        let k = self.num_candidates;
        let anchors = self.rows.count / k;
        let out = device.buffer::<f32>(anchors)?;
        let weights = self.log_weights.some();
        device.kernels.log_sum_exp(
            device,
            blocks(anchors, 128),
            f,
            weights,
            &out,
            k as u32,
            self.mode,
        )?;
        Ok(out)
    }

    /// What every candidate's f gets of the cotangents of its anchor's log Z: its share of Z.
    pub(super) fn cotangents(
        &self,
        device: &Device,
        f: &Buffer,
        (log_partition, given): (&Buffer, &Buffer),
    ) -> Result<Buffer> {
        let count = self.rows.count;
        let g = device.buffer::<f32>(count)?;
        device.kernels.candidate_weights(
            device,
            flat(count),
            f,
            self.log_weights.some(),
            log_partition,
            given,
            &g,
            count as u64,
            self.num_candidates as u32,
            self.mode,
        )?;
        Ok(g)
    }
}

/// The rows `[candidate, location]` of anchors, and the set of each.
fn elements_of(
    network: &Network<'_>,
    candidates: &DeviceCandidates<'_>,
    anchors: &Chunk,
    starts: &Buffer<u32>,
) -> Result<(Buffer, Buffer<u32>)> {
    let (device, config) = (network.device, network.shape.config());
    let (dx, dt, k) = (config.value_dim, config.location_dim, candidates.num_candidates);
    let (first, num_anchors) = (anchors.rows.start, anchors.rows.len());
    let count = num_anchors * k;
    let set = device.buffer::<u32>(count)?;
    let (values, is_shared) = match candidates.values {
        DeviceCandidateValues::PerAnchor(values) => {
            (values.view(first * k * dx, count * dx), false)
        }
        DeviceCandidateValues::Shared(values) => (values.clone(), true),
    };
    if dt == 0 && !is_shared {
        // Candidates are rows already.
        let grid = per_set(anchors.starts.len() - 1, 1);
        device.kernels.name_sets(device, grid, starts, &set, anchors.first_set as u32)?;
        return Ok((values, set));
    }
    let elements = device.buffer::<f32>(count * (dx + dt))?;
    device.kernels.candidate_rows(
        device,
        flat(count),
        &values,
        &candidates.locations.view(first * dt, num_anchors * dt),
        &candidates.sets.set_of_row().view(first, num_anchors),
        &elements,
        &set,
        count as u64,
        k as u32,
        dx as u32,
        dt as u32,
        i32::from(is_shared),
    )?;
    Ok((elements, set))
}

/// What reaches the candidates' values and the anchors' locations.
struct Reached<'a> {
    device: &'a Device,
    wanted: Wanted,
    /// d_x, d and K.
    dims: (usize, usize, usize),
    /// `[anchors, K, d_x]`, where candidates are not shared.
    values: Whole<'a>,
    /// `[K, d_x]`, where they are.
    shared: Option<Buffer>,
    /// `[anchors, d_t]`.
    locations: Whole<'a>,
}

impl<'a> Reached<'a> {
    fn new(
        device: &'a Device,
        mlp: &DeviceMlp<'_>,
        candidates: &DeviceCandidates<'_>,
        wanted: Wanted,
    ) -> Result<Self> {
        let (dx, d) = (mlp.shape.config().value_dim, mlp.shape.element_dim());
        let (anchors, k) = (candidates.sets.num_elements(), candidates.num_candidates);
        let is_shared = matches!(candidates.values, DeviceCandidateValues::Shared(_));
        let shared = if is_shared && wanted.elements { Some(device.zeros(k * dx)?) } else { None };
        Ok(Self {
            device,
            wanted,
            dims: (dx, d, k),
            values: Whole::new(device, anchors * k * dx),
            shared,
            locations: Whole::new(device, anchors * (d - dx)),
        })
    }

    /// Takes in the gradient of an anchors' rows, `[anchors, K, d]`.
    fn take(&mut self, anchors: &Chunk, rows: Buffer) -> Result<()> {
        let (device, (dx, d, k)) = (self.device, self.dims);
        let (first, count) = (anchors.rows.start, anchors.rows.len());
        if self.wanted.locations && d > dx {
            let out = device.buffer::<f32>(count * (d - dx))?;
            let (k, d, dx) = (k as u32, d as u32, dx as u32);
            device.kernels.location_sums(device, blocks(count, 256), &rows, &out, k, d, dx)?;
            self.locations.put(first * out.len() / count, out)?;
        }
        if let Some(shared) = &self.shared {
            let (grid, count) = (flat(k * dx), count as u32);
            let (k, d, dx) = (k as u32, d as u32, dx as u32);
            device.kernels.gather_shared(device, grid, &rows, shared, count, k, d, dx)?;
        } else if self.wanted.elements {
            self.values.put(first * k * dx, device.first_columns(rows, d, dx)?)?;
        }
        Ok(())
    }

    fn finish(self, gradients: &mut Gradients<Buffer>) {
        let Self { wanted, values, shared, locations, .. } = self;
        gradients.locations = wanted.locations.then(|| locations.done());
        gradients.elements = wanted.elements.then(|| shared.unwrap_or_else(|| values.done()));
    }
}

impl Device {
    /// log Σₖ exp(f + ω) of every anchor, and f at every candidate.
    pub(crate) fn log_partition(
        &self,
        mlp: &DeviceMlp<'_>,
        candidates: &DeviceCandidates<'_>,
    ) -> Result<LogPartition<Buffer>> {
        let sets = candidates.sets;
        let network = Network::new(self, mlp, candidates.context, sets.num_sets())?;
        let (anchors, k) = (sets.num_elements(), candidates.num_candidates);
        let mut log_partition = Whole::new(self, anchors);
        let mut values = Whole::new(self, anchors * k);
        for chunk in chunks(&network, candidates, Keep::Output) {
            let part = Part::new(&network, candidates, &chunk)?;
            let f = network.forward(&part.rows, Keep::Output)?.output;
            log_partition.put(chunk.rows.start, part.log_sums(self, &f)?)?;
            values.put(chunk.rows.start * k, f)?;
        }
        Ok(LogPartition { log_partition: log_partition.done(), values: values.done() })
    }

    /// Gradients of L = Σ_anchors cotangent · log-partition, given the `log_partition` found before;
    /// both are `[anchors]`.
    pub(crate) fn log_partition_backward(
        &self,
        mlp: &DeviceMlp<'_>,
        candidates: &DeviceCandidates<'_>,
        (log_partition, cotangent): (&Buffer, &Buffer),
        wanted: Wanted,
    ) -> Result<Gradients<Buffer>> {
        let network = Network::new(self, mlp, candidates.context, candidates.sets.num_sets())?;
        let sums = network.sums(wanted)?;
        let mut reached = Reached::new(self, mlp, candidates, wanted)?;
        let wants_rows = wanted.elements || wanted.locations;
        for chunk in chunks(&network, candidates, Keep::Slopes) {
            let part = Part::new(&network, candidates, &chunk)?;
            let trace = network.forward(&part.rows, Keep::Slopes)?;
            let (first, count) = (chunk.rows.start, chunk.rows.len());
            let given = (&log_partition.view(first, count), &cotangent.view(first, count));
            let g = part.cotangents(self, &trace.output, given)?;
            let back = network.backward(&part.rows, &trace, Some(&g), sums.as_ref(), wants_rows)?;
            if wants_rows {
                reached.take(&chunk, back)?;
            }
        }
        let mut gradients = network.finish(sums)?;
        reached.finish(&mut gradients);
        Ok(gradients)
    }
}
