//! A training command in small, which the tests interrupt and kill:
//!
//! ```text
//! toy_training DIR [--resume | --force] [--set train.num_steps=500] [--delay-us 1000]
//! ```

#[path = "../../ebp/tests/toy/mod.rs"]
mod toy;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use ebp::config::Layers;
use ebp::train::{Evaluation, Existing, Plan, Record, Step, Trainable, TrainerConfig};
use ebp_cli::{Failure, train_watched};
use serde::{Deserialize, Serialize};

use self::toy::Toy;

/// Fits a line.
#[derive(Debug, Parser)]
struct Arguments {
    /// Folder of the run
    directory: PathBuf,
    /// Go on with the run in the folder
    #[arg(long)]
    resume: bool,
    /// Begin again in its place
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// A file of settings
    #[arg(short, long)]
    config: Option<PathBuf>,
    /// Change a setting
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Microseconds to sleep before each step, so that there is time to interrupt
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Show nothing but warnings
    #[arg(short, long)]
    quiet: bool,
}

/// Settings of the run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    seed: u64,
    learning_rate: f64,
    train: TrainerConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self { seed: 1, learning_rate: 0.02, train: TrainerConfig::default() }
    }
}

/// The toy, slowed down.
#[derive(Debug)]
struct Slow {
    toy: Toy,
    delay: Duration,
}

impl Trainable for Slow {
    fn step(&mut self, step: &Step) -> ebp::Result<Record> {
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        self.toy.step(step)
    }

    fn state(&self) -> ebp::Result<ebp::tensor::Tensors> {
        self.toy.state()
    }

    fn restore(&mut self, state: &ebp::tensor::Tensors) -> ebp::Result<()> {
        self.toy.restore(state)
    }
}

fn main() -> ExitCode {
    ebp_cli::set_style();
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let layers = Layers { file: arguments.config, assignments: arguments.set, ..Layers::default() };
    let resolved = layers.resolve::<Config>()?;
    let config = resolved.config;
    let mut toy = Toy::new(config.seed)?;
    toy.learning_rate = config.learning_rate;
    let mut model = Slow { toy, delay: Duration::from_micros(arguments.delay_us) };
    let evaluation = Evaluation::new(25, |model: &mut Slow, _: &Step| {
        Ok(vec![("error".to_owned(), model.toy.error()?)])
    })?;
    let existing = match (arguments.resume, arguments.force) {
        (true, _) => Existing::Resume,
        (false, true) => Existing::Replace,
        (false, false) => Existing::Refuse,
    };
    let plan = Plan {
        config: resolved.text,
        changeable: vec!["train.num_steps".into()],
        trainer: config.train,
        seed: config.seed,
        evaluations: vec![evaluation],
        numbers: std::collections::BTreeMap::from([("x_mean".into(), vec![0.0])]),
        start: None,
    };
    train_watched(&mut model, plan, arguments.directory, existing, arguments.quiet)?;
    Ok(())
}
