//! `ebp score`: how likely clouds and their points are under a trained model.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use ebp::Share;
use ebp::data::CloudSource;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::experiment::{table, with_interval};
use ebp::model::{CodeScore, Model, PriorKind, ScoreOptions, read_cloud_inputs};
use ebp::process::{LogDensity, ScoreSettings, SetScore};
use ebp::rng::Stream;
use miette::miette;
use serde::{Deserialize, Serialize};

use super::merge::MergeArguments;
use crate::args::{Common, PRIORS, choice};
use crate::failure::Failure;
use crate::shard::{self, Part, Parts, Question, ShardArgument};
use crate::{device, output, progress};

const HELP: &str = "\
`energy` is the mean of −u over the points of a set, without the normaliser: low is likely. `log p`
is the log-likelihood per point in the units of the data. θ is integrated out by draws that walk from a
Gaussian around the mode of p(θ | set) to p(θ | set) itself, the normaliser by importance sampling
around the set's points and the model's. The standard error contains both, and can be believed where
`holds` says yes: Pareto k̂ of the weights is below 0.7, that of the normaliser's too, new places do not
move the mode, and the error that draws of θ leave is at most what the normaliser may be off. A value
above what the set's own nearest neighbours allow cannot be right: `holds` says `never`. `--draws 0` takes the Gaussian for the law itself (Laplace), in a
fraction of the time and without that check. The law of θ is that of `ebp sample`. Points outside of the
domain of the model are impossible: log p is −∞, `outside` counts them, and JSON has the log-likelihood
of the others. `KL` is that of the posterior and N(0, I).

Is a set strange? `log p(θ)` is the log density of its code μ under the law of θ, and `rank` the share of
training sets for which it is as small: of sets like them 5 % have a rank of at most 0.05. `log p` of the
points does not say it: θ is found for every set, and compact sets get more than large ones.
`--codes-only` prints these columns alone, in the time that the encoder takes. `worst` is the smallest log density of a point
at the encoder's θ and the number of that point.

Examples:
  ebp score runs/shapes chair.ply lamp.ply
  ebp score runs/shapes scans/ --points points.npy --json
  ebp score runs/shapes scans/ --prior standard
  ebp score runs/shapes scans/ --draws 0
  ebp score runs/shapes scans/ --codes-only
  ebp score runs/shapes scans/ --shard 2/4 -o part-2   # one of four jobs; then `ebp merge part-*`";

/// Arguments of `ebp score`.
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ScoreArguments {
    /// Folder of a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Files, folders or caches of clouds
    #[arg(value_name = "SETS", required = true)]
    sets: Vec<PathBuf>,

    /// Write the log density of every point of all sets, one after the other, as one array
    #[arg(long, value_name = "FILE")]
    points: Option<PathBuf>,

    /// The law of θ
    #[arg(long, default_value = "kernel", value_parser = choice(PRIORS))]
    prior: PriorKind,

    /// Draws of θ that walk together; 0 for Laplace's approximation
    #[arg(long, value_name = "N", default_value_t = 32)]
    draws: usize,

    /// Draws of θ per set in all, at most
    #[arg(long, value_name = "N", default_value_t = 2048)]
    most_draws: usize,

    /// Proposals for each normaliser, at most
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = crate::args::at_least_one)]
    proposals: usize,

    /// Only what the encoder says of each set: log p(θ), its rank and the KL; no energy is looked at
    #[arg(long, conflicts_with_all = ["points", "draws", "most_draws", "proposals", "seed"])]
    codes_only: bool,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    shard: ShardArgument,

    /// The folder of the part
    #[arg(short, long, value_name = "PART", requires = "share", help_heading = "Many jobs")]
    out: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// What is said about a set.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    points: usize,
    energy: f64,
    /// Nats per point, in the units of the data; none for −∞.
    log_likelihood: Option<f64>,
    /// Points outside of the domain.
    outside: usize,
    /// Nats per point of those inside.
    log_likelihood_inside: f64,
    std_error: f64,
    draws: usize,
    effective_draws: f64,
    /// None where there are too few draws to tell, or all weights are equal.
    pareto_k: Option<f64>,
    holds: bool,
    /// Values of the energy that were computed.
    evaluations: usize,
    /// Nats per point that the nearest neighbours allow; none of few points.
    neighbours: Option<f64>,
    is_possible: bool,
    /// log p(μ) under the law of θ.
    log_law: f64,
    /// Share of training sets for which it is as small.
    rank: Option<f64>,
    kl: f64,
    /// At θ = μ, by importance sampling.
    log_partition: f64,
    log_partition_error: f64,
    /// Bounds of the learned sampler, with their errors.
    log_partition_bounds: Option<[LogDensity; 2]>,
    /// None for −∞.
    worst_log_density: Option<f64>,
    worst_point: usize,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    estimator: String,
    prior: &'static str,
    draws: usize,
    most_draws: usize,
    proposals: usize,
    sets: Vec<Row>,
}

/// What is kept of a set in a part.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    estimator: String,
    row: Row,
}

/// Scores and prints, everything or a share.
pub(crate) fn run(arguments: &ScoreArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    match (arguments.shard.share, &arguments.out, arguments.codes_only) {
        (Some(share), Some(folder), false) => {
            let report = common.install(|| measure_share(arguments, share, folder))?;
            common.print(Some(arguments.seed), &report)
        }
        (Some(share), Some(folder), true) => {
            common.print(None, &common.install(|| measure_codes_share(arguments, share, folder))?)
        }
        (_, _, true) => {
            let rows = common.install(|| {
                let (model, clouds) = open(arguments)?;
                progress::during(common.quiet, "encoding", || {
                    measure_codes(arguments, &model, &clouds, 0..clouds.num_sets())
                })
            })?;
            print_codes(arguments, rows)
        }
        (_, _, false) => {
            let report = common.install(|| measure(arguments))?;
            print_scores(arguments, &report)
        }
    }
}

/// What [`run`] writes and prints, from the parts of all shares.
pub(crate) fn merge(
    mut arguments: ScoreArguments,
    parts: &Parts,
    how: &MergeArguments,
) -> Result<(), Failure> {
    how.refuse_out("score")?;
    (arguments.common.json, arguments.common.quiet) = (how.json, how.quiet);
    if arguments.codes_only {
        return print_codes(
            &arguments,
            parts.rows::<Vec<CodeRow>>()?.into_iter().flatten().collect(),
        );
    }
    let pieces: Vec<Piece> = parts.rows()?;
    let Some(estimator) = pieces.first().map(|piece| piece.estimator.clone()) else {
        return Err(Failure::Failed(miette!("the parts hold no sets")));
    };
    if arguments.points.is_some() {
        let values = parts.values()?.into_iter().flat_map(|array| array.values).collect();
        write_points(&arguments, values)?;
    }
    let rows = pieces.into_iter().map(|piece| piece.row).collect();
    print_scores(&arguments, &report(&arguments, estimator, rows))
}

fn print_scores(arguments: &ScoreArguments, report: &Report) -> Result<(), Failure> {
    if arguments.common.json {
        return output::print_json(Some(arguments.seed), report);
    }
    let mut head = vec![
        "set",
        "points",
        "outside",
        "energy",
        "log p / point",
        "draws",
        "k̂",
        "holds",
        "log p(θ)",
        "rank",
        "KL",
        "worst",
    ];
    head.push("point");
    if report.sets.iter().any(|row| row.log_partition_bounds.is_some()) {
        head.extend(["log Z", "at least", "at most"]);
    }
    let mut lines = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
    for row in &report.sets {
        let mut line = vec![
            row.name.clone(),
            row.points.to_string(),
            row.outside.to_string(),
            format!("{:.3}", row.energy),
            match row.log_likelihood {
                Some(value) => with_interval(value, row.std_error, 3),
                None => "−∞".to_owned(),
            },
            row.draws.to_string(),
            row.pareto_k.map_or("–".to_owned(), |k| format!("{k:.2}")),
            match (row.holds, row.is_possible) {
                (true, _) => "yes",
                (false, true) => "no",
                (false, false) => "never",
            }
            .to_owned(),
            format!("{:.1}", row.log_law),
            rank(row.rank),
            format!("{:.1}", row.kl),
            row.worst_log_density.map_or("−∞".to_owned(), |worst| format!("{worst:.2}")),
            row.worst_point.to_string(),
        ];
        if let Some(bounds) = &row.log_partition_bounds {
            line.push(with_interval(row.log_partition, row.log_partition_error, 3));
            line.extend(bounds.map(|b| with_interval(b.value, b.std_error, 3)));
        }
        lines.push(line);
    }
    let not_held = report.sets.iter().filter(|row| !row.holds).count();
    let impossible = report.sets.iter().filter(|row| !row.is_possible).count();
    let never = match impossible {
        0 => String::new(),
        some => format!("{some} above what the points' own neighbours allow: mass was missed\n"),
    };
    let trust = match (report.draws, not_held) {
        (0, _) => "Laplace's approximation: nothing says how far it is off\n".to_owned(),
        (_, 0) => String::new(),
        (_, some) => format!(
            "{some} of {} errors cannot be believed: more `--draws` or `--most-draws` may help\n",
            report.sets.len()
        ),
    };
    let law =
        format!("θ from {}; ± is half of a 95 % interval over all random numbers\n", report.prior);
    output::print(&format!("{}{law}{trust}{never}", table(&lines)))
}

/// What the encoder says of a set.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeRow {
    name: String,
    points: usize,
    log_law: f64,
    rank: Option<f64>,
    kl: f64,
}

#[derive(Debug, Serialize)]
struct CodeReport {
    model: String,
    prior: &'static str,
    sets: Vec<CodeRow>,
}

fn print_codes(arguments: &ScoreArguments, sets: Vec<CodeRow>) -> Result<(), Failure> {
    let model = arguments.model.display().to_string();
    let report = CodeReport { model, prior: arguments.prior.name(), sets };
    if arguments.common.json {
        return output::print_json(None, &report);
    }
    let head = ["set", "points", "log p(θ)", "rank", "KL"];
    let mut lines = vec![head.map(String::from).to_vec()];
    lines.extend(report.sets.iter().map(|row| {
        let (log_law, kl) = (format!("{:.1}", row.log_law), format!("{:.1}", row.kl));
        vec![row.name.clone(), row.points.to_string(), log_law, rank(row.rank), kl]
    }));
    let law = format!("θ from {}; rank: the share of training sets as strange\n", report.prior);
    output::print(&format!("{}{law}", table(&lines)))
}

fn open(arguments: &ScoreArguments) -> Result<(Model, CloudSource), Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    Ok((model, read_cloud_inputs(&arguments.sets)?))
}

fn measure_codes(
    arguments: &ScoreArguments,
    model: &Model,
    clouds: &CloudSource,
    sets: Range<usize>,
) -> Result<Vec<CodeRow>, Failure> {
    let scores = model.clouds()?.score_codes_range(clouds, sets.clone(), arguments.prior)?;
    let row = |(set, score): (usize, CodeScore)| CodeRow {
        name: clouds.name(set),
        points: clouds.size(set),
        log_law: score.log_law,
        rank: score.rank,
        kl: score.kl,
    };
    Ok(sets.zip(scores).map(row).collect())
}

/// Sets whose codes are kept together in parts.
const CODES_AT_ONCE: usize = 4096;

fn measure_codes_share(
    arguments: &ScoreArguments,
    share: Share,
    folder: &Path,
) -> Result<shard::Report, Failure> {
    let (model, clouds) = open(arguments)?;
    let count = clouds.num_sets();
    let question = question(arguments, &model, &clouds, count.div_ceil(CODES_AT_ONCE));
    let part = Part::begin(folder, share, question)?;
    let missing = part.missing();
    let done = progress::count(missing.len() as u64, arguments.common.quiet, "groups of sets");
    for piece in missing {
        let sets = piece * CODES_AT_ONCE..((piece + 1) * CODES_AT_ONCE).min(count);
        part.keep(piece, &measure_codes(arguments, &model, &clouds, sets)?, None)?;
        done.inc(1);
    }
    done.finish();
    part.finish()
}

fn question(
    arguments: &ScoreArguments,
    model: &Model,
    clouds: &CloudSource,
    num_pieces: usize,
) -> Question {
    let same = ScoreArguments {
        out: None,
        shard: ShardArgument::default(),
        common: Common::default(),
        ..arguments.clone()
    };
    Question {
        command: "score".to_owned(),
        arguments: format!("{same:?}"),
        inputs: shard::inputs_of(model, Some(clouds)),
        num_pieces,
    }
}

fn rank(rank: Option<f64>) -> String {
    rank.map_or("–".to_owned(), |rank| format!("{rank:.3}"))
}

fn options(arguments: &ScoreArguments) -> ScoreOptions {
    ScoreOptions {
        prior: arguments.prior,
        settings: ScoreSettings {
            num_draws: arguments.draws,
            most_draws: arguments.most_draws,
            num_proposals: arguments.proposals,
        },
        stream: Stream::new(arguments.seed, "score"),
    }
}

/// Every set is a piece of its own: some take a minute.
fn measure_share(
    arguments: &ScoreArguments,
    share: Share,
    folder: &Path,
) -> Result<shard::Report, Failure> {
    let (model, clouds) = open(arguments)?;
    let question = question(arguments, &model, &clouds, clouds.num_sets());
    let part = Part::begin(folder, share, question)?;
    let missing = part.missing();
    let done = progress::count(missing.len() as u64, arguments.common.quiet, "sets");
    for sets in shard::runs(&missing) {
        model.clouds()?.score_range(&clouds, sets, &options(arguments), &mut |set, score| {
            let row = row(&clouds, set, &score);
            let values = arguments.points.is_some().then_some(score.log_densities);
            let values = values.map(|values| Array::new(vec![values.len()], values)).transpose()?;
            part.keep(set, &Piece { estimator: model.name().to_owned(), row }, values)?;
            done.inc(1);
            Ok(())
        })?;
    }
    done.finish();
    part.finish()
}

fn row(clouds: &CloudSource, set: usize, score: &SetScore) -> Row {
    let n = score.energies.len() as f64;
    let num_inside = (score.energies.len() - score.outside).max(1) as f64;
    let points = score.log_densities.iter().enumerate();
    let worst = points.min_by(|a, b| a.1.total_cmp(b.1));
    Row {
        name: clouds.name(set),
        points: score.energies.len(),
        energy: score.mean_energy(),
        log_likelihood: Some(score.log_likelihood.value / n).filter(|value| value.is_finite()),
        outside: score.outside,
        log_likelihood_inside: score.inside.value / num_inside,
        std_error: score.inside.std_error / num_inside,
        draws: score.num_draws,
        effective_draws: score.effective_draws,
        pareto_k: score.pareto_k.filter(|k| k.is_finite()),
        holds: score.holds,
        evaluations: score.num_evaluations,
        neighbours: score.neighbours.map(|allowed| allowed.value),
        is_possible: score.is_possible,
        log_law: score.log_law,
        rank: score.rank,
        kl: score.kl,
        log_partition: score.log_partition.value,
        log_partition_error: score.log_partition.std_error,
        log_partition_bounds: score.partition_bounds.map(|bounds| [bounds.lower, bounds.upper]),
        worst_log_density: worst.map(|(_, &x)| f64::from(x)).filter(|x| x.is_finite()),
        worst_point: worst.map_or(0, |(point, _)| point),
    }
}

fn measure(arguments: &ScoreArguments) -> Result<Report, Failure> {
    let (model, clouds) = open(arguments)?;
    let count = progress::count(clouds.num_sets() as u64, arguments.common.quiet, "sets");
    let (mut rows, mut log_densities) = (Vec::new(), Vec::new());
    model.clouds()?.score(&clouds, &options(arguments), &mut |set, score| {
        rows.push(row(&clouds, set, &score));
        if arguments.points.is_some() {
            log_densities.extend(score.log_densities);
        }
        count.inc(1);
    })?;
    count.finish();
    write_points(arguments, log_densities)?;
    Ok(report(arguments, model.name().to_owned(), rows))
}

/// Writes the log density of every point, where that was asked for.
fn write_points(arguments: &ScoreArguments, values: Vec<f32>) -> Result<(), Failure> {
    if let Some(path) = &arguments.points {
        write_npy(path, &Array::new(vec![values.len()], values)?, Precision::Single)?;
    }
    Ok(())
}

fn report(arguments: &ScoreArguments, estimator: String, sets: Vec<Row>) -> Report {
    Report {
        model: arguments.model.display().to_string(),
        estimator,
        prior: arguments.prior.name(),
        draws: arguments.draws,
        most_draws: arguments.most_draws,
        proposals: arguments.proposals,
        sets,
    }
}
