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

use super::config::SetEnergyConfig;
use crate::nn::LSTM;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::rng::Stream;
use crate::tape::{Group, Tape, Var};
use crate::{Result, SetOffsets};

/// No coordinate is scaled by more than e³.
const LARGEST_LOG_SCALE: f64 = 3.0;
/// The last layer starts small: flows begin near a standard normal law.
const OUTPUT_STD_DEV: f32 = 0.02;

/// Sets of the same size.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawnSets {
    /// `[sets · n, d]`.
    pub(super) elements: Var,
    /// log q₀ of every set, `[sets, 1]`; with a hidden variable log q₀(x, z).
    pub(super) log_density: Var,
    /// z, `[sets, h]`, where there is one.
    pub(super) hidden: Option<Var>,
    /// Σ log π of the elements' components, `[sets, 1]`, where they were chosen.
    pub(super) choices: Option<Var>,
}

/// q(x | h): a law of elements written by a network.
#[derive(Debug)]
pub(super) struct ElementLaw {
    dim: usize,
    num_layers: usize,
    /// Laws that are written from one row.
    laws_per_row: usize,
    writer: Dense,
}

impl ElementLaw {
    /// `laws_per_row` laws from rows of `inputs` numbers, through `hidden` layers.
    pub(super) fn new(
        config: &SetEnergyConfig,
        laws_per_row: usize,
        (inputs, hidden): (usize, &[usize]),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (dim, num_layers) = (config.element_dim, config.generator_layers);
        // Per law: planar layers, shift, log scales and what stands below the diagonal of A.
        let per_law = num_layers * (2 * dim + 1) + 2 * dim + dim * (dim - 1) / 2;
        let last = hidden.last().copied().unwrap_or(inputs);
        let writer = DenseConfig {
            hidden,
            // He's law has the variance 2/fan-in.
            output_scale: OUTPUT_STD_DEV / (2.0 / last as f32).sqrt(),
            ..DenseConfig::linear(inputs, laws_per_row * per_law, Initialiser::He)
        };
        let writer = Dense::new(group, "law", &writer)?;
        Ok(Self { dim, num_layers, laws_per_row, writer })
    }

    /// Draws `count` elements of every law: `[laws · count, d]`, and their log densities
    /// `[laws · count, 1]`.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        rows: Var,
        count: usize,
        stream: Stream,
    ) -> Result<(Var, Var)> {
        let dim = self.dim;
        let written = self.writer.forward(tape, rows)?;
        let (height, width) = tape.shape(written);
        let num_laws = height * self.laws_per_row;
        let written = tape.reshape(written, (num_laws, width / self.laws_per_row))?;
        let flow_width = self.num_layers * (2 * dim + 1);
        let layers = tape.columns(written, 0, flow_width)?;
        let flow = tape.planar(layers, dim, count, stream)?;
        let num_affine = 2 * dim + dim * (dim - 1) / 2;
        let mut affine = tape.columns(written, flow_width, num_affine)?;
        if count > 1 {
            affine = tape.spread(affine, &SetOffsets::uniform(num_laws, count)?.into())?;
        }
        let shift = tape.columns(affine, 0, dim)?;
        let log_scale = tape.columns(affine, dim, dim)?;
        let log_scale = bounded(tape, log_scale, LARGEST_LOG_SCALE)?;
        // x = m + A y with A lower triangular: row i adds a_ij y_j for j < i.
        let scale = tape.exp(log_scale)?;
        let scaled = tape.multiply(flow.values, scale)?;
        let mut columns = Vec::with_capacity(dim);
        let mut next = 2 * dim;
        for i in 0..dim {
            let mut column = tape.columns(scaled, i, 1)?;
            for j in 0..i {
                let factor = tape.columns(affine, next, 1)?;
                let below = tape.columns(flow.values, j, 1)?;
                let below = tape.multiply(below, factor)?;
                column = tape.add(column, below)?;
                next += 1;
            }
            columns.push(column);
        }
        let elements = tape.concat(&columns)?;
        let elements = tape.add(elements, shift)?;
        let volume = tape.row_sums(log_scale)?;
        Ok((elements, tape.subtract(flow.log_density, volume)?))
    }
}

/// limit · tanh(x / limit).
pub(super) fn bounded(tape: &mut Tape, x: Var, limit: f64) -> Result<Var> {
    let x = tape.affine(x, 1.0 / limit, 0.0)?;
    let x = tape.tanh(x)?;
    tape.affine(x, limit, 0.0)
}

/// Draws sets block after block.
#[derive(Debug)]
pub(super) struct Recurrent {
    dim: usize,
    block_size: usize,
    cell: LSTM,
    law: ElementLaw,
}

impl Recurrent {
    pub(super) fn new(config: &SetEnergyConfig, group: &mut Group<'_>) -> Result<Self> {
        let SetEnergyConfig { element_dim: dim, block_size, generator_width: width, .. } = *config;
        Ok(Self {
            dim,
            block_size,
            cell: LSTM::new(group, "cell", block_size * dim, width)?,
            law: ElementLaw::new(config, block_size, (width, &[width]), group)?,
        })
    }

    /// `num_sets` sets of `size` elements.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        num_sets: usize,
        size: usize,
        stream: Stream,
    ) -> Result<DrawnSets> {
        let (dim, block) = (self.dim, self.block_size);
        let mut state = self.cell.start(tape, num_sets)?;
        let nothing = tape.device().zeros(num_sets * block * dim)?;
        let mut last = tape.constant(nothing, (num_sets, block * dim))?;
        let (mut blocks, mut densities) = (Vec::new(), Vec::new());
        for number in 0..size.div_ceil(block) {
            state = self.cell.step(tape, last, state)?;
            let stream = stream.child(number as u64);
            let (elements, density) = self.law.draw(tape, state.hidden, 1, stream)?;
            last = tape.reshape(elements, (num_sets, block * dim))?;
            blocks.push(last);
            densities.push(tape.reshape(density, (num_sets, block))?);
        }
        // The last block may reach beyond the set.
        let elements = tape.concat(&blocks)?;
        let elements = tape.columns(elements, 0, size * dim)?;
        let densities = tape.concat(&densities)?;
        let densities = tape.columns(densities, 0, size)?;
        Ok(DrawnSets {
            elements: tape.reshape(elements, (num_sets * size, dim))?,
            log_density: tape.row_sums(densities)?,
            hidden: None,
            choices: None,
        })
    }
}
