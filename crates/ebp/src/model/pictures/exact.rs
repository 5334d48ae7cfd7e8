//! Completions by a process over a finite alphabet.

use super::complete::{Asked, Found, MAP_DRAWS};
use super::element::variances;
use super::{GivenPicture, PixelDraw};
use crate::process::{EnergyBasedProcess, Finish, LEVEL_CELL, Rendered, Rendering, draw_in_rounds};
use crate::{Error, IndexedSet, Result};

pub(super) fn complete(
    process: &EnergyBasedProcess,
    given: &GivenPicture,
    asked: Asked,
) -> Result<Found> {
    if matches!(asked.draw, PixelDraw::Langevin(_)) {
        let message =
            "`--langevin` is for models over (x, t); this one knows the law of every level exactly";
        let help = "`--grain` draws every pixel from its exact law";
        return Err(Error::refused(message).with_help(help));
    }
    let channels = given.channels;
    let context = given.context()?;
    let missing = given.missing();
    let locations = given.locations(&missing)?;
    let (count, stream) = (asked.count, asked.stream);
    let predictive = process.predict_levels(&context)?;
    let values = match asked.draw {
        PixelDraw::Rounds { rounds, has_grain } => {
            let finish = if has_grain { Finish::Drawn } else { Finish::Means };
            let (mut values, numbers) = (Vec::new(), vec![0.0; missing.len() * channels]);
            let unknown = IndexedSet::new(2, channels, locations.clone(), numbers)?;
            for number in 0..count as u64 {
                let stream = stream.child(1).child(number);
                let cell = LEVEL_CELL;
                let sets = (&context, &unknown);
                values.extend(draw_in_rounds(process, sets, cell, (rounds, finish), stream)?);
            }
            values
        }
        draw => {
            let rendering =
                if draw == PixelDraw::Grain { Rendering::Draw } else { Rendering::Mean };
            predictive.render(&locations, count, rendering, stream.child(0))?.values
        }
    };
    if !asked.has_maps {
        return Ok(Found { values, variances: Vec::new(), energies: Vec::new() });
    }
    let maps = predictive.render(&locations, MAP_DRAWS, Rendering::Draw, stream.child(2))?;
    let (variances, energies) = spread(&maps, missing.len(), channels);
    Ok(Found { values, variances, energies })
}

/// Variance over draws and mean −log p of every missing pixel.
fn spread(maps: &Rendered, missing: usize, channels: usize) -> (Vec<f64>, Vec<f64>) {
    let draws = (maps.log_mass.len() / missing.max(1)) as f64;
    let energies = (0..missing)
        .map(|pixel| -maps.log_mass.iter().skip(pixel).step_by(missing).sum::<f64>() / draws)
        .collect();
    (variances(&maps.values, missing, channels), energies)
}
