//! Values, gradients and scores of every element.

use std::time::Instant;

use super::Precision;
use super::chunk::{Chunk, chunks};
use super::device::{Buffer, Device, flat, launch};
use super::network::{Elements, Keep, Network, Rows};
use super::products::plain;
use crate::Result;
use crate::point::{
    Backward, Cotangent, Gradients, PointBatch, PointMlp, Score, ScoreCotangent, Wanted,
};

/// The network of a call, and its batch in chunks.
pub(super) fn prepare<'a>(
    device: &'a Device,
    mlp: &'a PointMlp,
    batch: &PointBatch<'_>,
    keep: Keep,
) -> Result<(Network<'a>, Vec<Chunk>)> {
    let network = Network::new(device, mlp, batch.context, batch.offsets.num_sets())?;
    let parts = chunks(batch.offsets, network.rows_at_once(keep));
    Ok((network, parts))
}

pub(super) fn values(device: &Device, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Output)?;
    let mut out = Vec::new();
    for chunk in &parts {
        let rows = network.rows(Elements::Host(batch.elements), chunk)?;
        append(&mut out, device.download(&network.forward(&rows, Keep::Output)?.output)?);
    }
    Ok(out)
}

/// Appends `more`; what comes first is not copied.
pub(super) fn append(all: &mut Vec<f32>, more: Vec<f32>) {
    if all.is_empty() { *all = more } else { all.extend(more) }
}

/// The cotangent of a chunk's outputs, `[count, output_dim]`.
pub(super) fn upload_cotangent(
    device: &Device,
    (chunk, rows): (&Chunk, &Rows),
    outputs: usize,
    cotangent: Cotangent<'_>,
) -> Result<Buffer> {
    match cotangent {
        Cotangent::PerElement(given) => {
            device.upload(&given[chunk.rows.start * outputs..chunk.rows.end * outputs])
        }
        Cotangent::PerSet(given) => {
            let per_set = device.upload(given)?;
            let out = device.buffer::<f32>(rows.count * outputs)?;
            launch!(
                device,
                spread,
                flat(rows.count * outputs),
                per_set.at(0),
                rows.set.at(0),
                out.at(0),
                rows.count as u64,
                outputs as u32
            )?;
            Ok(out)
        }
    }
}

pub(super) fn backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    cotangent: Cotangent<'_>,
    wanted: Wanted,
) -> Result<Backward> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Slopes)?;
    let outputs = mlp.shape().config().output_dim;
    let sums = network.sums(wanted)?;
    let (mut values, mut elements) = (Vec::new(), Vec::new());
    for chunk in &parts {
        let rows = network.rows(Elements::Host(batch.elements), chunk)?;
        let trace = network.forward(&rows, Keep::Slopes)?;
        append(&mut values, device.download(&trace.output)?);
        let g = upload_cotangent(device, (chunk, &rows), outputs, cotangent)?;
        let part = network.backward(&rows, &trace, Some(g), sums.as_ref(), wanted.elements)?;
        append(&mut elements, device.download(&part)?);
    }
    let mut gradients = network.finish(sums)?;
    gradients.elements = wanted.elements.then_some(elements);
    Ok(Backward { values, gradients })
}

/// The value part of rows `[count, d]`.
pub(super) fn value_part(rows: Vec<f32>, d: usize, dx: usize) -> Vec<f32> {
    if d == dx {
        return rows;
    }
    rows.chunks_exact(d).flat_map(|row| &row[..dx]).copied().collect()
}

pub(super) fn score(device: &Device, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Slopes)?;
    let (d, dx) = (mlp.shape().element_dim(), mlp.shape().config().value_dim);
    let (mut values, mut score) = (Vec::new(), Vec::new());
    for chunk in &parts {
        let rows = network.rows(Elements::Host(batch.elements), chunk)?;
        let trace = network.forward(&rows, Keep::Slopes)?;
        let gradient = network.backward(&rows, &trace, None, None, true)?;
        append(&mut values, device.download(&trace.output)?);
        append(&mut score, value_part(device.download(&gradient)?, d, dx));
    }
    Ok(Score { values, score })
}

pub(super) fn score_backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    cotangent: ScoreCotangent<'_>,
    wanted: Wanted,
) -> Result<Gradients> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Curvatures)?;
    let (d, dx) = (mlp.shape().element_dim(), mlp.shape().config().value_dim);
    let sums = network.sums(wanted)?;
    let mut elements = Vec::new();
    for chunk in &parts {
        let rows = network.rows(Elements::Host(batch.elements), chunk)?;
        let mut direction = vec![0.0; rows.count * d];
        let given = &cotangent.score[chunk.rows.start * dx..chunk.rows.end * dx];
        for (to, from) in direction.chunks_exact_mut(d).zip(given.chunks_exact(dx)) {
            to[..dx].copy_from_slice(from);
        }
        let v = device.upload(&direction)?;
        let u = match cotangent.values {
            Some(values) => device.upload(&values[chunk.rows.clone()])?,
            None => device.zeros(rows.count)?,
        };
        let part = network.score_backward(&rows, &v, u, sums.as_ref(), wanted.elements)?;
        append(&mut elements, device.download(&part)?);
    }
    let mut gradients = network.finish(sums)?;
    gradients.elements = wanted.elements.then_some(elements);
    Ok(gradients)
}

/// 10⁹ operations per second of products of 8192 × 8192 matrices.
pub(super) fn peak(device: &Device) -> Result<f64> {
    const SIDE: usize = 8192;
    let factor = device.zeros::<f32>(SIDE * SIDE)?;
    // Random numbers: zeros run faster than anything real.
    launch!(
        device,
        normals,
        flat(SIDE * SIDE),
        factor.at(0),
        (SIDE * SIDE) as u64,
        0_u64,
        0_u32,
        1_u32,
        2_u32
    )?;
    let rounded = device.rounded(factor.at(0), SIDE * SIDE)?;
    let address = if device.precision == Precision::Bf16 { rounded.at(0) } else { factor.at(0) };
    let out = device.buffer::<f32>(SIDE * SIDE)?;
    let mut fastest = f64::INFINITY;
    for _ in 0..6 {
        device.synchronize()?;
        let start = Instant::now();
        let operand = plain(address, SIDE);
        device.multiply(
            (SIDE, SIDE, SIDE),
            operand,
            operand,
            (out.at(0), false),
            device.precision,
        )?;
        device.synchronize()?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIDE as f64).powi(3) / fastest / 1e9)
}
