//! Topic models: exchangeable laws of words from a finite vocabulary.
//!
//! A document is a set of n words w₁, …, wₙ. With a latent θ per document,
//!
//! ```text
//! p(w₁, …, wₙ) = ∫ Π_i p(w_i | θ) p(θ) dθ,     p(w | θ) = exp f(w; θ) / Σ_v exp f(v; θ)
//! ```
//!
//! is the paper's process on a finite alphabet, where the sum over the vocabulary is exact. Mixtures of
//! topics have p(w | θ) = Σ_k θ_k β_kw: [`lda`], [`plsi`] and [`ctm`] differ by p(θ). [`rsm`] has no such
//! θ: its laws of n and of n + 1 words do not agree.
//!
//! Everything is judged in one way, [`held_out`], through one trait, [`TopicModel`]. What learns is a
//! [`TopicLearner`]; what is judged is the model that it gives.

pub mod bayesian_sets;
mod coherence;
mod corpus;
pub mod ctm;
pub mod energy_based;
pub mod held_out;
pub mod lda;
mod learner;
mod mixture;
pub mod plsi;
mod responsibilities;
pub mod rsm;

use std::fmt::Debug;

pub use self::coherence::{Coherence, coherence, top_words};
pub use self::corpus::{Corpus, Document};
pub use self::learner::{Batches, TopicLearner};
pub use self::mixture::{FoldIn, TopicMixture};
use crate::Result;
use crate::process::LogDensity;
use crate::rng::Stream;

/// A law of documents, ready to be judged.
///
/// The order of a document's words does not matter to any answer, nor does their number; a document
/// may be empty. Randomness, where a model needs it, comes from `stream` alone.
pub trait TopicModel: Debug + Send + Sync {
    /// The name under which results are reported, such as `lda`.
    fn name(&self) -> &'static str;

    /// V, the size of the vocabulary.
    fn num_words(&self) -> usize;

    /// p(w | observed) of one further word, `[V]`: every entry at least 0, their sum 1. It may be a
    /// mixture over draws of the latent.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a word is outside the vocabulary.
    fn completion(&self, observed: Document<'_>, stream: Stream) -> Result<Vec<f64>>;

    /// A lower bound of log p(w₁, …, wₙ) in nats, words as a sequence (no multinomial coefficient),
    /// or an estimate of one with its standard error.
    ///
    /// # Errors
    ///
    /// As [`completion`](Self::completion).
    fn bound(&self, document: Document<'_>, stream: Stream) -> Result<LogDensity>;

    /// How typical each word is of each topic, `[K][V]`: probabilities, or weights of a network.
    fn topics(&self) -> Vec<Vec<f64>>;

    /// How much of each topic is in a document, `[K]`: θ, or what stands in its place.
    ///
    /// # Errors
    ///
    /// As [`completion`](Self::completion).
    fn shares(&self, document: Document<'_>, stream: Stream) -> Result<Vec<f64>>;
}
