//! A document as a mixture of topics with a Dirichlet prior of its shares, for given topics.
//!
//! ```text
//! θ ~ Dirichlet(α),   p(w | θ) = Σ_k θ_k β_kw
//! variational   q(θ) = Dirichlet(γ),  γ_k = α_k + Σ_w c_w r_wk,   r_wk ∝ exp(ψ(γ_k)) exp(E log β_kw)
//! collapsed     r_wk ∝ (α_k + n_k − r_wk) E β_kw,   n_k = Σ_w c_w r_wk               (CVB0)
//! ```
//!
//! The bound of log p is Hoffman's: Σ_w c_w log Σ_k exp(E log θ_k + E log β_kw) − KL(q(θ) ‖ p(θ)). The
//! collapsed responsibilities leave a word's own share out, as Gibbs sampling does, and predict better;
//! they have no bound. Topics are kept by word, `[V, K]`, so that a word's numbers stand together.
#![allow(clippy::needless_range_loop, reason = "numbers run through several arrays at once")]

use super::{Document, TopicModel};
use crate::process::LogDensity;
use crate::process::special::{digamma, ln_gamma};
use crate::rng::Stream;
use crate::{Error, Result};

/// A document's responsibilities stand still when the shares of topics move by less, in words per word.
const TOLERANCE: f64 = 1e-5;
/// Rounds of a document's responsibilities at most.
const MOST_ROUNDS: usize = 200;

/// How the shares of a document are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldIn {
    /// By the variational posterior, whose mean is the answer.
    Variational,
    /// By collapsed responsibilities of order 0.
    Collapsed,
    /// By maximum likelihood: EM for θ with the topics fixed, as in pLSI, started from equal shares and
    /// stopped after ten rounds, which keeps it from the corners.
    Likelihood,
}

/// Topics and the prior of their shares.
#[derive(Clone, Debug)]
pub struct TopicMixture {
    name: &'static str,
    /// α, `[K]`.
    alpha: Vec<f64>,
    /// exp(E log β), `[V, K]`.
    weights: Vec<f64>,
    /// E β, `[V, K]`.
    means: Vec<f64>,
    fold_in: FoldIn,
}

impl TopicMixture {
    /// From topics `[K][V]` that are known.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless every α is above 0 and every topic is a law of at least one word.
    pub fn from_topics(name: &'static str, alpha: &[f64], topics: &[Vec<f64>]) -> Result<Self> {
        let (num_topics, num_words) = (topics.len(), topics.first().map_or(0, Vec::len));
        let mut means = vec![0.0; num_topics * num_words];
        for (k, topic) in topics.iter().enumerate() {
            let sum: f64 = topic.iter().sum();
            let is_law = topic.len() == num_words && topic.iter().all(|&p| p >= 0.0);
            if !is_law || (sum - 1.0).abs() > 1e-9 {
                let expected = format!("{num_words} probabilities that sum to 1");
                return Err(Error::invalid(format!("topic {k}"), expected, sum));
            }
            for (word, p) in topic.iter().enumerate() {
                means[word * num_topics + k] = *p;
            }
        }
        Self::new(name, alpha.to_vec(), means.clone(), means, FoldIn::Collapsed)
    }

    /// From exp(E log β) and E β, both `[V, K]`.
    pub(super) fn new(
        name: &'static str,
        alpha: Vec<f64>,
        weights: Vec<f64>,
        means: Vec<f64>,
        fold_in: FoldIn,
    ) -> Result<Self> {
        if alpha.is_empty() || alpha.iter().any(|a| !(a.is_finite() && *a > 0.0)) {
            return Err(Error::invalid("alpha", "above 0", format!("{alpha:?}")));
        }
        if means.is_empty()
            || !means.len().is_multiple_of(alpha.len())
            || weights.len() != means.len()
        {
            let expected = format!("the words of {} topics", alpha.len());
            return Err(Error::invalid("topics", expected, means.len()));
        }
        if let Some(bad) = weights.iter().chain(&means).find(|x| !x.is_finite() || **x < 0.0) {
            return Err(Error::invalid("topics", "finite and at least 0", bad));
        }
        Ok(Self { name, alpha, weights, means, fold_in })
    }

    /// The same topics, with shares found in another way.
    #[must_use]
    pub fn with_fold_in(self, fold_in: FoldIn) -> Self {
        Self { fold_in, ..self }
    }

    /// α.
    pub fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    /// γ of a document's variational posterior.
    pub(super) fn posterior(&self, document: Document<'_>) -> Vec<f64> {
        let share = document.num_tokens() as f64 / self.alpha.len() as f64;
        let mut gamma: Vec<f64> = self.alpha.iter().map(|a| a + share).collect();
        let mut space = Space::new(self.alpha.len());
        fit(&self.alpha, &self.weights, document, &mut gamma, &mut space, (MOST_ROUNDS, TOLERANCE));
        gamma
    }

    /// E θ of a document.
    fn mean_shares(&self, document: Document<'_>) -> Vec<f64> {
        let mut shares = match self.fold_in {
            FoldIn::Variational => self.posterior(document),
            FoldIn::Collapsed => self.collapsed(document),
            FoldIn::Likelihood => self.likeliest(document),
        };
        let sum: f64 = shares.iter().sum();
        for share in &mut shares {
            *share /= sum;
        }
        shares
    }

    /// α + n by CVB0, from responsibilities by the prior's shares.
    fn collapsed(&self, document: Document<'_>) -> Vec<f64> {
        let k = self.alpha.len();
        let mut own = vec![0.0; document.words.len() * k];
        let mut sums = self.alpha.clone();
        for ((word, count), own) in document.pairs().zip(own.chunks_exact_mut(k)) {
            own.copy_from_slice(&self.alpha);
            responsibilities(own, &self.means[word * k..][..k]);
            sums.iter_mut().zip(&*own).for_each(|(n, r)| *n += count * r);
        }
        let words = document.num_tokens() as f64;
        for _ in 0..MOST_ROUNDS {
            let before = sums.clone();
            for ((word, count), own) in document.pairs().zip(own.chunks_exact_mut(k)) {
                for (r, n) in own.iter_mut().zip(&mut sums) {
                    let others = (*n - *r).max(0.0);
                    *n -= count * *r;
                    *r = others;
                }
                responsibilities(own, &self.means[word * k..][..k]);
                sums.iter_mut().zip(&*own).for_each(|(n, r)| *n += count * r);
            }
            let moved: f64 = sums.iter().zip(&before).map(|(a, b)| (a - b).abs()).sum();
            if moved <= TOLERANCE * words {
                break;
            }
        }
        sums
    }

    /// θ of maximum likelihood, by a few rounds of EM.
    fn likeliest(&self, document: Document<'_>) -> Vec<f64> {
        let k = self.alpha.len();
        let mut shares = vec![1.0 / k as f64; k];
        for _ in 0..10 {
            let mut sums = vec![0.0; k];
            for (word, count) in document.pairs() {
                let means = &self.means[word * k..][..k];
                let p: f64 = shares.iter().zip(means).map(|(share, mean)| share * mean).sum();
                if p > 0.0 {
                    sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += count / p * mean);
                }
            }
            let total: f64 = shares.iter().zip(&sums).map(|(share, sum)| share * sum).sum();
            if total > 0.0 {
                shares.iter_mut().zip(&sums).for_each(|(share, sum)| *share *= sum / total);
            }
        }
        shares
    }
}

impl TopicModel for TopicMixture {
    fn name(&self) -> &'static str {
        self.name
    }

    fn num_words(&self) -> usize {
        self.means.len() / self.alpha.len()
    }

    fn completion(&self, observed: Document<'_>, stream: Stream) -> Result<Vec<f64>> {
        let shares = self.shares(observed, stream)?;
        let law = |means: &[f64]| shares.iter().zip(means).map(|(share, mean)| share * mean).sum();
        Ok(self.means.chunks_exact(shares.len()).map(law).collect())
    }

    fn bound(&self, document: Document<'_>, _stream: Stream) -> Result<LogDensity> {
        document.check(self.num_words())?;
        let gamma = self.posterior(document);
        let value = document_bound(&self.alpha, &self.weights, document, &gamma);
        Ok(LogDensity { value, std_error: 0.0 })
    }

    fn topics(&self) -> Vec<Vec<f64>> {
        let k = self.alpha.len();
        (0..k).map(|topic| self.means.iter().skip(topic).step_by(k).copied().collect()).collect()
    }

    fn shares(&self, document: Document<'_>, _stream: Stream) -> Result<Vec<f64>> {
        document.check(self.num_words())?;
        Ok(self.mean_shares(document))
    }
}

/// Turns shares into responsibilities for a word: r ∝ r β, or 0 where no topic has the word.
fn responsibilities(shares: &mut [f64], means: &[f64]) {
    shares.iter_mut().zip(means).for_each(|(r, mean)| *r *= mean);
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        for r in &mut *shares {
            *r /= sum;
        }
    }
}

/// What the rounds of one document after another are computed in.
pub(super) struct Space {
    /// exp(E log θ), `[K]`.
    pub(super) shares: Vec<f64>,
    sums: Vec<f64>,
}

impl Space {
    pub(super) fn new(num_topics: usize) -> Self {
        Self { shares: vec![0.0; num_topics], sums: vec![0.0; num_topics] }
    }
}

/// Moves γ to the fixed point of a document, from where it is; `space.shares` are those of the last
/// round but one, which γ is the result of. Stops when γ moves by less than the tolerance per word.
/// Returns the rounds it took.
pub(super) fn fit(
    alpha: &[f64],
    weights: &[f64],
    document: Document<'_>,
    gamma: &mut [f64],
    space: &mut Space,
    (most_rounds, tolerance): (usize, f64),
) -> usize {
    let k = alpha.len();
    let Space { shares, sums } = space;
    let words = document.num_tokens() as f64;
    for round in 1..=most_rounds {
        exp_digammas(gamma, shares);
        sums.fill(0.0);
        for (word, count) in document.pairs() {
            let row = &weights[word * k..][..k];
            let ratio = count / dot(shares, row).max(f64::MIN_POSITIVE);
            sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += ratio * weight);
        }
        let mut moved = 0.0;
        for (((gamma, sum), share), a) in gamma.iter_mut().zip(&*sums).zip(&*shares).zip(alpha) {
            let new = a + share * sum;
            moved += (new - *gamma).abs();
            *gamma = new;
        }
        if moved <= tolerance * words {
            return round;
        }
    }
    most_rounds
}

/// exp(ψ(γ_k)): the constant ψ(Σ γ) is left out, because responsibilities are normalised.
fn exp_digammas(gamma: &[f64], out: &mut [f64]) {
    for (out, gamma) in out.iter_mut().zip(gamma) {
        *out = digamma(*gamma).exp();
    }
}

/// Σ a b, in four sums so that it runs in vectors, always in the same order.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (left, right) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// The bound of one document at γ.
pub(super) fn document_bound(
    alpha: &[f64],
    weights: &[f64],
    document: Document<'_>,
    gamma: &[f64],
) -> f64 {
    let k = alpha.len();
    let (alpha_sum, gamma_sum): (f64, f64) = (alpha.iter().sum(), gamma.iter().sum());
    let log_shares: Vec<f64> =
        gamma.iter().map(|gamma| digamma(*gamma) - digamma(gamma_sum)).collect();
    let shares: Vec<f64> = log_shares.iter().map(|log| log.exp()).collect();
    let words: f64 = document
        .pairs()
        .map(|(word, count)| count * dot(&shares, &weights[word * k..][..k]).ln())
        .sum();
    let mut kl = ln_gamma(gamma_sum) - ln_gamma(alpha_sum);
    for ((a, gamma), log) in alpha.iter().zip(gamma).zip(&log_shares) {
        kl += ln_gamma(*a) - ln_gamma(*gamma) + (gamma - a) * log;
    }
    words - kl
}
