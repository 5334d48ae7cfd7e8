//! The paper's generator: an LSTM draws blocks of elements one after the other.
//!
//! ```text
//! h_b = LSTM(h_{b−1}, φ(block b−1)),   block b ~ N(m, σ²),   (m, log σ) = ρ([h_b, θ, t of the block])
//! ```
//!
//! ρ has batch normalisation; elements without locations (points of a cloud) give it none. The law
//! of a block knows the blocks before it, so draws are not exchangeable.

use candle_core::{DType, Device, Tensor};
use candle_nn::{Module, ModuleT};
use serde::{Deserialize, Serialize};

use super::unconditional::{forward, stack};
use crate::Result;
use crate::nn::{
    BatchNorm, BatchNormConfig, Initialiser, LSTM, LSTMState, Linear, Mode, Parameters, RNN,
    batch_norm, linear, lstm, normals,
};
use crate::rng::Stream;

/// What draws the elements of a set before the dynamics move them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerKind {
    /// Every element for itself, by a planar flow that a network writes: exact density, any n,
    /// exchangeable.
    Flow,
    /// Blocks of elements one after the other, by an LSTM (the paper). Not exchangeable.
    Block,
}

/// Hidden width and width of φ(block).
const INPUT_WIDTHS: (usize, usize) = (256, 128);
/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

/// What a block generator is made of.
pub(super) struct BlockParts<'a> {
    /// Numbers of an element.
    pub(super) value_dim: usize,
    /// Numbers that describe its location; 0 for none.
    pub(super) location_dim: usize,
    pub(super) latent_dim: usize,
    /// Elements of a block.
    pub(super) block_elements: usize,
    /// Widths between the LSTM and a block's elements.
    pub(super) widths: &'a [usize],
    /// Width of the LSTM.
    pub(super) state: usize,
}

#[derive(Clone, Debug)]
pub(super) struct BlockGenerator {
    dim: usize,
    block_elements: usize,
    /// φ.
    input: Vec<Linear>,
    cell: LSTM,
    /// θ to the first state.
    start: Linear,
    /// ρ, each layer with its normalisation.
    hidden: Vec<(Linear, BatchNorm)>,
    output: Linear,
}

impl BlockGenerator {
    pub(super) fn new(parts: &BlockParts<'_>, group: &Parameters) -> Result<Self> {
        let numbers = parts.block_elements * parts.value_dim;
        let (wide, narrow) = INPUT_WIDTHS;
        let state = parts.state;
        let mut inputs = state + parts.latent_dim + parts.block_elements * parts.location_dim;
        let mut hidden = Vec::new();
        for (number, &width) in parts.widths.iter().enumerate() {
            let group = group.group(&format!("hidden.{number}"));
            let layer = linear(&group.group("linear"), inputs, width, Initialiser::He)?;
            let norm = batch_norm(&group.group("norm"), width, BatchNormConfig::default())?;
            hidden.push((layer, norm));
            inputs = width;
        }
        Ok(Self {
            dim: parts.value_dim,
            block_elements: parts.block_elements,
            input: stack(&group.group("input"), numbers, &[wide], narrow)?,
            cell: lstm(&group.group("cell"), narrow, state)?,
            start: linear(&group.group("start"), parts.latent_dim, 2 * state, Initialiser::FanIn)?,
            hidden,
            output: linear(&group.group("output"), inputs, 2 * numbers, Initialiser::FanIn)?,
        })
    }

    /// Elements of a block.
    pub(super) fn block_elements(&self) -> usize {
        self.block_elements
    }

    /// `num_blocks` blocks for each row of `theta`: values `[rows, elements, d]` and their log q
    /// `[rows, elements]`. `locations` holds those of every block, `[rows, num_blocks, numbers]`.
    pub(super) fn draw(
        &self,
        theta: &Tensor,
        locations: Option<&Tensor>,
        num_blocks: usize,
        mode: Mode,
        stream: Stream,
    ) -> Result<(Tensor, Tensor)> {
        let rows = theta.dim(0)?;
        let numbers = self.block_elements * self.dim;
        let start = self.start.forward(theta)?;
        let half = start.dim(1)? / 2;
        let mut state = LSTMState::new(start.narrow(1, 0, half)?, start.narrow(1, half, half)?);
        let mut block = Tensor::zeros((rows, numbers), DType::F32, &Device::Cpu)?;
        let (mut values, mut log_densities) = (Vec::new(), Vec::new());
        // Batch statistics need two rows.
        let is_training = mode == Mode::Train && rows > 1;
        for number in 0..num_blocks {
            state = self.cell.step(&forward(&self.input, &block)?, &state)?;
            let mut out = match locations {
                Some(locations) => {
                    let own = locations.narrow(1, number, 1)?.squeeze(1)?.contiguous()?;
                    Tensor::cat(&[state.h(), theta, &own], 1)?
                }
                None => Tensor::cat(&[state.h(), theta], 1)?,
            };
            for (layer, norm) in &self.hidden {
                out = norm.forward_t(&layer.forward(&out)?, is_training)?.relu()?;
            }
            let out = self.output.forward(&out)?;
            let mean = out.narrow(1, 0, numbers)?;
            // σ starts at e⁻¹ and stays between e⁻⁵ and e.
            let log_std_dev = (out.narrow(1, numbers, numbers)? - 1.0)?.clamp(-5.0_f32, 1.0_f32)?;
            let noise = normals((rows, numbers), stream.child(number as u64))?;
            block = (mean + (log_std_dev.exp()? * &noise)?)?;
            // log N = −½ ξ² − log σ − ½ log 2π, summed over the coordinates of an element.
            let terms = (noise.sqr()?.affine(-0.5, -LOG_ROOT_TAU)? - log_std_dev)?;
            let shape = (rows, self.block_elements, self.dim);
            log_densities.push(terms.reshape(shape)?.sum(2)?);
            values.push(block.reshape(shape)?);
        }
        Ok((Tensor::cat(&values, 1)?, Tensor::cat(&log_densities, 1)?))
    }
}
