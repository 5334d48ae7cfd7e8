//! Planar flows, spectral norms and attention.

use std::sync::Arc;

use super::super::attention::Heads;
use super::super::planar::Flow;
use super::super::spectral_norm::{FLOOR, Normalised};
use super::super::{Array, AttentionSets, Operators};
use super::store::{Open, open};
use super::{Buffer, Gpu};
use crate::point::cuda::launch::{Grid, blocks, warps};
use crate::{Error, Result};

/// Blocks that rows of planar layers are shared out among.
const PLANAR_BLOCKS: usize = 528;
/// Warps that share the draws of a row.
const PLANAR_WARPS: usize = 4;
/// Numbers that a block keeps of every layer.
const TERMS: usize = 5;
/// Bytes that every GPU lets a block keep.
const SHARED_BYTES: usize = 48 << 10;
/// Threads that work on an operator.
const OPERATOR_THREADS: u32 = 512;

fn planar_grid(flow: Flow, rows: usize) -> Result<Grid> {
    let num_layers = flow.width / (2 * flow.dims + 1);
    let bytes = num_layers * TERMS * size_of::<f32>();
    if bytes > SHARED_BYTES {
        let most = SHARED_BYTES / (TERMS * size_of::<f32>());
        return Err(Error::invalid("layers", format!("at most {most} on a GPU"), num_layers));
    }
    let num_warps = flow.draws.div_ceil(32).clamp(1, PLANAR_WARPS);
    let grid = blocks(rows.clamp(1, PLANAR_BLOCKS), 32 * num_warps as u32);
    Ok(Grid { shared_mem_bytes: bytes as u32, ..grid })
}

pub(in super::super) fn planar(
    gpu: &Gpu,
    flow: Flow,
    [layers, noise]: [&Buffer; 2],
) -> Result<[Array; 2]> {
    let gpu = open(gpu)?;
    let (draws, total) = (flow.draws, noise.len() / flow.dims);
    let (values, log_density) = (gpu.buffer::<f32>(noise.len())?, gpu.buffer::<f32>(total)?);
    gpu.kernels().planar(
        &gpu,
        planar_grid(flow, total / draws)?,
        layers,
        noise,
        &values,
        &log_density,
        (total / draws) as u64,
        draws as u32,
        flow.dims as u32,
        (flow.width / (2 * flow.dims + 1)) as u32,
    )?;
    Ok([values.into(), log_density.into()])
}

pub(in super::super) fn planar_backward(
    gpu: &Gpu,
    flow: Flow,
    [layers, noise]: [&Buffer; 2],
    [of_values, of_densities]: [Option<&Buffer>; 2],
) -> Result<Array> {
    let gpu = open(gpu)?;
    let Flow { draws, dims, width } = flow;
    let (rows, num_layers) = (noise.len() / (dims * draws), width / (2 * dims + 1));
    let grid = planar_grid(flow, rows)?;
    let threads = grid.block_dim.0 as usize * grid.grid_dim.0 as usize;
    let kept = gpu.buffer::<f32>(threads * (num_layers * (dims + 2) + dims))?;
    let sums = gpu.buffer::<f32>(threads / 32 * num_layers * (2 * dims + 2))?;
    let gradient = gpu.buffer::<f32>(layers.len())?;
    gpu.kernels().planar_backward(
        &gpu,
        grid,
        layers,
        noise,
        of_values,
        of_densities,
        &kept,
        &sums,
        &gradient,
        rows as u64,
        draws as u32,
        dims as u32,
        num_layers as u32,
    )?;
    Ok(gradient.into())
}

/// Where the operators lie, as the kernels know it.
struct OperatorTable(Buffer<u32>);

fn table_of(gpu: &Open<'_>, operators: &Arc<Operators>) -> Result<Arc<OperatorTable>> {
    gpu.copy_of(operators, |device, operators| {
        let (mut first_row, mut first_column) = (0, 0);
        let mut table = Vec::with_capacity(7 * operators.all.len());
        for operator in &operators.all {
            let block = |number: usize| {
                let block = operator.blocks.get(number);
                block.map_or([0, 0], |(range, columns)| [range.start, *columns])
            };
            let ([start, columns], [more_start, more_columns]) = (block(0), block(1));
            let row =
                [operator.rows, first_row, first_column, start, columns, more_start, more_columns];
            table.extend(row.map(|number| number as u32));
            (first_row, first_column) =
                (first_row + operator.rows, first_column + operator.columns());
        }
        Ok(OperatorTable(device.upload(&table)?))
    })
}

pub(in super::super) fn spectral_norm(
    gpu: &Gpu,
    operators: &Arc<Operators>,
    [weights, left]: [&Buffer; 2],
    moves: bool,
) -> Result<Normalised> {
    let gpu = open(gpu)?;
    let (rows, columns) = (operators.num_rows(), operators.num_columns());
    let table = table_of(&gpu, operators)?;
    let out = gpu.duplicate(weights)?;
    let (out_left, out_right) = (gpu.buffer::<f32>(rows)?, gpu.buffer::<f32>(columns)?);
    let norms = gpu.buffer::<f32>(operators.all.len())?;
    gpu.kernels().spectral_norm(
        &gpu,
        blocks(operators.all.len(), OPERATOR_THREADS),
        weights,
        left,
        &table.0,
        &gpu.buffer::<f64>(rows)?,
        &gpu.buffer::<f64>(columns)?,
        &gpu.buffer::<f64>(rows)?,
        &out,
        &out_left,
        &out_right,
        &norms,
        i32::from(moves),
        FLOOR as f32,
    )?;
    Ok(Normalised {
        weights: out.into(),
        left: out_left.into(),
        right: out_right.into(),
        norms: norms.into(),
    })
}

pub(in super::super) fn spectral_norm_backward(
    gpu: &Gpu,
    operators: &Arc<Operators>,
    found: &Normalised,
    g: &Buffer,
) -> Result<Array> {
    let gpu = open(gpu)?;
    let (table, out) = (table_of(&gpu, operators)?, gpu.duplicate(g)?);
    gpu.kernels().spectral_norm_backward(
        &gpu,
        blocks(operators.all.len(), OPERATOR_THREADS),
        g,
        found.weights.cuda()?,
        found.left.cuda()?,
        found.right.cuda()?,
        found.norms.cuda()?,
        &table.0,
        &out,
    )?;
    Ok(out.into())
}

/// [`AttentionSets`] on the GPU.
struct SentSets {
    /// Of every query and of every key, its set.
    set_of_query: Buffer<u32>,
    set_of_key: Buffer<u32>,
    /// Query and key at which each set begins, and the ends.
    starts: Buffer<u32>,
}

fn attention_sets_of(gpu: &Open<'_>, sets: &Arc<AttentionSets>) -> Result<Arc<SentSets>> {
    gpu.copy_of(sets, |device, sets| {
        let owners = |part: usize| -> Vec<u32> {
            let sizes = sets.starts.windows(2).map(|pair| pair[1][part] - pair[0][part]);
            (0_u32..).zip(sizes).flat_map(|(set, size)| std::iter::repeat_n(set, size)).collect()
        };
        let starts: Vec<u32> = sets.starts.iter().flatten().map(|&start| start as u32).collect();
        Ok(SentSets {
            set_of_query: device.upload(&owners(0))?,
            set_of_key: device.upload(&owners(1))?,
            starts: device.upload(&starts)?,
        })
    })
}

/// Sends who looks at whom, unless that was done before.
pub(in super::super) fn send_attention_sets(gpu: &Gpu, sets: &Arc<AttentionSets>) -> Result<()> {
    attention_sets_of(&open(gpu)?, sets).map(drop)
}

pub(in super::super) fn attention(
    gpu: &Gpu,
    heads: Heads,
    sets: &Arc<AttentionSets>,
    [q, k, v]: &[Array; 3],
) -> Result<Array> {
    let gpu = open(gpu)?;
    let (queries, num_heads) = (sets.num_queries(), heads.width / heads.head_width);
    let (sent, out) = (attention_sets_of(&gpu, sets)?, gpu.buffer::<f32>(q.len())?);
    gpu.kernels().attention(
        &gpu,
        warps(queries * num_heads),
        q.cuda()?,
        k.cuda()?,
        v.cuda()?,
        &sent.set_of_query,
        &sent.starts,
        &out,
        queries as u64,
        heads.width as u32,
        heads.head_width as u32,
    )?;
    Ok(out.into())
}

/// ∂L/∂(queries, keys, values): first from the side of the queries, then from that of the keys.
pub(in super::super) fn attention_backward(
    gpu: &Gpu,
    heads: Heads,
    sets: &Arc<AttentionSets>,
    [q, k, v]: &[Array; 3],
    g: &Array,
) -> Result<[Array; 3]> {
    let gpu = open(gpu)?;
    let (q, k, v, g) = (q.cuda()?, k.cuda()?, v.cuda()?, g.cuda()?);
    let (queries, keys) = (sets.num_queries(), sets.num_keys());
    let num_heads = heads.width / heads.head_width;
    let (width, n) = (heads.width as u32, heads.head_width as u32);
    let sent = attention_sets_of(&gpu, sets)?;
    let figures = gpu.buffer::<f32>(3 * queries * num_heads)?;
    let (to_q, to_k) = (gpu.buffer::<f32>(q.len())?, gpu.buffer::<f32>(k.len())?);
    let to_v = gpu.buffer::<f32>(v.len())?;
    gpu.kernels().attention_queries(
        &gpu,
        warps(queries * num_heads),
        q,
        k,
        v,
        g,
        &sent.set_of_query,
        &sent.starts,
        &to_q,
        &figures,
        queries as u64,
        width,
        n,
    )?;
    gpu.kernels().attention_keys(
        &gpu,
        warps(keys * num_heads),
        q,
        k,
        v,
        g,
        &sent.set_of_key,
        &sent.starts,
        &figures,
        &to_k,
        &to_v,
        keys as u64,
        width,
        n,
    )?;
    Ok([to_q.into(), to_k.into(), to_v.into()])
}
