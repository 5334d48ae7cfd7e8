//! `ebp train`: from settings to a trained model, a picture and a table.

use std::path::{Path, PathBuf};

use clap::Args;
use ebp::config::Layers;
use ebp::experiment::outcome::judge;
use ebp::model::{Data, Device, Model, PRESETS, Settings, TrainOptions};
use ebp::train::Existing;
use miette::miette;
use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::run::program;
use crate::together::Together;
use crate::{device, interrupt, output, progress, theme};

const HELP: &str = "\
A run is one folder: settings, metrics, checkpoints, pictures. `ebp predict` takes the folder.

Examples:
  ebp train                                    the built-in curves `sines`, in seconds
  ebp train phase --out runs/phase --seed 3    another preset
  ebp train shapes                             built-in chairs as point clouds, in minutes
  ebp train cloud --data chairs.npy            clouds of your own: a file, folder or cache
  ebp train shapes --from models/mine --data chairs.npy   go on from trained weights
  ebp train strauss --data cells.dat           a Gibbs process to a point pattern
  ebp train digits                             built-in pictures, to be completed
  ebp train gplvm --data wine.csv              rows of a table on a map, labels in a column `label`
  ebp train statistician --data strokes.npy    sets of vectors by a context and latents
  ebp train arcs                               sets of vectors at locations that nobody saw
  ebp train lda --data 20news.feat             topics of documents (also plsi, ctm, rsm)
  ebp train --data weather.csv                 your own table: columns set (optional), t, x
  ebp train rival/anp --data weather.csv       the same by an attentive neural process
  ebp train --data weather.csv --set data.location_columns='[\"hour\",\"height\"]'
  ebp train my.toml --set model.estimator=ade --set train.num_steps=5000
  ebp train --resume --out runs/phase          go on after Ctrl-C, or after a power cut
  ebp train shapes --set train.shards=4 --device cuda:0,1   several GPUs; the same bytes on any number
  mpiexec -n 2 ebp train shapes --set train.shards=4        several processes or machines, by MPI";

/// Arguments of `ebp train`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct TrainArguments {
    /// A preset or a file of settings ending in .toml [default: sines, or table with --data]
    #[arg(value_name = "PRESET|CONFIG")]
    config: Option<String>,

    /// What to learn from in place of built-in data: a CSV file; for presets of clouds a file,
    /// folder or cache of clouds; for presets of pictures a folder or zip of pictures, or MNIST's;
    /// for presets of topics a file or cache of bags of words
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Start from the weights of a trained model of the same sizes, such as models/chairs
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,

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

    /// Print the settings that would be used, and stop
    #[arg(long)]
    print_config: bool,

    #[command(flatten)]
    common: Common,
}

impl TrainArguments {
    /// What to do if the folder holds a run.
    fn existing(&self) -> Existing {
        match (self.resume, self.force) {
            (true, _) => Existing::Resume,
            (false, true) => Existing::Replace,
            (false, false) => Existing::Refuse,
        }
    }
}

/// Trains and reports.
pub(crate) fn run(arguments: &TrainArguments) -> Result<(), Failure> {
    let (name, layers) = layers(arguments)?;
    let settings = Settings::resolve(&layers)?;
    let seed = Some(settings.seed());
    if arguments.print_config {
        return print_settings(&settings, arguments.common.json);
    }
    let mut together = Together::begin()?;
    let threads = together.threads(arguments.common.threads);
    let common = Common { threads, ..arguments.common.clone() };
    common.install(|| {
        let trained = train(arguments, settings, &name, &mut together);
        let is_first = together.is_first();
        let Trained { model, data, device } = together.end(trained)?;
        if !is_first {
            return Ok(());
        }
        let judge = || judge(&model, &data, &device);
        let findings = progress::during(common.quiet, "measuring what was learned", judge)?;
        findings.save_pictures(theme::chosen())?;
        common.print(seed, &findings.report)?;
        common.show(findings.pictures.iter().map(|(path, _)| path.as_path()))
    })
}

/// What `--print-config` prints with `--json`.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    settings: &'a Settings,
}

fn print_settings(settings: &Settings, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return output::print_json(Some(settings.seed()), &Printed { settings });
    }
    output::print(&settings.text()?)
}

/// What is left of a training.
struct Trained {
    model: Model,
    data: Data,
    device: Device,
}

/// Everything that processes do together.
fn train(
    arguments: &TrainArguments,
    settings: Settings,
    name: &str,
    together: &mut Together,
) -> Result<Trained, Failure> {
    let directory = together.watch(|| {
        let directory = directory(arguments, name)?;
        if arguments.resume {
            Model::check_resumable(&directory)?;
        }
        Ok(directory)
    })?;
    let is_quiet = arguments.common.quiet || !together.is_first();
    let data = progress::during(is_quiet, "reading the data", || Data::load(&settings))?;
    let replicas = device::open_all()?;
    let device = replicas.first().cloned().unwrap_or_default();
    let mut progress = Progress::new(is_quiet, settings.headline());
    let options = TrainOptions {
        directory: together.is_first().then_some(directory),
        existing: Some(arguments.existing()),
        device: device.clone(),
        replicas,
        ranks: together.ranks(),
        from: arguments.from.clone(),
        observer: Some(&mut progress),
        stop: Some(interrupt::wish()),
        program: program(),
    };
    let model = Model::train_on(settings, &data, options);
    let model = model.map_err(|error| together.failure(error))?;
    Ok(Trained { model, data, device })
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
        if arguments.config.is_none() {
            name = stem(data);
        }
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
