//! Generated clouds beside held-out ones, for one or several splits of the data.
//!
//! One row per law of θ, all with independent draws, one with kernels taken in turn, and the training
//! sets in the place of samples, `training sets`: a yardstick, which samples may beat. A model with a
//! learned sampler has rows that begin with its draws, in place of a grid. Chamfer distances are means of
//! squares in the units of the data; for the divergence clouds are scaled into its ball of radius ½. Each
//! split reports on sets of its own, which neither its training nor any choice has seen; the sets that
//! settings are chosen by are the same in all splits.

use std::fmt::{self, Display};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::generated::{GENERATION_HEAD, nearest_distances};
use super::subject::Subject;
use super::text::{cells, table};
use super::{
    CloudSource, Findings, Generation, GenerationRow, Laboratory, PartSizes, Watch,
    generation_table,
};
use crate::figure::contact_sheet::draw_rows;
use crate::files::{read_json, write_json};
use crate::metric::distance::EmdMethod;
use crate::model::{CloudModel, PriorKind};
use crate::process::{BoundedPartition, DrawSettings, PointMethod, PointStart};
use crate::rng::Stream;
use crate::{Error, Result, Share};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct GenerationExperiment {
    /// The model.
    pub source: CloudSource,
    /// How many splits into sets to learn from and to report on; the model is trained for each, with a
    /// seed of its own.
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
    /// How many were learned from, chosen by and measured on, in the last split.
    pub parts: PartSizes,
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
    /// log Z(θ) at the codes of held-out clouds, the mean over the first of them, from both sides by the
    /// learned sampler of the last split; absent without one whose density is known.
    pub log_partition: Option<BoundedPartition>,
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
/// 50 %) of Chamfer distances between 512 points of each, on the last split. Held-out clouds are those measured
/// on.
#[derive(Clone, Debug, Serialize)]
pub struct Novelty {
    /// Of samples.
    pub samples: [f64; 3],
    /// Of held-out clouds.
    pub held_out: [f64; 3],
    /// Of training clouds that were rebuilt from their codes: what a copy looks like.
    pub rebuilt: [f64; 3],
    /// Quantiles (1, 5 and 50 %) over directions of the kernels' bandwidths, in standard deviations of
    /// the codes: 0 draws the codes themselves, 1 their Gaussian.
    pub bandwidths: [f64; 3],
}

/// The shares of [`Novelty`].
const QUANTILES: [f64; 3] = [0.01, 0.05, 0.5];

/// Points of each cloud that novelty is measured by.
const NOVELTY_POINTS: usize = 512;
/// Held-out clouds at whose codes log Z is bounded.
const BOUND_SETS: usize = 16;
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
        let seed = self.source.seed()?;
        let mut splits = Vec::new();
        let mut last = None;
        let asked = match self.split {
            Some(split) => split..=split,
            None => 1..=self.splits,
        };
        for split in asked {
            let (subject, rows) = self.rows_of(laboratory, split, seed)?;
            splits.push(rows);
            last = Some(subject);
        }
        let Some(subject) = last else {
            return Err(Error::refused("at least one split is needed"));
        };
        let model = subject.model()?;
        laboratory.watch.begin("log Z, and the nearest training clouds");
        let standardised = subject.references()?;
        let bounded = &standardised[..standardised.len().min(BOUND_SETS)];
        let stream = Stream::new(model.settings().seed, "reproduce: log Z");
        let log_partition = model.bounded_partition(bounded, stream)?;
        let held_out = subject.raw(&standardised)?;
        let samples = subject.samples(first_prior, PointMethod::Annealed)?;
        let sheet: Vec<&[Vec<f32>]> = held_out[..held_out.len().min(COLUMNS)]
            .chunks(COLUMNS)
            .chain(samples[..samples.len().min(SHOWN)].chunks(COLUMNS))
            .collect();
        let picture = laboratory.file("generation.png");
        let report = GenerationReport {
            estimator: model.estimator(),
            data: model.settings().data.source.clone(),
            parts: subject.sizes()?,
            points: subject.num_points()?,
            jsd_scale: splits[0][0].scores.jsd_scale,
            summary: summarise(&splits),
            splits,
            nearest_training: novelty(&subject, &samples, &held_out)?,
            log_partition,
            picture: picture.display().to_string(),
        };
        Ok(Findings { report, pictures: vec![(picture, draw_rows(&sheet, model.dim()).into())] })
    }
}

impl GenerationExperiment {
    /// Trains and measures a share of the splits that [`run`](Self::run) asks for, in the same folder,
    /// and says which they were. Once all shares are done `run` has nothing left to train.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_share(&self, laboratory: &mut Laboratory<'_>, share: Share) -> Result<Vec<String>> {
        if self.priors.is_empty() {
            return Err(Error::refused("at least one law of θ is needed"));
        }
        let seed = self.source.seed()?;
        let mut done = Vec::new();
        for split in (1..=self.splits).filter(|split| share.has(split - 1)) {
            self.rows_of(laboratory, split, seed)?;
            done.push(format!("split {split}"));
        }
        Ok(done)
    }

    /// The model of a split, and its rows.
    fn rows_of(
        &self,
        laboratory: &mut Laboratory<'_>,
        split: usize,
        seed: u64,
    ) -> Result<(Subject, Vec<GenerationRow>)> {
        let (name, further) = if self.split.is_none() && self.splits == 1 {
            ("model".to_owned(), Vec::new())
        } else {
            let seed = seed + split as u64 - 1;
            let further = vec![format!("data.report_part={split}"), format!("seed={seed}")];
            (format!("split-{split}"), further)
        };
        let subject = self.source.subject(laboratory, &name, &further)?;
        let kept = laboratory.file(&format!("{name}.json"));
        let rows = kept_rows(&subject, &self.priors, &kept, laboratory.watch)?;
        Ok((subject, rows))
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
    let quantiles = |numbers: &[f64]| {
        let mut nearest = numbers.to_vec();
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
        bandwidths: quantiles(&model.kernel_bandwidths()?),
    })
}

/// The rows of one model, in a file of their own as soon as they are known.
#[derive(Debug, Serialize, Deserialize)]
struct KeptRows {
    /// Settings of the model they were measured on, and its steps.
    config: String,
    step: u64,
    /// The sets they were measured on.
    #[serde(default)]
    parts: Option<PartSizes>,
    rows: Vec<GenerationRow>,
}

/// Rows of `priors`, those from `path` that were measured before on a model of the same settings.
fn kept_rows(
    subject: &Subject,
    priors: &[PriorKind],
    path: &Path,
    watch: &mut dyn Watch,
) -> Result<Vec<GenerationRow>> {
    let config = crate::config::text_of(subject.settings()?)?;
    let (step, parts) = (subject.step(), Some(subject.sizes()?));
    let mut known = match read_json::<KeptRows>(path) {
        Some(kept) if kept.config == config && kept.step == step && kept.parts == parts => {
            kept.rows
        }
        _ => Vec::new(),
    };
    let mut rows = Vec::new();
    for wanted in wanted(priors, subject.model()?) {
        let place = known.iter().position(|row| row.name == wanted.name());
        if let Some(place) = place {
            rows.push(known.swap_remove(place));
            continue;
        }
        watch.begin(&format!("measuring {}", wanted.name()));
        rows.push(wanted.measure(subject, None)?);
        let all = rows.iter().chain(&known).cloned().collect();
        write_json(
            path,
            &KeptRows { config: config.clone(), step, parts: parts.clone(), rows: all },
        )?;
    }
    Ok(rows)
}

/// A row to be measured: samples of a law of θ, or training sets in their place.
#[derive(Clone, Copy)]
enum Wanted {
    Samples(&'static str, PriorKind, PointMethod),
    /// Of the first law of θ that is asked for, the learned sampler's draws after so many Langevin steps.
    FromSampler(&'static str, PriorKind, PointStart, usize),
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

/// Langevin steps of the rows that start from the learned sampler, the paper's number.
const STEPS_FROM_SAMPLER: usize = 20;

/// The rows of `priors`, those of a learned sampler where there is one, and the oracle.
fn wanted(priors: &[PriorKind], model: &CloudModel) -> Vec<Wanted> {
    let is_asked = |wanted: &Wanted| match wanted {
        Wanted::Samples(_, prior, _) => priors.contains(prior),
        Wanted::InTurn => priors.contains(&PriorKind::Kernel),
        // Draws without a density of their own cannot be weighed.
        Wanted::FromSampler(_, _, start, _) => {
            *start == PointStart::Sampler || model.settings().model.sampler.has_densities()
        }
        Wanted::Oracle => true,
    };
    let first = priors.first().filter(|_| model.has_sampler());
    let from_sampler = first.into_iter().flat_map(|&prior| {
        [
            ("sampler alone", PointStart::Sampler, 0),
            ("sampler and Langevin steps", PointStart::Sampler, STEPS_FROM_SAMPLER),
            ("sampler, resampled, and steps", PointStart::SamplerResampled, STEPS_FROM_SAMPLER),
        ]
        .map(|(name, start, steps)| Wanted::FromSampler(name, prior, start, steps))
    });
    let last = [Wanted::InTurn, Wanted::Oracle];
    SAMPLES.into_iter().chain(from_sampler).chain(last).filter(is_asked).collect()
}

impl Wanted {
    fn name(&self) -> &'static str {
        match self {
            Self::Samples(name, ..) | Self::FromSampler(name, ..) => name,
            Self::InTurn => "kernels in turn, not i.i.d.",
            Self::Oracle => "training sets",
        }
    }

    fn measure(&self, subject: &Subject, emd: Option<EmdMethod>) -> Result<GenerationRow> {
        let references = subject.raw(&subject.references()?)?;
        let clouds = match *self {
            Self::Samples(_, prior, method) => subject.samples(prior, method)?,
            Self::FromSampler(_, prior, start, num_steps) => {
                let draw = DrawSettings { start, num_steps, ..DrawSettings::default() };
                subject.draws(prior, &draw)?.into()
            }
            Self::InTurn => subject.samples_in_turn()?.into(),
            Self::Oracle => subject.oracle(0)?.into(),
        };
        let (model, num_points) = (subject.model()?, subject.num_points()?);
        let (dim, device) = (model.dim(), model.device());
        let scores = Generation::measure(&clouds, &references, dim, num_points, emd, device)?;
        Ok(GenerationRow { name: self.name().to_owned(), scores })
    }
}

/// The rows of one model that draws independently, and of training sets, by earth mover's distance too.
pub(super) fn rows_with_emd(
    subject: &Subject,
    priors: &[PriorKind],
    emd: EmdMethod,
) -> Result<Vec<GenerationRow>> {
    let is_asked = |wanted: &&Wanted| match wanted {
        Wanted::Samples(_, _, method) => *method == PointMethod::Annealed,
        Wanted::InTurn | Wanted::FromSampler(..) => false,
        Wanted::Oracle => true,
    };
    let rows = wanted(priors, subject.model()?);
    rows.iter().filter(is_asked).map(|wanted| wanted.measure(subject, Some(emd))).collect()
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
            "{}: {}\n{} points of each, estimator {}\n",
            self.data, self.parts, self.points, self.estimator
        )?;
        match self.splits.as_slice() {
            [only] => f.write_str(&generation_table(only))?,
            _ => f.write_str(&summary_table(&self.summary))?,
        }
        let over = if self.splits.len() == 1 { "clouds" } else { "splits" };
        let Novelty { samples, held_out, rebuilt, bandwidths } = &self.nearest_training;
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
        if let Some(log_partition) = &self.log_partition {
            writeln!(
                f,
                "log Z at codes of held-out clouds, mean (± standard error): {log_partition}\n"
            )?;
        }
        let [least, few, median] = bandwidths;
        writeln!(
            f,
            "± is half of a 95 % interval over {over}\n\n{}\nbandwidths of the kernels, by direction: \
             {least:.2} (1 %), {few:.2} (5 %), {median:.2} (median) standard deviations of the codes\n\
             picture (held out, samples): {}",
            table(&lines),
            self.picture
        )
    }
}
