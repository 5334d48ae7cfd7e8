//! Predictions given a context: exact masses, means and draws of every symbol, draw by draw of θ.

use candle_core::{Device, Tensor};
use rayon::prelude::*;

use super::DiscreteProcess;
use super::energy::Targets;
use super::observed::{Elements, Observed, places};
use super::posterior::{Reading, has_elements};
use crate::process::task::{check_dimensions, count_locations};
use crate::process::{Hypotheses, LatentProcess, LogDensity, Predictive, Process};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result, SetOffsets};

/// Rows that are worked on at a time: what bounds the memory.
const ROWS: usize = 1 << 14;
/// Where the θ of densities come from, so that equal questions get equal answers.
const PREDICTION: &str = "prediction";

impl Process for DiscreteProcess {
    fn name(&self) -> &'static str {
        "ebp-exact"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.predict(context)?))
    }
}

impl LatentProcess for DiscreteProcess {
    fn hypotheses(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses> {
        let own = 2.0 / self.config.levels as f64;
        if (cell - own).abs() > 1e-9 {
            return Err(Error::invalid("cell", format!("{own}, 2 / levels"), cell));
        }
        self.predict(context)?.hypotheses(targets, count, stream)
    }
}

impl DiscreteProcess {
    /// The law given `context`. Uses the moving average of the parameters if it was swapped in.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the context does not fit.
    pub fn predict(&self, context: &IndexedSet) -> Result<DiscretePredictive<'_>> {
        check_dimensions("context", context, 2, self.config.channels)?;
        let context = Observed::new(&self.config, context)?;
        let Reading { pooled, law } = self.posterior.read(&[&context])?;
        let row = |tensor: &Tensor| -> Result<Vec<f32>> { Ok(tensor.flatten_all()?.to_vec1()?) };
        let (mean, log_std_dev) = (row(&law.mean)?, row(&law.log_std_dev)?);
        let context = match self.config.mode {
            crate::process::TrainingMode::Predictive => context,
            // As in training, only θ knows the context.
            crate::process::TrainingMode::FullSet => Observed::nothing(&self.config),
        };
        Ok(DiscretePredictive { process: self, context, pooled, mean, log_std_dev })
    }
}

/// A process over a finite alphabet, given a context.
#[derive(Debug)]
pub struct DiscretePredictive<'a> {
    process: &'a DiscreteProcess,
    /// What targets see of the context.
    context: Observed,
    /// h of the context, `[1, num_pooled]`.
    pooled: Tensor,
    mean: Vec<f32>,
    log_std_dev: Vec<f32>,
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

impl DiscretePredictive<'_> {
    /// `count` draws of the latents.
    fn latents(&self, count: usize, stream: Stream) -> Result<Latents> {
        let mut thetas = vec![0.0; count * self.mean.len()];
        stream.fill_normal(0, 0, &mut thetas);
        for theta in thetas.chunks_exact_mut(self.mean.len()) {
            for ((theta, mean), log_std_dev) in
                theta.iter_mut().zip(&self.mean).zip(&self.log_std_dev)
            {
                *theta = mean + log_std_dev.exp() * *theta;
            }
        }
        let thetas = Tensor::from_vec(thetas, (count, self.mean.len()), &Device::Cpu)?;
        let pooled = self.pooled.broadcast_as((count, self.pooled.dim(1)?))?.contiguous()?;
        let codes = match &self.process.local {
            Some(local) => Some(local.encode(&thetas, &pooled)?.draw(stream.child(1))?),
            None => None,
        };
        Ok(Latents { thetas, codes })
    }

    /// Calls `work` with the rows of `places` for a few draws at a time, the draws' θ and the
    /// number of the first draw.
    fn visit(
        &self,
        places: &[usize],
        latents: &Latents,
        mut work: impl FnMut(&Targets<'_>, &[f32], usize) -> Result<()>,
    ) -> Result<()> {
        let DiscreteProcess { surroundings, attention, canvas, .. } = self.process;
        let mut rows = surroundings.rows(&self.context, places);
        let mut num_features = surroundings.num_features();
        if let Some(attention) = attention {
            let found = attention.look(&[&self.context], &[places])?.flatten_all()?;
            rows = beside(&rows, &found.to_vec1()?, places.len());
            num_features += self.process.config.num_attended();
        }
        // Where the context is hidden from targets, the canvas does not show it either.
        let seen = self.pooled.broadcast_mul(&has_elements(&[&self.context])?)?;
        let count = latents.thetas.dim(0)?;
        let per_chunk = (ROWS / places.len()).max(1);
        for first in (0..count).step_by(per_chunk) {
            let count = per_chunk.min(count - first);
            let theta = latents.thetas.narrow(0, first, count)?;
            let codes = match &latents.codes {
                Some(codes) => Some(codes.narrow(0, first, count)?),
                None => None,
            };
            let pooled = seen.broadcast_as((count, seen.dim(1)?))?.contiguous()?;
            let painted = canvas.read(&theta, &pooled, codes.as_ref(), &vec![places; count])?;
            let mut repeated = rows.repeat(count);
            if let Some(painted) = painted {
                let numbers = painted.flatten_all()?.to_vec1()?;
                repeated = beside(&repeated, &numbers, count * places.len());
            }
            let num_features = num_features + self.process.config.num_painted();
            let offsets = SetOffsets::uniform(count, places.len())?;
            let targets =
                Targets { rows: &repeated, num_features, attended: None, offsets: &offsets };
            work(&targets, &theta.flatten_all()?.to_vec1::<f32>()?, first)?;
        }
        Ok(())
    }

    fn hypotheses(&self, targets: &IndexedSet, count: usize, stream: Stream) -> Result<Hypotheses> {
        let config = &self.process.config;
        check_dimensions("targets", targets, 2, config.channels)?;
        let m = targets.len();
        if m == 0 || count == 0 {
            return Ok(Hypotheses { log_mass: vec![], log_density: vec![], mean: vec![] });
        }
        let Elements { places, symbols } = Elements::new(config, targets)?;
        let (channels, levels) = (config.channels, config.levels);
        let mut log_mass = vec![0.0; count * m];
        let mut mean = vec![0.0; count * m * channels];
        let values = self.values();
        self.visit(&places, &self.latents(count, stream)?, |targets, thetas, first| {
            let energy = &self.process.energy;
            let (start, rows) = (first * m, targets.offsets.num_elements());
            for channel in 0..channels {
                let told = |row: usize, c: usize| config.value(symbols[(row % m) * channels + c]);
                let shares = energy.shares(channel, targets, thetas, told)?;
                let laws = shares.par_chunks_exact(levels).enumerate();
                log_mass[start..start + rows].par_iter_mut().zip(laws).for_each(
                    |(log_mass, (row, law))| {
                        let symbol = symbols[(row % m) * channels + channel] as usize;
                        *log_mass += f64::from(law[symbol].max(f32::MIN_POSITIVE)).ln();
                    },
                );
                // The means of later channels follow the means of earlier ones.
                let shares = if channel == 0 {
                    shares
                } else {
                    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
                    let told = |row: usize, c: usize| mean[(start + row) * channels + c] as f32;
                    energy.shares(channel, targets, thetas, told)?
                };
                mean[start * channels..(start + rows) * channels]
                    .par_chunks_exact_mut(channels)
                    .zip(shares.par_chunks_exact(levels))
                    .for_each(|(mean, law)| mean[channel] = expected(law, &values));
            }
            Ok(())
        })?;
        let log_cell = (2.0 / levels as f64).ln() * channels as f64;
        let log_density = log_mass.iter().map(|mass| mass - log_cell).collect();
        Ok(Hypotheses { log_mass, log_density, mean })
    }

    /// `count` pictures at `locations` `[m, 2]`, each of one θ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a location is no place of the grid.
    pub fn render(
        &self,
        locations: &[f64],
        count: usize,
        rendering: Rendering,
        stream: Stream,
    ) -> Result<Rendered> {
        let config = &self.process.config;
        let m = count_locations(locations, 2)?;
        if m == 0 || count == 0 {
            return Ok(Rendered { values: Vec::new(), log_mass: Vec::new() });
        }
        let places = places(config.grid, locations)?;
        let (channels, levels) = (config.channels, config.levels);
        let mut values = vec![0.0; count * m * channels];
        let mut log_mass = vec![0.0; count * m];
        let levels_values = self.values();
        let mut uniforms = vec![0.0; count * m * channels];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        self.visit(&places, &self.latents(count, stream.child(0))?, |targets, thetas, first| {
            for channel in 0..channels {
                #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
                let told = |row: usize, c: usize| values[(first * m + row) * channels + c] as f32;
                let shares = self.process.energy.shares(channel, targets, thetas, told)?;
                for (row, law) in shares.chunks_exact(levels).enumerate() {
                    let at = (first * m + row) * channels + channel;
                    let (value, symbol) = match rendering {
                        Rendering::Draw => {
                            let symbol = draw(law, uniforms[at]);
                            (f64::from(config.value(symbol)), symbol)
                        }
                        Rendering::Mean => {
                            let mean = expected(law, &levels_values);
                            (mean, config.symbol(mean.clamp(-1.0, 1.0))?)
                        }
                    };
                    values[at] = value;
                    let mass = law[symbol as usize].max(f32::MIN_POSITIVE);
                    log_mass[first * m + row] += f64::from(mass).ln();
                }
            }
            Ok(())
        })?;
        Ok(Rendered { values, log_mass })
    }

    /// The values of all symbols.
    fn values(&self) -> Vec<f64> {
        let config = &self.process.config;
        let symbols = 0..u32::try_from(config.levels).unwrap_or(0);
        symbols.map(|symbol| f64::from(config.value(symbol))).collect()
    }
}

/// Σ_k p(k) x_k.
fn expected(law: &[f32], values: &[f64]) -> f64 {
    law.iter().zip(values).map(|(&share, value)| f64::from(share) * value).sum()
}

/// Draws of the latents of one set.
struct Latents {
    /// `[count, k]`.
    thetas: Tensor,
    /// Of the second level, `[count, numbers]`.
    codes: Option<Tensor>,
}

/// `[n, a]` and `[n, b]` as `[n, a + b]`.
fn beside(left: &[f32], right: &[f32], n: usize) -> Vec<f32> {
    let (a, b) = (left.len() / n, right.len() / n);
    let mut rows = Vec::with_capacity(left.len() + right.len());
    for (left, right) in left.chunks_exact(a).zip(right.chunks_exact(b)) {
        rows.extend_from_slice(left);
        rows.extend_from_slice(right);
    }
    rows
}

/// The symbol at which the summed shares pass `uniform`.
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

impl Predictive for DiscretePredictive<'_> {
    /// Of values within their cells: log p of the cell minus the log of its width.
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let (m, count) = (targets.len(), self.process.config.num_draws);
        let found = self.hypotheses(targets, count, Stream::new(0, PREDICTION))?;
        let density = |target: usize| {
            let terms: Vec<f64> =
                found.log_density.iter().skip(target).step_by(m).copied().collect();
            LogDensity::of_mean(&terms)
        };
        Ok((0..m).map(density).collect())
    }

    fn sample(&self, locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        Ok(self.render(locations, count, Rendering::Draw, stream)?.values)
    }
}
