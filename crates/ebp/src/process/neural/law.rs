//! The output laws of decoders: Gaussians as published, or a share of each of the 256 levels of a
//! pixel.
//!
//! ```text
//! N(x; μ, σ²)      a level gets the integral over its cell, the outermost also what lies beyond
//! softmax(s)_k     of level k, channels independent
//! ```

use std::sync::Arc;

use super::config::{Likelihood, NetworkConfig};
use super::gaussian::{HostGaussian, decoder_law};
use crate::Result;
use crate::energy::Alphabet;
use crate::process::hypotheses::log_normal_mass;
use crate::tape::{Gaussian, Tape, Var};

impl NetworkConfig {
    /// Numbers that a decoder gives for a target.
    pub(super) fn num_outputs(&self) -> usize {
        match self.likelihood {
            Likelihood::Gaussian => 2 * self.value_dim,
            Likelihood::Levels => Alphabet::PIXELS.levels * self.value_dim,
        }
    }
}

/// What a decoder says, on a tape.
#[derive(Clone, Copy, Debug)]
pub(super) enum Law {
    Gaussian(Gaussian),
    /// Potentials of the levels, `[total, d_x · 256]`.
    Levels(Var),
}

impl Law {
    pub(super) fn new(tape: &mut Tape, raw: Var, network: &NetworkConfig) -> Result<Self> {
        match network.likelihood {
            Likelihood::Gaussian => decoder_law(tape, raw, network.min_std_dev).map(Self::Gaussian),
            Likelihood::Levels => Ok(Self::Levels(raw)),
        }
    }

    /// log p of every target, `[total, 1]`: of values `[total, d_x]`, or of their levels.
    pub(super) fn log_density(
        self,
        tape: &mut Tape,
        values: Var,
        symbols: &[Arc<Vec<u32>>],
    ) -> Result<Var> {
        let potentials = match self {
            Self::Gaussian(law) => {
                let terms = tape.log_density(values, law)?;
                return tape.row_sums(terms);
            }
            Self::Levels(potentials) => potentials,
        };
        let levels = Alphabet::PIXELS.levels;
        let mut terms = Vec::with_capacity(symbols.len());
        for (channel, symbols) in symbols.iter().enumerate() {
            let own = tape.columns(potentials, channel * levels, levels)?;
            terms.push(tape.log_mass(own, symbols)?);
        }
        let terms = tape.concat(&terms)?;
        tape.row_sums(terms)
    }

    pub(super) fn download(self, tape: &mut Tape) -> Result<HostLaw> {
        match self {
            Self::Gaussian(law) => HostGaussian::download(tape, law).map(HostLaw::Gaussian),
            Self::Levels(potentials) => {
                let (rows, columns) = tape.shape(potentials);
                let levels = Alphabet::PIXELS.levels;
                let each = tape.reshape(potentials, (rows * columns / levels, levels))?;
                let shares = tape.softmax(each)?;
                Ok(HostLaw::Levels { shares: tape.download(shares)? })
            }
        }
    }
}

/// The levels of values `[total, d_x]` on [−1, 1], one list per coordinate.
pub(super) fn symbols(values: &[f32], value_dim: usize) -> Result<Vec<Arc<Vec<u32>>>> {
    let channel = |channel: usize| {
        let own = values.iter().skip(channel).step_by(value_dim);
        let symbols = own.map(|&value| Alphabet::PIXELS.symbol(f64::from(value)));
        symbols.collect::<Result<Vec<u32>>>().map(Arc::new)
    };
    (0..value_dim).map(channel).collect()
}

/// The same on the host, entry by entry of the values.
#[derive(Clone, Debug)]
pub(super) enum HostLaw {
    Gaussian(HostGaussian),
    /// `[entries, 256]`.
    Levels {
        shares: Vec<f32>,
    },
}

impl HostLaw {
    /// log of the density of `values`, which stand at the entries from `start` on.
    pub(super) fn log_density(&self, start: usize, values: &[f64]) -> Result<f64> {
        match self {
            Self::Gaussian(law) => Ok(law.log_density(start, values)),
            Self::Levels { .. } => {
                let log_cell = Alphabet::PIXELS.log_cell() * values.len() as f64;
                Ok(self.log_mass(start, values, Alphabet::PIXELS.log_cell().exp())? - log_cell)
            }
        }
    }

    /// log of the probability of the cells of `values`, of that width.
    pub(super) fn log_mass(&self, start: usize, values: &[f64], cell: f64) -> Result<f64> {
        let mut total = 0.0;
        for (at, &value) in (start..).zip(values) {
            total += match self {
                Self::Gaussian(law) => {
                    let number = ((value + 1.0) / cell).floor();
                    let edge = |number: f64| (number * cell - 1.0 - law.mean[at]) / law.std_dev[at];
                    let low = if number <= 0.0 { f64::NEG_INFINITY } else { edge(number) };
                    let is_last = (number + 1.0) * cell >= 2.0 - 1e-9;
                    let high = if is_last { f64::INFINITY } else { edge(number + 1.0) };
                    log_normal_mass(low, high)
                }
                Self::Levels { shares } => {
                    let alphabet = Alphabet::PIXELS;
                    let symbol = alphabet.symbol(value)? as usize;
                    f64::from(shares[at * alphabet.levels + symbol].max(f32::MIN_POSITIVE)).ln()
                }
            };
        }
        Ok(total)
    }

    /// The mean of every entry.
    pub(super) fn means(&self) -> Vec<f64> {
        match self {
            Self::Gaussian(law) => law.mean.clone(),
            Self::Levels { shares } => {
                let values = Alphabet::PIXELS.unit_values();
                let mean = |law: &[f32]| {
                    let terms = law.iter().zip(&values);
                    terms.map(|(&share, value)| f64::from(share) * value).sum()
                };
                shares.chunks_exact(values.len()).map(mean).collect()
            }
        }
    }

    /// A value of every entry, from one standard normal each: of levels by the normal's rank, uniform
    /// in the level's cell by what is left of it.
    pub(super) fn draws(&self, noise: &[f32]) -> Vec<f64> {
        match self {
            Self::Gaussian(law) => law.shifted(noise),
            Self::Levels { shares } => {
                let levels = Alphabet::PIXELS.levels;
                let pairs = shares.chunks_exact(levels).zip(noise);
                pairs.map(|(law, &noise)| quantile(law, rank(noise))).collect()
            }
        }
    }
}

/// Φ(z).
fn rank(z: f32) -> f64 {
    0.5 * libm::erfc(-f64::from(z) * std::f64::consts::FRAC_1_SQRT_2)
}

/// Where the distribution function of levels, straight within cells, passes `rank`.
fn quantile(law: &[f32], rank: f64) -> f64 {
    let mut below = 0.0;
    for (level, &share) in law.iter().enumerate() {
        let share = f64::from(share);
        if rank < below + share {
            let within = ((rank - below) / share).clamp(0.0, 1.0 - 1e-6);
            return 2.0 * (level as f64 + within) / law.len() as f64 - 1.0;
        }
        below += share;
    }
    // Rounding left the sum below the rank.
    1.0 - 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_their_masses_means_and_quantiles() {
        let mut shares = vec![0.0; 512];
        (shares[0], shares[255]) = (0.25, 0.75);
        shares[256 + 128] = 1.0;
        let law = HostLaw::Levels { shares };
        let cell = 2.0 / 256.0;
        let found = law.log_mass(0, &[0.999, 0.001], cell).unwrap();
        assert!((found - 0.75_f64.ln()).abs() < 1e-7);
        let density = law.log_density(0, &[0.999, 0.001]).unwrap();
        assert!((density - (found - 2.0 * cell.ln())).abs() < 1e-5);
        // Middles of the outermost cells, weighed: ½ · (255/256).
        let means = law.means();
        assert!((means[0] - 0.5 * 255.0 / 256.0).abs() < 1e-6);
        assert!((means[1] - 1.0 / 256.0).abs() < 1e-6);
        // Rank ½ is a third of the way through the upper cell, above rank ¼.
        let draws = law.draws(&[0.0, 0.0]);
        assert!((draws[0] - (2.0 * (255.0 + 1.0 / 3.0) / 256.0 - 1.0)).abs() < 1e-6);
        assert!((draws[1] - 0.5 * cell).abs() < 1e-6);
        assert_eq!(law.draws(&[-9.0, 0.0])[0].to_bits(), (-1.0_f64).to_bits());
    }
}
