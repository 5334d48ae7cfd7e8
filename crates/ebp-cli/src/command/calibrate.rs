//! `ebp calibrate`: whether the densities of a trained model hold what they promise.

use std::path::{Path, PathBuf};

use clap::Args;
use ebp::experiment::calibration::{CalibrationExperiment, default_folder};
use ebp::model::Model;
use miette::miette;

use crate::args::{Common, at_least_one};
use crate::failure::Failure;
use crate::{device, progress, theme};

const HELP: &str = "\
Held-out elements are asked for one by one, each given those of its set before it: their positions
u = F(x | context) are then independent and uniform, if the model is right.

  PIT        whether the share of positions up to z stays in its 95 % band at all z at once
  chi2 p     of 20 cells of the positions' histogram
  intervals  the same band for the smallest central interval that holds the value, at all levels
  ranks      the same for ranks among draws of the model
  50 % …     how often central intervals of that level hold the value

Of an energy-based model a temperature T of exp(f/T)/Z_T is fitted by likelihood to elements of other
sets, and the same numbers are given at T. `--keep` keeps it with the model: `ebp predict` uses it then
and says so. Pixels are of a finite alphabet: their positions are randomised within their mass.

Examples:
  ebp calibrate runs/sines
  ebp calibrate runs/weather --data later.csv --json
  ebp calibrate runs/weather --keep
  ebp calibrate runs/digits --sets 200 --elements 5 -o pictures";

/// Arguments of `ebp calibrate`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CalibrateArguments {
    /// Folder of a run of `ebp train`, of curves, a table or pictures
    model: PathBuf,

    /// CSV file of further sets, half of them for the temperature [default: what the model's data held
    /// out]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Fresh sets of built-in curves, or pictures, for the report; as many others for the temperature
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = at_least_one)]
    sets: usize,

    /// Elements of each that are asked for
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_one)]
    elements: usize,

    /// Draws among which a value has its rank
    #[arg(long, value_name = "N", default_value_t = 99, value_parser = at_least_one)]
    draws: usize,

    /// Simulations for the calibration of q(theta | set); 0 for none
    #[arg(long, value_name = "N", default_value_t = 1000)]
    simulations: usize,

    /// Keep the fitted temperature with the model
    #[arg(long)]
    keep: bool,

    /// Folder of the picture [default: plots in the model's folder]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Seed of sets and draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    common: Common,
}

/// Asks the model and prints.
pub(crate) fn run(arguments: &CalibrateArguments) -> Result<(), Failure> {
    if (1..20).contains(&arguments.simulations) {
        return Err(Failure::Usage(miette!(
            help = "1000 are a good number; 0 leaves them out",
            "`--simulations` must be 0 or at least 20, found {}",
            arguments.simulations
        )));
    }
    let report = arguments.common.install(|| {
        let mut model = Model::load_on(&arguments.model, &device::open()?)?;
        let has_energy = model.name().starts_with("ebp") && model.settings().kind() == "curves";
        if arguments.keep && !has_energy {
            return Err(Failure::Usage(miette!(
                help = "leave `--keep` out",
                "`--keep`: only energy-based models of curves and tables keep a temperature, found `{}` \
                 of {}",
                model.name(),
                model.settings().kind()
            )));
        }
        let folder = arguments.out.clone().unwrap_or_else(|| default_folder(&arguments.model));
        let experiment = CalibrationExperiment {
            data: arguments.data.clone(),
            num_sets: arguments.sets,
            num_elements: arguments.elements,
            num_draws: arguments.draws,
            num_simulations: arguments.simulations,
            folder,
            seed: arguments.seed,
        };
        let mut pieces = progress::pieces(arguments.common.quiet);
        let findings = experiment.run_watched(&model, &mut |piece| pieces.begin(piece))?;
        pieces.finish();
        findings.save_pictures(theme::chosen())?;
        if arguments.keep
            && let Some(fit) = &findings.report.recalibration
        {
            model.keep(fit)?;
        }
        Ok(findings.report)
    })?;
    arguments.common.print(Some(arguments.seed), &report)?;
    arguments.common.show([Path::new(&report.picture)])
}
