//! Mixtures of Gaussians.

use super::super::Array;
use super::super::mixture::{Density, MixtureLaw};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::Result;
use crate::point::cuda::launch::flat;

/// log π of every component.
fn shares(gpu: &Open<'_>, law: MixtureLaw, written: &Buffer) -> Result<Buffer> {
    let rows = written.len() / law.width();
    let out = gpu.buffer::<f32>(rows * law.components)?;
    let (components, dims) = (law.components as u32, law.dims as u32);
    gpu.kernels().mixture_shares(gpu, flat(rows), written, &out, rows as u64, components, dims)?;
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
    let log_pi = shares(&gpu, law, written)?;
    let gradient = gpu.buffer::<f32>(written.len())?;
    gpu.kernels().mixture_draws_backward(
        &gpu,
        flat(log_pi.len()),
        written,
        &log_pi,
        noise,
        of_values,
        of_shares,
        &gradient,
        log_pi.len() as u64,
        law.components as u32,
        law.dims as u32,
        each as u32,
    )?;
    Ok(gradient.into())
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
        flat(count),
        written,
        &log_pi,
        places,
        &out,
        count as u64,
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
    let (per_row, count) = (density.count as u32, places.len() / law.dims);
    let log_rest = density.uniform.map_or(0.0, |uniform| uniform.log_parts(law.dims).0);
    let (gradient, of_places) =
        (gpu.buffer::<f32>(written.len())?, gpu.buffer::<f32>(places.len())?);
    gpu.kernels().mixture_density_places(
        &gpu,
        flat(count),
        written,
        &log_pi,
        places,
        log_density,
        g,
        &of_places,
        count as u64,
        per_row,
        components,
        dims,
        log_rest,
    )?;
    gpu.kernels().mixture_density_components(
        &gpu,
        flat(log_pi.len()),
        written,
        &log_pi,
        places,
        log_density,
        g,
        &gradient,
        log_pi.len() as u64,
        per_row,
        components,
        dims,
        log_rest,
    )?;
    let rows = log_pi.len() / law.components;
    let grid = flat(rows);
    gpu.kernels().mixture_logits(&gpu, grid, &log_pi, &gradient, rows as u64, components, dims)?;
    Ok([gradient.into(), of_places.into()])
}
