//! The first guess of a set, with its density.
//!
//! ```text
//! recurrent      h_b = LSTM(block b − 1, h_{b−1}),   xᵢ ~ q(x | h_b) for i in block b
//! hierarchical   z ~ N(0, I),                        xᵢ ~ q(x | z) for all i      (`hierarchy.rs`)
//! q(x | h)       x = m + A flow(ξ), ξ ~ N(0, I): planar layers and a triangular A, all written by a
//!                network that reads h
//! ```
//!
//! The recurrent guess has an order, the energy has none: the order is that of drawing and means
//! nothing. Blocks of one element can draw any law; within larger ones elements are independent given
//! the earlier blocks.

use candle_core::{Module, Tensor};

use super::config::SetEnergyConfig;
use crate::Result;
use crate::nn::{
    Initialiser, LSTM, LSTMState, Linear, Parameters, RNN, linear, lstm, normals, planar_flow,
};
use crate::rng::Stream;

/// No coordinate is scaled by more than e³.
const LARGEST_LOG_SCALE: f64 = 3.0;
/// The last layer starts small: flows begin near a standard normal law.
const OUTPUT_SCALE: f32 = 0.02;

/// Sets of the same size.
pub(super) struct DrawnSets {
    /// `[sets · n, d]`, in the graph.
    pub(super) elements: Tensor,
    /// log q₀ of every set, `[sets]`, in the graph; with a hidden variable log q₀(x, z).
    pub(super) log_density: Tensor,
    /// z, `[sets, h]`, where there is one.
    pub(super) hidden: Option<Tensor>,
}

/// q(x | h): a law of elements written by a network.
#[derive(Debug)]
pub(super) struct ElementLaw {
    dim: usize,
    num_layers: usize,
    /// Laws that are written from one row.
    laws_per_row: usize,
    hidden: Linear,
    output: Linear,
}

impl ElementLaw {
    pub(super) fn new(
        config: &SetEnergyConfig,
        laws_per_row: usize,
        inputs: usize,
        group: &Parameters,
    ) -> Result<Self> {
        let (dim, num_layers) = (config.element_dim, config.generator_layers);
        let width = config.generator_width;
        // Per law: planar layers, shift, log scales and what stands below the diagonal of A.
        let per_law = num_layers * (2 * dim + 1) + 2 * dim + dim * (dim - 1) / 2;
        let small = Initialiser::Normal { mean: 0.0, std_dev: OUTPUT_SCALE };
        Ok(Self {
            dim,
            num_layers,
            laws_per_row,
            hidden: linear(&group.group("hidden"), inputs, width, Initialiser::He)?,
            output: linear(&group.group("output"), width, laws_per_row * per_law, small)?,
        })
    }

    /// Draws `count` elements of every law from `noise` `[laws, count, d]`: `[laws, count, d]`, and
    /// their log densities `[laws, count]`.
    pub(super) fn draw(&self, rows: &Tensor, noise: &Tensor) -> Result<(Tensor, Tensor)> {
        let dim = self.dim;
        let written = self.output.forward(&self.hidden.forward(rows)?.silu()?)?;
        let written = written.reshape((rows.dim(0)? * self.laws_per_row, ()))?;
        let flow_width = self.num_layers * (2 * dim + 1);
        let flow = planar_flow(&written.narrow(1, 0, flow_width)?.contiguous()?, noise)?;
        let shift = written.narrow(1, flow_width, dim)?.unsqueeze(1)?;
        let log_scale = written.narrow(1, flow_width + dim, dim)?;
        let log_scale = ((log_scale / LARGEST_LOG_SCALE)?.tanh()? * LARGEST_LOG_SCALE)?;
        // x = m + A y with A lower triangular: row i adds a_ij y_j for j < i.
        let scaled = flow.values.broadcast_mul(&log_scale.exp()?.unsqueeze(1)?)?;
        let mut columns = Vec::with_capacity(dim);
        let mut next = flow_width + 2 * dim;
        for i in 0..dim {
            let mut column = scaled.narrow(2, i, 1)?;
            for j in 0..i {
                let factor = written.narrow(1, next, 1)?.unsqueeze(2)?;
                column = (column + flow.values.narrow(2, j, 1)?.broadcast_mul(&factor)?)?;
                next += 1;
            }
            columns.push(column);
        }
        let elements = Tensor::cat(&columns, 2)?.broadcast_add(&shift)?;
        let log_density = flow.log_density.broadcast_sub(&log_scale.sum_keepdim(1)?)?;
        Ok((elements, log_density))
    }
}

/// Draws sets block after block.
#[derive(Debug)]
pub(super) struct Recurrent {
    dim: usize,
    block_size: usize,
    width: usize,
    cell: LSTM,
    law: ElementLaw,
}

impl Recurrent {
    pub(super) fn new(config: &SetEnergyConfig, group: &Parameters) -> Result<Self> {
        let SetEnergyConfig { element_dim: dim, block_size, generator_width: width, .. } = *config;
        Ok(Self {
            dim,
            block_size,
            width,
            cell: lstm(&group.group("cell"), block_size * dim, width)?,
            law: ElementLaw::new(config, block_size, width, &group.group("law"))?,
        })
    }

    /// `num_sets` sets of `size` elements.
    pub(super) fn draw(&self, num_sets: usize, size: usize, stream: Stream) -> Result<DrawnSets> {
        let (dim, block) = (self.dim, self.block_size);
        let num_blocks = size.div_ceil(block);
        let noise = normals((num_blocks, num_sets * block, 1, dim), stream)?;
        let zeros =
            |columns| normals((num_sets, columns), stream).and_then(|t| Ok(t.zeros_like()?));
        let mut state = LSTMState::new(zeros(self.width)?, zeros(self.width)?);
        let mut last = zeros(block * dim)?;
        let (mut blocks, mut densities) = (Vec::new(), Vec::new());
        for number in 0..num_blocks {
            state = self.cell.step(&last, &state)?;
            let (elements, density) = self.law.draw(state.h(), &noise.get(number)?)?;
            last = elements.reshape((num_sets, block * dim))?;
            blocks.push(elements.reshape((num_sets, block, dim))?);
            densities.push(density.reshape((num_sets, block))?);
        }
        // The last block may reach beyond the set.
        let elements = Tensor::cat(&blocks, 1)?.narrow(1, 0, size)?.contiguous()?;
        Ok(DrawnSets {
            elements: elements.reshape((num_sets * size, dim))?,
            log_density: Tensor::cat(&densities, 1)?.narrow(1, 0, size)?.sum(1)?,
            hidden: None,
        })
    }
}
