//! BRUNO (Korshunova et al., 2018): an invertible network, and behind it a process of its own for every
//! latent coordinate whose elements all correlate alike.
//!
//! ```text
//! z = ψ(x),   log p(x₁, …, xₙ) = Σᵢ log |det ∂ψ(xᵢ)/∂xᵢ| + Σ_d log T(z¹…ⁿ_d; ν_d, μ_d, K_d)
//! K_d = v_d ((1 − ρ_d) I + ρ_d 11ᵀ)
//! ```
//!
//! The paper's case of a constant feature map φ(t) = 1. Everything is exact: densities, conditionals,
//! draws. Exchangeable, since sums have no order, and consistent, since the law of n elements is that of
//! n + 1 with one integrated out. Conditionals cost O(1) an element (`exchangeable.rs`).
//!
//! ψ is a stack of affine couplings on the tape. The processes are computed in f64 on the host, with
//! derivatives in closed form; these enter the tape as constants that multiply z and the parameters, a
//! loss with the same gradient (`learn`). The sum of log conditionals that BRUNO trains on is log p.

mod exchangeable;
mod predictive;

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use exchangeable::{ExchangeableLaw, LawSlopes, Recurrent};
pub use predictive::draw_exchangeable;

use self::predictive::BrunoPredictive;
use super::parametric::check_densities;
use super::task::check_dimensions;
use super::{Parametric, Predictive, Process};
use crate::error::check_length;
use crate::nn::{Coupling, Record, Step};
use crate::rng::Stream;
use crate::tape::{
    AdamConfig, Device, Initialiser, Parameter, ParameterBuilder, ParameterSet, Tape, Var,
};
use crate::{Error, IndexedSet, Result, SetOffsets};

/// ν − 2 at the start: nearly Gaussian, as the paper begins.
const START_DEGREES: f64 = 100.0;
/// The logit of ρ at the start: elements correlate a little.
const START_LOGIT: f32 = -1.0;

/// Settings of a [`BrunoProcess`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrunoConfig {
    /// Affine couplings.
    pub num_couplings: usize,
    /// Width of the two hidden layers of each.
    pub hidden_width: usize,
    /// Whether the processes are Student-t; Gaussian otherwise.
    pub is_student_t: bool,
    /// Learning rate at the start; it falls along half a cosine.
    pub learning_rate: f64,
    /// Gradients longer than this are shortened.
    pub max_gradient_norm: f64,
    /// Decay of the averages that are used after training.
    pub average_decay: f32,
}

impl Default for BrunoConfig {
    fn default() -> Self {
        Self {
            num_couplings: 6,
            hidden_width: 64,
            is_student_t: true,
            learning_rate: 2e-3,
            max_gradient_norm: 10.0,
            average_decay: 0.99,
        }
    }
}

/// The parameters of the processes, each `[1, d]`.
#[derive(Clone, Copy, Debug)]
struct LawParameters {
    mean: Parameter,
    log_variance: Parameter,
    logit: Parameter,
    log_degrees: Parameter,
}

/// An invertible network with exchangeable processes behind it.
#[derive(Debug)]
pub struct BrunoProcess {
    config: BrunoConfig,
    dim: usize,
    couplings: Vec<Coupling>,
    laws: LawParameters,
    parameters: ParameterSet,
}

/// z of rows and log |det ∂z/∂x| of each.
#[derive(Clone, Debug)]
struct Normalised {
    latents: Vec<f32>,
    log_det: Vec<f64>,
}

impl BrunoProcess {
    /// For elements of `dim` numbers, with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the field that is outside its range.
    pub fn new(config: BrunoConfig, dim: usize, seed: u64, device: &Device) -> Result<Self> {
        if dim == 0 {
            return Err(Error::invalid("dim", "at least 1", dim));
        }
        if dim == 1 && config.num_couplings > 0 {
            let expected = "0 for elements of one number, which a coupling cannot split";
            return Err(Error::invalid("num_couplings", expected, config.num_couplings));
        }
        if config.hidden_width == 0 {
            return Err(Error::invalid("hidden_width", "at least 1", 0));
        }
        for (field, value) in [
            ("learning_rate", config.learning_rate),
            ("max_gradient_norm", config.max_gradient_norm),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", value));
            }
        }
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("flow");
        let couplings = (0..config.num_couplings)
            .map(|number| Coupling::new(&mut group, number, dim, config.hidden_width))
            .collect::<Result<Vec<_>>>()?;
        let mut group = builder.group("laws");
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let log_degrees = START_DEGREES.ln() as f32;
        let mut trained =
            |name: &str, start| group.trained(name, &[dim], Initialiser::Constant(start));
        let laws = LawParameters {
            mean: trained("mean", 0.0)?,
            log_variance: trained("log_variance", 0.0)?,
            logit: trained("logit_correlation", START_LOGIT)?,
            log_degrees: trained("log_degrees", log_degrees)?,
        };
        let adam = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let decay = config.average_decay;
        let parameters = ParameterSet::new(builder, device, adam, Some(decay))?;
        Ok(Self { config, dim, couplings, laws, parameters })
    }

    /// The settings.
    pub fn config(&self) -> &BrunoConfig {
        &self.config
    }

    /// Numbers of an element.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The processes of the latent coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails, [`Error::InvalidValue`] if one has left its range.
    pub fn laws(&self) -> Result<Vec<ExchangeableLaw>> {
        let [mean, log_variance, logit, log_degrees] = self.law_numbers()?;
        (0..self.dim)
            .map(|d| {
                let degrees = self.config.is_student_t.then_some(log_degrees[d]);
                let law = ExchangeableLaw::from_real(mean[d], log_variance[d], logit[d], degrees);
                law.check().map(|()| law)
            })
            .collect()
    }

    fn law_numbers(&self) -> Result<[Vec<f64>; 4]> {
        let LawParameters { mean, log_variance, logit, log_degrees } = &self.laws;
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        let mut read = |parameter: &Parameter| -> Result<Vec<f64>> {
            let value = tape.parameter(parameter)?;
            Ok(tape.download(value)?.into_iter().map(f64::from).collect())
        };
        Ok([read(mean)?, read(log_variance)?, read(logit)?, read(log_degrees)?])
    }

    /// z and log |det| `[rows, 1]` of rows `[n, d]`.
    fn normalise(&self, tape: &mut Tape, rows: Var) -> Result<(Var, Option<Var>)> {
        let (mut rows, mut total) = (rows, None);
        for coupling in &self.couplings {
            let (moved, log_det) = coupling.normalise(tape, rows)?;
            rows = moved;
            total = Some(match total {
                None => log_det,
                Some(sum) => tape.add(sum, log_det)?,
            });
        }
        Ok((rows, total))
    }

    fn normalised(&self, elements: Vec<f32>) -> Result<Normalised> {
        let count = elements.len() / self.dim;
        if count == 0 {
            return Ok(Normalised { latents: Vec::new(), log_det: Vec::new() });
        }
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        let rows = tape.upload(elements, (count, self.dim))?;
        let (latents, log_det) = self.normalise(&mut tape, rows)?;
        let log_det = match log_det {
            Some(log_det) => tape.download(log_det)?.into_iter().map(f64::from).collect(),
            None => vec![0.0; count],
        };
        Ok(Normalised { latents: tape.download(latents)?, log_det })
    }

    /// The way back: x of latents `[n, d]`.
    fn generated(&self, latents: Vec<f32>) -> Result<Vec<f32>> {
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        let count = latents.len() / self.dim;
        let mut rows = tape.upload(latents, (count, self.dim))?;
        for coupling in self.couplings.iter().rev() {
            rows = coupling.generate(&mut tape, rows)?;
        }
        tape.download(rows)
    }

    /// log p of every set of `elements` `[total, d]`, exact but for the rounding of the network.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] unless the elements fit the offsets, [`Error::NonFinite`] if a density
    /// is not finite.
    pub fn log_densities(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Vec<f64>> {
        let (total, dim) = (offsets.num_elements(), self.dim);
        check_length("elements", elements.len(), total * dim, || format!("total {total} x {dim}"))?;
        let Normalised { latents, log_det } = self.normalised(elements.to_vec())?;
        let laws = self.laws()?;
        let of_set = |set: usize| {
            let range = offsets.range(set);
            let rows = &latents[range.start * dim..range.end * dim];
            let coordinates = laws.iter().enumerate();
            let of_laws: f64 = coordinates
                .map(|(d, law)| {
                    law.log_density(rows.iter().skip(d).step_by(dim).map(|&z| f64::from(z)))
                })
                .sum();
            of_laws + log_det[range].iter().sum::<f64>()
        };
        let found: Vec<f64> = (0..offsets.num_sets()).into_par_iter().map(of_set).collect();
        check_densities(&found)?;
        Ok(found)
    }

    /// `num_sets` new sets of `size` elements, `[num_sets, size, d]`, one element after the other.
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
        let starts: Vec<Recurrent> = self.laws()?.iter().map(|law| law.start()).collect();
        let drawn = predictive::draw_latents(&starts, num_sets, size, stream);
        self.generated(drawn)
    }

    /// Learns from `sets` `[num_sets, set_size, d]`, flat.
    ///
    /// The record: `nats`, −log p per element; `log_det` per element; `correlation`, the mean of ρ;
    /// `degrees`, the median of ν; `gradient_norm`.
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
        let rows = sets.len() / dim;
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let elements = tape.upload(sets, (rows, dim))?;
        let (latents, log_det) = self.normalise(&mut tape, elements)?;
        let laws = self.laws()?;
        let found = joint(&laws, &tape.download(latents)?, set_size);
        let share = 1.0 / rows as f64;
        // A loss with the gradient of −log p per element: constants times z, log |det| and parameters.
        let pulls = tape.upload(scaled(&found.by_latent, -share), (rows, dim))?;
        let pulled = tape.multiply(latents, pulls)?;
        let mut loss = tape.sum(pulled)?;
        let mut said_det = 0.0;
        if let Some(log_det) = log_det {
            said_det = share * tape.download(log_det)?.into_iter().map(f64::from).sum::<f64>();
            let mean = tape.mean(log_det)?;
            loss = tape.subtract(loss, mean)?;
        }
        let LawParameters { mean, log_variance, logit, log_degrees } = self.laws;
        let parameters = [mean, log_variance, logit, log_degrees];
        for (parameter, slopes) in parameters.iter().zip(&found.by_law) {
            let value = tape.parameter(parameter)?;
            let pulls = tape.upload(scaled(slopes, -share), tape.shape(value))?;
            let pulled = tape.multiply(value, pulls)?;
            let pulled = tape.sum(pulled)?;
            loss = tape.add(loss, pulled)?;
        }
        let nats = -share * found.value - said_det;
        check_densities(&[nats])?;
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.parameters.descend(tape, loss, rate)?;
        let correlation = laws.iter().map(|law| law.correlation).sum::<f64>() / dim as f64;
        let mut degrees: Vec<f64> = laws.iter().filter_map(|law| law.degrees).collect();
        degrees.sort_by(f64::total_cmp);
        let mut record = vec![("nats", nats), ("log_det", said_det), ("correlation", correlation)];
        record.extend(degrees.get(degrees.len() / 2).map(|&median| ("degrees", median)));
        record.push(("gradient_norm", update.gradient_norm));
        Ok(record)
    }
}

impl Parametric for BrunoProcess {
    fn parameters(&self) -> &ParameterSet {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut ParameterSet {
        &mut self.parameters
    }
}

/// Σ log p of the latents of all sets, with its derivatives.
struct Joint {
    value: f64,
    by_latent: Vec<f64>,
    /// By μ, log v, logit ρ, log(ν − 2), each `[d]`.
    by_law: [Vec<f64>; 4],
}

fn joint(laws: &[ExchangeableLaw], latents: &[f32], set_size: usize) -> Joint {
    let dim = laws.len();
    let mut by_latent = vec![0.0; latents.len()];
    let parts: Vec<(f64, Vec<LawSlopes>)> = by_latent
        .par_chunks_mut(set_size * dim)
        .zip(latents.par_chunks(set_size * dim))
        .map(|(slopes, rows)| {
            let mut value = 0.0;
            let of_laws = laws
                .iter()
                .enumerate()
                .map(|(d, law)| {
                    let column = (0..set_size).map(|i| f64::from(rows[i * dim + d]));
                    let mut write = |i: usize, slope| slopes[i * dim + d] = slope;
                    let (found, of_law) = law.log_density_and_slopes(column, &mut write);
                    value += found;
                    of_law
                })
                .collect();
            (value, of_laws)
        })
        .collect();
    let mut total = Joint { value: 0.0, by_latent, by_law: [(); 4].map(|()| vec![0.0; dim]) };
    for (value, of_laws) in parts {
        total.value += value;
        for (d, slopes) in of_laws.iter().enumerate() {
            total.by_law[0][d] += slopes.mean;
            total.by_law[1][d] += slopes.log_variance;
            total.by_law[2][d] += slopes.logit_correlation;
            total.by_law[3][d] += slopes.log_degrees;
        }
    }
    total
}

#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn scaled(numbers: &[f64], factor: f64) -> Vec<f32> {
    numbers.iter().map(|x| (factor * x) as f32).collect()
}

impl Process for BrunoProcess {
    fn name(&self) -> &'static str {
        "bruno"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        check_dimensions("context", context, 0, self.dim)?;
        let mut states: Vec<Recurrent> = self.laws()?.iter().map(|law| law.start()).collect();
        let Normalised { latents, .. } = self.normalised(rounded(context.values()))?;
        for row in latents.chunks_exact(self.dim) {
            states.iter_mut().zip(row).for_each(|(state, &z)| state.update(f64::from(z)));
        }
        Ok(Box::new(BrunoPredictive { process: self, states: Arc::new(states) }))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn rounded(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}
