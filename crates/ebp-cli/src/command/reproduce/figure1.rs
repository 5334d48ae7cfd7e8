//! Figure 1: all models on all datasets, one cell at a time, then tables and a picture.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::ValueEnum;
use ebp::data::CurveFamily;
use ebp::metric::predictive::{Evaluation, best_prediction};
use ebp::train::{Event, Observer};
use image::RgbImage;
use indicatif::ProgressBar;
use miette::miette;
use serde::Serialize;

use super::Figure1Arguments;
use super::cell::{self, CONTEXTS, Cell};
use super::rivals::Model;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress;
use crate::threads::start_threads;
use ebp::figure::density::points;
use ebp::figure::heat_map::HeatMap;
use ebp::figure::save;

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Report {
    datasets: BTreeMap<String, DatasetReport>,
}

#[derive(Debug, Serialize)]
struct DatasetReport {
    /// −E log p of the true density, by its own fresh elements.
    floor: f64,
    /// The best any model could do that knows the family but not the set, by context.
    best_excess: BTreeMap<usize, f64>,
    models: BTreeMap<String, ModelReport>,
}

/// Means over contexts and seeds.
#[derive(Debug, Serialize)]
struct ModelReport {
    nll: f64,
    stderr: f64,
    quadrature: f64,
    excess: f64,
    quadrature_excess: f64,
    /// Seconds of training per seed.
    seconds: f64,
    seeds: usize,
    /// The share of locations where each of two peaks carries 40 to 60 % of the mass.
    balanced_peaks: Option<f64>,
    /// Excess by context: its mean over seeds, and that of each seed.
    excess_by_context: BTreeMap<usize, f64>,
    excess_by_seed: BTreeMap<usize, Vec<f64>>,
}

/// Trains what is missing, then reports.
pub(super) fn run(arguments: &Figure1Arguments) -> Result<(), Failure> {
    let families = arguments
        .datasets
        .iter()
        .map(|name| CurveFamily::parse(name))
        .collect::<ebp::Result<Vec<_>>>()?;
    let models = arguments
        .models
        .iter()
        .map(|name| Model::parse(name).ok_or_else(|| unknown_model(name)))
        .collect::<Result<Vec<_>, _>>()?;
    let folder = arguments.out.join("results");
    if arguments.force && folder.is_dir() {
        fs::remove_dir_all(&folder)
            .map_err(|error| Failure::Failed(miette!("cannot remove the results: {error}")))?;
    }
    fs::create_dir_all(&folder).map_err(|error| {
        Failure::Failed(miette!("cannot create `{}`: {error}", folder.display()))
    })?;
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let cells = fill(arguments, &families, &models)?;
        let report = report(&families, &cells)?;
        let figure = draw(&families, &models, &cells)?;
        let path = arguments.out.join("figure1.png");
        save(&figure, &path)?;
        if arguments.json {
            return output::print_json(&report);
        }
        output::print(&tables(&report, &families, &models))?;
        output::print(&format!("picture  {}\n", path.display()))
    })
}

fn unknown_model(name: &str) -> Failure {
    let known: Vec<_> = Model::value_variants().iter().map(|model| model.name()).collect();
    Failure::Usage(miette!(
        help = format!("known are: {}", known.join(", ")),
        "there is no model `{name}`"
    ))
}

/// Every cell, from its file or trained now.
fn fill(
    arguments: &Figure1Arguments,
    families: &[CurveFamily],
    models: &[Model],
) -> Result<Vec<Cell>, Failure> {
    let folder = arguments.out.join("results");
    let total = families.len() * models.len() * arguments.seeds;
    let mut progress = CellProgress::new(total as u64, arguments.quiet);
    let mut cells = Vec::with_capacity(total);
    for &family in families {
        for &model in models {
            for seed in 1..=arguments.seeds as u64 {
                let path = Cell::path(&folder, family.name(), model, seed);
                if let Some(cell) = Cell::load(&path) {
                    progress.finish_cell(None);
                    cells.push(cell);
                    continue;
                }
                progress.begin(format!("{} {} seed {seed}", family.name(), model.name()));
                let stop = interrupt::stop_flag()?;
                let started = Instant::now();
                let process = model.train(family, seed, &mut progress, &stop)?;
                let seconds = started.elapsed().as_secs_f64();
                let interrupted = stop.load(Ordering::Relaxed);
                let Some(process) = process.filter(|_| !interrupted) else {
                    return Err(Failure::Interrupted);
                };
                drop(stop);
                progress.say("measuring");
                let cell = Cell::measure(process.as_ref(), family, model, seed, seconds)?;
                cell.save(&path)?;
                progress.finish_cell(Some(&cell));
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

/// One bar for all cells, with the step of the one at work.
#[derive(Debug)]
struct CellProgress {
    bar: ProgressBar,
    name: String,
    is_quiet: bool,
}

impl CellProgress {
    fn new(total: u64, is_quiet: bool) -> Self {
        let template = "{wide_bar} {pos}/{len}  {msg}  {elapsed}, {eta} left";
        let bar = progress::bar(total, is_quiet, template);
        Self { bar, name: String::new(), is_quiet }
    }

    fn begin(&mut self, name: String) {
        self.bar.set_message(name.clone());
        self.name = name;
    }

    fn say(&self, what: &str) {
        self.bar.set_message(format!("{}: {what}", self.name));
    }

    /// A line per trained cell where there is no bar.
    #[expect(clippy::print_stderr, reason = "progress where there is no terminal")]
    fn finish_cell(&self, cell: Option<&Cell>) {
        self.bar.inc(1);
        if let Some(cell) = cell.filter(|_| !self.is_quiet && self.bar.is_hidden()) {
            let excess: Vec<_> =
                cell.scores.iter().map(|score| format!("{:.3}", score.excess)).collect();
            eprintln!("{}: {:.0} s, excess {}", self.name, cell.seconds, excess.join(" "));
        }
    }
}

impl Observer for CellProgress {
    fn observe(&mut self, event: &Event<'_>) -> ebp::Result<()> {
        if let Event::Step(numbers) = event
            && numbers.step.is_multiple_of(20)
        {
            self.say(&format!("step {} of {}", numbers.step, numbers.num_steps));
        }
        Ok(())
    }
}

fn mean(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    numbers.clone().sum::<f64>() / numbers.count() as f64
}

fn report(families: &[CurveFamily], cells: &[Cell]) -> Result<Report, Failure> {
    let mut datasets = BTreeMap::new();
    for family in families {
        let of_dataset: Vec<&Cell> =
            cells.iter().filter(|cell| cell.dataset == family.name()).collect();
        let mut models: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
        for cell in &of_dataset {
            models.entry(cell.model.clone()).or_default().push(cell);
        }
        let floors = of_dataset.iter().flat_map(|cell| &cell.scores).map(|score| score.floor);
        let mut best_excess = BTreeMap::new();
        for num_context in CONTEXTS {
            let stream = cell::evaluation_stream();
            let evaluation = Evaluation {
                family: *family,
                num_context,
                num_sets: 40,
                num_locations: 50,
                stream,
            };
            best_excess.insert(num_context, best_prediction(&evaluation)?.excess);
        }
        let dataset = DatasetReport {
            floor: mean(floors),
            best_excess,
            models: models.into_iter().map(|(name, cells)| (name, model_report(&cells))).collect(),
        };
        datasets.insert(family.name().to_owned(), dataset);
    }
    Ok(Report { datasets })
}

fn model_report(cells: &[&Cell]) -> ModelReport {
    let scores = || cells.iter().flat_map(|cell| &cell.scores);
    let count = scores().count() as f64;
    // Seeds and contexts share their sets, so errors are averaged, not divided by √count.
    let stderr = scores().map(|score| score.stderr).sum::<f64>() / count;
    let balanced: Vec<f64> = scores().filter_map(|score| score.balanced).collect();
    let by_seed = |context: usize| -> Vec<f64> {
        scores().filter(|score| score.context == context).map(|score| score.excess).collect()
    };
    ModelReport {
        nll: mean(scores().map(|score| score.nll)),
        stderr,
        quadrature: mean(scores().map(|score| score.quadrature)),
        excess: mean(scores().map(|score| score.excess)),
        quadrature_excess: mean(scores().map(|score| score.quadrature_excess)),
        seconds: mean(cells.iter().map(|cell| cell.seconds)),
        seeds: cells.len(),
        balanced_peaks: (!balanced.is_empty()).then(|| mean(balanced.iter().copied())),
        excess_by_context: CONTEXTS
            .map(|context| (context, mean(by_seed(context).into_iter())))
            .into(),
        excess_by_seed: CONTEXTS.map(|context| (context, by_seed(context))).into(),
    }
}

fn tables(report: &Report, families: &[CurveFamily], models: &[Model]) -> String {
    let mut text = String::new();
    for name in families.iter().map(|family| family.name()) {
        let Some(dataset) = report.datasets.get(name) else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: true density {:.4} nats per element", dataset.floor);
        let mut rows = vec![
            ["model", "nll", "excess: 5", "15", "30 context", "quadrature", "peaks 40–60 %", "s"]
                .map(String::from)
                .to_vec(),
        ];
        let mut best = vec!["best possible".to_owned(), String::new()];
        best.extend(dataset.best_excess.values().map(|excess| format!("{excess:.3}")));
        rows.push(best);
        for model in models {
            let Some(found) = dataset.models.get(model.name()) else { continue };
            let mut row =
                vec![model.name().to_owned(), format!("{:.4} ± {:.4}", found.nll, found.stderr)];
            row.extend(found.excess_by_context.values().map(|excess| format!("{excess:.3}")));
            row.push(format!("{:.3}", found.quadrature_excess));
            let percent = |share: f64| format!("{:.0} %", 100.0 * share);
            row.push(found.balanced_peaks.map_or_else(String::new, percent));
            row.push(format!("{:.0}", found.seconds));
            rows.push(row);
        }
        text.push_str(&output::table(&rows));
        text.push('\n');
    }
    text
}

/// A row of panels per dataset: the truth, then every model of seed 1.
fn draw(families: &[CurveFamily], models: &[Model], cells: &[Cell]) -> Result<RgbImage, Failure> {
    let mut rows = Vec::new();
    for family in families {
        let window = cell::window(*family);
        let drawn = family.draw(cell::evaluation_stream(), cell::DRAWN_SET, 30)?;
        let told = points(&drawn.set);
        let law = drawn.law;
        let truth = window.panel("truth", told, |t, x| law.log_density(t, x).exp());
        // The truth is the brightest: a spike of a model must not darken the others.
        let brightest = truth.values.iter().copied().fold(0.0, f64::max);
        let num_columns = truth.num_columns;
        let mut panels = vec![truth];
        for model in models {
            let found = cells.iter().find(|cell| {
                cell.dataset == family.name() && cell.model == model.name() && cell.seed == 1
            });
            let Some(values) = found.and_then(|cell| cell.picture.clone()) else { continue };
            let title = model.name().to_owned();
            panels.push(ebp::figure::heat_map::Panel {
                title,
                values,
                num_columns,
                points: Vec::new(),
            });
        }
        let figure = HeatMap {
            title: format!("{}: p(x | t, 30 elements)", family.name()),
            panels_per_row: panels.len(),
            panels,
            x_range: window.locations,
            y_range: window.values,
            x_label: "t".into(),
            y_label: "x".into(),
            value_label: "density".into(),
            brightest: Some(brightest),
            scale: 1,
        };
        rows.push(figure.draw()?);
    }
    Ok(ebp::figure::stack(&rows, 1))
}
