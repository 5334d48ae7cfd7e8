//! Held-out perplexity, the same for every topic model: by document completion and by a bound.
//!
//! ```text
//! completion   exp(− Σ_d Σ_{w in the hidden half of d} log p(w | other half of d) / Σ_d hidden words)
//! bound        exp(− Σ_d bound of log p(w₁, …, wₙ) / Σ_d n_d)
//! ```
//!
//! Halves are drawn once per seed: the document's words in the order of their numbers, each with a
//! uniform number, the ⌊n/2⌋ words with the smallest ones are observed. A document of one word has
//! nothing observed and one word to be scored.
//!
//! The standard error is that of a ratio over documents, D/(D−1) Σ (L_d − r n_d)² / (Σ n_d)², with
//! errors of the bounds themselves added as if they all had one sign.

use rayon::prelude::*;

use super::{Corpus, Document, TopicModel};
use crate::process::LogDensity;
use crate::rng::Stream;
use crate::{Error, Result};

/// exp of minus the nats per word, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// The perplexity.
    pub value: f64,
    /// Its standard error over documents and over the draws of an estimate.
    pub std_error: f64,
    /// The part of it that comes from estimates: 0 where bounds are exact.
    pub estimate_error: f64,
    /// Words that were scored.
    pub num_tokens: u64,
}

/// A document in two halves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves {
    observed: (Vec<u32>, Vec<u32>),
    hidden: (Vec<u32>, Vec<u32>),
}

impl Halves {
    /// Splits a document's words at random.
    pub fn new(document: Document<'_>, stream: Stream) -> Self {
        let tokens = document.tokens();
        let order = stream.permutation(tokens.len());
        let half = |part: &[usize]| {
            let mut chosen: Vec<u32> = part.iter().map(|&place| tokens[place]).collect();
            chosen.sort_unstable();
            let runs = chosen.chunk_by(|a, b| a == b);
            #[allow(clippy::cast_possible_truncation, reason = "no more than a count of u32")]
            runs.map(|run| (run[0], run.len() as u32)).unzip()
        };
        let (observed, hidden) = order.split_at(tokens.len() / 2);
        Self { observed: half(observed), hidden: half(hidden) }
    }

    /// The words that a model is told.
    pub fn observed(&self) -> Document<'_> {
        Document { words: &self.observed.0, counts: &self.observed.1 }
    }

    /// The words that it is judged by.
    pub fn hidden(&self) -> Document<'_> {
        Document { words: &self.hidden.0, counts: &self.hidden.1 }
    }
}

/// The stream of the halves and draws of document `index` under `seed`.
pub fn document_stream(seed: u64, index: usize) -> Stream {
    Stream::new(seed, "held out").child(index as u64)
}

/// Perplexity of the hidden halves of documents, given the others.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the model and the documents have other vocabularies, or the model gives a
/// word that occurs no probability.
pub fn completion_perplexity(
    model: &dyn TopicModel,
    documents: &Corpus,
    seed: u64,
) -> Result<Perplexity> {
    check_vocabulary(model, documents)?;
    let score = |index: usize| -> Result<(LogDensity, u64)> {
        let stream = document_stream(seed, index);
        let halves = Halves::new(documents.document(index), stream.child(0));
        let law = model.completion(halves.observed(), stream.child(1))?;
        let hidden = halves.hidden();
        let value = hidden.pairs().map(|(word, count)| count * law[word].ln()).sum();
        check_score(model, index, value)?;
        Ok((LogDensity { value, std_error: 0.0 }, hidden.num_tokens()))
    };
    perplexity(&(0..documents.len()).into_par_iter().map(score).collect::<Result<Vec<_>>>()?)
}

/// Perplexity by a bound of the law of whole documents.
///
/// # Errors
///
/// As [`completion_perplexity`].
pub fn bound_perplexity(
    model: &dyn TopicModel,
    documents: &Corpus,
    seed: u64,
) -> Result<Perplexity> {
    check_vocabulary(model, documents)?;
    let score = |index: usize| -> Result<(LogDensity, u64)> {
        let document = documents.document(index);
        let bound = model.bound(document, document_stream(seed, index).child(2))?;
        check_score(model, index, bound.value)?;
        Ok((bound, document.num_tokens()))
    };
    // The longest document alone first: what a model makes once is made by all threads together.
    let length = |index: &usize| documents.document(*index).num_tokens();
    let longest = (0..documents.len()).max_by_key(length).unwrap_or(0);
    score(longest)?;
    perplexity(&(0..documents.len()).into_par_iter().map(score).collect::<Result<Vec<_>>>()?)
}

/// From the log density and the number of words of each document.
///
/// # Errors
///
/// [`Error::InvalidValue`] if there are no words.
pub fn perplexity(scores: &[(LogDensity, u64)]) -> Result<Perplexity> {
    let num_tokens: u64 = scores.iter().map(|(_, count)| count).sum();
    if num_tokens == 0 {
        return Err(Error::invalid("documents", "at least one word", "none"));
    }
    let (total, documents) = (num_tokens as f64, scores.len() as f64);
    let mean = scores.iter().map(|(score, _)| score.value).sum::<f64>() / total;
    let rest = |(score, count): &(LogDensity, u64)| (score.value - mean * *count as f64).powi(2);
    let squares = scores.iter().map(rest).sum::<f64>() * documents / (documents - 1.0).max(1.0);
    let estimate = scores.iter().map(|(score, _)| score.std_error).sum::<f64>() / total;
    let value = (-mean).exp();
    let std_error = value * (squares.sqrt() / total).hypot(estimate);
    Ok(Perplexity { value, std_error, estimate_error: value * estimate, num_tokens })
}

fn check_vocabulary(model: &dyn TopicModel, documents: &Corpus) -> Result<()> {
    if model.num_words() == documents.num_words() {
        return Ok(());
    }
    let expected = format!("over the model's {} words", model.num_words());
    Err(Error::invalid("documents", expected, documents.num_words()))
}

fn check_score(model: &dyn TopicModel, index: usize, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    let field = format!("log p of held-out document {index} by {}", model.name());
    Err(Error::invalid(field, "finite: every word needs a probability above 0", value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_the_document() {
        for tokens in [1_u32, 2, 3, 10, 33] {
            let pairs: Vec<(u32, u32)> = (0..tokens).map(|token| (token / 3, 1)).collect();
            let corpus = Corpus::new(20, [pairs]).unwrap();
            let halves = Halves::new(corpus.document(0), Stream::new(1, "halves"));
            let (observed, hidden) = (halves.observed(), halves.hidden());
            assert_eq!(observed.num_tokens(), u64::from(tokens / 2));
            let mut all = [observed.tokens(), hidden.tokens()].concat();
            all.sort_unstable();
            assert_eq!(all, corpus.document(0).tokens());
        }
    }

    /// Two documents of 1 and 3 words with −1 and −9 nats: 10 nats of 4 words, rest ±1.5.
    #[test]
    fn errors_are_those_of_a_ratio() {
        let score = |value, std_error| LogDensity { value, std_error };
        let found = perplexity(&[(score(-1.0, 0.0), 1), (score(-9.0, 0.4), 3)]).unwrap();
        assert!((found.value - 2.5_f64.exp()).abs() < 1e-12);
        let expected = ((2.0 * (1.5_f64.powi(2) * 2.0)).sqrt() / 4.0).hypot(0.1);
        assert!((found.std_error / found.value - expected).abs() < 1e-12);
        assert!((found.estimate_error / found.value - 0.1).abs() < 1e-12);
        assert!(perplexity(&[]).is_err());
    }
}
