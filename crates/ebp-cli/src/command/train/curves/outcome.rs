//! What a run has learned, measured on what it has not seen.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ebp::IndexedSet;
use ebp::data::CurveFamily;
use ebp::kernel::Rbf;
use ebp::metric::predictive::{self, Evaluation};
use ebp::process::{
    ExactProcessConfig, FitConfig, GaussianProcess, Learner, Process, Standardised,
};
use ebp::rng::Stream;
use ebp::train::Regression;
use serde::Serialize;

use super::EvaluationSettings;
use super::data::{Data, Kind, Table, nats};
use crate::failure::Failure;
use crate::output;
use ebp::figure::density::{Window, points};
use ebp::figure::heat_map::HeatMap;
use ebp::figure::save;

/// The most sets and elements of a table that a Gaussian process is fitted to.
const FITTED_SETS: usize = 20;
const FITTED_ELEMENTS: usize = 200;

/// A trained process and its scores.
pub(super) struct Outcome {
    process: Box<dyn Learner>,
    report: Report,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    model: &'static str,
    steps: u64,
    seconds: f64,
    scores: Vec<Score>,
}

/// Nats per element.
#[derive(Debug, Serialize)]
struct Score {
    /// What was predicted by whom.
    name: String,
    nll: f64,
    stderr: f64,
    /// Of the true density, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_stderr: Option<f64>,
}

impl Outcome {
    pub(super) fn new(
        model: Regression,
        data: &Data,
        settings: &EvaluationSettings,
        steps: u64,
        elapsed: Duration,
    ) -> Result<Self, Failure> {
        let mut process = model.into_process();
        process.use_average()?;
        let scores = match &data.kind {
            Kind::Curves(family) => curve_scores(process.as_ref(), *family, settings)?,
            Kind::Table(table) => table_scores(process.as_ref(), data, table)?,
        };
        let seconds = elapsed.as_secs_f64();
        let report = Report { model: process.name(), steps, seconds, scores };
        Ok(Self { process, report })
    }

    /// Draws the learned density where it has two axes; where it went.
    pub(super) fn draw(&self, data: &Data, directory: &Path) -> Result<Option<PathBuf>, Failure> {
        let Some(figure) = self.figure(data)? else { return Ok(None) };
        let path = directory.join("plots").join("density.png");
        save(&figure.draw()?, &path)?;
        Ok(Some(path))
    }

    fn figure(&self, data: &Data) -> Result<Option<HeatMap>, Failure> {
        let (title, window, panels, labels) = match &data.kind {
            Kind::Curves(family) => {
                let window =
                    Window { locations: family.location_range(), values: family.value_range() };
                let drawn = family.draw(Stream::new(0, "picture"), 0, 30)?;
                let law = drawn.law;
                let truth = window.panel("truth", Vec::new(), |t, x| law.log_density(t, x).exp());
                let mut panels = vec![truth];
                for count in [5, 30] {
                    let context = drawn.set.select(&(0..count).collect::<Vec<_>>());
                    let predictive = self.process.condition(&context)?;
                    let title = format!("learned, {count} points given");
                    panels.push(window.predicted(&title, points(&context), predictive.as_ref())?);
                }
                let title = format!("{}: {}", family.name(), self.process.name());
                (title, window, panels, ("t".to_owned(), "x".to_owned()))
            }
            Kind::Table(table) => {
                let standardiser = &data.scales.standardiser;
                if (standardiser.location_dim(), standardiser.value_dim()) != (1, 1) {
                    return Ok(None);
                }
                let Some(task) = table.held_out.first() else { return Ok(None) };
                let window = table_window(table);
                let all: Vec<_> = table.sets.iter().flat_map(|named| points(&named.set)).collect();
                let process = Standardised::new(self.process.as_ref(), standardiser);
                let predictive = process.predict(&task.context)?;
                let title = format!("learned, {} points given", task.context.len());
                let panels = vec![
                    window.panel("all data", all, |_, _| 0.0),
                    window.predicted(&title, points(&task.context), &predictive)?,
                    window.predicted("without the points", Vec::new(), &predictive)?,
                ];
                (self.process.name().to_owned(), window, panels, table.labels.clone())
            }
        };
        Ok(Some(HeatMap {
            title,
            panels_per_row: panels.len(),
            panels,
            x_range: window.locations,
            y_range: window.values,
            x_label: labels.0,
            y_label: labels.1,
            value_label: "density".into(),
            brightest: None,
            scale: 2,
        }))
    }

    pub(super) fn print_json(&self, directory: &Path) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct WithFolder<'a> {
            run: String,
            #[serde(flatten)]
            report: &'a Report,
        }
        let run = directory.display().to_string();
        output::print_json(&WithFolder { run, report: &self.report })
    }

    pub(super) fn print_table(
        &self,
        data: &Data,
        directory: &Path,
        picture: Option<&Path>,
    ) -> Result<(), Failure> {
        let Report { model, steps, seconds, scores } = &self.report;
        let mut rows = vec![vec!["nats per element, lower is better".to_owned(), "nll".to_owned()]];
        if matches!(data.kind, Kind::Curves(_)) {
            rows[0].extend(["true density", "excess"].map(Into::into));
        }
        for score in scores {
            let mut row =
                vec![score.name.clone(), format!("{:.4} ± {:.4}", score.nll, score.stderr)];
            if let (Some(floor), Some(excess), Some(error)) =
                (score.floor, score.excess, score.excess_stderr)
            {
                row.extend([format!("{floor:.4}"), format!("{excess:.4} ± {error:.4}")]);
            }
            rows.push(row);
        }
        let mut text =
            format!("{model}, {steps} steps, {seconds:.1} s\n\n{}", output::table(&rows));
        if let Some(path) = picture {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\npicture  {}", path.display());
        } else {
            text.push_str("\nno picture: only one location and one value column can be drawn\n");
        }
        let _ = writeln!(text, "model    {}", directory.display());
        output::print(&text)
    }
}

fn curve_scores(
    process: &dyn Process,
    family: CurveFamily,
    settings: &EvaluationSettings,
) -> Result<Vec<Score>, Failure> {
    [5, 15, 30]
        .into_iter()
        .map(|num_context| {
            let found = predictive::held_out(
                process,
                &Evaluation {
                    family,
                    num_context,
                    num_sets: settings.num_sets,
                    num_locations: settings.num_locations,
                    stream: Stream::new(0, "evaluation"),
                },
            )?;
            Ok(Score {
                name: format!("{num_context} context elements"),
                nll: found.nll,
                stderr: found.std_error,
                floor: Some(found.floor),
                excess: Some(found.excess),
                excess_stderr: Some(found.excess_std_error),
            })
        })
        .collect()
}

/// The process on what is held out, and beside it a Gaussian process fitted to the training data.
fn table_scores(process: &dyn Process, data: &Data, table: &Table) -> Result<Vec<Score>, Failure> {
    let standardiser = &data.scales.standardiser;
    let score = |name: &str, process: &dyn Process| -> Result<Score, Failure> {
        let (nll, stderr) = nats(process, table.held_out.iter())?;
        let name = name.to_owned();
        Ok(Score { name, nll, stderr, floor: None, excess: None, excess_stderr: None })
    };
    let fitted: Vec<IndexedSet> = table
        .training
        .iter()
        .take(FITTED_SETS)
        .map(|set| set.select(&(0..set.len().min(FITTED_ELEMENTS)).collect::<Vec<_>>()))
        .collect();
    let config = ExactProcessConfig {
        location_dim: standardiser.location_dim(),
        value_dim: standardiser.value_dim(),
        ..ExactProcessConfig::default()
    };
    let start = GaussianProcess::new(Box::new(Rbf::new(1.0, 1.0)?), &config)?;
    let stream = Stream::new(0, "fit");
    let (gaussian, _) = start.fit(&fitted, &FitConfig::default(), stream)?;
    Ok(vec![
        score("held-out elements", &Standardised::new(process, standardiser))?,
        score("the same by a Gaussian process", &gaussian)?,
    ])
}

/// All data, with a little room.
fn table_window(table: &Table) -> Window {
    let range = |numbers: &mut dyn Iterator<Item = f64>| {
        let (low, high) = numbers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let room = if high > low { 0.08 * (high - low) } else { 1.0 };
        (low - room, high + room)
    };
    let sets = || table.sets.iter().map(|named| &named.set);
    Window {
        locations: range(&mut sets().flat_map(IndexedSet::locations).copied()),
        values: range(&mut sets().flat_map(IndexedSet::values).copied()),
    }
}
