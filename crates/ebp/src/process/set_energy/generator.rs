//! The first guess of a set: a recurrent network that draws block after block.
//!
//! ```text
//! h_b = LSTM(block b − 1, h_{b−1}),   xᵢ = m(h_b) + e^{s(h_b)} flow(ξᵢ; h_b)   for i in block b
//! log q₀(x) = Σᵢ log q(xᵢ | earlier blocks)
//! ```
//!
//! Elements of a block are independent given the earlier ones, so blocks of one element (the default)
//! can draw any law. The generator has an order, the energy has none: the order is that of drawing and
//! means nothing.

use candle_core::{Module, Tensor};

use super::config::SetEnergyConfig;
use crate::Result;
use crate::nn::{
    Initialiser, LSTM, LSTMState, Linear, Parameters, RNN, linear, lstm, normals, planar_flow,
};
use crate::rng::Stream;

/// |s| stays below this: no element is scaled by more than e³.
const LARGEST_LOG_SCALE: f64 = 3.0;
/// The last layer starts small: flows begin near a wide normal law.
const OUTPUT_SCALE: f32 = 0.02;

#[derive(Debug)]
pub(super) struct Generator {
    element_dim: usize,
    block_size: usize,
    num_layers: usize,
    width: usize,
    cell: LSTM,
    hidden: Linear,
    output: Linear,
}

/// Sets of the same size.
pub(super) struct DrawnSets {
    /// `[sets · n, d]`, in the graph.
    pub(super) elements: Tensor,
    /// log q₀ of every set, `[sets]`, in the graph.
    pub(super) log_density: Tensor,
}

impl Generator {
    pub(super) fn new(config: &SetEnergyConfig, group: &Parameters) -> Result<Self> {
        let SetEnergyConfig { element_dim, block_size, generator_width: width, .. } = *config;
        let num_layers = config.generator_layers;
        let per_element = num_layers * (2 * element_dim + 1) + 2 * element_dim;
        let small = Initialiser::Normal { mean: 0.0, std_dev: OUTPUT_SCALE };
        Ok(Self {
            element_dim,
            block_size,
            num_layers,
            width,
            cell: lstm(&group.group("cell"), block_size * element_dim, width)?,
            hidden: linear(&group.group("hidden"), width, width, Initialiser::He)?,
            output: linear(&group.group("output"), width, block_size * per_element, small)?,
        })
    }

    /// `num_sets` sets of `size` elements.
    pub(super) fn draw(&self, num_sets: usize, size: usize, stream: Stream) -> Result<DrawnSets> {
        let (dim, block) = (self.element_dim, self.block_size);
        let num_blocks = size.div_ceil(block);
        let noise = normals((num_blocks, num_sets * block, 1, dim), stream)?;
        let zeros = || normals((num_sets, self.width), stream).and_then(|t| Ok(t.zeros_like()?));
        let mut state = LSTMState::new(zeros()?, zeros()?);
        let mut last = normals((num_sets, block * dim), stream)?.zeros_like()?;
        let (mut blocks, mut densities) = (Vec::new(), Vec::new());
        for number in 0..num_blocks {
            state = self.cell.step(&last, &state)?;
            let rows = self.output.forward(&self.hidden.forward(state.h())?.silu()?)?;
            let rows = rows.reshape((num_sets * block, ()))?;
            let flow_width = self.num_layers * (2 * dim + 1);
            let layers = rows.narrow(1, 0, flow_width)?.contiguous()?;
            let shift = rows.narrow(1, flow_width, dim)?;
            let log_scale = rows.narrow(1, flow_width + dim, dim)?;
            let log_scale = ((log_scale / LARGEST_LOG_SCALE)?.tanh()? * LARGEST_LOG_SCALE)?;
            let flow = planar_flow(&layers, &noise.get(number)?)?;
            let drawn = flow.values.squeeze(1)?;
            let elements = ((drawn * log_scale.exp()?)? + shift)?;
            let density = (flow.log_density.squeeze(1)? - log_scale.sum(1)?)?;
            last = elements.reshape((num_sets, block * dim))?;
            blocks.push(elements.reshape((num_sets, block, dim))?);
            densities.push(density.reshape((num_sets, block))?);
        }
        // The last block may reach beyond the set.
        let elements = Tensor::cat(&blocks, 1)?.narrow(1, 0, size)?.contiguous()?;
        let log_density = Tensor::cat(&densities, 1)?.narrow(1, 0, size)?.sum(1)?;
        Ok(DrawnSets { elements: elements.reshape((num_sets * size, dim))?, log_density })
    }
}
