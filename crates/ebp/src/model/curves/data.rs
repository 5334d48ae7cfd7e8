//! What a model of curves learns from, and what is held out.

use std::collections::BTreeMap;
use std::path::Path;

use super::CurveSettings;
use crate::IndexedSet;
use crate::data::table::{ColumnChoice, NamedSet, read_table};
use crate::data::{CurveFamily, Standardiser};
use crate::metric::predictive::{self, Evaluation};
use crate::process::{Process, Standardised, Task};
use crate::rng::Stream;
use crate::train::TaskSource;
use crate::{Error, Result};

/// With at least so many sets, whole sets are held out; with fewer, elements of each.
const MANY_SETS: usize = 10;
/// Room beyond the data on each side of the domain of log Z, as a share of their range …
const MARGIN: f64 = 0.25;
/// … and in standard deviations.
const LEAST_MARGIN: f64 = 0.5;
/// Room beyond the range of built-in curves, which has a margin of its own.
const CURVE_MARGIN: f64 = 0.5;

/// Sets with their scales.
#[derive(Clone, Debug)]
pub struct CurveData {
    pub(crate) source: CurveSource,
    pub(crate) scales: Scales,
}

/// Where the sets come from.
#[derive(Clone, Debug)]
pub(crate) enum CurveSource {
    Curves(CurveFamily),
    Table(TableData),
}

/// Sets of one's own, in their own units.
#[derive(Clone, Debug)]
pub(crate) struct TableData {
    pub(crate) sets: Vec<NamedSet>,
    /// What is learned from.
    pub(crate) training: Vec<IndexedSet>,
    /// What is predicted at the end, with the most context there is.
    pub(crate) held_out: Vec<Task>,
    /// The first location and value column, for the axes of pictures.
    pub(crate) labels: (String, String),
}

/// How numbers of the data become numbers of the model.
#[derive(Clone, Debug)]
pub(crate) struct Scales {
    pub(crate) standardiser: Standardiser,
    pub(crate) value_domain: (f32, f32),
}

impl CurveData {
    /// Reads or names what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such data or too few; otherwise what the file is wrong about.
    pub fn load(settings: &CurveSettings) -> Result<Self> {
        let source = &settings.data.source;
        let is_path = source.contains(['.', '/', '\\']);
        if is_path {
            return Self::from_table(settings);
        }
        let family = CurveFamily::parse(source).map_err(|error| {
            Error::refused(format!("`data.source`: {error}"))
                .with_help("or give the path of a CSV file")
        })?;
        Ok(Self::from_curves(family))
    }

    /// Built-in curves, whose scale is known.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(crate) fn from_curves(family: CurveFamily) -> Self {
        let (low, high) = family.value_range();
        let value_domain = ((low - CURVE_MARGIN) as f32, (high + CURVE_MARGIN) as f32);
        let scales = Scales { standardiser: Standardiser::identity(1, 1), value_domain };
        Self { source: CurveSource::Curves(family), scales }
    }

    fn from_table(settings: &CurveSettings) -> Result<Self> {
        let choice = ColumnChoice {
            set: settings.data.set_column.clone(),
            set_is_optional: false,
            locations: settings.data.location_columns.clone(),
            values: settings.data.value_columns.clone(),
        };
        Self::of_sets(settings, read_table(Path::new(&settings.data.source), &choice)?)
    }

    /// Sets that were read or given, some of which are held out.
    pub(in crate::model) fn of_sets(settings: &CurveSettings, sets: Vec<NamedSet>) -> Result<Self> {
        let share = settings.data.held_out;
        if !(share > 0.0 && share < 1.0) {
            return Err(Error::refused(format!(
                "`data.held_out` must be above 0 and below 1, found {share}"
            ))
            .with_help("0.1 holds out a tenth"));
        }
        let stream = Stream::new(settings.seed, "held out");
        let (training, held_out) =
            split(&sets, (share, settings.evaluation.num_sets), settings.tasks.max_context, stream);
        if training.is_empty() || held_out.is_empty() {
            return Err(Error::refused(format!(
                "`{}` has too few elements to learn from and to hold some out",
                settings.data.source
            ))
            .with_help("a table needs a few dozen elements at least"));
        }
        let standardiser = Standardiser::fit(&training)?;
        let value_domain = domain(&training, &standardiser)?;
        let scales = Scales { standardiser, value_domain };
        let first = |names: &[String], otherwise: &str| {
            names.first().map_or_else(|| otherwise.to_owned(), Clone::clone)
        };
        let names = &settings.data;
        let labels = (first(&names.location_columns, "t"), first(&names.value_columns, "x"));
        Ok(Self {
            source: CurveSource::Table(TableData { sets, training, held_out, labels }),
            scales,
        })
    }

    /// What the trainer draws tasks from.
    pub(crate) fn task_source(&self) -> Result<TaskSource> {
        Ok(match &self.source {
            CurveSource::Curves(family) => TaskSource::Curves(*family),
            CurveSource::Table(table) => {
                let scaled = table.training.iter().map(|set| self.scales.standardiser.apply(set));
                TaskSource::Sets(scaled.collect::<Result<_>>()?)
            }
        })
    }

    /// The name of what [`evaluate`](Self::evaluate) measures.
    fn evaluated(&self) -> &'static str {
        match self.source {
            CurveSource::Curves(_) => "excess",
            CurveSource::Table(_) => "held_out_nats",
        }
    }

    /// A quick look at what is held out.
    pub(crate) fn evaluate(&self, process: &dyn Process) -> Result<Vec<(String, f64)>> {
        let found = match &self.source {
            CurveSource::Curves(family) => {
                let stream = Stream::new(0, "evaluation on the way");
                let evaluation = Evaluation {
                    family: *family,
                    num_context: 15,
                    num_sets: 8,
                    num_locations: 32,
                    stream,
                };
                predictive::held_out(process, &evaluation)?.excess
            }
            CurveSource::Table(table) => {
                let process = Standardised::new(process, &self.scales.standardiser);
                nats(&process, table.held_out.iter().take(8))?.0
            }
        };
        Ok(vec![(self.evaluated().to_owned(), found)])
    }
}

impl TableData {
    /// What is held out as sets whose elements can be asked for in their order, and from which on. Whole
    /// sets that were held out begin with `min_context`; elements held out of few sets are all asked for
    /// given the same ones that were learned from.
    pub(crate) fn sequences(&self, min_context: usize) -> Result<Vec<(IndexedSet, usize)>> {
        let are_whole = self.sets.len() >= MANY_SETS;
        let sequence = |task: &Task| {
            let set = task.union()?;
            let known = if are_whole { min_context.max(1) } else { task.context.len() };
            Ok((set, known))
        };
        self.held_out.iter().map(sequence).collect()
    }
}

impl Scales {
    /// For checkpoints.
    pub(crate) fn numbers(&self) -> BTreeMap<String, Vec<f64>> {
        let (low, high) = self.value_domain;
        let statistics = self.standardiser.to_numbers().into_iter();
        statistics
            .map(|(name, number)| (format!("standardiser.{name}"), vec![number]))
            .chain([("value_domain".to_owned(), vec![f64::from(low), f64::from(high)])])
            .collect()
    }

    /// What [`numbers`](Self::numbers) gave.
    #[expect(clippy::cast_possible_truncation, reason = "they were f32")]
    pub(crate) fn from_numbers(numbers: &BTreeMap<String, Vec<f64>>) -> Result<Self> {
        let damaged = || Error::failed("the model lacks the scales of its data");
        let statistics: Vec<(String, f64)> = numbers
            .iter()
            .filter_map(|(name, numbers)| {
                Some((name.strip_prefix("standardiser.")?.to_owned(), *numbers.first()?))
            })
            .collect();
        let standardiser = Standardiser::from_numbers(&statistics)?;
        match numbers.get("value_domain").map(Vec::as_slice) {
            Some(&[low, high]) => {
                Ok(Self { standardiser, value_domain: (low as f32, high as f32) })
            }
            _ => Err(damaged()),
        }
    }
}

/// Mean negative log density per target and its standard error over tasks, in the units of the data.
pub(crate) fn nats<'a>(
    process: &dyn Process,
    tasks: impl Iterator<Item = &'a Task>,
) -> Result<(f64, f64)> {
    let (mut means, mut weights) = (Vec::new(), Vec::new());
    for task in tasks {
        let answers = process.condition(&task.context)?.log_density(&task.target)?;
        let count = answers.len() as f64;
        means.push(-answers.iter().map(|answer| answer.value).sum::<f64>() / count);
        weights.push(count);
    }
    let total: f64 = weights.iter().sum();
    let mean = means.iter().zip(&weights).map(|(mean, weight)| mean * weight).sum::<f64>() / total;
    let spread: f64 =
        means.iter().zip(&weights).map(|(found, weight)| (weight * (found - mean)).powi(2)).sum();
    Ok((mean, spread.sqrt() / total))
}

/// What is learned from and what is held out: whole sets if there are many, elements if few.
fn split(
    sets: &[NamedSet],
    (share, most_sets): (f64, usize),
    max_context: usize,
    stream: Stream,
) -> (Vec<IndexedSet>, Vec<Task>) {
    let (mut training, mut held_out) = (Vec::new(), Vec::new());
    if sets.len() >= MANY_SETS {
        let order = stream.permutation(sets.len());
        let num_held_out = part(sets.len(), share).min(most_sets.max(1));
        for (place, &number) in order.iter().enumerate() {
            let set = &sets[number].set;
            if place >= num_held_out {
                training.push(set.clone());
            } else if set.len() > 1 {
                let order = stream.child(number as u64).permutation(set.len());
                let (context, target) = order.split_at(max_context.min(set.len() / 2));
                held_out.push(Task { context: set.select(context), target: set.select(target) });
            }
        }
        return (training, held_out);
    }
    for (number, NamedSet { set, .. }) in sets.iter().enumerate() {
        let order = stream.child(number as u64).permutation(set.len());
        let (target, rest) = order.split_at(part(set.len(), share));
        if rest.is_empty() {
            continue;
        }
        training.push(set.select(rest));
        if !target.is_empty() {
            let context = set.select(&rest[..max_context.min(rest.len())]);
            held_out.push(Task { context, target: set.select(target) });
        }
    }
    (training, held_out)
}

/// A share of `count`, rounded, but not nothing where there is something to share.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded share")]
fn part(count: usize, share: f64) -> usize {
    ((count as f64 * share).round() as usize).clamp(usize::from(count > 1), count)
}

/// Where the standardised values lie, with room on both sides.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn domain(sets: &[IndexedSet], standardiser: &Standardiser) -> Result<(f32, f32)> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for set in sets {
        for &value in standardiser.apply(set)?.values() {
            (low, high) = (low.min(value), high.max(value));
        }
    }
    let margin = LEAST_MARGIN + MARGIN * (high - low);
    Ok(((low - margin) as f32, (high + margin) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(count: usize, size: usize) -> Vec<NamedSet> {
        (0..count)
            .map(|number| {
                let values: Vec<f64> = (0..size).map(|i| (1000 * number + i) as f64).collect();
                let set = IndexedSet::new(1, 1, values.clone(), values).unwrap();
                NamedSet { name: number.to_string(), set }
            })
            .collect()
    }

    #[test]
    fn nothing_that_is_held_out_is_learned_from() {
        for (count, size) in [(1, 50), (3, 10), (40, 6)] {
            let sets = sets(count, size);
            let (training, held_out) = split(&sets, (0.1, 20), 4, Stream::new(1, "split"));
            assert!(!training.is_empty() && !held_out.is_empty());
            for task in &held_out {
                assert!(task.context.len() <= 4 && !task.context.is_empty());
                for value in task.target.values() {
                    assert!(!training.iter().any(|set| set.values().contains(value)));
                    assert!(!task.context.values().contains(value));
                }
            }
        }
    }

    #[test]
    fn nats_weigh_tasks_by_their_targets() {
        use crate::kernel::Rbf;
        use crate::process::{ExactProcessConfig, GaussianProcess};
        let kernel = Box::new(Rbf::new(1.0, 1.0).unwrap());
        let process = GaussianProcess::new(kernel, &ExactProcessConfig::default()).unwrap();
        let empty = IndexedSet::empty(1, 1).unwrap();
        let task = |values: Vec<f64>| Task {
            context: empty.clone(),
            target: IndexedSet::new(1, 1, vec![0.0; values.len()], values).unwrap(),
        };
        let (all, _) = nats(&process, [task(vec![0.0, 1.0, 2.0])].iter()).unwrap();
        let (cut, _) = nats(&process, [task(vec![0.0]), task(vec![1.0, 2.0])].iter()).unwrap();
        assert!((all - cut).abs() < 1e-12);
    }
}
