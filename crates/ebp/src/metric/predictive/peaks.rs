//! Where a model puts its mass: on all peaks of the true law, on some, or elsewhere.

use crate::data::curves::NOISE_STD_DEV;
use crate::process::Process;
use crate::{IndexedSet, Result};

use super::{Evaluation, log_densities};

/// Half the width of the window around a peak, in units of σ.
const HALF_WIDTH: f64 = 4.0;
/// Simpson's rule over a window; odd.
const NUM_NODES: usize = 65;
/// How far a peak's share may be from its due, relative to it: 40 % to 60 % for two peaks.
const TOLERANCE: f64 = 0.2;

/// The share of a model's probability near each peak of the true law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakMass {
    /// At how many locations the peaks were far enough apart to be told from each other.
    pub num_locations: usize,
    /// The smallest share of any peak; one half is due where there are two.
    pub smallest: f64,
    /// The largest share of any peak.
    pub largest: f64,
    /// The mean over locations of the smallest share there.
    pub mean_smallest: f64,
    /// The mean over locations of what all peaks together carry; the rest lies elsewhere.
    pub mean_total: f64,
    /// The share of locations where every peak carries its due within a fifth: 40 % to 60 % where
    /// there are two.
    pub balanced: f64,
}

/// Integrates the model's density over m_b(t) ± 4σ at the evaluation's locations, those left out
/// where these windows overlap. `None` if they overlap everywhere.
///
/// # Errors
///
/// As [`held_out`](super::held_out).
pub fn peak_mass(process: &dyn Process, evaluation: &Evaluation) -> Result<Option<PeakMass>> {
    evaluation.check()?;
    let mut shares: Vec<Vec<f64>> = Vec::new();
    for number in 0..evaluation.num_sets {
        let (law, context, _) = evaluation.set(number)?;
        let peaks: Vec<(f64, Vec<f64>)> = evaluation
            .locations()
            .map(|t| (t, law.modes(t)))
            .filter(|(_, modes)| are_apart(modes))
            .collect();
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        for (t, modes) in &peaks {
            for mode in modes {
                locations.extend([*t; NUM_NODES]);
                values.extend((0..NUM_NODES).map(|k| mode + NOISE_STD_DEV * offset(k)));
            }
        }
        let answers = log_densities(process, &context, &IndexedSet::new(1, 1, locations, values)?)?;
        let mut windows = answers.chunks_exact(NUM_NODES).map(|window| {
            let terms = window.iter().enumerate().map(|(k, q)| simpson(k) * q.value.exp());
            terms.sum::<f64>() * NOISE_STD_DEV * (offset(1) - offset(0)) / 3.0
        });
        shares.extend(peaks.iter().map(|(_, modes)| windows.by_ref().take(modes.len()).collect()));
    }
    Ok(summary(&shares))
}

fn are_apart(modes: &[f64]) -> bool {
    modes
        .iter()
        .enumerate()
        .all(|(i, a)| modes[..i].iter().all(|b| (a - b).abs() > 2.0 * HALF_WIDTH * NOISE_STD_DEV))
}

/// Node k in units of σ.
fn offset(k: usize) -> f64 {
    HALF_WIDTH * (2.0 * k as f64 / (NUM_NODES - 1) as f64 - 1.0)
}

/// 1, 4, 2, 4, …, 4, 1
fn simpson(k: usize) -> f64 {
    match k {
        0 => 1.0,
        _ if k == NUM_NODES - 1 => 1.0,
        _ if k % 2 == 1 => 4.0,
        _ => 2.0,
    }
}

fn summary(shares: &[Vec<f64>]) -> Option<PeakMass> {
    if shares.is_empty() {
        return None;
    }
    let least = |peaks: &Vec<f64>| peaks.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = |quantity: &dyn Fn(&Vec<f64>) -> f64| {
        shares.iter().map(quantity).sum::<f64>() / shares.len() as f64
    };
    let is_balanced = |peaks: &Vec<f64>| {
        let due = 1.0 / peaks.len() as f64;
        f64::from(u8::from(peaks.iter().all(|share| (share - due).abs() <= TOLERANCE * due)))
    };
    Some(PeakMass {
        num_locations: shares.len(),
        smallest: shares.iter().map(least).fold(f64::INFINITY, f64::min),
        largest: shares.iter().flatten().copied().fold(0.0, f64::max),
        mean_smallest: mean(&least),
        mean_total: mean(&|peaks| peaks.iter().sum()),
        balanced: mean(&is_balanced),
    })
}
