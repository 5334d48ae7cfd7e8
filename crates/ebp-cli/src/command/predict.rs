//! `ebp predict`: what a trained model says about elements it has not seen.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ebp::IndexedSet;
use ebp::data::table::{ColumnChoice, NamedSet, read_locations, read_table};
use ebp::model::{
    Forecast, Model, PredictOptions, density_csv, samples_csv, summary_csv, targets_csv,
};
use ebp::process::PredictionRule;
use ebp::rng::Stream;
use miette::miette;
use serde::Serialize;

use crate::args::{Choice, Common, choice};
use crate::failure::Failure;
use crate::{device, output, progress};

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

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    model: &'a str,
    steps: u64,
    /// T of densities exp(f/T)/Z_T, where one was kept with the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    sets: &'a [Forecast],
}

/// Predicts and prints.
pub(crate) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    arguments.common.install(|| {
        let model = Model::load_on(&arguments.model, &device::open()?)?;
        let curves = model.curves()?;
        let dims = (curves.location_dim(), curves.value_dim());
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
        let clock = progress::clock(contexts.len() as u64, arguments.common.quiet);
        let mut forecasts = Vec::with_capacity(contexts.len());
        for (number, NamedSet { name, set }) in contexts.iter().enumerate() {
            clock.set_message(format!("predicting {name}"));
            let options = PredictOptions {
                num_values: arguments.grid,
                num_samples: arguments.samples,
                rule: arguments.rule,
                stream: Stream::new(arguments.seed, "predict").child(number as u64),
            };
            forecasts.push(curves.predict(name, set, &at, &options)?);
            clock.inc(1);
        }
        clock.finish_and_clear();
        if arguments.common.json {
            let temperature = model.recalibration().map(|kept| kept.temperature);
            let (steps, sets) = (model.step(), forecasts.as_slice());
            let report = Report { model: model.name(), steps, temperature, sets };
            return output::print_json(&report);
        }
        let text = match arguments.show {
            Show::Summary => summary_csv(&forecasts, &at),
            Show::Density => density_csv(&forecasts, &at)?,
            Show::Samples => samples_csv(&forecasts, &at),
            Show::Targets => targets_csv(&forecasts, &at),
        };
        output::print(&text)
    })
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
