//! Functions of single entries, rows and columns.

use std::sync::Arc;

use super::super::elementwise::{Join, Map, Spread};
use super::super::order::Way;
use super::super::{Array, Choice, DrawDomain, Interpolation, NOTHING, Order, Shape};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::Result;
use crate::point::cuda::launch::flat;

pub(in super::super) fn map(gpu: &Gpu, x: &Buffer, map: Map) -> Result<Array> {
    let gpu = open(gpu)?;
    let (out, count, (kind, a, b)) = (gpu.buffer::<f32>(x.len())?, x.len(), map.code());
    gpu.kernels().map_entries(&gpu, flat(count), x, &out, count as u64, kind, a, b)?;
    Ok(out.into())
}

pub(in super::super) fn map_backward(gpu: &Gpu, x: &Buffer, g: &Buffer, map: Map) -> Result<Array> {
    let gpu = open(gpu)?;
    let (out, count, (kind, a, b)) = (gpu.buffer::<f32>(x.len())?, x.len(), map.code());
    let grid = flat(count);
    gpu.kernels().map_entries_backward(&gpu, grid, x, g, &out, count as u64, kind, a, b)?;
    Ok(out.into())
}

/// left ∘ right, in the shape of the left operand.
pub(in super::super) fn join(
    gpu: &Gpu,
    (left, columns): (&Buffer, usize),
    (right, spread): (&Buffer, Spread),
    kind: Join,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(left.len())?;
    join_into(&gpu, (left, columns), (right, spread), kind, &out)?;
    Ok(out.into())
}

/// As [`join`]; `out` may be the left operand.
pub(super) fn join_into(
    gpu: &Open<'_>,
    (left, columns): (&Buffer, usize),
    (right, spread): (&Buffer, Spread),
    kind: Join,
    out: &Buffer,
) -> Result<()> {
    let count = left.len();
    let kind = match kind {
        Join::Add => 0,
        Join::Subtract => 1,
        Join::Multiply => 2,
    };
    gpu.kernels().join_entries(
        gpu,
        flat(count),
        left,
        right,
        out,
        count as u64,
        columns as u32,
        spread.code(),
        kind,
    )
}

pub(in super::super) fn scale_from(
    gpu: &Gpu,
    x: &Buffer,
    start: usize,
    factor: f32,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let (out, count) = (gpu.buffer::<f32>(x.len())?, x.len());
    let (grid, start) = (flat(count), start as u64);
    gpu.kernels().scale_entries(&gpu, grid, x, &out, count as u64, start, factor)?;
    Ok(out.into())
}

/// One number `length` times.
pub(in super::super) fn fill(gpu: &Gpu, x: &Buffer, length: usize) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(length)?;
    gpu.kernels().repeat_number(&gpu, flat(length), x, &out, length as u64)?;
    Ok(out.into())
}

/// The number of its row for every entry.
pub(in super::super) fn repeat_columns(
    gpu: &Gpu,
    x: &Buffer,
    (rows, columns): Shape,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, rows * columns);
    let out = gpu.buffer::<f32>(count)?;
    gpu.kernels().repeat_columns(&gpu, flat(count), x, &out, count as u64, columns as u32)?;
    Ok(out.into())
}

/// An [`Order`] on the GPU.
struct SentOrder {
    forth: Buffer<u32>,
    back: Buffer<u32>,
}

pub(in super::super) fn arrange(
    gpu: &Gpu,
    x: &Buffer,
    order: &Arc<Order>,
    way: Way,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, x.len());
    let sent = gpu.copy_of(order, |device, order| {
        let (forth, back) = (device.upload(&order.forth)?, device.upload(&order.back)?);
        Ok(SentOrder { forth, back })
    })?;
    let from = if way == Way::Forth { &sent.forth } else { &sent.back };
    let (out, columns) = (gpu.buffer::<f32>(count)?, order.forth.len() as u32);
    gpu.kernels().arrange_columns(&gpu, flat(count), x, from, &out, count as u64, columns)?;
    Ok(out.into())
}

/// A [`Choice`] on the GPU.
pub(super) struct SentChoice {
    rows: Buffer<u32>,
    choices: Buffer<u32>,
    starts: Buffer<u32>,
}

fn choice_of(gpu: &Open<'_>, choice: &Arc<Choice>) -> Result<Arc<SentChoice>> {
    gpu.copy_of(choice, |device, choice| {
        Ok(SentChoice {
            rows: device.upload(&choice.rows)?,
            choices: device.upload(&choice.choices)?,
            starts: device.upload(&choice.starts)?,
        })
    })
}

/// Sends a choice, unless that was done before.
pub(in super::super) fn send_choice(gpu: &Gpu, choice: &Arc<Choice>) -> Result<()> {
    choice_of(&open(gpu)?, choice).map(drop)
}

pub(in super::super) fn gather(
    gpu: &Gpu,
    x: &Buffer,
    choice: &Arc<Choice>,
    columns: usize,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, choice.len() * columns);
    let (sent, out) = (choice_of(&gpu, choice)?, gpu.buffer::<f32>(count)?);
    let columns = columns as u32;
    gpu.kernels().gather_rows(&gpu, flat(count), x, &sent.rows, &out, count as u64, columns)?;
    Ok(out.into())
}

pub(in super::super) fn gather_backward(
    gpu: &Gpu,
    g: &Buffer,
    choice: &Arc<Choice>,
    columns: usize,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, choice.num_rows * columns);
    let (sent, out) = (choice_of(&gpu, choice)?, gpu.buffer::<f32>(count)?);
    gpu.kernels().gather_rows_backward(
        &gpu,
        flat(count),
        g,
        &sent.starts,
        &sent.choices,
        &out,
        count as u64,
        columns as u32,
    )?;
    Ok(out.into())
}

/// Columns `start..start + width` of a matrix of `columns`.
pub(in super::super) fn cut(
    gpu: &Gpu,
    x: &Buffer,
    columns: usize,
    part: (usize, usize),
) -> Result<Array> {
    Ok(cut_columns(&open(gpu)?, x, columns, part)?.into())
}

pub(super) fn cut_columns(
    gpu: &Open<'_>,
    x: &Buffer,
    columns: usize,
    (start, width): (usize, usize),
) -> Result<Buffer> {
    let count = x.len() / columns.max(1) * width;
    let out = gpu.buffer::<f32>(count)?;
    let (columns, start, width) = (columns as u32, start as u32, width as u32);
    gpu.kernels().cut_columns(gpu, flat(count), x, &out, count as u64, columns, start, width)?;
    Ok(out)
}

/// A matrix `[rows, columns]`, zero but for `x` at columns `start..start + width`.
pub(in super::super) fn place(
    gpu: &Gpu,
    x: &Buffer,
    shape: Shape,
    part: (usize, usize),
) -> Result<Array> {
    Ok(place_columns(&open(gpu)?, x, shape, part)?.into())
}

pub(super) fn place_columns(
    gpu: &Open<'_>,
    x: &Buffer,
    (rows, columns): Shape,
    (start, width): (usize, usize),
) -> Result<Buffer> {
    let count = rows * columns;
    let out = gpu.buffer::<f32>(count)?;
    let (columns, start, width) = (columns as u32, start as u32, width as u32);
    gpu.kernels().place_columns(gpu, flat(count), x, &out, count as u64, columns, start, width)?;
    Ok(out)
}

pub(in super::super) fn concat(gpu: &Gpu, parts: &[(Array, usize)], rows: usize) -> Result<Array> {
    let gpu = open(gpu)?;
    let columns: usize = parts.iter().map(|(_, width)| width).sum();
    let out = gpu.buffer::<f32>(rows * columns)?;
    let mut start = 0;
    for (part, width) in parts {
        let (part, count) = (part.cuda()?, rows * width);
        let (all, first, own) = (columns as u32, start as u32, *width as u32);
        if count > 0 {
            let grid = flat(count);
            gpu.kernels().write_columns(&gpu, grid, part, &out, count as u64, all, first, own)?;
        }
        start += width;
    }
    Ok(out.into())
}

/// An [`Interpolation`] on the GPU, from places to cells and back.
struct SentInterpolation {
    /// `[places, 4]`.
    cells: Buffer<u32>,
    weights: Buffer,
    /// Places around each cell, with their weights: those of cell c at `first[c]..first[c + 1]`.
    first: Buffer<u32>,
    around: Buffer<u32>,
    around_weights: Buffer,
}

fn interpolation_of(gpu: &Open<'_>, from: &Arc<Interpolation>) -> Result<Arc<SentInterpolation>> {
    gpu.copy_of(from, |device, from| {
        let corners = || from.cells.iter().flatten();
        let mut around: Vec<(u32, u32, f32)> =
            (0_u32..).zip(corners()).map(|(k, &(cell, weight))| (cell, k / 4, weight)).collect();
        // By cell; places keep their order.
        around.sort_by_key(|&(cell, ..)| cell);
        let first = (0..=from.num_cells() as u32)
            .map(|cell| around.partition_point(|&(other, ..)| other < cell) as u32);
        Ok(SentInterpolation {
            cells: device.upload(&corners().map(|&(cell, _)| cell).collect::<Vec<u32>>())?,
            weights: device.upload(&corners().map(|&(_, weight)| weight).collect::<Vec<f32>>())?,
            first: device.upload(&first.collect::<Vec<u32>>())?,
            around: device.upload(&around.iter().map(|entry| entry.1).collect::<Vec<u32>>())?,
            around_weights: device
                .upload(&around.iter().map(|entry| entry.2).collect::<Vec<f32>>())?,
        })
    })
}

pub(in super::super) fn interpolate(
    gpu: &Gpu,
    x: &Buffer,
    interpolation: &Arc<Interpolation>,
    rows: &Arc<Choice>,
    columns: usize,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, rows.len() * columns);
    let (sent, choice) = (interpolation_of(&gpu, interpolation)?, choice_of(&gpu, rows)?);
    let out = gpu.buffer::<f32>(count)?;
    gpu.kernels().interpolate(
        &gpu,
        flat(count),
        x,
        &choice.rows,
        &sent.cells,
        &sent.weights,
        &out,
        count as u64,
        columns as u32,
        interpolation.cells.len() as u32,
        interpolation.num_cells() as u32,
    )?;
    Ok(out.into())
}

pub(in super::super) fn interpolate_backward(
    gpu: &Gpu,
    g: &Buffer,
    interpolation: &Arc<Interpolation>,
    rows: &Arc<Choice>,
    (num_cells, columns): Shape,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, num_cells * columns);
    let (sent, choice) = (interpolation_of(&gpu, interpolation)?, choice_of(&gpu, rows)?);
    let out = gpu.buffer::<f32>(count)?;
    gpu.kernels().interpolate_backward(
        &gpu,
        flat(count),
        g,
        &choice.starts,
        &choice.choices,
        &sent.first,
        &sent.around,
        &sent.around_weights,
        &out,
        count as u64,
        columns as u32,
        interpolation.cells.len() as u32,
        interpolation.num_cells() as u32,
    )?;
    Ok(out.into())
}

pub(in super::super) fn weigh_draws(
    gpu: &Gpu,
    [values, densities]: [&Buffer; 2],
    dims: usize,
    domain: DrawDomain,
    log_count: f32,
) -> Result<Array> {
    let (gpu, rows) = (open(gpu)?, densities.len());
    let out = gpu.buffer::<f32>(rows)?;
    let half_precision = domain.base_std_dev.map_or(0.0, |std_dev| 0.5 / (std_dev * std_dev));
    gpu.kernels().weigh_draws(
        &gpu,
        flat(rows),
        values,
        densities,
        &out,
        rows as u64,
        dims as u32,
        domain.low,
        domain.high,
        half_precision,
        log_count,
        NOTHING,
    )?;
    Ok(out.into())
}
