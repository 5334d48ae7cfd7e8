//! The shape of a [`PointMlp`](super::PointMlp): widths, context, and where each weight lies.
//!
//! All parameters live in one flat vector, layer after layer, each layer as
//!
//! ```text
//! weight [out, in]   row-major
//! context weight [out, context_dim]   only where the layer receives the context
//! bias [out]
//! ```
//!
//! One flat vector is one optimiser state, one checkpoint entry and one value on a tape.

use std::ops::Range;

use super::Activation;
use crate::{Error, Result};

/// The largest width of any layer; wider ones would make a tile leave the cache.
pub const MAX_WIDTH: usize = 4096;
/// The largest number of outputs: those of a vocabulary, which `Tape::dense` computes without tiles.
pub const MAX_OUTPUTS: usize = 1 << 20;

/// Which layers receive the per-set context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ContextAt {
    /// Only the first layer: W \[x; c\] = Wₓ x + W_c c, the second part once per set.
    #[default]
    FirstLayer,
    /// Every hidden layer gets its own linear map of the context added before σ. For a network
    /// without hidden layers this is the same as [`ContextAt::FirstLayer`].
    EveryLayer,
}

/// What a network is made of. Turn it into a checked [`MlpShape`] once.
#[derive(Clone, Debug, PartialEq)]
pub struct MlpConfig {
    /// d_x: how many numbers of an element are its value, the part that scores, moves and is
    /// proposed anew.
    pub value_dim: usize,
    /// d_t: how many numbers of an element are its location, which stays fixed. An element is the
    /// row `[value, location]`.
    pub location_dim: usize,
    /// Size of the per-set context, 0 for none.
    pub context_dim: usize,
    /// Widths of the hidden layers; may be empty (a linear map).
    pub hidden_widths: Vec<usize>,
    /// Numbers given back per element: 1 for an energy.
    pub output_dim: usize,
    /// σ after each hidden layer.
    pub activation: Activation,
    /// Where the context enters.
    pub context_at: ContextAt,
    /// Whether σ is applied to the output too, as the paper's encoders do before pooling.
    pub activate_output: bool,
}

impl Default for MlpConfig {
    /// The paper's point-cloud energy: 3 → 128 → 64 → 1, ReLU, θ of 512 at the first layer.
    fn default() -> Self {
        Self {
            value_dim: 3,
            location_dim: 0,
            context_dim: 512,
            hidden_widths: vec![128, 64],
            output_dim: 1,
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        }
    }
}

/// One linear layer and its place in the flat parameter vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Inputs of the layer.
    pub inputs: usize,
    /// Outputs of the layer.
    pub outputs: usize,
    /// Where `weight [outputs, inputs]` lies.
    pub weight: Range<usize>,
    /// Where `context weight [outputs, context_dim]` lies, if the layer receives the context.
    pub context_weight: Option<Range<usize>>,
    /// Where `bias [outputs]` lies.
    pub bias: Range<usize>,
}

/// A checked [`MlpConfig`] with the layout of its parameters.
///
/// ```
/// use ebp::point::{MlpConfig, MlpShape};
///
/// let shape = MlpShape::new(MlpConfig::default())?;
/// // (3 + 512 + 1)·128 + (128 + 1)·64 + (64 + 1)
/// assert_eq!(shape.num_parameters(), 74_369);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MlpShape {
    config: MlpConfig,
    layers: Vec<LayerShape>,
}

impl MlpShape {
    /// Checks every size and lays out the parameters.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the field if a width is 0 or above [`MAX_WIDTH`], the last one
    /// above [`MAX_OUTPUTS`], or a leaky slope is outside [0, 1).
    pub fn new(config: MlpConfig) -> Result<Self> {
        let check_up_to = |most: usize, field: String, found: usize, least: usize| {
            if (least..=most).contains(&found) {
                return Ok(());
            }
            Err(Error::invalid(field, format!("between {least} and {most}"), found))
        };
        let check = |field, found, least| check_up_to(MAX_WIDTH, field, found, least);
        check("value_dim".into(), config.value_dim, 1)?;
        check("location_dim".into(), config.location_dim, 0)?;
        check("context_dim".into(), config.context_dim, 0)?;
        check_up_to(MAX_OUTPUTS, "output_dim".into(), config.output_dim, 1)?;
        for (i, &width) in config.hidden_widths.iter().enumerate() {
            check(format!("hidden_widths[{i}]"), width, 1)?;
        }
        if let Activation::LeakyRelu { slope } = config.activation
            && !(0.0..1.0).contains(&slope)
        {
            return Err(Error::invalid("activation.slope", "in [0, 1)", slope));
        }

        let mut layers = Vec::with_capacity(config.hidden_widths.len() + 1);
        let mut inputs = config.value_dim + config.location_dim;
        let mut cursor = 0;
        let mut take = |count: usize| {
            cursor += count;
            cursor - count..cursor
        };
        let num_hidden = config.hidden_widths.len();
        for (index, &outputs) in
            config.hidden_widths.iter().chain(std::iter::once(&config.output_dim)).enumerate()
        {
            let every = config.context_at == ContextAt::EveryLayer && index < num_hidden;
            let has_context = config.context_dim > 0 && (index == 0 || every);
            layers.push(LayerShape {
                inputs,
                outputs,
                weight: take(outputs * inputs),
                context_weight: has_context.then(|| take(outputs * config.context_dim)),
                bias: take(outputs),
            });
            inputs = outputs;
        }
        Ok(Self { config, layers })
    }

    /// That elements can go through it in tiles, which have room for [`MAX_WIDTH`] outputs.
    pub(crate) fn check_tile(&self) -> Result<()> {
        let outputs = self.config.output_dim;
        if outputs <= MAX_WIDTH {
            return Ok(());
        }
        Err(Error::invalid("output_dim", format!("between 1 and {MAX_WIDTH}"), outputs))
    }

    /// The configuration this shape was made from.
    pub fn config(&self) -> &MlpConfig {
        &self.config
    }

    /// The layers, first to last.
    pub fn layers(&self) -> &[LayerShape] {
        &self.layers
    }

    /// d = d_x + d_t, the length of an element's row.
    pub fn element_dim(&self) -> usize {
        self.config.value_dim + self.config.location_dim
    }

    /// Length of the flat parameter vector.
    pub fn num_parameters(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.bias.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_tile_the_flat_vector_without_gaps() {
        let shape = MlpShape::new(MlpConfig {
            location_dim: 2,
            context_dim: 7,
            hidden_widths: vec![9, 8, 5],
            context_at: ContextAt::EveryLayer,
            ..MlpConfig::default()
        })
        .unwrap();
        let mut end = 0;
        for layer in shape.layers() {
            let ranges = [Some(&layer.weight), layer.context_weight.as_ref(), Some(&layer.bias)];
            for range in ranges.into_iter().flatten() {
                assert_eq!(range.start, end);
                end = range.end;
            }
        }
        assert_eq!(end, shape.num_parameters());
        let with_context: Vec<_> =
            shape.layers().iter().map(|layer| layer.context_weight.is_some()).collect();
        assert_eq!(with_context, [true, true, true, false]);
    }

    #[test]
    fn a_zero_width_is_refused_by_name() {
        let config = MlpConfig { hidden_widths: vec![128, 0], ..MlpConfig::default() };
        assert_eq!(
            MlpShape::new(config).unwrap_err().to_string(),
            "`hidden_widths[1]` must be between 1 and 4096, found 0"
        );
    }

    #[test]
    fn a_leaky_slope_outside_its_range_is_refused() {
        let activation = Activation::LeakyRelu { slope: f32::NAN };
        let error = MlpShape::new(MlpConfig { activation, ..MlpConfig::default() }).unwrap_err();
        assert_eq!(error.to_string(), "`activation.slope` must be in [0, 1), found NaN");
    }
}
