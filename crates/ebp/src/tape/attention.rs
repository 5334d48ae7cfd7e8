//! Attention between ragged sets: every query looks at the keys of its own set and at no others.
//!
//! Per set and head, with q, k, v the parts of the rows that belong to the head:
//!
//! ```text
//! w_ij = softmax_j(⟨q_i, k_j⟩ / √d_head),    o_i = Σ_j w_ij v_j
//! ```
//!
//! No set is padded and no mask is needed. A query whose set has no keys gets zeros. The backward
//! pass recomputes the weights, as those of the primitive do.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Array, Device, Tape, Var, cuda};
use crate::{Error, Result};

/// Which queries may look at which keys: set `s` owns a run of each, either of which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSets {
    /// Query and key at which each set begins, and one past the last.
    pub(super) starts: Vec<[usize; 2]>,
}

impl AttentionSets {
    /// From the number of queries and of keys of each set.
    ///
    /// ```
    /// use ebp::tape::AttentionSets;
    ///
    /// let sets = AttentionSets::from_sizes([(2, 5), (1, 0)]);
    /// assert_eq!((sets.num_queries(), sets.num_keys()), (3, 5));
    /// ```
    pub fn from_sizes(sizes: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut starts = vec![[0, 0]];
        let mut end = [0, 0];
        for (queries, keys) in sizes {
            end = [end[0] + queries, end[1] + keys];
            starts.push(end);
        }
        Self { starts }
    }

    /// All queries together.
    pub fn num_queries(&self) -> usize {
        self.starts[self.starts.len() - 1][0]
    }

    /// All keys together.
    pub fn num_keys(&self) -> usize {
        self.starts[self.starts.len() - 1][1]
    }

    /// Works on every set, in parallel; results in the order of the sets.
    fn map<T: Send>(&self, work: impl Fn([usize; 2], [usize; 2]) -> T + Sync) -> Vec<T> {
        self.starts.par_windows(2).map(|pair| work(pair[0], pair[1])).collect()
    }
}

impl Tape {
    /// What every query finds: `[queries, width]` from queries and keys and values
    /// `[keys, width]`, in `num_heads` parts of the width.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn attention(
        &mut self,
        queries: Var,
        keys: Var,
        values: Var,
        sets: &Arc<AttentionSets>,
        num_heads: usize,
    ) -> Result<Var> {
        let width = self.shape(queries).1;
        if num_heads == 0 || width == 0 || !width.is_multiple_of(num_heads) {
            let expected = format!("a divisor of width {width}");
            return Err(Error::invalid("num_heads", expected, num_heads));
        }
        self.check("queries", queries, (sets.num_queries(), width))?;
        self.check("keys", keys, (sets.num_keys(), width))?;
        self.check("values", values, (sets.num_keys(), width))?;
        let heads = Heads { width, head_width: width / num_heads };
        let inputs = [queries, keys, values];
        let arrays = inputs.map(|var| self.array(var).clone());
        let value = match self.device() {
            Device::Cpu(_) => {
                let [q, k, v] = &arrays;
                heads.forward(sets, q.host()?, k.host()?, v.host()?).into()
            }
            Device::Cuda(gpu) => cuda::attention(gpu, heads, sets, &arrays)?,
        };
        let sets = Arc::clone(sets);
        Ok(self.record(&inputs, value, (sets.num_queries(), width), move |reversal| {
            let cotangent = reversal.cotangent()?;
            let found = match reversal.device {
                Device::Cpu(_) => heads.backward(&sets, &arrays, cotangent)?,
                Device::Cuda(gpu) => {
                    cuda::attention_backward(gpu, heads, &sets, &arrays, cotangent)?
                }
            };
            Ok(found.into_iter().map(Some).collect())
        }))
    }
}

/// How rows are cut into heads.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) width: usize,
    pub(super) head_width: usize,
}

impl Heads {
    fn forward(self, sets: &AttentionSets, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
        let outputs = sets.map(|start, end| {
            let [queries, keys] = self.rows(start, end);
            let mut output = vec![0.0; queries.len()];
            let mut weights = vec![0.0; end[1] - start[1]];
            self.each(&q[queries], &mut output, |query, head, out| {
                self.weights(query, &k[keys.clone()], head, &mut weights);
                // o_i = Σ_j w_ij v_j
                for (&w, row) in weights.iter().zip(v[keys.clone()].chunks_exact(self.width)) {
                    add_scaled(out, w, &row[head..][..self.head_width]);
                }
            });
            output
        });
        outputs.concat()
    }

    /// The flat ranges of a set's queries and keys.
    fn rows(self, start: [usize; 2], end: [usize; 2]) -> [std::ops::Range<usize>; 2] {
        [0, 1].map(|part| start[part] * self.width..end[part] * self.width)
    }

    /// Calls `work` with every query's part of every head, where the head begins, and the same
    /// part of `output`.
    fn each(
        self,
        queries: &[f32],
        output: &mut [f32],
        mut work: impl FnMut(&[f32], usize, &mut [f32]),
    ) {
        let parts = queries.chunks_exact(self.head_width);
        for (index, (query, out)) in parts.zip(output.chunks_exact_mut(self.head_width)).enumerate()
        {
            work(query, (index * self.head_width) % self.width, out);
        }
    }

    /// w_ij = softmax_j(⟨q_i, k_j⟩ / √d_head).
    fn weights(self, query: &[f32], keys: &[f32], head: usize, weights: &mut [f32]) {
        let scale = self.scale();
        let mut largest = f32::NEG_INFINITY;
        for (weight, key) in weights.iter_mut().zip(keys.chunks_exact(self.width)) {
            *weight = scale * dot(query, &key[head..][..self.head_width]);
            largest = largest.max(*weight);
        }
        let mut sum = 0.0;
        for weight in weights.iter_mut() {
            *weight = (*weight - largest).exp();
            sum += *weight;
        }
        for weight in weights {
            *weight /= sum;
        }
    }

    fn scale(self) -> f32 {
        1.0 / (self.head_width as f32).sqrt()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add_scaled(sum: &mut [f32], scale: f32, terms: &[f32]) {
    for (s, t) in sum.iter_mut().zip(terms) {
        *s += scale * t;
    }
}

impl Heads {
    /// ∂L/∂(queries, keys, values); the weights are computed again.
    fn backward(
        self,
        sets: &AttentionSets,
        arrays: &[Array; 3],
        cotangent: &Array,
    ) -> Result<[Array; 3]> {
        let [q, k, v] = arrays;
        let (q, k, v, cotangent) = (q.host()?, k.host()?, v.host()?, cotangent.host()?);
        let parts = sets.map(|start, end| {
            let [queries, keys] = self.rows(start, end);
            let (k, v) = (&k[keys.clone()], &v[keys.clone()]);
            let cotangents = &cotangent[queries.clone()];
            let mut d_q = vec![0.0; queries.len()];
            let (mut d_k, mut d_v) = (vec![0.0; keys.len()], vec![0.0; keys.len()]);
            let mut weights = vec![0.0; end[1] - start[1]];
            let mut slopes = weights.clone();
            let mut position = 0;
            self.each(&q[queries], &mut d_q, |query, head, d_query| {
                let cotangent = &cotangents[position..][..self.head_width];
                position += self.head_width;
                self.weights(query, k, head, &mut weights);
                // ∂L/∂w_j = ⟨g, v_j⟩, then through the softmax: w_j (∂L/∂w_j − Σ w ∂L/∂w)
                for (slope, row) in slopes.iter_mut().zip(v.chunks_exact(self.width)) {
                    *slope = dot(cotangent, &row[head..][..self.head_width]);
                }
                let mean = dot(&weights, &slopes);
                for (j, (&weight, &slope)) in weights.iter().zip(&slopes).enumerate() {
                    let row = j * self.width + head..j * self.width + head + self.head_width;
                    let logit = self.scale() * weight * (slope - mean);
                    add_scaled(&mut d_v[row.clone()], weight, cotangent);
                    add_scaled(d_query, logit, &k[row.clone()]);
                    add_scaled(&mut d_k[row], logit, query);
                }
            });
            [d_q, d_k, d_v]
        });
        Ok([0, 1, 2].map(|part| {
            let all = parts.iter().flat_map(|set| set[part].iter().copied());
            Array::from(all.collect::<Vec<f32>>())
        }))
    }
}
