//! log Z of a replicated softmax for documents of every length at once.
//!
//! ```text
//! Z_n = Σ_h exp(n g(h)),   g(h) = a·h + log Σ_w exp(b_w + W_w·h)
//! ```
//!
//! The words are summed out exactly, and the length n is an inverse temperature: annealed importance sampling
//! (Neal, 2001) from n = 0, where Z₀ = 2^F and all h are alike, to the longest document passes through all
//! other lengths. Between temperatures every unit is drawn in turn from its law given the others. For a length n
//! between two temperatures t ≤ n the weight is w_t exp((n − t) g(h_t)). For few units the sum is exact.

use rayon::prelude::*;

use super::Parameters;
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result};

/// Units of which all states are visited at most.
const MOST_UNITS: usize = 20;

impl Parameters {
    /// exp(b_w + W_w·h) of all words, scaled by exp(−largest); returns log of their sum.
    fn word_weights(&self, hidden: &[bool], out: &mut Vec<f64>) -> f64 {
        self.word_logits(|unit| hidden[unit], out);
        let largest = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for x in out.iter_mut() {
            *x = (*x - largest).exp();
            sum += *x;
        }
        for x in &mut *out {
            *x /= sum;
        }
        largest + sum.ln()
    }

    /// g(h).
    fn slope(&self, hidden: &[bool], space: &mut Vec<f64>) -> f64 {
        let log_sum = self.word_weights(hidden, space);
        let biases = hidden.iter().zip(&self.hidden).filter(|(is_on, _)| **is_on);
        log_sum + biases.map(|(_, a)| a).sum::<f64>()
    }

    /// log Z of documents of `length` words, by visiting all 2^F states.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are more than 20 units.
    pub fn exact_log_partition(&self, length: f64) -> Result<f64> {
        let units = self.num_units();
        if units > MOST_UNITS {
            return Err(Error::invalid("units", format!("at most {MOST_UNITS}"), units));
        }
        let mut space = Vec::new();
        let terms: Vec<f64> = (0..1_u64 << units)
            .map(|state| {
                let hidden: Vec<bool> = (0..units).map(|unit| state >> unit & 1 == 1).collect();
                length * self.slope(&hidden, &mut space)
            })
            .collect();
        Ok(crate::linalg::log_sum_exp(&terms))
    }
}

/// Chains of annealed importance sampling, from which log Z of any length up to the longest is read.
#[derive(Clone, Debug)]
pub struct LogPartition {
    /// Inverse temperatures from 0.
    lengths: Vec<f64>,
    /// Of every chain at every temperature: the log weight, and g(h) of the state there.
    chains: Vec<Vec<(f64, f64)>>,
}

impl LogPartition {
    /// Runs the chains.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is too small.
    pub fn new(
        parameters: &Parameters,
        longest: u64,
        (num_chains, num_temperatures): (usize, usize),
        stream: Stream,
    ) -> Result<Self> {
        for (field, count) in [("chains", num_chains), ("temperatures", num_temperatures)] {
            if count < 2 {
                return Err(Error::invalid(field, "at least 2", count));
            }
        }
        // Squares: from 0 on, a word more changes most.
        let share = |t: usize| (t as f64 / num_temperatures as f64).powi(2);
        let lengths: Vec<f64> =
            (0..num_temperatures).map(|t| longest.max(1) as f64 * share(t)).collect();
        let chain = |number: usize| anneal(parameters, &lengths, stream.child(number as u64));
        let chains = (0..num_chains).into_par_iter().map(chain).collect();
        Ok(Self { lengths, chains })
    }

    /// log Z of documents of `length` words, with its standard error over the chains.
    pub fn at(&self, length: u64) -> LogDensity {
        let length = length as f64;
        let place = self.lengths.partition_point(|t| *t <= length).saturating_sub(1);
        let rest = length - self.lengths[place];
        let weight = |chain: &Vec<(f64, f64)>| chain[place].0 + rest * chain[place].1;
        LogDensity::of_mean(&self.chains.iter().map(weight).collect::<Vec<_>>())
    }
}

/// One chain: log weight and slope at every temperature.
fn anneal(parameters: &Parameters, lengths: &[f64], stream: Stream) -> Vec<(f64, f64)> {
    let units = parameters.num_units();
    let mut uniforms = vec![0.0_f32; units];
    stream.fill_uniform(0, 0, &mut uniforms);
    let mut hidden: Vec<bool> = uniforms.iter().map(|u| *u < 0.5).collect();
    let mut words = Vec::new();
    let mut log_weight = units as f64 * std::f64::consts::LN_2;
    let mut slope = parameters.slope(&hidden, &mut words);
    let mut found = vec![(log_weight, slope)];
    for (step, pair) in (1_u32..).zip(lengths.windows(2)) {
        log_weight += (pair[1] - pair[0]) * slope;
        stream.fill_uniform(step, 0, &mut uniforms);
        parameters.sweep_units(pair[1], &mut hidden, &mut words, &uniforms);
        slope = parameters.slope(&hidden, &mut words);
        found.push((log_weight, slope));
    }
    found
}

impl Parameters {
    /// Draws every unit in turn from p(h_j | others) ∝ exp(n g(h)); `words` are the laws p(w | h).
    fn sweep_units(&self, length: f64, hidden: &mut [bool], words: &mut [f64], uniforms: &[f32]) {
        for (unit, is_on) in hidden.iter_mut().enumerate() {
            // Σ_w p(w | h) exp(±W_wj) is the ratio of the sums with the unit switched.
            let ratios = self.exp_weights(unit, *is_on);
            let ratio: f64 = super::super::mixture::dot(words, ratios);
            let sign = if *is_on { -1.0 } else { 1.0 };
            let gain = length * (ratio.ln() + sign * self.hidden[unit]);
            // p(switch) = 1 / (1 + exp(−gain)).
            if f64::from(uniforms[unit]) < 1.0 / (1.0 + (-gain).exp()) {
                *is_on = !*is_on;
                words.iter_mut().zip(ratios).for_each(|(word, r)| *word *= r / ratio);
            }
        }
    }
}
