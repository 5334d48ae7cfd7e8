//! `ebp train`: from settings to a trained model, a picture and a table.
//!
//! The path: arguments → [`Settings`] (layers put together) → [`Data`] (sets, scales, what is held
//! out) → [`run_training`] → [`Outcome`] (what it knows about what it has not seen).

mod data;
mod outcome;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use ebp::point::{CpuBackend, PointBackend};
use ebp::process::{EnergyBasedProcess, Learner};
use ebp::train::{Evaluation, Existing, Regression, Step};
use miette::miette;

pub(crate) use self::data::Data;
use self::outcome::Outcome;
use self::settings::EvaluationSettings;
pub(crate) use self::settings::{Settings, preset_settings};
use crate::config::{Layers, PRESETS};
use crate::failure::Failure;
use crate::run::{TrainingPlan, run_training};
use crate::threads::start_threads;

const HELP: &str = "\
A run is one folder: settings, metrics, checkpoints, pictures. `ebp predict` takes the folder.

Examples:
  ebp train                                    the built-in curves `sines`, in seconds
  ebp train phase --out runs/phase --seed 3    another preset
  ebp train --data weather.csv                 your own table: columns set (optional), t, x
  ebp train --data weather.csv --set data.location_columns='[\"hour\",\"height\"]'
  ebp train my.toml --set model.estimator=ade --set train.num_steps=5000
  ebp train --resume --out runs/phase          go on after Ctrl-C, or after a power cut";

/// Arguments of `ebp train`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct TrainArguments {
    /// A preset or a file of settings ending in .toml [default: sines, or table with --data]
    #[arg(value_name = "PRESET|CONFIG")]
    config: Option<String>,

    /// A CSV file to learn from, in place of built-in curves
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Change a setting, such as train.num_steps=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Folder of the run [default: runs/NAME, or runs/NAME-2 if that exists, …]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Go on with the run in the folder
    #[arg(long)]
    resume: bool,

    /// Begin again in the place of the run in the folder
    #[arg(long, conflicts_with = "resume")]
    force: bool,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,

    /// Print the settings that would be used, and stop
    #[arg(long)]
    print_config: bool,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,

    /// Show nothing but warnings and the result
    #[arg(short, long)]
    quiet: bool,
}

/// Trains and reports.
pub(crate) fn run(arguments: &TrainArguments) -> Result<(), Failure> {
    let (name, layers) = layers(arguments)?;
    let resolved = layers.resolve::<Settings>()?;
    if arguments.print_config {
        crate::output::print(&resolved.text)?;
        return Ok(());
    }
    let settings = resolved.config;
    let data = Data::load(&settings)?;
    let directory = directory(arguments, &name)?;
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let started = Instant::now();
        let mut model = new_model(&settings, &data)?;
        let plan = TrainingPlan {
            directory: directory.clone(),
            existing: match (arguments.resume, arguments.force) {
                (true, _) => Existing::Resume,
                (false, true) => Existing::Replace,
                (false, false) => Existing::Refuse,
            },
            config: resolved.text,
            changeable: vec!["train.num_steps".into()],
            trainer: settings.train.clone(),
            seed: settings.seed,
            device: "cpu".into(),
            threads: rayon::current_num_threads(),
            evaluations: vec![evaluation(&settings, &data)?],
            numbers: data.numbers(),
            shown: ["nats", "kl", "active_units", data.evaluated()].map(Into::into).to_vec(),
            is_quiet: arguments.quiet,
        };
        let num_steps = run_training(&mut model, plan)?;
        let outcome =
            Outcome::new(model, &data, &settings.evaluation, num_steps, started.elapsed())?;
        let picture = outcome.draw(&data, &directory)?;
        if arguments.json {
            outcome.print_json(&directory)
        } else {
            outcome.print_table(&data, &directory, picture.as_deref())
        }
    })
}

/// The untrained model that the settings describe.
pub(crate) fn new_model(settings: &Settings, data: &Data) -> Result<Regression, Failure> {
    let process = new_process(settings, data)?;
    Ok(Regression::new(Box::new(process), data.source()?, settings.tasks)?)
}

/// The untrained process that the settings describe.
pub(crate) fn new_process(settings: &Settings, data: &Data) -> Result<EnergyBasedProcess, Failure> {
    let backend: Arc<dyn PointBackend> = Arc::new(CpuBackend::new());
    let config = data.complete(settings.model.clone());
    Ok(EnergyBasedProcess::new(config, settings.seed, backend)?)
}

/// What is measured on the way, with the averages in the place of the parameters.
fn evaluation<'a>(
    settings: &Settings,
    data: &'a Data,
) -> Result<Evaluation<'a, Regression>, Failure> {
    let every = settings.evaluation.every;
    let function = |model: &mut Regression, _: &Step| {
        let process = model.process_mut();
        process.use_average()?;
        let found = data.evaluate(process);
        process.use_parameters()?;
        found
    };
    Ok(Evaluation::new(every, function)?)
}

/// The name of the run and where its settings come from.
fn layers(arguments: &TrainArguments) -> Result<(String, Layers<'static>), Failure> {
    let mut layers = Layers { presets: PRESETS, ..Layers::default() };
    let mut name = match (&arguments.config, &arguments.data) {
        (Some(name), _) => name.clone(),
        (None, Some(_)) => "table".to_owned(),
        (None, None) => "sines".to_owned(),
    };
    if Path::new(&name).extension().is_some_and(|extension| extension == "toml") {
        layers.file = Some(name.clone().into());
        name = stem(Path::new(&name));
    } else {
        layers.preset = Some(name.clone());
    }
    if let Some(data) = &arguments.data {
        let text = data.to_str().ok_or_else(|| {
            Failure::Usage(miette!("`--data {}` is not valid UTF-8", data.display()))
        })?;
        let quoted = toml::Value::String(text.to_owned());
        layers.assignments.push(format!("data.source={quoted}"));
        name = stem(data);
    }
    layers.assignments.extend(arguments.set.iter().cloned());
    if let Some(seed) = arguments.seed {
        layers.assignments.push(format!("seed={seed}"));
    }
    Ok((name, layers))
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "run".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The folder asked for, or one of `runs/NAME`, `runs/NAME-2`, …: the first that is free for a new
/// run, the last that exists for one that goes on.
fn directory(arguments: &TrainArguments, name: &str) -> Result<PathBuf, Failure> {
    if let Some(directory) = &arguments.out {
        return Ok(directory.clone());
    }
    let candidates = (1_u32..).map(|number| match number {
        1 => PathBuf::from("runs").join(name),
        number => PathBuf::from("runs").join(format!("{name}-{number}")),
    });
    let mut last = None;
    for candidate in candidates {
        if !candidate.exists() {
            return if arguments.resume {
                last.ok_or_else(|| {
                    Failure::Usage(miette!(
                        help = "name the folder of the run with `--out DIR`",
                        "there is no run to go on with: `{}` does not exist",
                        candidate.display()
                    ))
                })
            } else if arguments.force {
                Ok(last.unwrap_or(candidate))
            } else {
                Ok(candidate)
            };
        }
        last = Some(candidate);
    }
    Err(Failure::Usage(miette!("there are too many runs; name a folder with `--out DIR`")))
}

/// A trained model as its folder keeps it.
pub(crate) struct TrainedModel {
    /// The settings it was trained with.
    pub(crate) settings: Settings,
    /// The process, predicting with its averages.
    pub(crate) process: EnergyBasedProcess,
    /// The scales of its data.
    pub(crate) standardiser: ebp::data::Standardiser,
    /// After how many steps.
    pub(crate) step: u64,
}

impl TrainedModel {
    /// Reads the newest checkpoint of the run in `directory`.
    pub(crate) fn load(directory: &Path) -> Result<Self, Failure> {
        let folder = directory.join("checkpoints");
        let not_a_run = || {
            Failure::Usage(miette!(
                help = "give the folder of a run of `ebp train`, such as runs/sines",
                "there is no model in `{}`",
                directory.display()
            ))
        };
        if !folder.is_dir() {
            return Err(not_a_run());
        }
        let store = ebp::checkpoint::CheckpointStore::open(folder, usize::MAX)?;
        let Some(loaded) = store.load_newest()? else { return Err(not_a_run()) };
        let meta = loaded.checkpoint.meta;
        let settings: Settings = toml::from_str(&meta.config).map_err(|error| {
            Failure::Failed(miette!(
                "the settings in `{}` cannot be read: {error}",
                directory.display()
            ))
        })?;
        let data::Scales { standardiser, value_domain } =
            data::Scales::from_numbers(&meta.numbers)?;
        let mut config = settings.model.clone();
        config.location_dim = standardiser.location_dim();
        config.value_dim = standardiser.value_dim();
        config.value_domain = value_domain;
        let backend: Arc<dyn PointBackend> = Arc::new(CpuBackend::new());
        let mut process = EnergyBasedProcess::new(config, settings.seed, backend)?;
        process.restore(&loaded.checkpoint.state)?;
        process.use_average()?;
        Ok(Self { settings, process, standardiser, step: meta.step })
    }
}

/// Named numbers of a model, for its checkpoints.
pub(crate) type Numbers = BTreeMap<String, Vec<f64>>;
