//! Predictions over a finite alphabet: exact masses, means and draws of every symbol, draw by draw
//! of θ.

use std::sync::Arc;

use rayon::prelude::*;

use super::batch::grid_rows;
use super::{EnergyBasedProcess, PictureParts};
use crate::batch::SetBatch;
use crate::energy::{LevelsEnergy, Observed, Seen, View, known_places};
use crate::process::hypotheses::log_mean_of_draws;
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{Hypotheses, LogDensity, Predictive};
use crate::rng::Stream;
use crate::tape::{Choice, Gaussian, Tape, Var};
use crate::{IndexedSet, Result, SetOffsets};

/// Rows that are computed at once.
const ROWS: usize = 1 << 14;

/// The law of further elements, given a context.
#[derive(Debug)]
pub struct LevelsPredictive<'a> {
    process: &'a EnergyBasedProcess,
    levels: &'a LevelsEnergy,
    context: SetBatch,
    seen: Option<Observed>,
}

/// Values for a list of places, one picture per draw of θ.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// On [−1, 1], `[count, m, channels]`.
    pub values: Vec<f64>,
    /// log p of each value given its θ, `[count, m]`.
    pub log_mass: Vec<f64>,
}

/// Which value of a law is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// A draw: what the model says a picture could be, grain included.
    Draw,
    /// The mean given θ: a picture without the grain.
    Mean,
}

/// Latents of several draws: θ and codes.
struct Latents {
    thetas: Vec<f32>,
    codes: Option<Vec<f32>>,
    pooled: Vec<f32>,
    count: usize,
}

/// Targets under some of the draws, on a tape.
struct Rows<'t> {
    tape: &'t mut Tape,
    features: Var,
    theta: Var,
    offsets: Arc<SetOffsets>,
    /// The first draw.
    first: usize,
}

impl<'a> LevelsPredictive<'a> {
    pub(super) fn new(
        process: &'a EnergyBasedProcess,
        levels: &'a LevelsEnergy,
        context: &IndexedSet,
    ) -> Result<Self> {
        for &value in context.values() {
            levels.alphabet.symbol(value)?;
        }
        let context = process.as_batch("context", context)?;
        let seen = process.observed(&context)?;
        Ok(Self { process, levels, context, seen })
    }

    /// Draws of both levels given everything, and log q(θ, z | context) − log q(θ, z | all) of each.
    fn latents_given(
        &self,
        targets: &IndexedSet,
        count: usize,
        stream: Stream,
    ) -> Result<(Latents, Vec<f64>)> {
        let process = self.process;
        let posterior = &process.parts.posterior;
        let all = self.context.union(&process.as_batch("targets", targets)?)?;
        let mut tape = process.device.tape();
        tape.read(&process.parameters);
        let mut read = |sets: &SetBatch, count: usize| {
            let rows = posterior.rows(sets)?.upload(&process.device)?;
            let read = posterior.read(&mut tape, &rows)?;
            Ok::<_, crate::Error>((tape.download(read.pooled)?, read.tiled(&mut tape, count)?))
        };
        let ((pooled, context), (_, all)) = (read(&self.context, count)?, read(&all, count)?);
        let theta = tape.draw(all.law, stream.child(0))?;
        let mut ratio = log_ratio(&mut tape, theta, (context.law, all.law))?;
        let mut codes = None;
        if let Some(PictureParts { local: Some(local), .. }) = &process.parts.picture {
            let (prior, law) =
                (local.read(&mut tape, theta, &context)?, local.read(&mut tape, theta, &all)?);
            let drawn = tape.draw(law, stream.child(1))?;
            let more = log_ratio(&mut tape, drawn, (prior, law))?;
            ratio = tape.add(ratio, more)?;
            codes = Some(tape.download(drawn)?);
        }
        let weights = tape.download(ratio)?.into_iter().map(f64::from).collect();
        Ok((Latents { thetas: tape.download(theta)?, codes, pooled, count }, weights))
    }

    /// log p of all targets together, by draws of the latents given everything: see
    /// [`LatentProcess::log_joint_mass`](crate::process::LatentProcess::log_joint_mass).
    pub(crate) fn log_joint_mass(
        &self,
        targets: &IndexedSet,
        count: usize,
        stream: Stream,
    ) -> Result<f64> {
        let (latents, weights) = self.latents_given(targets, count, stream)?;
        let found = self.hypotheses_under(targets, &latents)?;
        Ok(log_mean_of_draws(&found.log_mass, targets.len(), &weights))
    }

    fn latents(&self, count: usize, stream: Stream) -> Result<Latents> {
        let process = self.process;
        let thetas = process.draw_latents(&self.context, count, stream)?;
        let rows = process.parts.posterior.rows(&self.context)?.upload(&process.device)?;
        let mut tape = process.device.tape();
        tape.read(&process.parameters);
        let read = process.parts.posterior.read(&mut tape, &rows)?;
        let pooled = tape.download(read.pooled)?;
        let codes = match &process.parts.picture {
            Some(PictureParts { local: Some(local), .. }) => {
                let theta = tape.upload(thetas.clone(), (count, process.config.latent_dim))?;
                let repeated = read.tiled(&mut tape, count)?;
                let law = local.read(&mut tape, theta, &repeated)?;
                let codes = tape.draw(law, stream.child(1))?;
                Some(tape.download(codes)?)
            }
            _ => None,
        };
        Ok(Latents { thetas, codes, pooled, count })
    }

    /// Visits the targets under all draws, as many draws at once as memory should hold.
    fn visit(
        &self,
        (locations, m): (&[f64], usize),
        latents: &Latents,
        mut work: impl FnMut(&mut Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let process = self.process;
        let k = process.config.latent_dim;
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let narrow: Vec<f32> = locations.iter().map(|&t| t as f32).collect();
        let rows = if process.space.location_dim == 0 {
            vec![1.0; m]
        } else {
            process.location_rows(self.seen.as_ref(), &narrow)?
        };
        let per_chunk = (ROWS / m).max(1);
        for first in (0..latents.count).step_by(per_chunk) {
            let count = per_chunk.min(latents.count - first);
            let mut tape = process.device.tape();
            tape.read(&process.parameters);
            let thetas = latents.thetas[first * k..(first + count) * k].to_vec();
            let theta = tape.upload(thetas, (count, k))?;
            let own = tape.upload(rows.repeat(count), (count * m, rows.len() / m))?;
            let mut parts = vec![own];
            if let (Some(picture), Some(seen)) = (&process.parts.picture, &self.seen) {
                let places = known_places(picture.surroundings.grid, &narrow)?;
                let range = (first, count);
                self.computed(
                    &mut tape,
                    (picture, seen, &places),
                    (latents, theta, range),
                    &mut parts,
                )?;
            }
            let features = tape.concat(&parts)?;
            let offsets = Arc::new(SetOffsets::uniform(count, m)?);
            work(&mut Rows { tape: &mut tape, features, theta, offsets, first })?;
        }
        Ok(())
    }

    /// What is computed for targets: what they find in the context, what latents paint.
    fn computed(
        &self,
        tape: &mut Tape,
        (picture, seen, places): (&PictureParts, &Observed, &[usize]),
        (latents, theta, (first, count)): (&Latents, Var, (usize, usize)),
        parts: &mut Vec<Var>,
    ) -> Result<()> {
        let num_places = picture.surroundings.grid.num_places();
        let number = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
        if let Some(attention) = &picture.attention {
            let looks = attention.looks(&[seen], &[places], &self.process.device)?;
            let found = attention.find(tape, &looks)?;
            parts.push(tape.tile(found, count)?);
        }
        // Where the context is hidden from targets, the canvas does not show it either.
        let width = latents.pooled.len();
        let pooled =
            if seen.is_nothing() { vec![0.0; count * width] } else { latents.pooled.repeat(count) };
        let pooled = tape.upload(pooled, (count, width))?;
        let codes = match &latents.codes {
            Some(codes) => {
                let size = codes.len() / latents.count;
                let own = codes[first * size..(first + count) * size].to_vec();
                Some(tape.upload(own, (count, size))?)
            }
            None => None,
        };
        let rows = (0..count).flat_map(|draw| places.iter().map(move |p| draw * num_places + p));
        let rows = Arc::new(Choice::new(count * num_places, rows.map(number).collect())?);
        if let Some(view) = &picture.view {
            if codes.is_some() {
                let context = see(tape, view, seen)?.repeated(tape, count)?;
                parts.push(view.read(tape, (&context, codes), &rows)?);
            } else {
                let found = viewed(tape, view, seen, places)?;
                parts.push(tape.tile(found, count)?);
            }
        }
        parts.extend(picture.canvas.read(tape, (theta, pooled, codes), &rows)?);
        Ok(())
    }

    /// The share of every symbol of a channel, `[rows, levels]`; `known` are earlier channels on
    /// [−1, 1].
    fn shares(&self, rows: &mut Rows<'_>, channel: usize, known: &[f32]) -> Result<Vec<f32>> {
        let at = (rows.features, rows.theta, &rows.offsets);
        let potentials = self.levels.potentials(rows.tape, channel, at, known)?;
        let shares = rows.tape.softmax(potentials)?;
        rows.tape.download(shares)
    }

    /// What draws of θ say about targets.
    pub(crate) fn hypotheses(
        &self,
        targets: &IndexedSet,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses> {
        self.hypotheses_under(targets, &self.latents(count, stream)?)
    }

    fn hypotheses_under(&self, targets: &IndexedSet, latents: &Latents) -> Result<Hypotheses> {
        let (space, count) = (&self.process.space, latents.count);
        check_dimensions("targets", targets, space.location_dim, space.value_dim)?;
        let (m, alphabet) = (targets.len(), self.levels.alphabet);
        if m == 0 || count == 0 {
            return Ok(Hypotheses { log_mass: vec![], log_density: vec![], mean: vec![] });
        }
        let symbols = targets.values().iter().map(|&value| alphabet.symbol(value));
        let symbols = symbols.collect::<Result<Vec<u32>>>()?;
        let (channels, levels) = (space.value_dim, alphabet.levels);
        let mut log_mass = vec![0.0; count * m];
        // On [−1, 1], as networks read them.
        let mut mean = vec![0.0_f64; count * m * channels];
        let middles = alphabet.unit_values();
        self.visit((targets.locations(), m), latents, |rows| {
            let (start, total) = (rows.first * m, rows.offsets.num_elements());
            for channel in 0..channels {
                let told: Vec<f32> = (0..total)
                    .flat_map(|row| &symbols[(row % m) * channels..][..channel])
                    .map(|&symbol| alphabet.unit_value(symbol))
                    .collect();
                let shares = self.shares(rows, channel, &told)?;
                log_mass[start..start + total]
                    .par_iter_mut()
                    .zip(shares.par_chunks_exact(levels).enumerate())
                    .for_each(|(log_mass, (row, law))| {
                        let symbol = symbols[(row % m) * channels + channel] as usize;
                        *log_mass += f64::from(law[symbol].max(f32::MIN_POSITIVE)).ln();
                    });
                // The means of later channels follow the means of earlier ones.
                let shares = if channel == 0 {
                    shares
                } else {
                    let told = mean[start * channels..].chunks_exact(channels).take(total);
                    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
                    let told: Vec<f32> =
                        told.flat_map(|row| &row[..channel]).map(|&x| x as f32).collect();
                    self.shares(rows, channel, &told)?
                };
                mean[start * channels..(start + total) * channels]
                    .par_chunks_exact_mut(channels)
                    .zip(shares.par_chunks_exact(levels))
                    .for_each(|(mean, law)| mean[channel] = expected(law, &middles));
            }
            Ok(())
        })?;
        let log_cell = alphabet.log_cell() * channels as f64;
        let log_density = log_mass.iter().map(|mass| mass - log_cell).collect();
        let mean = mean.into_iter().map(|unit| alphabet.number(unit)).collect();
        Ok(Hypotheses { log_mass, log_density, mean })
    }

    /// Values at locations `[m, d_t]`, each of `count` times of one θ: drawn symbols or their means.
    /// Without locations, `count` points of one θ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if `locations` is not a whole number of
    /// rows.
    pub fn render(
        &self,
        locations: &[f64],
        count: usize,
        rendering: Rendering,
        stream: Stream,
    ) -> Result<Rendered> {
        let space = &self.process.space;
        let (m, count) = match space.location_dim {
            // Without locations there are `count` points of one θ.
            0 => (count, 1),
            dims => (count_locations(locations, dims)?, count),
        };
        if m == 0 || count == 0 {
            return Ok(Rendered { values: Vec::new(), log_mass: Vec::new() });
        }
        let (alphabet, channels) = (self.levels.alphabet, space.value_dim);
        let levels = alphabet.levels;
        let mut units = vec![0.0_f32; count * m * channels];
        let mut log_mass = vec![0.0; count * m];
        let middles = alphabet.unit_values();
        let mut uniforms = vec![0.0; count * m * channels];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        self.visit((locations, m), &self.latents(count, stream.child(0))?, |rows| {
            let (start, total) = (rows.first * m, rows.offsets.num_elements());
            for channel in 0..channels {
                let told = units[start * channels..].chunks_exact(channels).take(total);
                let told: Vec<f32> = told.flat_map(|row| &row[..channel]).copied().collect();
                let shares = self.shares(rows, channel, &told)?;
                for (row, law) in shares.chunks_exact(levels).enumerate() {
                    let at = (start + row) * channels + channel;
                    let (unit, symbol) = match rendering {
                        Rendering::Draw => {
                            let symbol = draw(law, uniforms[at]);
                            (alphabet.unit_value(symbol), symbol)
                        }
                        Rendering::Mean => {
                            let mean = expected(law, &middles);
                            let inside = alphabet.number(mean.clamp(-1.0, 1.0));
                            #[expect(
                                clippy::cast_possible_truncation,
                                reason = "networks compute in f32"
                            )]
                            let unit = mean as f32;
                            (unit, alphabet.symbol(inside)?)
                        }
                    };
                    units[at] = unit;
                    let mass = law[symbol as usize].max(f32::MIN_POSITIVE);
                    log_mass[start + row] += f64::from(mass).ln();
                }
            }
            Ok(())
        })?;
        let values = units.into_iter().map(|unit| alphabet.number(f64::from(unit))).collect();
        Ok(Rendered { values, log_mass })
    }
}

/// log prior − log law of draws, `[draws, 1]`.
fn log_ratio(tape: &mut Tape, drawn: Var, (prior, law): (Gaussian, Gaussian)) -> Result<Var> {
    let (above, below) = (tape.log_density(drawn, prior)?, tape.log_density(drawn, law)?);
    let difference = tape.subtract(above, below)?;
    tape.row_sums(difference)
}

/// What a view finds in one context, on the way down.
fn see(tape: &mut Tape, view: &View, seen: &Observed) -> Result<Seen> {
    let (grids, shape) = grid_rows(&[seen], tape.device())?;
    let grids = tape.constant(grids, shape)?;
    view.see(tape, grids)
}

/// What targets at places read of one context where there are no codes: the same for all draws.
pub(super) fn viewed(
    tape: &mut Tape,
    view: &View,
    seen: &Observed,
    places: &[usize],
) -> Result<Var> {
    let context = see(tape, view, seen)?;
    let rows = places.iter().map(|&place| u32::try_from(place).unwrap_or(u32::MAX));
    let rows = Choice::new(seen.is_known.len(), rows.collect())?;
    view.read(tape, (&context, None), &Arc::new(rows))
}

impl EnergyBasedProcess {
    /// What is said of the missing pixels of a picture, over a finite alphabet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the process has no finite alphabet or
    /// the context does not fit.
    pub fn predict_levels(&self, context: &IndexedSet) -> Result<LevelsPredictive<'_>> {
        match &self.parts.energy {
            super::Energy::Levels(levels) => LevelsPredictive::new(self, levels, context),
            super::Energy::Element(_) | super::Energy::Words(_) => {
                Err(crate::Error::invalid("estimator", "exact", self.config.estimator.name()))
            }
        }
    }
}

/// Σ value · share.
fn expected(law: &[f32], values: &[f64]) -> f64 {
    law.iter().zip(values).map(|(&share, value)| f64::from(share) * value).sum()
}

/// The symbol at which the shares' sum passes a uniform.
fn draw(law: &[f32], uniform: f32) -> u32 {
    let mut sum = 0.0;
    for (symbol, &share) in (0_u32..).zip(law) {
        sum += f64::from(share);
        if f64::from(uniform) < sum {
            return symbol;
        }
    }
    // Rounding left the sum below the uniform: the likeliest one.
    let likeliest = (0_u32..).zip(law).max_by(|a, b| a.1.total_cmp(b.1));
    likeliest.map_or(0, |(symbol, _)| symbol)
}

impl Predictive for LevelsPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let (m, count) = (targets.len(), self.process.config.num_draws);
        let found = self.hypotheses(targets, count, Stream::new(0, "prediction"))?;
        let density = |target: usize| {
            let terms = found.log_density.iter().skip(target).step_by(m).copied();
            LogDensity::of_mean(&terms.collect::<Vec<f64>>())
        };
        Ok((0..m).map(density).collect())
    }

    /// Given the latents pixels are independent, whatever each of them sees of the context.
    fn log_joint(&self, targets: &IndexedSet) -> Result<Option<LogDensity>> {
        let count = self.process.config.num_draws;
        let found = self.hypotheses(targets, count, Stream::new(0, "prediction"))?;
        let draws = found.log_density.chunks_exact(targets.len().max(1));
        let terms: Vec<f64> = draws.map(|draw| draw.iter().sum()).collect();
        Ok(Some(LogDensity::of_mean(&terms)))
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        Ok(self.render(locations, count, Rendering::Draw, stream)?.values)
    }
}
