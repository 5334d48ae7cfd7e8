//! Models of point patterns: sets without a latent, in a window or in time.
//!
//! The path: [`PatternSettings`] → [`PatternData`] → `learn` → [`PatternModel`]. A fit is one step.

mod data;
mod extras;
mod fitting;
mod settings;

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::data::PatternData;
pub(crate) use self::extras::{Extra, extras};
pub(crate) use self::fitting::is_likelihood;
use self::fitting::{Fitted, Fitting};
pub use self::settings::{
    DppSettings, InteractionSettings, KernelName, LikelihoodEffort, PatternDataSettings,
    PatternEvaluation, PatternMethod, PatternProcess, PatternSampler, PatternSettings,
};
use super::Lesson;
use crate::checkpoint::Checkpoint;
use crate::data::events::events_bytes;
use crate::data::pattern::{PointPattern, pattern_bytes};
use crate::files::create_folder;
use crate::pattern::{
    ChainSettings, DeepSets, Events, Gibbs, Hawkes, Pattern, StationaryDpp, Window,
    simulate_watched,
};
use crate::rng::Stream;
use crate::train::{Evaluation, Finished};
use crate::{Error, Result};

/// A fitted process of points.
#[derive(Debug)]
pub struct PatternModel {
    settings: PatternSettings,
    fitted: Fitted,
    law: Law,
    /// Of a pattern of the data, on average.
    mean_points: usize,
    /// Until when events are drawn.
    end: f64,
}

/// What was fitted.
#[derive(Clone, Debug)]
pub(crate) enum Law {
    /// By its conditional intensity.
    Gibbs(Gibbs),
    /// Determinantal.
    Dpp(StationaryDpp),
    /// In time.
    Hawkes(Hawkes),
}

/// Fits the process that the settings describe.
pub(super) fn learn(
    settings: &PatternSettings,
    data: &PatternData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let mut model = Fitting::new(settings, data);
    let evaluation = Evaluation::new(1, |model: &mut Fitting<'_>, _| {
        Ok(vec![("nats_per_element".to_owned(), model.nats())])
    })?;
    let window = data.patterns.first().map_or_else(Window::unit, Pattern::window);
    let mean = data.num_points() as f64 / data.patterns.len().max(1) as f64;
    let numbers = [
        ("window".to_owned(), window.sides().concat()),
        ("mean_points".to_owned(), vec![mean]),
        (
            "hard_core".to_owned(),
            vec![if data.hard_core.is_finite() { data.hard_core } else { 0.0 }],
        ),
        ("end".to_owned(), vec![data.events.as_ref().map_or(0.0, Events::end)]),
    ];
    lesson.run(&mut model, evaluation, numbers.into())
}

impl PatternModel {
    /// The model that a checkpoint holds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a count")]
    pub(super) fn restore(settings: &PatternSettings, checkpoint: &Checkpoint) -> Result<Self> {
        let number = |name: &str, index: usize| {
            let found = checkpoint.meta.numbers.get(name).and_then(|numbers| numbers.get(index));
            found
                .copied()
                .ok_or_else(|| Error::invalid("checkpoint", format!("with `{name}`"), "none"))
        };
        let sides = [
            [number("window", 0)?, number("window", 1)?],
            [number("window", 2)?, number("window", 3)?],
        ];
        let window = Window::new(sides)?;
        let fitted = Fitted::from_tensors(&checkpoint.model_state()?)?;
        if fitted.coefficients.is_empty() {
            return Err(Error::refused("this run has not fitted anything yet")
                .with_help("go on with `ebp train --resume --out DIR`"));
        }
        let law = match (settings.process, &fitted.coefficients[..]) {
            (PatternProcess::Dpp, &[intensity, scale]) => {
                let (kernel, shape) = (settings.dpp.kernel.kernel(), settings.dpp.shape);
                Law::Dpp(StationaryDpp::new(kernel, shape, [intensity, scale], window)?)
            }
            (PatternProcess::Hawkes, &[background, branching, decay]) => {
                Law::Hawkes(Hawkes { background, branching, decay })
            }
            (PatternProcess::Deepsets, [intercept, weights @ ..]) => {
                let deep = DeepSets::new(settings.deep_sets(), weights.to_vec())?;
                let alone = Gibbs::new(settings.family(0.0), window, vec![*intercept])?;
                Law::Gibbs(alone.with_deep_sets(deep))
            }
            _ => {
                let family = settings.family(number("hard_core", 0)?);
                Law::Gibbs(Gibbs::new(family, window, fitted.coefficients.clone())?)
            }
        };
        let mean_points = number("mean_points", 0)?.ceil() as usize;
        Ok(Self { settings: settings.clone(), fitted, law, mean_points, end: number("end", 0)? })
    }

    /// The settings it was fitted with.
    pub fn settings(&self) -> &PatternSettings {
        &self.settings
    }

    /// What was fitted.
    pub(crate) fn law(&self) -> &Law {
        &self.law
    }

    pub(crate) fn fitted(&self) -> &Fitted {
        &self.fitted
    }

    /// What was fitted, one number for each of [`names`](Self::names); then, of networks, their weights.
    pub fn coefficients(&self) -> &[f64] {
        &self.fitted.coefficients
    }

    /// Names of the coefficients.
    pub fn names(&self) -> Vec<String> {
        match &self.law {
            Law::Gibbs(model) => model.family().names(),
            Law::Dpp(_) => vec!["intensity".into(), "scale".into()],
            Law::Hawkes(_) => vec!["background".into(), "branching".into(), "decay".into()],
        }
    }

    pub(crate) fn chain(&self) -> ChainSettings {
        chain(&self.settings, self.mean_points)
    }

    /// `count` new patterns.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is a process of events; as [`simulate`](crate::pattern::simulate()).
    pub fn sample(&self, count: usize, stream: Stream) -> Result<Vec<Pattern>> {
        self.sample_numbers(0..count, stream, &|| {})
    }

    /// Those of the numbers that are asked for; `watch` is called once for every pattern that is done.
    fn sample_numbers(
        &self,
        numbers: Range<usize>,
        stream: Stream,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Vec<Pattern>> {
        match &self.law {
            Law::Gibbs(model) => simulate_watched(model, numbers, &self.chain(), stream, watch),
            Law::Dpp(model) => {
                let draw = |number: usize| model.simulate(stream.child(number as u64));
                numbers.map(|number| draw(number).inspect(|_| watch())).collect()
            }
            Law::Hawkes(_) => Err(Error::refused("events have times, not places")
                .with_help("`sample_events` draws them")),
        }
    }

    /// `count` new series of events.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is a process of points; as [`Hawkes::simulate`].
    pub fn sample_events(&self, count: usize, stream: Stream) -> Result<Vec<Events>> {
        let Law::Hawkes(model) = &self.law else {
            return Err(
                Error::refused("points have places, not times").with_help("`sample` draws them")
            );
        };
        self.events_of(model, 0..count, stream)
    }

    fn events_of(
        &self,
        model: &Hawkes,
        numbers: Range<usize>,
        stream: Stream,
    ) -> Result<Vec<Events>> {
        numbers.map(|number| model.simulate(self.end, stream.child(number as u64))).collect()
    }

    /// Draws `count` patterns or series of events into files of a folder, and says how many points each has.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample); what the disk says.
    pub fn write_samples(&self, folder: &Path, count: usize, stream: Stream) -> Result<Vec<usize>> {
        let files = self.sample_files(0..count, stream, &|| {})?;
        write_pattern_files(folder, &files)?;
        Ok(files.iter().map(|file| file.num_points).collect())
    }

    /// What [`write_samples`](Self::write_samples) would write of the patterns of these numbers, each of which is
    /// drawn by itself; `watch` is called once for every pattern that is drawn.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample).
    pub fn sample_files(
        &self,
        numbers: Range<usize>,
        stream: Stream,
        watch: &(dyn Fn() + Sync),
    ) -> Result<Vec<PatternFile>> {
        let file = |number: usize, ending: &str, bytes: &[u8], num_points: usize| PatternFile {
            name: format!("{number:04}.{ending}"),
            text: String::from_utf8_lossy(bytes).into_owned(),
            num_points,
        };
        if let Law::Hawkes(model) = &self.law {
            let drawn = self.events_of(model, numbers.clone(), stream)?;
            let files = numbers.zip(&drawn).map(|(number, events)| {
                file(number, "txt", &events_bytes(events.times()), events.times().len())
            });
            return Ok(files.collect());
        }
        let drawn = self.sample_numbers(numbers.clone(), stream, watch)?;
        let files = numbers.zip(&drawn).map(|(number, pattern)| {
            let written = PointPattern {
                title: format!("{} {number}", self.settings.process.name()),
                window: pattern.window().sides(),
                points: pattern.points().to_vec(),
            };
            file(number, "dat", &pattern_bytes(&written), pattern.points().len())
        });
        Ok(files.collect())
    }
}

/// A pattern or a series of events as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternFile {
    /// Of the file.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// How many points or events these are.
    pub num_points: usize,
}

/// Writes patterns into a folder.
///
/// # Errors
///
/// What the disk says.
pub fn write_pattern_files(folder: &Path, files: &[PatternFile]) -> Result<()> {
    create_folder(folder)?;
    for file in files {
        let path = folder.join(&file.name);
        std::fs::write(&path, &file.text).map_err(Error::io("write", path))?;
    }
    Ok(())
}

/// How long chains run for patterns of so many points.
fn chain(settings: &PatternSettings, num_points: usize) -> ChainSettings {
    let count = num_points.max(20);
    let num_steps = settings.evaluation.steps_per_point.max(1) * count;
    let moves = settings.sampler.moves();
    ChainSettings { num_steps, moves, ..ChainSettings::for_points(count) }
}
