//! `ebp sample`: new sets from a trained model.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use ebp::Share;
use ebp::checkpoint::crc32c;
use ebp::data::npy::Array;
use ebp::figure::{contact_sheet, save};
use ebp::model::{Model, PatternFile, PriorKind, SampleOptions, write_clouds, write_pattern_files};
use ebp::process::{DrawReport, DrawSettings, DrawTally, PointMethod, PointStart};
use ebp::rng::Stream;
use miette::miette;
use serde::{Deserialize, Serialize};

use super::merge::MergeArguments;
use crate::args::{Choice, Common, PRIORS, choice, name_of};
use crate::failure::Failure;
use crate::shard::{self, Part, Parts, Question, ShardArgument};
use crate::{device, output, progress};

const HELP: &str = "\
Points are drawn by importance resampling on a grid, then moved by Langevin steps. `effective` is
the number of independent points that the weights are worth, per set; more `--proposals` make it
larger. `annealed` steps end without noise and give sharp surfaces; `langevin` keeps the noise;
`mala` accepts or rejects every move, which makes the law of the points that of the model. Models
with a learned sampler (`ade`) can start from its draws: as they are, resampled or rejected.
Energies of whole sets (`ebp train sticks`), `bruno` and `statistician` draw in their own way; of the
settings below they take the number of sets and of points. Without --points the numbers of points of sets
from an energy follow the law of the training sets (`data.sizes`). Point processes (`ebp train strauss`)
take the number of patterns and write a folder of them, also in shares.

Examples:
  ebp sample runs/shapes -n 100 --points 2048 -o chairs.npy
  ebp sample runs/shapes -n 8 --points 20000 -o chairs/ --ending ply --prior standard
  ebp encode runs/shapes scan.ply --features mean -o code.npy
  ebp sample runs/shapes --codes code.npy --points 20000 -o dense.npy
  ebp sample runs/shapes -n 10000 --shard 2/4 -o part-2   # one of four jobs; then `ebp merge part-* -o all.npy`";

/// Arguments of `ebp sample`.
#[derive(Clone, Debug, Args)]
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

    /// Points of each [default: 2048; of energies of whole sets drawn from the sizes they learned from]
    #[arg(long, value_name = "N", value_parser = crate::args::at_least_one)]
    points: Option<usize>,

    /// A file ending in .npy for all, or a folder that gets a file each; with --shard the folder of the part
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,

    /// Format of the files in a folder
    #[arg(long, value_name = "ENDING", default_value = "ply")]
    ending: String,

    /// A contact sheet [default: beside the output, or plots/samples.png in the model's folder]
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// The law of θ
    #[arg(long, default_value = "kernel", value_parser = choice(PRIORS))]
    prior: PriorKind,

    /// Where points come from: the grid, or the learned sampler where one was trained
    #[arg(long, default_value = "grid", value_parser = choice(STARTS))]
    start: PointStart,

    /// What moves points afterwards
    #[arg(long, default_value = "annealed", value_parser = choice(METHODS))]
    method: PointMethod,

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

    #[command(flatten)]
    shard: ShardArgument,

    #[command(flatten)]
    common: Common,
}

const METHODS: &[Choice<PointMethod>] = &[
    ("annealed", "Langevin steps whose noise falls to nothing", PointMethod::Annealed),
    ("langevin", "Langevin steps", PointMethod::Langevin),
    ("mala", "Langevin steps that are accepted or rejected", PointMethod::Mala),
];

const STARTS: &[Choice<PointStart>] = &[
    ("grid", "Importance resampling on a grid", PointStart::Grid),
    ("sampler", "The learned sampler's draws as they are", PointStart::Sampler),
    (
        "sampler-resampled",
        "The learned sampler's draws, resampled by their weights",
        PointStart::SamplerResampled,
    ),
    (
        "sampler-rejected",
        "The learned sampler's draws, kept or rejected by their weights",
        PointStart::SamplerRejected,
    ),
];

#[derive(Debug, Serialize)]
struct PatternReport {
    model: String,
    process: String,
    patterns: usize,
    mean_points: f64,
    standard_error: f64,
    seconds: f64,
    out: String,
}

/// Patterns of a point process, or events, that were drawn one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternPiece {
    process: String,
    files: Vec<PatternFile>,
    seconds: f64,
}

impl PatternPiece {
    fn draw(
        arguments: &SampleArguments,
        model: &Model,
        numbers: Range<usize>,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Self, Failure> {
        let started = Instant::now();
        let stream = Stream::new(arguments.seed, "sample");
        let files = model.patterns()?.sample_files(numbers, stream, watch)?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Self { process: model.name().to_owned(), files, seconds })
    }
}

/// Writes patterns, one file each, and reports.
fn publish_patterns(arguments: &SampleArguments, drawn: &PatternPiece) -> Result<(), Failure> {
    let out = arguments.out.clone().unwrap_or_else(|| arguments.model.join("samples"));
    write_pattern_files(&out, &drawn.files)?;
    let counts: Vec<usize> = drawn.files.iter().map(|file| file.num_points).collect();
    let number = counts.len() as f64;
    let mean = counts.iter().sum::<usize>() as f64 / number;
    let square: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2)).sum();
    let report = PatternReport {
        model: arguments.model.display().to_string(),
        process: drawn.process.clone(),
        patterns: counts.len(),
        mean_points: mean,
        standard_error: (square / (number * (number - 1.0).max(1.0))).sqrt(),
        seconds: drawn.seconds,
        out: out.display().to_string(),
    };
    if arguments.common.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    output::print(&format!(
        "{} patterns of {} in {:.1} s, {:.2} points on average (standard error {:.2})\nfiles: {}\n",
        report.patterns,
        report.process,
        report.seconds,
        report.mean_points,
        report.standard_error,
        report.out
    ))
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    model: String,
    estimator: &'a str,
    prior: &'a str,
    sets: usize,
    /// Of the largest.
    points: usize,
    start: &'static str,
    method: &'static str,
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
/// Patterns of a piece of a share: seconds of work, and few files.
const PATTERNS_AT_ONCE: usize = 16;

/// Draws, writes and reports, everything or a share.
pub(crate) fn run(arguments: &SampleArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    if let (Some(share), Some(folder)) = (arguments.shard.share, &arguments.out) {
        let report = common.install(|| draw_share(arguments, share, folder))?;
        return common.print(Some(arguments.seed), &report);
    }
    common.install(|| draw(arguments))
}

/// What [`run`] writes and prints, from the parts of all shares.
pub(crate) fn merge(
    mut arguments: SampleArguments,
    parts: &Parts,
    how: &MergeArguments,
) -> Result<(), Failure> {
    arguments.out.clone_from(&how.out);
    (arguments.common.json, arguments.common.quiet) = (how.json, how.quiet);
    let (mut pieces, mut patterns) = (Vec::new(), Vec::new());
    for piece in parts.rows()? {
        match piece {
            Piece::Clouds(piece) => pieces.push(piece),
            Piece::Patterns(piece) => patterns.push(piece),
        }
    }
    if let Some(process) = patterns.first().map(|piece: &PatternPiece| piece.process.clone()) {
        let seconds = patterns.iter().map(|piece| piece.seconds).sum();
        let files = patterns.into_iter().flat_map(|piece| piece.files).collect();
        return publish_patterns(&arguments, &PatternPiece { process, files, seconds });
    }
    let mut sets = Vec::new();
    for (piece, values) in pieces.iter().zip(parts.values()?) {
        let size = values.shape.iter().skip(1).product::<usize>().max(1);
        sets.extend(values.values.chunks_exact(size).map(<[f32]>::to_vec));
        if sets.is_empty() || values.shape.len() != 3 || values.shape[0] != piece.tally.num_sets {
            let shape = &values.shape;
            return Err(Failure::Failed(miette!("a part has points of shape {shape:?}")));
        }
    }
    let Some(CloudPiece { estimator, prior, dim, .. }) = pieces.first().cloned() else {
        return Err(Failure::Failed(miette!("the parts hold no sets")));
    };
    let seconds = pieces.iter().map(|piece| piece.seconds).sum();
    let tallies: Vec<_> = pieces.into_iter().map(|piece| piece.tally).collect();
    let report = DrawReport::of(&tallies, &draw_settings(&arguments));
    publish(&arguments, &Drawn { estimator, prior, dim, sets, report, seconds })
}

/// What a share leaves of one piece.
#[derive(Debug, Serialize, Deserialize)]
enum Piece {
    /// Their points lie beside this.
    Clouds(CloudPiece),
    Patterns(PatternPiece),
}

/// Clouds that were drawn together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CloudPiece {
    estimator: String,
    prior: String,
    dim: usize,
    tally: DrawTally,
    seconds: f64,
}

/// All clouds.
struct Drawn {
    estimator: String,
    prior: String,
    dim: usize,
    sets: Vec<Vec<f32>>,
    report: DrawReport,
    seconds: f64,
}

fn draw_settings(arguments: &SampleArguments) -> DrawSettings {
    DrawSettings {
        start: arguments.start,
        method: arguments.method,
        num_steps: arguments.steps,
        step_size: arguments.step_size,
        proposals_per_point: arguments.proposals,
        ..DrawSettings::default()
    }
}

fn options(arguments: &SampleArguments, model: &Model) -> Result<SampleOptions, Failure> {
    let theta = match &arguments.codes {
        Some(path) => Some(model.clouds()?.read_latents(path)?),
        None => None,
    };
    Ok(SampleOptions {
        count: arguments.count,
        num_points: arguments.points,
        prior: arguments.prior,
        theta,
        draw: draw_settings(arguments),
        stream: Stream::new(arguments.seed, "sample"),
    })
}

fn draw_share(
    arguments: &SampleArguments,
    share: Share,
    folder: &Path,
) -> Result<shard::Report, Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    let same = SampleArguments {
        out: None,
        shard: ShardArgument::default(),
        common: Common::default(),
        ..arguments.clone()
    };
    let question = |codes: &str, num_pieces: usize| Question {
        command: "sample".to_owned(),
        arguments: format!("{same:?}"),
        inputs: format!("{}{codes}", shard::inputs_of(&model, None)),
        num_pieces,
    };
    if model.patterns().is_ok() {
        let num_pieces = arguments.count.div_ceil(PATTERNS_AT_ONCE);
        let part = Part::begin(folder, share, question("", num_pieces))?;
        let missing = part.missing();
        let done = progress::count(missing.len() as u64, arguments.common.quiet, "groups");
        for number in missing {
            let first = number * PATTERNS_AT_ONCE;
            let numbers = first..arguments.count.min(first + PATTERNS_AT_ONCE);
            let piece = PatternPiece::draw(arguments, &model, numbers, &|| {})?;
            part.keep(number, &Piece::Patterns(piece), None)?;
            done.inc(1);
        }
        done.finish();
        return part.finish();
    }
    if model.clouds().is_err() {
        return Err(Failure::Usage(miette!(
            help = "leave `--shard` out",
            "a model of {} draws all its sets together; shares are of models of clouds and of patterns",
            model.settings().kind()
        )));
    }
    let options = options(arguments, &model)?;
    let theta = options.theta.as_deref().unwrap_or_default();
    let codes = theta.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let sampling = model.sampling(&options)?;
    let codes = format!("; codes {:08x}", crc32c(&[&codes]));
    let part = Part::begin(folder, share, question(&codes, sampling.num_groups()))?;
    let missing = part.missing();
    let done = progress::count(missing.len() as u64, arguments.common.quiet, "groups of clouds");
    for number in missing {
        let started = Instant::now();
        let group = sampling.group(number)?;
        let (count, dim) = (group.sets.len(), model.clouds()?.dim());
        let size = group.sets.first().map_or(0, |set| set.len() / dim);
        let piece = CloudPiece {
            estimator: model.name().to_owned(),
            prior: sampling.prior().to_owned(),
            dim,
            tally: group.tally,
            seconds: started.elapsed().as_secs_f64(),
        };
        let values = Array::new(vec![count, size, dim], group.sets.concat())?;
        part.keep(number, &Piece::Clouds(piece), Some(values))?;
        done.inc(1);
    }
    done.finish();
    part.finish()
}

fn draw(arguments: &SampleArguments) -> Result<(), Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    if model.patterns().is_ok() {
        let count = progress::count(arguments.count as u64, arguments.common.quiet, "patterns");
        let drawn = PatternPiece::draw(arguments, &model, 0..arguments.count, &|| count.inc(1))?;
        count.finish();
        return publish_patterns(arguments, &drawn);
    }
    let options = options(arguments, &model)?;
    let started = Instant::now();
    let count = progress::count(arguments.count as u64, arguments.common.quiet, "clouds");
    let drawn = model.sample_watched(&options, &mut |num_done| count.set(num_done as u64))?;
    count.finish();
    let drawn = Drawn {
        estimator: model.name().to_owned(),
        prior: drawn.prior.to_owned(),
        dim: drawn.dim,
        sets: drawn.sets,
        report: drawn.report,
        seconds: started.elapsed().as_secs_f64(),
    };
    publish(arguments, &drawn)
}

/// Writes the clouds and their picture, and reports.
fn publish(arguments: &SampleArguments, drawn: &Drawn) -> Result<(), Failure> {
    if let Some(path) = &arguments.out {
        write_clouds(path, &drawn.sets, drawn.dim, &arguments.ending)?;
    }
    let picture = arguments.picture.clone().unwrap_or_else(|| match &arguments.out {
        Some(path) if path.is_dir() => path.join("clouds.png"),
        Some(path) => path.with_extension("png"),
        None => arguments.model.join("plots").join("samples.png"),
    });
    let shown = &drawn.sets[..drawn.sets.len().min(MOST_DRAWN)];
    // As few rows as it takes, and those evenly full.
    let columns = shown.len().div_ceil(shown.len().div_ceil(COLUMNS).max(1)).max(1);
    let shown: Vec<&[Vec<f32>]> = shown.chunks(columns).collect();
    save(&contact_sheet::draw_rows(&shown, drawn.dim), &picture)?;
    let report = Report {
        model: arguments.model.display().to_string(),
        estimator: &drawn.estimator,
        prior: &drawn.prior,
        sets: drawn.sets.len(),
        points: drawn.sets.iter().map(|set| set.len() / drawn.dim).max().unwrap_or(0),
        start: name_of(STARTS, &arguments.start),
        method: name_of(METHODS, &arguments.method),
        seconds: drawn.seconds,
        num_proposals: drawn.report.num_proposals,
        effective_proposals: drawn.report.effective_proposals,
        acceptance: drawn.report.acceptance,
        kept: drawn.report.kept,
        out: arguments.out.as_ref().map(|path| path.display().to_string()),
        picture: picture.display().to_string(),
    };
    if arguments.common.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    let share = |share: Option<f64>, digits: usize, word: &str| {
        share.map_or(String::new(), |share| format!(", {:.digits$} % {word}", 100.0 * share))
    };
    output::print(&format!(
        "{} clouds of {}{} points in {:.1} s, θ from {}\n\
         {:.0} of {} proposals effective per set{}{}\n\
         picture: {}\n",
        report.sets,
        if drawn.sets.iter().all(|set| set.len() == report.points * drawn.dim) {
            ""
        } else {
            "up to "
        },
        report.points,
        report.seconds,
        report.prior,
        report.effective_proposals,
        report.num_proposals,
        share(report.kept, 1, "kept"),
        share(report.acceptance, 0, "accepted"),
        report.picture
    ))?;
    arguments.common.show([picture.as_path()])
}
