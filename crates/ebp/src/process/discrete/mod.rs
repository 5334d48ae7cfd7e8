//! The energy-based process over a finite alphabet, normalised exactly:
//!
//! ```text
//! θ ~ q(θ | context),   p(x | t, θ) = exp f(x, t; θ) / Σ_k exp f(k, t; θ)
//! ```
//!
//! x is one of a few symbols (the grey levels of a pixel), so Z is a sum and no estimate, and a
//! spike between two nodes of a quadrature cannot be learned. Elements of several channels are a
//! chain of such laws, p(red) p(green | red) p(blue | red, green). Locations are the places of a
//! [`Grid`]: a picture is the set of its pixels, and a context is any part of it.
//!
//! `posterior.rs` makes q and `local.rs` its second level, `energy.rs` f, `canvas.rs` what latents
//! paint, `surroundings.rs` and `attention.rs` what a target sees of the context beside θ; `learn.rs` is a training step and `predict.rs` what is said afterwards.

mod attention;
mod canvas;
mod config;
mod energy;
mod learn;
mod local;
mod observed;
mod posterior;
mod predict;
mod surroundings;

use std::sync::Arc;

use self::attention::CrossAttention;
use self::canvas::Canvas;
use self::energy::Energy;
use self::local::LocalPosterior;
use self::posterior::Posterior;
use self::surroundings::Surroundings;
use crate::Result;
use crate::nn::{Adam, AdamConfig, MovingAverage, Parameters, StateParts, join_parts};
use crate::point::PointBackend;
use crate::tensor::Tensors;

pub use crate::data::pixels::Grid;
pub use config::{DiscreteConfig, EnergyForm, PosteriorForm};
pub use predict::{DiscretePredictive, Rendered, Rendering};

/// An energy-based process over a finite alphabet, with its optimiser.
///
/// ```
/// use std::sync::Arc;
///
/// use ebp::IndexedSet;
/// use ebp::point::CpuBackend;
/// use ebp::process::{DiscreteConfig, DiscreteProcess, Grid, Process};
///
/// let config = DiscreteConfig {
///     grid: Grid::new(4, 4)?,
///     encoder_widths: vec![8],
///     energy_widths: vec![8],
///     ..DiscreteConfig::default()
/// };
/// let process = DiscreteProcess::new(config, 7, Arc::new(CpuBackend::new()))?;
/// // Two corners of a picture of 4 × 4 pixels: one white, one black.
/// let context = IndexedSet::new(2, 1, vec![-1.0, -1.0, 1.0, 1.0], vec![0.99, -0.99])?;
/// let target = IndexedSet::new(2, 1, vec![1.0, -1.0], vec![0.0])?;
/// let density = process.condition(&context)?.log_density(&target)?;
/// assert!(density[0].value.is_finite());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct DiscreteProcess {
    config: DiscreteConfig,
    parameters: Parameters,
    posterior: Posterior,
    local: Option<LocalPosterior>,
    canvas: Canvas,
    energy: Energy,
    surroundings: Surroundings,
    attention: Option<CrossAttention>,
    adam: Adam,
    average: MovingAverage,
}

impl DiscreteProcess {
    /// Networks with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming the field that is outside its range.
    pub fn new(config: DiscreteConfig, seed: u64, backend: Arc<dyn PointBackend>) -> Result<Self> {
        config.check()?;
        let parameters = Parameters::new(seed);
        let surroundings = Surroundings::new(&config);
        let attention = if config.attention_heads > 0 {
            let group = parameters.group("attention");
            Some(CrossAttention::new(&config, &surroundings, &group)?)
        } else {
            None
        };
        let num_features =
            surroundings.num_features() + config.num_attended() + config.num_painted();
        let num_pooled = config.num_pooled();
        let canvas = Canvas::new(&config, num_pooled, &parameters.group("canvas"))?;
        let local = LocalPosterior::new(&config, num_pooled, &parameters.group("local"))?;
        let energy = Energy::new(&config, num_features, &parameters.group("energy"), &backend)?;
        let posterior = Posterior::new(&config, &parameters.group("posterior"), backend)?;
        let settings = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let adam = Adam::new(&parameters, settings)?;
        let average = MovingAverage::new(&parameters, config.average_decay)?;
        Ok(Self {
            config,
            parameters,
            posterior,
            local,
            canvas,
            energy,
            surroundings,
            attention,
            adam,
            average,
        })
    }

    /// The settings.
    pub fn config(&self) -> &DiscreteConfig {
        &self.config
    }

    /// How many numbers are trained.
    pub fn num_parameters(&self) -> usize {
        self.parameters.num_trained()
    }

    fn export(&self) -> Result<Tensors> {
        let parts = [
            ("parameters", self.parameters.export()?),
            ("adam", self.adam.export()?),
            ("average", self.average.export()?),
        ];
        Ok(join_parts(parts))
    }

    fn import(&mut self, state: &Tensors) -> Result<()> {
        let mut parts = StateParts::split(state)?;
        let (parameters, adam) = (parts.take("parameters")?, parts.take("adam")?);
        let average = parts.take("average")?;
        parts.finish()?;
        self.parameters.import(&parameters)?;
        self.adam.import(&adam)?;
        self.average.import(&average)
    }
}
