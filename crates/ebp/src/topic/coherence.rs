//! How often the top words of a topic occur together, by normalised pointwise mutual information.
//!
//! ```text
//! NPMI(v, w) = ln(p(v, w) / (p(v) p(w))) / (− ln p(v, w)),   p = shares of documents
//! ```
//!
//! It is 1 for words that occur together only, 0 for independent ones, −1 for words that never do
//! (Bouma, 2009). A topic's coherence is the mean over the pairs of its top words (Lau et al., 2014); with
//! whole documents in the place of sliding windows, because bags have no order.

use super::{Corpus, TopicModel};

/// Coherence of a model's topics.
#[derive(Clone, Debug, PartialEq)]
pub struct Coherence {
    /// The mean over topics.
    pub mean: f64,
    /// Of every topic.
    pub topics: Vec<f64>,
}

/// The words with the largest weights, largest first, smaller numbers first among equals.
pub fn top_words(weights: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
    order.truncate(count);
    order
}

/// NPMI of the `num_top` top words of every topic in the documents of `reference`. Words that occur in
/// no document have no mutual information: their pairs count as −1.
pub fn coherence(model: &dyn TopicModel, reference: &Corpus, num_top: usize) -> Coherence {
    let tops: Vec<Vec<usize>> =
        model.topics().iter().map(|weights| top_words(weights, num_top)).collect();
    // Documents of every word that is needed, as bits.
    let blocks = reference.len().div_ceil(64);
    let mut bits = vec![Vec::new(); reference.num_words()];
    for &word in tops.iter().flatten() {
        bits[word] = vec![0_u64; blocks];
    }
    for (index, document) in reference.documents().enumerate() {
        for &word in document.words {
            if let Some(block) = bits[word as usize].get_mut(index / 64) {
                *block |= 1 << (index % 64);
            }
        }
    }
    let documents = reference.len() as f64;
    let share = |blocks: &mut dyn Iterator<Item = u64>| {
        f64::from(blocks.map(u64::count_ones).sum::<u32>()) / documents
    };
    let npmi = |v: usize, w: usize| {
        let both = share(&mut bits[v].iter().zip(&bits[w]).map(|(a, b)| a & b));
        if both == 0.0 {
            return -1.0;
        }
        let each = share(&mut bits[v].iter().copied()) * share(&mut bits[w].iter().copied());
        // Together in every document: ln 1 / −ln 1, whose limit is 1.
        if both < 1.0 { (both / each).ln() / -both.ln() } else { 1.0 }
    };
    let topic = |top: &Vec<usize>| {
        let pairs: Vec<f64> = (0..top.len())
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| npmi(top[i], top[j]))
            .collect();
        pairs.iter().sum::<f64>() / pairs.len().max(1) as f64
    };
    let topics: Vec<f64> = tops.iter().map(topic).collect();
    Coherence { mean: topics.iter().sum::<f64>() / topics.len().max(1) as f64, topics }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::TopicMixture;

    #[test]
    fn npmi_by_hand() {
        // Words 0, 1 always together, 2 and 3 never, 0 and 4 independent: ¼ = ½ · ½.
        let documents = [vec![0, 1, 4], vec![0, 1], vec![2, 4], vec![3]];
        let pairs = |words: &Vec<u32>| words.iter().map(|&word| (word, 1)).collect();
        let corpus = Corpus::new(5, documents.iter().map(pairs)).unwrap();
        let topics = [
            vec![0.5, 0.4, 0.0, 0.0, 0.1],
            vec![0.0, 0.0, 0.6, 0.4, 0.0],
            vec![0.6, 0.0, 0.0, 0.0, 0.4],
        ];
        let model = TopicMixture::from_topics("lda", &[1.0; 3], &topics).unwrap();
        let found = coherence(&model, &corpus, 2);
        for (found, expected) in found.topics.iter().zip([1.0, -1.0, 0.0]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        assert_eq!(top_words(&[0.1, 0.3, 0.3], 2), [1, 2]);
    }
}
