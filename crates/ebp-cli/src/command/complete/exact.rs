//! Completions by a process over a finite alphabet.

use ebp::IndexedSet;
use ebp::process::{DiscreteProcess, Rendered, Rendering};
use ebp::rng::Stream;
use miette::miette;

use super::element::variances;
use super::picture::Given;
use super::{CompleteArguments, Completions, MAP_DRAWS};
use crate::command::train::pictures::filled;
use crate::failure::Failure;

pub(super) fn complete(
    process: &DiscreteProcess,
    given: &Given,
    arguments: &CompleteArguments,
) -> Result<Completions, Failure> {
    if arguments.langevin.is_some() {
        return Err(Failure::Usage(miette!(
            help = "`--grain` draws every pixel from its exact law",
            "`--langevin` is for models over (x, t); this one knows the law of every level exactly"
        )));
    }
    let channels = given.channels;
    let context = given.context()?;
    let missing = given.missing();
    let locations = given.locations(&missing);
    let stream = Stream::new(arguments.seed, "complete");
    let rendering = if arguments.grain { Rendering::Draw } else { Rendering::Mean };
    let predictive = process.predict(&context)?;
    let values = if arguments.rounds == 1 {
        predictive.render(&locations, arguments.count, rendering, stream.child(0))?.values
    } else {
        let mut values = Vec::new();
        for number in 0..arguments.count as u64 {
            let stream = stream.child(1).child(number);
            values.extend(in_rounds(process, given, &missing, arguments.rounds, stream)?);
        }
        values
    };
    let pictures = values
        .chunks_exact(missing.len() * channels)
        .map(|values| filled(&given.levels, &given.mask, channels, values))
        .collect();
    let maps = predictive.render(&locations, MAP_DRAWS, Rendering::Draw, stream.child(2))?;
    let (variances, energies) = spread(&maps, missing.len(), channels);
    Ok(Completions { pictures, variances, energies })
}

/// Draws the missing pixels in portions of random places, each given those before it.
fn in_rounds(
    process: &DiscreteProcess,
    given: &Given,
    missing: &[usize],
    rounds: usize,
    stream: Stream,
) -> Result<Vec<f64>, Failure> {
    let channels = given.channels;
    let order = stream.child(0).permutation(missing.len());
    let known = given.context()?;
    let (mut locations, mut values) = (known.locations().to_vec(), known.values().to_vec());
    let mut found = vec![0.0; missing.len() * channels];
    for (round, portion) in order.chunks(missing.len().div_ceil(rounds)).enumerate() {
        let context = IndexedSet::new(2, channels, locations.clone(), values.clone())?;
        let places: Vec<usize> = portion.iter().map(|&index| missing[index]).collect();
        let asked = given.locations(&places);
        let stream = stream.child(1 + round as u64);
        let drawn = process.predict(&context)?.render(&asked, 1, Rendering::Draw, stream)?.values;
        for (&index, value) in portion.iter().zip(drawn.chunks_exact(channels)) {
            found[index * channels..][..channels].copy_from_slice(value);
        }
        locations.extend(asked);
        values.extend(drawn);
    }
    Ok(found)
}

/// Variance over draws and mean −log p of every missing pixel.
fn spread(maps: &Rendered, missing: usize, channels: usize) -> (Vec<f64>, Vec<f64>) {
    let draws = (maps.log_mass.len() / missing.max(1)) as f64;
    let energies = (0..missing)
        .map(|pixel| -maps.log_mass.iter().skip(pixel).step_by(missing).sum::<f64>() / draws)
        .collect();
    (variances(&maps.values, missing, channels), energies)
}
