//! The paper's generator: an LSTM draws blocks of points one after the other.
//!
//! ```text
//! h_b = LSTM(h_{b−1}, φ(block b−1)),   block b ~ N(m, σ²),   (m, log σ) = ρ([h_b, θ])
//! ```
//!
//! ρ has batch normalisation. The law of a block knows the blocks before it, so draws are not
//! exchangeable, and n must be a whole number of blocks.

use candle_core::{DType, Device, Tensor};
use candle_nn::{Module, ModuleT};

use super::config::UnconditionalConfig;
use super::flow::{forward, stack};
use crate::Result;
use crate::nn::{
    BatchNorm, BatchNormConfig, Initialiser, LSTM, LSTMState, Linear, Mode, Parameters, RNN,
    batch_norm, linear, lstm, normals,
};
use crate::rng::Stream;

/// Hidden width and width of φ(block).
const INPUT_WIDTHS: (usize, usize) = (256, 128);
/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

#[derive(Debug)]
pub(super) struct BlockGenerator {
    dim: usize,
    block_points: usize,
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
    pub(super) fn new(config: &UnconditionalConfig, group: &Parameters) -> Result<Self> {
        let sampler = &config.sampler;
        let numbers = sampler.block_points * config.value_dim;
        let (wide, narrow) = INPUT_WIDTHS;
        let state = sampler.block_state;
        let mut inputs = state + config.latent_dim;
        let mut hidden = Vec::new();
        for (number, &width) in sampler.block_widths.iter().enumerate() {
            let group = group.group(&format!("hidden.{number}"));
            let layer = linear(&group.group("linear"), inputs, width, Initialiser::He)?;
            let norm = batch_norm(&group.group("norm"), width, BatchNormConfig::default())?;
            hidden.push((layer, norm));
            inputs = width;
        }
        Ok(Self {
            dim: config.value_dim,
            block_points: sampler.block_points,
            input: stack(&group.group("input"), numbers, &[wide], narrow)?,
            cell: lstm(&group.group("cell"), narrow, state)?,
            start: linear(&group.group("start"), config.latent_dim, 2 * state, Initialiser::FanIn)?,
            hidden,
            output: linear(&group.group("output"), inputs, 2 * numbers, Initialiser::FanIn)?,
        })
    }

    /// At least `count` points for each row of `theta`, `[sets · points, d]`, and their log q.
    pub(super) fn draw(
        &self,
        theta: &Tensor,
        count: usize,
        mode: Mode,
        stream: Stream,
    ) -> Result<(Tensor, Tensor)> {
        let num_sets = theta.dim(0)?;
        let numbers = self.block_points * self.dim;
        let start = self.start.forward(theta)?;
        let half = start.dim(1)? / 2;
        let mut state = LSTMState::new(start.narrow(1, 0, half)?, start.narrow(1, half, half)?);
        let mut block = Tensor::zeros((num_sets, numbers), DType::F32, &Device::Cpu)?;
        let (mut values, mut log_densities) = (Vec::new(), Vec::new());
        // Batch statistics need two rows.
        let is_training = mode == Mode::Train && num_sets > 1;
        for number in 0..count.div_ceil(self.block_points) {
            state = self.cell.step(&forward(&self.input, &block)?, &state)?;
            let mut out = Tensor::cat(&[state.h(), theta], 1)?;
            for (layer, norm) in &self.hidden {
                out = norm.forward_t(&layer.forward(&out)?, is_training)?.relu()?;
            }
            let out = self.output.forward(&out)?;
            let mean = out.narrow(1, 0, numbers)?;
            // σ starts at e⁻¹ and stays between e⁻⁵ and e.
            let log_std_dev = (out.narrow(1, numbers, numbers)? - 1.0)?.clamp(-5.0_f32, 1.0_f32)?;
            let noise = normals((num_sets, numbers), stream.child(number as u64))?;
            block = (mean + (log_std_dev.exp()? * &noise)?)?;
            // log N = −½ ξ² − log σ − ½ log 2π, summed over the coordinates of a point.
            let terms = (noise.sqr()?.affine(-0.5, -LOG_ROOT_TAU)? - log_std_dev)?;
            let shape = (num_sets, self.block_points, self.dim);
            log_densities.push(terms.reshape(shape)?.sum(2)?);
            values.push(block.reshape(shape)?);
        }
        let values = Tensor::cat(&values, 1)?;
        let log_densities = Tensor::cat(&log_densities, 1)?;
        let rows = num_sets * values.dim(1)?;
        Ok((values.reshape((rows, self.dim))?, log_densities.flatten_all()?))
    }
}
