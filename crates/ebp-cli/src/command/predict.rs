//! `ebp predict`: what a trained model says about elements it has not seen.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ebp::IndexedSet;
use ebp::data::table::{ColumnChoice, Locations, NamedSet, read_locations, read_table};
use ebp::figure::Drawing;
use ebp::figure::density::{Window, points};
use ebp::figure::heat_map::{HeatMap, WIDE};
use ebp::model::{
    CurveModel, Forecast, Model, PredictOptions, density_csv, samples_csv, summary_csv, targets_csv,
};
use ebp::process::{PredictionRule, Process};
use ebp::rng::Stream;
use miette::miette;
use serde::Serialize;

use crate::args::{Choice, Common, choice};
use crate::failure::Failure;
use crate::{device, output, progress, theme};

const HELP: &str = "\
Tables have the columns that the model was trained with: t and x, or those chosen then. Several
sets in the context (column `set`) are predicted one by one, all at the same locations.

What is shown:
  summary   mean, quantiles and the highest modes of each location, with their densities
  density   the density on a grid of values at each location
  samples   joint draws: one value per location and draw, all of one latent
  targets   log density of the values in the --at table, with its standard error, in nats

Examples:
  ebp predict runs/sines --context known.csv --at where.csv
  ebp predict runs/sines --context known.csv --at where.csv --show density > density.csv
  ebp predict runs/weather --context monday.csv --at later.csv --samples 500 --json";

/// Arguments of `ebp predict`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PredictArguments {
    /// Folder of a run of `ebp train`
    model: PathBuf,

    /// CSV file of the elements that are known [default: none are]
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,

    /// CSV file of the locations to predict at
    #[arg(long, value_name = "FILE")]
    at: PathBuf,

    /// What to print as CSV; `--json` prints all of it
    #[arg(long, value_enum, default_value_t = Show::Summary)]
    show: Show,

    /// Values of the density grid
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = crate::args::at_least_one)]
    grid: usize,

    /// Joint draws
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::args::at_least_one)]
    samples: usize,

    /// How the latent of an energy-based process is removed
    #[arg(long, default_value = "mixture", value_parser = choice(RULES))]
    rule: PredictionRule,

    /// Draw the densities as a map, of one location column and one value column: a panel for each set, of
    /// the first 12
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    common: Common,
}

/// What to print as CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    Summary,
    Density,
    Samples,
    Targets,
}

const RULES: &[Choice<PredictionRule>] = &[
    ("mixture", "The average of the normalised densities", PredictionRule::Mixture),
    (
        "geometric",
        "The paper's approximation: the normalised exponential of the average energy",
        PredictionRule::Geometric,
    ),
];

/// Sets that are drawn, and how many of them side by side.
const MOST_PANELS: usize = 12;
const PANELS_PER_ROW: usize = 4;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    model: &'a str,
    steps: u64,
    /// T of densities exp(f/T)/Z_T, where one was kept with the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    /// Where the map was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<String>,
    sets: &'a [Forecast],
}

/// Predicts and prints.
pub(crate) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    arguments.common.install(|| {
        let model = Model::load_on(&arguments.model, &device::open()?)?;
        let curves = model.curves()?;
        let dims = (curves.location_dim(), curves.value_dim());
        if arguments.picture.is_some() && dims != (1, 1) {
            return Err(Failure::Usage(miette!(
                help = "leave `--picture` out",
                "`--picture` draws one location and one value column, the model has {} and {}",
                dims.0,
                dims.1
            )));
        }
        let contexts = contexts(arguments.context.as_deref(), &curves.columns(), dims)?;
        let at = read_locations(&arguments.at, &curves.columns())?;
        check("--at", &arguments.at, at.location_dim, dims.0, "location")?;
        if let Some(targets) = &at.targets {
            check("--at", &arguments.at, targets.value_dim(), dims.1, "value")?;
        }
        if arguments.show == Show::Targets && at.targets.is_none() && !arguments.common.json {
            return Err(Failure::Usage(miette!(
                help = "add the columns of the values, or show something else",
                "`--show targets` needs values in `{}`",
                arguments.at.display()
            )));
        }
        if let Some(kept) = model.recalibration() {
            let temperature = kept.temperature;
            progress::notice(&format!(
                "recalibrated: densities are exp(f/T)/Z with T = {temperature:.4}"
            ));
        }
        let count = progress::count(contexts.len() as u64, arguments.common.quiet, "sets");
        let mut forecasts = Vec::with_capacity(contexts.len());
        for (number, NamedSet { name, set }) in contexts.iter().enumerate() {
            let options = PredictOptions {
                num_values: arguments.grid,
                num_samples: arguments.samples,
                rule: arguments.rule,
                stream: Stream::new(arguments.seed, "predict").child(number as u64),
            };
            forecasts.push(curves.predict(name, set, &at, &options)?);
            count.inc(1);
        }
        count.finish();
        if let Some(path) = &arguments.picture {
            let draw = || draw(curves, &contexts, &at, arguments.rule);
            progress::during(arguments.common.quiet, "drawing", draw)?
                .save(path, theme::chosen())?;
        }
        if arguments.common.json {
            let temperature = model.recalibration().map(|kept| kept.temperature);
            let (steps, sets) = (model.step(), forecasts.as_slice());
            let picture = arguments.picture.as_ref().map(|path| path.display().to_string());
            let report = Report { model: model.name(), steps, temperature, picture, sets };
            return output::print_json(Some(arguments.seed), &report);
        }
        let text = match arguments.show {
            Show::Summary => summary_csv(&forecasts, &at),
            Show::Density => density_csv(&forecasts, &at)?,
            Show::Samples => samples_csv(&forecasts, &at),
            Show::Targets => targets_csv(&forecasts, &at),
        };
        output::print(&text)?;
        arguments.common.show(arguments.picture.as_deref())
    })
}

/// A map of the density of each set, over all locations that are known or asked for.
fn draw(
    model: &CurveModel,
    contexts: &[NamedSet],
    at: &Locations,
    rule: PredictionRule,
) -> ebp::Result<Drawing> {
    let shown = &contexts[..contexts.len().min(MOST_PANELS)];
    let known = shown.iter().flat_map(|named| named.set.locations());
    let ends = known
        .chain(&at.locations)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |ends, &t| (ends.0.min(t), ends.1.max(t)));
    // A single location has no width of its own.
    let margin = if ends.0 < ends.1 { 0.0 } else { 0.5 };
    let locations = (ends.0 - margin, ends.1 + margin);
    let window = Window { locations, values: model.value_range()? };
    let panel = |named: &NamedSet| {
        let predictive = model.condition_by(&named.set, rule)?;
        window.predicted(&named.name, points(&named.set), predictive.as_ref())
    };
    let panels = shown.iter().map(panel).collect::<ebp::Result<Vec<_>>>()?;
    HeatMap {
        title: model.name().to_owned(),
        panels_per_row: panels.len().min(PANELS_PER_ROW),
        panels,
        x_range: window.locations,
        y_range: window.values,
        x_label: at.names.first().cloned().unwrap_or_default(),
        y_label: "value".into(),
        value_label: "density".into(),
        brightest: None,
        has_cells: false,
        aspect: WIDE,
    }
    .draw()
}

/// The sets of the context table, or one set of which nothing is known.
fn contexts(
    path: Option<&Path>,
    columns: &ColumnChoice,
    dims: (usize, usize),
) -> Result<Vec<NamedSet>, Failure> {
    let Some(path) = path else {
        let set = IndexedSet::empty(dims.0, dims.1)?;
        return Ok(vec![NamedSet { name: "all".into(), set }]);
    };
    let sets = read_table(path, columns)?;
    if let Some(first) = sets.first() {
        check("--context", path, first.set.location_dim(), dims.0, "location")?;
        check("--context", path, first.set.value_dim(), dims.1, "value")?;
    }
    Ok(sets)
}

fn check(
    flag: &str,
    path: &Path,
    found: usize,
    expected: usize,
    what: &str,
) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::Usage(miette!(
        help = "use the columns that the model was trained with",
        "`{flag} {}` has {found} {what} columns, the model has {expected}",
        path.display()
    )))
}
