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

use candle_core::{Module, Tensor};
use rayon::prelude::*;

use super::host::{HostView, Reversal, Reverse, checked, record};
use super::{Initialiser, Linear, Parameters, linear};
use crate::{Error, Result};

/// Which queries may look at which keys: set `s` owns a run of each, either of which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSets {
    /// Query and key at which each set begins, and one past the last.
    starts: Vec<[usize; 2]>,
}

impl AttentionSets {
    /// From the number of queries and of keys of each set.
    ///
    /// ```
    /// use ebp::nn::AttentionSets;
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

/// Scaled dot-product attention with several heads, without any weights of its own.
///
/// # Shapes
///
/// `queries`: `[num_queries, width]`, `keys` and `values`: `[num_keys, width]`; the result is
/// shaped as the queries. Head h owns the h-th of `num_heads` equal parts of each row.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a tensor has another shape, dtype or device, or if `num_heads` does
/// not divide the width.
pub fn attention(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    sets: &AttentionSets,
    num_heads: usize,
) -> Result<Tensor> {
    let width = queries.dims().last().copied().unwrap_or(0);
    if num_heads == 0 || width == 0 || !width.is_multiple_of(num_heads) {
        return Err(Error::invalid("num_heads", format!("a divisor of width {width}"), num_heads));
    }
    let queries = checked("queries", queries, &[sets.num_queries(), width])?;
    let keys = checked("keys", keys, &[sets.num_keys(), width])?;
    let values = checked("values", values, &[sets.num_keys(), width])?;
    let heads = Heads { width, head_width: width / num_heads };
    let result = heads.forward(
        sets,
        &HostView::new("queries", &queries)?,
        &HostView::new("keys", &keys)?,
        &HostView::new("values", &values)?,
    );
    let reverse = ReverseAttention { heads, sets: sets.clone() };
    record(result, (sets.num_queries(), width), [&queries, &keys, &values], reverse)
}

/// How rows are cut into heads.
#[derive(Clone, Copy)]
struct Heads {
    width: usize,
    head_width: usize,
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

struct ReverseAttention {
    heads: Heads,
    sets: AttentionSets,
}

impl Reverse for ReverseAttention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let [q, k, v] = reversal.arguments;
        let Self { heads, sets } = self;
        let parts = sets.map(|start, end| {
            let [queries, keys] = heads.rows(start, end);
            let (k, v) = (&k[keys.clone()], &v[keys.clone()]);
            let cotangents = &reversal.cotangent[queries.clone()];
            let mut d_q = vec![0.0; queries.len()];
            let (mut d_k, mut d_v) = (vec![0.0; keys.len()], vec![0.0; keys.len()]);
            let mut weights = vec![0.0; end[1] - start[1]];
            let mut slopes = weights.clone();
            let mut position = 0;
            heads.each(&q[queries], &mut d_q, |query, head, d_query| {
                let cotangent = &cotangents[position..][..heads.head_width];
                position += heads.head_width;
                heads.weights(query, k, head, &mut weights);
                // ∂L/∂w_j = ⟨g, v_j⟩, then through the softmax: w_j (∂L/∂w_j − Σ w ∂L/∂w)
                for (slope, row) in slopes.iter_mut().zip(v.chunks_exact(heads.width)) {
                    *slope = dot(cotangent, &row[head..][..heads.head_width]);
                }
                let mean = dot(&weights, &slopes);
                for (j, (&weight, &slope)) in weights.iter().zip(&slopes).enumerate() {
                    let row = j * heads.width + head..j * heads.width + head + heads.head_width;
                    let logit = heads.scale() * weight * (slope - mean);
                    add_scaled(&mut d_v[row.clone()], weight, cotangent);
                    add_scaled(d_query, logit, &k[row.clone()]);
                    add_scaled(&mut d_k[row], logit, query);
                }
            });
            [d_q, d_k, d_v]
        });
        let gather = |part: usize| parts.iter().flat_map(|set| set[part].iter().copied()).collect();
        Ok([Some(gather(0)), Some(gather(1)), Some(gather(2))])
    }
}

/// Attention between linear maps of its arguments, mixed by a last one (Vaswani et al., 2017).
#[derive(Clone, Debug)]
pub struct MultiHeadAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    num_heads: usize,
}

impl MultiHeadAttention {
    /// Creates the four maps `query`, `key`, `value` and `output` of `[width, width]` in the group
    /// `parameters`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `num_heads` does not divide `width`; else as
    /// [`Parameters::trained`].
    pub fn new(parameters: &Parameters, width: usize, num_heads: usize) -> Result<Self> {
        if num_heads == 0 || !width.is_multiple_of(num_heads) {
            let expected = format!("a divisor of width {width}");
            return Err(Error::invalid("num_heads", expected, num_heads));
        }
        let map = |name| linear(&parameters.group(name), width, width, Initialiser::Xavier);
        Ok(Self {
            query: map("query")?,
            key: map("key")?,
            value: map("value")?,
            output: map("output")?,
            num_heads,
        })
    }

    /// What each query finds among the keys of its set.
    ///
    /// # Shapes
    ///
    /// As [`attention`].
    ///
    /// # Errors
    ///
    /// As [`attention`].
    pub fn forward(
        &self,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        sets: &AttentionSets,
    ) -> Result<Tensor> {
        let queries = self.query.forward(queries)?;
        let (keys, values) = (self.key.forward(keys)?, self.value.forward(values)?);
        Ok(self.output.forward(&attention(&queries, &keys, &values, sets, self.num_heads)?)?)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::rng::Stream;

    fn normals(name: &str, rows: usize, width: usize) -> Vec<f32> {
        let mut values = vec![0.0; rows * width];
        Stream::new(1, name).fill_normal(0, 0, &mut values);
        values
    }

    fn tensor(values: &[f32], width: usize) -> Tensor {
        Tensor::from_slice(values, (values.len() / width, width), &Device::Cpu).unwrap()
    }

    /// One set alone, by candle's own matrix products.
    fn dense(q: &Tensor, k: &Tensor, v: &Tensor, num_heads: usize) -> Tensor {
        let part = q.dim(1).unwrap() / num_heads;
        let heads: Vec<_> = (0..num_heads)
            .map(|head| {
                let cut =
                    |t: &Tensor| t.narrow(1, head * part, part).unwrap().contiguous().unwrap();
                let logits = cut(q).matmul(&cut(k).t().unwrap()).unwrap();
                let logits = (logits / (part as f64).sqrt()).unwrap();
                candle_nn::ops::softmax(&logits, 1).unwrap().matmul(&cut(v)).unwrap()
            })
            .collect();
        Tensor::cat(&heads, 1).unwrap()
    }

    #[test]
    fn ragged_attention_and_its_gradients_are_those_of_each_set_alone() {
        let (width, num_heads) = (6, 2);
        let sets = AttentionSets::from_sizes([(3, 4), (2, 0), (0, 1), (1, 5)]);
        let make =
            |name, rows| Var::from_tensor(&tensor(&normals(name, rows, width), width)).unwrap();
        let (q, k, v) = (make("q", 6), make("k", 10), make("v", 10));
        let weights = tensor(&normals("weights", 6, width), width);
        let result = attention(&q, &k, &v, &sets, num_heads).unwrap();
        let loss = (&result * &weights).unwrap().sum_all().unwrap();
        let zeros = Tensor::zeros((2, width), candle_core::DType::F32, &Device::Cpu).unwrap();
        let alone = |queries: (usize, usize), keys: (usize, usize)| {
            let cut = |t: &Var, (start, count)| t.narrow(0, start, count).unwrap();
            dense(&cut(&q, queries), &cut(&k, keys), &cut(&v, keys), num_heads)
        };
        let expected =
            Tensor::cat(&[alone((0, 3), (0, 4)), zeros, alone((5, 1), (5, 5))], 0).unwrap();
        let expected_loss = (&expected * &weights).unwrap().sum_all().unwrap();
        let close = |a: &Tensor, b: &Tensor| {
            let difference = (a - b).unwrap().abs().unwrap().max_all().unwrap();
            assert!(difference.to_scalar::<f32>().unwrap() < 1e-5, "{a} {b}");
        };
        close(&result, &expected);
        let (found, wanted) = (loss.backward().unwrap(), expected_loss.backward().unwrap());
        for variable in [&q, &k, &v] {
            close(found.get(variable).unwrap(), wanted.get(variable).unwrap());
        }
    }

    #[test]
    fn the_heads_must_divide_the_width() {
        let sets = AttentionSets::from_sizes([(1, 1)]);
        let row = tensor(&[1.0, 2.0, 3.0], 3);
        let message = attention(&row, &row, &row, &sets, 2).unwrap_err().to_string();
        assert_eq!(message, "`num_heads` must be a divisor of width 3, found 2");
        assert!(MultiHeadAttention::new(&Parameters::new(1), 4, 0).is_err());
    }
}
