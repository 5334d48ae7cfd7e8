//! A corpus with known topics: words are the cells of a square, topics its rows and columns (Griffiths, Steyvers,
//! 2004).
//!
//! The topics of a document's words come from Pólya's urn, z_i ~ (α_k + n_k) / (Σα + i), which is the law
//! that θ ~ Dirichlet(α) leaves when it is integrated out; the word is a cell of the row or column at random.

use crate::rng::Stream;
use crate::topic::TopicMixture;
use crate::{Error, Result};

/// Cells along a side: 2 · 10 topics over 10² words.
const SIDE: usize = 10;
/// α of every topic.
const ALPHA: f64 = 0.1;
/// Seed of the corpus.
const SEED: u64 = 1;

/// The law that documents are drawn from.
pub(super) fn truth() -> Result<TopicMixture> {
    let topics: Vec<Vec<f64>> = (0..2 * SIDE)
        .map(|topic| {
            let mut law = vec![0.0; SIDE * SIDE];
            (0..SIDE).for_each(|place| law[cell(topic, place)] = 1.0 / SIDE as f64);
            law
        })
        .collect();
    TopicMixture::from_topics("truth", &[ALPHA; 2 * SIDE], &topics)
}

/// The word at a place along a row or column.
fn cell(topic: usize, place: usize) -> usize {
    if topic < SIDE { topic * SIDE + place } else { place * SIDE + topic - SIDE }
}

/// `count` documents of `length` words, as pairs of words and 1.
pub(super) fn documents(count: usize, length: usize) -> Result<Vec<Vec<(u32, u32)>>> {
    if count == 0 || length == 0 {
        let found = format!("{count} documents of {length} words");
        return Err(Error::invalid("data", "at least one document of one word", found));
    }
    Ok((0..count as u64)
        .map(|index| document(length, Stream::new(SEED, "bars").child(index)))
        .collect())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below a small count")]
fn document(length: usize, stream: Stream) -> Vec<(u32, u32)> {
    let mut uniforms = vec![0.0_f32; 2 * length];
    stream.fill_uniform(0, 0, &mut uniforms);
    let mut urn = [ALPHA; 2 * SIDE];
    let word = |pair: &[f32]| {
        let mut left = f64::from(pair[0]) * urn.iter().sum::<f64>();
        let mut topic = 0;
        while topic + 1 < urn.len() && left >= urn[topic] {
            left -= urn[topic];
            topic += 1;
        }
        urn[topic] += 1.0;
        let place = (f64::from(pair[1]) * SIDE as f64) as usize;
        (cell(topic, place.min(SIDE - 1)) as u32, 1)
    };
    uniforms.chunks_exact(2).map(word).collect()
}

/// The cells' names: row and column.
pub(super) fn vocabulary() -> Vec<String> {
    (0..SIDE * SIDE).map(|word| format!("r{}c{}", word / SIDE, word % SIDE)).collect()
}
