//! Whether the densities of a trained model are calibrated, and what a temperature changes.
//!
//! Every held-out element is asked for given those of its set that come before it, so that positions
//! u = F(x | context) of a right model are independent and uniform. Two splits that training has not
//! seen: on the first a temperature T of exp(f/T)/Z_T is fitted by likelihood, on the second
//! everything is reported, before and after.

mod known;
mod latent;
mod questions;
mod report;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use self::known::{KnownPosteriors, KnownReport, KnownRow};
pub use self::latent::LatentReport;
use self::questions::Questions;
pub use self::report::{CalibrationReport, CalibrationRow, Covered};
use super::Findings;
use crate::figure::calibration::CalibrationPlot;
use crate::metric::predictive::{LevelLaw, Standing, level_laws, ranks, standings, true_standings};
use crate::model::{CurveModel, Model, PictureModel, Recalibration};
use crate::process::{Process, Task};
use crate::rng::Stream;
use crate::{Error, Result};

/// Temperatures that are compared: ¼ to 4 in steps of 2^(1/20), then a parabola through the best.
const STEPS_PER_DOUBLING: i32 = 20;
/// The largest share of mass that a grid may miss before the report says so.
pub(super) const LACK: f64 = 0.01;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct CalibrationExperiment {
    /// A table of sets in the model's columns, in place of the data it was trained with.
    pub data: Option<PathBuf>,
    /// Sets of built-in curves, or pictures, in each of the two splits.
    pub num_sets: usize,
    /// Elements of each that are asked for, one given the other.
    pub num_elements: usize,
    /// Draws among which a value has its rank.
    pub num_draws: usize,
    /// Simulations for the calibration of q(θ | set); 0 for none.
    pub num_simulations: usize,
    /// Where pictures belong.
    pub folder: PathBuf,
    /// Seed of sets and draws.
    pub seed: u64,
}

impl CalibrationExperiment {
    /// Asks the model and reports.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the model has no predictive densities of single values or there are too few
    /// data; otherwise what the model says.
    pub fn run(&self, model: &Model) -> Result<Findings<CalibrationReport>> {
        self.run_watched(model, &mut |_| {})
    }

    /// The same; `watch` is told what begins.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_watched(
        &self,
        model: &Model,
        watch: &mut dyn FnMut(&str),
    ) -> Result<Findings<CalibrationReport>> {
        let (report, plots) = match model.settings().kind() {
            "curves" => self.curves(model, model.curves()?, watch)?,
            "pictures" => self.pictures(model, model.pictures()?, watch)?,
            kind => {
                let message = format!("a model of {kind} has no densities of values at locations");
                let help = "models of curves, tables and pictures can be calibrated";
                return Err(Error::refused(message).with_help(help));
            }
        };
        let path = self.folder.join("calibration.png");
        let picture = CalibrationPlot { panels: plots }.draw()?;
        let report = CalibrationReport { picture: path.display().to_string(), ..report };
        Ok(Findings { report, pictures: vec![(path, picture.into())] })
    }

    fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed, name)
    }

    fn curves(
        &self,
        model: &Model,
        process: &CurveModel,
        watch: &mut dyn FnMut(&str),
    ) -> Result<Asked> {
        watch("drawing questions");
        let questions = Questions::of_curves(self, model, process)?;
        let range = process.value_range()?;
        let is_single = process.value_dim() == 1;
        watch("fitting a temperature");
        let fit =
            if is_single { fit_curves(process, &questions.choose, model.step())? } else { None };
        let mut rows = Vec::new();
        let mut row = |name: &str, process: &dyn Process| -> Result<()> {
            let tasks = &questions.report;
            watch(&format!("{name}: ranks among draws"));
            let found = ranks(process, tasks, self.num_draws, self.stream("calibration ranks"))?;
            watch(&format!("{name}: positions"));
            let found = if is_single {
                CalibrationRow::new(name, &standings(process, tasks, range)?, &questions.sets)?
            } else {
                CalibrationRow::of_ranks(name, tasks.len())
            }
            .with_ranks(&found, self.num_draws, self.stream("calibration ties"))?;
            rows.push(found);
            Ok(())
        };
        let untempered = process.at_temperature(1.0);
        row(process.name(), &untempered)?;
        if let Some(fit) = &fit {
            let name = format!("{} at T = {:.3}", process.name(), fit.temperature);
            row(&name, &process.at_temperature(fit.temperature))?;
        }
        if let Some(family) = questions.family {
            watch("the true law: positions");
            let found = true_standings(family, &questions.report)?;
            rows.push(CalibrationRow::new("the true law", &found, &questions.sets)?);
        }
        let latent = match process.energy_based() {
            Some(energy_based) if self.num_simulations > 0 => {
                watch("simulations of θ");
                let contexts = questions.report.iter().map(|task| &task.context);
                let count = (self.num_simulations, process.settings().tasks.max_context);
                let stream = self.stream("simulations");
                Some(LatentReport::new(
                    energy_based,
                    process.standardiser(),
                    contexts,
                    count,
                    stream,
                )?)
            }
            _ => None,
        };
        Ok(asked(model, questions.source, rows, fit, latent))
    }

    fn pictures(
        &self,
        model: &Model,
        pictures: &PictureModel,
        watch: &mut dyn FnMut(&str),
    ) -> Result<Asked> {
        if pictures.size().channels != 1 {
            let message = "positions of pixels with several channels are not defined";
            return Err(Error::refused(message).with_help("grey pictures can be calibrated"));
        }
        if self.data.is_some() {
            let message = "`--data` takes tables for models of curves";
            return Err(Error::refused(message)
                .with_help("a model of pictures is asked about the pictures of its settings"));
        }
        watch("drawing questions");
        let questions = Questions::of_pictures(self, model, pictures)?;
        let process = pictures.process();
        let num_draws = pictures.settings().evaluation.num_draws;
        let laws =
            |tasks: &[Task], name: &str| level_laws(process, tasks, num_draws, self.stream(name));
        watch("pixels to report");
        let report = laws(&questions.report, "levels to report")?;
        let standings = |laws: &[LevelLaw], temperature: f64| -> Vec<Standing> {
            laws.par_iter().map(|law| law.standing(temperature)).collect()
        };
        let mut rows =
            vec![CalibrationRow::new(process.name(), &standings(&report, 1.0), &questions.sets)?];
        let mut fit = None;
        if process.name().starts_with("ebp") {
            watch("pixels to fit a temperature");
            let choose = laws(&questions.choose, "levels to choose")?;
            let nats = |temperature: f64| mean_nats(&standings(&choose, temperature));
            let found = fit_temperature(&nats, choose.len(), model.step());
            let name = format!("{} at T = {:.3}", process.name(), found.temperature);
            let standings = standings(&report, found.temperature);
            rows.push(CalibrationRow::new(&name, &standings, &questions.sets)?);
            fit = Some(found);
        }
        Ok(asked(model, questions.source, rows, fit, None))
    }
}

/// A report, and what is drawn of it.
type Asked = (CalibrationReport, Vec<(String, crate::metric::uniformity::Uniformity)>);

fn asked(
    model: &Model,
    source: String,
    rows: Vec<CalibrationRow>,
    fit: Option<Recalibration>,
    latent: Option<LatentReport>,
) -> Asked {
    let plots = rows
        .iter()
        .filter_map(|row| Some((row.name.clone(), row.positions.as_ref().or(row.ranks.as_ref())?)))
        .map(|(name, found)| (name, found.clone()))
        .collect();
    let report = CalibrationReport {
        model: model.name().to_owned(),
        steps: model.step(),
        source,
        rows,
        recalibration: fit,
        kept: model.recalibration().map(|kept| kept.temperature),
        latent,
        picture: String::new(),
    };
    (report, plots)
}

fn mean_nats(standings: &[Standing]) -> f64 {
    -standings.iter().map(|s| s.log_density).sum::<f64>() / standings.len() as f64
}

/// The temperature with the highest likelihood of the choosing split; `None` of rivals.
fn fit_curves(model: &CurveModel, tasks: &[Task], step: u64) -> Result<Option<Recalibration>> {
    if model.energy_based().is_none() {
        return Ok(None);
    }
    let temperatures = candidates();
    let of_task = |task: &Task| -> Result<Vec<f64>> {
        let found = model.log_densities_at(task, &temperatures)?.unwrap_or_default();
        Ok(found.into_iter().map(|of_targets| of_targets.iter().sum()).collect())
    };
    let found: Vec<Vec<f64>> = tasks.par_iter().map(of_task).collect::<Result<_>>()?;
    let mut sums = vec![0.0; temperatures.len()];
    for densities in &found {
        sums.iter_mut().zip(densities).for_each(|(sum, density)| *sum -= density);
    }
    let nats: Vec<f64> = sums.iter().map(|sum| sum / tasks.len() as f64).collect();
    Ok(Some(best(&temperatures, &nats, tasks.len(), step)))
}

fn fit_temperature(nats: &dyn Fn(f64) -> f64, count: usize, step: u64) -> Recalibration {
    let temperatures = candidates();
    let found: Vec<f64> = temperatures.iter().map(|&t| nats(t)).collect();
    best(&temperatures, &found, count, step)
}

fn candidates() -> Vec<f64> {
    let exponent = |k: i32| f64::from(k) / f64::from(STEPS_PER_DOUBLING);
    (-2 * STEPS_PER_DOUBLING..=2 * STEPS_PER_DOUBLING).map(|k| exponent(k).exp2()).collect()
}

/// The lowest of `nats`, by a parabola in log T where it lies inside.
fn best(temperatures: &[f64], nats: &[f64], count: usize, step: u64) -> Recalibration {
    let lowest = nats.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    let index = lowest.map_or(0, |(index, _)| index);
    let (mut temperature, mut nats_after) = (temperatures[index], nats[index]);
    if index > 0 && index + 1 < nats.len() {
        let [a, b, c] = [nats[index - 1], nats[index], nats[index + 1]];
        let curvature = a - 2.0 * b + c;
        if curvature > 0.0 {
            let shift = 0.5 * (a - c) / curvature;
            temperature *= (shift / f64::from(STEPS_PER_DOUBLING)).exp2();
            nats_after = b - 0.125 * (a - c).powi(2) / curvature;
        }
    }
    let middle = nats.len() / 2;
    Recalibration { temperature, step, count, nats_before: nats[middle], nats_after }
}

/// The folder of pictures where none was named.
pub fn default_folder(model: &Path) -> PathBuf {
    model.join("plots")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of −log p = T₀/T + log T per element, as an exponential law has, T = T₀ is the best.
    #[test]
    fn the_best_temperature_is_found_between_candidates() {
        for truth in [0.6, 0.97, 1.0, 1.31] {
            let fit = fit_temperature(&|t| truth / t + t.ln(), 100, 3);
            assert!((fit.temperature / truth - 1.0).abs() < 1e-3, "{truth}: {fit:?}");
            assert!((fit.nats_before - truth).abs() < 1e-12);
            assert!((fit.nats_after - 1.0 - truth.ln()).abs() < 1e-5);
        }
        // Beyond the candidates the last of them is taken.
        let fit = fit_temperature(&|t| 9.0 / t + t.ln(), 100, 3);
        assert!((fit.temperature - 4.0).abs() < 1e-12);
    }
}
