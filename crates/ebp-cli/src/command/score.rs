//! `ebp score`: how likely clouds and their points are under a trained model.

use std::path::PathBuf;

use clap::Args;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::experiment::table;
use ebp::model::{Model, PriorKind, ScoreOptions, read_cloud_inputs};
use ebp::process::LogDensity;
use ebp::rng::Stream;
use serde::Serialize;

use crate::args::{Common, PRIORS, choice};
use crate::failure::Failure;
use crate::{device, output, progress};

const HELP: &str = "\
`energy` is the mean of −u over the points of a set, without the normaliser: low is likely. `log p`
is the log-likelihood per point in the units of the data, with θ integrated out by importance
sampling from the posterior and the normaliser by importance sampling on a grid; its standard error
contains both. The law of θ is that of `ebp sample`. `KL` is that of the posterior and N(0, I).
`worst` is the smallest log density of a point at the set's own θ and the number of that point.

Examples:
  ebp score runs/shapes chair.ply lamp.ply
  ebp score runs/shapes scans/ --points points.npy --json
  ebp score runs/shapes scans/ --prior standard";

/// Arguments of `ebp score`.
#[derive(Debug, Args)]
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

    /// Draws of θ per set
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = crate::args::at_least_one)]
    draws: usize,

    /// Proposals for each normaliser
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = crate::args::at_least_one)]
    proposals: usize,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    common: Common,
}

/// What is said about a set.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    points: usize,
    energy: f64,
    /// Nats per point, in the units of the data.
    log_likelihood: f64,
    std_error: f64,
    effective_draws: f64,
    kl: f64,
    /// At θ = μ, by importance sampling.
    log_partition: f64,
    log_partition_error: f64,
    /// Bounds of the learned sampler, with their errors.
    log_partition_bounds: Option<[Bound; 2]>,
    worst_log_density: f64,
    worst_point: usize,
}

/// A bound of log Z.
#[derive(Clone, Copy, Debug, Serialize)]
struct Bound {
    value: f64,
    std_error: f64,
}

impl From<LogDensity> for Bound {
    fn from(found: LogDensity) -> Self {
        Self { value: found.value, std_error: found.std_error }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    estimator: &'static str,
    prior: &'static str,
    draws: usize,
    proposals: usize,
    sets: Vec<Row>,
}

/// The bar of the sets.
const TEMPLATE: &str = "{wide_bar} {pos}/{len} sets  {eta} left";

/// Scores and prints.
pub(crate) fn run(arguments: &ScoreArguments) -> Result<(), Failure> {
    let report = arguments.common.install(|| measure(arguments))?;
    if arguments.common.json {
        return output::print_json(&report);
    }
    let mut head =
        vec!["set", "points", "energy", "log p / point", "draws", "KL", "worst", "point"];
    if report.sets.iter().any(|row| row.log_partition_bounds.is_some()) {
        head.extend(["log Z", "at least", "at most"]);
    }
    let mut lines = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
    for row in &report.sets {
        let mut line = vec![
            row.name.clone(),
            row.points.to_string(),
            format!("{:.3}", row.energy),
            format!("{:.3} ± {:.3}", row.log_likelihood, row.std_error),
            format!("{:.1} of {}", row.effective_draws, report.draws),
            format!("{:.1}", row.kl),
            format!("{:.2}", row.worst_log_density),
            row.worst_point.to_string(),
        ];
        if let Some(bounds) = &row.log_partition_bounds {
            line.push(format!("{:.3} ± {:.3}", row.log_partition, row.log_partition_error));
            line.extend(bounds.map(|b| format!("{:.3} ± {:.3}", b.value, b.std_error)));
        }
        lines.push(line);
    }
    output::print(&format!("{}θ from {}\n", table(&lines), report.prior))
}

fn measure(arguments: &ScoreArguments) -> Result<Report, Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    let clouds = read_cloud_inputs(&arguments.sets)?;
    let options = ScoreOptions {
        prior: arguments.prior,
        num_draws: arguments.draws,
        num_proposals: arguments.proposals,
        stream: Stream::new(arguments.seed, "score"),
    };
    let bar = progress::bar(clouds.num_sets() as u64, arguments.common.quiet, TEMPLATE);
    let (mut rows, mut log_densities) = (Vec::new(), Vec::new());
    model.clouds()?.score(&clouds, &options, &mut |set, score| {
        let n = score.energies.len() as f64;
        let points = score.log_densities.iter().enumerate();
        let worst = points.min_by(|a, b| a.1.total_cmp(b.1));
        rows.push(Row {
            name: clouds.name(set),
            points: score.energies.len(),
            energy: score.mean_energy(),
            log_likelihood: score.log_likelihood.value / n,
            std_error: score.log_likelihood.std_error / n,
            effective_draws: score.effective_draws,
            kl: score.kl,
            log_partition: score.log_partition.value,
            log_partition_error: score.log_partition.std_error,
            log_partition_bounds: score
                .partition_bounds
                .map(|bounds| [bounds.lower.into(), bounds.upper.into()]),
            worst_log_density: worst.map_or(f64::NAN, |(_, &x)| f64::from(x)),
            worst_point: worst.map_or(0, |(point, _)| point),
        });
        if arguments.points.is_some() {
            log_densities.extend(score.log_densities);
        }
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    if let Some(path) = &arguments.points {
        let array = Array::new(vec![log_densities.len()], log_densities)?;
        write_npy(path, &array, Precision::Single)?;
    }
    Ok(Report {
        model: arguments.model.display().to_string(),
        estimator: model.name(),
        prior: arguments.prior.name(),
        draws: arguments.draws,
        proposals: arguments.proposals,
        sets: rows,
    })
}
