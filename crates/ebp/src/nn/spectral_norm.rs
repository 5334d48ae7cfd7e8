//! Spectral normalisation: every weight matrix divided by its largest singular value.
//!
//! ```text
//! W̄ = W / σ,   σ = uᵀ W v,   v = Wᵀu / ‖Wᵀu‖,   u ← W v / ‖W v‖
//! ```
//!
//! One such power iteration per training call is enough, since W moves slowly and u is kept
//! (Miyato et al., 2018). The gradient treats u and v as constants, which is exact at the fixed
//! point. A layer of a [`PointMlp`](crate::point::PointMlp) that receives the context is one
//! operator [W, C] on (x, c) and has one norm.
//!
//! σ from few iterations is too small, so W̄ may be longer than 1 at the start: call
//! [`SpectralNorm::iterate`] once after initialisation.

use std::ops::Range;

use candle_core::{Device, Tensor, Var};

use super::host::{HostView, Reversal, Reverse, checked, empty, record};
use super::{Initialiser, Mode, Parameters};
use crate::Result;
use crate::point::MlpShape;

/// The norms below which a vector or an operator counts as zero.
const FLOOR: f64 = 1e-12;

/// One linear operator within a flat vector: matrices of `rows` rows, side by side.
#[derive(Clone, Debug)]
struct Operator {
    rows: usize,
    /// Where each matrix `[rows, columns]` lies, and its columns.
    blocks: Vec<(Range<usize>, usize)>,
}

/// Spectral normalisation of a matrix or of all layers of a network.
#[derive(Clone, Debug)]
pub struct SpectralNorm {
    operators: Vec<Operator>,
    /// u of each operator, `[rows]`, a buffer.
    left: Vec<Var>,
    dims: Vec<usize>,
}

impl SpectralNorm {
    /// For one matrix `[rows, columns]`; u is a buffer of the group `parameters`.
    ///
    /// # Errors
    ///
    /// As [`Parameters::buffer`].
    pub fn for_matrix(parameters: &Parameters, rows: usize, columns: usize) -> Result<Self> {
        let blocks = vec![(0..rows * columns, columns)];
        Self::new(parameters, vec![Operator { rows, blocks }], vec![rows, columns])
    }

    /// For the flat parameters of a network of shape `shape`; biases pass unchanged.
    ///
    /// # Errors
    ///
    /// As [`Parameters::buffer`].
    pub fn for_mlp(parameters: &Parameters, shape: &MlpShape) -> Result<Self> {
        let context_dim = shape.config().context_dim;
        let operators = shape.layers().iter().map(|layer| {
            let context = layer.context_weight.clone().map(|range| (range, context_dim));
            let blocks = std::iter::once((layer.weight.clone(), layer.inputs)).chain(context);
            Operator { rows: layer.outputs, blocks: blocks.collect() }
        });
        Self::new(parameters, operators.collect(), vec![shape.num_parameters()])
    }

    fn new(parameters: &Parameters, operators: Vec<Operator>, dims: Vec<usize>) -> Result<Self> {
        let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };
        let left = operators
            .iter()
            .enumerate()
            .map(|(index, operator)| {
                parameters.buffer(&format!("left_vector_{index}"), &[operator.rows], law)
            })
            .collect::<Result<_>>()?;
        Ok(Self { operators, left, dims })
    }

    /// W / σ(W), in the graph. [`Mode::Train`] moves u by one power iteration.
    ///
    /// # Shapes
    ///
    /// `weights`: `[rows, columns]` or `[num_parameters]`; the result has the same.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if `weights` has another shape, dtype
    /// or device.
    pub fn normalise(&self, weights: &Tensor, mode: Mode) -> Result<Tensor> {
        let weights = checked("weights", weights, &self.dims)?;
        let mut scaled = HostView::new("weights", &weights)?.to_vec();
        let mut pairs = Vec::with_capacity(self.operators.len());
        for (operator, left) in self.operators.iter().zip(&self.left) {
            let pair = operator.singular_pair(&scaled, left, mode)?;
            let divisor = pair.divisor();
            for (range, _) in &operator.blocks {
                scaled[range.clone()].iter_mut().for_each(|weight| *weight /= divisor);
            }
            pairs.push(pair);
        }
        let reverse = ReverseSpectralNorm { operators: self.operators.clone(), pairs };
        let nothing = empty(0)?;
        record(scaled, self.dims.as_slice(), [&weights, &nothing, &nothing], reverse)
    }

    /// Moves every u by `num_iterations` power iterations and returns the σ of each operator.
    ///
    /// # Errors
    ///
    /// As [`normalise`](Self::normalise).
    pub fn iterate(&self, weights: &Tensor, num_iterations: usize) -> Result<Vec<f64>> {
        let weights = checked("weights", weights, &self.dims)?;
        let weights = HostView::new("weights", &weights)?;
        let operators = self.operators.iter().zip(&self.left);
        operators
            .map(|(operator, left)| {
                for _ in 0..num_iterations {
                    operator.singular_pair(&weights, left, Mode::Train)?;
                }
                Ok(operator.singular_pair(&weights, left, Mode::Evaluate)?.norm)
            })
            .collect()
    }
}

/// u, v and σ = uᵀ W v of one operator.
struct SingularPair {
    left: Vec<f64>,
    right: Vec<f64>,
    norm: f64,
}

impl SingularPair {
    /// What to divide by: σ, or 1 if the operator is zero, which then stays zero and passes
    /// gradients on unchanged.
    #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
    fn divisor(&self) -> f32 {
        if self.norm > FLOOR { self.norm as f32 } else { 1.0 }
    }
}

impl Operator {
    fn singular_pair(&self, weights: &[f32], left: &Var, mode: Mode) -> Result<SingularPair> {
        let mut u: Vec<f64> =
            HostView::new("left vector", left)?.iter().map(|&x| f64::from(x)).collect();
        normalise(&mut u);
        // v = Wᵀ u / ‖Wᵀ u‖
        let mut v = vec![0.0; self.columns()];
        self.for_each_row(weights, |row, start, entries| {
            let out = &mut v[start..start + entries.len()];
            out.iter_mut().zip(entries).for_each(|(v, &w)| *v += u[row] * f64::from(w));
        });
        let length = normalise(&mut v);
        if mode == Mode::Evaluate {
            // σ = uᵀ W v = ‖Wᵀ u‖
            return Ok(SingularPair { left: u, right: v, norm: length });
        }
        // u = W v / ‖W v‖, σ = uᵀ W v = ‖W v‖
        let mut product = vec![0.0; self.rows];
        self.for_each_row(weights, |row, start, entries| {
            let v = &v[start..start + entries.len()];
            product[row] += entries.iter().zip(v).map(|(&w, v)| f64::from(w) * v).sum::<f64>();
        });
        let norm = normalise(&mut product);
        if norm > FLOOR {
            // A zero operator says nothing about directions: keep the old u.
            #[expect(clippy::cast_possible_truncation, reason = "buffers are f32")]
            let kept: Vec<f32> = product.iter().map(|&x| x as f32).collect();
            left.set(&Tensor::from_vec(kept, self.rows, &Device::Cpu)?)?;
            u = product;
        }
        Ok(SingularPair { left: u, right: v, norm })
    }

    fn columns(&self) -> usize {
        self.blocks.iter().map(|(_, columns)| columns).sum()
    }

    /// Calls `visit(row, first column, entries)` for each row of each block.
    fn for_each_row(&self, weights: &[f32], mut visit: impl FnMut(usize, usize, &[f32])) {
        let mut start = 0;
        for (range, columns) in &self.blocks {
            for (row, entries) in weights[range.clone()].chunks_exact(*columns).enumerate() {
                visit(row, start, entries);
            }
            start += columns;
        }
    }
}

/// Scales to length 1 and returns the length before; a zero vector stays zero.
fn normalise(vector: &mut [f64]) -> f64 {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    for entry in vector {
        *entry /= length.max(FLOOR);
    }
    length
}

struct ReverseSpectralNorm {
    operators: Vec<Operator>,
    pairs: Vec<SingularPair>,
}

impl Reverse for ReverseSpectralNorm {
    fn name(&self) -> &'static str {
        "spectral-norm"
    }

    /// With W̄ = W/σ and cotangent G:  ∂L/∂W = (G − ⟨G, W̄⟩ u vᵀ) / σ.
    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let mut gradient = reversal.cotangent.to_vec();
        for (operator, pair) in self.operators.iter().zip(&self.pairs) {
            let alignment: f64 = operator
                .blocks
                .iter()
                .flat_map(|(range, _)| {
                    reversal.cotangent[range.clone()].iter().zip(&reversal.result[range.clone()])
                })
                .map(|(&g, &w)| f64::from(g) * f64::from(w))
                .sum();
            let mut start = 0;
            for (range, columns) in &operator.blocks {
                let v = &pair.right[start..start + columns];
                let rows = gradient[range.clone()].chunks_exact_mut(*columns);
                for (row, u) in rows.zip(&pair.left) {
                    for (g, v) in row.iter_mut().zip(v) {
                        let value = (f64::from(*g) - alignment * u * v) / f64::from(pair.divisor());
                        #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
                        let value = value as f32;
                        *g = value;
                    }
                }
                start += columns;
            }
        }
        Ok([Some(gradient), None, None])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{ContextAt, MlpConfig};
    use crate::rng::Stream;

    /// The largest singular value by Jacobi rotations of the columns (one-sided, Hestenes 1958):
    /// independent of any power iteration.
    fn largest_singular_value(weights: &[f64], rows: usize, columns: usize) -> f64 {
        let mut a = weights.to_vec();
        for _ in 0..60 {
            for p in 0..columns {
                for q in p + 1..columns {
                    let dot = |i: usize, j: usize, a: &[f64]| -> f64 {
                        (0..rows).map(|r| a[r * columns + i] * a[r * columns + j]).sum()
                    };
                    let (alpha, beta, gamma) = (dot(p, p, &a), dot(q, q, &a), dot(p, q, &a));
                    // Columns that are zero, when there are more of them than rows, stay so.
                    if gamma.abs() <= 1e-15 * (alpha * beta).sqrt() + 1e-200 {
                        continue;
                    }
                    let zeta = (beta - alpha) / (2.0 * gamma);
                    let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                    let cosine = 1.0 / (1.0 + t * t).sqrt();
                    let sine = cosine * t;
                    for r in 0..rows {
                        let (x, y) = (a[r * columns + p], a[r * columns + q]);
                        a[r * columns + p] = cosine * x - sine * y;
                        a[r * columns + q] = sine * x + cosine * y;
                    }
                }
            }
        }
        let norm = |j: usize| (0..rows).map(|r| a[r * columns + j].powi(2)).sum::<f64>().sqrt();
        (0..columns).map(norm).fold(0.0, f64::max)
    }

    fn random(dims: &[usize], name: &str) -> Tensor {
        let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };
        let values = law.draw(dims, Stream::new(11, name)).unwrap();
        Tensor::from_vec(values, dims, &Device::Cpu).unwrap()
    }

    fn flat(tensor: &Tensor) -> Vec<f32> {
        tensor.flatten_all().unwrap().to_vec1().unwrap()
    }

    fn wide(values: &[f32]) -> Vec<f64> {
        values.iter().map(|&x| f64::from(x)).collect()
    }

    #[test]
    fn many_iterations_find_the_largest_singular_value() {
        for (rows, columns) in [(9, 6), (5, 12), (1, 4)] {
            let weights = random(&[rows, columns], "weights");
            let norm = SpectralNorm::for_matrix(&Parameters::new(1), rows, columns).unwrap();
            let found = norm.iterate(&weights, 3000).unwrap()[0];
            let expected = largest_singular_value(&wide(&flat(&weights)), rows, columns);
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
            let normalised = norm.normalise(&weights, Mode::Evaluate).unwrap();
            let length = largest_singular_value(&wide(&flat(&normalised)), rows, columns);
            assert!((length - 1.0).abs() < 1e-6, "{length}");
        }
    }

    /// u is kept: calls in training converge together, calls in use change nothing.
    #[test]
    fn training_moves_the_vector_and_use_does_not() {
        let parameters = Parameters::new(1);
        let weights = random(&[8, 5], "weights");
        let norm = SpectralNorm::for_matrix(&parameters, 8, 5).unwrap();
        let first = flat(&norm.normalise(&weights, Mode::Evaluate).unwrap());
        assert_eq!(first, flat(&norm.normalise(&weights, Mode::Evaluate).unwrap()));
        for _ in 0..1000 {
            norm.normalise(&weights, Mode::Train).unwrap();
        }
        let last = flat(&norm.normalise(&weights, Mode::Train).unwrap());
        let length = largest_singular_value(&wide(&last), 8, 5);
        assert!((length - 1.0).abs() < 1e-6, "{length}");
        assert_ne!(first, last);
        assert_eq!(parameters.num_trained(), 0);
        assert_eq!(parameters.names(), ["left_vector_0"]);
    }

    /// L(W) = Σ r ⊙ W / (uᵀ W v) with u, v fixed, differenced in f64.
    #[test]
    fn the_gradient_is_that_of_fixed_vectors() {
        let (rows, columns) = (4, 3);
        let weights = Var::from_tensor(&random(&[rows, columns], "weights")).unwrap();
        let direction = random(&[rows, columns], "direction");
        let norm = SpectralNorm::for_matrix(&Parameters::new(1), rows, columns).unwrap();
        let pair = {
            // Evaluation leaves u as it is, so that the same pair is used again below.
            let values = HostView::new("weights", &weights).unwrap();
            norm.operators[0].singular_pair(&values, &norm.left[0], Mode::Evaluate).unwrap()
        };
        let normalised = norm.normalise(&weights, Mode::Evaluate).unwrap();
        let loss = (normalised * &direction).unwrap().sum_all().unwrap();
        let gradient = flat(loss.backward().unwrap().get(&weights).unwrap());

        let (w, r) = (wide(&flat(&weights)), wide(&flat(&direction)));
        let value = |w: &[f64]| {
            let norm: f64 = (0..rows)
                .flat_map(|i| (0..columns).map(move |j| (i, j)))
                .map(|(i, j)| pair.left[i] * w[i * columns + j] * pair.right[j])
                .sum();
            w.iter().zip(&r).map(|(w, r)| w * r).sum::<f64>() / norm
        };
        for k in 0..w.len() {
            let h = 1e-6;
            let (mut up, mut down) = (w.clone(), w.clone());
            up[k] += h;
            down[k] -= h;
            let expected = (value(&up) - value(&down)) / (2.0 * h);
            assert!((f64::from(gradient[k]) - expected).abs() < 1e-5, "{k}: {expected}");
        }
    }

    #[test]
    fn every_layer_of_a_network_gets_norm_one_and_keeps_its_bias() {
        let shape = MlpShape::new(MlpConfig {
            context_dim: 4,
            hidden_widths: vec![6, 5],
            context_at: ContextAt::EveryLayer,
            ..MlpConfig::default()
        })
        .unwrap();
        let weights = random(&[shape.num_parameters()], "flat");
        let norm = SpectralNorm::for_mlp(&Parameters::new(1), &shape).unwrap();
        norm.iterate(&weights, 3000).unwrap();
        let normalised = norm.normalise(&weights, Mode::Train).unwrap();
        let (before, after) = (flat(&weights), flat(&normalised));
        for layer in shape.layers() {
            assert_eq!(before[layer.bias.clone()], after[layer.bias.clone()]);
            let context_dim = layer.context_weight.as_ref().map_or(0, |_| 4);
            let mut matrix = Vec::new();
            for row in 0..layer.outputs {
                let at = layer.weight.start + row * layer.inputs;
                matrix.extend(wide(&after[at..at + layer.inputs]));
                if let Some(range) = &layer.context_weight {
                    let at = range.start + row * 4;
                    matrix.extend(wide(&after[at..at + 4]));
                }
            }
            let columns = layer.inputs + context_dim;
            let length = largest_singular_value(&matrix, layer.outputs, columns);
            assert!((length - 1.0).abs() < 1e-6, "{length}");
        }
    }

    #[test]
    fn a_zero_matrix_stays_zero_and_passes_gradients() {
        let weights = Var::zeros((3, 2), candle_core::DType::F32, &Device::Cpu).unwrap();
        let norm = SpectralNorm::for_matrix(&Parameters::new(1), 3, 2).unwrap();
        let normalised = norm.normalise(&weights, Mode::Train).unwrap();
        assert_eq!(flat(&normalised), [0.0; 6]);
        let gradients = normalised.sum_all().unwrap().backward().unwrap();
        assert_eq!(flat(gradients.get(&weights).unwrap()), [1.0; 6]);
    }
}
