//! Completions by a process with a network over (x, t), whose values are continuous.

use super::complete::{Asked, Found, MAP_DRAWS};
use super::{GivenPicture, PixelDraw};
use crate::process::EnergyBasedProcess;
use crate::process::{FillSettings, LEVEL_CELL, LatentProcess, PredictionRule, Predictive};
use crate::{Error, IndexedSet, Result};

/// Draws whose densities are computed for the map of energy; each is an integral per pixel.
const ENERGY_DRAWS: usize = 4;

pub(super) fn complete(
    process: &EnergyBasedProcess,
    given: &GivenPicture,
    asked: Asked,
) -> Result<Found> {
    if matches!(asked.draw, PixelDraw::Rounds { .. }) {
        let message = "`--rounds` is for models with exact laws of levels";
        let help = "`--langevin 200` or `--grain` draws the pixels of such a model";
        return Err(Error::refused(message).with_help(help));
    }
    let channels = given.channels;
    let context = given.context()?;
    let missing = given.missing();
    let locations = given.locations(&missing)?;
    let numbers = missing.len() * channels;
    let (count, stream) = (asked.count, asked.stream);
    let predictive = process.predict(&context, PredictionRule::Mixture)?;
    let values = match asked.draw {
        PixelDraw::Langevin(num_steps) => {
            let settings = FillSettings { num_steps, ..FillSettings::default() };
            process.fill(&context, &locations, count, &settings, stream.child(0))?
        }
        PixelDraw::Grain => predictive.sample(&locations, count, stream.child(0))?,
        PixelDraw::Mean | PixelDraw::Rounds { .. } => {
            let asked = IndexedSet::new(2, channels, locations.clone(), vec![0.0; numbers])?;
            process.hypotheses(&context, &asked, LEVEL_CELL, count, stream.child(0))?.mean
        }
    };
    if !asked.has_maps {
        return Ok(Found { values, variances: Vec::new(), energies: Vec::new() });
    }
    let draws = predictive.sample(&locations, MAP_DRAWS, stream.child(2))?;
    let mut energies = vec![0.0; missing.len()];
    // −log of the mass of a level's cell, to be compared with models of levels.
    let log_cell = channels as f64 * LEVEL_CELL.ln();
    for draw in draws.chunks_exact(numbers).take(ENERGY_DRAWS) {
        let drawn = IndexedSet::new(2, channels, locations.clone(), draw.to_vec())?;
        for (energy, found) in energies.iter_mut().zip(predictive.log_density(&drawn)?) {
            *energy -= (found.value + log_cell) / ENERGY_DRAWS as f64;
        }
    }
    let variances = variances(&draws, missing.len(), channels);
    Ok(Found { values, variances, energies })
}

/// Variance over draws `[draws, missing, channels]` of every missing pixel, mean over channels.
pub(super) fn variances(draws: &[f64], missing: usize, channels: usize) -> Vec<f64> {
    let numbers = missing * channels;
    let count = (draws.len() / numbers) as f64;
    let of_number = |number: usize| {
        let values = || draws.iter().skip(number).step_by(numbers);
        let mean = values().sum::<f64>() / count;
        values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)
    };
    let pixel = |pixel: usize| {
        (pixel * channels..(pixel + 1) * channels).map(of_number).sum::<f64>() / channels as f64
    };
    (0..missing).map(pixel).collect()
}
