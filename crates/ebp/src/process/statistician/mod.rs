//! The Neural Statistician (Edwards and Storkey, 2017): a context c of the whole set, latents z of every
//! element in one or several layers, Gaussian elements.
//!
//! ```text
//! p(x₁, …, xₙ) = ∫ N(c; 0, I) ∏ᵢ ∫ p(xᵢ | zᵢ, c) ∏_l p(z_l,ᵢ | z_{l−1},ᵢ, c) dz dc
//! log p ≥ E_q [ Σᵢ log p(xᵢ | zᵢ, c) − Σᵢ KL(q(zᵢ | xᵢ, c) ‖ p(zᵢ | c)) ] − KL(q(c | x₁…ₙ) ‖ N(0, I))
//! ```
//!
//! The paper's unconditional process with a hierarchical prior and a known simple likelihood. Given c the
//! elements are independent and of one law, so sets are exchangeable and consistent for every n. q(c | set)
//! is a statistic network, pooled over the elements.
//!
//! How likely a set is: importance sampling, nested, K draws of c and M of z for each and every element,
//!
//! ```text
//! p̂(x₁…ₙ) = (1/K) Σ_k p(c_k)/q(c_k) ∏ᵢ (1/M) Σ_m p(xᵢ, z_m | c_k)/q(z_m | xᵢ, c_k)
//! ```
//!
//! which is unbiased, so that E log p̂ ≤ log p: more draws bring it closer, never above.

mod networks;
mod predictive;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::networks::{Elements, Networks, Price};
use self::predictive::StatisticianPredictive;
pub(in crate::process) use self::predictive::rounded;
use super::parametric::check_densities;
use super::task::check_dimensions;
use super::{LogDensity, Parametric, Predictive, Process};
use crate::error::check_length;
use crate::linalg::log_sum_exp;
use crate::nn::{Record, Step};
use crate::rng::Stream;
use crate::tape::{
    AdamConfig, Choice, Device, Gaussian, ParameterBuilder, ParameterSet, Tape, Var,
};
use crate::{Error, IndexedSet, Result, SetOffsets};

/// Settings of a [`StatisticianProcess`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatisticianConfig {
    /// Numbers of c.
    pub context_dim: usize,
    /// Numbers of z in every layer.
    pub latent_dim: usize,
    /// Layers of z.
    pub num_layers: usize,
    /// Width of the hidden layers of all networks.
    pub hidden_width: usize,
    /// How many hidden layers.
    pub num_hidden: usize,
    /// Learning rate at the start; it falls along half a cosine.
    pub learning_rate: f64,
    /// Gradients longer than this are shortened.
    pub max_gradient_norm: f64,
    /// Decay of the averages that are used after training.
    pub average_decay: f32,
    /// K of predictions: draws of c.
    pub num_draws: usize,
    /// M of predictions: draws of z for each of them.
    pub num_inner: usize,
}

impl Default for StatisticianConfig {
    fn default() -> Self {
        Self {
            context_dim: 8,
            latent_dim: 2,
            num_layers: 1,
            hidden_width: 64,
            num_hidden: 2,
            learning_rate: 2e-3,
            max_gradient_norm: 10.0,
            average_decay: 0.995,
            num_draws: 64,
            num_inner: 16,
        }
    }
}

impl StatisticianConfig {
    fn check(&self) -> Result<()> {
        for (field, count) in [
            ("context_dim", self.context_dim),
            ("latent_dim", self.latent_dim),
            ("num_layers", self.num_layers),
            ("hidden_width", self.hidden_width),
            ("num_hidden", self.num_hidden),
            ("num_draws", self.num_draws),
            ("num_inner", self.num_inner),
        ] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        for (field, value) in
            [("learning_rate", self.learning_rate), ("max_gradient_norm", self.max_gradient_norm)]
        {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", value));
            }
        }
        Ok(())
    }
}

/// A hierarchy of latents with its statistic network.
#[derive(Debug)]
pub struct StatisticianProcess {
    config: StatisticianConfig,
    dim: usize,
    networks: Networks,
    parameters: ParameterSet,
    /// Of predictions, so that equal questions get equal answers.
    stream: Stream,
}

/// How likely a set is, by draws of its latent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetEstimate {
    /// log p̂(x₁, …, xₙ) with its standard error.
    pub log_density: LogDensity,
    /// Draws of the set's latent that count in it, (Σw)²/Σw².
    pub effective_draws: f64,
}

impl SetEstimate {
    /// From the logarithms of importance weights, one for each draw.
    pub(in crate::process) fn of_terms(terms: &[f64]) -> Result<Self> {
        let log_density = LogDensity::of_mean(terms);
        check_densities(&[log_density.value])?;
        let squares: Vec<f64> = terms.iter().map(|term| 2.0 * term).collect();
        let effective_draws = (2.0 * log_sum_exp(terms) - log_sum_exp(&squares)).exp();
        Ok(Self { log_density, effective_draws })
    }
}

impl StatisticianProcess {
    /// For elements of `dim` numbers, with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the field that is outside its range.
    pub fn new(config: StatisticianConfig, dim: usize, seed: u64, device: &Device) -> Result<Self> {
        config.check()?;
        if dim == 0 {
            return Err(Error::invalid("dim", "at least 1", dim));
        }
        let mut builder = ParameterBuilder::new(seed);
        let networks = Networks::new(&config, dim, &mut builder.group("statistician"))?;
        let adam = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let parameters = ParameterSet::new(builder, device, adam, Some(config.average_decay))?;
        let stream = Stream::new(seed, "statistician predictions");
        Ok(Self { config, dim, networks, parameters, stream })
    }

    /// The settings.
    pub fn config(&self) -> &StatisticianConfig {
        &self.config
    }

    /// Numbers of an element.
    pub fn dim(&self) -> usize {
        self.dim
    }

    fn tape(&self) -> Tape {
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        tape
    }

    /// Learns from `sets` `[num_sets, set_size, d]`, flat.
    ///
    /// The record: `nats`, minus the bound per element; `fit`, −E log p(x | z, c) per element; `kl_c`
    /// per set and `kl_z` per element; `gradient_norm`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the sets are whole, [`Error::NonFinite`] and
    /// [`Error::NonFiniteGradient`] if the step diverged.
    pub fn learn(&mut self, sets: Vec<f32>, set_size: usize, step: &Step) -> Result<Record> {
        self.parameters.use_average(false);
        let (dim, width) = (self.dim, set_size * self.dim);
        if width == 0 || sets.is_empty() || !sets.len().is_multiple_of(width) {
            let expected = format!("whole sets of {set_size} x {dim} numbers");
            return Err(Error::invalid("sets", expected, format!("{} numbers", sets.len())));
        }
        let offsets = Arc::new(SetOffsets::uniform(sets.len() / width, set_size)?);
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let values = tape.upload(sets, (offsets.num_elements(), dim))?;
        let elements = Elements { values, offsets: &offsets };
        let posterior = self.networks.context_law(&mut tape, elements)?;
        let context = tape.draw(posterior, step.stream.child(1))?;
        let stream = step.stream.child(2);
        let [fit, cost] = self.networks.walk(&mut tape, elements, context, Price::Kl, stream)?;
        let prior = tape.standard_gaussian((offsets.num_sets(), self.config.context_dim))?;
        let of_context = tape.kl(posterior, prior)?;
        let of_context = tape.row_sums(of_context)?;
        let [fit, of_latents, of_context] =
            [tape.mean(fit)?, tape.mean(cost)?, tape.mean(of_context)?];
        let per_element = tape.affine(of_context, 1.0 / set_size as f64, 0.0)?;
        let cost = tape.add(of_latents, per_element)?;
        let loss = tape.subtract(cost, fit)?;
        let said = tape.concat(&[loss, fit, of_latents, of_context])?;
        let said = tape.download(said)?;
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.parameters.descend(tape, loss, rate)?;
        let number = |at: usize| f64::from(said[at]);
        Ok(vec![
            ("nats", number(0)),
            ("fit", -number(1)),
            ("kl_c", number(3)),
            ("kl_z", number(2)),
            ("gradient_norm", update.gradient_norm),
        ])
    }

    /// How likely a set `[n, d]` is, by K = `num_draws` draws of c and M = `num_inner` of z.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0 or the set is empty or not whole, [`Error::NonFinite`] if
    /// a density is not finite.
    pub fn score(
        &self,
        set: &[f32],
        [num_draws, num_inner]: [usize; 2],
        stream: Stream,
    ) -> Result<SetEstimate> {
        let size = set.len() / self.dim;
        check_length("set", set.len(), size * self.dim, || format!("rows of {}", self.dim))?;
        for (field, count) in [("set", size), ("num_draws", num_draws), ("num_inner", num_inner)] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        let mut tape = self.tape();
        let offsets = Arc::new(SetOffsets::uniform(1, size)?);
        let values = tape.upload(set.to_vec(), (size, self.dim))?;
        let posterior =
            self.networks.context_law(&mut tape, Elements { values, offsets: &offsets })?;
        let posterior = repeated(&mut tape, posterior, num_draws)?;
        let context = tape.draw(posterior, stream.child(0))?;
        let prior = tape.standard_gaussian((num_draws, self.config.context_dim))?;
        let [of_prior, of_posterior] =
            [tape.log_density(context, prior)?, tape.log_density(context, posterior)?];
        let ratio = tape.subtract(of_prior, of_posterior)?;
        let ratio = tape.row_sums(ratio)?;
        let ratio = tape.download(ratio)?;
        let densities = self.element_densities(tape, set, context, num_inner, stream.child(1))?;
        let terms: Vec<f64> = densities
            .chunks_exact(size)
            .zip(ratio)
            .map(|(elements, ratio)| elements.iter().sum::<f64>() + f64::from(ratio))
            .collect();
        SetEstimate::of_terms(&terms)
    }

    /// log (1/M) Σ_m p(x, z_m | c)/q(z_m | x, c) of every element of `set` `[n, d]` and every c of
    /// `context` `[K, context_dim]`, as `[K, n]`.
    fn element_densities(
        &self,
        mut tape: Tape,
        set: &[f32],
        context: Var,
        num_inner: usize,
        stream: Stream,
    ) -> Result<Vec<f64>> {
        let (size, num_draws) = (set.len() / self.dim, tape.shape(context).0);
        let offsets = Arc::new(SetOffsets::uniform(num_draws, size * num_inner)?);
        let mut rows = Vec::with_capacity(num_draws * set.len() * num_inner);
        for _ in 0..num_draws {
            for element in set.chunks_exact(self.dim) {
                (0..num_inner).for_each(|_| rows.extend_from_slice(element));
            }
        }
        let values = tape.upload(rows, (offsets.num_elements(), self.dim))?;
        let elements = Elements { values, offsets: &offsets };
        let [fit, cost] =
            self.networks.walk(&mut tape, elements, context, Price::Weight, stream)?;
        let weights = tape.subtract(fit, cost)?;
        let weights: Vec<f64> = tape.download(weights)?.into_iter().map(f64::from).collect();
        let log_count = (num_inner as f64).ln();
        Ok(weights.chunks_exact(num_inner).map(|w| log_sum_exp(w) - log_count).collect())
    }

    /// `num_sets` new sets of `size` elements, `[num_sets, size, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0.
    pub fn sample(&self, num_sets: usize, size: usize, stream: Stream) -> Result<Vec<f32>> {
        for (field, count) in [("num_sets", num_sets), ("size", size)] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        let mut tape = self.tape();
        let context = tape.normals((num_sets, self.config.context_dim), stream.child(0))?;
        let offsets = Arc::new(SetOffsets::uniform(num_sets, size)?);
        let drawn = self.networks.generate(&mut tape, context, &offsets, stream.child(1))?;
        tape.download(drawn)
    }

    /// Mean and log σ of q(c | set) of every set, both `[sets, context_dim]`.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] unless `elements` `[total, d]` fits the offsets.
    pub fn encode(&self, elements: &[f32], offsets: &SetOffsets) -> Result<[Vec<f32>; 2]> {
        let (total, dim) = (offsets.num_elements(), self.dim);
        check_length("elements", elements.len(), total * dim, || format!("total {total} x {dim}"))?;
        let mut tape = self.tape();
        let values = tape.upload(elements.to_vec(), (total, dim))?;
        let offsets = Arc::new(offsets.clone());
        let law = self.networks.context_law(&mut tape, Elements { values, offsets: &offsets })?;
        Ok([tape.download(law.mean)?, tape.download(law.log_std_dev)?])
    }
}

impl Parametric for StatisticianProcess {
    fn parameters(&self) -> &ParameterSet {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut ParameterSet {
        &mut self.parameters
    }
}

/// One row as `count` equal ones.
pub(in crate::process) fn repeated(
    tape: &mut Tape,
    law: Gaussian,
    count: usize,
) -> Result<Gaussian> {
    let choice = Arc::new(Choice::repeated(1, count)?);
    let mean = tape.gather(law.mean, &choice)?;
    Ok(Gaussian { mean, log_std_dev: tape.gather(law.log_std_dev, &choice)? })
}

impl Process for StatisticianProcess {
    fn name(&self) -> &'static str {
        "statistician"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        check_dimensions("context", context, 0, self.dim)?;
        Ok(Box::new(StatisticianPredictive::new(self, context)?))
    }
}
