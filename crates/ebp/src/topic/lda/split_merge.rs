//! Moves that a sampler of one word at a time does not find: two topics that are alike become one, and a topic
//! that holds two becomes two.
//!
//! ```text
//! log p(w, z) = Σ_k [log Γ(Vη)/Γ(n_k + Vη) + Σ_w log Γ(n_kw + η)/Γ(η)]
//!             + Σ_d [log Γ(Σα)/Γ(n_d + Σα) + Σ_k log Γ(n_dk + α_k)/Γ(α_k)]
//! ```
//!
//! From one state the sampler goes on for a few sweeps as it is, and from the same state after such a change; the
//! change is kept if it then has the higher log p(w, z). It is a search for a better mode during the burn-in
//! (Ueda et al., 2000), not a step of a chain, and leaves the law of later sweeps alone.
#![allow(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 topics")]

use super::gibbs::GibbsLda;
use crate::rng::Stream;

/// Pairs of topics that are tried, the most alike first.
const PAIRS: usize = 2;
/// Topics that are tried as two, the broadest first.
const BROADEST: usize = 3;
/// Sweeps over the words of the two halves of a topic.
const SPLITTING: usize = 10;
/// Sweeps over all words before states are compared.
const SWEEPS: u64 = 3;

impl GibbsLda {
    /// Makes changes as long as they help, `most` at most. Returns how many did.
    pub(super) fn split_and_merge(&mut self, most: usize, stream: Stream) -> usize {
        (0..most).take_while(|&round| self.change(stream.child(round as u64))).count()
    }

    /// Tries changes until one helps. Otherwise the sampler has gone on as it was.
    fn change(&mut self, stream: Stream) -> bool {
        let before = self.topics().to_vec();
        let (pairs, broad) = (self.most_alike(), self.broadest());
        let mut trial = 0;
        let mut go_on = |sampler: &mut Self| {
            trial += 1;
            let stream = stream.child(trial);
            for number in 0..SWEEPS {
                sampler.sweep(stream.child(number));
            }
            sampler.log_joint()
        };
        let value = go_on(self);
        let unchanged = self.topics().to_vec();
        let mut number = 0;
        for &[small, large] in &pairs {
            for &whole in broad.iter().filter(|&&whole| whole != small && whole != large) {
                let merge = before.iter().map(|&z| if z == small { large } else { z });
                self.set_topics(merge.collect());
                number += 1;
                self.split(whole, small, stream.child(0).child(number));
                if go_on(self) > value {
                    return true;
                }
            }
        }
        self.set_topics(unchanged);
        false
    }

    /// Gives words of `whole` to the unused topic `half`: at random, then by Gibbs sampling between the two.
    fn split(&mut self, whole: u32, half: u32, stream: Stream) {
        let members: Vec<usize> =
            (0..self.topics().len()).filter(|&place| self.topics()[place] == whole).collect();
        let mut topics = self.topics().to_vec();
        let mut uniforms = vec![0.0_f32; members.len()];
        stream.fill_uniform(0, 0, &mut uniforms);
        for (&place, uniform) in members.iter().zip(&uniforms) {
            if *uniform < 0.5 {
                topics[place] = half;
            }
        }
        let (alpha, eta) = self.priors();
        let alpha = [whole, half].map(|topic| alpha[topic as usize]);
        let v = self.num_words();
        // n_kw and n_k of both, and the words of every document that belong to them.
        let (mut of_words, mut of_topics) = (vec![[0.0; 2]; v], [0.0; 2]);
        let side = |topics: &[u32], place: usize| usize::from(topics[place] == half);
        for &place in &members {
            let side = side(&topics, place);
            of_words[self.tokens()[place] as usize][side] += 1.0;
            of_topics[side] += 1.0;
        }
        let documents: Vec<&[usize]> = self
            .documents()
            .iter()
            .map(|range| {
                let first = members.partition_point(|&place| place < range.start);
                let last = members.partition_point(|&place| place < range.end);
                &members[first..last]
            })
            .filter(|members| !members.is_empty())
            .collect();
        for sweep in 0..SPLITTING {
            stream.fill_uniform(1 + sweep as u32, 0, &mut uniforms);
            let mut next = uniforms.iter();
            for members in &documents {
                let mut own = [0.0; 2];
                members.iter().for_each(|&place| own[side(&topics, place)] += 1.0);
                for &place in *members {
                    let word = self.tokens()[place] as usize;
                    let old = side(&topics, place);
                    of_words[word][old] -= 1.0;
                    of_topics[old] -= 1.0;
                    own[old] -= 1.0;
                    let weight = |k: usize| {
                        (own[k] + alpha[k]) * (of_words[word][k] + eta)
                            / (of_topics[k] + eta * v as f64)
                    };
                    let [first, second] = [weight(0), weight(1)];
                    let uniform = next.next().map_or(0.5, |u| f64::from(*u));
                    let new = usize::from(uniform * (first + second) >= first);
                    of_words[word][new] += 1.0;
                    of_topics[new] += 1.0;
                    own[new] += 1.0;
                    topics[place] = [whole, half][new];
                }
            }
        }
        self.set_topics(topics);
    }

    /// Pairs of topics by the cosine of their counts, the most alike first; the smaller of each before the
    /// larger.
    fn most_alike(&self) -> Vec<[u32; 2]> {
        let columns = self.columns();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let lengths: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt().max(1.0)).collect();
        let mut pairs = Vec::new();
        for (i, a) in columns.iter().enumerate() {
            for (j, b) in columns[..i].iter().enumerate() {
                pairs.push((dot(a, b) / (lengths[i] * lengths[j]), [i, j]));
            }
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let size = |topic: usize| columns[topic].iter().sum::<f64>();
        let ordered = |[i, j]: [usize; 2]| {
            let (small, large) = if size(i) <= size(j) { (i, j) } else { (j, i) };
            [small as u32, large as u32]
        };
        pairs.into_iter().take(PAIRS).map(|(_, pair)| ordered(pair)).collect()
    }

    /// Topics by the entropy of their words, the broadest first.
    fn broadest(&self) -> Vec<u32> {
        let entropy = |column: &Vec<f64>| {
            let total = column.iter().sum::<f64>().max(1.0);
            let term = |&n: &f64| if n > 0.0 { -n / total * (n / total).ln() } else { 0.0 };
            column.iter().map(term).sum::<f64>()
        };
        let mut order: Vec<(f64, u32)> = self.columns().iter().map(entropy).zip(0_u32..).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().take(BROADEST).map(|(_, topic)| topic).collect()
    }

    /// log p(w, z).
    fn log_joint(&self) -> f64 {
        let (alpha, eta) = self.priors();
        let (alpha_sum, eta_sum) = (alpha.iter().sum::<f64>(), eta * self.num_words() as f64);
        // log Γ(n + a)/Γ(a), which is 0 for n = 0
        let rise = |n: f64, a: f64| {
            if n > 0.0 { libm::lgamma(n + a) - libm::lgamma(a) } else { 0.0 }
        };
        let of_topics: f64 = self
            .columns()
            .iter()
            .map(|column| {
                let total = column.iter().sum::<f64>();
                column.iter().map(|&n| rise(n, eta)).sum::<f64>() - rise(total, eta_sum)
            })
            .sum();
        let mut counts = vec![0.0; alpha.len()];
        let of_documents: f64 = self
            .documents()
            .iter()
            .map(|range| {
                counts.fill(0.0);
                self.topics()[range.clone()].iter().for_each(|&z| counts[z as usize] += 1.0);
                let of_shares: f64 = counts.iter().zip(alpha).map(|(&n, &a)| rise(n, a)).sum();
                of_shares - rise(range.len() as f64, alpha_sum)
            })
            .sum();
        of_topics + of_documents
    }
}

#[cfg(test)]
mod tests {
    use super::super::LdaConfig;
    use super::*;
    use crate::topic::Corpus;

    fn sampler() -> GibbsLda {
        let documents = [vec![(0, 2), (1, 1)], vec![(2, 2), (1, 1)], vec![(0, 1), (2, 1)]];
        let corpus = Corpus::new(3, documents).unwrap();
        let config = LdaConfig { num_topics: 2, alpha_sum: 0.8, eta: 0.3, ..LdaConfig::default() };
        GibbsLda::new(&corpus, &config, 1).unwrap()
    }

    /// Word after word: p(w, z) = Π p(z_i | before) p(w_i | z_i, before), Pólya's urns of documents and topics.
    #[test]
    fn the_joint_is_the_product_of_urns() {
        let sampler = sampler();
        let mut of_words = [[0.3; 3]; 2];
        let mut expected = 0.0;
        for range in sampler.documents() {
            let mut own = [0.4; 2];
            for place in range.clone() {
                let (z, w) = (sampler.topics()[place] as usize, sampler.tokens()[place] as usize);
                expected += (own[z] / own.iter().sum::<f64>()).ln();
                expected += (of_words[z][w] / of_words[z].iter().sum::<f64>()).ln();
                own[z] += 1.0;
                of_words[z][w] += 1.0;
            }
        }
        let found = sampler.log_joint();
        assert!((found - expected).abs() < 1e-10, "{found} {expected}");
    }

    /// Two topics that share one, and one that holds two: whatever chance does in the first split, changes end
    /// with three topics apart.
    #[test]
    fn merged_topics_are_taken_apart() {
        let document = |d: u32| (0..4).map(move |i| (4 * (d % 3) + (i + d) % 4, 5)).collect();
        let corpus = Corpus::new(12, (0..60).map(document)).unwrap();
        let config = LdaConfig { num_topics: 3, ..LdaConfig::default() };
        let mut sampler = GibbsLda::new(&corpus, &config, 1).unwrap();
        // Words 0 to 7 in topic 0, the others in topics 1 and 2 by turns.
        let merged = |place: usize| match sampler.tokens()[place] {
            0..8 => 0,
            _ => 1 + (place % 2) as u32,
        };
        let topics = (0..sampler.tokens().len()).map(merged).collect();
        sampler.set_topics(topics);
        let before = sampler.log_joint();
        assert!(sampler.split_and_merge(5, Stream::new(1, "changes")) > 0);
        assert!(sampler.log_joint() > before);
        for column in sampler.columns() {
            let parts: Vec<f64> = column.chunks(4).map(|part| part.iter().sum()).collect();
            let most = parts.iter().copied().fold(0.0, f64::max);
            assert!(most > 0.95 * parts.iter().sum::<f64>(), "{parts:?}");
        }
    }
}
