//! Spectral normalisation: every weight matrix divided by its largest singular value.
//!
//! ```text
//! W̄ = W / σ,   σ = uᵀ W v,   v = Wᵀu / ‖Wᵀu‖,   u ← W v / ‖W v‖
//! ```
//!
//! One such power iteration per training step is enough, since W moves slowly and u is kept
//! (Miyato et al., 2018). The gradient treats u and v as constants, which is exact at the fixed
//! point:
//!
//! ```text
//! ∂W = ( g − ⟨g, W̄⟩ u vᵀ ) / σ
//! ```
//!
//! A layer of a [`PointMlp`](crate::point::PointMlp) that receives the context is one operator
//! [W, C] on (x, c) and has one norm.

use std::ops::Range;
use std::sync::Arc;

use super::{Array, Device, Tape, Var, cuda};
use crate::Result;
use crate::error::check_length;
use crate::point::MlpShape;

/// Below this a norm counts as zero, and the operator is left as it is.
pub(super) const FLOOR: f64 = 1e-12;

/// A matrix made of blocks of the flat parameters side by side.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    pub(super) rows: usize,
    /// Where each block lies, row-major, and its columns.
    pub(super) blocks: Vec<(Range<usize>, usize)>,
}

/// The operators of a network, one per layer.
#[derive(Clone, Debug)]
pub struct Operators {
    pub(super) all: Vec<Operator>,
    length: usize,
}

impl Operators {
    /// Those of a network.
    pub fn new(shape: &MlpShape) -> Self {
        let context_dim = shape.config().context_dim;
        let operator = |layer: &crate::point::LayerShape| {
            let context = layer.context_weight.clone().map(|range| (range, context_dim));
            let blocks = std::iter::once((layer.weight.clone(), layer.inputs)).chain(context);
            Operator { rows: layer.outputs, blocks: blocks.collect() }
        };
        Self { all: shape.layers().iter().map(operator).collect(), length: shape.num_parameters() }
    }

    /// How many numbers the left vectors have together.
    pub fn num_rows(&self) -> usize {
        self.all.iter().map(|operator| operator.rows).sum()
    }

    /// The left vectors after some power iterations, on the host: before training, σ from few of
    /// them would be too small.
    pub(crate) fn iterate(&self, weights: &[f32], left: &[f32], count: usize) -> Vec<f32> {
        let mut first = 0;
        let mut settled = Vec::with_capacity(left.len());
        for operator in &self.all {
            let own = &left[first..first + operator.rows];
            let mut u: Vec<f64> = own.iter().map(|&x| f64::from(x)).collect();
            let mut v = vec![0.0; operator.columns()];
            for _ in 0..count {
                operator.singular_pair(weights, &mut u, &mut v, true);
            }
            first += operator.rows;
            #[expect(clippy::cast_possible_truncation, reason = "vectors are kept as f32")]
            settled.extend(u.iter().map(|&x| x as f32));
        }
        settled
    }

    /// The right vectors.
    pub(super) fn num_columns(&self) -> usize {
        self.all.iter().map(Operator::columns).sum()
    }
}

impl Operator {
    pub(super) fn columns(&self) -> usize {
        self.blocks.iter().map(|(_, columns)| columns).sum()
    }

    /// Visits every row of every block: its number, the first column, its entries.
    fn for_each_row(&self, weights: &[f32], mut visit: impl FnMut(usize, usize, &[f32])) {
        let mut start = 0;
        for (range, columns) in &self.blocks {
            for (row, entries) in weights[range.clone()].chunks_exact(*columns).enumerate() {
                visit(row, start, entries);
            }
            start += columns;
        }
    }

    /// v = Wᵀu/‖Wᵀu‖ and, if it `moves`, u ← Wv/‖Wv‖; the norm σ.
    fn singular_pair(&self, weights: &[f32], u: &mut Vec<f64>, v: &mut [f64], moves: bool) -> f64 {
        normalise(u);
        v.fill(0.0);
        self.for_each_row(weights, |row, start, entries| {
            let out = &mut v[start..start + entries.len()];
            out.iter_mut().zip(entries).for_each(|(v, &w)| *v += u[row] * f64::from(w));
        });
        // uᵀ W v = ‖Wᵀ u‖ while u stays.
        let length = normalise(v);
        if !moves {
            return length;
        }
        let mut product = vec![0.0; self.rows];
        self.for_each_row(weights, |row, start, entries| {
            let v = &v[start..start + entries.len()];
            product[row] += entries.iter().zip(v).map(|(&w, v)| f64::from(w) * v).sum::<f64>();
        });
        let norm = normalise(&mut product);
        if norm > FLOOR {
            // A zero operator says nothing about directions: u stays.
            *u = product;
        }
        norm
    }
}

fn normalise(vector: &mut [f64]) -> f64 {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    for entry in vector {
        *entry /= length.max(FLOOR);
    }
    length
}

/// W̄ with what the way back needs: u and v of all operators, σ of each.
pub(super) struct Normalised {
    pub(super) weights: Array,
    pub(super) left: Array,
    pub(super) right: Array,
    pub(super) norms: Array,
}

#[expect(clippy::cast_possible_truncation, reason = "vectors are kept as f32")]
fn forward(
    device: &Device,
    operators: &Arc<Operators>,
    [weights, left]: [&Array; 2],
    moves: bool,
) -> Result<Normalised> {
    if let Device::Cuda(gpu) = device {
        return cuda::spectral_norm(gpu, operators, [weights.cuda()?, left.cuda()?], moves);
    }
    let (mut weights, left) = (weights.host()?.to_vec(), left.host()?);
    let (mut lefts, mut rights, mut norms) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0;
    for operator in &operators.all {
        let mut u: Vec<f64> =
            left[first..first + operator.rows].iter().map(|&x| f64::from(x)).collect();
        first += operator.rows;
        let mut v = vec![0.0; operator.columns()];
        let norm = operator.singular_pair(&weights, &mut u, &mut v, moves);
        let divisor = if norm > FLOOR { norm as f32 } else { 1.0 };
        for (range, _) in &operator.blocks {
            weights[range.clone()].iter_mut().for_each(|weight| *weight /= divisor);
        }
        lefts.extend(u.iter().map(|&x| x as f32));
        rights.extend(v.iter().map(|&x| x as f32));
        norms.push(divisor);
    }
    Ok(Normalised {
        weights: weights.into(),
        left: lefts.into(),
        right: rights.into(),
        norms: norms.into(),
    })
}

fn backward(
    device: &Device,
    operators: &Arc<Operators>,
    found: &Normalised,
    cotangent: &Array,
) -> Result<Array> {
    if let Device::Cuda(gpu) = device {
        return cuda::spectral_norm_backward(gpu, operators, found, cotangent.cuda()?);
    }
    let (weights, left) = (found.weights.host()?, found.left.host()?);
    let (right, norms) = (found.right.host()?, found.norms.host()?);
    let mut gradient = cotangent.host()?.to_vec();
    let (mut first_row, mut first_column) = (0, 0);
    for (operator, &norm) in operators.all.iter().zip(norms.iter()) {
        let pairs = operator
            .blocks
            .iter()
            .flat_map(|(range, _)| gradient[range.clone()].iter().zip(&weights[range.clone()]));
        let alignment: f64 = pairs.map(|(&g, &w)| f64::from(g) * f64::from(w)).sum();
        for (range, columns) in &operator.blocks {
            let v = &right[first_column..first_column + columns];
            let rows = gradient[range.clone()].chunks_exact_mut(*columns);
            for (row, u) in rows.zip(&left[first_row..first_row + operator.rows]) {
                for (g, v) in row.iter_mut().zip(v) {
                    let along = alignment * f64::from(*u) * f64::from(*v);
                    #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
                    let value = ((f64::from(*g) - along) / f64::from(norm)) as f32;
                    *g = value;
                }
            }
            first_column += columns;
        }
        first_row += operator.rows;
    }
    Ok(gradient.into())
}

impl Tape {
    /// Flat parameters with every operator divided by its norm, and the left vectors after a power
    /// iteration if it `moves` them, `[1, rows]` (a constant, to be kept).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn spectral_norm(
        &mut self,
        weights: Var,
        left: Var,
        operators: &Arc<Operators>,
        moves: bool,
    ) -> Result<(Var, Var)> {
        let (flat, lefts) = (self.array(weights).clone(), self.array(left).clone());
        check_length("weights", flat.len(), operators.length, || "those of the network".into())?;
        check_length("left vectors", lefts.len(), operators.num_rows(), || "all rows".into())?;
        let found = forward(self.device(), operators, [&flat, &lefts], moves)?;
        let (value, shape) = (found.weights.clone(), self.shape(weights));
        let left = self.constant(found.left.clone(), (1, operators.num_rows()))?;
        let operators = Arc::clone(operators);
        let normalised = self.record(&[weights], value, shape, move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(backward(reversal.device, &operators, &found, cotangent)?)])
        });
        Ok((normalised, left))
    }
}
