//! Collapsed Gibbs sampling: θ and β are integrated out, every word's topic z is drawn in turn.
//!
//! ```text
//! p(z = k | all others) ∝ (n_dk + α_k) (n_kw + η) / (n_k + V η)      (Griffiths, Steyvers, 2004)
//! ```
//!
//! The documents are cut into `PARTS` parts that are swept side by side with the counts of the sweep before
//! for what the others do (Newman et al., 2009); the parts do not depend on the number of threads, so neither
//! does the result. After each of some sweeps the priors are fitted to the counts. From the second half on,
//! E[β | z] is averaged over sweeps: the average predicts better than any one of them. Half way through the
//! sweeps before it, topics are split and merged (`split_merge.rs`).
//!
//! In the inner loop (n_dk + α_k) / (n_k + V η) is kept up to date, so that a topic costs one addition and one
//! multiplication, in f32, which is exact for counts up to 2²⁴. Weights are added up in `LANES` sums of every
//! eighth topic; a lane is drawn first, then a topic of the lane.
#![allow(clippy::needless_range_loop, reason = "numbers run through several arrays at once")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are below 2^24, and f32 is what a sweep computes in"
)]

use std::ops::Range;

use rayon::prelude::*;

use super::super::learner::{check_names, pack, unpack, unpack_any};
use super::super::responsibilities::normalised;
use super::super::{Corpus, FoldIn, TopicLearner, TopicMixture, TopicModel};
use super::{LdaConfig, dirichlet};
use crate::nn::{Record, Step};
use crate::rng::Stream;
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::{Error, Result};

/// Parts that are swept side by side.
const PARTS: usize = 4;
/// Sums that are kept side by side.
const LANES: usize = 8;
/// Sweeps between two fits of the priors, and before the first.
const FIT_EVERY: u64 = 5;
const FIT_FROM: u64 = 10;
/// Rounds of the fixed point in one fit.
const FIT_ROUNDS: usize = 5;
/// Counts are exact in f32 below this.
const MOST: u64 = 1 << 24;

/// Topics learned by collapsed Gibbs sampling.
#[derive(Debug)]
pub struct GibbsLda {
    config: LdaConfig,
    num_words: usize,
    /// Topics with those that fill up the last group of lanes.
    width: usize,
    /// Every word of every document.
    tokens: Vec<u32>,
    /// Where documents begin and end among them.
    documents: Vec<Range<usize>>,
    /// Documents of each part.
    parts: Vec<Range<usize>>,
    /// z.
    topics: Vec<u32>,
    /// n_kw, `[V, width]`.
    counts: Vec<f32>,
    /// α, `[K]`.
    alpha: Vec<f64>,
    eta: f64,
    /// Σ E[β | z] and Σ α over sweeps, `[V, K]` and `[K]`, and of how many.
    mean_topics: Vec<f64>,
    mean_alpha: Vec<f64>,
    num_means: f64,
}

impl GibbsLda {
    /// Words in topics at random.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range, or a word or a document is too frequent
    /// or too long for counts in f32.
    pub fn new(corpus: &Corpus, config: &LdaConfig, seed: u64) -> Result<Self> {
        config.check()?;
        let (k, v) = (config.num_topics, corpus.num_words());
        let mut totals = vec![0_u64; v];
        let (mut tokens, mut documents) = (Vec::new(), Vec::with_capacity(corpus.len()));
        for document in corpus.documents() {
            let start = tokens.len();
            tokens.extend(document.tokens());
            documents.push(start..tokens.len());
            for (word, count) in document.words.iter().zip(document.counts) {
                totals[*word as usize] += u64::from(*count);
            }
        }
        let longest = documents.iter().map(|range| range.len() as u64).max().unwrap_or(0);
        let most = totals.iter().copied().max().unwrap_or(0).max(longest);
        if most >= MOST {
            let expected = "below 2^24; `lda.inference = \"online\"` has no such limit";
            return Err(Error::invalid(
                "occurrences of a word or words of a document",
                expected,
                most,
            ));
        }
        let mut uniforms = vec![0.0_f32; tokens.len()];
        Stream::new(seed, "lda topics").fill_uniform(0, 0, &mut uniforms);
        let topics = uniforms.iter().map(|u| ((u * k as f32) as u32).min(k as u32 - 1)).collect();
        let parts = parts_of(&documents, tokens.len());
        let width = k.next_multiple_of(LANES);
        let (mean_topics, mean_alpha) = (vec![0.0; v * k], vec![0.0; k]);
        let mut found = Self {
            config: config.clone(),
            num_words: v,
            width,
            tokens,
            documents,
            parts,
            topics,
            counts: Vec::new(),
            alpha: config.first_alpha(),
            eta: config.eta,
            mean_topics,
            mean_alpha,
            num_means: 0.0,
        };
        found.count();
        Ok(found)
    }

    /// Every word of every document.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Where documents begin and end among them.
    pub(super) fn documents(&self) -> &[Range<usize>] {
        &self.documents
    }

    /// z.
    pub(super) fn topics(&self) -> &[u32] {
        &self.topics
    }

    /// Puts words in other topics.
    pub(super) fn set_topics(&mut self, topics: Vec<u32>) {
        self.topics = topics;
        self.count();
    }

    /// α and η.
    pub(super) fn priors(&self) -> (&[f64], f64) {
        (&self.alpha, self.eta)
    }

    /// V.
    pub(super) fn num_words(&self) -> usize {
        self.num_words
    }

    /// n_kw of every topic.
    pub(super) fn columns(&self) -> Vec<Vec<f64>> {
        let column = |topic: usize| {
            self.counts.iter().skip(topic).step_by(self.width).map(|n| f64::from(*n)).collect()
        };
        (0..self.config.num_topics).map(column).collect()
    }

    /// n_kw from z.
    fn count(&mut self) {
        self.counts = vec![0.0; self.num_words * self.width];
        for (&word, &topic) in self.tokens.iter().zip(&self.topics) {
            self.counts[word as usize * self.width + topic as usize] += 1.0;
        }
    }

    /// n_k.
    fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        for row in self.counts.chunks_exact(self.width) {
            sums.iter_mut().zip(row).for_each(|(sum, n)| *sum += f64::from(*n));
        }
        sums
    }

    /// Draws every word's topic. Returns −log p(w | all other words and topics) per word.
    pub(super) fn sweep(&mut self, stream: Stream) -> f64 {
        let sums = self.sums();
        let (tokens, width) = (&self.tokens, self.width);
        let mut rest = self.topics.as_mut_slice();
        let mut jobs = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let documents = &self.documents[part.clone()];
            let length = documents.iter().map(Range::len).sum();
            let (head, tail) = rest.split_at_mut(length);
            jobs.push((documents, head));
            rest = tail;
        }
        let (alpha, eta, v) = (&self.alpha, self.eta, self.num_words);
        let (counts, alpha_sum) = (&self.counts, self.alpha.iter().sum::<f64>());
        let swept: Vec<(Vec<f32>, f64)> = jobs
            .into_par_iter()
            .map(|(documents, topics)| {
                let mut part = Part {
                    counts: counts.clone(),
                    sums: sums.clone(),
                    alpha: padded(alpha, width),
                    eta: eta as f32,
                    eta_sum: eta * v as f64,
                    width,
                };
                let start = documents.first().map_or(0, |range| range.start);
                let mut log_sum = 0.0;
                for range in documents {
                    let topics = &mut topics[range.start - start..range.end - start];
                    log_sum +=
                        part.sweep(&tokens[range.clone()], topics, stream, range.start as u64);
                    let others = alpha_sum + range.len() as f64 - 1.0;
                    log_sum -= range.len() as f64 * others.max(f64::MIN_POSITIVE).ln();
                }
                (part.counts, log_sum)
            })
            .collect();
        // Σ_parts (new − old) + old, in whole numbers.
        self.counts.par_chunks_mut(1 << 12).enumerate().for_each(|(block, counts)| {
            for (offset, count) in counts.iter_mut().enumerate() {
                let place = (block << 12) + offset;
                let sum: f32 = swept.iter().map(|(part, _)| part[place] - *count).sum();
                *count += sum;
            }
        });
        -swept.iter().map(|(_, log_sum)| log_sum).sum::<f64>() / self.tokens.len() as f64
    }

    /// Fits α to n_dk and η to n_kw.
    fn fit_priors(&mut self) {
        let (k, width) = (self.config.num_topics, self.width);
        if self.config.fit_alpha {
            let longest = self.documents.iter().map(Range::len).max().unwrap_or(0);
            let mut lengths = vec![0; longest + 1];
            let mut histograms = vec![Vec::new(); k];
            let mut counts = vec![0_usize; k];
            for range in &self.documents {
                lengths[range.len()] += 1;
                counts.fill(0);
                for &topic in &self.topics[range.clone()] {
                    counts[topic as usize] += 1;
                }
                for (histogram, &count) in histograms.iter_mut().zip(&counts) {
                    add(histogram, count);
                }
            }
            dirichlet::fixed_point(&mut self.alpha, &histograms, &lengths, FIT_ROUNDS);
        }
        if self.config.fit_eta {
            let (mut histogram, mut lengths) = (Vec::new(), Vec::new());
            for row in self.counts.chunks_exact(width) {
                row[..k].iter().for_each(|&count| add(&mut histogram, whole(f64::from(count))));
            }
            self.sums()[..k].iter().for_each(|&sum| add(&mut lengths, whole(sum)));
            let words = self.num_words as f64;
            self.eta =
                dirichlet::fixed_point_symmetric(self.eta, &histogram, &lengths, words, FIT_ROUNDS);
        }
    }

    /// E[β | z], `[V, K]`, by `use_it`.
    fn topics_now(&self, mut use_it: impl FnMut(usize, f64)) {
        let k = self.config.num_topics;
        let eta_sum = self.eta * self.num_words as f64;
        let inverse: Vec<f64> = self.sums().iter().map(|sum| 1.0 / (sum + eta_sum)).collect();
        for (word, row) in self.counts.chunks_exact(self.width).enumerate() {
            for (topic, (count, inverse)) in row[..k].iter().zip(&inverse).enumerate() {
                use_it(word * k + topic, (f64::from(*count) + self.eta) * inverse);
            }
        }
    }
}

fn whole(count: f64) -> usize {
    count as usize
}

fn add(histogram: &mut Vec<u64>, count: usize) {
    if histogram.len() <= count {
        histogram.resize(count + 1, 0);
    }
    histogram[count] += 1;
}

fn padded(alpha: &[f64], width: usize) -> Vec<f32> {
    let mut padded = vec![0.0; width];
    padded.iter_mut().zip(alpha).for_each(|(out, a)| *out = *a as f32);
    padded
}

/// Documents in parts of about as many words.
fn parts_of(documents: &[Range<usize>], num_tokens: usize) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = (1..=PARTS)
        .map(|part| {
            let goal = num_tokens * part / PARTS;
            documents.partition_point(|range| range.end <= goal)
        })
        .collect();
    ends.dedup();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts
        .zip(ends.iter().copied())
        .map(|(start, end)| start..end)
        .filter(|p| !p.is_empty())
        .collect()
}

/// What one part of the documents is swept with.
struct Part {
    counts: Vec<f32>,
    sums: Vec<f64>,
    alpha: Vec<f32>,
    eta: f32,
    eta_sum: f64,
    width: usize,
}

impl Part {
    fn sweep(&mut self, tokens: &[u32], topics: &mut [u32], stream: Stream, start: u64) -> f64 {
        let mut uniforms = vec![0.0_f32; tokens.len()];
        stream.fill_uniform(0, start, &mut uniforms);
        // n_dk + α_k, and that over n_k + V η.
        let mut own = self.alpha.clone();
        for &topic in &*topics {
            own[topic as usize] += 1.0;
        }
        let inverse = |sum: f64| (1.0 / (sum + self.eta_sum)) as f32;
        let mut shares: Vec<f32> =
            own.iter().zip(&self.sums).map(|(own, sum)| own * inverse(*sum)).collect();
        let mut weights = vec![0.0_f32; self.width];
        // Logarithms of sixteen weights at once: their product is far from the end of f64.
        let (mut log_sum, mut product) = (0.0, 1.0_f64);
        for (place, ((&word, topic), uniform)) in
            tokens.iter().zip(topics).zip(uniforms).enumerate()
        {
            let row = &mut self.counts[word as usize * self.width..][..self.width];
            let old = *topic as usize;
            row[old] -= 1.0;
            own[old] -= 1.0;
            self.sums[old] -= 1.0;
            shares[old] = own[old] * inverse(self.sums[old]);
            let mut lanes = [0.0_f32; LANES];
            let groups = row.chunks_exact(LANES).zip(shares.chunks_exact(LANES));
            for (out, (row, shares)) in weights.chunks_exact_mut(LANES).zip(groups) {
                for lane in 0..LANES {
                    out[lane] = (row[lane] + self.eta) * shares[lane];
                    lanes[lane] += out[lane];
                }
            }
            let total: f32 = lanes.iter().sum();
            product *= f64::from(total);
            if place % 16 == 15 {
                log_sum += product.ln();
                product = 1.0;
            }
            let new = draw(&weights, &lanes, uniform * total);
            row[new] += 1.0;
            own[new] += 1.0;
            self.sums[new] += 1.0;
            shares[new] = own[new] * inverse(self.sums[new]);
            *topic = new as u32;
        }
        log_sum + product.ln()
    }
}

/// The topic at a place along the weights: a lane by the lanes' sums, then one of its topics.
fn draw(weights: &[f32], lanes: &[f32; LANES], place: f32) -> usize {
    let mut left = place;
    let mut lane = 0;
    while lane + 1 < LANES && left >= lanes[lane] {
        left -= lanes[lane];
        lane += 1;
    }
    // Rounding may lead past the last: the last with a weight is taken.
    let mut last = lane;
    for place in (lane..weights.len()).step_by(LANES) {
        if weights[place] > 0.0 {
            last = place;
            if left < weights[place] {
                break;
            }
            left -= weights[place];
        }
    }
    last
}

/// What is in a state. The counts follow from the topics of the words; they are there for who has no words.
const NAMES: [&str; 7] =
    ["alpha", "eta", "topics", "mean_topics", "mean_alpha", "num_means", "counts"];

impl TopicLearner for GibbsLda {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let nats = self.sweep(step.stream);
        let is_half_way = step.number == (0.5 * self.config.burn_in * step.num_steps as f64) as u64;
        if is_half_way {
            self.split_and_merge(self.config.split_merges, step.stream.child(0));
        }
        if step.number >= FIT_FROM && step.number.is_multiple_of(FIT_EVERY) {
            self.fit_priors();
        }
        if step.progress() >= self.config.burn_in {
            let mut sums = std::mem::take(&mut self.mean_topics);
            self.topics_now(|place, mean| sums[place] += mean);
            self.mean_topics = sums;
            self.mean_alpha.iter_mut().zip(&self.alpha).for_each(|(sum, a)| *sum += a);
            self.num_means += 1.0;
        }
        let alpha_sum = self.alpha.iter().sum();
        Ok(vec![("nats", nats), ("alpha_sum", alpha_sum), ("eta", self.eta)])
    }

    fn state(&self) -> Result<Tensors> {
        let (k, v) = (self.config.num_topics, self.num_words);
        let (eta, num_means) = ([self.eta], [self.num_means]);
        let rows = self.counts.chunks_exact(self.width);
        let counts: Vec<f64> =
            rows.flat_map(|row| row[..k].iter().map(|n| f64::from(*n))).collect();
        let mut state = pack(&[
            ("alpha", &[k], &self.alpha),
            ("eta", &[1], &eta),
            ("mean_topics", &[v, k], &self.mean_topics),
            ("mean_alpha", &[k], &self.mean_alpha),
            ("num_means", &[1], &num_means),
            ("counts", &[v, k], &counts),
        ])?;
        let topics = self.topics.iter().map(|&topic| i64::from(topic)).collect();
        let topics = Tensor::from_values(vec![self.topics.len()], TensorValues::I64(topics))?;
        state.insert("topics".to_owned(), topics);
        Ok(state)
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let (k, v) = (self.config.num_topics, self.num_words);
        check_names(state, &NAMES)?;
        let topics = match state.get("topics").map(Tensor::values) {
            Some(TensorValues::I64(topics)) if topics.len() == self.topics.len() => topics,
            _ => {
                let expected = format!("{} whole numbers", self.topics.len());
                return Err(Error::invalid("topics", expected, "something else"));
            }
        };
        let topic = |&topic: &i64| {
            let found = u32::try_from(topic).ok().filter(|&topic| (topic as usize) < k);
            found.ok_or_else(|| Error::invalid("topics", format!("below {k}"), topic))
        };
        self.topics = topics.iter().map(topic).collect::<Result<_>>()?;
        self.alpha = unpack(state, "alpha", &[k])?;
        self.eta = unpack(state, "eta", &[1])?[0];
        self.mean_topics = unpack(state, "mean_topics", &[v, k])?;
        self.mean_alpha = unpack(state, "mean_alpha", &[k])?;
        self.num_means = unpack(state, "num_means", &[1])?[0];
        self.count();
        Ok(())
    }

    fn model(&self) -> Result<Box<dyn TopicModel>> {
        model(&self.state()?)
    }
}

/// Topics of a state: their mean over sweeps, or those of the last sweep while there is none.
pub(super) fn model(state: &Tensors) -> Result<Box<dyn TopicModel>> {
    let numbers = |name| unpack_any(state, name).map(|(_, numbers)| numbers);
    let count = numbers("num_means")?.first().copied().unwrap_or(0.0);
    let (mut alpha, eta) = (numbers("alpha")?.to_vec(), numbers("eta")?);
    let means = if count > 0.0 {
        alpha = numbers("mean_alpha")?.iter().map(|sum| sum / count).collect();
        numbers("mean_topics")?.iter().map(|sum| sum / count).collect()
    } else {
        normalised(
            numbers("counts")?.to_vec(),
            alpha.len().max(1),
            eta.first().copied().unwrap_or(0.0),
        )
    };
    Ok(Box::new(TopicMixture::new("lda", alpha, means.clone(), means, FoldIn::Collapsed)?))
}
