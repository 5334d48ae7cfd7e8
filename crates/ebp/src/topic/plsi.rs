//! Probabilistic latent semantic indexing (Hofmann, 1999): LDA without a prior, by tempered EM.
//!
//! ```text
//! p(w | d) = Σ_k θ_dk β_kw,   r_dwk ∝ (θ_dk β_kw)^τ,   θ_dk ∝ Σ_w c_dw r_dwk,   β_kw ∝ ε + Σ_d c_dw r_dwk
//! ```
//!
//! τ = 1 is EM for the likelihood; τ < 1 keeps shares apart from the corners and generalises better. ε gives
//! words that a topic never had a probability. pLSI says nothing about new documents: their θ is found by
//! likelihood (`FoldIn::Likelihood`), and the bound of whole documents is that of LDA with α = 1, the flat
//! prior whose mode is this θ (Girolami, Kabán, 2003).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::learner::{check_names, pack, unpack, unpack_any};
use super::mixture::dot;
use super::responsibilities::{ByWord, Responsibilities, normalised};
use super::{Corpus, FoldIn, TopicLearner, TopicMixture, TopicModel};
use crate::nn::{Record, Step};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// What pLSI is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlsiConfig {
    /// K.
    pub num_topics: usize,
    /// τ, above 0 and at most 1.
    pub temper: f64,
    /// ε, above 0.
    pub smoothing: f64,
}

impl Default for PlsiConfig {
    fn default() -> Self {
        Self { num_topics: 20, temper: 0.8, smoothing: 0.05 }
    }
}

/// Topics learned by EM.
#[derive(Debug)]
pub struct Plsi {
    corpus: Arc<Corpus>,
    config: PlsiConfig,
    by_word: ByWord,
    /// θ, `[D, K]`.
    shares: Vec<f64>,
    /// β, `[V, K]`.
    topics: Vec<f64>,
}

impl Plsi {
    /// Topics near to equal ones, at random.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range.
    pub fn new(corpus: Arc<Corpus>, config: &PlsiConfig, seed: u64) -> Result<Self> {
        let k = config.num_topics;
        if k == 0 {
            return Err(Error::invalid("plsi.num_topics", "at least 1", k));
        }
        if !(config.temper > 0.0 && config.temper <= 1.0) {
            return Err(Error::invalid("plsi.temper", "above 0 and at most 1", config.temper));
        }
        if !(config.smoothing.is_finite() && config.smoothing > 0.0) {
            return Err(Error::invalid("plsi.smoothing", "above 0", config.smoothing));
        }
        let mut noise = vec![0.0_f32; corpus.num_words() * k];
        Stream::new(seed, "plsi topics").fill_uniform(0, 0, &mut noise);
        let topics = normalised(noise.iter().map(|u| f64::from(*u)).collect(), k, 0.5);
        let shares = vec![1.0 / k as f64; corpus.len() * k];
        Ok(Self { config: config.clone(), by_word: ByWord::new(&corpus), shares, topics, corpus })
    }
}

impl TopicLearner for Plsi {
    fn step(&mut self, _step: &Step) -> Result<Record> {
        let (k, temper) = (self.config.num_topics, self.config.temper);
        let power = |x: f64| if temper < 1.0 { x.powf(temper) } else { x };
        let tempered: Vec<f64> = self.topics.iter().map(|&p| power(p)).collect();
        let topics = &self.topics;
        let (words, nats) = Responsibilities::visit(
            &self.corpus,
            k,
            &mut self.shares,
            || vec![0.0; k],
            |sums, document, row, shares, ratios| {
                let mut nats = 0.0;
                shares.iter_mut().zip(&*row).for_each(|(share, p)| *share = power(*p));
                sums.fill(0.0);
                for ((word, count), ratio) in document.pairs().zip(ratios) {
                    let place = word * k..(word + 1) * k;
                    nats -= count * dot(row, &topics[place.clone()]).ln();
                    let weights = &tempered[place];
                    *ratio = count / dot(shares, weights).max(f64::MIN_POSITIVE);
                    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += *ratio * weight);
                }
                let words = document.num_tokens() as f64;
                for ((p, share), sum) in row.iter_mut().zip(&*shares).zip(&*sums) {
                    *p = share * sum / words;
                }
                nats
            },
        );
        self.topics = normalised(words.sums(&self.by_word, &tempered), k, self.config.smoothing);
        Ok(vec![("nats", nats.iter().sum::<f64>() / self.corpus.num_tokens() as f64)])
    }

    fn state(&self) -> Result<Tensors> {
        let (k, v) = (self.config.num_topics, self.corpus.num_words());
        pack(&[
            ("shares", &[self.corpus.len(), k], &self.shares),
            ("topics", &[v, k], &self.topics),
        ])
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let (k, v) = (self.config.num_topics, self.corpus.num_words());
        check_names(state, &["shares", "topics"])?;
        self.shares = unpack(state, "shares", &[self.corpus.len(), k])?;
        self.topics = unpack(state, "topics", &[v, k])?;
        Ok(())
    }

    fn model(&self) -> Result<Box<dyn TopicModel>> {
        model(&self.state()?)
    }
}

/// What pLSI had learned when it gave `state`.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the state is not one of its.
pub fn model(state: &Tensors) -> Result<Box<dyn TopicModel>> {
    let (dims, topics) = unpack_any(state, "topics")?;
    let (alpha, topics) = (vec![1.0; dims.last().copied().unwrap_or(0)], topics.to_vec());
    let model = TopicMixture::new("plsi", alpha, topics.clone(), topics, FoldIn::Likelihood)?;
    Ok(Box::new(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::Document;

    /// EM never lowers the likelihood; with a topic per document, θ and β can be those of the documents.
    #[test]
    fn em_climbs_to_the_documents_themselves() {
        let documents = [vec![(0, 5), (1, 3)], vec![(2, 4), (3, 4)], vec![(4, 2), (0, 6)]];
        let corpus = Arc::new(Corpus::new(5, documents).unwrap());
        let config = PlsiConfig { num_topics: 3, temper: 1.0, smoothing: 1e-12 };
        let mut plsi = Plsi::new(corpus.clone(), &config, 3).unwrap();
        let mut before = f64::INFINITY;
        for number in 0..400 {
            let stream = Stream::new(0, "step");
            let step = Step { number, num_steps: 400, stream, learning_rate_factor: 1.0 };
            let nats = plsi.step(&step).unwrap()[0].1;
            assert!(nats <= before + 1e-9, "{number}: {before} to {nats}");
            before = nats;
        }
        let entropy = |document: Document<'_>| -> f64 {
            let n = document.num_tokens() as f64;
            document.pairs().map(|(_, count)| -count * (count / n).ln()).sum()
        };
        let expected = corpus.documents().map(entropy).sum::<f64>() / corpus.num_tokens() as f64;
        assert!((before - expected).abs() < 1e-6, "{before} {expected}");
    }
}
