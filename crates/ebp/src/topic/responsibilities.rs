//! Which topic each word of each document belongs to, without storing it: r_dwk = s_dk t_wk / Σ_j s_dj t_wj.
//!
//! A document keeps its shares s_d `[K]` and a number per distinct word, c / Σ_k s_dk t_wk. From these the sums
//! Σ_d c_dw r_dwk are added up word by word, each over its documents in their order, on any number of threads.

use rayon::prelude::*;

use super::{Corpus, Document};

/// Where each word occurs: documents and places among the distinct words of all documents.
#[derive(Debug, Default)]
pub(super) struct ByWord {
    starts: Vec<usize>,
    places: Vec<(u32, u32)>,
}

impl ByWord {
    #[allow(clippy::cast_possible_truncation, reason = "documents and words are counted in u32")]
    pub(super) fn new(corpus: &Corpus) -> Self {
        let mut starts = vec![0; corpus.num_words() + 1];
        for document in corpus.documents() {
            for &word in document.words {
                starts[word as usize + 1] += 1;
            }
        }
        for word in 0..corpus.num_words() {
            starts[word + 1] += starts[word];
        }
        let mut next = starts.clone();
        let mut places = vec![(0, 0); corpus.offsets().num_elements()];
        let mut place = 0;
        for (index, document) in corpus.documents().enumerate() {
            for &word in document.words {
                places[next[word as usize]] = (index as u32, place);
                next[word as usize] += 1;
                place += 1;
            }
        }
        Self { starts, places }
    }
}

/// The shares of all documents and the ratios of all their words.
#[derive(Debug)]
pub(super) struct Responsibilities {
    /// s, `[D, K]`.
    shares: Vec<f64>,
    /// c / Σ_k s_k t_wk, of every distinct word of every document.
    ratios: Vec<f64>,
    num_topics: usize,
}

impl Responsibilities {
    /// Visits every document with its row of `rows` `[D, width]`: `visit` moves the row, writes shares and
    /// ratios, and says something, which is returned in the order of the documents.
    pub(super) fn visit<T: Send, S>(
        corpus: &Corpus,
        num_topics: usize,
        rows: &mut [f64],
        space: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, Document<'_>, &mut [f64], &mut [f64], &mut [f64]) -> T + Sync + Send,
    ) -> (Self, Vec<T>) {
        let width = rows.len() / corpus.len();
        let mut shares = vec![0.0; corpus.len() * num_topics];
        let mut ratios = vec![0.0; corpus.offsets().num_elements()];
        let mut rest = ratios.as_mut_slice();
        let mut parts = Vec::with_capacity(corpus.len());
        for document in corpus.documents() {
            let (head, tail) = rest.split_at_mut(document.words.len());
            parts.push((document, head));
            rest = tail;
        }
        let said = parts
            .into_par_iter()
            .zip(rows.par_chunks_exact_mut(width))
            .zip(shares.par_chunks_exact_mut(num_topics))
            .map_init(space, |space, (((document, ratios), row), shares)| {
                visit(space, document, row, shares, ratios)
            })
            .collect();
        (Self { shares, ratios, num_topics }, said)
    }

    /// Σ_d c_dw r_dwk, `[V, K]`, for the topics t `[V, K]` that the ratios were made with.
    pub(super) fn sums(&self, by_word: &ByWord, topics: &[f64]) -> Vec<f64> {
        let k = self.num_topics;
        let mut sums = vec![0.0; topics.len()];
        sums.par_chunks_exact_mut(k).enumerate().for_each(|(word, sum)| {
            let occurrences = by_word.starts[word]..by_word.starts[word + 1];
            for &(document, place) in &by_word.places[occurrences] {
                let ratio = self.ratios[place as usize];
                let shares = &self.shares[document as usize * k..][..k];
                sum.iter_mut().zip(shares).for_each(|(sum, share)| *sum += ratio * share);
            }
            sum.iter_mut().zip(&topics[word * k..][..k]).for_each(|(sum, topic)| *sum *= topic);
        });
        sums
    }
}

/// Σ over rows of K of every column.
pub(super) fn column_sums(rows: &[f64], k: usize) -> Vec<f64> {
    let mut sums = vec![0.0; k];
    for row in rows.chunks_exact(k) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    sums
}

/// Counts by word with as much added to each, as laws over words, `[V, K]`.
pub(super) fn normalised(mut counts: Vec<f64>, k: usize, added: f64) -> Vec<f64> {
    for count in &mut counts {
        *count += added;
    }
    let sums = column_sums(&counts, k);
    for row in counts.chunks_exact_mut(k) {
        row.iter_mut().zip(&sums).for_each(|(count, sum)| *count /= sum);
    }
    counts
}
