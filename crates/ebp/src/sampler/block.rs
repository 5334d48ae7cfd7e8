//! The paper's generator: an LSTM draws blocks of elements one after the other.
//!
//! ```text
//! h_b = LSTM(h_{b−1}, φ(block b−1)),   block b ~ N(m, σ²),   (m, log σ) = ρ([h_b, θ, t of the block])
//! ```
//!
//! ρ has batch normalisation; points without locations give it none. The law of a block knows the
//! blocks before it, so draws are not exchangeable. Blocks are those of the anchors in their order;
//! the last one of a set is filled up with its last anchor, and what is drawn too many is dropped.

use std::sync::Arc;

use super::{Drawn, Places};
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::point::Activation;
use crate::recipe::SamplerConfig;
use crate::rng::Stream;
use crate::tape::{Choice, Group, Parameter, Tape, Var};
use crate::{Result, SetOffsets};

/// Widths of φ.
const INPUT_WIDTHS: (usize, usize) = (256, 128);
/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;
/// How fast running statistics follow those of batches.
const MOMENTUM: f64 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct BlockGenerator {
    dims: usize,
    num_features: usize,
    block_elements: usize,
    state: usize,
    input: Dense,
    gates: Dense,
    start: Dense,
    hidden: Vec<(Dense, BatchNorm)>,
    output: Dense,
}

impl BlockGenerator {
    pub(super) fn new(
        config: &SamplerConfig,
        (dims, num_features, latent_dim): (usize, usize, usize),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let numbers = config.block_elements * dims;
        let (wide, narrow) = INPUT_WIDTHS;
        let state = config.block_state;
        let mut layer = |name: &str, (inputs, hidden): (usize, &[usize]), outputs, weights| {
            let layers = DenseConfig {
                inputs,
                hidden,
                outputs,
                activation: Activation::Relu,
                weights,
                output_scale: 1.0,
            };
            Dense::new(group, name, &layers)
        };
        // PyTorch's law of the weights of an LSTM.
        let bound = 1.0 / (state as f32).sqrt();
        let even = Initialiser::Uniform { low: -bound, high: bound };
        let input = layer("input", (numbers, &[wide]), narrow, Initialiser::He)?;
        let gates = layer("gates", (narrow + state, &[]), 4 * state, even)?;
        let start = layer("start", (latent_dim, &[]), 2 * state, Initialiser::FanIn)?;
        let mut inputs = state + latent_dim + config.block_elements * num_features;
        let mut linear = Vec::new();
        for (number, &width) in config.block_widths.iter().enumerate() {
            linear.push((
                layer(&format!("hidden.{number}"), (inputs, &[]), width, Initialiser::He)?,
                width,
            ));
            inputs = width;
        }
        let output = layer("output", (inputs, &[]), 2 * numbers, Initialiser::FanIn)?;
        let mut hidden = Vec::new();
        for (number, (linear, width)) in linear.into_iter().enumerate() {
            let mut group = group.group(&format!("norm.{number}"));
            hidden.push((linear, BatchNorm::new(&mut group, width)?));
        }
        let block_elements = config.block_elements;
        Ok(Self { dims, num_features, block_elements, state, input, gates, start, hidden, output })
    }

    /// `count` draws per anchor.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        (count, is_training): (usize, bool),
        stream: Stream,
    ) -> Result<Drawn> {
        let layout = match places.features {
            Some(_) => Layout::of_elements(&places.offsets, self.block_elements, count)?,
            None => Layout::of_sets(places.offsets.num_sets(), self.block_elements, count)?,
        };
        let theta = tape.gather(theta, &layout.sets)?;
        let locations = match (places.features, &layout.slots) {
            (Some(features), Some(slots)) => {
                let filled = tape.gather(features, slots)?;
                let columns = layout.num_blocks * self.block_elements * self.num_features;
                Some(tape.reshape(filled, (layout.sets.len(), columns))?)
            }
            _ => None,
        };
        let blocks =
            self.blocks(tape, theta, locations, (layout.num_blocks, is_training), stream)?;
        let (rows, slots) = (layout.sets.len(), layout.num_blocks * self.block_elements);
        let values = tape.reshape(blocks.0, (rows * slots, self.dims))?;
        let log_density = tape.reshape(blocks.1, (rows * slots, 1))?;
        let values = tape.gather(values, &layout.found)?;
        let log_density = tape.gather(log_density, &layout.found)?;
        Ok(Drawn { values, log_density, log_shares: None })
    }

    /// Numbers `[rows, blocks · k · d]` and their log q per element, `[rows, blocks · k]`.
    fn blocks(
        &self,
        tape: &mut Tape,
        theta: Var,
        locations: Option<Var>,
        (num_blocks, is_training): (usize, bool),
        stream: Stream,
    ) -> Result<(Var, Var)> {
        let rows = tape.shape(theta).0;
        let (k, numbers) = (self.block_elements, self.block_elements * self.dims);
        let start = self.start.forward(tape, theta)?;
        let mut hidden = tape.columns(start, 0, self.state)?;
        let mut memory = tape.columns(start, self.state, self.state)?;
        let zeros = tape.device().zeros(rows * numbers)?;
        let mut block = tape.constant(zeros, (rows, numbers))?;
        let (mut values, mut log_densities) = (Vec::new(), Vec::new());
        // Batch statistics need two rows.
        let mut norms = Vec::new();
        for (_, norm) in &self.hidden {
            norms.push(norm.begin(tape, is_training && rows > 1)?);
        }
        for number in 0..num_blocks {
            let read = self.input.forward(tape, block)?;
            let both = tape.concat(&[read, hidden])?;
            let gates = self.gates.forward(tape, both)?;
            (hidden, memory) = tape.lstm_cell(gates, memory)?;
            let mut out = match locations {
                Some(locations) => {
                    let width = k * self.num_features;
                    let own = tape.columns(locations, number * width, width)?;
                    tape.concat(&[hidden, theta, own])?
                }
                None => tape.concat(&[hidden, theta])?,
            };
            for ((layer, _), norm) in self.hidden.iter().zip(&mut norms) {
                let linear = layer.forward(tape, out)?;
                let normalised = norm.forward(tape, linear)?;
                out = tape.relu(normalised)?;
            }
            let out = self.output.forward(tape, out)?;
            let mean = tape.columns(out, 0, numbers)?;
            // σ starts at e⁻¹ and stays between e⁻⁵ and e.
            let log_std_dev = tape.columns(out, numbers, numbers)?;
            let log_std_dev = tape.affine(log_std_dev, 1.0, -1.0)?;
            let log_std_dev = tape.clamp(log_std_dev, -5.0, 1.0)?;
            let noise = tape.normals((rows, numbers), stream.child(number as u64))?;
            let std_dev = tape.exp(log_std_dev)?;
            let away = tape.multiply(std_dev, noise)?;
            block = tape.add(mean, away)?;
            // log N = −½ ξ² − log σ − ½ log 2π, summed over the coordinates of an element.
            let squares = tape.square(noise)?;
            let squares = tape.affine(squares, -0.5, -LOG_ROOT_TAU)?;
            let terms = tape.subtract(squares, log_std_dev)?;
            let terms = tape.reshape(terms, (rows * k, self.dims))?;
            let sums = tape.row_sums(terms)?;
            log_densities.push(tape.reshape(sums, (rows, k))?);
            values.push(block);
        }
        for norm in norms {
            norm.end(tape);
        }
        Ok((tape.concat(&values)?, tape.concat(&log_densities)?))
    }
}

/// Which rows of the LSTM serve which anchors.
struct Layout {
    /// The set of every row.
    sets: Arc<Choice>,
    num_blocks: usize,
    /// The anchor that stands in every slot of every row; `None` without locations.
    slots: Option<Arc<Choice>>,
    /// Where the draws of every anchor are found among `[rows, slots]`.
    found: Arc<Choice>,
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Layout {
    /// A row per set, as many blocks as its points need.
    fn of_sets(sets: usize, k: usize, count: usize) -> Result<Self> {
        let num_blocks = count.div_ceil(k);
        let slots = num_blocks * k;
        let found = (0..sets).flat_map(|set| (0..count).map(move |i| number(set * slots + i)));
        Ok(Self {
            sets: Arc::new(Choice::repeated(sets, 1)?),
            num_blocks,
            slots: None,
            found: Arc::new(Choice::new(sets * slots, found.collect())?),
        })
    }

    /// `count` rows per set, as many blocks as the largest set needs.
    fn of_elements(offsets: &SetOffsets, k: usize, count: usize) -> Result<Self> {
        let sets = offsets.num_sets();
        let num_blocks = (0..sets).map(|set| offsets.size(set).div_ceil(k)).max().unwrap_or(0);
        let slots = num_blocks * k;
        let (mut filled, mut found) = (Vec::new(), Vec::new());
        for set in 0..sets {
            let range = offsets.range(set);
            for _ in 0..count {
                filled
                    .extend((0..slots).map(|slot| number((range.start + slot).min(range.end - 1))));
            }
            for slot in 0..range.len() {
                found.extend((0..count).map(|draw| number((set * count + draw) * slots + slot)));
            }
        }
        Ok(Self {
            sets: Arc::new(Choice::repeated(sets, count)?),
            num_blocks,
            slots: Some(Arc::new(Choice::new(offsets.num_elements(), filled)?)),
            found: Arc::new(Choice::new(sets * count * slots, found)?),
        })
    }
}

/// Batch normalisation y = γ x̂ + β, with running averages of the mean and of 1/√(v + floor) for
/// draws outside of training.
#[derive(Clone, Debug)]
struct BatchNorm {
    scale: Parameter,
    shift: Parameter,
    running_mean: Parameter,
    running_scale: Parameter,
}

/// A [`BatchNorm`] in one pass through the blocks.
struct Running<'a> {
    norm: &'a BatchNorm,
    is_training: bool,
    mean: Var,
    inverse: Var,
}

impl BatchNorm {
    fn new(group: &mut Group<'_>, width: usize) -> Result<Self> {
        Ok(Self {
            scale: group.trained("scale", &[width], Initialiser::Ones)?,
            shift: group.trained("shift", &[width], Initialiser::Zeros)?,
            running_mean: group.buffer("running_mean", &[width], Initialiser::Zeros)?,
            running_scale: group.buffer("running_scale", &[width], Initialiser::Ones)?,
        })
    }

    fn begin(&self, tape: &mut Tape, is_training: bool) -> Result<Running<'_>> {
        let (mean, inverse) =
            (tape.parameter(&self.running_mean)?, tape.parameter(&self.running_scale)?);
        Ok(Running { norm: self, is_training, mean, inverse })
    }
}

impl Running<'_> {
    fn forward(&mut self, tape: &mut Tape, x: Var) -> Result<Var> {
        let standard = if self.is_training {
            let (standard, mean, inverse) = tape.normalise_columns(x)?;
            for (running, new) in [(&mut self.mean, mean), (&mut self.inverse, inverse)] {
                let old = tape.affine(*running, 1.0 - MOMENTUM, 0.0)?;
                let new = tape.affine(new, MOMENTUM, 0.0)?;
                *running = tape.add(old, new)?;
            }
            standard
        } else {
            let centred = tape.subtract(x, self.mean)?;
            tape.multiply(centred, self.inverse)?
        };
        let (scale, shift) = (tape.parameter(&self.norm.scale)?, tape.parameter(&self.norm.shift)?);
        let scaled = tape.multiply(standard, scale)?;
        tape.add(scaled, shift)
    }

    fn end(self, tape: &mut Tape) {
        if self.is_training {
            for (buffer, value) in
                [(&self.norm.running_mean, self.mean), (&self.norm.running_scale, self.inverse)]
            {
                let value = tape.array(value).clone();
                tape.keep(buffer, value);
            }
        }
    }
}
