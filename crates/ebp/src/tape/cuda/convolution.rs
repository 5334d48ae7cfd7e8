//! Convolutions channel by channel.

use super::super::{Array, Convolution};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::Result;
use crate::point::cuda::launch::{Grid, flat, warps};

/// Places of a row that a thread works on.
const STRIP: usize = 4;
/// Rows of pictures that the threads of a block share, when windows are summed.
const LINES: usize = 8;
/// Blocks that rows of pictures are shared out among, at most.
const PARTS: usize = 64;

/// y from x, in windows that may be turned around.
fn correlate(
    gpu: &Open<'_>,
    window: Convolution,
    [x, w]: [&Buffer; 2],
    is_turned: bool,
) -> Result<Array> {
    let channels = w.len() / window.num_weights();
    let (columns, rows) = window.coarse();
    let sets = x.len() / (window.num_fine() * channels);
    let out = gpu.buffer::<f32>(sets * window.num_coarse() * channels)?;
    let count = sets * rows * columns.div_ceil(STRIP) * channels;
    gpu.kernels().convolve(
        gpu,
        flat(count),
        x,
        w,
        &out,
        count as u64,
        channels as u32,
        window.width as u32,
        window.height as u32,
        columns as u32,
        rows as u32,
        window.side as u32,
        window.stride as u32,
        i32::from(is_turned),
    )?;
    Ok(out.into())
}

pub(in super::super) fn convolve(
    gpu: &Gpu,
    window: Convolution,
    arrays: [&Buffer; 2],
) -> Result<Array> {
    correlate(&open(gpu)?, window, arrays, false)
}

pub(in super::super) fn convolve_transposed(
    gpu: &Gpu,
    window: Convolution,
    [y, w]: [&Buffer; 2],
) -> Result<Array> {
    let gpu = open(gpu)?;
    if window.stride == 1 {
        return correlate(&gpu, window, [y, w], true);
    }
    let channels = w.len() / window.num_weights();
    let (columns, rows) = window.coarse();
    let sets = y.len() / (window.num_coarse() * channels);
    let count = sets * window.num_fine() * channels;
    let out = gpu.buffer::<f32>(count)?;
    gpu.kernels().convolve_transposed(
        &gpu,
        flat(count),
        y,
        w,
        &out,
        count as u64,
        channels as u32,
        window.width as u32,
        window.height as u32,
        columns as u32,
        rows as u32,
        window.side as u32,
        window.stride as u32,
    )?;
    Ok(out.into())
}

pub(in super::super) fn convolve_weights(
    gpu: &Gpu,
    window: Convolution,
    [x, y]: [&Buffer; 2],
    channels: usize,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let (columns, rows) = window.coarse();
    let sets = y.len() / (window.num_coarse() * channels);
    let (lines, numbers) = (sets * rows, window.num_weights() * channels);
    let per_part = lines.div_ceil(PARTS).next_multiple_of(LINES);
    let num_parts = lines.div_ceil(per_part);
    let parts = gpu.buffer::<f64>(num_parts * numbers)?;
    let grid = Grid {
        grid_dim: (num_parts as u32, channels.div_ceil(32) as u32, window.side as u32),
        block_dim: (32, LINES as u32, 1),
        shared_mem_bytes: 0,
    };
    gpu.kernels().convolve_weights(
        &gpu,
        grid,
        x,
        y,
        &parts,
        lines as u64,
        per_part as u64,
        channels as u32,
        window.width as u32,
        window.height as u32,
        columns as u32,
        rows as u32,
        window.side as u32,
        window.stride as u32,
    )?;
    let out = gpu.buffer::<f32>(numbers)?;
    let grid = warps(numbers);
    gpu.kernels().finish_parts(&gpu, grid, &parts, &out, num_parts as u32, numbers as u32)?;
    Ok(out.into())
}
