//! Image completion: the energy-based process and its rivals, trained for the same time, their
//! scores and their pictures.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use ebp::checkpoint::CheckpointStore;
use ebp::nn::Step;
use ebp::rng::Stream;
use ebp::train::{Metrics, Observer, Outcome as Ending, Session, Trainable, Trainer};
use miette::miette;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::command::train::pictures::{
    Jury, Outcome, PictureData, ProcessName, Settings, Size, Training, completion_mosaic,
    new_model, preset_settings, score_table,
};
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::Progress;
use crate::threads::start_threads;
use ebp::figure::save;

/// Steps by which the time of a step is measured, and those before them, which warm up.
const TIMED_STEPS: u64 = 15;
const FIRST_STEPS: u64 = 3;

pub(super) const HELP: &str = "\
The first model is trained as its preset says, or for `--seconds`; every other gets as many steps
as fit into the same time, by the median of fifteen steps of each. Held-out pictures are completed
from the parts named below, with 20 draws of the latent each:

  bits/dim       exact probability of the 256 levels per unknown pixel, by the mixture over draws;
                 Gaussians get the integral of their density over a level's cell
  joint          the same for all unknown pixels of a picture together (a bound)
  by density     by the density at the dequantised value, as rivals are trained
  best error     squared error of the best of all draws, values on [-1, 1]
  diversity      variance over draws
  agree          completions that a classifier takes for the digit that was there
  where decided  the same where a classifier of upper halves is 95 % sure, and how often it is
  kinds          different digits among the draws of a picture

What is finished is kept in the folder: after an interruption the same command goes on, in the
middle of a training too. So the models can be trained one by one, with `--models`, before all of
them are named for the table.";

/// Arguments of the experiments with pictures.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CompletionArguments {
    /// Folder or zip of the pictures [`completion` draws its own]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Models, separated by commas
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "ebp-exact,cnp,np,anp"
    )]
    models: Vec<String>,

    /// Train every model for so long in place of the preset's steps
    #[arg(long, value_name = "N", value_parser = crate::args::at_least_one)]
    seconds: Option<usize>,

    /// Change a setting of the preset, such as train.num_steps=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Folder of results, models and pictures [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Forget what the folder holds and begin again
    #[arg(long)]
    force: bool,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Trains what is missing, then reports.
pub(super) fn run(
    arguments: &CompletionArguments,
    preset: &str,
    name: &str,
) -> Result<(), Failure> {
    let mut changes = vec![format!("seed={}", arguments.seed)];
    if let Some(data) = &arguments.data {
        let text = toml::Value::String(data.to_string_lossy().into_owned());
        changes.push(format!("data.source={text}"));
    }
    changes.extend(arguments.set.iter().cloned());
    let settings = preset_settings(preset, changes)?;
    let models = arguments.models.iter().map(|name| parse(name)).collect::<Result<Vec<_>, _>>()?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
    if arguments.force && out.is_dir() {
        fs::remove_dir_all(&out).map_err(|error| Failure::cannot("remove", &out, &error))?;
    }
    fs::create_dir_all(&out).map_err(|error| Failure::cannot("create", &out, &error))?;
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let data = PictureData::load(&settings.data)?;
        let mut experiment =
            Experiment { settings, data, out, is_quiet: arguments.quiet, jury: Jurors::NotYet };
        let mut outcomes: Vec<Outcome> = Vec::new();
        for model in models {
            let asked = arguments.seconds.map(|seconds| seconds as f64);
            let budget = asked.or(outcomes.first().map(|first| first.seconds));
            outcomes.push(experiment.outcome(model, budget)?);
        }
        if arguments.json {
            #[derive(Serialize)]
            struct Report<'a> {
                experiment: &'a str,
                outcomes: &'a [Outcome],
            }
            return output::print_json(&Report { experiment: name, outcomes: &outcomes });
        }
        let mut text = score_table(&outcomes);
        if let Some(accuracy) = outcomes.iter().find_map(|outcome| outcome.classifier_accuracy) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\nthe classifier is right on {:.1} %", 100.0 * accuracy);
        }
        for outcome in &outcomes {
            let _ = write!(
                text,
                "\n{:<14} {:>6.0} s of training, {:>6} steps   {}",
                outcome.model,
                outcome.seconds,
                outcome.steps,
                experiment.picture(&outcome.model).display()
            );
        }
        text.push('\n');
        output::print(&text)
    })
}

fn parse(name: &str) -> Result<ProcessName, Failure> {
    ProcessName::ALL.into_iter().find(|model| model.name() == name).ok_or_else(|| {
        let known: Vec<_> = ProcessName::ALL.iter().map(|model| model.name()).collect();
        Failure::Usage(miette!(
            help = format!("known are: {}", known.join(", ")),
            "there is no model `{name}` of pictures"
        ))
    })
}

/// Who says what completions show.
enum Jurors {
    /// Trained when the first model is judged.
    NotYet,
    /// There are no labels, or nobody is asked.
    Absent,
    Present(Box<Jury>),
}

struct Experiment {
    settings: Settings,
    data: PictureData,
    out: PathBuf,
    is_quiet: bool,
    jury: Jurors,
}

impl Experiment {
    fn picture(&self, model: &str) -> PathBuf {
        self.out.join(format!("{model}.png"))
    }

    /// What a model reaches, from its file or trained now.
    fn outcome(&mut self, model: ProcessName, budget: Option<f64>) -> Result<Outcome, Failure> {
        let path = self.out.join(format!("{}.json", model.name()));
        if let Some(found) = load(&path) {
            return Ok(found);
        }
        let mut settings = Settings { process: model, ..self.settings.clone() };
        let plan = self.plan(&settings, budget)?;
        settings.train.num_steps = plan.steps;
        let mut trained = new_model(&settings, &self.data)?;
        let folder = self.out.join(model.name());
        let store = CheckpointStore::open(folder.join("checkpoints"), settings.train.num_kept)?;
        // The curves, for `ebp plot`.
        let mut metrics =
            Metrics::open(&folder.join("metrics.jsonl"), settings.train.record_every)?;
        let config = toml::to_string_pretty(&settings)
            .map_err(|error| Failure::Failed(miette!("the settings cannot be written: {error}")))?;
        let mut progress = Progress::new(self.is_quiet, Vec::new());
        let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics, &mut progress];
        let stop = interrupt::stop_flag()?;
        let session = Session {
            store: Some(&store),
            evaluations: Vec::new(),
            observer: &mut observers,
            stop: Some(&stop),
            config,
            numbers: Size::of(&self.data.training).numbers(),
        };
        let trainer = Trainer::new(settings.train.clone(), settings.seed)?;
        let ending = trainer.run(&mut trained, session)?;
        if matches!(ending, Ending::Interrupted { .. }) || stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        drop(stop);
        let mut process = trained.into_process();
        process.use_average()?;
        if matches!(self.jury, Jurors::NotYet) {
            let trained = Jury::train(&self.settings.evaluation, &self.data)?;
            self.jury = trained.map_or(Jurors::Absent, |jury| Jurors::Present(Box::new(jury)));
        }
        let jury = match &self.jury {
            Jurors::Present(jury) => Some(jury.as_ref()),
            Jurors::NotYet | Jurors::Absent => None,
        };
        let training = Training { steps: plan.steps, seconds: plan.seconds };
        let outcome = Outcome::new(process.as_ref(), &settings, &self.data, jury, training)?;
        let mosaic = completion_mosaic(process.as_ref(), &self.data.test, &settings.evaluation)?;
        save(&mosaic.draw(), &self.picture(model.name()))?;
        save_json(&outcome, &path)?;
        Ok(outcome)
    }

    /// How long a model is trained: decided once and kept, so that an interrupted training goes on
    /// as it began.
    fn plan(&self, settings: &Settings, budget: Option<f64>) -> Result<Plan, Failure> {
        let path = self.out.join(format!("{}.plan.json", settings.process.name()));
        if let Some(plan) = load(&path) {
            return Ok(plan);
        }
        let seconds_per_step = self.seconds_per_step(settings)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let steps = match budget {
            Some(budget) => ((budget / seconds_per_step) as u64).max(1),
            None => settings.train.num_steps,
        };
        // What the steps take by themselves: the clock would count other people's work.
        let plan = Plan { steps, seconds: steps as f64 * seconds_per_step };
        save_json(&plan, &path)?;
        Ok(plan)
    }

    /// The median time of a few steps.
    fn seconds_per_step(&self, settings: &Settings) -> Result<f64, Failure> {
        let mut model = new_model(settings, &self.data)?;
        let mut times = Vec::new();
        for number in 0..FIRST_STEPS + TIMED_STEPS {
            let started = Instant::now();
            model.step(&Step {
                number,
                num_steps: FIRST_STEPS + TIMED_STEPS,
                stream: Stream::new(settings.seed, "timing").child(number),
                learning_rate_factor: 1.0,
            })?;
            if number >= FIRST_STEPS {
                times.push(started.elapsed().as_secs_f64());
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

/// How long a model is trained.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Plan {
    steps: u64,
    seconds: f64,
}

/// What was kept; a damaged file counts as none.
fn load<T: DeserializeOwned>(path: &Path) -> Option<T> {
    ebp::files::read_json(path)
}

/// Writes a temporary file first, so that a file with the right name is whole.
fn save_json(value: &impl Serialize, path: &Path) -> Result<(), Failure> {
    Ok(ebp::files::write_json(path, value)?)
}
