//! What is said about one set, and how it is written down.

use std::fmt::Write;

use serde::Serialize;

use super::CurveModel;
use crate::data::table::{Locations, quoted};
use crate::process::{PredictionRule, Predictive};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// The quantiles of a summary.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// How many modes a summary in CSV has room for.
const NUM_MODES: usize = 3;
/// A maximum below this share of the highest one is no mode.
const LEAST_MODE: f64 = 0.02;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct PredictOptions {
    /// Values of the density grid.
    pub num_values: usize,
    /// Joint draws.
    pub num_samples: usize,
    /// How the latent is removed.
    pub rule: PredictionRule,
    /// All randomness of the draws.
    pub stream: Stream,
}

impl Default for PredictOptions {
    /// 200 values, 100 draws, the average of the normalised densities.
    fn default() -> Self {
        Self {
            num_values: 200,
            num_samples: 100,
            rule: PredictionRule::Mixture,
            stream: Stream::new(0, "predict"),
        }
    }
}

/// Everything that is said about one set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The name of the set.
    pub set: String,
    /// Values of the grid; empty if values have several dimensions.
    pub values: Vec<f64>,
    /// What is said about each location.
    pub locations: Vec<ForecastLocation>,
    /// Joint draws, `[draw][location][dimension]`.
    pub samples: Vec<Vec<Vec<f64>>>,
    /// Of the values in the table of locations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<ForecastTarget>,
}

/// How likely a value in the table of locations is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ForecastTarget {
    /// log p(x | t), in nats.
    pub log_density: f64,
    /// Its standard error.
    pub stderr: f64,
}

/// What is said about one location.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForecastLocation {
    /// t.
    #[serde(rename = "location")]
    pub place: Vec<f64>,
    /// The mean of x.
    pub mean: Vec<f64>,
    /// 5, 25, 50, 75 and 95 % quantiles of one-dimensional values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<f64>,
    /// Maxima of the density, the highest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ForecastMode>,
    /// p(x | t) at the values of the grid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub density: Vec<f64>,
}

/// A maximum of the density.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ForecastMode {
    /// Where.
    pub value: f64,
    /// How high.
    pub density: f64,
    /// The probability between the valleys on either side.
    pub mass: f64,
}

impl CurveModel {
    /// What the model says about the locations `at`, told `context`; both in the units of the data.
    /// `set` is a name for the forecast.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the dimensions are not the model's, [`Error::Failed`] if a value in
    /// `at` lies where the model has no density.
    pub fn predict(
        &self,
        set: &str,
        context: &IndexedSet,
        at: &Locations,
        options: &PredictOptions,
    ) -> Result<Forecast> {
        let predictive = self.condition_by(context, options.rule)?;
        forecast(set, predictive.as_ref(), at, self.value_range()?, options)
    }
}

fn forecast(
    set: &str,
    predictive: &dyn Predictive,
    at: &Locations,
    value_range: (f64, f64),
    options: &PredictOptions,
) -> Result<Forecast> {
    let samples = predictive.sample(&at.locations, options.num_samples, options.stream)?;
    let m = at.locations.len() / at.location_dim;
    let value_dim = samples.len() / (options.num_samples * m).max(1);
    let samples: Vec<Vec<Vec<f64>>> = samples
        .chunks_exact((m * value_dim).max(1))
        .map(|draw| draw.chunks_exact(value_dim).map(<[f64]>::to_vec).collect())
        .collect();
    let targets = match &at.targets {
        None => Vec::new(),
        Some(targets) => {
            let answers = predictive.log_density(targets)?;
            if let Some(row) = answers.iter().position(|answer| !answer.value.is_finite()) {
                return Err(Error::failed(format!(
                    "element {} of the table lies outside the model's domain [{:.4}, {:.4}]: \
                         its density is zero",
                    row + 1,
                    value_range.0,
                    value_range.1
                ))
                .with_help("the model was trained on values in another range"));
            }
            let target = |answer: &crate::process::LogDensity| ForecastTarget {
                log_density: answer.value,
                stderr: answer.std_error,
            };
            answers.iter().map(target).collect()
        }
    };
    let (values, locations) = if value_dim == 1 {
        let grid = Grid::new(value_range, options.num_values);
        (grid.values.clone(), grid.locations(predictive, at)?)
    } else {
        let mean = |place: usize| -> Vec<f64> {
            let sums = samples.iter().map(|draw| &draw[place]);
            let sums = sums.fold(vec![0.0; value_dim], |sum, x| {
                sum.iter().zip(x).map(|(a, b)| a + b).collect()
            });
            sums.iter().map(|sum| sum / samples.len() as f64).collect()
        };
        let location = |(place, location): (usize, &[f64])| ForecastLocation {
            place: location.to_vec(),
            mean: mean(place),
            quantiles: Vec::new(),
            modes: Vec::new(),
            density: Vec::new(),
        };
        let rows = at.locations.chunks_exact(at.location_dim).enumerate();
        (Vec::new(), rows.map(location).collect())
    };
    Ok(Forecast { set: set.to_owned(), values, locations, samples, targets })
}

/// Equally spaced values over the model's domain.
struct Grid {
    values: Vec<f64>,
    width: f64,
}

impl Grid {
    fn new((low, high): (f64, f64), count: usize) -> Self {
        let width = (high - low) / count as f64;
        let values = (0..count).map(|cell| low + (cell as f64 + 0.5) * width).collect();
        Self { values, width }
    }

    fn locations(
        &self,
        predictive: &dyn Predictive,
        at: &Locations,
    ) -> Result<Vec<ForecastLocation>> {
        let count = self.values.len();
        at.locations
            .chunks_exact(at.location_dim)
            .map(|location| {
                let targets = IndexedSet::new(
                    at.location_dim,
                    1,
                    location.repeat(count),
                    self.values.clone(),
                )?;
                let answers = predictive.log_density(&targets)?;
                let mut density: Vec<f64> = answers.iter().map(|a| a.value.exp()).collect();
                // The grid is coarser than the model's own quadrature: sums are made whole.
                let total: f64 = density.iter().sum::<f64>() * self.width;
                for p in &mut density {
                    *p /= total;
                }
                let moment = density.iter().zip(&self.values).map(|(p, x)| p * x).sum::<f64>();
                Ok(ForecastLocation {
                    place: location.to_vec(),
                    mean: vec![moment * self.width],
                    quantiles: QUANTILES.iter().map(|&q| self.quantile(&density, q)).collect(),
                    modes: self.modes(&density),
                    density,
                })
            })
            .collect()
    }

    /// Where the running integral passes `share`, straight within a cell.
    fn quantile(&self, density: &[f64], share: f64) -> f64 {
        let mut rest = share;
        for (p, x) in density.iter().zip(&self.values) {
            let mass = p * self.width;
            if rest <= mass && mass > 0.0 {
                return x + self.width * (rest / mass - 0.5);
            }
            rest -= mass;
        }
        self.values.last().copied().unwrap_or(0.0)
    }

    /// Local maxima, the highest first, each with the mass between its valleys.
    fn modes(&self, density: &[f64]) -> Vec<ForecastMode> {
        let count = density.len();
        let highest = density.iter().copied().fold(0.0, f64::max);
        let at = |cell: usize| density.get(cell).copied().unwrap_or(0.0);
        let is_mode = |cell: &usize| {
            let p = at(*cell);
            let before = if *cell == 0 { 0.0 } else { at(cell - 1) };
            p > before && p >= at(cell + 1) && p > LEAST_MODE * highest
        };
        let peaks: Vec<usize> = (0..count).filter(is_mode).collect();
        let valley = |a: usize, b: usize| {
            (a..=b).min_by(|&i, &j| density[i].total_cmp(&density[j])).unwrap_or(a)
        };
        let mut modes: Vec<ForecastMode> = peaks
            .iter()
            .enumerate()
            .map(|(number, &peak)| {
                let low = if number == 0 { 0 } else { valley(peaks[number - 1], peak) };
                let high = peaks.get(number + 1).map_or(count, |&next| valley(peak, next));
                let mass = density[low..high].iter().sum::<f64>() * self.width;
                ForecastMode { value: self.values[peak], density: density[peak], mass }
            })
            .collect();
        modes.sort_by(|a, b| b.density.total_cmp(&a.density));
        modes
    }
}

fn header(at: &Locations, columns: &[String]) -> String {
    let locations = at.names.iter().map(|name| quoted(name));
    let names: Vec<_> =
        std::iter::once("set".to_owned()).chain(locations).chain(columns.iter().cloned()).collect();
    names.join(",") + "\n"
}

fn row(text: &mut String, set: &str, location: &[f64], cells: impl Iterator<Item = Option<f64>>) {
    let numbers = location.iter().map(|t| Some(*t)).chain(cells);
    let cells: Vec<String> =
        numbers.map(|cell| cell.map_or_else(String::new, |number| format!("{number:?}"))).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{},{}", quoted(set), cells.join(","));
}

/// One row per location.
pub fn summary_csv(forecasts: &[Forecast], at: &Locations) -> String {
    let dims = forecasts.first().and_then(|f| f.locations.first()).map_or(1, |l| l.mean.len());
    let mut columns: Vec<String> = if dims == 1 {
        vec!["mean".into()]
    } else {
        (1..=dims).map(|dim| format!("mean{dim}")).collect()
    };
    if dims == 1 {
        columns.extend(QUANTILES.iter().map(|q| format!("q{:02.0}", 100.0 * q)));
        for mode in 1..=NUM_MODES {
            columns.extend(["mode", "mode_density", "mode_mass"].map(|n| format!("{n}{mode}")));
        }
    }
    let mut text = header(at, &columns);
    for forecast in forecasts {
        for location in &forecast.locations {
            let modes = (0..if dims == 1 { NUM_MODES } else { 0 }).flat_map(|number| {
                let mode = location.modes.get(number);
                [mode.map(|m| m.value), mode.map(|m| m.density), mode.map(|m| m.mass)]
            });
            let numbers = location.mean.iter().chain(&location.quantiles).map(|x| Some(*x));
            row(&mut text, &forecast.set, &location.place, numbers.chain(modes));
        }
    }
    text
}

/// One row per location and value.
///
/// # Errors
///
/// [`Error::Refused`] if values have several dimensions, of which there is no grid.
pub fn density_csv(forecasts: &[Forecast], at: &Locations) -> Result<String> {
    if forecasts.iter().any(|forecast| forecast.values.is_empty()) {
        return Err(Error::refused("a grid of densities needs values of one dimension").with_help(
            "give values in the `--at` table and use `--show targets`, or `--show samples`",
        ));
    }
    let mut text = header(at, &["x".into(), "density".into()]);
    for forecast in forecasts {
        for location in &forecast.locations {
            for (x, p) in forecast.values.iter().zip(&location.density) {
                row(&mut text, &forecast.set, &location.place, [Some(*x), Some(*p)].into_iter());
            }
        }
    }
    Ok(text)
}

/// One row per draw and location.
pub fn samples_csv(forecasts: &[Forecast], at: &Locations) -> String {
    let dims = forecasts.first().and_then(|f| f.locations.first()).map_or(1, |l| l.mean.len());
    let mut columns = vec!["draw".to_owned()];
    columns.extend((1..=dims).map(|dim| if dims == 1 { "x".into() } else { format!("x{dim}") }));
    let mut text = header(at, &columns);
    for forecast in forecasts {
        for (number, draw) in forecast.samples.iter().enumerate() {
            for (location, value) in forecast.locations.iter().zip(draw) {
                let cells = std::iter::once(number as f64).chain(value.iter().copied()).map(Some);
                row(&mut text, &forecast.set, &location.place, cells);
            }
        }
    }
    text
}

/// One row per element of the table of locations.
pub fn targets_csv(forecasts: &[Forecast], at: &Locations) -> String {
    let mut text = header(at, &["log_density".into(), "stderr".into()]);
    for forecast in forecasts {
        for (location, target) in forecast.locations.iter().zip(&forecast.targets) {
            let cells = [Some(target.log_density), Some(target.stderr)].into_iter();
            row(&mut text, &forecast.set, &location.place, cells);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        Grid::new((-4.0, 4.0), 400)
    }

    fn mixture(x: f64) -> f64 {
        let normal = |m: f64, s: f64| {
            (-0.5 * ((x - m) / s).powi(2)).exp() / (s * std::f64::consts::TAU.sqrt())
        };
        0.7 * normal(1.0, 0.3) + 0.3 * normal(-1.5, 0.2)
    }

    #[test]
    fn modes_carry_the_mass_of_their_hill() {
        let grid = grid();
        let density: Vec<f64> = grid.values.iter().map(|&x| mixture(x)).collect();
        let modes = grid.modes(&density);
        assert_eq!(modes.len(), 2);
        assert!((modes[0].value - 1.0).abs() < 0.02 && (modes[0].mass - 0.7).abs() < 1e-3);
        assert!((modes[1].value + 1.5).abs() < 0.02 && (modes[1].mass - 0.3).abs() < 1e-3);
    }

    #[test]
    fn quantiles_are_those_of_a_normal() {
        let grid = grid();
        let density: Vec<f64> = grid
            .values
            .iter()
            .map(|x| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt())
            .collect();
        // scipy.stats.norm.ppf
        for (share, expected) in [(0.05, -1.644_854), (0.5, 0.0), (0.75, 0.674_490)] {
            let found = grid.quantile(&density, share);
            assert!((found - expected).abs() < 1e-3, "{share}: {found}");
        }
    }
}
