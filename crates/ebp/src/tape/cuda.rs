//! Placeholder until the kernels land.
#![allow(unused, clippy::all, clippy::pedantic, missing_debug_implementations)]
use super::attention::Heads;
use super::dynamics::Steps;
use super::elementwise::{Join, Map, Spread};
use super::partition::{CandidateArrays, LikelihoodParts};
use super::planar::Flow;
use super::point::Arguments;
use super::rows::Choice;
use super::spectral_norm::{Normalised, Operators};
use super::*;
use crate::point::*;
use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

#[derive(Clone, Debug)]
pub struct Buffer;
impl Buffer {
    pub(super) fn len(&self) -> usize {
        0
    }
    pub(super) fn view(&self, _: usize, _: usize) -> Self {
        Self
    }
}
pub(super) struct Maxima;
pub(super) enum Given<'a> {
    PerElement(&'a Buffer),
    PerSet(&'a Buffer),
}
fn no<T>() -> Result<T> {
    Err(Error::invalid("device", "cpu", "cuda"))
}
type Gpu = CudaBackend;
pub(super) fn upload(_: &Gpu, _: &[f32]) -> Result<Array> {
    no()
}
pub(super) fn zeros(_: &Gpu, _: usize) -> Result<Array> {
    no()
}
pub(super) fn download(_: &Gpu, _: &Buffer) -> Result<Vec<f32>> {
    no()
}
pub(super) fn add(_: &Gpu, _: &Buffer, _: &Buffer) -> Result<Array> {
    no()
}
pub(super) fn write(_: &Gpu, _: &Buffer, _: usize, _: &Buffer) -> Result<()> {
    no()
}
pub(super) fn adam(
    _: &Gpu,
    _: [&Array; 3],
    _: Option<&Array>,
    _: &[(usize, &Array)],
    _: super::adam::Numbers,
) -> Result<f64> {
    no()
}
pub(super) fn join(_: &Gpu, _: (&Buffer, usize), _: (&Buffer, Spread), _: Join) -> Result<Array> {
    no()
}
pub(super) fn map(_: &Gpu, _: &Buffer, _: Map) -> Result<Array> {
    no()
}
pub(super) fn map_backward(_: &Gpu, _: &Buffer, _: &Buffer, _: Map) -> Result<Array> {
    no()
}
pub(super) fn scale_from(_: &Gpu, _: &Buffer, _: usize, _: f32) -> Result<Array> {
    no()
}
pub(super) fn row_sums(_: &Gpu, _: &Buffer, _: Shape) -> Result<Array> {
    no()
}
pub(super) fn column_sums(_: &Gpu, _: &Buffer, _: Shape) -> Result<Array> {
    no()
}
pub(super) fn sum(_: &Gpu, _: &Buffer) -> Result<Array> {
    no()
}
pub(super) fn set_sums(_: &Gpu, _: &Buffer, _: &SetOffsets, _: usize) -> Result<Array> {
    no()
}
pub(super) fn spread(_: &Gpu, _: &Buffer, _: &SetOffsets, _: usize) -> Result<Array> {
    no()
}
pub(super) fn fill(_: &Gpu, _: &Buffer, _: usize) -> Result<Array> {
    no()
}
pub(super) fn gather(_: &Gpu, _: &Buffer, _: &Choice, _: usize) -> Result<Array> {
    no()
}
pub(super) fn gather_backward(_: &Gpu, _: &Buffer, _: &Choice, _: usize) -> Result<Array> {
    no()
}
pub(super) fn cut(_: &Gpu, _: &Buffer, _: usize, _: (usize, usize)) -> Result<Array> {
    no()
}
pub(super) fn place(_: &Gpu, _: &Buffer, _: Shape, _: (usize, usize)) -> Result<Array> {
    no()
}
pub(super) fn concat(_: &Gpu, _: &[(Array, usize)], _: usize) -> Result<Array> {
    no()
}
pub(super) fn normals(_: &Gpu, _: usize, _: Stream) -> Result<Array> {
    no()
}
pub(super) fn draw(_: &Gpu, _: [&Buffer; 3]) -> Result<Array> {
    no()
}
pub(super) fn draw_backward(_: &Gpu, _: [&Buffer; 3]) -> Result<Array> {
    no()
}
pub(super) fn kl(_: &Gpu, _: &[Array; 4]) -> Result<Array> {
    no()
}
pub(super) fn kl_backward(_: &Gpu, _: &[Array; 4], _: &Buffer) -> Result<[Array; 4]> {
    no()
}
pub(super) fn cell(_: &Gpu, _: &Buffer, _: &Buffer, _: usize) -> Result<[Array; 2]> {
    no()
}
pub(super) fn cell_backward(
    _: &Gpu,
    _: [&Buffer; 2],
    _: [Option<&Buffer>; 2],
    _: usize,
) -> Result<[Array; 2]> {
    no()
}
pub(super) fn normalise(_: &Gpu, _: &Buffer, _: Shape) -> Result<[Array; 3]> {
    no()
}
pub(super) fn normalise_backward(_: &Gpu, _: [&Buffer; 3], _: Shape) -> Result<Array> {
    no()
}
pub(super) fn softmax(_: &Gpu, _: &Buffer, _: Shape) -> Result<Array> {
    no()
}
pub(super) fn log_mass(_: &Gpu, _: &Buffer, _: usize, _: &[u32]) -> Result<Array> {
    no()
}
pub(super) fn log_mass_backward(_: &Gpu, _: [&Buffer; 3], _: usize, _: &[u32]) -> Result<Array> {
    no()
}
pub(super) fn planar(_: &Gpu, _: Flow, _: [&Buffer; 2]) -> Result<[Array; 2]> {
    no()
}
pub(super) fn planar_backward(
    _: &Gpu,
    _: Flow,
    _: [&Buffer; 2],
    _: [Option<&Buffer>; 2],
) -> Result<Array> {
    no()
}
pub(super) fn spectral_norm(
    _: &Gpu,
    _: &Operators,
    _: [&Buffer; 2],
    _: bool,
) -> Result<Normalised> {
    no()
}
pub(super) fn spectral_norm_backward(
    _: &Gpu,
    _: &Operators,
    _: &Normalised,
    _: &Buffer,
) -> Result<Array> {
    no()
}
pub(super) fn attention(_: &Gpu, _: Heads, _: &AttentionSets, _: &[Array; 3]) -> Result<Array> {
    no()
}
pub(super) fn attention_backward(
    _: &Gpu,
    _: Heads,
    _: &AttentionSets,
    _: &[Array; 3],
    _: &Array,
) -> Result<[Array; 3]> {
    no()
}
pub(super) fn point_values(_: &Gpu, _: &Arguments) -> Result<Array> {
    no()
}
pub(super) fn point_sums(_: &Gpu, _: &Arguments) -> Result<Array> {
    no()
}
pub(super) fn point_backward(
    _: &Gpu,
    _: &Arguments,
    _: Given<'_>,
    _: Wanted,
) -> Result<Vec<Option<Array>>> {
    no()
}
pub(super) fn point_score(_: &Gpu, _: &Arguments) -> Result<Array> {
    no()
}
pub(super) fn point_score_backward(
    _: &Gpu,
    _: &Arguments,
    _: &Buffer,
    _: Wanted,
) -> Result<Vec<Option<Array>>> {
    no()
}
pub(super) fn point_pool(_: &Gpu, _: &Arguments, _: Pooling) -> Result<(Array, Maxima)> {
    no()
}
pub(super) fn point_pool_backward(
    _: &Gpu,
    _: &Arguments,
    _: &Maxima,
    _: &Buffer,
    _: Wanted,
) -> Result<Vec<Option<Array>>> {
    no()
}
pub(super) fn log_partition(_: &Gpu, _: &CandidateArrays) -> Result<(Array, Array)> {
    no()
}
pub(super) fn log_partition_backward(
    _: &Gpu,
    _: &CandidateArrays,
    _: [&Buffer; 2],
    _: Wanted,
) -> Result<[Option<Array>; 4]> {
    no()
}
pub(super) fn likelihood(
    _: &Gpu,
    _: &Arguments,
    _: &CandidateArrays,
    _: Wanted,
) -> Result<LikelihoodParts> {
    no()
}
pub(super) fn weight_figures(
    _: &Gpu,
    _: &Buffer,
    _: [Option<&Buffer>; 2],
    _: (usize, usize),
) -> Result<Array> {
    no()
}
pub(super) fn langevin(_: &Gpu, _: &Arguments, _: &Steps) -> Result<[Array; 3]> {
    no()
}
pub(super) fn langevin_backward(
    _: &Gpu,
    _: &Arguments,
    _: &Steps,
    _: &Buffer,
    _: Option<&Buffer>,
) -> Result<[Array; 3]> {
    no()
}
pub(super) fn leapfrog(_: &Gpu, _: &Arguments, _: &Steps, _: &Buffer) -> Result<(Array, Array)> {
    no()
}
pub(super) fn leapfrog_backward(
    _: &Gpu,
    _: &Arguments,
    _: &Steps,
    _: &Buffer,
    _: [&Buffer; 2],
) -> Result<([Array; 3], Array)> {
    no()
}
pub(super) fn interpolate(
    _: &Gpu,
    _: &Buffer,
    _: &Interpolation,
    _: &Choice,
    _: usize,
) -> Result<Array> {
    no()
}
pub(super) fn interpolate_backward(
    _: &Gpu,
    _: &Buffer,
    _: &Interpolation,
    _: &Choice,
    _: (usize, usize),
) -> Result<Array> {
    no()
}
pub(super) fn weigh_draws(
    _: &Gpu,
    _: [&Buffer; 2],
    _: usize,
    _: DrawDomain,
    _: f32,
) -> Result<Array> {
    no()
}
