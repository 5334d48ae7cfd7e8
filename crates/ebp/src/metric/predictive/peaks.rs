//! Where a model puts its mass: on all peaks of the true law, on some, or elsewhere.

use crate::data::curves::NOISE_STD_DEV;
use crate::process::Process;
use crate::{IndexedSet, Result};

use super::{Evaluation, log_densities};

/// The largest half-width of the window around a peak, in units of σ.
const HALF_WIDTH: f64 = 4.0;
/// Peaks at most this far apart, in units of σ, cannot be told from each other.
const LEAST_GAP: f64 = 4.0;
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

/// Integrates the model's density over m_b(t) ± 4σ at the evaluation's locations, or as far as half
/// way to the next peak. Locations where peaks are at most 4σ apart are left out; `None` if that is
/// so everywhere.
///
/// # Errors
///
/// As [`held_out`](super::held_out).
pub fn peak_mass(process: &dyn Process, evaluation: &Evaluation) -> Result<Option<PeakMass>> {
    evaluation.check()?;
    let mut shares: Vec<Vec<f64>> = Vec::new();
    for number in 0..evaluation.num_sets {
        let (law, context, _) = evaluation.set(number)?;
        let peaks: Vec<(f64, Vec<f64>, f64)> = evaluation
            .locations()
            .map(|t| (t, law.modes(t)))
            .filter_map(|(t, modes)| half_width(&modes).map(|half_width| (t, modes, half_width)))
            .collect();
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        for (t, modes, half_width) in &peaks {
            for mode in modes {
                locations.extend([*t; NUM_NODES]);
                values.extend((0..NUM_NODES).map(|k| mode + half_width * offset(k)));
            }
        }
        let answers = log_densities(process, &context, &IndexedSet::new(1, 1, locations, values)?)?;
        let mut windows = answers.chunks_exact(NUM_NODES).map(|window| {
            let terms = window.iter().enumerate().map(|(k, q)| simpson(k) * q.value.exp());
            terms.sum::<f64>() * (offset(1) - offset(0)) / 3.0
        });
        shares.extend(peaks.iter().map(|(_, modes, half_width)| {
            windows.by_ref().take(modes.len()).map(|integral| half_width * integral).collect()
        }));
    }
    Ok(summary(&shares))
}

/// 4σ, or half the smallest gap between peaks; `None` if that is too small to tell them apart.
fn half_width(modes: &[f64]) -> Option<f64> {
    let pairs = modes.iter().enumerate().flat_map(|(i, a)| modes[..i].iter().map(move |b| a - b));
    let gap = pairs.map(f64::abs).fold(f64::INFINITY, f64::min);
    let is_apart = gap > LEAST_GAP * NOISE_STD_DEV;
    is_apart.then(|| (HALF_WIDTH * NOISE_STD_DEV).min(0.5 * gap))
}

/// Node k, from −1 to 1.
fn offset(k: usize) -> f64 {
    2.0 * k as f64 / (NUM_NODES - 1) as f64 - 1.0
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
