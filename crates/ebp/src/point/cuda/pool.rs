//! Pools of sets, and their gradients.

use rayon::prelude::*;

use super::chunk::{Chunk, chunks};
use super::device::{Buffer, Device, flat, launch, per_set, sums_per_set};
use super::network::{Elements, Keep, Network, Rows};
use super::values::{backward, prepare};
use crate::point::{Cotangent, Gradients, PointBatch, PointMlp, Pooled, Pooling, Wanted};
use crate::{Result, SetOffsets};

pub(super) fn pool(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    pooling: Pooling,
) -> Result<Pooled> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Output)?;
    let n = mlp.shape().config().output_dim;
    let num_sets = batch.offsets.num_sets();
    let is_max = pooling == Pooling::Max;
    let (pooled, rows_of): (Buffer, Buffer<u32>) = if is_max {
        (device.upload(&vec![f32::NEG_INFINITY; num_sets * n])?, device.zeros(num_sets * n)?)
    } else {
        (device.zeros(num_sets * n)?, Buffer::none())
    };
    for chunk in &parts {
        let rows = network.rows(Elements::Host(batch.elements), chunk)?;
        if is_max {
            pool_max(&network, (chunk, &rows), (&pooled, &rows_of))?;
        } else {
            let output = network.forward(&rows, Keep::Output)?.output;
            launch!(
                device,
                set_sums,
                sums_per_set(rows.num_sets, n),
                output.at(0),
                rows.starts.at(0),
                pooled.at(0),
                rows.first_set as u32,
                n as u32
            )?;
        }
    }
    let mut values = device.download(&pooled)?;
    if pooling == Pooling::Mean {
        for (set, row) in values.chunks_exact_mut(n).enumerate() {
            let size = batch.offsets.range(set).len() as f32;
            for value in row {
                *value /= size;
            }
        }
    }
    Ok(Pooled { pooling, values, critical: device.download(&rows_of)? })
}

/// Takes the rows of a chunk into the maxima so far and the rows that attain them.
pub(super) fn pool_max(
    network: &Network<'_>,
    (chunk, rows): (&Chunk, &Rows),
    (pooled, rows_of): (&Buffer, &Buffer<u32>),
) -> Result<()> {
    let n = network.shape.config().output_dim;
    let unpooled = network.unpooled(rows)?;
    let (kind, leak) = unpooled.activation;
    launch!(
        network.device,
        pool_max,
        per_set(rows.num_sets, n),
        unpooled.z.at(0),
        rows.starts.at(0),
        unpooled.shift,
        i32::from(unpooled.has_context),
        kind,
        leak,
        pooled.at(0),
        rows_of.at(0),
        rows.first_set as u32,
        chunk.rows.start as u32,
        n as u32
    )
}

pub(super) fn pool_backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    pooled: &Pooled,
    cotangent: &[f32],
    wanted: Wanted,
) -> Result<Gradients> {
    let n = mlp.shape().config().output_dim;
    match pooled.pooling {
        Pooling::Sum => {
            Ok(backward(device, mlp, batch, Cotangent::PerSet(cotangent), wanted)?.gradients)
        }
        Pooling::Mean => {
            let mut scaled = cotangent.to_vec();
            for (set, row) in scaled.chunks_exact_mut(n).enumerate() {
                let size = batch.offsets.range(set).len() as f32;
                for value in row {
                    *value /= size;
                }
            }
            Ok(backward(device, mlp, batch, Cotangent::PerSet(&scaled), wanted)?.gradients)
        }
        Pooling::Max => max_backward(device, mlp, batch, &pooled.critical, cotangent, wanted),
    }
}

/// Gradients reach only the critical rows: they are gathered, each once, and the rest is left.
fn max_backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    critical: &[u32],
    cotangent: &[f32],
    wanted: Wanted,
) -> Result<Gradients> {
    let (n, d) = (mlp.shape().config().output_dim, mlp.shape().element_dim());
    // The critical rows of each set, sorted, and where among them each output's row is.
    let of_sets: Vec<(Vec<u32>, Vec<usize>)> = critical
        .par_chunks_exact(n)
        .map(|critical| {
            let mut unique = critical.to_vec();
            unique.sort_unstable();
            unique.dedup();
            let within = |row: &u32| unique.partition_point(|known| known < row);
            let places = critical.iter().map(within).collect();
            (unique, places)
        })
        .collect();
    let mut rows = Vec::new();
    let mut sizes = Vec::with_capacity(of_sets.len());
    let mut place = Vec::with_capacity(critical.len());
    for (unique, places) in of_sets {
        place.extend(places.into_iter().map(|within| (rows.len() + within) as u32));
        sizes.push(unique.len());
        rows.extend(unique);
    }
    let elements: Vec<f32> =
        rows.iter().flat_map(|&row| &batch.elements[row as usize * d..][..d]).copied().collect();
    let offsets = SetOffsets::from_sizes(sizes)?;
    let gathered = PointBatch { elements: &elements, offsets: &offsets, context: batch.context };
    let (network, _) = prepare(device, mlp, &gathered, Keep::Slopes)?;
    let sums = network.sums(wanted)?;
    let mut gradient = Vec::new();
    for chunk in chunks(&offsets, network.rows_at_once(Keep::Slopes)) {
        let part = network.rows(Elements::Host(&elements), &chunk)?;
        let trace = network.forward(&part, Keep::Slopes)?;
        let g = scattered(device, &chunk, &place, cotangent, n)?;
        let back = network.backward(&part, &trace, Some(g), sums.as_ref(), wanted.elements)?;
        gradient.extend(device.download(&back)?);
    }
    let mut gradients = network.finish(sums)?;
    if wanted.elements {
        let mut all = vec![0.0; batch.elements.len()];
        for (row, from) in rows.iter().zip(gradient.chunks_exact(d)) {
            all[*row as usize * d..][..d].copy_from_slice(from);
        }
        gradients.elements = Some(all);
    }
    Ok(gradients)
}

/// The cotangent of a chunk's outputs: each entry at the row that attains the maximum, else 0.
fn scattered(
    device: &Device,
    chunk: &Chunk,
    place: &[u32],
    cotangent: &[f32],
    n: usize,
) -> Result<Buffer> {
    let g = device.zeros::<f32>(chunk.rows.len() * n)?;
    // Whole sets in one chunk, the usual case, scatter on the GPU; otherwise on the host.
    let first = chunk.first_set * n;
    let last = first + (chunk.starts.len() - 1) * n;
    let range = chunk.rows.start as u32..chunk.rows.end as u32;
    if place[first..last].iter().all(|row| range.contains(row)) {
        let local: Vec<u32> = place[first..last].iter().map(|row| row - range.start).collect();
        let (to, from) = (device.upload(&local)?, device.upload(&cotangent[first..last])?);
        launch!(
            device,
            scatter,
            flat(local.len()),
            from.at(0),
            to.at(0),
            g.at(0),
            local.len() as u32,
            n as u32
        )?;
        return Ok(g);
    }
    let mut dense = vec![0.0_f32; chunk.rows.len() * n];
    for (entry, &row) in place.iter().enumerate().take(last).skip(first) {
        if range.contains(&row) {
            dense[(row - range.start) as usize * n + entry % n] = cotangent[entry];
        }
    }
    device.upload(&dense)
}
