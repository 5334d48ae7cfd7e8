//! What a run makes of pictures that it has not seen: scores and a figure.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use ebp::data::image::{Images, KnownPart};
use ebp::metric::completion::{
    Classifier, ClassifierConfig, CompletionScore, CompletionTask, Estimate, Judges,
    judge_completions,
};
use ebp::process::{LEVEL_CELL, LatentProcess, picture_task};
use ebp::rng::Stream;
use serde::{Deserialize, Serialize};

use super::data::PictureData;
use super::model::PictureProcess;
use super::settings::{EvaluationSettings, Settings};
use crate::device;
use crate::failure::Failure;
use crate::output;
use crate::picture::mosaic::{Mosaic, Row, Thumbnail};
use crate::picture::save;

/// Pictures of the figure, and completions of each.
const DRAWN_PICTURES: usize = 12;
const DRAWN_COMPLETIONS: usize = 3;
/// Seeds of the two classifiers.
const WHOLE_SEED: u64 = 11;
const PART_SEED: u64 = 12;

/// Classifiers of whole pictures and of upper halves.
pub(crate) struct Jury {
    whole: Classifier,
    top: Classifier,
    /// How often the first is right on pictures it has not seen.
    pub(crate) accuracy: f64,
}

impl Jury {
    /// Trains them, if that is wanted and there are labels.
    pub(crate) fn train(
        settings: &EvaluationSettings,
        data: &PictureData,
    ) -> Result<Option<Self>, Failure> {
        let (true, Some(labels), Some(test_labels)) =
            (settings.classifies, &data.training_labels, &data.test_labels)
        else {
            return Ok(None);
        };
        let whole = ClassifierConfig::default();
        let top = ClassifierConfig { part: Some(KnownPart::TopHalf), ..whole.clone() };
        let backend = device::open()?.backend;
        let train = |config: &ClassifierConfig, seed| {
            Classifier::train(&data.training, labels, config, seed, Arc::clone(&backend))
        };
        let whole = train(&whole, WHOLE_SEED)?;
        let accuracy = whole.accuracy(&data.test, test_labels)?;
        Ok(Some(Self { whole, top: train(&top, PART_SEED)?, accuracy }))
    }
}

/// Scores by what was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) model: String,
    /// Of training.
    pub(crate) seconds: f64,
    pub(crate) num_pictures: usize,
    pub(crate) num_draws: usize,
    pub(crate) classifier_accuracy: Option<f64>,
    pub(crate) scores: Vec<(String, CompletionScore)>,
}

impl Outcome {
    pub(crate) fn new(
        process: &dyn PictureProcess,
        settings: &Settings,
        data: &PictureData,
        jury: Option<&Jury>,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let evaluation = &settings.evaluation;
        let mut scores = Vec::new();
        for name in &evaluation.parts {
            let part = KnownPart::parse(name)?;
            let task = CompletionTask {
                images: &data.test,
                num_pictures: evaluation.num_pictures,
                part,
                num_draws: evaluation.num_draws,
                stream: Stream::new(0, "evaluation").child(scores.len() as u64),
            };
            let judges = jury.zip(data.test_labels.as_deref()).map(|(jury, labels)| Judges {
                labels,
                whole: &jury.whole,
                part: (part == KnownPart::TopHalf).then_some(&jury.top),
            });
            let score = judge_completions(process, &task, judges.as_ref())?;
            scores.push((name.clone(), score));
        }
        Ok(Self {
            model: process.name().to_owned(),
            seconds,
            num_pictures: evaluation.num_pictures.min(data.test.len()),
            num_draws: evaluation.num_draws,
            classifier_accuracy: jury.map(|jury| jury.accuracy),
            scores,
        })
    }

    pub(super) fn print(
        &self,
        steps: u64,
        directory: &Path,
        picture: &Path,
        is_json: bool,
    ) -> Result<(), Failure> {
        if is_json {
            #[derive(Serialize)]
            struct WithFolder<'a> {
                run: String,
                steps: u64,
                #[serde(flatten)]
                outcome: &'a Outcome,
            }
            let run = directory.display().to_string();
            return output::print_json(&WithFolder { run, steps, outcome: self });
        }
        let Self { model, seconds, num_pictures, num_draws, .. } = self;
        let mut text = format!(
            "{model}, {steps} steps, {seconds:.1} s; {num_pictures} held-out pictures, {num_draws} \
             draws of the latent\n\n{}",
            score_table(std::slice::from_ref(self))
        );
        if let Some(accuracy) = self.classifier_accuracy {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\nthe classifier is right on {:.1} %", 100.0 * accuracy);
        }
        let _ = writeln!(text, "\npicture  {}", picture.display());
        let _ = writeln!(text, "model    {}", directory.display());
        output::print(&text)
    }
}

/// Draws what is given, completions and originals; where it went.
pub(super) fn draw(
    process: &dyn LatentProcess,
    settings: &Settings,
    data: &PictureData,
    directory: &Path,
) -> Result<PathBuf, Failure> {
    let folder = directory.join("plots");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::cannot("create", &folder, &error))?;
    let path = folder.join("completions.png");
    let mosaic = completion_mosaic(process, &data.test, &settings.evaluation.drawn)?;
    save(&mosaic.draw(), &path)?;
    Ok(path)
}

/// One row per model and known part.
pub(crate) fn score_table(outcomes: &[Outcome]) -> String {
    let with_error = |found: Estimate| format!("{:.3} ± {:.3}", found.mean, found.stderr);
    let percent = |found: Option<Estimate>| {
        found.map_or_else(String::new, |found| format!("{:.1} %", 100.0 * found.mean))
    };
    let header = [
        "given",
        "model",
        "bits/dim",
        "joint",
        "by density",
        "best error",
        "diversity",
        "agree",
        "where decided",
        "kinds",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    let names = outcomes.first().map_or(&[][..], |outcome| &outcome.scores);
    for (name, _) in names {
        for outcome in outcomes {
            let Some((_, score)) = outcome.scores.iter().find(|(given, _)| given == name) else {
                continue;
            };
            let kinds = score.num_kinds;
            rows.push(vec![
                name.clone(),
                outcome.model.clone(),
                with_error(score.bits),
                format!("{:.3}", score.joint_bits.mean),
                format!("{:.3}", score.density_bits.mean),
                format!("{:.4} ± {:.4}", score.best_error.mean, score.best_error.stderr),
                format!("{:.4}", score.diversity.mean),
                percent(score.agreement),
                percent(score.decided_agreement),
                kinds.map_or_else(String::new, |kinds| format!("{:.1}", kinds.mean)),
            ]);
        }
    }
    output::table(&rows)
}

/// For each part a group of rows: what is given, completions, and the originals at the end.
pub(crate) fn completion_mosaic(
    process: &dyn LatentProcess,
    images: &Images,
    parts: &[String],
) -> Result<Mosaic, Failure> {
    let count = DRAWN_PICTURES.min(images.len());
    let (width, channels) = (images.width, images.channels);
    let mut mosaic = Mosaic::default();
    for name in parts {
        let part = KnownPart::parse(name)?;
        let mut given = Vec::new();
        let mut completions = vec![Vec::new(); DRAWN_COMPLETIONS];
        for index in 0..count {
            let stream = Stream::new(0, "figure").child(index as u64);
            let mask = part.mask(width, images.height, stream.child(0));
            let task = picture_task(images, index, &mask, stream.child(1))?;
            let found = process.hypotheses(
                &task.context,
                &task.target,
                LEVEL_CELL,
                DRAWN_COMPLETIONS,
                stream.child(2),
            )?;
            given.push(shaded(images.image(index), &mask, width, channels));
            let numbers = task.target.len() * channels;
            for (row, means) in completions.iter_mut().zip(found.mean.chunks_exact(numbers)) {
                let levels = filled(images.image(index), &mask, channels, means);
                row.push(Thumbnail::new(width, channels, &levels));
            }
        }
        let title = match part {
            KnownPart::Random(count) => format!("{count} random pixels given"),
            KnownPart::AroundHole(side) => format!("all but a square of {side} given"),
            _ => format!("{name} half given"),
        };
        let mut rows = vec![Row { label: "given".into(), pictures: given }];
        rows.extend(
            (1_usize..)
                .zip(completions)
                .map(|(number, pictures)| Row { label: format!("completion {number}"), pictures }),
        );
        mosaic.groups.push((title, rows));
    }
    let originals = (0..count).map(|index| Thumbnail::new(width, channels, images.image(index)));
    let row = Row { label: "original".into(), pictures: originals.collect() };
    mosaic.groups.push((String::new(), vec![row]));
    Ok(mosaic)
}

/// A picture whose unknown pixels are grey-blue, as no grey or face is.
pub(crate) fn shaded(levels: &[u8], mask: &[bool], width: usize, channels: usize) -> Thumbnail {
    let mut picture = Thumbnail::new(width, channels, levels);
    for (pixel, _) in picture.pixels.iter_mut().zip(mask).filter(|(_, known)| !**known) {
        *pixel = [96, 112, 144];
    }
    picture
}

/// The known levels, and the unknown ones from values on [−1, 1].
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a level")]
pub(crate) fn filled(known: &[u8], mask: &[bool], channels: usize, values: &[f64]) -> Vec<u8> {
    let mut values = values.iter();
    let level = |value: f64| (128.0 * (value + 1.0)).floor().clamp(0.0, 255.0) as u8;
    known
        .iter()
        .enumerate()
        .map(|(at, &known)| {
            if mask[at / channels] { known } else { values.next().map_or(0, |&value| level(value)) }
        })
        .collect()
}
