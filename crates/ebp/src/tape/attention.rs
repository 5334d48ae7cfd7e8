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

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Array, Device, Tape, Var, cuda};
use crate::point::CpuBackend;
use crate::point::cpu::AttentionRows;
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
            Device::Cpu(cpu) => heads.forward(*cpu, sets, &arrays)?,
            Device::Cuda(gpu) => cuda::attention(gpu, heads, sets, &arrays)?,
        };
        let sets = Arc::clone(sets);
        Ok(self.record(&inputs, value, (sets.num_queries(), width), move |reversal| {
            let cotangent = reversal.cotangent()?;
            let found = match reversal.device {
                Device::Cpu(cpu) => heads.backward(*cpu, &sets, &arrays, cotangent)?,
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

/// Queries of a set that one thread works on at a time, where nothing is summed over them.
const QUERIES: usize = 256;

impl Heads {
    fn forward(self, cpu: CpuBackend, sets: &AttentionSets, arrays: &[Array; 3]) -> Result<Array> {
        let arrays = Self::host(arrays)?;
        let mut pieces = Vec::with_capacity(sets.starts.len());
        for pair in sets.starts.windows(2) {
            for first in (pair[0][0]..pair[1][0]).step_by(QUERIES) {
                let queries = first..(first + QUERIES).min(pair[1][0]);
                pieces.push(self.rows(arrays, queries, pair[0][1]..pair[1][1]));
            }
        }
        let found: Vec<Vec<f32>> = pieces.par_iter().map(|rows| cpu.attention(rows)).collect();
        Ok(found.concat().into())
    }

    /// ∂L/∂(queries, keys, values).
    fn backward(
        self,
        cpu: CpuBackend,
        sets: &AttentionSets,
        arrays: &[Array; 3],
        cotangent: &Array,
    ) -> Result<[Array; 3]> {
        let (arrays, cotangent) = (Self::host(arrays)?, cotangent.host()?);
        let of_set = |pair: &[[usize; 2]]| {
            let queries = pair[0][0]..pair[1][0];
            let rows = self.rows(arrays, queries.clone(), pair[0][1]..pair[1][1]);
            let range = queries.start * self.width..queries.end * self.width;
            cpu.attention_backward(&rows, &cotangent[range])
        };
        let parts: Vec<[Vec<f32>; 3]> = sets.starts.par_windows(2).map(of_set).collect();
        Ok([0, 1, 2].map(|array| {
            let parts: Vec<&[f32]> = parts.iter().map(|set| &set[array][..]).collect();
            parts.concat().into()
        }))
    }

    fn host([q, k, v]: &[Array; 3]) -> Result<[&[f32]; 3]> {
        Ok([q.host()?, k.host()?, v.host()?])
    }

    fn rows(
        self,
        [q, k, v]: [&[f32]; 3],
        queries: Range<usize>,
        keys: Range<usize>,
    ) -> AttentionRows<'_> {
        let flat = |rows: Range<usize>| rows.start * self.width..rows.end * self.width;
        AttentionRows {
            width: self.width,
            head_width: self.head_width,
            queries: &q[flat(queries)],
            keys: &k[flat(keys.clone())],
            values: &v[flat(keys)],
        }
    }
}
