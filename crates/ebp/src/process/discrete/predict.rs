//! Predictions given a context: exact masses, means and draws of every symbol, draw by draw of θ.

use candle_core::Tensor;

use super::DiscreteProcess;
use super::energy::Targets;
use super::observed::{Elements, Observed, places};
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
        let posterior = self.posterior.encode(&[&context])?;
        let row = |tensor: &Tensor| -> Result<Vec<f32>> { Ok(tensor.flatten_all()?.to_vec1()?) };
        let (mean, log_std_dev) = (row(&posterior.mean)?, row(&posterior.log_std_dev)?);
        let context = match self.config.mode {
            crate::process::TrainingMode::Predictive => context,
            // As in training, only θ knows the context.
            crate::process::TrainingMode::FullSet => Observed::nothing(&self.config),
        };
        Ok(DiscretePredictive { process: self, context, mean, log_std_dev })
    }
}

/// A process over a finite alphabet, given a context.
#[derive(Debug)]
pub struct DiscretePredictive<'a> {
    process: &'a DiscreteProcess,
    context: Observed,
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
    /// `[count, k]` draws of θ.
    fn thetas(&self, count: usize, stream: Stream) -> Vec<f32> {
        let mut thetas = vec![0.0; count * self.mean.len()];
        stream.fill_normal(0, 0, &mut thetas);
        for theta in thetas.chunks_exact_mut(self.mean.len()) {
            for ((theta, mean), log_std_dev) in
                theta.iter_mut().zip(&self.mean).zip(&self.log_std_dev)
            {
                *theta = mean + log_std_dev.exp() * *theta;
            }
        }
        thetas
    }

    /// Calls `work` with the rows of `places` repeated for a few draws at a time, the draws' θ and
    /// the number of the first draw.
    fn visit(
        &self,
        places: &[usize],
        thetas: &[f32],
        mut work: impl FnMut(&Targets<'_>, &[f32], usize) -> Result<()>,
    ) -> Result<()> {
        let surroundings = &self.process.surroundings;
        let mut rows = surroundings.rows(&self.context, places);
        let mut num_features = surroundings.num_features();
        if let Some(attention) = &self.process.attention {
            let found = attention.look(&[&self.context], &[places])?.to_vec2::<f32>()?;
            let seen = rows.chunks_exact(num_features).zip(&found);
            rows = seen.flat_map(|(row, found)| row.iter().chain(found)).copied().collect();
            num_features += self.process.config.num_attended();
        }
        let per_chunk = (ROWS / places.len()).max(1);
        let chunks = thetas.chunks(per_chunk * self.mean.len());
        for (chunk, thetas) in chunks.enumerate() {
            let count = thetas.len() / self.mean.len();
            let repeated = rows.repeat(count);
            let offsets = SetOffsets::uniform(count, places.len())?;
            let targets =
                Targets { rows: &repeated, num_features, attended: None, offsets: &offsets };
            work(&targets, thetas, chunk * per_chunk)?;
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
        self.visit(&places, &self.thetas(count, stream), |targets, thetas, first| {
            let energy = &self.process.energy;
            for channel in 0..channels {
                let told = |row: usize, c: usize| config.value(symbols[(row % m) * channels + c]);
                let shares = energy.shares(channel, targets, thetas, told)?;
                for (row, law) in shares.chunks_exact(levels).enumerate() {
                    let symbol = symbols[(row % m) * channels + channel] as usize;
                    log_mass[first * m + row] += f64::from(law[symbol].max(f32::MIN_POSITIVE)).ln();
                }
                // The means of later channels follow the means of earlier ones.
                let shares = if channel == 0 {
                    shares
                } else {
                    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
                    let told = |row: usize, c: usize| mean[(first * m + row) * channels + c] as f32;
                    energy.shares(channel, targets, thetas, told)?
                };
                for (row, law) in shares.chunks_exact(levels).enumerate() {
                    mean[(first * m + row) * channels + channel] = self.expected(law);
                }
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
        let mut uniforms = vec![0.0; count * m * channels];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        self.visit(&places, &self.thetas(count, stream.child(0)), |targets, thetas, first| {
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
                            let mean = self.expected(law);
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

    /// Σ_k p(k) x_k.
    fn expected(&self, law: &[f32]) -> f64 {
        let config = &self.process.config;
        (0_u32..).zip(law).map(|(k, &share)| f64::from(share) * f64::from(config.value(k))).sum()
    }
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
