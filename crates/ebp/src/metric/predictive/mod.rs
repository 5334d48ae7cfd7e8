//! Predictions judged against the true law, in nats per element.
//!
//! A model conditioned on a context gives a density q(x | t) for every location. Its cost is the
//! cross-entropy −E log q under the true law p of the set, and what it wastes is
//!
//! ```text
//! excess = E log p(x | t, latent) − E log q(x | t, context)  ≥ 0
//! ```
//!
//! [`held_out`] takes the expectations over fresh elements and has an error bar;
//! [`cross_entropy`] takes them by quadrature over (t, x), so only the choice of sets is random.
//! Both subtract the true law on the very same elements, which removes most of the noise. The
//! excess is measured from the law that knows the latent; where sets have one, part of the excess
//! is what the context leaves open, and [`best_prediction`] says how much by giving the best possible
//! prediction in the place of a model.

mod calibration;
mod peaks;

use crate::data::CurveFamily;
use crate::data::curves::{CurveLaw, NOISE_STD_DEV};
use crate::process::{LogDensity, Process};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

pub use calibration::{
    Coverage, LevelLaw, Standing, coverage, level_laws, one_by_one, ranks, standings,
    true_standings,
};
pub use peaks::{PeakMass, peak_mass};

/// On which sets a model is judged.
///
/// Equal `stream`s give equal sets to every model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Where the sets come from.
    pub family: CurveFamily,
    /// How many elements of each set the model is told.
    pub num_context: usize,
    /// How many sets; at least 2, for the error bar.
    pub num_sets: usize,
    /// How many locations per set the model is asked about.
    pub num_locations: usize,
    /// The randomness of the sets.
    pub stream: Stream,
}

/// What a model costs, in nats per element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// −E log q. Infinite if the model rules out what happened.
    pub nll: f64,
    /// Standard error of `nll` over sets.
    pub std_error: f64,
    /// −E log p on the same elements.
    pub floor: f64,
    /// `nll` − `floor`.
    pub excess: f64,
    /// Standard error of `excess` over sets: smaller than that of `nll`, as both share elements.
    pub excess_std_error: f64,
    /// The largest standard error that the model itself states for one of its log densities; 0 if
    /// it computes them exactly.
    pub largest_model_error: f64,
}

/// The score of `process` on `num_locations` fresh elements of each set.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a count is too small or the model refuses the data,
/// [`Error::NonFinite`] if it answers NaN.
pub fn held_out(process: &dyn Process, evaluation: &Evaluation) -> Result<Score> {
    evaluation.score(|law, context, fresh| {
        let count = fresh.len() as f64;
        let floor = -elements(fresh).map(|(t, x)| law.log_density(t, x)).sum::<f64>() / count;
        let answers = log_densities(process, context, fresh)?;
        let nll = -answers.iter().map(|answer| answer.value).sum::<f64>() / count;
        Ok((nll, floor, largest_error(&answers)))
    })
}

/// The score of `process` by quadrature: `num_locations` midpoints over t, and around every branch
/// m_b of the true law, values m_b + σ z over |z| ≤ 6.
///
/// ```text
/// −∫ p(x | t) log q(x | t) dx = −mean_b ∫ N(z) log q(m_b + σ z | t) dz
/// ```
///
/// # Errors
///
/// As [`held_out`].
pub fn cross_entropy(process: &dyn Process, evaluation: &Evaluation) -> Result<Score> {
    evaluation.score(|law, context, _| {
        let (nodes, weights) = evaluation.quadrature(law)?;
        let mean = |log_density: &mut dyn Iterator<Item = f64>| {
            -log_density.zip(&weights).map(|(log_q, weight)| weight * log_q).sum::<f64>()
        };
        let floor = mean(&mut elements(&nodes).map(|(t, x)| law.log_density(t, x)));
        let answers = log_densities(process, context, &nodes)?;
        let nll = mean(&mut answers.iter().map(|answer| answer.value));
        Ok((nll, floor, largest_error(&answers)))
    })
}

/// The score of the best possible prediction, which knows the family but not the latent, by the
/// quadrature of [`cross_entropy`].
///
/// # Errors
///
/// [`Error::InvalidValue`] if a count is too small.
pub fn best_prediction(evaluation: &Evaluation) -> Result<Score> {
    evaluation.score(|law, context, _| {
        let (nodes, weights) = evaluation.quadrature(law)?;
        let bayes = evaluation.family.bayes(context)?;
        let (mut nll, mut floor) = (0.0, 0.0);
        for ((t, x), weight) in elements(&nodes).zip(&weights) {
            nll -= weight * bayes.log_density(t, x);
            floor -= weight * law.log_density(t, x);
        }
        Ok((nll, floor, 0.0))
    })
}

/// The score of the best prediction with one Gaussian at every location, that with the moments of the best
/// prediction, by the same quadrature: no process with Gaussian values and no latent does better.
///
/// # Errors
///
/// As [`best_prediction`].
pub fn best_gaussian(evaluation: &Evaluation) -> Result<Score> {
    evaluation.score(|law, context, _| {
        let (nodes, weights) = evaluation.quadrature(law)?;
        let bayes = evaluation.family.bayes(context)?;
        let (mut nll, mut floor) = (0.0, 0.0);
        for ((t, x), weight) in elements(&nodes).zip(&weights) {
            let (mean, variance) = bayes.moments(t);
            // −log N = ½ (x − m)²/v + ½ log 2πv
            let distance = (x - mean).powi(2) / variance;
            nll += weight * 0.5 * (distance + (std::f64::consts::TAU * variance).ln());
            floor -= weight * law.log_density(t, x);
        }
        Ok((nll, floor, 0.0))
    })
}

impl Evaluation {
    /// Averages (nll, floor, largest model error) over sets; the measure is given a law, a context
    /// and the fresh elements.
    fn score(
        &self,
        measure: impl Fn(&CurveLaw, &IndexedSet, &IndexedSet) -> Result<(f64, f64, f64)>,
    ) -> Result<Score> {
        self.check()?;
        let mut nll = Vec::with_capacity(self.num_sets);
        let mut floor = Vec::with_capacity(self.num_sets);
        let mut largest_model_error = 0.0_f64;
        for number in 0..self.num_sets {
            let (law, context, fresh) = self.set(number)?;
            let (set_nll, set_floor, model_error) = measure(&law, &context, &fresh)?;
            nll.push(set_nll);
            floor.push(set_floor);
            largest_model_error = largest_model_error.max(model_error);
        }
        let excess: Vec<f64> = nll.iter().zip(&floor).map(|(a, b)| a - b).collect();
        let (nll, std_error) = mean_and_error(&nll);
        let (excess, excess_std_error) = mean_and_error(&excess);
        let (floor, _) = mean_and_error(&floor);
        Ok(Score { nll, std_error, floor, excess, excess_std_error, largest_model_error })
    }

    fn check(&self) -> Result<()> {
        if self.num_sets < 2 {
            return Err(Error::invalid("num_sets", "at least 2", self.num_sets));
        }
        if self.num_locations == 0 {
            return Err(Error::invalid("num_locations", "at least 1", self.num_locations));
        }
        Ok(())
    }

    /// Set `number`: its law, its context, and `num_locations` fresh elements.
    fn set(&self, number: usize) -> Result<(CurveLaw, IndexedSet, IndexedSet)> {
        let total = self.num_context + self.num_locations;
        let drawn = self.family.draw(self.stream, number as u64, total)?;
        let context = drawn.set.select(&(0..self.num_context).collect::<Vec<_>>());
        let fresh = drawn.set.select(&(self.num_context..total).collect::<Vec<_>>());
        Ok((drawn.law, context, fresh))
    }

    /// What a model is told of set `number`.
    ///
    /// # Errors
    ///
    /// As [`CurveFamily::draw`].
    pub fn context(&self, number: usize) -> Result<IndexedSet> {
        Ok(self.set(number)?.1)
    }

    /// Midpoints over t.
    pub fn locations(&self) -> impl Iterator<Item = f64> + use<> {
        let (low, high) = self.family.location_range();
        let count = self.num_locations;
        (0..count).map(move |i| low + (high - low) * (i as f64 + 0.5) / count as f64)
    }

    /// Nodes (t, m_b(t) + σ z) and weights N(z), of sum 1.
    fn quadrature(&self, law: &CurveLaw) -> Result<(IndexedSet, Vec<f64>)> {
        // Steps of a quarter σ: the trapezoidal rule is exact to 10⁻⁹ for what is as smooth as p.
        const NUM_NODES: usize = 49;
        let z = |k: usize| -6.0 + 0.25 * k as f64;
        let normal: Vec<f64> = (0..NUM_NODES).map(|k| (-0.5 * z(k) * z(k)).exp()).collect();
        let (mut locations, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for t in self.locations() {
            for mode in law.modes(t) {
                for (k, weight) in normal.iter().enumerate() {
                    locations.push(t);
                    values.push(mode + NOISE_STD_DEV * z(k));
                    weights.push(*weight);
                }
            }
        }
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        Ok((IndexedSet::new(1, 1, locations, values)?, weights))
    }
}

/// log q of every target.
fn log_densities(
    process: &dyn Process,
    context: &IndexedSet,
    targets: &IndexedSet,
) -> Result<Vec<LogDensity>> {
    let answers = process.condition(context)?.log_density(targets)?;
    crate::error::check_length("log densities", answers.len(), targets.len(), || {
        format!("targets {}", targets.len())
    })?;
    none_is_nan(answers)
}

/// NaN is an error, −∞ an answer.
fn none_is_nan(answers: Vec<LogDensity>) -> Result<Vec<LogDensity>> {
    match answers.iter().position(|answer| answer.value.is_nan()) {
        None => Ok(answers),
        Some(index) => Err(Error::NonFinite {
            field: "log density",
            index,
            value: f32::NAN,
            remedy: "the model is broken; go back to an earlier checkpoint",
        }),
    }
}

fn elements(set: &IndexedSet) -> impl Iterator<Item = (f64, f64)> + '_ {
    set.locations().iter().copied().zip(set.values().iter().copied())
}

fn largest_error(answers: &[LogDensity]) -> f64 {
    answers.iter().map(|answer| answer.std_error).fold(0.0, f64::max)
}

/// Mean, and its standard error s/√n.
fn mean_and_error(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let spread: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (mean, (spread / (count - 1.0) / count).sqrt())
}
