//! A set's outputs as one vector: the largest, the average or the sum, and the gradients.

use ebp::point::Pooling;

use super::{Gradients, Network, Sets};

impl Network {
    /// The pooled outputs `[sets, output_dim]`; for max also the first row that attains each.
    pub(crate) fn pool(&self, sets: &Sets, pooling: Pooling) -> (Vec<f64>, Vec<usize>) {
        let outputs = self.shape.config().output_dim;
        let f = self.values(sets);
        let (mut pooled, mut critical) = (Vec::new(), Vec::new());
        for set in 0..sets.offsets.num_sets() {
            let rows = sets.offsets.range(set);
            for j in 0..outputs {
                let column = rows.clone().map(|i| f[i * outputs + j]);
                let sum: f64 = column.clone().sum();
                match pooling {
                    Pooling::Sum => pooled.push(sum),
                    Pooling::Mean => pooled.push(sum / rows.len() as f64),
                    Pooling::Max => {
                        let largest = column.fold(f64::NEG_INFINITY, f64::max);
                        pooled.push(largest);
                        let attains = |&i: &usize| f[i * outputs + j] >= largest;
                        critical.push(rows.clone().find(attains).expect("a set has a largest"));
                    }
                }
            }
        }
        (pooled, critical)
    }

    /// Gradients of ⟨cotangent, pooled⟩: max gives each output's cotangent to its `critical` row,
    /// mean 1/n of it to every row of the set, sum all of it to every row.
    pub(crate) fn pool_backward(
        &self,
        sets: &Sets,
        pooling: Pooling,
        critical: &[usize],
        cotangent: &[f64],
    ) -> Gradients {
        let outputs = self.shape.config().output_dim;
        let mut per_element = vec![0.0; sets.offsets.num_elements() * outputs];
        for (at, &cotangent) in cotangent.iter().enumerate() {
            let (set, j) = (at / outputs, at % outputs);
            let rows = sets.offsets.range(set);
            let count = rows.len() as f64;
            match pooling {
                Pooling::Max => per_element[critical[at] * outputs + j] += cotangent,
                Pooling::Mean => {
                    rows.for_each(|i| per_element[i * outputs + j] += cotangent / count);
                }
                Pooling::Sum => rows.for_each(|i| per_element[i * outputs + j] += cotangent),
            }
        }
        self.backward(sets, &per_element)
    }
}
