//! `ebp predict`: what a trained model says about elements it has not seen.
//!
//! The path: model and tables → a [`Forecast`] of every set → CSV or JSON.

mod forecast;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ebp::IndexedSet;
use ebp::data::table::{ColumnChoice, NamedSet, read_locations, read_table};
use ebp::process::{EnergyBasedProcess, PredictionRule, Predictive, Process, Standardised};
use ebp::rng::Stream;
use miette::miette;
use serde::Serialize;

use self::forecast::{Forecast, Sizes};
use super::train::TrainedModel;
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

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

    /// How the latent is removed
    #[arg(long, value_enum, default_value_t = Rule::Mixture)]
    rule: Rule,

    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,

    /// Print one JSON object instead of CSV
    #[arg(long)]
    json: bool,
}

/// What to print as CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    Summary,
    Density,
    Samples,
    Targets,
}

/// How the latent is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rule {
    /// The average of the normalised densities
    Mixture,
    /// The paper's approximation: the normalised exponential of the average energy
    Geometric,
}

/// An energy-based process with the rule asked for.
#[derive(Debug)]
struct WithRule<'a> {
    process: &'a EnergyBasedProcess,
    rule: PredictionRule,
}

impl Process for WithRule<'_> {
    fn name(&self) -> &'static str {
        self.process.name()
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> ebp::Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(self.process.predict(context, self.rule)?))
    }
}

/// Predicts and prints.
pub(crate) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    let model = TrainedModel::load(&arguments.model)?;
    let choice = ColumnChoice {
        set: model.settings.data.set_column.clone(),
        // A context is often a single set.
        set_is_optional: true,
        locations: model.settings.data.location_columns.clone(),
        values: model.settings.data.value_columns.clone(),
    };
    let dims = (model.standardiser.location_dim(), model.standardiser.value_dim());
    let contexts = contexts(arguments.context.as_deref(), &choice, dims)?;
    let at = read_locations(&arguments.at, &choice)?;
    check("--at", &arguments.at, at.location_dim, dims.0, "location")?;
    if let Some(targets) = &at.targets {
        check("--at", &arguments.at, targets.value_dim(), dims.1, "value")?;
    }
    if arguments.show == Show::Targets && at.targets.is_none() && !arguments.json {
        return Err(Failure::Usage(miette!(
            help = "add the columns of the values, or show something else",
            "`--show targets` needs values in `{}`",
            arguments.at.display()
        )));
    }
    let rule = match arguments.rule {
        Rule::Mixture => PredictionRule::Mixture,
        Rule::Geometric => PredictionRule::Geometric,
    };
    let with_rule = WithRule { process: &model.process, rule };
    let process = Standardised::new(&with_rule, &model.standardiser);
    let sizes = Sizes {
        num_values: arguments.grid,
        num_samples: arguments.samples,
        value_range: value_range(&model)?,
    };
    let threads = start_threads(arguments.threads)?;
    let forecasts = threads.install(|| {
        contexts
            .iter()
            .enumerate()
            .map(|(number, NamedSet { name, set })| {
                let predictive = process.predict(set)?;
                let stream = Stream::new(arguments.seed, "predict").child(number as u64);
                Forecast::new(name, &predictive, &at, &sizes, stream)
            })
            .collect::<Result<Vec<_>, Failure>>()
    })?;
    if arguments.json {
        #[derive(Serialize)]
        struct All<'a> {
            model: &'a str,
            steps: u64,
            sets: &'a [Forecast],
        }
        let model = All { model: model.process.name(), steps: model.step, sets: &forecasts };
        return output::print_json(&model);
    }
    let text = match arguments.show {
        Show::Summary => forecast::summary_csv(&forecasts, &at),
        Show::Density => forecast::density_csv(&forecasts, &at)?,
        Show::Samples => forecast::samples_csv(&forecasts, &at),
        Show::Targets => forecast::targets_csv(&forecasts, &at),
    };
    output::print(&text)
}

/// The sets of the context table, or one set of which nothing is known.
fn contexts(
    path: Option<&Path>,
    choice: &ColumnChoice,
    dims: (usize, usize),
) -> Result<Vec<NamedSet>, Failure> {
    let Some(path) = path else {
        let set = IndexedSet::empty(dims.0, dims.1)?;
        return Ok(vec![NamedSet { name: "all".into(), set }]);
    };
    let sets = read_table(path, choice)?;
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

/// The domain of the model in the units of the data; the same for every value column.
fn value_range(model: &TrainedModel) -> Result<(f64, f64), Failure> {
    let (low, high) = model.process.config().value_domain;
    let dim = model.standardiser.value_dim();
    let edge = |edge: f32| -> Result<f64, Failure> {
        Ok(model.standardiser.invert_values(&vec![f64::from(edge); dim])?[0])
    };
    Ok((edge(low)?, edge(high)?))
}
