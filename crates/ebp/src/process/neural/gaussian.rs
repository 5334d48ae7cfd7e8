//! Gaussians with independent coordinates: outputs of decoders and laws of latents.

use crate::Result;
use crate::tape::{Gaussian, Tape, Var};

const LOG_TWO_PI: f64 = 1.837_877_066_409_345_3;

/// The output law of a decoder: the first half of each row of `raw` `[rows, 2 d]` is the mean, the
/// second gives σ = floor + (1 − floor) softplus(s).
pub(super) fn decoder_law(tape: &mut Tape, raw: Var, min_std_dev: f64) -> Result<Gaussian> {
    let (mean, s) = halves(tape, raw)?;
    let softplus = tape.softplus(s)?;
    let std_dev = tape.affine(softplus, 1.0 - min_std_dev, min_std_dev)?;
    Ok(Gaussian { mean, log_std_dev: tape.log(std_dev)? })
}

/// The law of a latent, as published: σ = 0.1 + 0.9 sigmoid(s), where
/// sigmoid(s) = ½ + ½ tanh(s/2).
pub(super) fn latent_law(tape: &mut Tape, raw: Var) -> Result<Gaussian> {
    let (mean, s) = halves(tape, raw)?;
    let half = tape.affine(s, 0.5, 0.0)?;
    let bent = tape.tanh(half)?;
    let std_dev = tape.affine(bent, 0.45, 0.55)?;
    Ok(Gaussian { mean, log_std_dev: tape.log(std_dev)? })
}

/// The first and the second half of each row.
fn halves(tape: &mut Tape, raw: Var) -> Result<(Var, Var)> {
    let half = tape.shape(raw).1 / 2;
    Ok((tape.columns(raw, 0, half)?, tape.columns(raw, half, half)?))
}

/// A [`Gaussian`] on the host, row-major.
#[derive(Clone, Debug)]
pub(super) struct HostGaussian {
    pub(super) mean: Vec<f64>,
    pub(super) std_dev: Vec<f64>,
}

impl HostGaussian {
    pub(super) fn download(tape: &Tape, law: Gaussian) -> Result<Self> {
        let numbers = |var| {
            let all = tape.download(var)?;
            Ok::<_, crate::Error>(all.into_iter().map(f64::from).collect::<Vec<f64>>())
        };
        let std_dev = numbers(law.log_std_dev)?.into_iter().map(f64::exp).collect();
        Ok(Self { mean: numbers(law.mean)?, std_dev })
    }

    /// log N of `values`, which stand at the entries from `start` on.
    pub(super) fn log_density(&self, start: usize, values: &[f64]) -> f64 {
        let moments = self.mean[start..].iter().zip(&self.std_dev[start..]);
        let terms = values.iter().zip(moments).map(|(x, (mean, std_dev))| {
            let z = (x - mean) / std_dev;
            // log N = −½ z² − log σ − ½ log 2π
            -0.5 * z * z - std_dev.ln() - 0.5 * LOG_TWO_PI
        });
        terms.sum()
    }

    /// mean + σ ε at each entry.
    pub(super) fn shifted(&self, noise: &[f32]) -> Vec<f64> {
        let moments = self.mean.iter().zip(&self.std_dev);
        moments.zip(noise).map(|((mean, std_dev), &e)| mean + std_dev * f64::from(e)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Device;

    #[test]
    fn densities_have_their_closed_form() {
        let law = HostGaussian { mean: vec![1.0], std_dev: vec![2.0] };
        // −½ (3/2)² − log 2 − ½ log 2π
        let expected = -1.125 - 2_f64.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln();
        assert!((law.log_density(0, &[4.0]) - expected).abs() < 1e-12);
        assert_eq!(law.shifted(&[-0.5]), [0.0]);
    }

    #[test]
    fn the_floor_holds_and_large_outputs_do_not_overflow() {
        let mut tape = Device::default().tape();
        let raw = tape.upload(vec![0.0, -200.0, 0.0, 0.0, 0.0, 200.0], (3, 2)).unwrap();
        let law = decoder_law(&mut tape, raw, 0.1).unwrap();
        let std_dev = HostGaussian::download(&tape, law).unwrap().std_dev;
        for (found, expected) in std_dev.iter().zip([0.1, 0.1 + 0.9 * 2_f64.ln(), 180.1]) {
            assert!((found - expected).abs() < 1e-5 * expected, "{found} {expected}");
        }
        let law = latent_law(&mut tape, raw).unwrap();
        let std_dev = HostGaussian::download(&tape, law).unwrap().std_dev;
        for (found, expected) in std_dev.iter().zip([0.1, 0.55, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}
