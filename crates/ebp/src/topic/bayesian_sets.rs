//! Bayesian sets (Ghahramani, Heller, 2005): ranks items by how well they belong to a few given ones.
//!
//! ```text
//! score(x) = log p(x | D) / p(x) = c + Σ_j q_j x_j,     x_j in {0, 1},   θ_j ~ Beta(α_j, β_j)
//! α_j = s m_j,  β_j = s (1 − m_j),   α̃_j = α_j + Σ_{i in D} x_ij,   β̃_j = β_j + N − Σ_{i in D} x_ij
//! q_j = log α̃_j − log α_j − log β̃_j + log β_j,   c = Σ_j log((α_j + β_j)/(α_j + β_j + N)) + log(β̃_j/β_j)
//! ```
//!
//! m_j is the mean of feature j over all items and s the strength of the prior, 2 in the paper. A feature that
//! all items have, or none, says nothing and is left out. All items cost one sparse product.

use crate::{Error, Result};

/// The strength s of the paper's experiments.
pub const STRENGTH: f64 = 2.0;

/// Items with binary features, kept as lists of those that they have.
#[derive(Clone, Debug)]
pub struct BayesianSets {
    offsets: Vec<usize>,
    features: Vec<u32>,
    means: Vec<f64>,
}

impl BayesianSets {
    /// Items by the features that they have, each once, of `num_features`. An item may have none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are no items, or a feature is not below `num_features`.
    pub fn new(num_features: usize, items: &[Vec<u32>]) -> Result<Self> {
        if items.is_empty() {
            return Err(Error::invalid("items", "at least one", 0));
        }
        let (mut offsets, mut features) = (vec![0], Vec::new());
        let mut means = vec![0.0; num_features];
        for item in items {
            let mut item = item.clone();
            item.sort_unstable();
            item.dedup();
            for &feature in &item {
                let Some(mean) = means.get_mut(feature as usize) else {
                    let expected = format!("below {num_features}");
                    return Err(Error::invalid("feature", expected, feature));
                };
                *mean += 1.0 / items.len() as f64;
            }
            features.extend(item);
            offsets.push(features.len());
        }
        Ok(Self { offsets, features, means })
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none, which [`new`](Self::new) does not allow.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The features of an item.
    fn item(&self, item: usize) -> &[u32] {
        &self.features[self.offsets[item]..self.offsets[item + 1]]
    }

    /// log p(x | query) / p(x) of every item, for a prior of strength `strength`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the query is empty or names an item that is not there, or the strength is
    /// not above 0.
    pub fn scores(&self, query: &[usize], strength: f64) -> Result<Vec<f64>> {
        if query.is_empty() {
            return Err(Error::invalid("query", "at least one item", "none"));
        }
        if let Some(item) = query.iter().find(|&&item| item >= self.len()) {
            return Err(Error::invalid("query", format!("items below {}", self.len()), item));
        }
        if !(strength.is_finite() && strength > 0.0) {
            return Err(Error::invalid("strength", "above 0", strength));
        }
        let count = query.len() as f64;
        let mut sums = vec![0.0; self.means.len()];
        for &item in query {
            self.item(item).iter().for_each(|&feature| sums[feature as usize] += 1.0);
        }
        let mut constant = 0.0;
        let mut weights = vec![0.0; self.means.len()];
        for ((weight, sum), mean) in weights.iter_mut().zip(&sums).zip(&self.means) {
            // Sums of 1/n may end a little above 1.
            let (a, b) = (strength * mean, strength * (1.0 - mean));
            if a <= 0.0 || b <= 1e-12 * strength {
                continue;
            }
            let (posterior_a, posterior_b) = (a + sum, b + count - sum);
            *weight = (posterior_a / a).ln() - (posterior_b / b).ln();
            constant += (strength / (strength + count)).ln() + (posterior_b / b).ln();
        }
        let score = |item: usize| {
            let features = self.item(item).iter();
            constant + features.map(|&feature| weights[feature as usize]).sum::<f64>()
        };
        Ok((0..self.len()).map(score).collect())
    }

    /// The `count` best items with their scores, best first, smaller numbers first among equals.
    ///
    /// # Errors
    ///
    /// As [`scores`](Self::scores).
    pub fn rank(&self, query: &[usize], strength: f64, count: usize) -> Result<Vec<(usize, f64)>> {
        let scores = self.scores(query, strength)?;
        let best = super::top_words(&scores, count);
        Ok(best.into_iter().map(|item| (item, scores[item])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// p(x | D) / p(x) from Beta-Bernoulli laws, feature by feature.
    #[test]
    fn scores_are_ratios_of_beta_bernoulli_laws() {
        let items: Vec<Vec<u32>> =
            vec![vec![0, 1, 5], vec![0, 5], vec![2, 3], vec![3], vec![], vec![0, 1, 2, 3]];
        let sets = BayesianSets::new(6, &items).unwrap();
        let query = [0, 1];
        let found = sets.scores(&query, 2.0).unwrap();
        for (item, found) in items.iter().zip(found) {
            let mut expected = 0.0;
            for feature in [0_u32, 1, 2, 3, 5] {
                let has = |item: &Vec<u32>| f64::from(u8::from(item.contains(&feature)));
                let mean = items.iter().map(has).sum::<f64>() / 6.0;
                let (a, b) = (2.0 * mean, 2.0 * (1.0 - mean));
                let sum: f64 = query.iter().map(|&q| has(&items[q])).sum();
                let law = |a: f64, b: f64| if has(item) > 0.5 { a / (a + b) } else { b / (a + b) };
                expected += (law(a + sum, b + 2.0 - sum) / law(a, b)).ln();
            }
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        let ranked = sets.rank(&query, 2.0, 3).unwrap();
        assert_eq!((ranked[0].0, ranked.len()), (0, 3));
    }

    #[test]
    fn what_is_no_query_is_an_error() {
        let sets = BayesianSets::new(2, &[vec![0], vec![1]]).unwrap();
        assert!(sets.scores(&[], 2.0).is_err());
        assert!(sets.scores(&[2], 2.0).is_err());
        assert!(sets.scores(&[0], 0.0).is_err());
        assert!(BayesianSets::new(2, &[]).is_err());
        assert!(BayesianSets::new(2, &[vec![2]]).is_err());
    }
}
