//! Batch normalisation with running statistics (Ioffe and Szegedy, 2015):
//!
//! ```text
//! y = γ (x − m) / √(v + floor) + β
//! ```
//!
//! In training m and v are the batch's mean and biased variance per column, and the running ones
//! move towards them, the variance towards the unbiased one. In use m and v are the running ones.

use crate::nn::Mode;
use crate::tape::{Group, Initialiser, Parameter, Tape, Var};
use crate::{Error, Result};

/// The floor of the tape's operation.
const FLOOR: f64 = 1e-5;

/// A normalisation of columns.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    scale: Parameter,
    shift: Parameter,
    running_mean: Parameter,
    running_variance: Parameter,
    momentum: f64,
}

impl BatchNorm {
    /// γ = 1, β = 0; running statistics move by the share `momentum` in every step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `momentum` is not in (0, 1] or a name is taken.
    pub fn new(group: &mut Group<'_>, columns: usize, momentum: f64) -> Result<Self> {
        if !(momentum > 0.0 && momentum <= 1.0) {
            return Err(Error::invalid("momentum", "in (0, 1]", momentum));
        }
        Ok(Self {
            scale: group.trained("scale", &[columns], Initialiser::Ones)?,
            shift: group.trained("shift", &[columns], Initialiser::Zeros)?,
            running_mean: group.buffer("running_mean", &[columns], Initialiser::Zeros)?,
            running_variance: group.buffer("running_variance", &[columns], Initialiser::Ones)?,
            momentum,
        })
    }

    /// `[rows, columns]` to the same. In training there must be at least two rows.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if shapes do not fit.
    pub fn forward(&self, tape: &mut Tape, rows: Var, mode: Mode) -> Result<Var> {
        let standard = match mode {
            Mode::Train => self.train(tape, rows)?,
            Mode::Evaluate => {
                let mean = tape.parameter(&self.running_mean)?;
                let variance = tape.parameter(&self.running_variance)?;
                // 1/√(v + floor) = exp(−½ log(v + floor))
                let variance = tape.affine(variance, 1.0, FLOOR)?;
                let log = tape.log(variance)?;
                let log = tape.affine(log, -0.5, 0.0)?;
                let scale = tape.exp(log)?;
                let centred = tape.subtract(rows, mean)?;
                tape.multiply(centred, scale)?
            }
        };
        let (scale, shift) = (tape.parameter(&self.scale)?, tape.parameter(&self.shift)?);
        let scaled = tape.multiply(standard, scale)?;
        tape.add(scaled, shift)
    }

    fn train(&self, tape: &mut Tape, rows: Var) -> Result<Var> {
        let count = tape.shape(rows).0;
        if count < 2 {
            return Err(Error::invalid("rows", "at least 2 in training", count));
        }
        let (standard, mean, scale) = tape.normalise_columns(rows)?;
        // v = scale⁻² − floor, unbiased by n/(n − 1)
        let log = tape.log(scale)?;
        let log = tape.affine(log, -2.0, 0.0)?;
        let variance = tape.exp(log)?;
        let unbias = count as f64 / (count - 1) as f64;
        let variance = tape.affine(variance, unbias, -unbias * FLOOR)?;
        for (buffer, found) in [(&self.running_mean, mean), (&self.running_variance, variance)] {
            // r ← (1 − momentum) r + momentum · found
            let old = tape.parameter(buffer)?;
            let old = tape.affine(old, 1.0 - self.momentum, 0.0)?;
            let found = tape.affine(found, self.momentum, 0.0)?;
            let moved = tape.add(old, found)?;
            let moved = tape.array(moved).clone();
            tape.keep(buffer, moved);
        }
        Ok(standard)
    }
}

#[cfg(test)]
mod tests {
    use super::super::differences::check;
    use super::*;
    use crate::rng::Stream;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    #[test]
    fn running_statistics_move_towards_those_of_the_batch() {
        let mut builder = ParameterBuilder::new(8);
        let layer = BatchNorm::new(&mut builder.group("norm"), 3, 0.25).unwrap();
        let device = Device::default();
        let mut set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut tape = device.tape();
        tape.train(&set);
        let rows = tape.normals((6, 3), Stream::new(5, "rows")).unwrap();
        let x = tape.download(rows).unwrap();
        let found = layer.forward(&mut tape, rows, Mode::Train).unwrap();
        let found = tape.download(found).unwrap();
        set.keep(&tape.finish()).unwrap();
        let running =
            [&layer.running_mean, &layer.running_variance].map(|b| set.values(b).unwrap());
        for column in 0..3 {
            let pick = |all: &[f32]| -> Vec<f64> {
                (0..6).map(|row| f64::from(all[row * 3 + column])).collect()
            };
            let mean = |all: &[f64]| all.iter().sum::<f64>() / 6.0;
            let (x, y) = (pick(&x), pick(&found));
            let centre = mean(&x);
            let variance = mean(&x.iter().map(|x| (x - centre).powi(2)).collect::<Vec<_>>());
            for (x, y) in x.iter().zip(&y) {
                assert!((y - (x - centre) / (variance + FLOOR).sqrt()).abs() < 1e-5);
            }
            // Mean 0 and variance 1 at the start; the unbiased variance enters.
            assert!((f64::from(running[0][column]) - 0.25 * centre).abs() < 1e-6);
            let expected = 0.75 + 0.25 * variance * 1.2;
            assert!((f64::from(running[1][column]) - expected).abs() < 1e-5);
        }
        let mut tape = device.tape();
        tape.read(&set);
        let rows = tape.upload(x[..3].to_vec(), (1, 3)).unwrap();
        let used = layer.forward(&mut tape, rows, Mode::Evaluate).unwrap();
        let expected = (x[0] - running[0][0]) / (running[1][0] + 1e-5).sqrt();
        assert!((tape.download(used).unwrap()[0] - expected).abs() < 1e-6);
        assert!(tape.finish().kept.is_empty());
    }

    #[test]
    fn gradients_reach_scale_and_shift() {
        let mut builder = ParameterBuilder::new(8);
        let layer = BatchNorm::new(&mut builder.group("model"), 2, 0.1).unwrap();
        check(builder, &[("scale", layer.scale), ("shift", layer.shift)], |tape| {
            let rows = tape.normals((5, 2), Stream::new(5, "rows"))?;
            layer.forward(tape, rows, Mode::Train)
        });
    }
}
