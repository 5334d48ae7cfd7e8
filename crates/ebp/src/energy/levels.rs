//! f(x, t; θ) of every symbol, channel by channel, and its exact normalisation:
//!
//! ```text
//! log p(x | t, θ) = Σ_c [ f_c(x_c | x_1, …, x_{c−1}, t; θ) − log Σ_k exp f_c(k | …) ]
//! ```
//!
//! A number on [low, high] is one of `levels` symbols, so Z is a sum and no estimate, and a spike
//! between two nodes of a quadrature cannot be learned.

use std::sync::Arc;

use super::features::push_features;
use crate::point::{ContextAt, MlpConfig, MlpShape};
use crate::recipe::{EnergyBasedConfig, EnergyForm, Space};
use crate::tape::{Array, CandidateVars, Choice, Device, Group, Parameter, Points, Tape, Var};
use crate::{Error, Result, SetOffsets};

/// Numbers as symbols, and symbols as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alphabet {
    pub(crate) levels: usize,
    low: f32,
    high: f32,
}

impl Alphabet {
    /// 8-bit pixels on [−1, 1].
    pub(crate) const PIXELS: Self = Self { levels: 256, low: -1.0, high: 1.0 };

    pub(crate) fn new(config: &EnergyBasedConfig, space: &Space) -> Self {
        Self { levels: config.levels, low: space.low, high: space.high }
    }

    /// The middle of a symbol's cell on [−1, 1], as networks read it.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(crate) fn unit_value(self, symbol: u32) -> f32 {
        ((2.0 * f64::from(symbol) + 1.0) / self.levels as f64 - 1.0) as f32
    }

    /// A number on [−1, 1] in the units of the values.
    pub(crate) fn number(self, unit: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        low + 0.5 * (unit + 1.0) * (high - low)
    }

    /// The symbol in whose cell a value lies.
    pub(crate) fn symbol(self, value: f64) -> Result<u32> {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        if !(low..=high).contains(&value) {
            return Err(Error::invalid("value", format!("between {low} and {high}"), value));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let symbol = ((value - low) / (high - low) * self.levels as f64) as u32;
        Ok(symbol.min(u32::try_from(self.levels - 1).unwrap_or(u32::MAX)))
    }

    /// The number at a share, below 1, of a symbol's cell. Rounding to f32 never leaves the cell.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(crate) fn spread(self, symbol: u32, share: f32) -> f32 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let at = |cells: f64| low + (high - low) * cells / self.levels as f64;
        let (start, end) = (at(f64::from(symbol)), at(f64::from(symbol) + 1.0));
        let mut value = at(f64::from(symbol) + f64::from(share)) as f32;
        if f64::from(value) < start {
            value = value.next_up();
        }
        while f64::from(value) >= end {
            value = value.next_down();
        }
        value
    }

    /// The middles of all cells on [−1, 1].
    pub(crate) fn unit_values(self) -> Vec<f64> {
        let symbols = 0..u32::try_from(self.levels).unwrap_or(0);
        symbols.map(|symbol| f64::from(self.unit_value(symbol))).collect()
    }

    /// log of the width of a cell.
    pub(crate) fn log_cell(self) -> f64 {
        (f64::from(self.high - self.low) / self.levels as f64).ln()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LevelsEnergy {
    /// Whether a network gives the potentials of all symbols at once (`levels`), or reads one (`element`).
    are_all_at_once: bool,
    pub(crate) alphabet: Alphabet,
    value_frequencies: usize,
    channels: Vec<Channel>,
    /// What the network `element` reads of every symbol, `[levels, width]`.
    symbols: Array,
    symbol_width: usize,
}

#[derive(Clone, Debug)]
struct Channel {
    shape: Arc<MlpShape>,
    parameters: Parameter,
}

/// Symbols of targets, and what earlier channels tell later ones.
#[derive(Clone, Debug)]
pub(crate) struct SymbolRows {
    /// Of every channel, one per target.
    pub(crate) symbols: Vec<Arc<Vec<u32>>>,
    /// What the channel is told of those before it, `[n, width]`; nothing for the first.
    pub(crate) known: Vec<Array>,
    /// The same symbols as rows of the table that the network `element` reads, of every channel; none
    /// for the energy `levels`.
    rows: Vec<Arc<Choice>>,
}

impl LevelsEnergy {
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        num_features: usize,
        device: &Device,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let alphabet = Alphabet::new(config, space);
        let mut channels = Vec::with_capacity(space.value_dim);
        for number in 0..space.value_dim {
            let known = number * (1 + 2 * config.value_frequencies);
            let shape = MlpShape::new(network(config, num_features + known))?;
            let parameters = group.point_mlp(&number.to_string(), &shape)?;
            let flat = group.values_mut(&parameters);
            let first = shape.layers()[0].weight.clone();
            flat[first].iter_mut().for_each(|weight| *weight *= config.input_scale);
            if config.energy == EnergyForm::Levels {
                start_embedding(&shape, flat);
            }
            channels.push(Channel { shape: Arc::new(shape), parameters });
        }
        let mut symbols = Vec::new();
        for symbol in 0..u32::try_from(config.levels).unwrap_or(0) {
            push_features(&[alphabet.unit_value(symbol)], config.value_frequencies, &mut symbols);
        }
        Ok(Self {
            are_all_at_once: config.energy != EnergyForm::Element,
            alphabet,
            value_frequencies: config.value_frequencies,
            channels,
            symbol_width: symbols.len() / config.levels,
            symbols: device.upload(symbols)?,
        })
    }

    pub(crate) fn num_channels(&self) -> usize {
        self.channels.len()
    }

    /// Symbols of values `[n, channels]`, ready for the device.
    pub(crate) fn symbol_rows(&self, values: &[f32], device: &Device) -> Result<SymbolRows> {
        let channels = self.channels.len();
        let symbols = values.iter().map(|&value| self.alphabet.symbol(f64::from(value)));
        let symbols = symbols.collect::<Result<Vec<u32>>>()?;
        let (mut of_channels, mut known, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for channel in 0..channels {
            let own: Vec<u32> = symbols.iter().skip(channel).step_by(channels).copied().collect();
            if self.are_all_at_once {
                of_channels.push(device.bring(own)?);
            } else {
                rows.push(device.bring(Choice::new(self.alphabet.levels, own.clone())?)?);
                of_channels.push(Arc::new(own));
            }
            let told = symbols.chunks_exact(channels).map(|row| &row[..channel]);
            known.push(device.upload(self.known(told))?);
        }
        Ok(SymbolRows { symbols: of_channels, known, rows })
    }

    /// What a channel reads of the symbols before it.
    fn known<'a>(&self, rows: impl Iterator<Item = &'a [u32]>) -> Vec<f32> {
        let mut known = Vec::new();
        for row in rows {
            let values: Vec<f32> = row.iter().map(|&s| self.alphabet.unit_value(s)).collect();
            if !values.is_empty() {
                push_features(&values, self.value_frequencies, &mut known);
            }
        }
        known
    }

    /// The potentials of a channel's symbols, `[n, levels]`; `known` are numbers of earlier channels
    /// on [−1, 1], `[n, channel]`.
    pub(crate) fn potentials(
        &self,
        tape: &mut Tape,
        channel: usize,
        (features, theta, offsets): (Var, Var, &Arc<SetOffsets>),
        known: &[f32],
    ) -> Result<Var> {
        let mut rows = Vec::new();
        if channel > 0 {
            let told = known.chunks_exact(channel);
            told.for_each(|values| push_features(values, self.value_frequencies, &mut rows));
        }
        let known = tape.device().upload(rows)?;
        let rows = Self::rows(tape, channel, features, &known)?;
        let network = &self.channels[channel];
        let parameters = tape.parameter(&network.parameters)?;
        if self.are_all_at_once {
            let points = network.points(parameters, rows, theta, offsets);
            return tape.point_values(&points);
        }
        let candidates = self.all_symbols(tape, rows, offsets)?;
        let network = (&network.shape, parameters, Some(theta));
        Ok(tape.log_partition(network, &candidates)?.values)
    }

    fn rows(tape: &mut Tape, channel: usize, features: Var, known: &Array) -> Result<Var> {
        if channel == 0 {
            return Ok(features);
        }
        let n = tape.shape(features).0;
        let known = tape.constant(known.clone(), (n, known.len() / n))?;
        tape.concat(&[features, known])
    }

    fn all_symbols(
        &self,
        tape: &mut Tape,
        rows: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Result<CandidateVars> {
        let shape = (self.alphabet.levels, self.symbol_width);
        Ok(CandidateVars {
            values: tape.constant(self.symbols.clone(), shape)?,
            count: self.alphabet.levels,
            is_shared: true,
            locations: Some(rows),
            log_weights: None,
            offsets: Arc::clone(offsets),
        })
    }

    /// log p of the targets' symbols, `[n, 1]`.
    pub(crate) fn log_mass(
        &self,
        tape: &mut Tape,
        (features, theta, offsets): (Var, Var, &Arc<SetOffsets>),
        targets: &SymbolRows,
    ) -> Result<Var> {
        let mut total: Option<Var> = None;
        for (number, channel) in self.channels.iter().enumerate() {
            let rows = Self::rows(tape, number, features, &targets.known[number])?;
            let parameters = tape.parameter(&channel.parameters)?;
            let found = if self.are_all_at_once {
                let points = channel.points(parameters, rows, theta, offsets);
                let values = tape.point_values(&points)?;
                tape.log_mass(values, &targets.symbols[number])?
            } else {
                let candidates = self.all_symbols(tape, rows, offsets)?;
                let own = tape.gather(candidates.values, &targets.rows[number])?;
                let elements = tape.concat(&[own, rows])?;
                let points = channel.points(parameters, elements, theta, offsets);
                let values = tape.point_values(&points)?;
                let network = (&channel.shape, parameters, Some(theta));
                let partition = tape.log_partition(network, &candidates)?;
                tape.subtract(values, partition.log_partition)?
            };
            total = Some(match total {
                Some(sum) => tape.add(sum, found)?,
                None => found,
            });
        }
        total.ok_or_else(|| Error::invalid("channels", "at least 1", 0))
    }
}

impl Channel {
    fn points(&self, parameters: Var, rows: Var, theta: Var, offsets: &Arc<SetOffsets>) -> Points {
        Points {
            shape: Arc::clone(&self.shape),
            parameters,
            elements: rows,
            context: Some(theta),
            offsets: Arc::clone(offsets),
        }
    }
}

fn network(config: &EnergyBasedConfig, num_features: usize) -> MlpConfig {
    let common = MlpConfig {
        context_dim: config.latent_dim,
        activation: config.activation,
        context_at: ContextAt::EveryLayer,
        activate_output: false,
        ..MlpConfig::default()
    };
    if config.energy == EnergyForm::Element {
        return MlpConfig {
            value_dim: 1 + 2 * config.value_frequencies,
            location_dim: num_features,
            hidden_widths: config.energy_widths.clone(),
            output_dim: 1,
            ..common
        };
    }
    MlpConfig {
        value_dim: num_features,
        location_dim: 0,
        hidden_widths: [&config.energy_widths[..], &[config.embedding_dim]].concat(),
        output_dim: config.levels,
        ..common
    }
}

/// The last layer's row of a level starts as cosines of the level: potentials begin as smooth
/// functions of it, so that what is learned of one level holds for its neighbours.
fn start_embedding(shape: &MlpShape, flat: &mut [f32]) {
    let layer = &shape.layers()[shape.layers().len() - 1];
    let scale = (2.0 / layer.inputs as f32).sqrt();
    let weights = flat[layer.weight.clone()].chunks_exact_mut(layer.inputs);
    for (level, row) in weights.enumerate() {
        let angle = std::f32::consts::PI * (level as f32 + 0.5) / layer.outputs as f32;
        for (frequency, weight) in row.iter_mut().enumerate() {
            *weight = scale * ((frequency + 1) as f32 * angle).cos();
        }
    }
}
