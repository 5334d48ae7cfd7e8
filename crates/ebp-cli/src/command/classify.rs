//! `ebp classify`: how well a linear support vector machine reads classes off features.
//!
//! The path: arguments → features and labels → cross-validation, or a fit and a test → [`Report`] →
//! table or JSON, and a picture of the confusion matrix.

mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use ebp::data::npy::read_npy;
use ebp::figure::confusion::ConfusionPicture;
use ebp::metric::classify::{
    Classes, Confusion, Cost, Features, Labelled, SvmConfig, cross_validate, fit_choosing,
    read_labels,
};
use ebp::rng::Stream;
use miette::miette;

use self::report::{Protocol, Report};
use crate::args::{Common, at_least_one};
use crate::failure::Failure;
use crate::{output, progress, theme};

const HELP: &str = "\
What it does: one linear support vector machine per class against the rest, L2-regularised squared
hinge loss, intercept regularised, features as they are: scikit-learn's LinearSVC. Without a test set
every item is predicted by a machine that has not seen it (stratified folds).
  --c auto     the best of 0.001, 0.01, ..., 100 by cross-validation over the training items alone
  gap          how much smaller the objective can still become, as a share

Labels are whole numbers in a .npy file, or names in a text file, one a line.

Examples:
  ebp classify features.npy --labels labels.npy
  ebp classify features.npy --labels names.txt --c auto --picture confusion.png
  ebp classify train.npy --labels train.txt --test test.npy --test-labels test.txt";

/// Arguments of `ebp classify`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct ClassifyArguments {
    /// Features, one row per item (.npy)
    features: PathBuf,

    /// The class of every item: .npy of whole numbers, or text with a name a line
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,

    /// Features of test items; without them, cross-validation
    #[arg(long, value_name = "FILE", requires = "test_labels")]
    test: Option<PathBuf>,

    /// The classes of the test items
    #[arg(long, value_name = "FILE", requires = "test")]
    test_labels: Option<PathBuf>,

    /// Folds of cross-validation
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    folds: usize,

    /// Price of violated margins: a number, or `auto` to choose it by cross-validation
    #[arg(long, value_name = "C", default_value = "1", value_parser = cost)]
    c: CostArgument,

    /// Seed of the folds
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where a picture of the confusion matrix goes: .svg, or .png with an .svg beside it
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// C, as typed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CostArgument {
    Auto,
    Fixed(f64),
}

impl CostArgument {
    /// Chosen, if it is, by so many folds of what is learned from.
    pub(crate) fn cost(self, folds: usize) -> Cost {
        match self {
            Self::Fixed(cost) => Cost::Fixed(cost),
            Self::Auto => Cost::CrossValidated(folds),
        }
    }
}

pub(crate) fn cost(text: &str) -> Result<CostArgument, String> {
    match (text, text.parse::<f64>()) {
        ("auto", _) => Ok(CostArgument::Auto),
        (_, Ok(number)) if number > 0.0 && number.is_finite() => Ok(CostArgument::Fixed(number)),
        _ => Err("must be a number above 0, or `auto`".into()),
    }
}

/// Fits, predicts and prints.
pub(crate) fn run(arguments: &ClassifyArguments) -> Result<(), Failure> {
    let report = arguments.common.install(|| measure(arguments))?;
    if arguments.common.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    output::print(&report.table())?;
    arguments.common.show(arguments.picture.as_deref())
}

fn measure(arguments: &ClassifyArguments) -> Result<Report, Failure> {
    let features = read_features(&arguments.features)?;
    let mut all = read_labels(&arguments.labels)?;
    let num_training = all.len();
    check_count(&arguments.labels, num_training, features.len())?;
    let test = match (&arguments.test, &arguments.test_labels) {
        (Some(test), Some(labels)) => {
            let features = read_features(test)?;
            let names = read_labels(labels)?;
            check_count(labels, names.len(), features.len())?;
            all.extend(names);
            Some(features)
        }
        _ => None,
    };
    let Classes { names, labels } = Classes::of(&all, &arguments.labels)?;
    let (labels, test_labels) = labels.split_at(num_training);
    let data = Labelled::new(&features, labels, names.len())?;
    let config = SvmConfig::default();
    let stream = Stream::new(arguments.seed, "classify");
    let cost = arguments.c.cost(arguments.folds);
    let clock = progress::clock(1, arguments.common.quiet);
    clock.set_message("fitting");
    let (confusion, protocol) = match &test {
        None => {
            let found = cross_validate(&data, arguments.folds, cost, &config, stream)?;
            let protocol = Protocol::CrossValidation {
                folds: arguments.folds,
                fold_accuracies: found.fold_accuracies,
                costs: found.costs,
                gap: found.gap,
            };
            (found.confusion, protocol)
        }
        Some(test) => {
            let rows: Vec<usize> = (0..features.len()).collect();
            let chosen = fit_choosing(&data, &rows, cost, &config, stream)?;
            let rows: Vec<usize> = (0..test.len()).collect();
            let mut confusion = Confusion::new(names.len());
            let predicted = chosen.svm.predict(test, &rows)?;
            confusion.add(test_labels.iter().copied().zip(predicted))?;
            let protocol = Protocol::Test {
                training_items: features.len(),
                cost: chosen.cost,
                gap: chosen.svm.gap(),
            };
            (confusion, protocol)
        }
    };
    clock.finish_and_clear();
    let mut report = Report::new(arguments, &features, &names, &confusion, protocol);
    if let Some(path) = &arguments.picture {
        let title = format!("accuracy {:.1} %", 100.0 * confusion.accuracy());
        let picture = ConfusionPicture { title, names: &names, confusion: &confusion };
        picture.draw().save(path, theme::chosen())?;
        report.picture = Some(path.display().to_string());
    }
    Ok(report)
}

fn read_features(path: &Path) -> Result<Features, Failure> {
    let array = read_npy::<f32>(path).map_err(unreadable)?;
    match array.shape[..] {
        [_, dim] => Ok(Features::new(dim, &array.values)?),
        _ => Err(Failure::Usage(miette!(
            help = "save an array of shape [items, features]",
            "`{}` must have two axes, found shape {:?}",
            path.display(),
            array.shape
        ))),
    }
}

fn check_count(path: &Path, found: usize, expected: usize) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::Usage(miette!(
        "`{}` must hold one label per row of features, {expected}, found {found}",
        path.display()
    )))
}

/// What a file cannot be read for is about what was asked for.
fn unreadable(error: ebp::Error) -> Failure {
    match error {
        ebp::Error::Io { .. } | ebp::Error::Malformed { .. } => Failure::Usage(miette!("{error}")),
        other => other.into(),
    }
}
