//! A model of pictures on pictures that it has not seen.

use std::fmt::{self, Display};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Picture, completion_mosaic, folder_of};
use crate::Result;
use crate::data::image::KnownPart;
use crate::experiment::text::{cells, table, with_interval};
use crate::metric::completion::{
    Classifier, ClassifierConfig, CompletionScore, CompletionTask, Estimate, Judges, RoundsScore,
    RoundsTask, judge_completions,
};
use crate::model::{Device, Model, PictureData, PictureEvaluation, PictureModel};
use crate::rng::Stream;

/// Seeds of the two classifiers.
const WHOLE_SEED: u64 = 11;
const PART_SEED: u64 = 12;

/// Classifiers of whole pictures and of upper halves.
#[derive(Debug)]
pub(in crate::experiment) struct Jury {
    whole: Classifier,
    top: Classifier,
    /// How often the first is right on pictures it has not seen.
    accuracy: f64,
}

impl Jury {
    /// Trains them, if that is wanted and there are labels.
    pub(in crate::experiment) fn train(
        settings: &PictureEvaluation,
        data: &PictureData,
        device: &Device,
    ) -> Result<Option<Self>> {
        let (true, Some(labels), Some(test_labels)) =
            (settings.classifies, &data.training_labels, &data.test_labels)
        else {
            return Ok(None);
        };
        let whole = ClassifierConfig::default();
        let top = ClassifierConfig { part: Some(KnownPart::TopHalf), ..whole.clone() };
        let train = |config: &ClassifierConfig, seed| {
            Classifier::train(&data.training, labels, config, seed, device.tape())
        };
        let whole = train(&whole, WHOLE_SEED)?;
        let accuracy = whole.accuracy(&data.test, test_labels)?;
        Ok(Some(Self { whole, top: train(&top, PART_SEED)?, accuracy }))
    }
}

/// Scores by what was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PictureOutcome {
    /// Its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its name.
    pub model: String,
    /// Of training.
    pub steps: u64,
    /// Of training.
    pub seconds: f64,
    /// How many pictures were completed.
    pub num_pictures: usize,
    /// How often each.
    pub num_draws: usize,
    /// How often the classifier of completions is right on whole pictures.
    pub classifier_accuracy: Option<f64>,
    /// By what was given.
    pub scores: Vec<(String, CompletionScore)>,
    /// Where the picture belongs.
    #[serde(skip)]
    pub picture: String,
}

impl PictureOutcome {
    pub(in crate::experiment) fn new(
        model: &PictureModel,
        data: &PictureData,
        jury: Option<&Jury>,
    ) -> Result<Self> {
        let evaluation = &model.settings().evaluation;
        let mut scores = Vec::new();
        for name in &evaluation.parts {
            let part = KnownPart::parse(name)?;
            let task = CompletionTask {
                images: &data.test,
                num_pictures: evaluation.num_pictures,
                part,
                num_draws: evaluation.num_draws,
                rounds: (evaluation.rounds > 0).then_some(RoundsTask {
                    rounds: evaluation.rounds,
                    num_pictures: evaluation.round_pictures,
                    num_completions: evaluation.round_draws,
                }),
                stream: Stream::new(0, "evaluation").child(scores.len() as u64),
            };
            let judges = jury.zip(data.test_labels.as_deref()).map(|(jury, labels)| Judges {
                labels,
                whole: &jury.whole,
                part: (part == KnownPart::TopHalf).then_some(&jury.top),
            });
            let score = judge_completions(model.process(), &task, judges.as_ref())?;
            scores.push((name.clone(), score));
        }
        Ok(Self {
            run: None,
            model: model.process().name().to_owned(),
            steps: 0,
            seconds: 0.0,
            num_pictures: evaluation.num_pictures.min(data.test.len()),
            num_draws: evaluation.num_draws,
            classifier_accuracy: jury.map(|jury| jury.accuracy),
            scores,
            picture: String::new(),
        })
    }
}

pub(super) fn judge(
    model: &Model,
    data: &PictureData,
    device: &Device,
    plots: &Path,
) -> Result<(PictureOutcome, Picture)> {
    let pictures = model.pictures()?;
    let evaluation = &pictures.settings().evaluation;
    let jury = Jury::train(evaluation, data, device)?;
    let mosaic = completion_mosaic(pictures.process(), &data.test, evaluation)?;
    let path = plots.join("completions.png");
    let outcome = PictureOutcome {
        run: folder_of(model),
        steps: model.step(),
        seconds: model.seconds().unwrap_or(0.0),
        picture: path.display().to_string(),
        ..PictureOutcome::new(pictures, data, jury.as_ref())?
    };
    Ok((outcome, (path, mosaic.draw().into())))
}

impl Display for PictureOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, steps, seconds, num_pictures, num_draws, .. } = self;
        writeln!(
            f,
            "{model}, {steps} steps, {seconds:.1} s; {num_pictures} held-out pictures, {num_draws} \
             draws of the latent\n\n{}",
            score_table(std::slice::from_ref(self))
        )?;
        if let Some(accuracy) = self.classifier_accuracy {
            writeln!(f, "the classifier is right on {:.1} %\n", 100.0 * accuracy)?;
        }
        writeln!(f, "picture  {}", self.picture)?;
        self.run.as_ref().map_or(Ok(()), |run| writeln!(f, "model    {run}"))
    }
}

/// One row per model and known part.
pub fn score_table(outcomes: &[PictureOutcome]) -> String {
    let with_error = |found: Estimate, decimals| with_interval(found.mean, found.stderr, decimals);
    let percent = |found: Option<Estimate>| {
        found.map_or_else(String::new, |found| format!("{:.1} %", 100.0 * found.mean))
    };
    // The agreement, and the share of pictures whose upper half decides.
    let decided =
        |agreement: Option<Estimate>, score: &CompletionScore| match (agreement, score.decided) {
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
        "joint in rounds",
        "best error",
        "diversity",
        "agree",
        "where decided",
    ];
    let mut rows = vec![cells(header)];
    let names = outcomes.first().map_or(&[][..], |outcome| &outcome.scores);
    for (name, _) in names {
        for outcome in outcomes {
            let Some((_, score)) = outcome.scores.iter().find(|(given, _)| given == name) else {
                continue;
            };
            let kinds = score.num_kinds;
            let rounds = |show: &dyn Fn(&RoundsScore) -> String| {
                score.rounds.as_ref().map_or_else(String::new, show)
            };
            rows.push(vec![
                name.clone(),
                outcome.model.clone(),
                with_error(score.bits, 3),
                with_error(score.joint_bits, 3),
                format!("{:.3}", score.density_bits.mean),
                with_error(score.best_error, 4),
                format!("{:.4}", score.diversity.mean),
                percent(score.agreement),
                decided(score.decided_agreement, score),
                kinds.map_or_else(String::new, |kinds| format!("{:.1}", kinds.mean)),
                rounds(&|found| with_error(found.bits, 3)),
                rounds(&|found| format!("{:.4}", found.best_error.mean)),
                rounds(&|found| format!("{:.4}", found.diversity.mean)),
                rounds(&|found| percent(found.agreement)),
                rounds(&|found| decided(found.decided_agreement, score)),
            ]);
        }
    }
    table(&rows)
}
