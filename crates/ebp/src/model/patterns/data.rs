//! Patterns to fit: simulated from known coefficients, or read from files.

use std::path::{Path, PathBuf};

use super::settings::{PatternProcess, PatternSettings};
use crate::data::events::read_events;
use crate::data::pattern::read_pattern;
use crate::files::entries;
use crate::pattern::{
    ChainSettings, Events, Family, Gibbs, Hawkes, Interaction, Pattern, StationaryDpp, Trend,
    Window, simulate,
};
use crate::rng::Stream;
use crate::{Error, Result};

/// The name of built-in data.
pub(super) const SIMULATED: &str = "simulated";
/// How long built-in events are watched.
const END: f64 = 2000.0;
/// Of the Strauss process that `pairwise` has to find: γ within r.
pub(super) const HIDDEN_STRAUSS: [f64; 2] = [0.3, 0.07];
/// Of Geyer's process that `deepsets` has to find: β, γ, r and the saturation.
pub(super) const HIDDEN_GEYER: [f64; 4] = [30.0, 2.0, 0.05, 1.0];

/// What is fitted.
#[derive(Clone, Debug)]
pub struct PatternData {
    /// Points; none of events.
    pub(crate) patterns: Vec<Pattern>,
    /// Events in time.
    pub(crate) events: Option<Events>,
    /// The coefficients that built-in data were drawn with.
    pub(crate) truth: Option<Vec<f64>>,
    /// h.
    pub(crate) hard_core: f64,
}

impl PatternData {
    /// Draws or reads what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such data or their windows differ; otherwise what a file is wrong
    /// about.
    pub fn load(settings: &PatternSettings) -> Result<Self> {
        settings.check()?;
        let stream = Stream::new(settings.seed, "simulated data");
        let is_simulated = settings.data.source == SIMULATED;
        if settings.process == PatternProcess::Hawkes {
            let (events, truth) = if is_simulated {
                let law = Hawkes { background: 0.5, branching: 0.6, decay: 2.0 };
                (law.simulate(END, stream)?, Some(vec![0.5, 0.6, 2.0]))
            } else {
                let times = read_events(Path::new(&settings.data.source))?;
                let last = times.last().copied().unwrap_or(0.0);
                let end = if settings.data.end > 0.0 { settings.data.end } else { last };
                (Events::new(times, end)?, None)
            };
            return Ok(Self::of_events(events, truth));
        }
        let (patterns, truth) =
            if is_simulated { built_in(settings, stream)? } else { (read(settings)?, None) };
        Self::of_patterns(settings, patterns, truth)
    }

    /// Events that were read or given.
    pub(in crate::model) fn of_events(events: Events, truth: Option<Vec<f64>>) -> Self {
        Self { patterns: Vec::new(), events: Some(events), truth, hard_core: 0.0 }
    }

    /// Patterns of one window that were read or given.
    pub(in crate::model) fn of_patterns(
        settings: &PatternSettings,
        patterns: Vec<Pattern>,
        truth: Option<Vec<f64>>,
    ) -> Result<Self> {
        let count: usize = patterns.iter().map(|pattern| pattern.points().len()).sum();
        if count == 0 {
            return Err(Error::refused("the patterns hold no point").with_help("give others"));
        }
        let mut hard_core = settings.interaction.hard_core;
        if settings.process.has_hard_core() {
            let least = patterns.iter().map(Pattern::least_distance).fold(f64::INFINITY, f64::min);
            let is_given = hard_core > 0.0;
            if least <= hard_core || !(is_given || least.is_finite()) {
                let duplicates: usize = patterns.iter().map(Pattern::num_duplicates).sum();
                let message = format!(
                    "points must be farther apart than the hard core, {hard_core}; found {duplicates} \
                     duplicate points and a least distance of {least}"
                );
                let help = "remove the duplicate points, or lower `interaction.hard_core` (0: what the data say)";
                return Err(Error::refused(message).with_help(help));
            }
            if !is_given {
                hard_core = least * count as f64 / (count + 1) as f64;
            }
        }
        Ok(Self { patterns, events: None, truth, hard_core })
    }

    /// Points or events of all patterns.
    pub(crate) fn num_points(&self) -> usize {
        let events = self.events.as_ref().map_or(0, |events| events.times().len());
        self.patterns.iter().map(|pattern| pattern.points().len()).sum::<usize>() + events
    }

    /// How many points repeat another exactly.
    pub(crate) fn num_duplicates(&self) -> usize {
        self.patterns.iter().map(Pattern::num_duplicates).sum()
    }
}

/// A pattern, or all of a folder; they must share their window.
fn read(settings: &PatternSettings) -> Result<Vec<Pattern>> {
    let source = Path::new(&settings.data.source);
    let paths: Vec<PathBuf> = if source.is_dir() {
        let is_pattern = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "dat");
        entries(source)?.into_iter().map(|name| source.join(name)).filter(is_pattern).collect()
    } else {
        vec![source.to_owned()]
    };
    let one = |path: &PathBuf| {
        let found = read_pattern(path)?;
        Pattern::new(Window::new(found.window)?, found.points)
    };
    let patterns = paths.iter().map(one).collect::<Result<Vec<_>>>()?;
    let Some(first) = patterns.first() else {
        let message = format!("`{}` holds no pattern", source.display());
        return Err(Error::refused(message).with_help("patterns are files ending in .dat"));
    };
    match patterns.iter().position(|pattern| pattern.window() != first.window()) {
        None => Ok(patterns),
        Some(other) => {
            let message = format!(
                "`{}` and `{}` have different windows",
                paths[0].display(),
                paths[other].display()
            );
            Err(Error::refused(message).with_help("fit one pattern, or patterns of one window"))
        }
    }
}

/// Patterns of known coefficients in the unit square.
fn built_in(
    settings: &PatternSettings,
    stream: Stream,
) -> Result<(Vec<Pattern>, Option<Vec<f64>>)> {
    let (window, count) = (Window::unit(), settings.data.num_patterns);
    if settings.process == PatternProcess::Dpp {
        let (kernel, shape) = (settings.dpp.kernel.kernel(), settings.dpp.shape);
        let truth = [80.0, 0.7 * StationaryDpp::greatest_scale(kernel, shape, 80.0)];
        let law = StationaryDpp::new(kernel, shape, truth, window)?;
        let draw = |number: usize| law.simulate(stream.child(number as u64));
        return Ok(((0..count).map(draw).collect::<Result<_>>()?, Some(truth.to_vec())));
    }
    // A hard core that is not set is one fifth of what the points of the Poisson process have on average.
    let hard_core = settings.interaction.hard_core;
    let mut family = settings.family(if hard_core > 0.0 { hard_core } else { 0.05 });
    let mut truth = match settings.process {
        PatternProcess::Geyer => vec![40_f64.ln(), 1.5_f64.ln()],
        PatternProcess::Area => vec![40_f64.ln(), 5_f64.ln()],
        PatternProcess::Strauss | PatternProcess::StraussHardcore => {
            vec![100_f64.ln(), 0.3_f64.ln()]
        }
        _ => vec![100_f64.ln()],
    };
    if settings.process == PatternProcess::Pairwise {
        let [gamma, radius] = HIDDEN_STRAUSS;
        family = Family { trend: Trend::Constant, interaction: Interaction::Strauss { radius } };
        truth.push(gamma.ln());
    }
    if settings.process == PatternProcess::Deepsets {
        let [beta, gamma, radius, saturation] = HIDDEN_GEYER;
        let interaction = Interaction::Geyer { radius, saturation };
        family = Family { trend: Trend::Constant, interaction };
        truth = vec![beta.ln(), gamma.ln()];
    }
    if family.trend == Trend::LogLinear {
        truth.splice(1..1, [0.5, -0.5]);
    }
    let model = Gibbs::new(family, window, truth.clone())?;
    let patterns = simulate(&model, count, &ChainSettings::for_points(100), stream)?;
    Ok((patterns, Some(truth)))
}
