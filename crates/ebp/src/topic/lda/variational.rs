//! Variational Bayes: q(β_k) = Dirichlet(λ_k), q(θ_d) = Dirichlet(γ_d).
//!
//! ```text
//! λ_kw = η + Σ_d c_dw r_dwk      (batch)
//! λ ← (1 − ρ) λ + ρ (η + D/|B| Σ_{d in B} c_dw r_dwk),   ρ = (τ + t)^−κ      (online)
//! ```
//!
//! A step goes once over all documents, or over a mini-batch; priors are fitted after it.

use std::sync::Arc;

use rayon::prelude::*;

use super::super::learner::{check_names, pack, unpack, unpack_any};
use super::super::mixture::{Space, document_bound, dot, fit};
use super::super::responsibilities::{ByWord, Responsibilities, column_sums, normalised};
use super::super::{Corpus, FoldIn, TopicLearner, TopicMixture, TopicModel};
use super::{LdaConfig, LdaInference, dirichlet};
use crate::Result;
use crate::nn::{Record, Step};
use crate::process::special::{digamma, ln_gamma};
use crate::rng::Stream;
use crate::tensor::Tensors;

/// γ of a document stands still when it moves by less per word.
const TOLERANCE: f64 = 1e-3;
/// Documents whose sums are added together before those of others.
const BLOCK: usize = 64;
/// Sweeps or batches before the priors are fitted: at the start all topics are alike.
const FIT_FROM: u64 = 5;

/// Topics learned by variational Bayes.
#[derive(Debug)]
pub struct VariationalLda {
    corpus: Arc<Corpus>,
    config: LdaConfig,
    by_word: ByWord,
    /// α, `[K]`.
    alpha: Vec<f64>,
    eta: f64,
    /// λ, `[V, K]`.
    lambda: Vec<f64>,
    /// γ, `[D, K]`; of mini-batches nothing is kept.
    gamma: Vec<f64>,
}

impl VariationalLda {
    /// Topics at random.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a setting is outside its range.
    pub fn new(corpus: Arc<Corpus>, config: &LdaConfig, seed: u64) -> Result<Self> {
        config.check()?;
        let (k, v) = (config.num_topics, corpus.num_words());
        // About Γ(100, 1/100), as Hoffman's start has: 1 + N/10.
        let mut noise = vec![0.0_f32; k * v];
        Stream::new(seed, "lda topics").fill_normal(0, 0, &mut noise);
        let lambda = noise.into_iter().map(|z| 1.0 + 0.1 * f64::from(z)).collect();
        let alpha = config.first_alpha();
        let gamma = match config.inference {
            LdaInference::Online => Vec::new(),
            _ => first_gamma(&alpha, &corpus, 0..corpus.len()),
        };
        let by_word = match config.inference {
            LdaInference::Online => ByWord::default(),
            _ => ByWord::new(&corpus),
        };
        Ok(Self { config: config.clone(), by_word, alpha, eta: config.eta, lambda, gamma, corpus })
    }

    /// The evidence's lower bound of all documents at the parameters as they are.
    pub fn bound(&self) -> f64 {
        corpus_bound(&self.corpus, &self.alpha, self.eta, &self.lambda, &self.gamma)
    }

    fn sweep(&mut self) -> Record {
        let weights = exp_log_topics(&self.lambda, self.config.num_topics);
        let limits = (self.config.num_rounds, TOLERANCE);
        let found = Expectation::new(&self.corpus, &self.alpha, &weights, &mut self.gamma, limits);
        self.lambda = found.words.sums(&self.by_word, &weights);
        self.lambda.iter_mut().for_each(|lambda| *lambda += self.eta);
        found.record()
    }

    fn mini_batch(&mut self, step: &Step) -> Result<(Record, Vec<f64>)> {
        let (count, size) = (self.corpus.len(), self.config.batch_size.min(self.corpus.len()));
        let mut members = step.stream.permutation(count);
        members.truncate(size);
        let batch = self.corpus.select(&members)?;
        let mut gamma = first_gamma(&self.alpha, &batch, 0..batch.len());
        let weights = exp_log_topics(&self.lambda, self.config.num_topics);
        let limits = (self.config.num_rounds, TOLERANCE);
        let found = Expectation::new(&batch, &self.alpha, &weights, &mut gamma, limits);
        let statistics = found.words.sums(&ByWord::new(&batch), &weights);
        let rate = (self.config.offset + 1.0 + step.number as f64).powf(-self.config.decay);
        let scale = count as f64 / size as f64;
        for (lambda, s) in self.lambda.iter_mut().zip(statistics) {
            *lambda = (1.0 - rate) * *lambda + rate * (self.eta + scale * s);
        }
        Ok((found.record(), gamma))
    }

    /// Fits α and η: in full to all documents, by a step of the rate to a batch.
    fn fit_priors(&mut self, gamma: &[f64], rate: f64) {
        let k = self.config.num_topics;
        if self.config.fit_alpha {
            let sums = log_share_sums(gamma, k);
            let mut new = self.alpha.clone();
            dirichlet::newton(&mut new, &sums, (gamma.len() / k) as f64);
            for (alpha, new) in self.alpha.iter_mut().zip(new) {
                *alpha += rate * (new - *alpha);
            }
        }
        if self.config.fit_eta {
            let words = self.corpus.num_words() as f64;
            let sum: f64 = log_topic_sums(&self.lambda, k).iter().sum();
            let new = dirichlet::newton_symmetric(self.eta, sum, words, k as f64);
            self.eta += rate * (new - self.eta);
        }
    }
}

impl TopicLearner for VariationalLda {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let mut record = if self.config.inference == LdaInference::Online {
            let (record, gamma) = self.mini_batch(step)?;
            if step.number >= FIT_FROM {
                let rate = (self.config.offset + 1.0 + step.number as f64).powf(-self.config.decay);
                self.fit_priors(&gamma, rate);
            }
            record
        } else {
            let record = self.sweep();
            if step.number >= FIT_FROM {
                let gamma = std::mem::take(&mut self.gamma);
                self.fit_priors(&gamma, 1.0);
                self.gamma = gamma;
            }
            record
        };
        record.push(("alpha_sum", self.alpha.iter().sum()));
        record.push(("eta", self.eta));
        Ok(record)
    }

    fn state(&self) -> Result<Tensors> {
        let (k, v) = (self.config.num_topics, self.corpus.num_words());
        let eta = [self.eta];
        let mut state = pack(&[
            ("alpha", &[k], &self.alpha),
            ("eta", &[1], &eta),
            ("lambda", &[v, k], &self.lambda),
        ])?;
        if !self.gamma.is_empty() {
            state.extend(pack(&[("gamma", &[self.corpus.len(), k], &self.gamma)])?);
        }
        Ok(state)
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let (k, v) = (self.config.num_topics, self.corpus.num_words());
        check_names(state, &["alpha", "eta", "lambda", "gamma"])?;
        self.alpha = unpack(state, "alpha", &[k])?;
        self.eta = unpack(state, "eta", &[1])?[0];
        self.lambda = unpack(state, "lambda", &[v, k])?;
        if !self.gamma.is_empty() {
            self.gamma = unpack(state, "gamma", &[self.corpus.len(), k])?;
        }
        Ok(())
    }

    fn model(&self) -> Result<Box<dyn TopicModel>> {
        model(&self.state()?)
    }
}

/// Topics of a state.
pub(super) fn model(state: &Tensors) -> Result<Box<dyn TopicModel>> {
    let (_, alpha) = unpack_any(state, "alpha")?;
    let (_, lambda) = unpack_any(state, "lambda")?;
    let k = alpha.len().max(1);
    let weights = exp_log_topics(lambda, k);
    let means = normalised(lambda.to_vec(), k, 0.0);
    let alpha = alpha.to_vec();
    Ok(Box::new(TopicMixture::new("lda", alpha, weights, means, FoldIn::Variational)?))
}

/// γ before anything is known: the prior and an equal share of the words.
fn first_gamma(alpha: &[f64], corpus: &Corpus, members: std::ops::Range<usize>) -> Vec<f64> {
    let k = alpha.len() as f64;
    let row = |index| {
        let share = corpus.document(index).num_tokens() as f64 / k;
        alpha.iter().map(move |a| a + share)
    };
    members.flat_map(row).collect()
}

/// What a sweep over documents finds.
struct Expectation {
    words: Responsibilities,
    rounds: f64,
    nats: f64,
}

impl Expectation {
    fn new(
        corpus: &Corpus,
        alpha: &[f64],
        weights: &[f64],
        gamma: &mut [f64],
        limits: (usize, f64),
    ) -> Self {
        let k = alpha.len();
        let (words, said) = Responsibilities::visit(
            corpus,
            k,
            gamma,
            || Space::new(k),
            |space, document, gamma, shares, ratios| {
                let rounds = fit(alpha, weights, document, gamma, space, limits);
                shares.copy_from_slice(&space.shares);
                let log_sum = digamma(gamma.iter().sum());
                let mut nats = 0.0;
                for ((word, count), ratio) in document.pairs().zip(ratios) {
                    let p = dot(shares, &weights[word * k..][..k]).max(f64::MIN_POSITIVE);
                    *ratio = count / p;
                    nats -= count * (p.ln() - log_sum);
                }
                (rounds, nats)
            },
        );
        let rounds = said.iter().map(|(rounds, _)| rounds).sum::<usize>() as f64;
        let nats = said.iter().map(|(_, nats)| nats).sum::<f64>() / corpus.num_tokens() as f64;
        Self { words, rounds: rounds / corpus.len() as f64, nats }
    }

    /// −E log p(w | θ, β) per word, and the rounds that a document took.
    fn record(&self) -> Record {
        vec![("nats", self.nats), ("rounds", self.rounds)]
    }
}

/// exp(E log β), `[V, K]`.
fn exp_log_topics(lambda: &[f64], k: usize) -> Vec<f64> {
    let logs: Vec<f64> = column_sums(lambda, k).into_iter().map(digamma).collect();
    let mut weights = vec![0.0; lambda.len()];
    weights.par_chunks_exact_mut(k).zip(lambda.par_chunks_exact(k)).for_each(|(weights, row)| {
        for ((weight, lambda), log) in weights.iter_mut().zip(row).zip(&logs) {
            *weight = (digamma(*lambda) - log).exp();
        }
    });
    weights
}

/// Σ_w E log β_kw of every topic.
fn log_topic_sums(lambda: &[f64], k: usize) -> Vec<f64> {
    let words = (lambda.len() / k) as f64;
    let logs: Vec<f64> = column_sums(lambda, k).into_iter().map(digamma).collect();
    let digammas = block_sums(lambda, k, |row, sums| {
        sums.iter_mut().zip(row).for_each(|(sum, lambda)| *sum += digamma(*lambda));
    });
    digammas.iter().zip(logs).map(|(sum, log)| sum - words * log).collect()
}

/// Σ_d E log θ_dk of every topic.
fn log_share_sums(gamma: &[f64], k: usize) -> Vec<f64> {
    block_sums(gamma, k, |row, sums| {
        let log_sum = digamma(row.iter().sum());
        sums.iter_mut().zip(row).for_each(|(sum, gamma)| *sum += digamma(*gamma) - log_sum);
    })
}

/// Sums over rows of K, blocks of them side by side, added in their order.
fn block_sums(rows: &[f64], k: usize, add: impl Fn(&[f64], &mut [f64]) + Sync) -> Vec<f64> {
    let blocks: Vec<Vec<f64>> = rows
        .par_chunks(BLOCK * k)
        .map(|block| {
            let mut sums = vec![0.0; k];
            block.chunks_exact(k).for_each(|row| add(row, &mut sums));
            sums
        })
        .collect();
    column_sums(&blocks.concat(), k)
}

/// The evidence's lower bound of documents at α, η, λ `[V, K]` and γ `[D, K]`, in nats.
pub fn corpus_bound(
    corpus: &Corpus,
    alpha: &[f64],
    eta: f64,
    lambda: &[f64],
    gamma: &[f64],
) -> f64 {
    let k = alpha.len();
    let weights = exp_log_topics(lambda, k);
    let documents: Vec<f64> = (0..corpus.len())
        .into_par_iter()
        .zip(gamma.par_chunks_exact(k))
        .map(|(index, gamma)| document_bound(alpha, &weights, corpus.document(index), gamma))
        .collect();
    let logs: Vec<f64> = column_sums(lambda, k).into_iter().map(digamma).collect();
    let mut kl = 0.0;
    for row in lambda.chunks_exact(k) {
        for (lambda, log) in row.iter().zip(&logs) {
            kl += (lambda - eta) * (digamma(*lambda) - log) - ln_gamma(*lambda) + ln_gamma(eta);
        }
    }
    let words = corpus.num_words() as f64;
    for sum in column_sums(lambda, k) {
        kl += ln_gamma(sum) - ln_gamma(words * eta);
    }
    documents.iter().sum::<f64>() - kl
}
