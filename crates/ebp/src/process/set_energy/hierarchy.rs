//! A first guess with a hidden variable: z ~ q(z) for the set, elements independent given z.
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
//!
//! Elements follow a flow or a mixture. The density of a mixture is known everywhere, so such a guess can also
//! learn from data, by the bound with z drawn from r:
//!
//! ```text
//! log q(x) ≥ E_r[ log q(x | z) + log q(z) − log r(z | x) ]
//! ```
//!
//! and its density is found by importance sampling from r,
//!
//! ```text
//! log q(x) ≈ log mean_k q(x | z_k) q(z_k)/r(z_k | x),   z_k = μ(x) + σ(x) ξ_k
//! ```
//!
//! with the same few ξ for all sets, which makes it a function of x that no order of elements can change. Couplings
//! between z and a standard normal variable (`num_couplings`) give z the law that r leaves on average.

use super::config::{GeneratorKind, GuessTarget, SetEnergyConfig};
use super::energy::Layout;
use super::generator::{DrawnSets, ElementLaw, bounded};
use super::written::WrittenMixture;
use crate::nn::{Coupling, Dense, DenseConfig, Initialiser};
use crate::nn::{Network, Sets};
use crate::point::{Activation, ContextAt, MlpConfig, Pooling};
use crate::rng::Stream;
use crate::tape::{Gaussian, Group, Tape, Var};
use crate::{Error, Result};

/// |log σ| of r stays below this.
const LARGEST_LOG_STD_DEV: f64 = 4.0;

/// z of a set in an estimate of log q(x).
const NUM_HIDDEN: usize = 16;

/// q(x | z) of elements.
#[derive(Debug)]
enum LawGivenHidden {
    Flow(ElementLaw),
    Mixture(WrittenMixture),
}

#[derive(Debug)]
pub(super) struct Hierarchy {
    hidden_dim: usize,
    input_scale: f64,
    /// Between z and a standard normal variable.
    couplings: Vec<Coupling>,
    /// Whether gradients reach it through its draws.
    follows_energy: bool,
    law: LawGivenHidden,
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
        let layers = (hidden_dim, &[width, width][..]);
        let (law, hidden) = if config.generator == GeneratorKind::Mixture {
            let sizes = (config.num_components, config.element_dim);
            let law = WrittenMixture::new(sizes, layers, &mut group.group("law"))?;
            (LawGivenHidden::Mixture(law), vec![width])
        } else {
            (LawGivenHidden::Flow(ElementLaw::new(config, 1, layers, group)?), Vec::new())
        };
        let head = DenseConfig {
            hidden: &hidden,
            ..DenseConfig::linear(width, 2 * hidden_dim, Initialiser::Xavier)
        };
        Ok(Self {
            hidden_dim,
            input_scale: config.input_scale,
            couplings: (0..config.num_couplings)
                .map(|number| Coupling::new(group, number, hidden_dim, width))
                .collect::<Result<Vec<_>>>()?,
            follows_energy: config.guess_target == GuessTarget::Energy,
            law,
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
        let mut hidden = tape.normals(shape, stream.child(0))?;
        for coupling in self.couplings.iter().rev() {
            hidden = coupling.generate(tape, hidden)?;
        }
        let of_set = |tape: &mut Tape, numbers: Var| {
            let numbers = tape.reshape(numbers, (num_sets, size))?;
            tape.row_sums(numbers)
        };
        let (elements, density, choices) = match &self.law {
            LawGivenHidden::Flow(flow) => {
                let (elements, density) = flow.draw(tape, hidden, size, stream.child(1))?;
                (elements, density, None)
            }
            LawGivenHidden::Mixture(mixture) if !self.follows_energy => {
                let written = mixture.write(tape, hidden)?;
                let values = mixture.draw_constants(tape, written, size, stream.child(1))?;
                (values, mixture.log_density(tape, written, values)?, None)
            }
            LawGivenHidden::Mixture(mixture) => {
                let written = mixture.write(tape, hidden)?;
                let drawn = mixture.draw(tape, written, size, stream.child(1))?;
                let density = mixture.log_density(tape, written, drawn.values)?;
                (drawn.values, density, Some(of_set(tape, drawn.log_shares)?))
            }
        };
        let density = of_set(tape, density)?;
        let of_hidden = self.log_prior(tape, hidden)?;
        let log_density = tape.add(density, of_hidden)?;
        Ok(DrawnSets { elements, log_density, hidden: Some(hidden), choices })
    }

    /// log q(z) of every set, `[sets, 1]`.
    fn log_prior(&self, tape: &mut Tape, hidden: Var) -> Result<Var> {
        let (mut normal, mut log_dets) = (hidden, Vec::new());
        for coupling in &self.couplings {
            let (moved, log_det) = coupling.normalise(tape, normal)?;
            normal = moved;
            log_dets.push(log_det);
        }
        let law = tape.standard_gaussian(tape.shape(normal))?;
        let terms = tape.log_density(normal, law)?;
        let mut sum = tape.row_sums(terms)?;
        for log_det in log_dets {
            sum = tape.add(sum, log_det)?;
        }
        Ok(sum)
    }

    /// log q(x | z) of every set, `[sets, 1]`.
    pub(super) fn log_likelihood(
        &self,
        tape: &mut Tape,
        (hidden, elements): (Var, Var),
        layout: &Layout,
    ) -> Result<Var> {
        let LawGivenHidden::Mixture(mixture) = &self.law else {
            return Err(Error::invalid("guess_target", "`energy` for this generator", "data"));
        };
        let mut written = mixture.write(tape, hidden)?;
        if !layout.is_uniform {
            written = tape.spread(written, &layout.offsets)?;
        }
        let logs = mixture.log_density(tape, written, elements)?;
        tape.set_sums(logs, &layout.offsets)
    }

    /// An estimate of log q(x) of every set, `[sets, 1]`.
    pub(super) fn log_density(
        &self,
        tape: &mut Tape,
        elements: Var,
        layout: &Layout,
    ) -> Result<Var> {
        let posterior = self.posterior(tape, elements, layout)?;
        let std_dev = tape.exp(posterior.log_std_dev)?;
        let mut terms = Vec::with_capacity(NUM_HIDDEN);
        for number in 0..NUM_HIDDEN as u64 {
            let stream = Stream::new(0, "hidden variables").child(number);
            let noise = tape.normals((1, self.hidden_dim), stream)?;
            let moved = tape.multiply(std_dev, noise)?;
            let hidden = tape.add(posterior.mean, moved)?;
            let joint = self.log_joint(tape, (hidden, elements), layout)?;
            let own = tape.log_density(hidden, posterior)?;
            let own = tape.row_sums(own)?;
            terms.push(tape.subtract(joint, own)?);
        }
        let terms = tape.concat(&terms)?;
        let sum = tape.log_sum_exp(terms)?;
        tape.affine(sum, 1.0, -(NUM_HIDDEN as f64).ln())
    }

    /// log q(x | z) + log q(z) of every set, `[sets, 1]`.
    pub(super) fn log_joint(
        &self,
        tape: &mut Tape,
        (hidden, elements): (Var, Var),
        layout: &Layout,
    ) -> Result<Var> {
        let logs = self.log_likelihood(tape, (hidden, elements), layout)?;
        let prior = self.log_prior(tape, hidden)?;
        tape.add(logs, prior)
    }

    /// E[ log q(x | z) + `weight` (log q(z) − log r(z | x)) ] of every set, `[sets, 1]`, by one z of each.
    pub(super) fn evidence(
        &self,
        tape: &mut Tape,
        elements: Var,
        layout: &Layout,
        (weight, stream): (f64, Stream),
    ) -> Result<Var> {
        let posterior = self.posterior(tape, elements, layout)?;
        let hidden = tape.draw(posterior, stream)?;
        let logs = self.log_likelihood(tape, (hidden, elements), layout)?;
        let prior = self.log_prior(tape, hidden)?;
        let own = tape.log_density(hidden, posterior)?;
        let own = tape.row_sums(own)?;
        let cost = tape.subtract(prior, own)?;
        let cost = tape.affine(cost, weight, 0.0)?;
        tape.add(logs, cost)
    }

    /// log r(z | x) of every set, `[sets, 1]`.
    pub(super) fn log_posterior(
        &self,
        tape: &mut Tape,
        hidden: Var,
        elements: Var,
        layout: &Layout,
    ) -> Result<Var> {
        let posterior = self.posterior(tape, elements, layout)?;
        let terms = tape.log_density(hidden, posterior)?;
        tape.row_sums(terms)
    }

    /// r(z | x).
    pub(super) fn posterior(
        &self,
        tape: &mut Tape,
        elements: Var,
        layout: &Layout,
    ) -> Result<Gaussian> {
        let elements = tape.affine(elements, self.input_scale, 0.0)?;
        let sets = Sets { elements, context: None, offsets: &layout.offsets };
        let pooled = self.encoder.pool(tape, sets, Pooling::Mean)?;
        let pooled = tape.silu(pooled)?;
        let out = self.head.forward(tape, pooled)?;
        let mean = tape.columns(out, 0, self.hidden_dim)?;
        let log_std_dev = tape.columns(out, self.hidden_dim, self.hidden_dim)?;
        let log_std_dev = bounded(tape, log_std_dev, LARGEST_LOG_STD_DEV)?;
        Ok(Gaussian { mean, log_std_dev })
    }
}
