//! Denoising score matching: no log Z.
//!
//! ```text
//! x̃ = x + σ ξ,   loss = mean ½ σ_min² ‖ ∇u(x̃; θ) + ξ/σ ‖²,   σ one of several
//! ```
//!
//! E[−ξ/σ | x̃] is the score of the data's law, smoothed by the mixture of the noises; so u becomes
//! its logarithm wherever x̃ may fall, up to a constant that nothing fixes. Far from all data u is
//! whatever the network makes of it.

use super::importance::Importance;
use super::{Estimate, Partition, Round, Targets};
use crate::energy::{ElementEnergy, element_rows};
use crate::recipe::EnergyBasedConfig;
use crate::rng::Stream;
use crate::tape::{Array, Device, Tape, Var};
use crate::{Error, Result};

/// Noisy values and the slopes that f should have at them, on the host.
#[derive(Clone, Debug)]
pub(crate) struct NoisyRows {
    moved: Vec<f32>,
    slopes: Vec<f32>,
}

/// The same on a device.
#[derive(Clone, Debug)]
pub(crate) struct NoisyArrays {
    moved: Array,
    slopes: Array,
}

impl NoisyRows {
    /// Of values `[n, dims]`.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        values: &[f32],
        dims: usize,
        stream: Stream,
    ) -> Self {
        let n = values.len() / dims;
        let noises = &config.score_noises;
        let (mut noise, mut choice) = (vec![0.0; n * dims], vec![0.0; n]);
        stream.child(0).fill_normal(0, 0, &mut noise);
        stream.child(1).fill_uniform(0, 0, &mut choice);
        let inverse = config.base().map_or(0.0, |std_dev| 1.0 / (std_dev * std_dev));
        let (mut moved, mut slopes) = (values.to_vec(), vec![0.0; n * dims]);
        for (row, choice) in choice.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let index = ((choice * noises.len() as f32) as usize).min(noises.len() - 1);
            for place in row * dims..(row + 1) * dims {
                moved[place] += noises[index] * noise[place];
                // ∇f = −ξ/σ + x̃/s₀², where u = f − ‖x‖²/(2 s₀²).
                slopes[place] = inverse * moved[place] - noise[place] / noises[index];
            }
        }
        Self { moved, slopes }
    }

    pub(crate) fn upload(self, device: &Device) -> Result<NoisyArrays> {
        Ok(NoisyArrays { moved: device.upload(self.moved)?, slopes: device.upload(self.slopes)? })
    }
}

#[derive(Debug)]
pub(super) struct ScoreMatching {
    pub(super) importance: Importance,
    pub(super) noises: Vec<f32>,
}

impl Partition for ScoreMatching {
    fn loss(&mut self, tape: &mut Tape, round: &Round<'_>) -> Result<Estimate> {
        let (energy, targets) = (round.element_energy()?, &round.targets);
        let parameters = energy.calibrated(tape, true)?;
        // What the energy alone says, by the candidates of importance sampling.
        let constants = (tape.detach(round.theta), tape.detach(parameters));
        let candidates = (round.candidates()?, None);
        let found = self.importance.estimate(tape, energy, targets, constants, candidates)?;
        let Some(noisy) = round.made.noisy else {
            return Err(Error::invalid("batch", "with noisy values", "without"));
        };
        let vars = (round.theta, parameters);
        let loss = noisy_loss(tape, energy, targets, vars, noisy, &self.noises)?;
        Ok(Estimate { loss, ..found })
    }
}

/// The loss, `[1, 1]`.
fn noisy_loss(
    tape: &mut Tape,
    energy: &ElementEnergy,
    targets: &Targets,
    (theta, parameters): (Var, Var),
    noisy: &NoisyArrays,
    noises: &[f32],
) -> Result<Var> {
    let shape = tape.shape(targets.values);
    let moved = tape.constant(noisy.moved.clone(), shape)?;
    let slopes = tape.constant(noisy.slopes.clone(), shape)?;
    let rows = element_rows(tape, moved, targets.features)?;
    let points = energy.points(parameters, rows, theta, &targets.offsets);
    let score = tape.point_score(&points)?;
    let missed = tape.subtract(score, slopes)?;
    let squares = tape.square(missed)?;
    let sum = tape.sum(squares)?;
    let least = f64::from(noises.iter().copied().fold(f32::INFINITY, f32::min));
    tape.affine(sum, 0.5 * least * least / shape.0 as f64, 0.0)
}
