//! The tape's operations on an NVIDIA GPU.
//!
//! ```text
//! store     the kernels of a GPU, and what of the host was sent to it
//! entries   functions of entries, rows and columns
//! sums      over rows, columns, sets and everything; batch normalisation
//! laws      Gaussians, alphabets, memory cells, weights of candidates
//! layers    planar flows, spectral norms, attention
//! mixture   mixtures of Gaussians
//! convolution   windows over pictures, channel by channel
//! points    the primitive: values, pools, partitions, likelihood, dynamics
//! adam      the optimiser
//! ```
//!
//! Arrays of the GPU go in and come out, and the host does not wait: it waits where numbers are asked
//! for, where a row count must be known (critical rows) and for the length of a gradient. Random
//! numbers have the bits of the CPU, and sums a fixed order.
#![allow(
    clippy::cast_possible_truncation,
    reason = "rows and columns fit into u32 (SetOffsets and widths are checked); entries are u64"
)]

mod adam;
mod convolution;
mod entries;
mod kernels;
mod laws;
mod layers;
mod mixture;
mod points;
mod store;
mod sums;

use std::sync::Arc;

pub(super) use self::adam::adam;
pub(super) use self::convolution::{convolve, convolve_transposed, convolve_weights};
pub(super) use self::entries::{
    arrange, concat, cut, fill, gather, gather_backward, interpolate, interpolate_backward, join,
    map, map_backward, place, repeat_columns, scale_from, send_choice, weigh_draws,
};
pub(super) use self::laws::{
    cell, cell_backward, draw, draw_backward, kl, kl_backward, log_mass, log_mass_backward,
    log_sum_exp, normals, send_symbols, softmax, weight_figures,
};
pub(super) use self::layers::{
    attention, attention_backward, planar, planar_backward, send_attention_sets, spectral_norm,
    spectral_norm_backward,
};
pub(super) use self::mixture::{
    mixture_draws, mixture_draws_backward, mixture_log_density, mixture_log_density_backward,
    mixture_picks,
};
pub(super) use self::points::{
    Given, Maxima, langevin, langevin_backward, leapfrog, leapfrog_backward, likelihood,
    log_partition, log_partition_backward, point_backward, point_pool, point_pool_backward,
    point_score, point_score_backward, point_sums, point_values,
};
use self::store::open;
pub(super) use self::sums::{
    column_sums, normalise, normalise_backward, row_sums, set_sums, spread, sum,
};
use super::Array;
pub(super) use crate::point::cuda::Buffer;
pub(super) use crate::point::cuda::CudaBackend as Gpu;
use crate::point::cuda::Landing;
use crate::{Result, SetOffsets};

pub(super) fn upload(gpu: &Gpu, values: &[f32]) -> Result<Array> {
    Ok(open(gpu)?.upload(values)?.into())
}

pub(super) fn zeros(gpu: &Gpu, length: usize) -> Result<Array> {
    Ok(open(gpu)?.zeros::<f32>(length)?.into())
}

/// `length` ones.
pub(super) fn ones(gpu: &Gpu, length: usize) -> Result<Array> {
    Ok(open(gpu)?.filled(1.0, length)?.into())
}

/// Sends which row belongs to which set, unless that was done before.
pub(super) fn send_offsets(gpu: &Gpu, offsets: &Arc<SetOffsets>) -> Result<()> {
    open(gpu)?.sets(offsets).map(drop)
}

pub(super) fn download(gpu: &Gpu, buffer: &Buffer) -> Result<Vec<f32>> {
    open(gpu)?.download(buffer)
}

/// Begins to copy numbers to the host.
pub(super) fn land(gpu: &Gpu, buffer: &Buffer) -> Result<Landing<f32>> {
    open(gpu)?.land(buffer)
}

/// sum + term.
pub(super) fn add(gpu: &Gpu, sum: &Buffer, term: &Buffer) -> Result<Array> {
    use super::elementwise::{Join, Spread};
    join(gpu, (sum, 1), (term, Spread::Same), Join::Add)
}

/// Overwrites numbers from `start` on, for all who share them.
pub(super) fn write(gpu: &Gpu, array: &Buffer, start: usize, values: &Buffer) -> Result<()> {
    open(gpu)?.copy(values, &array.view(start, values.len()))
}
