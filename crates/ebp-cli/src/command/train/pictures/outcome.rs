//! What a run makes of pictures that it has not seen: scores and a figure.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use ebp::data::image::KnownPart;
use ebp::metric::completion::{
    Classifier, ClassifierConfig, CompletionScore, CompletionTask, Estimate, Judges,
    judge_completions,
};
use ebp::rng::Stream;
use serde::{Deserialize, Serialize};

use super::data::PictureData;
use super::model::PictureProcess;
use super::settings::{EvaluationSettings, Settings};
use crate::device;
use crate::failure::Failure;
use crate::output;

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

/// How a model came to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Training {
    pub(crate) steps: u64,
    pub(crate) seconds: f64,
}

/// Scores by what was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) model: String,
    /// Of training.
    pub(crate) steps: u64,
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
        training: Training,
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
            steps: training.steps,
            seconds: training.seconds,
            num_pictures: evaluation.num_pictures.min(data.test.len()),
            num_draws: evaluation.num_draws,
            classifier_accuracy: jury.map(|jury| jury.accuracy),
            scores,
        })
    }

    pub(super) fn print(
        &self,
        directory: &Path,
        picture: &Path,
        is_json: bool,
    ) -> Result<(), Failure> {
        if is_json {
            #[derive(Serialize)]
            struct WithFolder<'a> {
                run: String,
                #[serde(flatten)]
                outcome: &'a Outcome,
            }
            let run = directory.display().to_string();
            return output::print_json(&WithFolder { run, outcome: self });
        }
        let Self { model, steps, seconds, num_pictures, num_draws, .. } = self;
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

/// One row per model and known part.
pub(crate) fn score_table(outcomes: &[Outcome]) -> String {
    let with_error = |found: Estimate| format!("{:.3} ± {:.3}", found.mean, found.stderr);
    let percent = |found: Option<Estimate>| {
        found.map_or_else(String::new, |found| format!("{:.1} %", 100.0 * found.mean))
    };
    // The agreement, and the share of pictures whose upper half decides.
    let decided = |score: &CompletionScore| match (score.decided_agreement, score.decided) {
        (Some(found), Some(share)) => {
            format!("{:.1} % of {:.0} %", 100.0 * found.mean, 100.0 * share)
        }
        _ => String::new(),
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
                decided(score),
                kinds.map_or_else(String::new, |kinds| format!("{:.1}", kinds.mean)),
            ]);
        }
    }
    output::table(&rows)
}
