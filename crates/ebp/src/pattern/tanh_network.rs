//! A small network of tanh layers with its gradients written out, for potentials of a few numbers.
//!
//! ```text
//! u₀ = x,   u_l = tanh(A_l u_{l−1} + b_l),   y = A_L u_{L−1} + b_L
//! ```
//!
//! Weights stand layer by layer in one vector, a matrix and then its offsets. The output is bounded
//! whatever x is, by Σ|A_L| + |b_L|.

use super::draws::Draws;

/// Standard deviations of the first weights at the start: inputs are of order 1.
const FIRST: f64 = 1.5;
/// Of offsets of later layers.
const OFFSETS: f64 = 0.1;
/// Of the last layer: the function starts near 0.
const LAST: f64 = 0.01;

/// The shape of such a network: numbers of units from input to output, two layers of weights at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TanhNetwork {
    widths: Vec<usize>,
}

/// Slopes on their way back through a network, kept to be used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backward {
    slopes: Vec<f64>,
    below: Vec<f64>,
}

impl Backward {
    /// Slopes by y.
    pub(crate) fn begin(&mut self, slopes: &[f64]) -> &mut Self {
        self.slopes.clear();
        self.slopes.extend_from_slice(slopes);
        self
    }

    /// Slopes by x, once they are back.
    pub(crate) fn slopes(&self) -> &[f64] {
        &self.slopes
    }
}

impl TanhNetwork {
    pub(crate) fn new(widths: &[usize]) -> Self {
        Self { widths: widths.to_vec() }
    }

    /// (inputs, outputs) of every layer of weights.
    fn layers(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + '_ {
        self.widths.iter().zip(&self.widths[1..]).map(|(&from, &to)| (from, to))
    }

    pub(crate) fn num_weights(&self) -> usize {
        self.layers().map(|(from, to)| (from + 1) * to).sum()
    }

    /// All units from input to output together: the length of a trace.
    pub(crate) fn num_units(&self) -> usize {
        self.widths.iter().sum()
    }

    /// Normal weights of the usual sizes.
    pub(crate) fn start(&self, draws: &mut Draws) -> Vec<f64> {
        let last = self.widths.len() - 2;
        let mut weights = Vec::with_capacity(self.num_weights());
        for (layer, (from, to)) in self.layers().enumerate() {
            let (matrix, offsets) = match layer {
                0 => (FIRST, FIRST),
                _ if layer == last => (LAST, LAST),
                _ => ((from as f64).sqrt().recip(), OFFSETS),
            };
            weights.extend((0..from * to).map(|_| matrix * draws.normal()));
            weights.extend((0..to).map(|_| offsets * draws.normal()));
        }
        weights
    }

    /// Fills `trace`, which begins with x, with all later units; the last of them are y.
    pub(crate) fn run(&self, weights: &[f64], trace: &mut [f64]) {
        let last = self.widths.len() - 2;
        let (mut used, mut begin) = (0, 0);
        for (layer, (from, to)) in self.layers().enumerate() {
            let (matrix, rest) = weights[used..].split_at(from * to);
            let (below, above) = trace[begin..].split_at_mut(from);
            for (unit, (row, offset)) in matrix.chunks_exact(from).zip(rest).enumerate() {
                let sum: f64 = row.iter().zip(&*below).map(|(a, u)| a * u).sum();
                above[unit] = if layer == last { sum + offset } else { (sum + offset).tanh() };
            }
            used += (from + 1) * to;
            begin += from;
        }
    }

    /// Adds the gradient of Σ slope · y by the weights, and leaves that by x where the slopes by y were.
    pub(crate) fn backward(
        &self,
        weights: &[f64],
        trace: &[f64],
        slopes: &mut Backward,
        gradient: &mut [f64],
    ) {
        let Backward { slopes, below } = slopes;
        let (mut used, mut begin) = (self.num_weights(), self.num_units() - slopes.len());
        for (from, to) in self.layers().rev() {
            used -= (from + 1) * to;
            begin -= from;
            let units = &trace[begin..][..from];
            below.clear();
            below.resize(from, 0.0);
            for (unit, &slope) in slopes.iter().enumerate() {
                let row = used + unit * from;
                for (j, &value) in units.iter().enumerate() {
                    gradient[row + j] += slope * value;
                    below[j] += slope * weights[row + j];
                }
                gradient[used + from * to + unit] += slope;
            }
            if begin > 0 {
                // tanh′ = 1 − tanh²
                below.iter_mut().zip(units).for_each(|(slope, u)| *slope *= 1.0 - u * u);
            }
            std::mem::swap(slopes, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Central differences of step 10⁻⁵ are good to 10⁻¹⁰ of values of order 1.
    #[test]
    fn gradients_are_slopes() {
        for widths in [&[1, 4, 4, 1][..], &[3, 5, 2]] {
            let network = TanhNetwork::new(widths);
            let mut draws = Draws::new(Stream::new(1, "network"));
            let (inputs, outputs) = (widths[0], widths[widths.len() - 1]);
            let mut at: Vec<f64> =
                (0..network.num_weights() + inputs).map(|_| draws.normal()).collect();
            let slopes: Vec<f64> = (0..outputs).map(|_| draws.normal()).collect();
            let trace = |at: &[f64]| {
                let (x, weights) = at.split_at(inputs);
                let mut trace = vec![0.0; network.num_units()];
                trace[..inputs].copy_from_slice(x);
                network.run(weights, &mut trace);
                trace
            };
            let value = |at: &[f64]| {
                let all = trace(at);
                let y = &all[all.len() - outputs..];
                y.iter().zip(&slopes).map(|(y, s)| y * s).sum::<f64>()
            };
            let mut gradient = vec![0.0; network.num_weights()];
            let mut back = Backward::default();
            network.backward(&at[inputs..], &trace(&at), back.begin(&slopes), &mut gradient);
            let expected: Vec<f64> = back.slopes().iter().copied().chain(gradient).collect();
            for (j, expected) in expected.into_iter().enumerate() {
                let mut side = |step: f64| {
                    at[j] += step;
                    let found = value(&at);
                    at[j] -= step;
                    found
                };
                let found = (side(1e-5) - side(-1e-5)) / 2e-5;
                let error = (found - expected).abs();
                assert!(error < 1e-8 * (1.0 + expected.abs()), "{j}: {found} {expected}");
            }
        }
    }
}
