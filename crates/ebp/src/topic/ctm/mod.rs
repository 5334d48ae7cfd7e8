//! The correlated topic model (Blei, Lafferty, 2007): shares of topics by a logistic normal law.
//!
//! ```text
//! η ~ N(μ, Σ),   θ = softmax(η),   w ~ Σ_k θ_k β_k
//! ```
//!
//! Learned by EM with a Gaussian at the mode of every document's η (Laplace): μ and Σ are the moments of these
//! Gaussians, β the sums of the responsibilities at the modes. Σ is drawn towards I by one document's weight, so
//! that it stays regular. The bound of a document is log of the mean of importance weights of draws
//! around the mode: its expectation is at most log p, and it comes with its error. Predictions weight the same
//! draws. Consistent over n, as LDA is, up to the error of the draws.
#![allow(clippy::needless_range_loop, reason = "numbers run through several arrays at once")]

mod law;

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::law::{Law, softmax};
use super::learner::{check_names, pack, unpack, unpack_any};
use super::mixture::dot;
use super::responsibilities::{ByWord, Responsibilities, column_sums, normalised};
use super::{Corpus, Document, TopicLearner, TopicModel};
use crate::linalg::{Matrix, log_sum_exp};
use crate::nn::{Record, Step};
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// Newton's rounds of a new document at most.
const MOST_ROUNDS: usize = 100;
/// Documents whose sums are added together before those of others.
const BLOCK: usize = 64;

/// What the correlated topic model is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CtmConfig {
    /// K.
    pub num_topics: usize,
    /// Added to every count of a word in a topic, above 0.
    pub smoothing: f64,
    /// Newton's rounds of a document in one step at most.
    pub num_rounds: usize,
    /// Draws around the mode of a document that is judged, at least 2.
    pub num_draws: usize,
}

impl Default for CtmConfig {
    fn default() -> Self {
        Self { num_topics: 20, smoothing: 0.05, num_rounds: 5, num_draws: 200 }
    }
}

/// Correlated topics that learn.
#[derive(Debug)]
pub struct Ctm {
    corpus: Arc<Corpus>,
    config: CtmConfig,
    by_word: ByWord,
    law: Law,
    /// Modes of all documents, `[D, K]`.
    modes: Vec<f64>,
}

impl Ctm {
    /// Topics near to the words of the whole corpus, at random.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range.
    pub fn new(corpus: Arc<Corpus>, config: &CtmConfig, seed: u64) -> Result<Self> {
        let k = config.num_topics;
        for (field, count, least) in [
            ("ctm.num_topics", k, 1),
            ("ctm.num_rounds", config.num_rounds, 1),
            ("ctm.num_draws", config.num_draws, 2),
        ] {
            if count < least {
                return Err(Error::invalid(field, format!("at least {least}"), count));
            }
        }
        if !(config.smoothing.is_finite() && config.smoothing > 0.0) {
            return Err(Error::invalid("ctm.smoothing", "above 0", config.smoothing));
        }
        let mut totals = vec![1.0; corpus.num_words()];
        for document in corpus.documents() {
            document.pairs().for_each(|(word, count)| totals[word] += count);
        }
        let mut noise = vec![0.0_f32; corpus.num_words() * k];
        Stream::new(seed, "ctm topics").fill_normal(0, 0, &mut noise);
        let start = |(place, z): (usize, &f32)| totals[place / k] * (0.5 * f64::from(*z)).exp();
        let topics = normalised(noise.iter().enumerate().map(start).collect(), k, 0.0);
        let mut covariance = vec![0.0; k * k];
        (0..k).for_each(|i| covariance[i * k + i] = 1.0);
        let law = Law::new(vec![0.0; k], covariance, topics)?;
        let modes = vec![0.0; corpus.len() * k];
        Ok(Self { config: config.clone(), by_word: ByWord::new(&corpus), law, modes, corpus })
    }

    /// Σ over documents of the covariance at the mode and of (mode − μ)(mode − μ)ᵀ, lower triangle, `[K, K]`.
    fn second_moments(&self, mean: &[f64]) -> Result<Vec<f64>> {
        let k = mean.len();
        let blocks: Vec<Vec<f64>> = self
            .modes
            .par_chunks(BLOCK * k)
            .enumerate()
            .map(|(block, modes)| {
                let mut sums = vec![0.0; k * k];
                for (row, mode) in modes.chunks_exact(k).enumerate() {
                    let document = self.corpus.document(block * BLOCK + row);
                    let factor =
                        self.law.curvature(&softmax(mode), document.num_tokens() as f64)?;
                    let (covariance, _) = factor.into_inverse(Matrix::zeros(k, k));
                    let rest: Vec<f64> = mode.iter().zip(mean).map(|(m, mean)| m - mean).collect();
                    for j in 0..k {
                        let (column, from) = (&mut sums[j * k..][..k], covariance.column(j));
                        for i in j..k {
                            column[i] += from[i] + rest[i] * rest[j];
                        }
                    }
                }
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        Ok(column_sums(&blocks.concat(), k * k))
    }
}

impl TopicLearner for Ctm {
    fn step(&mut self, _step: &Step) -> Result<Record> {
        let (k, rounds) = (self.config.num_topics, self.config.num_rounds);
        let law = &self.law;
        let (words, said) = Responsibilities::visit(
            &self.corpus,
            k,
            &mut self.modes,
            || (),
            |(), document, mode, shares, ratios| -> Result<(f64, f64)> {
                let rounds = law.climb(document, mode, rounds)?;
                shares.copy_from_slice(&softmax(mode));
                let mut nats = 0.0;
                for ((word, count), ratio) in document.pairs().zip(ratios) {
                    let p = dot(shares, &law.topics[word * k..][..k]).max(f64::MIN_POSITIVE);
                    *ratio = count / p;
                    nats -= count * p.ln();
                }
                Ok((rounds as f64, nats))
            },
        );
        let said = said.into_iter().collect::<Result<Vec<_>>>()?;
        let documents = self.corpus.len() as f64;
        let topics =
            normalised(words.sums(&self.by_word, &self.law.topics), k, self.config.smoothing);
        let mean: Vec<f64> =
            column_sums(&self.modes, k).iter().map(|sum| sum / documents).collect();
        let lower = self.second_moments(&mean)?;
        let mut covariance = vec![0.0; k * k];
        for j in 0..k {
            for i in j..k {
                let unit = if i == j { 1.0 } else { 0.0 };
                let entry = (lower[j * k + i] + unit) / (documents + 1.0);
                covariance[i * k + j] = entry;
                covariance[j * k + i] = entry;
            }
        }
        self.law = Law::new(mean, covariance, topics)?;
        let nats = said.iter().map(|(_, nats)| nats).sum::<f64>() / self.corpus.num_tokens() as f64;
        let rounds = said.iter().map(|(rounds, _)| rounds).sum::<f64>() / documents;
        Ok(vec![("nats", nats), ("rounds", rounds)])
    }

    fn state(&self) -> Result<Tensors> {
        let (k, v) = (self.config.num_topics, self.corpus.num_words());
        pack(&[
            ("mean", &[k], &self.law.mean),
            ("covariance", &[k, k], &self.law.covariance),
            ("topics", &[v, k], &self.law.topics),
            ("modes", &[self.corpus.len(), k], &self.modes),
        ])
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let (k, v) = (self.config.num_topics, self.corpus.num_words());
        check_names(state, &["mean", "covariance", "topics", "modes"])?;
        self.law = Law::new(
            unpack(state, "mean", &[k])?,
            unpack(state, "covariance", &[k, k])?,
            unpack(state, "topics", &[v, k])?,
        )?;
        self.modes = unpack(state, "modes", &[self.corpus.len(), k])?;
        Ok(())
    }

    fn model(&self) -> Result<Box<dyn TopicModel>> {
        model(&self.config, &self.state()?)
    }
}

/// What a learner of this configuration had learned when it gave `state`.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the state is not one of its.
pub fn model(config: &CtmConfig, state: &Tensors) -> Result<Box<dyn TopicModel>> {
    let numbers = |name| unpack_any(state, name).map(|(_, numbers)| numbers.to_vec());
    let law = Law::new(numbers("mean")?, numbers("covariance")?, numbers("topics")?)?;
    Ok(Box::new(CtmModel { law, num_draws: config.num_draws }))
}

/// Correlated topics as they are.
#[derive(Debug)]
struct CtmModel {
    law: Law,
    num_draws: usize,
}

impl CtmModel {
    fn mode(&self, document: Document<'_>) -> Result<Vec<f64>> {
        document.check(self.num_words())?;
        let mut mode = self.law.mean.clone();
        self.law.climb(document, &mut mode, MOST_ROUNDS)?;
        Ok(mode)
    }
}

impl TopicModel for CtmModel {
    fn name(&self) -> &'static str {
        "ctm"
    }

    fn num_words(&self) -> usize {
        self.law.topics.len() / self.law.mean.len()
    }

    fn completion(&self, observed: Document<'_>, stream: Stream) -> Result<Vec<f64>> {
        let shares = self.shares(observed, stream)?;
        Ok(self.law.topics.chunks_exact(shares.len()).map(|row| dot(&shares, row)).collect())
    }

    fn bound(&self, document: Document<'_>, stream: Stream) -> Result<LogDensity> {
        let mode = self.mode(document)?;
        let draws = self.law.draws(document, &mode, self.num_draws, stream)?;
        Ok(LogDensity::of_mean(&draws.log_weights))
    }

    fn topics(&self) -> Vec<Vec<f64>> {
        let k = self.law.mean.len();
        let topic = |k_| self.law.topics.iter().skip(k_).step_by(k).copied().collect();
        (0..k).map(topic).collect()
    }

    /// The mean of θ over weighted draws.
    fn shares(&self, document: Document<'_>, stream: Stream) -> Result<Vec<f64>> {
        let mode = self.mode(document)?;
        let draws = self.law.draws(document, &mode, self.num_draws, stream)?;
        let log_sum = log_sum_exp(&draws.log_weights);
        let mut mean = vec![0.0; mode.len()];
        for (shares, log_weight) in draws.shares.iter().zip(&draws.log_weights) {
            let weight = (log_weight - log_sum).exp();
            mean.iter_mut().zip(shares).for_each(|(sum, share)| *sum += weight * share);
        }
        Ok(mean)
    }
}
