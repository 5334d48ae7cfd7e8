//! Generated clouds beside held-out ones, for one or several splits of the data.
//!
//! One row per law of θ, all with independent draws, one with kernels taken in turn, and the training
//! sets in the place of samples, `training sets`: a yardstick, which samples may beat. Chamfer distances are means of squares in the units of the data; for
//! the divergence clouds are scaled into its ball of radius ½.

use std::fmt::{self, Display};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::generated::{GENERATION_HEAD, nearest_distances};
use super::subject::Subject;
use super::text::{cells, table};
use super::{CloudSource, Findings, Generation, GenerationRow, Laboratory, generation_table};
use crate::figure::contact_sheet::draw_rows;
use crate::files::{read_json, write_json};
use crate::model::PriorKind;
use crate::process::PointMethod;
use crate::{Error, Result};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct GenerationExperiment {
    /// The model.
    pub source: CloudSource,
    /// How many splits into training and held-out sets; the model is trained for each.
    pub splits: usize,
    /// Only this split, for an experiment with several to find its rows.
    pub split: Option<usize>,
    /// Laws of θ to draw from.
    pub priors: Vec<PriorKind>,
}

impl Default for GenerationExperiment {
    fn default() -> Self {
        let priors = PriorKind::ALL.to_vec();
        Self { source: CloudSource::default(), splits: 1, split: None, priors }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct GenerationReport {
    /// How training estimated log Z.
    pub estimator: &'static str,
    /// Where the clouds come from.
    pub data: String,
    /// How many are held out.
    pub held_out: usize,
    /// Points of each that distances are measured with.
    pub points: usize,
    /// What coordinates were multiplied by for the divergence.
    pub jsd_scale: f64,
    /// The rows of every split.
    pub splits: Vec<Vec<GenerationRow>>,
    /// Their means.
    pub summary: Vec<GenerationSummary>,
    /// How new the samples are.
    pub nearest_training: Novelty,
    /// Where the picture belongs.
    pub picture: String,
}

/// A row over all splits: the mean of each metric, and half of its 95 % interval over splits.
#[derive(Clone, Debug, Serialize)]
pub struct GenerationSummary {
    /// Whose clouds.
    pub name: String,
    /// 1-NN accuracy.
    pub nna_cd: (f64, f64),
    /// 1-NN accuracy of the samples alone.
    pub nna_cd_samples: Option<(f64, f64)>,
    /// 1-NN accuracy of the held-out clouds alone.
    pub nna_cd_references: Option<(f64, f64)>,
    /// Coverage.
    pub cov_cd: (f64, f64),
    /// Minimum matching distance.
    pub mmd_cd: (f64, f64),
    /// Jensen–Shannon divergence.
    pub jsd: Option<(f64, f64)>,
}

/// How far clouds are from the nearest training cloud: a model that repeats what it learned from
/// has samples much nearer than held-out clouds are, a part of them if not all. Quantiles (1, 5 and
/// 50 %) of Chamfer distances between 512 points of each, on the last split.
#[derive(Clone, Debug, Serialize)]
pub struct Novelty {
    /// Of samples.
    pub samples: [f64; 3],
    /// Of held-out clouds.
    pub held_out: [f64; 3],
    /// Of training clouds that were rebuilt from their codes: what a copy looks like.
    pub rebuilt: [f64; 3],
}

/// The shares of [`Novelty`].
const QUANTILES: [f64; 3] = [0.01, 0.05, 0.5];

/// Points of each cloud that novelty is measured by.
const NOVELTY_POINTS: usize = 512;
/// Clouds of the picture, and how many in a row.
const SHOWN: usize = 24;
const COLUMNS: usize = 8;

impl GenerationExperiment {
    /// Trains, draws and measures.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no split or no law.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<GenerationReport>> {
        let Some(&first_prior) = self.priors.first() else {
            return Err(Error::refused("at least one law of θ is needed"));
        };
        let mut splits = Vec::new();
        let mut last = None;
        let asked = match self.split {
            Some(split) => split..=split,
            None => 1..=self.splits,
        };
        for split in asked {
            let (name, further) = if self.split.is_none() && self.splits == 1 {
                ("model".to_owned(), Vec::new())
            } else {
                (format!("split-{split}"), vec![format!("data.split_seed={split}")])
            };
            let subject = self.source.subject(laboratory, &name, &further)?;
            let kept = laboratory.file(&format!("{name}.json"));
            splits.push(kept_rows(&subject, &self.priors, &kept)?);
            last = Some(subject);
        }
        let Some(subject) = last else {
            return Err(Error::refused("at least one split is needed"));
        };
        let model = subject.model()?;
        let held_out = subject.raw(&subject.held_out()?)?;
        let samples = subject.samples(first_prior, PointMethod::Annealed)?;
        let sheet: Vec<&[Vec<f32>]> = held_out[..held_out.len().min(COLUMNS)]
            .chunks(COLUMNS)
            .chain(samples[..samples.len().min(SHOWN)].chunks(COLUMNS))
            .collect();
        let picture = laboratory.file("generation.png");
        let report = GenerationReport {
            estimator: model.estimator(),
            data: model.settings().data.source.clone(),
            held_out: held_out.len(),
            points: subject.num_points()?,
            jsd_scale: splits[0][0].scores.jsd_scale,
            summary: summarise(&splits),
            splits,
            nearest_training: novelty(&subject, &samples, &held_out)?,
            picture: picture.display().to_string(),
        };
        Ok(Findings { report, pictures: vec![(picture, draw_rows(&sheet, model.dim()))] })
    }
}

fn novelty(subject: &Subject, samples: &[Vec<f32>], held_out: &[Vec<f32>]) -> Result<Novelty> {
    let dim = subject.model()?.dim();
    let (model, train) = (subject.model()?, &subject.data.train);
    let training = |set: usize| model.in_data_units(&train.set(set));
    let rebuilt = subject.rebuilt()?;
    let clouds = [samples, held_out, &rebuilt].concat();
    let sizes = (dim, NOVELTY_POINTS);
    let nearest = nearest_distances(&clouds, train.num_sets(), training, sizes)?;
    let quantiles = |nearest: &[f64]| {
        let mut nearest = nearest.to_vec();
        nearest.sort_by(f64::total_cmp);
        let last = nearest.len().saturating_sub(1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place")]
        QUANTILES.map(|share| nearest[((share * nearest.len() as f64) as usize).min(last)])
    };
    let (of_samples, rest) = nearest.split_at(samples.len());
    let (of_held_out, of_rebuilt) = rest.split_at(held_out.len());
    Ok(Novelty {
        samples: quantiles(of_samples),
        held_out: quantiles(of_held_out),
        rebuilt: quantiles(of_rebuilt),
    })
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
fn kept_rows(subject: &Subject, priors: &[PriorKind], path: &Path) -> Result<Vec<GenerationRow>> {
    let config = crate::config::text_of(subject.settings()?)?;
    let step = subject.step();
    let mut known = match read_json(path) {
        Some(KeptRows { config: known, step: at, rows }) if known == config && at == step => rows,
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
        write_json(path, &KeptRows { config: config.clone(), step, rows: all })?;
    }
    Ok(rows)
}

/// A row to be measured: samples of a law of θ, or training sets in their place.
#[derive(Clone, Copy)]
enum Wanted {
    Samples(&'static str, PriorKind, PointMethod),
    InTurn,
    Oracle,
}

const SAMPLES: [Wanted; 5] = [
    Wanted::Samples("kernel prior", PriorKind::Kernel, PointMethod::Annealed),
    Wanted::Samples("kernel prior, noise kept", PriorKind::Kernel, PointMethod::Langevin),
    Wanted::Samples("flow prior", PriorKind::Flow, PointMethod::Annealed),
    Wanted::Samples("gaussian prior", PriorKind::Gaussian, PointMethod::Annealed),
    Wanted::Samples("N(0, I)", PriorKind::Standard, PointMethod::Annealed),
];

/// The rows of `priors`, and the oracle.
fn wanted(priors: &[PriorKind]) -> impl Iterator<Item = Wanted> {
    let is_asked = |wanted: &Wanted| match wanted {
        Wanted::Samples(_, prior, _) => priors.contains(prior),
        Wanted::InTurn => priors.contains(&PriorKind::Kernel),
        Wanted::Oracle => true,
    };
    SAMPLES.into_iter().chain([Wanted::InTurn, Wanted::Oracle]).filter(is_asked)
}

impl Wanted {
    fn name(&self) -> &'static str {
        match self {
            Self::Samples(name, ..) => name,
            Self::InTurn => "kernels in turn, not i.i.d.",
            Self::Oracle => "training sets",
        }
    }

    fn measure(&self, subject: &Subject) -> Result<GenerationRow> {
        let references = subject.raw(&subject.held_out()?)?;
        let clouds = match *self {
            Self::Samples(_, prior, method) => subject.samples(prior, method)?,
            Self::InTurn => subject.samples_in_turn()?.into(),
            Self::Oracle => subject.oracle(0)?.into(),
        };
        let (model, num_points) = (subject.model()?, subject.num_points()?);
        let scores =
            Generation::measure(&clouds, &references, model.dim(), num_points, model.device())?;
        Ok(GenerationRow { name: self.name().to_owned(), scores })
    }
}

/// All rows of one model.
pub(super) fn all_rows(subject: &Subject) -> Result<Vec<GenerationRow>> {
    wanted(&PriorKind::ALL).map(|wanted| wanted.measure(subject)).collect()
}

fn summarise(splits: &[Vec<GenerationRow>]) -> Vec<GenerationSummary> {
    let rows = splits.first().map_or(0, Vec::len);
    (0..rows)
        .map(|row| {
            let over = |get: fn(&Generation) -> f64| {
                moments(splits.iter().map(|split| get(&split[row].scores)))
            };
            let maybe = |get: fn(&Generation) -> Option<f64>| {
                let all: Option<Vec<f64>> =
                    splits.iter().map(|split| get(&split[row].scores)).collect();
                all.map(|all| moments(all.into_iter()))
            };
            GenerationSummary {
                name: splits[0][row].name.clone(),
                nna_cd: over(|scores| scores.nna_cd),
                cov_cd: over(|scores| scores.cov_cd),
                mmd_cd: over(|scores| scores.mmd_cd),
                nna_cd_samples: maybe(|scores| scores.nna_cd_samples),
                nna_cd_references: maybe(|scores| scores.nna_cd_references),
                jsd: maybe(|scores| scores.jsd),
            }
        })
        .collect()
}

/// Mean and half of its 95 % interval by Student's t over so many numbers (0 of a single one).
fn moments(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let numbers: Vec<f64> = numbers.collect();
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let square: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    let half = |t: f64| t * (square / (count - 1.0) / count).sqrt();
    (mean, if numbers.len() > 1 { half(student(numbers.len() - 1)) } else { 0.0 })
}

/// The 97.5 % quantile of Student's t; above ten degrees of freedom 1.96 + 2.4/ν, to 0.01.
fn student(freedom: usize) -> f64 {
    const FIRST: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    FIRST.get(freedom - 1).copied().unwrap_or(1.96 + 2.4 / freedom as f64)
}

fn summary_table(summary: &[GenerationSummary]) -> String {
    let mut lines = vec![cells(GENERATION_HEAD)];
    let cell = |(mean, spread): (f64, f64), factor: f64| {
        format!("{:.2} ± {:.2}", factor * mean, factor * spread)
    };
    for row in summary {
        lines.push(vec![
            row.name.clone(),
            cell(row.nna_cd, 100.0),
            match (row.nna_cd_samples, row.nna_cd_references) {
                (Some((a, _)), Some((b, _))) => format!("{:.1} / {:.1}", 100.0 * a, 100.0 * b),
                _ => "–".to_owned(),
            },
            cell(row.cov_cd, 100.0),
            cell(row.mmd_cd, 1e3),
            row.jsd.map_or("–".to_owned(), |jsd| cell(jsd, 100.0)),
        ]);
    }
    table(&lines)
}

impl Display for GenerationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} held-out clouds of {} points, estimator {}\n",
            self.data, self.held_out, self.points, self.estimator
        )?;
        match self.splits.as_slice() {
            [only] => f.write_str(&generation_table(only))?,
            _ => f.write_str(&summary_table(&self.summary))?,
        }
        let over = if self.splits.len() == 1 { "clouds" } else { "splits" };
        let Novelty { samples, held_out, rebuilt } = &self.nearest_training;
        let row = |name: &str, found: &[f64; 3]| {
            let mut line = vec![name.to_owned()];
            line.extend(found.map(|distance| format!("{:.2}", 1e3 * distance)));
            line
        };
        let lines = [
            cells(["nearest training cloud, CD ×10³", "1 %", "5 %", "50 %"]),
            row("samples", samples),
            row("held-out clouds", held_out),
            row("rebuilt training clouds", rebuilt),
        ];
        writeln!(
            f,
            "± is half of a 95 % interval over {over}\n\n{}\npicture (held out, samples): {}",
            table(&lines),
            self.picture
        )
    }
}
