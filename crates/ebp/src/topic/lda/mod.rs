//! Latent Dirichlet allocation (Blei, Ng, Jordan, 2003): topics with a Dirichlet prior, learned in three ways.
//!
//! ```text
//! β_k ~ Dirichlet(η),   θ_d ~ Dirichlet(α),   w ~ Σ_k θ_dk β_k
//! ```
//!
//! | `inference` | a step | what it is |
//! |---|---|---|
//! | `gibbs` | a sweep over all words | collapsed Gibbs sampling; topics are averaged over the second half |
//! | `variational` | a sweep over all documents | batch variational Bayes |
//! | `online` | a mini-batch | stochastic variational Bayes (Hoffman, Blei, Bach, 2010) |
//!
//! α has an entry per topic and η is one number; both are fitted unless told otherwise. In the paper's terms
//! f(w; θ) = log Σ_k θ_k β_kw, whose sum over the vocabulary is 1. The law of a document is consistent: that
//! of n words is the marginal of that of n + 1.

mod dirichlet;
mod gibbs;
mod split_merge;
mod variational;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::gibbs::GibbsLda;
pub use self::variational::{VariationalLda, corpus_bound};
use super::{Corpus, TopicLearner, TopicModel};
use crate::tensor::Tensors;
use crate::{Error, Result};

/// How topics are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LdaInference {
    /// Collapsed Gibbs sampling.
    #[default]
    Gibbs,
    /// Batch variational Bayes.
    Variational,
    /// Stochastic variational Bayes.
    Online,
}

/// What latent Dirichlet allocation is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LdaConfig {
    /// K.
    pub num_topics: usize,
    /// How they are learned.
    pub inference: LdaInference,
    /// Σ_k α_k at the start, shared equally.
    pub alpha_sum: f64,
    /// η at the start.
    pub eta: f64,
    /// Whether α is fitted, an entry per topic.
    pub fit_alpha: bool,
    /// Whether η is fitted.
    pub fit_eta: bool,
    /// Documents of a mini-batch (`online`).
    pub batch_size: usize,
    /// τ of the rate ρ_t = (τ + t)^−κ of a mini-batch (`online`).
    pub offset: f64,
    /// κ, above ½ and at most 1 (`online`).
    pub decay: f64,
    /// Rounds of a document's posterior in one step at most (`variational`, `online`).
    pub num_rounds: usize,
    /// The share of the steps before topics are averaged (`gibbs`).
    pub burn_in: f64,
    /// Half way through these, pairs of topics that are alike become one and a broad one becomes two, so often
    /// at most and as long as it helps (`gibbs`).
    pub split_merges: usize,
}

impl Default for LdaConfig {
    fn default() -> Self {
        Self {
            num_topics: 20,
            inference: LdaInference::Gibbs,
            alpha_sum: 1.0,
            eta: 0.05,
            fit_alpha: true,
            fit_eta: true,
            batch_size: 256,
            offset: 10.0,
            decay: 0.7,
            num_rounds: 50,
            burn_in: 0.5,
            split_merges: 8,
        }
    }
}

impl LdaConfig {
    fn check(&self) -> Result<()> {
        for (field, count) in [
            ("lda.num_topics", self.num_topics),
            ("lda.batch_size", self.batch_size),
            ("lda.num_rounds", self.num_rounds),
        ] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        for (field, number) in [("lda.alpha_sum", self.alpha_sum), ("lda.eta", self.eta)] {
            if !(number.is_finite() && number > 0.0) {
                return Err(Error::invalid(field, "above 0", number));
            }
        }
        if !(self.offset.is_finite() && self.offset >= 0.0) {
            return Err(Error::invalid("lda.offset", "at least 0", self.offset));
        }
        if !(self.decay > 0.5 && self.decay <= 1.0) {
            return Err(Error::invalid("lda.decay", "above 0.5 and at most 1", self.decay));
        }
        if !(0.0..1.0).contains(&self.burn_in) {
            return Err(Error::invalid("lda.burn_in", "at least 0 and below 1", self.burn_in));
        }
        Ok(())
    }

    /// α at the start.
    fn first_alpha(&self) -> Vec<f64> {
        vec![self.alpha_sum / self.num_topics as f64; self.num_topics]
    }
}

/// Untrained topics for the documents of `corpus`.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a setting is outside its range.
pub fn learner(
    corpus: Arc<Corpus>,
    config: &LdaConfig,
    seed: u64,
) -> Result<Box<dyn TopicLearner>> {
    Ok(match config.inference {
        LdaInference::Gibbs => Box::new(GibbsLda::new(&corpus, config, seed)?),
        _ => Box::new(VariationalLda::new(corpus, config, seed)?),
    })
}

/// What a learner of this configuration had learned when it gave `state`.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the state is not one of its.
pub fn model(config: &LdaConfig, state: &Tensors) -> Result<Box<dyn TopicModel>> {
    match config.inference {
        LdaInference::Gibbs => gibbs::model(state),
        _ => variational::model(state),
    }
}
