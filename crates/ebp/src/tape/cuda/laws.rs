//! Gaussians, alphabets, memory cells, and what weights of candidates look like.

use std::sync::Arc;

use super::super::{Array, Shape};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::Result;
use crate::point::cuda::launch::{blocks, flat, warps};
use crate::rng::Stream;

pub(in super::super) fn normals(gpu: &Gpu, length: usize, stream: Stream) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(length)?;
    gpu.normals(&out, stream, 0, 0)?;
    Ok(out.into())
}

pub(in super::super) fn draw(gpu: &Gpu, [mean, log_std_dev, noise]: [&Buffer; 3]) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, mean.len());
    let out = gpu.buffer::<f32>(count)?;
    gpu.kernels().draw(&gpu, flat(count), mean, log_std_dev, noise, &out, count as u64)?;
    Ok(out.into())
}

pub(in super::super) fn draw_backward(
    gpu: &Gpu,
    [log_std_dev, noise, g]: [&Buffer; 3],
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, g.len());
    let out = gpu.buffer::<f32>(count)?;
    gpu.kernels().draw_backward(&gpu, flat(count), log_std_dev, noise, g, &out, count as u64)?;
    Ok(out.into())
}

pub(in super::super) fn kl(gpu: &Gpu, [mean, s, prior, p]: &[Array; 4]) -> Result<Array> {
    let gpu = open(gpu)?;
    let (count, grid) = (mean.len(), flat(mean.len()));
    let out = gpu.buffer::<f32>(count)?;
    let (mean, s, prior, p) = (mean.cuda()?, s.cuda()?, prior.cuda()?, p.cuda()?);
    gpu.kernels().kl(&gpu, grid, mean, s, prior, p, &out, count as u64)?;
    Ok(out.into())
}

/// Gradients with respect to the four arguments, by one kernel.
pub(in super::super) fn kl_backward(
    gpu: &Gpu,
    [mean, s, prior, p]: &[Array; 4],
    g: &Buffer,
) -> Result<[Array; 4]> {
    let gpu = open(gpu)?;
    let (count, grid) = (g.len(), flat(g.len()));
    let out = gpu.buffer::<f32>(4 * count)?;
    let (mean, s, prior, p) = (mean.cuda()?, s.cuda()?, prior.cuda()?, p.cuda()?);
    gpu.kernels().kl_backward(&gpu, grid, mean, s, prior, p, g, &out, count as u64)?;
    Ok([0, 1, 2, 3].map(|part| out.view(part * count, count).into()))
}

fn symbols_of(gpu: &Open<'_>, symbols: &Arc<Vec<u32>>) -> Result<Arc<Buffer<u32>>> {
    gpu.copy_of(symbols, |device, symbols| device.upload(symbols))
}

/// Sends symbols, unless that was done before.
pub(in super::super) fn send_symbols(gpu: &Gpu, symbols: &Arc<Vec<u32>>) -> Result<()> {
    symbols_of(&open(gpu)?, symbols).map(drop)
}

pub(in super::super) fn softmax(
    gpu: &Gpu,
    potentials: &Buffer,
    (rows, size): Shape,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(potentials.len())?;
    gpu.kernels().softmax(&gpu, warps(rows), potentials, &out, rows as u64, size as u32)?;
    Ok(out.into())
}

pub(in super::super) fn log_sum_exp(
    gpu: &Gpu,
    potentials: &Buffer,
    (rows, size): Shape,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let out = gpu.buffer::<f32>(rows)?;
    gpu.kernels().log_sum_exp(&gpu, warps(rows), potentials, &out, rows as u64, size as u32)?;
    Ok(out.into())
}

pub(in super::super) fn log_mass(
    gpu: &Gpu,
    potentials: &Buffer,
    size: usize,
    symbols: &Arc<Vec<u32>>,
) -> Result<Array> {
    let (gpu, rows) = (open(gpu)?, symbols.len());
    let (sent, out) = (symbols_of(&gpu, symbols)?, gpu.buffer::<f32>(rows)?);
    let (grid, count) = (warps(rows), rows as u64);
    gpu.kernels().log_mass(&gpu, grid, potentials, &sent, &out, count, size as u32)?;
    Ok(out.into())
}

pub(in super::super) fn log_mass_backward(
    gpu: &Gpu,
    [potentials, mass, g]: [&Buffer; 3],
    size: usize,
    symbols: &Arc<Vec<u32>>,
) -> Result<Array> {
    let (gpu, count) = (open(gpu)?, potentials.len());
    let (sent, out) = (symbols_of(&gpu, symbols)?, gpu.buffer::<f32>(count)?);
    gpu.kernels().log_mass_backward(
        &gpu,
        flat(count),
        potentials,
        &sent,
        mass,
        g,
        &out,
        count as u64,
        size as u32,
    )?;
    Ok(out.into())
}

/// (h', c').
pub(in super::super) fn cell(
    gpu: &Gpu,
    gates: &Buffer,
    state: &Buffer,
    width: usize,
) -> Result<[Array; 2]> {
    let (gpu, count) = (open(gpu)?, state.len());
    let (hidden, memory) = (gpu.buffer::<f32>(count)?, gpu.buffer::<f32>(count)?);
    let (grid, total) = (flat(count), count as u64);
    gpu.kernels().cell(&gpu, grid, gates, state, &hidden, &memory, total, width as u32)?;
    Ok([hidden.into(), memory.into()])
}

pub(in super::super) fn cell_backward(
    gpu: &Gpu,
    [gates, state]: [&Buffer; 2],
    [of_hidden, of_memory]: [Option<&Buffer>; 2],
    width: usize,
) -> Result<[Array; 2]> {
    let (gpu, count) = (open(gpu)?, state.len());
    let (to_gates, to_state) = (gpu.buffer::<f32>(gates.len())?, gpu.buffer::<f32>(count)?);
    gpu.kernels().cell_backward(
        &gpu,
        flat(count),
        gates,
        state,
        of_hidden,
        of_memory,
        &to_gates,
        &to_state,
        count as u64,
        width as u32,
    )?;
    Ok([to_gates.into(), to_state.into()])
}

pub(in super::super) fn weight_figures(
    gpu: &Gpu,
    values: &Buffer,
    [log_weights, is_near]: [Option<&Buffer>; 2],
    (anchors, count): Shape,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let mode = match log_weights {
        None => 0,
        // Shared weights have one row.
        Some(weights) if weights.len() == count => 2,
        Some(_) => 1,
    };
    let (rows, out) = (gpu.buffer::<f64>(3 * anchors)?, gpu.buffer::<f32>(3)?);
    gpu.kernels().weight_rows(
        &gpu,
        warps(anchors),
        values,
        log_weights,
        is_near,
        &rows,
        anchors as u64,
        count as u32,
        mode,
    )?;
    gpu.kernels().figure_means(&gpu, blocks(1, 256), &rows, &out, anchors as u64)?;
    Ok(out.into())
}
