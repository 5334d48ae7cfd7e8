//! A model of curves on fresh or held-out elements.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Picture, folder_of};
use crate::data::CurveFamily;
use crate::experiment::{table, with_interval};
use crate::figure::density::{Window, points};
use crate::figure::heat_map::{self, HeatMap, Panel};
use crate::kernel::Rbf;
use crate::metric::predictive::{self, Evaluation};
use crate::model::{CurveData, CurveEvaluation, CurveModel, CurveSource, Model, TableData, nats};
use crate::process::{ExactProcessConfig, FitConfig, GaussianProcess, Process};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// The most sets and elements of a table that a Gaussian process is fitted to.
const FITTED_SETS: usize = 20;
const FITTED_ELEMENTS: usize = 200;

/// What a model of curves has learned.
#[derive(Clone, Debug, Serialize)]
pub struct CurveOutcome {
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its name.
    pub model: &'static str,
    /// After how many steps.
    pub steps: u64,
    /// Of training.
    pub seconds: f64,
    /// What was predicted how well.
    pub scores: Vec<CurveScore>,
    /// Where the picture belongs, if there is one.
    #[serde(skip)]
    pub picture: Option<PathBuf>,
}

/// Nats per element.
#[derive(Clone, Debug, Serialize)]
pub struct CurveScore {
    /// What was predicted by whom.
    pub name: String,
    /// Mean negative log density.
    pub nll: f64,
    /// Its standard error.
    pub stderr: f64,
    /// Of the true density, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// Above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess_stderr: Option<f64>,
}

pub(super) fn judge(
    model: &Model,
    data: &CurveData,
    plots: &Path,
) -> Result<(CurveOutcome, Option<Picture>)> {
    let process = model.curves()?;
    let scores = match &data.source {
        CurveSource::Curves(family) => {
            curve_scores(process, *family, &process.settings().evaluation)?
        }
        CurveSource::Table(table) => table_scores(process, table)?,
    };
    let picture = match figure(process, data)? {
        Some(figure) => Some((plots.join("density.png"), figure.draw()?.into())),
        None => None,
    };
    let outcome = CurveOutcome {
        run: folder_of(model),
        model: process.name(),
        steps: model.step(),
        seconds: model.seconds().unwrap_or(0.0),
        scores,
        picture: picture.as_ref().map(|(path, _)| path.clone()),
    };
    Ok((outcome, picture))
}

fn curve_scores(
    process: &dyn Process,
    family: CurveFamily,
    settings: &CurveEvaluation,
) -> Result<Vec<CurveScore>> {
    let score = |num_context| {
        let evaluation = Evaluation {
            family,
            num_context,
            num_sets: settings.num_sets,
            num_locations: settings.num_locations,
            stream: Stream::new(0, "evaluation"),
        };
        let found = predictive::held_out(process, &evaluation)?;
        Ok(CurveScore {
            name: format!("{num_context} context elements"),
            nll: found.nll,
            stderr: found.std_error,
            floor: Some(found.floor),
            excess: Some(found.excess),
            excess_stderr: Some(found.excess_std_error),
        })
    };
    [5, 15, 30].into_iter().map(score).collect()
}

/// The model on what is held out, and beside it a Gaussian process fitted to the training data.
fn table_scores(model: &CurveModel, table: &TableData) -> Result<Vec<CurveScore>> {
    let score = |name: &str, process: &dyn Process| -> Result<CurveScore> {
        let (nll, stderr) = nats(process, table.held_out.iter())?;
        let name = name.to_owned();
        Ok(CurveScore { name, nll, stderr, floor: None, excess: None, excess_stderr: None })
    };
    let fitted: Vec<IndexedSet> = table
        .training
        .iter()
        .take(FITTED_SETS)
        .map(|set| set.select(&(0..set.len().min(FITTED_ELEMENTS)).collect::<Vec<_>>()))
        .collect();
    let config = ExactProcessConfig {
        location_dim: model.location_dim(),
        value_dim: model.value_dim(),
        ..ExactProcessConfig::default()
    };
    let start = GaussianProcess::new(Box::new(Rbf::new(1.0, 1.0)?), &config)?;
    let (gaussian, _) = start.fit(&fitted, &FitConfig::default(), Stream::new(0, "fit"))?;
    Ok(vec![
        score("held-out elements", model)?,
        score("the same by a Gaussian process", &gaussian)?,
    ])
}

/// The learned density, where it has two axes.
fn figure(model: &CurveModel, data: &CurveData) -> Result<Option<HeatMap>> {
    let (title, window, panels, labels) = match &data.source {
        CurveSource::Curves(family) => {
            let (window, panels) = curve_panels(model, *family)?;
            let title = format!("{}: {}", family.name(), model.name());
            (title, window, panels, ("t".to_owned(), "x".to_owned()))
        }
        CurveSource::Table(table) => {
            if (model.location_dim(), model.value_dim()) != (1, 1) {
                return Ok(None);
            }
            let Some(task) = table.held_out.first() else { return Ok(None) };
            let window = table_window(table);
            let all: Vec<_> = table.sets.iter().flat_map(|named| points(&named.set)).collect();
            let predictive = model.condition(&task.context)?;
            let title = format!("learned, {} points given", task.context.len());
            let panels = vec![
                window.panel("all data", all, |_, _| 0.0),
                window.predicted(&title, points(&task.context), predictive.as_ref())?,
                window.predicted("without the points", Vec::new(), predictive.as_ref())?,
            ];
            (model.name().to_owned(), window, panels, table.labels.clone())
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
        has_cells: false,
        aspect: heat_map::WIDE,
    }))
}

/// The truth, and what is learned given few and many points.
fn curve_panels(model: &CurveModel, family: CurveFamily) -> Result<(Window, Vec<Panel>)> {
    let window = Window { locations: family.location_range(), values: family.value_range() };
    let drawn = family.draw(Stream::new(0, "picture"), 0, 30)?;
    let law = drawn.law;
    let mut panels = vec![window.panel("truth", Vec::new(), |t, x| law.log_density(t, x).exp())];
    for count in [5, 30] {
        let context = drawn.set.select(&(0..count).collect::<Vec<_>>());
        let predictive = model.condition(&context)?;
        let title = format!("learned, {count} points given");
        panels.push(window.predicted(&title, points(&context), predictive.as_ref())?);
    }
    Ok((window, panels))
}

/// All data, with a little room.
fn table_window(table: &TableData) -> Window {
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

impl Display for CurveOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![vec!["nats per element, lower is better".to_owned(), "nll".to_owned()]];
        if self.scores.iter().any(|score| score.floor.is_some()) {
            rows[0].extend(["true density", "excess"].map(Into::into));
        }
        for score in &self.scores {
            let mut row = vec![score.name.clone(), with_interval(score.nll, score.stderr, 4)];
            if let (Some(floor), Some(excess), Some(error)) =
                (score.floor, score.excess, score.excess_stderr)
            {
                row.extend([format!("{floor:.4}"), with_interval(excess, error, 4)]);
            }
            rows.push(row);
        }
        let Self { model, steps, seconds, .. } = self;
        writeln!(
            f,
            "{model}, {steps} steps, {seconds:.1} s; ± is half of a 95 % interval over elements\n\n{}",
            table(&rows)
        )?;
        match &self.picture {
            Some(path) => writeln!(f, "picture  {}", path.display())?,
            None => {
                writeln!(f, "no picture: only one location and one value column can be drawn")?;
            }
        }
        self.run.as_ref().map_or(Ok(()), |run| writeln!(f, "model    {run}"))
    }
}
