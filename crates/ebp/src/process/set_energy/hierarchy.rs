//! A first guess with a hidden variable: z ~ N(0, I) for the set, elements independent given z.
//!
//! The density of such a set is an integral over z. As with momenta, the target is extended in place
//! of solving it: with any law r(z | x),
//!
//! ```text
//! E_q[ log q(z) + log q(x | z) − log r(z | x) − u(x) ] ≥ −log Z,
//! ```
//!
//! with equality where q(x) is the model and r the posterior of z. r is a Deep Sets encoder with a
//! diagonal Gaussian, trained with the generator. It is no part of the model: the energy never sees z.

use super::config::SetEnergyConfig;
use super::energy::Layout;
use super::generator::{DrawnSets, ElementLaw, bounded};
use crate::Result;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::nn::{Network, Sets};
use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::rng::Stream;
use crate::tape::{Gaussian, Group, Tape, Var};

/// |log σ| of r stays below this.
const LARGEST_LOG_STD_DEV: f64 = 4.0;

#[derive(Debug)]
pub(super) struct Hierarchy {
    hidden_dim: usize,
    input_scale: f64,
    law: ElementLaw,
    encoder: Network,
    head: Dense,
}

impl Hierarchy {
    pub(super) fn new(config: &SetEnergyConfig, group: &mut Group<'_>) -> Result<Self> {
        let (hidden_dim, width) = (config.hidden_dim, config.generator_width);
        let encoder = MlpConfig {
            value_dim: config.element_dim,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: vec![width],
            output_dim: width,
            activation: Activation::Silu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        };
        let head = DenseConfig::linear(width, 2 * hidden_dim, Initialiser::Xavier);
        Ok(Self {
            hidden_dim,
            input_scale: config.input_scale,
            law: ElementLaw::new(config, 1, (hidden_dim, &[width, width]), group)?,
            encoder: Network::new(group, "encoder", encoder)?,
            head: Dense::new(group, "head", &head)?,
        })
    }

    /// `num_sets` sets of `size` elements, with log q(z) + log q(x | z).
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        num_sets: usize,
        size: usize,
        stream: Stream,
    ) -> Result<DrawnSets> {
        let shape = (num_sets, self.hidden_dim);
        let hidden = tape.normals(shape, stream.child(0))?;
        let (elements, density) = self.law.draw(tape, hidden, size, stream.child(1))?;
        let density = tape.reshape(density, (num_sets, size))?;
        let density = tape.row_sums(density)?;
        let law = tape.standard_gaussian(shape)?;
        let of_hidden = tape.log_density(hidden, law)?;
        let of_hidden = tape.row_sums(of_hidden)?;
        Ok(DrawnSets { elements, log_density: tape.add(density, of_hidden)?, hidden: Some(hidden) })
    }

    /// log r(z | x) of every set, `[sets, 1]`.
    pub(super) fn log_posterior(
        &self,
        tape: &mut Tape,
        hidden: Var,
        elements: Var,
        layout: &Layout,
    ) -> Result<Var> {
        let elements = tape.affine(elements, self.input_scale, 0.0)?;
        let sets = Sets { elements, context: None, offsets: &layout.offsets };
        let pooled = self.encoder.pool(tape, sets, Pooling::Mean)?;
        let pooled = tape.silu(pooled)?;
        let out = self.head.forward(tape, pooled)?;
        let mean = tape.columns(out, 0, self.hidden_dim)?;
        let log_std_dev = tape.columns(out, self.hidden_dim, self.hidden_dim)?;
        let log_std_dev = bounded(tape, log_std_dev, LARGEST_LOG_STD_DEV)?;
        let terms = tape.log_density(hidden, Gaussian { mean, log_std_dev })?;
        tape.row_sums(terms)
    }
}
