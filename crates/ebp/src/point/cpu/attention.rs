//! Attention of the queries of one set to its keys, head by head and sixteen queries at a time.

use super::buffer::{Buffer, LINE};
use super::kernel::{Attend, AttendBackward, Head};
use super::{CpuBackend, Kernels};

/// Queries `[n, width]`, keys and values `[m, width]` of one set, in heads of `head_width` columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionRows<'a> {
    pub(crate) width: usize,
    /// A divisor of `width`.
    pub(crate) head_width: usize,
    pub(crate) queries: &'a [f32],
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
}

impl<'a> AttentionRows<'a> {
    fn num_keys(&self) -> usize {
        self.keys.len() / self.width
    }

    /// The head that begins at column `first`. There must be a key.
    fn head<'b>(&self, first: usize, queries: &'b [f32]) -> Head<'b>
    where
        'a: 'b,
    {
        Head {
            keys: &self.keys[first..],
            values: &self.values[first..],
            num_keys: self.num_keys(),
            stride: self.width,
            depth: self.head_width,
            scale: 1.0 / (self.head_width as f32).sqrt(),
            queries,
        }
    }

    fn heads(&self) -> impl Iterator<Item = usize> {
        (0..self.width).step_by(self.head_width)
    }

    /// Columns of up to sixteen rows, one row per lane, zeros in the other lanes.
    fn load(&self, rows: &[f32], first: usize, lanes: &mut [f32]) {
        lanes.fill(0.0);
        for (lane, row) in rows.chunks_exact(self.width).enumerate() {
            for (to, x) in lanes.chunks_exact_mut(LINE).zip(&row[first..]) {
                to[lane] = *x;
            }
        }
    }

    /// The way back from `load`.
    fn store(&self, lanes: &[f32], first: usize, rows: &mut [f32]) {
        for (lane, row) in rows.chunks_exact_mut(self.width).enumerate() {
            for (x, from) in row[first..].iter_mut().zip(lanes.chunks_exact(LINE)) {
                *x = from[lane];
            }
        }
    }
}

impl CpuBackend {
    /// What every query finds, `[n, width]`; zeros without keys.
    pub(crate) fn attention(self, rows: &AttentionRows<'_>) -> Vec<f32> {
        let kernels: &Kernels = self.simd.kernels();
        let mut found = vec![0.0; rows.queries.len()];
        if rows.num_keys() == 0 {
            return found;
        }
        let mut weights = Buffer::zeros(rows.num_keys() * LINE);
        let [mut lanes, mut out] = [0, 1].map(|_| Buffer::zeros(rows.head_width * LINE));
        let length = LINE * rows.width;
        for (queries, found) in rows.queries.chunks(length).zip(found.chunks_mut(length)) {
            for first in rows.heads() {
                rows.load(queries, first, &mut lanes);
                let head = rows.head(first, &lanes);
                kernels.attend(Attend { head, weights: &mut weights, out: &mut out });
                rows.store(&out, first, found);
            }
        }
        found
    }

    /// Gradients of queries, keys and values from those of what was found, `[n, width]`; the weights
    /// are computed again.
    pub(crate) fn attention_backward(
        self,
        rows: &AttentionRows<'_>,
        cotangents: &[f32],
    ) -> [Vec<f32>; 3] {
        let kernels: &Kernels = self.simd.kernels();
        let num_keys = rows.num_keys();
        let mut found = [rows.queries, rows.keys, rows.values].map(|array| vec![0.0; array.len()]);
        if num_keys == 0 {
            return found;
        }
        let [of_queries, of_keys, of_values] = &mut found;
        let [mut weights, mut slopes] = [0, 1].map(|_| Buffer::zeros(num_keys * LINE));
        let [mut lanes, mut g, mut out] = [0, 1, 2].map(|_| Buffer::zeros(rows.head_width * LINE));
        // Summed lane by lane over all queries, and across the lanes once.
        let mut sums = [0, 1].map(|_| Buffer::zeros(num_keys * rows.head_width * LINE));
        let length = LINE * rows.width;
        for first in rows.heads() {
            let [key_sums, value_sums] = &mut sums;
            key_sums.fill(0.0);
            value_sums.fill(0.0);
            let blocks = rows.queries.chunks(length).zip(cotangents.chunks(length));
            for ((queries, cotangents), of_queries) in blocks.zip(of_queries.chunks_mut(length)) {
                rows.load(queries, first, &mut lanes);
                rows.load(cotangents, first, &mut g);
                kernels.attend_backward(AttendBackward {
                    head: rows.head(first, &lanes),
                    cotangents: &g,
                    weights: &mut weights,
                    slopes: &mut slopes,
                    of_queries: &mut out,
                    of_keys: key_sums,
                    of_values: value_sums,
                });
                rows.store(&out, first, of_queries);
            }
            for (sums, to) in [(&*key_sums, &mut *of_keys), (&*value_sums, &mut *of_values)] {
                let sums = sums.chunks_exact(rows.head_width * LINE);
                for (sums, to) in sums.zip(to.chunks_exact_mut(rows.width)) {
                    for (to, sums) in to[first..].iter_mut().zip(sums.chunks_exact(LINE)) {
                        *to = across(sums);
                    }
                }
            }
        }
        found
    }
}

/// The sum of a line, halves onto halves.
fn across(line: &[f32]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|i| line[i] + line[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[cfg(test)]
mod tests {
    use super::super::SimdLevel;
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn numbers(length: usize, factor: f64) -> Vec<f32> {
        (0..length).map(|i| (i as f64 * factor).sin() as f32).collect()
    }

    /// What is found and the three gradients by the formulas in f64, one query after the other.
    fn expected(rows: &AttentionRows<'_>, g: &[f32]) -> [Vec<f64>; 4] {
        let AttentionRows { width, head_width, queries: q, keys: k, values: v } = *rows;
        let mut found = [q, q, k, k].map(|array| vec![0.0_f64; array.len()]);
        let num_keys = k.len() / width;
        for query in 0..q.len() / width {
            for first in rows.heads() {
                let at = |row: usize, c: usize| row * width + first + c;
                let dot = |a: &[f32], b: &[f32], key: usize| -> f64 {
                    let term = |c| f64::from(a[at(query, c)]) * f64::from(b[at(key, c)]);
                    (0..head_width).map(term).sum()
                };
                let scale = 1.0 / (head_width as f64).sqrt();
                let weights: Vec<f64> =
                    (0..num_keys).map(|key| (scale * dot(q, k, key)).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let slopes: Vec<f64> = (0..num_keys).map(|key| dot(g, v, key)).collect();
                let mean: f64 = weights.iter().zip(&slopes).map(|(w, u)| w / sum * u).sum();
                for (key, (w, slope)) in weights.iter().zip(&slopes).enumerate() {
                    let (w, change) = (w / sum, scale * w / sum * (slope - mean));
                    for c in 0..head_width {
                        found[0][at(query, c)] += w * f64::from(v[at(key, c)]);
                        found[1][at(query, c)] += change * f64::from(k[at(key, c)]);
                        found[2][at(key, c)] += change * f64::from(q[at(query, c)]);
                        found[3][at(key, c)] += w * f64::from(g[at(query, c)]);
                    }
                }
            }
        }
        found
    }

    #[test]
    fn sets_of_any_size_follow_the_formulas_on_every_instruction_set() {
        for (width, head_width) in [(6, 3), (18, 9), (8, 8)] {
            for (n, m) in [(1, 1), (17, 5), (3, 0), (0, 2), (40, 33)] {
                let [queries, g] = [0.7, 2.1].map(|factor| numbers(n * width, factor));
                let [keys, values] = [1.3, 0.9].map(|factor| numbers(m * width, factor));
                let rows = AttentionRows {
                    width,
                    head_width,
                    queries: &queries,
                    keys: &keys,
                    values: &values,
                };
                let expected = expected(&rows, &g);
                for level in SimdLevel::available() {
                    let cpu = CpuBackend::with_simd(level).unwrap();
                    let [of_queries, of_keys, of_values] = cpu.attention_backward(&rows, &g);
                    let found = [cpu.attention(&rows), of_queries, of_keys, of_values];
                    for (found, expected) in found.iter().zip(&expected) {
                        assert_eq!(found.len(), expected.len());
                        for (found, expected) in found.iter().zip(expected) {
                            // Sums of up to 40 products of numbers below one.
                            let error = (f64::from(*found) - expected).abs();
                            assert!(error < 40.0 * 2e-7, "{found} {expected}");
                        }
                    }
                }
            }
        }
    }
}
