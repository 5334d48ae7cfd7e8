//! Sums over rows, columns, sets and everything; batch normalisation.

use std::sync::Arc;

use super::super::{Array, Shape, batch_norm};
use super::store::open;
use super::{Buffer, Gpu};
use crate::point::cuda::launch::{Grid, blocks, flat, sums_per_set, warps};
use crate::{Result, SetOffsets};

/// Rows of a column that one block adds up alone.
const ROWS_PER_BLOCK: usize = 8192;
/// Parts of a column's or of everything's sum, at most.
const PARTS: usize = 128;
/// Entries that one block adds up alone.
const ENTRIES_PER_BLOCK: usize = 1 << 15;

pub(in super::super) fn row_sums(gpu: &Gpu, x: &Buffer, (rows, columns): Shape) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(rows)?;
    gpu.kernels().row_totals(&gpu, warps(rows), x, &out, rows as u64, columns as u32)?;
    Ok(out.into())
}

pub(in super::super) fn column_sums(
    gpu: &Gpu,
    x: &Buffer,
    (rows, columns): Shape,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(columns)?;
    if columns == 0 {
        return Ok(out.into());
    }
    let num_parts = rows.div_ceil(ROWS_PER_BLOCK).clamp(1, PARTS);
    let rows_per_part = rows.div_ceil(num_parts);
    let parts = gpu.buffer::<f64>(if num_parts > 1 { num_parts * columns } else { 0 })?;
    let (grid, count) = (sums_per_set(num_parts, columns), rows as u64);
    let (wide, per_part) = (columns as u32, rows_per_part as u64);
    gpu.kernels().column_totals(&gpu, grid, x, &parts, &out, count, wide, per_part)?;
    if num_parts > 1 {
        let grid = warps(columns);
        gpu.kernels().finish_parts(&gpu, grid, &parts, &out, num_parts as u32, wide)?;
    }
    Ok(out.into())
}

pub(in super::super) fn sum(gpu: &Gpu, x: &Buffer) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(1)?;
    let num_parts = x.len().div_ceil(ENTRIES_PER_BLOCK).clamp(1, PARTS);
    let parts = gpu.buffer::<f64>(if num_parts > 1 { num_parts } else { 0 })?;
    gpu.kernels().total(&gpu, blocks(num_parts, 1024), x, &parts, &out, x.len() as u64)?;
    if num_parts > 1 {
        gpu.kernels().finish_parts(&gpu, warps(1), &parts, &out, num_parts as u32, 1)?;
    }
    Ok(out.into())
}

pub(in super::super) fn set_sums(
    gpu: &Gpu,
    x: &Buffer,
    offsets: &Arc<SetOffsets>,
    columns: usize,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let num_sets = offsets.num_sets();
    let out = gpu.buffer::<f32>(num_sets * columns)?;
    if columns > 0 {
        let (sets, grid) = (gpu.sets(offsets)?, sums_per_set(num_sets, columns));
        gpu.kernels().set_totals(&gpu, grid, x, sets.starts(), &out, columns as u32)?;
    }
    Ok(out.into())
}

pub(in super::super) fn spread(
    gpu: &Gpu,
    x: &Buffer,
    offsets: &Arc<SetOffsets>,
    columns: usize,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, offsets.num_elements() * columns);
    let (sets, out) = (gpu.sets(offsets)?, gpu.buffer::<f32>(count)?);
    let (grid, columns) = (flat(count), columns as u32);
    gpu.kernels().spread_rows(&gpu, grid, x, sets.set_of_row(), &out, count as u64, columns)?;
    Ok(out.into())
}

/// A block of 32 × 32 threads for 32 columns.
fn column_blocks(columns: usize) -> Grid {
    Grid { block_dim: (32, 32, 1), ..blocks(columns.div_ceil(32).max(1), 1024) }
}

/// x̂, mean and 1/√(v + floor) per column.
pub(in super::super) fn normalise(
    gpu: &Gpu,
    x: &Buffer,
    (rows, columns): Shape,
) -> Result<[Array; 3]> {
    let gpu = open(gpu)?;
    let standard = gpu.buffer::<f32>(x.len())?;
    let (mean, scale) = (gpu.buffer::<f32>(columns)?, gpu.buffer::<f32>(columns)?);
    gpu.kernels().normalise_columns(
        &gpu,
        column_blocks(columns),
        x,
        &standard,
        &mean,
        &scale,
        rows as u64,
        columns as u32,
        batch_norm::FLOOR,
    )?;
    Ok([standard.into(), mean.into(), scale.into()])
}

pub(in super::super) fn normalise_backward(
    gpu: &Gpu,
    [standard, scale, g]: [&Buffer; 3],
    (rows, columns): Shape,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(g.len())?;
    let (grid, count, columns) = (column_blocks(columns), rows as u64, columns as u32);
    gpu.kernels()
        .normalise_columns_backward(&gpu, grid, standard, scale, g, &out, count, columns)?;
    Ok(out.into())
}
