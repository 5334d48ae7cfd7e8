//! Image completion: the energy-based process and its rivals, trained for the same time, their
//! scores and their pictures.
//!
//! The first model is trained as its preset says, or for a time; every other gets as many steps as
//! fit into the same time, by the mean of some seconds of steps of each. Rivals have their own settings, the
//! presets `rival/pictures/NAME`, and the data, tasks and evaluation of the experiment.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::outcome::{Jury, PictureOutcome, completion_mosaic, score_table};
use super::{Findings, Laboratory};
use crate::files::{read_json, write_json};
use crate::model::{
    Data, NeuralSettings, PictureData, PictureProcessName, PictureSettings, Settings, rehearse,
};
use crate::process::neural::Likelihood;
use crate::train::PictureTaskConfig;
use crate::{Error, Result};

/// Steps that warm up, and those after them that say how many fit into the time of a rehearsal.
const FIRST_STEPS: u64 = 3;
const TIMED_STEPS: u64 = 15;
/// Seconds by which the time of a step is measured: a GPU that others use too is not even.
const REHEARSAL_SECONDS: f64 = 5.0;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct CompletionExperiment {
    /// What it is called.
    pub name: String,
    /// Settings of the models.
    pub settings: PictureSettings,
    /// Names such as `ebp-exact` or `convcnp`, see [`PictureProcessName::ALL`]; a rival with `-levels` at
    /// the end gives shares of levels in place of a Gaussian.
    pub models: Vec<String>,
    /// What was changed of the settings, `key=value`: rivals take the same changes.
    pub changes: Vec<String>,
    /// Every model is trained for so long in place of the settings' steps.
    pub seconds: Option<f64>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CompletionReport {
    /// What it is called.
    pub experiment: String,
    /// By model.
    pub outcomes: Vec<PictureOutcome>,
}

/// How long a model is trained.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Duration {
    steps: u64,
}

/// Who says what completions show.
#[derive(Debug)]
enum Jurors {
    /// Trained when the first model is judged.
    NotYet,
    /// There are no labels, or nobody is asked.
    Absent,
    Present(Box<Jury>),
}

impl CompletionExperiment {
    /// Trains what is missing, and judges it.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no such model.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<CompletionReport>> {
        let models = self.models.iter().map(|name| parse(name)).collect::<Result<Vec<_>>>()?;
        let data = Data::Pictures(PictureData::load(&self.settings.data)?);
        let mut jurors = Jurors::NotYet;
        let mut outcomes: Vec<PictureOutcome> = Vec::new();
        for model in models {
            let budget = self.seconds.or(outcomes.first().map(|first| first.seconds));
            outcomes.push(self.outcome(laboratory, &model, budget, &data, &mut jurors)?);
        }
        let report = CompletionReport { experiment: self.name.clone(), outcomes };
        Ok(Findings { report, pictures: Vec::new() })
    }

    /// What a model reaches, from its file or trained now.
    fn outcome(
        &self,
        laboratory: &mut Laboratory<'_>,
        contestant: &Contestant,
        budget: Option<f64>,
        data: &Data,
        jurors: &mut Jurors,
    ) -> Result<PictureOutcome> {
        let name = &contestant.name;
        let path = laboratory.file(&format!("{name}.json"));
        let picture = laboratory.file(&format!("{name}.png"));
        if let Some(found) = read_json::<PictureOutcome>(&path) {
            return Ok(PictureOutcome { picture: picture.display().to_string(), ..found });
        }
        let Data::Pictures(pictures) = data else {
            return Err(Error::invalid("data", "pictures", "data of another kind"));
        };
        laboratory.watch.begin(name);
        let mut settings = self.settings_of(contestant)?;
        let duration = duration(laboratory, name, &settings, pictures, budget)?;
        settings.train.num_steps = duration.steps;
        let trained = laboratory.model_on(name, Settings::Pictures(Box::new(settings)), data)?;
        let model = trained.pictures()?;
        let evaluation = &self.settings.evaluation;
        laboratory.watch.begin(&format!("judging {name}"));
        if matches!(jurors, Jurors::NotYet) {
            let trained = Jury::train(evaluation, pictures, &laboratory.device)?;
            *jurors = trained.map_or(Jurors::Absent, |jury| Jurors::Present(Box::new(jury)));
        }
        let jury = match &*jurors {
            Jurors::Present(jury) => Some(jury.as_ref()),
            Jurors::NotYet | Jurors::Absent => None,
        };
        let outcome = PictureOutcome {
            steps: duration.steps,
            seconds: trained.seconds().unwrap_or(0.0),
            picture: picture.display().to_string(),
            ..PictureOutcome::new(model, pictures, jury)?
        };
        let mosaic = completion_mosaic(model.process(), &pictures.test, evaluation)?;
        mosaic.draw().save(&picture, laboratory.theme)?;
        write_json(&path, &outcome)?;
        Ok(outcome)
    }
}

/// A model by its name.
#[derive(Clone, Debug)]
struct Contestant {
    name: String,
    process: PictureProcessName,
    likelihood: Likelihood,
}

/// What rivals with shares of levels are called beside their own name.
const LEVELS: &str = "-levels";

fn parse(name: &str) -> Result<Contestant> {
    let (own, likelihood) = match name.strip_suffix(LEVELS) {
        Some(own) => (own, Likelihood::Levels),
        None => (name, Likelihood::Gaussian),
    };
    let found = PictureProcessName::ALL.into_iter().find(|model| {
        model.name() == own && !(model.is_energy_based() && likelihood == Likelihood::Levels)
    });
    if let Some(process) = found {
        return Ok(Contestant { name: name.to_owned(), process, likelihood });
    }
    let known: Vec<_> = PictureProcessName::ALL.iter().map(|model| model.name()).collect();
    let help = format!("known are: {}; rivals also with `{LEVELS}`", known.join(", "));
    Err(Error::refused(format!("there is no model `{name}` of pictures")).with_help(help))
}

impl CompletionExperiment {
    /// The experiment's settings, and what a rival has of its own.
    fn settings_of(&self, contestant: &Contestant) -> Result<PictureSettings> {
        let settings = PictureSettings { process: contestant.process, ..self.settings.clone() };
        if contestant.process.is_energy_based() {
            return Ok(settings);
        }
        let preset = format!("rival/pictures/{}", contestant.process.name());
        let Settings::Pictures(own) = Settings::preset(&preset, &self.changes)? else {
            return Err(Error::invalid("preset", "one of pictures", preset));
        };
        let num_pictures = own.tasks.num_pictures;
        let neural = NeuralSettings { likelihood: contestant.likelihood, ..own.neural };
        let tasks = PictureTaskConfig { num_pictures, ..settings.tasks };
        Ok(PictureSettings { neural, tasks, max_target: own.max_target, ..settings })
    }
}

/// How long a model is trained: decided once and kept, so that an interrupted training goes on as
/// it began.
fn duration(
    laboratory: &Laboratory<'_>,
    name: &str,
    settings: &PictureSettings,
    data: &PictureData,
    budget: Option<f64>,
) -> Result<Duration> {
    let path: PathBuf = laboratory.file(&format!("{name}.plan.json"));
    if let Some(duration) = read_json(&path) {
        return Ok(duration);
    }
    // The mean time of the steps behind the first ones, of so many.
    let rehearsed = |count: u64| -> Result<f64> {
        let (mut done, mut started) = (0, Instant::now());
        rehearse(settings, data, &laboratory.device, FIRST_STEPS + count, || {
            done += 1;
            if done == FIRST_STEPS {
                started = Instant::now();
            }
        })?;
        Ok(started.elapsed().as_secs_f64() / count as f64)
    };
    let first = rehearsed(TIMED_STEPS)?;
    let fitting = REHEARSAL_SECONDS / first;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let seconds_per_step =
        if fitting > TIMED_STEPS as f64 { rehearsed(fitting as u64)? } else { first };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let steps = match budget {
        Some(budget) => ((budget / seconds_per_step) as u64).max(1),
        None => settings.train.num_steps,
    };
    let duration = Duration { steps };
    write_json(&path, &duration)?;
    Ok(duration)
}

impl Display for CompletionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&score_table(&self.outcomes))?;
        if let Some(accuracy) = self.outcomes.iter().find_map(|o| o.classifier_accuracy) {
            writeln!(f, "\nthe classifier is right on {:.1} %", 100.0 * accuracy)?;
        }
        for outcome in &self.outcomes {
            write!(
                f,
                "\n{:<14} {:>6.0} s of training, {:>6} steps   {}",
                outcome.model, outcome.seconds, outcome.steps, outcome.picture
            )?;
        }
        writeln!(f)
    }
}
