//! `ebp sample`: new clouds from a trained model.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use ebp::process::{DrawSettings, PointMethod, PointStart};
use ebp::rng::Stream;
use serde::Serialize;

use super::cloud_model::{PriorName, TrainedCloud, draw_rows, write_clouds};
use crate::failure::Failure;
use crate::threads::start_threads;
use crate::{output, progress};

const HELP: &str = "\
Points are drawn by importance resampling on a grid, then moved by Langevin steps. `effective` is
the number of independent points that the weights are worth, per set; more `--proposals` make it
larger. `annealed` steps end without noise and give sharp surfaces; `langevin` keeps the noise;
`mala` accepts or rejects every move, which makes the law of the points that of the model. Models
with a learned sampler (`ade`) can start from its draws: as they are, resampled or rejected.

Examples:
  ebp sample runs/shapes -n 100 --points 2048 -o chairs.npy
  ebp sample runs/shapes -n 8 --points 20000 -o chairs/ --ending ply --prior standard
  ebp encode runs/shapes scan.ply --features mean -o code.npy
  ebp sample runs/shapes --codes code.npy --points 20000 -o dense.npy";

/// Arguments of `ebp sample`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SampleArguments {
    /// Folder of a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// How many clouds
    #[arg(short = 'n', long, value_name = "N", default_value_t = 16, value_parser = crate::args::at_least_one, conflicts_with = "codes")]
    count: usize,

    /// θ of every cloud, `[clouds, k]`, such as `ebp encode --features mean` writes
    #[arg(long, value_name = "FILE", conflicts_with = "prior")]
    codes: Option<PathBuf>,

    /// Points of each
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = crate::args::at_least_one)]
    points: usize,

    /// A file ending in .npy for all, or a folder that gets a file each
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,

    /// Format of the files in a folder
    #[arg(long, value_name = "ENDING", default_value = "ply")]
    ending: String,

    /// A contact sheet [default: beside the output, or plots/samples.png in the model's folder]
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// The law of θ
    #[arg(long, value_enum, default_value_t = PriorName::Kernel)]
    prior: PriorName,

    /// Where points come from: the grid, or the learned sampler where one was trained
    #[arg(long, value_enum, default_value_t = StartName::Grid)]
    start: StartName,

    /// What moves points afterwards
    #[arg(long, value_enum, default_value_t = MethodName::Annealed)]
    method: MethodName,

    /// How many steps of it
    #[arg(long, value_name = "N", default_value_t = DrawSettings::default().num_steps)]
    steps: usize,

    /// The size of a step, in squared standard deviations of the data
    #[arg(long, value_name = "X", default_value_t = DrawSettings::default().step_size)]
    step_size: f32,

    /// Proposals per point
    #[arg(long, value_name = "N", default_value_t = DrawSettings::default().proposals_per_point, value_parser = crate::args::at_least_one)]
    proposals: usize,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// What moves points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum MethodName {
    Annealed,
    Langevin,
    Mala,
}

impl From<MethodName> for PointMethod {
    fn from(name: MethodName) -> Self {
        match name {
            MethodName::Annealed => Self::Annealed,
            MethodName::Langevin => Self::Langevin,
            MethodName::Mala => Self::Mala,
        }
    }
}

/// Where points come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum StartName {
    /// Importance resampling on a grid
    Grid,
    /// The learned sampler's draws as they are
    Sampler,
    /// The learned sampler's draws, resampled by their weights
    SamplerResampled,
    /// The learned sampler's draws, kept or rejected by their weights
    SamplerRejected,
}

impl From<StartName> for PointStart {
    fn from(name: StartName) -> Self {
        match name {
            StartName::Grid => Self::Grid,
            StartName::Sampler => Self::Sampler,
            StartName::SamplerResampled => Self::SamplerResampled,
            StartName::SamplerRejected => Self::SamplerRejected,
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    estimator: &'static str,
    prior: &'static str,
    sets: usize,
    points: usize,
    start: StartName,
    method: MethodName,
    seconds: f64,
    num_proposals: usize,
    effective_proposals: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<f64>,
    out: Option<String>,
    picture: String,
}

/// Most clouds of a contact sheet, and how many of them in a row.
const MOST_DRAWN: usize = 64;
const COLUMNS: usize = 8;
/// The bar of the clouds.
const TEMPLATE: &str = "{wide_bar} {pos}/{len} clouds  {eta} left";

/// Draws, writes and reports.
pub(crate) fn run(arguments: &SampleArguments) -> Result<(), Failure> {
    start_threads(arguments.threads)?.install(|| draw(arguments))
}

fn draw(arguments: &SampleArguments) -> Result<(), Failure> {
    let trained = TrainedCloud::load(&arguments.model)?;
    let settings = DrawSettings {
        start: arguments.start.into(),
        method: arguments.method.into(),
        num_steps: arguments.steps,
        step_size: arguments.step_size,
        proposals_per_point: arguments.proposals,
        ..DrawSettings::default()
    };
    let stream = Stream::new(arguments.seed, "sample");
    let started = Instant::now();
    let (theta, prior) = if let Some(path) = &arguments.codes {
        (trained.read_latents(path)?, "given codes")
    } else {
        let theta = trained.draw_latents(arguments.prior, arguments.count, stream.child(0))?;
        (theta, arguments.prior.name())
    };
    let count = theta.len() / trained.process.config().latent_dim;
    let bar = progress::bar(count as u64, arguments.quiet, TEMPLATE);
    let (clouds, found) = trained.draw_clouds_watched(
        &theta,
        arguments.points,
        &settings,
        stream.child(1),
        &mut |num_done| bar.set_position(num_done as u64),
    )?;
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    if let Some(path) = &arguments.out {
        write_clouds(path, &clouds, trained.dim(), &arguments.ending)?;
    }
    let picture = arguments.picture.clone().unwrap_or_else(|| match &arguments.out {
        Some(path) if path.is_dir() => path.join("clouds.png"),
        Some(path) => path.with_extension("png"),
        None => arguments.model.join("plots").join("samples.png"),
    });
    let shown = &clouds[..clouds.len().min(MOST_DRAWN)];
    // As few rows as it takes, and those evenly full.
    let columns = shown.len().div_ceil(shown.len().div_ceil(COLUMNS).max(1)).max(1);
    let shown: Vec<&[Vec<f32>]> = shown.chunks(columns).collect();
    draw_rows(&picture, &shown, trained.dim())?;
    let report = Report {
        model: arguments.model.display().to_string(),
        estimator: trained.process.config().estimator.name(),
        prior,
        sets: clouds.len(),
        points: arguments.points,
        start: arguments.start,
        method: arguments.method,
        seconds,
        num_proposals: found.num_proposals,
        effective_proposals: found.effective_proposals,
        acceptance: found.acceptance,
        kept: found.kept,
        out: arguments.out.as_ref().map(|path| path.display().to_string()),
        picture: picture.display().to_string(),
    };
    if arguments.json {
        return output::print_json(&report);
    }
    let acceptance =
        report.acceptance.map_or(String::new(), |a| format!(", {:.0} % accepted", 100.0 * a));
    let kept = report.kept.map_or(String::new(), |k| format!(", {:.1} % kept", 100.0 * k));
    let text = format!(
        "{} clouds of {} points in {:.1} s, θ from {}\n\
         {:.0} of {} proposals effective per set{kept}{acceptance}\n\
         picture: {}\n",
        report.sets,
        report.points,
        report.seconds,
        report.prior,
        report.effective_proposals,
        report.num_proposals,
        report.picture
    );
    output::print(&text)
}
