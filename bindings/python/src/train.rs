//! Training: settings and data in, a model and what happened on the way out.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ebp::experiment::outcome::judge;
use ebp::model::{Data, TrainOptions};
use ebp::train::{Event, Existing, Observer, Program};
use pyo3::prelude::*;

use crate::arrays::given;
use crate::device;
use crate::errors::raise;
use crate::model::Model;
use crate::settings::Settings;
use crate::work::{Link, Progress, run, wait_until_saved};

/// Named numbers of one step.
type Numbers = Vec<(String, f64)>;

/// Tells the caller what happens, and keeps the numbers that a run's folder would keep.
#[derive(Debug)]
struct Watcher<'a> {
    link: &'a Link,
    record_every: u64,
    history: Vec<Numbers>,
    /// The newest evaluation, which the next step would hide.
    evaluation: Numbers,
}

impl Observer for Watcher<'_> {
    fn observe(&mut self, event: &Event<'_>) -> ebp::Result<()> {
        match event {
            Event::Damaged(error) => {
                self.link.warn(format!("{error}; it was set aside, an older one is used"));
            }
            Event::RolledBack { rollback, num_rollbacks } => self.link.warn(format!(
                "step {} diverged (`{}` is {}); rollback {num_rollbacks} to step {}, learning rates are \
                 now {} of what was asked for",
                rollback.from_step,
                rollback.quantity,
                rollback.found,
                rollback.to_step,
                rollback.learning_rate_factor
            )),
            Event::Started { step, num_steps, .. } => {
                let (done, total) = (*step, *num_steps);
                self.link.tell(Progress { done, total, piece: "training", numbers: Vec::new() });
            }
            Event::Step(step) => {
                let (done, total) = (step.step + 1, step.num_steps);
                if !step.evaluation.is_empty() {
                    self.evaluation = step.evaluation.to_vec();
                }
                if step.is_kept(self.record_every) {
                    let numbers = step.iter().map(|(name, value)| (name.to_owned(), value));
                    let number = std::iter::once(("step".to_owned(), done as f64));
                    self.history.push(number.chain(numbers).collect());
                }
                let record = step.record.iter().map(|(name, value)| ((*name).to_owned(), *value));
                let numbers = record.chain(self.evaluation.iter().cloned()).collect();
                self.link.tell(Progress { done, total, piece: "training", numbers });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Trains a model of `settings`, on sets in memory or on what the settings name. Says beside it how it
/// judges what was held out, if asked, and the numbers of its steps.
#[pyfunction]
#[pyo3(signature = (
    settings, data, *, directory, existing, start, device, precision, threads, judged, arguments, callback
))]
#[allow(clippy::too_many_arguments, reason = "a private function that the front calls by name")]
pub(crate) fn train(
    py: Python<'_>,
    settings: &Settings,
    data: Option<(String, Bound<'_, PyAny>)>,
    directory: Option<PathBuf>,
    existing: &str,
    start: Option<PathBuf>,
    device: &str,
    precision: &str,
    threads: Option<usize>,
    judged: bool,
    arguments: Vec<String>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<(Model, Option<String>, Vec<Numbers>)> {
    let existing = match existing {
        "resume" => Existing::Resume,
        "replace" => Existing::Replace,
        "refuse" => Existing::Refuse,
        other => {
            let message = format!("`existing` must be refuse, resume or replace, found `{other}`");
            return Err(raise(py, "InvalidInputError", &message, None));
        }
    };
    let given = data.map(|(kind, value)| given(py, &kind, &value)).transpose()?;
    let device = device::open(py, device, precision)?;
    let (settings, opened) = (settings.0.clone(), device.clone());
    let start_time = seconds_since_1970();
    if directory.is_some() {
        wait_until_saved(py, directory.clone())?;
    }
    let trained = run(py, threads, callback.as_ref(), move |link| {
        if existing == Existing::Resume
            && let Some(directory) = &directory
        {
            ebp::model::Model::check_resumable(directory)?;
        }
        let data = match given {
            Some(given) => Data::given(&settings, given)?,
            None => Data::load(&settings)?,
        };
        link.saves_into(directory.clone());
        let record_every = settings.trainer().record_every;
        let mut watcher =
            Watcher { link, record_every, history: Vec::new(), evaluation: Vec::new() };
        let options = TrainOptions {
            directory,
            existing: Some(existing),
            device: opened.clone(),
            replicas: Vec::new(),
            ranks: None,
            from: start,
            observer: Some(&mut watcher),
            stop: Some(link.stop()),
            program: Program { commit: None, arguments, start_time: Some(start_time) },
        };
        let model = ebp::model::Model::train_on(settings, &data, options)?;
        link.saves_into(None);
        let history = watcher.history;
        let report = if judged {
            let findings = judge(&model, &data, &opened)?;
            if model.directory().is_some() {
                findings.save_pictures(ebp::figure::Theme::Light)?;
            }
            Some(findings.report.to_string())
        } else {
            None
        };
        Ok((model, report, history))
    });
    match trained {
        Ok((model, report, history)) => Ok((Model::new(model, device), report, history)),
        Err(error) => Err(error),
    }
}

/// For TensorBoard's axis of time, and for nothing else.
#[expect(clippy::disallowed_methods, reason = "event files are not compared byte for byte")]
fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
