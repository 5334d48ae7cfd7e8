//! Table 2 of the paper: a linear classifier on features that were learned without labels.

use clap::Args;
use ebp::metric::classify::{CrossValidation, Features, Labelled, SvmConfig, cross_validate};
use ebp::process::{LatentCodes, UnconditionalProcess};
use ebp::rng::Stream;
use serde::Serialize;

use super::clouds::{CloudExperiment, keep_json};
use crate::command::classify::{CostArgument, cost};
use crate::command::cloud_model::sets;
use crate::command::encode::class_of;
use crate::device;
use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::threads::start_threads;
use ebp::figure::confusion::ConfusionPicture;
use ebp::figure::save;

const HELP: &str = "\
All sets, training and held-out ones, are encoded; a linear support vector machine (squared hinge, no
scaling) is judged by cross-validation, with C = 1 and with the C that each fold's training sets
choose. The class of a set is the folder or file it comes from. An untrained encoder of the same shape
stands beside it.

Examples:
  ebp reproduce table2
  ebp reproduce table2 --preset cloud --data modelnet10/ --set model.latent_dim=256";

/// Arguments of `ebp reproduce table2`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Table2Arguments {
    #[command(flatten)]
    experiment: CloudExperiment,

    /// Folds of cross-validation
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = crate::args::at_least_one)]
    folds: usize,

    /// Prices of violated margins: numbers, or `auto` to choose it by cross-validation
    #[arg(long, value_name = "C,...", value_delimiter = ',', default_value = "1,auto",
          value_parser = cost)]
    c: Vec<CostArgument>,
}

#[derive(Debug, Serialize)]
struct Row {
    features: &'static str,
    width: usize,
    results: Vec<Outcome>,
}

/// What came of one choice of C.
#[derive(Debug, Serialize)]
struct Outcome {
    /// `None` if every fold chose its own.
    c: Option<f64>,
    /// The C of each fold.
    costs: Vec<f64>,
    accuracy: f64,
    std_error: f64,
    gap: f64,
}

impl Outcome {
    fn new(c: CostArgument, found: CrossValidation) -> Self {
        Self {
            c: match c {
                CostArgument::Fixed(c) => Some(c),
                CostArgument::Auto => None,
            },
            accuracy: found.confusion.accuracy(),
            std_error: found.confusion.accuracy_std_error(),
            gap: found.gap,
            costs: found.costs,
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    data: String,
    sets: usize,
    classes: Vec<String>,
    folds: usize,
    rows: Vec<Row>,
    picture: String,
}

/// Trains if need be, classifies and prints.
pub(super) fn run(arguments: &Table2Arguments) -> Result<(), Failure> {
    let report = start_threads(arguments.experiment.threads)?.install(|| measure(arguments))?;
    keep_json(&arguments.experiment.file("table2.json")?, &report)?;
    if arguments.experiment.json {
        return output::print_json(&report);
    }
    let mut heading = vec!["features".to_owned(), "width".to_owned()];
    heading.extend(arguments.c.iter().map(|c| match c {
        CostArgument::Fixed(c) => format!("C = {c}"),
        CostArgument::Auto => "C chosen".to_owned(),
    }));
    let mut lines = vec![heading];
    for row in &report.rows {
        let accuracy =
            |r: &Outcome| format!("{:.2} ± {:.2}", 100.0 * r.accuracy, 100.0 * r.std_error);
        let mut line = vec![row.features.to_owned(), row.width.to_string()];
        line.extend(row.results.iter().map(accuracy));
        lines.push(line);
    }
    output::print(&format!(
        "{}: {} sets of {} classes, {} folds, accuracy in %\n\n{}\npicture: {}\n",
        report.data,
        report.sets,
        report.classes.len(),
        report.folds,
        output::table(&lines),
        report.picture
    ))
}

fn measure(arguments: &Table2Arguments) -> Result<Report, Failure> {
    let mut experiment = arguments.experiment.clone();
    if experiment.model.is_none() && experiment.data.is_none() {
        experiment.data = Some("all".into());
    }
    let subject = experiment.subject("all", &[])?;
    let all = [sets(&subject.data.train), sets(&subject.data.held_out)].concat();
    let names = [subject.data.train.names(), subject.data.held_out.names()].concat();
    let mut classes: Vec<String> = names.iter().map(|name| class_of(name).to_owned()).collect();
    let of_sets = classes.clone();
    classes.sort();
    classes.dedup();
    let labels: Vec<usize> =
        of_sets.iter().filter_map(|class| classes.binary_search(class).ok()).collect();
    let trained = &subject.trained.process;
    let seed = subject.trained.settings.seed;
    let untrained =
        UnconditionalProcess::new(trained.config().clone(), seed, device::open()?.backend)?;
    let (codes, untrained) = (trained.encode(&all)?, untrained.encode(&all)?);
    let count = all.len();
    let mut rows = Vec::new();
    let picture = experiment.file("table2.png")?;
    let parts: [(&'static str, &LatentCodes, bool); 3] = [
        ("pooled", &codes, true),
        ("μ", &codes, false),
        ("pooled, untrained encoder", &untrained, true),
    ];
    let clock = progress::clock((parts.len() * arguments.c.len()) as u64, experiment.quiet);
    for (name, codes, is_pooled) in parts {
        let values = if is_pooled { &codes.pooled } else { &codes.mean };
        let width = values.len() / count;
        let features = Features::new(width, values)?;
        let data = Labelled::new(&features, &labels, classes.len())?;
        let stream = Stream::new(0, "table 2");
        let mut results = Vec::new();
        for &c in &arguments.c {
            clock.set_message(format!("classifying: {name}"));
            let (config, cost) = (SvmConfig::default(), c.cost(arguments.folds));
            let found = cross_validate(&data, arguments.folds, cost, &config, stream)?;
            // The picture shows the first features with the last C.
            if rows.is_empty() {
                let confusion = &found.confusion;
                let title = format!("pooled features: {:.1} %", 100.0 * confusion.accuracy());
                let drawn = ConfusionPicture { title, names: &classes, confusion, scale: 2 }.draw();
                save(&drawn, &picture)?;
            }
            results.push(Outcome::new(c, found));
            clock.inc(1);
        }
        rows.push(Row { features: name, width, results });
    }
    clock.finish_and_clear();
    Ok(Report {
        data: subject.trained.settings.data.source.clone(),
        sets: count,
        classes,
        folds: arguments.folds,
        rows,
        picture: picture.display().to_string(),
    })
}
