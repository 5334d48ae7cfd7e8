//! Mixtures of Gaussians.

use super::super::Array;
use super::super::mixture::{Density, MixtureLaw};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::Result;
use crate::point::cuda::launch::{Grid, blocks, flat, warps};

/// Components whose gradients a block finds, and its warps, as in mixture.cu.
const GROUP: usize = 32;
const SLICES: u32 = 8;
/// Places that a block looks from.
const MOST_PLACES: usize = 128;

/// Blocks for the places of every row.
fn of_places(rows: usize, per_row: usize) -> Grid {
    let threads = (32 * per_row.div_ceil(32)).clamp(32, MOST_PLACES);
    blocks(rows * per_row.div_ceil(threads), threads as u32)
}

/// log π of every component.
fn shares(gpu: &Open<'_>, law: MixtureLaw, written: &Buffer) -> Result<Buffer> {
    let rows = written.len() / law.width();
    let out = gpu.buffer::<f32>(rows * law.components)?;
    let (components, dims) = (law.components as u32, law.dims as u32);
    gpu.kernels().mixture_shares(gpu, warps(rows), written, &out, rows as u64, components, dims)?;
    Ok(out)
}

pub(in super::super) fn mixture_draws(
    gpu: &Gpu,
    law: MixtureLaw,
    each: usize,
    [written, noise]: [&Buffer; 2],
) -> Result<[Array; 2]> {
    let gpu = open(gpu)?;
    let log_pi = shares(&gpu, law, written)?;
    let count = noise.len() / law.dims;
    let (values, shares) = (gpu.buffer::<f32>(noise.len())?, gpu.buffer::<f32>(count)?);
    gpu.kernels().mixture_draws(
        &gpu,
        flat(count),
        written,
        &log_pi,
        noise,
        &values,
        &shares,
        count as u64,
        law.dims as u32,
        each as u32,
        (each as f32).ln(),
    )?;
    Ok([values.into(), shares.into()])
}

pub(in super::super) fn mixture_draws_backward(
    gpu: &Gpu,
    law: MixtureLaw,
    each: usize,
    [written, noise]: [&Buffer; 2],
    [of_values, of_shares]: [Option<&Buffer>; 2],
) -> Result<Array> {
    let gpu = open(gpu)?;
    let gradient = gpu.buffer::<f32>(written.len())?;
    let (count, dims) = (written.len() / law.component_width(), law.dims as u32);
    gpu.kernels().mixture_draws_backward(
        &gpu,
        flat(count),
        written,
        noise,
        of_values,
        of_shares,
        &gradient,
        count as u64,
        dims,
        each as u32,
    )?;
    if of_shares.is_some() {
        logits(&gpu, law, &shares(&gpu, law, written)?, &gradient)?;
    }
    Ok(gradient.into())
}

/// From ∂L/∂log π to ∂L/∂logits.
fn logits(gpu: &Open<'_>, law: MixtureLaw, log_pi: &Buffer, gradient: &Buffer) -> Result<()> {
    let (rows, components) = (log_pi.len() / law.components, law.components as u32);
    let dims = law.dims as u32;
    gpu.kernels().mixture_logits(gpu, warps(rows), log_pi, gradient, rows as u64, components, dims)
}

pub(in super::super) fn mixture_picks(
    gpu: &Gpu,
    law: MixtureLaw,
    rows: usize,
    [written, uniforms, noise]: [&Buffer; 3],
) -> Result<Array> {
    let gpu = open(gpu)?;
    let log_pi = shares(&gpu, law, written)?;
    let (count, values) = (uniforms.len(), gpu.buffer::<f32>(noise.len())?);
    gpu.kernels().mixture_picks(
        &gpu,
        flat(count),
        written,
        &log_pi,
        uniforms,
        noise,
        &values,
        count as u64,
        (count / rows) as u32,
        law.components as u32,
        law.dims as u32,
    )?;
    Ok(values.into())
}

pub(in super::super) fn mixture_log_density(
    gpu: &Gpu,
    density: Density,
    [written, places]: [&Buffer; 2],
) -> Result<Array> {
    let (gpu, law) = (open(gpu)?, density.law);
    let log_pi = shares(&gpu, law, written)?;
    let count = places.len() / law.dims;
    let out = gpu.buffer::<f32>(count)?;
    let (log_rest, log_even) =
        density.uniform.map_or((0.0, 0.0), |uniform| uniform.log_parts(law.dims));
    let (low, high) = density.uniform.map_or((0.0, 0.0), |uniform| (uniform.low, uniform.high));
    gpu.kernels().mixture_log_density(
        &gpu,
        of_places(count / density.count, density.count),
        written,
        &log_pi,
        places,
        &out,
        density.count as u32,
        law.components as u32,
        law.dims as u32,
        log_rest,
        log_even,
        low,
        high,
        i32::from(density.uniform.is_some()),
    )?;
    Ok(out.into())
}

/// Gradients of the mixtures and of the places.
pub(in super::super) fn mixture_log_density_backward(
    gpu: &Gpu,
    density: Density,
    [written, places, log_density, g]: [&Buffer; 4],
) -> Result<[Array; 2]> {
    let (gpu, law) = (open(gpu)?, density.law);
    let log_pi = shares(&gpu, law, written)?;
    let (components, dims) = (law.components as u32, law.dims as u32);
    let (per_row, rows) = (density.count as u32, log_pi.len() / law.components);
    let log_rest = density.uniform.map_or(0.0, |uniform| uniform.log_parts(law.dims).0);
    let (gradient, to_places) =
        (gpu.buffer::<f32>(written.len())?, gpu.buffer::<f32>(places.len())?);
    gpu.kernels().mixture_density_places(
        &gpu,
        of_places(rows, density.count),
        written,
        &log_pi,
        places,
        log_density,
        g,
        &to_places,
        per_row,
        components,
        dims,
        log_rest,
    )?;
    gpu.kernels().mixture_density_components(
        &gpu,
        blocks(rows * law.components.div_ceil(GROUP), GROUP as u32 * SLICES),
        written,
        &log_pi,
        places,
        log_density,
        g,
        &gradient,
        per_row,
        components,
        dims,
        log_rest,
    )?;
    logits(&gpu, law, &log_pi, &gradient)?;
    Ok([gradient.into(), to_places.into()])
}
