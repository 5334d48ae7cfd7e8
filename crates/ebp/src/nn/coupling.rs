//! Affine couplings (Dinh et al., 2017): half of the coordinates decide how the others are moved and
//! scaled.
//!
//! After a fixed permutation a row is (a, b). Towards the standard normal
//!
//! ```text
//! b' = (b − t(a)) e^(−s(a)),   log |det| = −Σ s(a),   |s| < S
//! ```
//!
//! and back b = b' e^(s(a)) + t(a). Both ways cost the same. s and t come from one small network whose
//! last layer starts at zero: the coupling starts as the identity. s = S tanh(r/S) keeps a scale
//! within e^±S, so that no coordinate can collapse.

use std::sync::Arc;

use crate::Result;
use crate::nn::{Dense, DenseConfig};
use crate::rng::Stream;
use crate::tape::{Group, Initialiser, Order, Parameter, Tape, Var};

/// S: one layer scales by less than e² = 7.4.
const LARGEST_LOG_SCALE: f64 = 2.0;

/// One layer.
#[derive(Clone, Debug)]
pub struct Coupling {
    network: Dense,
    order: Arc<Order>,
    /// Coordinates that decide, and those that are moved.
    sizes: [usize; 2],
}

impl Coupling {
    /// Layer `number` for rows of `dim` ≥ 2 numbers, with two hidden layers; its parameters are
    /// called `coupling` and the number.
    ///
    /// # Errors
    ///
    /// As [`Dense::new`].
    pub fn new(
        group: &mut Group<'_>,
        number: usize,
        dim: usize,
        hidden_width: usize,
    ) -> Result<Self> {
        let sizes = [dim / 2, dim - dim / 2];
        let config = DenseConfig {
            hidden: &[hidden_width; 2],
            output_scale: 0.0,
            ..DenseConfig::linear(sizes[0], 2 * sizes[1], Initialiser::He)
        };
        let network = Dense::new(group, &format!("coupling{number}"), &config)?;
        let order = Arc::new(Order::new(&permutation(number, dim))?);
        Ok(Self { network, order, sizes })
    }

    /// The flat parameters of its network.
    pub fn parameters(&self) -> &Parameter {
        self.network.parameters()
    }

    /// (s, t) of the deciding coordinates.
    fn decide(&self, tape: &mut Tape, a: Var) -> Result<[Var; 2]> {
        let out = self.network.forward(tape, a)?;
        let s = tape.columns(out, 0, self.sizes[1])?;
        let s = tape.affine(s, 1.0 / LARGEST_LOG_SCALE, 0.0)?;
        let s = tape.tanh(s)?;
        let s = tape.affine(s, LARGEST_LOG_SCALE, 0.0)?;
        Ok([s, tape.columns(out, self.sizes[1], self.sizes[1])?])
    }

    fn halves(&self, tape: &mut Tape, rows: Var) -> Result<[Var; 2]> {
        let a = tape.columns(rows, 0, self.sizes[0])?;
        Ok([a, tape.columns(rows, self.sizes[0], self.sizes[1])?])
    }

    /// One layer towards the standard normal: rows `[n, k]`, and log |det| `[n, 1]`.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn normalise(&self, tape: &mut Tape, rows: Var) -> Result<(Var, Var)> {
        let rows = tape.arrange(rows, &self.order)?;
        let [a, b] = self.halves(tape, rows)?;
        let [s, t] = self.decide(tape, a)?;
        let shrink = tape.affine(s, -1.0, 0.0)?;
        let log_det = tape.row_sums(shrink)?;
        let shrink = tape.exp(shrink)?;
        let centred = tape.subtract(b, t)?;
        let moved = tape.multiply(centred, shrink)?;
        Ok((tape.concat(&[a, moved])?, log_det))
    }

    /// The way back.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn generate(&self, tape: &mut Tape, rows: Var) -> Result<Var> {
        let [a, moved] = self.halves(tape, rows)?;
        let [s, t] = self.decide(tape, a)?;
        let stretch = tape.exp(s)?;
        let scaled = tape.multiply(moved, stretch)?;
        let b = tape.add(scaled, t)?;
        let rows = tape.concat(&[a, b])?;
        tape.arrange_back(rows, &self.order)
    }
}

/// A function of layer and dimension alone, so that checkpoints need not keep it. In two dimensions
/// every layer swaps, since a drawn order would repeat itself half the time.
fn permutation(number: usize, dim: usize) -> Vec<usize> {
    if dim == 2 {
        return vec![1, 0];
    }
    Stream::new(0, "coupling").child(number as u64).permutation(dim)
}

#[cfg(test)]
mod tests {
    use super::super::differences::check;
    use super::*;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    fn coupling(dim: usize) -> (ParameterBuilder, Coupling) {
        let mut builder = ParameterBuilder::new(4);
        let mut group = builder.group("model");
        let coupling = Coupling::new(&mut group, 0, dim, 6).unwrap();
        // Away from the identity.
        let all = group.values_mut(coupling.network.parameters());
        Stream::new(1, "weights").fill_normal(0, 0, all);
        for weight in all {
            *weight *= 0.5;
        }
        (builder, coupling)
    }

    /// Back and forth, and log |det| against the determinant of differences.
    #[test]
    fn both_ways_agree_and_the_volume_is_right() {
        let (builder, coupling) = coupling(2);
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let normalise = |row: [f32; 2]| {
            let mut tape = device.tape();
            tape.read(&set);
            let rows = tape.upload(row.to_vec(), (1, 2)).unwrap();
            let (moved, log_det) = coupling.normalise(&mut tape, rows).unwrap();
            let back = coupling.generate(&mut tape, moved).unwrap();
            let [moved, back, log_det] =
                [moved, back, log_det].map(|var| tape.download(var).unwrap());
            assert!(back.iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-5), "{back:?} {row:?}");
            (moved, f64::from(log_det[0]))
        };
        let (_, log_det) = normalise([0.3, -0.7]);
        let h = 1e-2;
        let slope = |shift: [f32; 2]| -> Vec<f64> {
            let (up, _) = normalise([0.3 + shift[0], -0.7 + shift[1]]);
            let (down, _) = normalise([0.3 - shift[0], -0.7 - shift[1]]);
            up.iter().zip(&down).map(|(u, d)| f64::from(u - d) / (2.0 * f64::from(h))).collect()
        };
        let (first, second) = (slope([h, 0.0]), slope([0.0, h]));
        let det = (first[0] * second[1] - first[1] * second[0]).abs();
        assert!((det.ln() - log_det).abs() < 2e-3, "{} {log_det}", det.ln());
    }

    #[test]
    fn gradients_pass_both_outputs() {
        let (builder, coupling) = coupling(5);
        let parameters = [("coupling0", *coupling.network.parameters())];
        check(builder, &parameters, |tape| {
            let rows = tape.normals((4, 5), Stream::new(2, "rows"))?;
            let (moved, log_det) = coupling.normalise(tape, rows)?;
            tape.concat(&[moved, log_det])
        });
    }
}
