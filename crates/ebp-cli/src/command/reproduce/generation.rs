//! Generated clouds beside held-out ones, for one or several splits of the data.

use clap::Args;
use ebp::process::PointMethod;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

use super::clouds::{CloudExperiment, Subject, keep_json};
use crate::command::cloud_model::{
    Generation, GenerationRow, PriorName, draw_rows, generation_table, nearest_distances,
};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

const HELP: &str = "\
One row per law of θ, and the training sets in the place of samples, `oracle`, which is the best
that a model can hope for. With several splits the model is trained for each, and a row is the mean
with the standard deviation over splits. Chamfer distances are means of squares in the units of the
data; for the divergence clouds are scaled into its ball of radius ½.

Examples:
  ebp reproduce generation
  ebp reproduce generation --preset cloud --data modelnet10/chair.npy --splits 5
  ebp reproduce generation --preset cloud --data modelnet10/chair.npy --split 3   # one of them only
  ebp reproduce generation --model runs/cloud --priors kernel";

/// Arguments of `ebp reproduce generation`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct GenerationArguments {
    #[command(flatten)]
    pub(super) experiment: CloudExperiment,

    /// How many splits into training and held-out sets
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::args::at_least_one)]
    pub(super) splits: usize,

    /// Only this split, for a run with `--splits` to find its rows: work for several processes
    #[arg(long, value_name = "N", value_parser = crate::args::at_least_one, conflicts_with_all = ["splits", "model"])]
    pub(super) split: Option<usize>,

    /// Laws of θ to draw from, separated by commas; the flow takes longest to fit
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "kernel,flow,gaussian,standard"
    )]
    pub(super) priors: Vec<PriorName>,
}

/// Means over splits.
#[derive(Debug, Serialize)]
struct Summary {
    name: String,
    /// Mean and standard deviation over splits, for each metric.
    nna_cd: (f64, f64),
    cov_cd: (f64, f64),
    mmd_cd: (f64, f64),
    jsd: Option<(f64, f64)>,
}

#[derive(Debug, Serialize)]
struct Report {
    estimator: &'static str,
    data: String,
    held_out: usize,
    points: usize,
    jsd_scale: f64,
    splits: Vec<Vec<GenerationRow>>,
    summary: Vec<Summary>,
    nearest_training: Novelty,
    picture: String,
}

/// How far clouds are from the nearest training cloud: a model that repeats what it learned from
/// has samples much nearer than held-out clouds are. Medians of Chamfer distances between
/// [`NOVELTY_POINTS`] points of each, on the last split.
#[derive(Debug, Serialize)]
struct Novelty {
    samples: f64,
    held_out: f64,
}

/// Points of each cloud that novelty is measured by.
const NOVELTY_POINTS: usize = 512;

/// Trains, draws, measures and prints.
pub(super) fn run(arguments: &GenerationArguments) -> Result<(), Failure> {
    let report = start_threads(arguments.experiment.threads)?.install(|| measure(arguments))?;
    keep_json(&arguments.experiment.file("generation.json")?, &report)?;
    if arguments.experiment.json {
        return output::print_json(&report);
    }
    let mut text = format!(
        "{}: {} held-out clouds of {} points, estimator {}\n\n",
        report.data, report.held_out, report.points, report.estimator
    );
    match report.splits.as_slice() {
        [only] => text.push_str(&generation_table(only)),
        _ => text.push_str(&summary_table(&report.summary)),
    }
    let Novelty { samples, held_out } = report.nearest_training;
    let _ = write!(
        text,
        "\nChamfer distance to the nearest training cloud (median, {NOVELTY_POINTS} points): \
         samples {:.2} ×10⁻³, held-out clouds {:.2} ×10⁻³",
        1e3 * samples,
        1e3 * held_out
    );
    let _ = write!(text, "\npicture (held out, samples): {}\n", report.picture);
    output::print(&text)
}

fn measure(arguments: &GenerationArguments) -> Result<Report, Failure> {
    let experiment = &arguments.experiment;
    let mut splits = Vec::new();
    let mut last = None;
    let asked = match arguments.split {
        Some(split) => split..=split,
        None => 1..=arguments.splits,
    };
    for split in asked {
        let (name, further) = if arguments.split.is_none() && arguments.splits == 1 {
            ("model".to_owned(), Vec::new())
        } else {
            (format!("split-{split}"), vec![format!("data.split_seed={split}")])
        };
        let subject = experiment.subject(&name, &further)?;
        let kept = experiment.file(&format!("{name}.json"))?;
        splits.push(kept_rows(&subject, &arguments.priors, &kept)?);
        last = Some(subject);
    }
    let Some(subject) = last else {
        return Err(Failure::Usage(miette::miette!("at least one split is needed")));
    };
    let picture = experiment.file("generation.png")?;
    let held_out = subject.raw(&subject.held_out());
    let samples = subject.samples(arguments.priors[0], PointMethod::Annealed)?;
    let first = |clouds: &[Vec<f32>]| clouds[..clouds.len().min(24)].to_vec();
    let (held_out_shown, samples_shown) = (first(&held_out), first(&samples));
    let sheet: Vec<&[Vec<f32>]> = held_out_shown[..held_out_shown.len().min(8)]
        .chunks(8)
        .chain(samples_shown.chunks(8))
        .collect();
    draw_rows(&picture, &sheet, subject.trained.dim())?;
    let nearest_training = novelty(&subject, &samples, &held_out)?;
    let summary = summarise(&splits);
    Ok(Report {
        estimator: subject.trained.process.config().estimator.name(),
        data: subject.trained.settings.data.source.clone(),
        held_out: held_out.len(),
        points: subject.trained.settings.evaluation.num_points,
        jsd_scale: splits[0][0].scores.jsd_scale,
        splits,
        summary,
        nearest_training,
        picture: picture.display().to_string(),
    })
}

fn novelty(
    subject: &Subject,
    samples: &[Vec<f32>],
    held_out: &[Vec<f32>],
) -> Result<Novelty, Failure> {
    let dim = subject.trained.dim();
    let training = subject.raw(&subject.data.training_sets());
    let median = |clouds: &[Vec<f32>]| -> Result<f64, Failure> {
        let mut nearest = nearest_distances(clouds, &training, dim, NOVELTY_POINTS)?;
        nearest.sort_by(f64::total_cmp);
        Ok(nearest[nearest.len() / 2])
    };
    Ok(Novelty { samples: median(samples)?, held_out: median(held_out)? })
}

/// The rows of one model, in a file of their own as soon as they are known.
#[derive(Debug, Serialize, Deserialize)]
struct KeptRows {
    /// Settings of the model they were measured on, and its steps.
    config: String,
    step: u64,
    rows: Vec<GenerationRow>,
}

/// Rows of `priors`, those from `path` that were measured before on a model of the same settings.
fn kept_rows(
    subject: &Subject,
    priors: &[PriorName],
    path: &Path,
) -> Result<Vec<GenerationRow>, Failure> {
    let trained = &subject.trained;
    let config = toml::to_string(&trained.settings)
        .map_err(|error| Failure::Failed(miette::miette!("cannot write the settings: {error}")))?;
    let kept = std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let mut known = match kept {
        Some(KeptRows { config: known, step, rows }) if known == config && step == trained.step => {
            rows
        }
        _ => Vec::new(),
    };
    let mut rows = Vec::new();
    for wanted in wanted(priors) {
        let place = known.iter().position(|row| row.name == wanted.name());
        if let Some(place) = place {
            rows.push(known.swap_remove(place));
            continue;
        }
        rows.push(wanted.measure(subject)?);
        let all = rows.iter().chain(&known).cloned().collect();
        keep_json(path, &KeptRows { config: config.clone(), step: trained.step, rows: all })?;
    }
    Ok(rows)
}

/// A row to be measured: samples of a law of θ, or training sets in their place.
#[derive(Clone, Copy)]
enum Wanted {
    Samples(&'static str, PriorName, PointMethod),
    Oracle,
}

const SAMPLES: [Wanted; 5] = [
    Wanted::Samples("kernel prior", PriorName::Kernel, PointMethod::Annealed),
    Wanted::Samples("kernel prior, noise kept", PriorName::Kernel, PointMethod::Langevin),
    Wanted::Samples("flow prior", PriorName::Flow, PointMethod::Annealed),
    Wanted::Samples("gaussian prior", PriorName::Gaussian, PointMethod::Annealed),
    Wanted::Samples("N(0, I)", PriorName::Standard, PointMethod::Annealed),
];

/// The rows of `priors`, and the oracle.
fn wanted(priors: &[PriorName]) -> impl Iterator<Item = Wanted> {
    let is_asked = |wanted: &Wanted| match wanted {
        Wanted::Samples(_, prior, _) => priors.contains(prior),
        Wanted::Oracle => true,
    };
    SAMPLES.into_iter().chain([Wanted::Oracle]).filter(is_asked)
}

impl Wanted {
    fn name(&self) -> &'static str {
        match self {
            Self::Samples(name, ..) => name,
            Self::Oracle => "oracle",
        }
    }

    fn measure(&self, subject: &Subject) -> Result<GenerationRow, Failure> {
        let references = subject.raw(&subject.held_out());
        let num_points = subject.trained.settings.evaluation.num_points;
        let clouds = match *self {
            Self::Samples(_, prior, method) => subject.samples(prior, method)?,
            Self::Oracle => subject.oracle(0).into(),
        };
        let dim = subject.trained.dim();
        let scores = Generation::measure(&clouds, &references, dim, num_points, 0)?;
        Ok(GenerationRow { name: self.name().to_owned(), scores })
    }
}

/// All rows of one model.
pub(super) fn rows(subject: &Subject) -> Result<Vec<GenerationRow>, Failure> {
    let all = SAMPLES.into_iter().chain([Wanted::Oracle]);
    all.map(|wanted| wanted.measure(subject)).collect()
}

fn summarise(splits: &[Vec<GenerationRow>]) -> Vec<Summary> {
    let rows = splits.first().map_or(0, Vec::len);
    (0..rows)
        .map(|row| {
            let over = |get: fn(&Generation) -> f64| {
                moments(splits.iter().map(|split| get(&split[row].scores)))
            };
            let jsds: Option<Vec<f64>> = splits.iter().map(|split| split[row].scores.jsd).collect();
            Summary {
                name: splits[0][row].name.clone(),
                nna_cd: over(|scores| scores.nna_cd),
                cov_cd: over(|scores| scores.cov_cd),
                mmd_cd: over(|scores| scores.mmd_cd),
                jsd: jsds.map(|jsds| moments(jsds.into_iter())),
            }
        })
        .collect()
}

/// Mean and standard deviation (0 of a single number).
fn moments(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let numbers: Vec<f64> = numbers.collect();
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let square: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, if numbers.len() > 1 { (square / (count - 1.0)).sqrt() } else { 0.0 })
}

fn summary_table(summary: &[Summary]) -> String {
    let mut lines =
        vec![["", "1-NNA-CD %", "COV-CD %", "MMD-CD ×10³", "JSD ×10²"].map(String::from).to_vec()];
    let cell = |(mean, spread): (f64, f64), factor: f64| {
        format!("{:.2} ± {:.2}", factor * mean, factor * spread)
    };
    for row in summary {
        lines.push(vec![
            row.name.clone(),
            cell(row.nna_cd, 100.0),
            cell(row.cov_cd, 100.0),
            cell(row.mmd_cd, 1e3),
            row.jsd.map_or("–".to_owned(), |jsd| cell(jsd, 100.0)),
        ]);
    }
    output::table(&lines)
}
