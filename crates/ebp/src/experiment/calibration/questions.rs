//! What a model is asked: single elements, each given those of its set before it, in two splits.

use super::CalibrationExperiment;
use crate::data::CurveFamily;
use crate::data::image::Images;
use crate::data::table::read_table;
use crate::metric::predictive::one_by_one;
use crate::model::{CurveModel, CurveSource, Data, Model, PictureModel};
use crate::process::{Task, picture_task};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// Elements of built-in curves that are told, in turn.
const CONTEXTS: [usize; 3] = [5, 15, 30];
/// Fewer positions say nothing.
const LEAST: usize = 20;

/// Questions that training has not seen.
pub(super) struct Questions {
    /// To choose a temperature by.
    pub(super) choose: Vec<Task>,
    /// To report.
    pub(super) report: Vec<Task>,
    /// The set of each question to report.
    pub(super) sets: Vec<usize>,
    /// Where they come from, in words.
    pub(super) source: String,
    /// The law they were drawn from, where it is known.
    pub(super) family: Option<CurveFamily>,
}

/// Questions about one set.
type Sequence = Vec<Task>;

impl Questions {
    fn new(
        choose: &[Sequence],
        report: &[Sequence],
        source: String,
        family: Option<CurveFamily>,
    ) -> Result<Self> {
        let sets = report.iter().enumerate();
        let sets = sets.flat_map(|(set, tasks)| std::iter::repeat_n(set, tasks.len())).collect();
        let found = Self { choose: choose.concat(), report: report.concat(), sets, source, family };
        for (name, tasks) in [("choose by", &found.choose), ("report", &found.report)] {
            if tasks.len() < LEAST {
                let message = format!(
                    "{}: {} held-out elements to {name} are too few, at least {LEAST} are needed",
                    found.source,
                    tasks.len()
                );
                let help = "hold more out (data.held_out), or give a larger table with `--data`";
                return Err(Error::refused(message).with_help(help));
            }
        }
        Ok(found)
    }

    pub(super) fn of_curves(
        experiment: &CalibrationExperiment,
        model: &Model,
        process: &CurveModel,
    ) -> Result<Self> {
        let tasks = &process.settings().tasks;
        if let Some(path) = &experiment.data {
            let sets = read_table(path, &process.columns())?;
            let fits = |set: &IndexedSet| {
                (set.location_dim(), set.value_dim())
                    == (process.location_dim(), process.value_dim())
            };
            if let Some(wrong) = sets.iter().find(|named| !fits(&named.set)) {
                let message = format!(
                    "`{}` has {} location and {} value columns, the model has {} and {}",
                    path.display(),
                    wrong.set.location_dim(),
                    wrong.set.value_dim(),
                    process.location_dim(),
                    process.value_dim()
                );
                let help = "use the columns that the model was trained with";
                return Err(Error::refused(message).with_help(help));
            }
            let stream = Stream::new(experiment.seed, "calibration order");
            let shuffled = |(number, set): (usize, &IndexedSet)| {
                let order = stream.child(number as u64).permutation(set.len());
                (set.select(&order), tasks.min_context.max(1))
            };
            let sequences: Vec<(IndexedSet, usize)> =
                sets.iter().map(|named| &named.set).enumerate().map(shuffled).collect();
            return Self::of_sets(&sequences, tasks.max_context, path.display().to_string());
        }
        let Data::Curves(data) = Data::load(model.settings())? else {
            return Err(Error::failed("the data of a model of curves are of another kind"));
        };
        match &data.source {
            CurveSource::Table(table) => {
                let sequences = table.sequences(tasks.min_context)?;
                let source = format!("held out of {}", model.settings().source());
                Self::of_sets(&sequences, tasks.max_context, source)
            }
            CurveSource::Curves(family) => {
                let sequences = |name: &str| -> Result<Vec<Sequence>> {
                    let stream = Stream::new(experiment.seed, name);
                    let sequence = |number: usize| {
                        let first = CONTEXTS[number % CONTEXTS.len()].min(tasks.max_context);
                        let last = first + experiment.num_elements;
                        one_by_one(&family.draw(stream, number as u64, last)?.set, first, last)
                    };
                    (0..experiment.num_sets).map(sequence).collect()
                };
                let (choose, report) =
                    (sequences("calibration to choose")?, sequences("calibration to report")?);
                Self::new(
                    &choose,
                    &report,
                    format!("fresh sets of {}", family.name()),
                    Some(*family),
                )
            }
        }
    }

    /// Sets in turn to choose by and to report; of one set the first and the second half of what is
    /// asked for.
    fn of_sets(
        sequences: &[(IndexedSet, usize)],
        max_context: usize,
        source: String,
    ) -> Result<Self> {
        let mut splits = [Vec::new(), Vec::new()];
        let asked = sequences.iter().filter(|(set, first)| set.len() > *first);
        for (number, (set, first)) in asked.enumerate() {
            // More context than in training would be another question; elements that were learned from
            // are all the context there is.
            let last = set.len().min(max_context.max(*first) + 1);
            if sequences.len() > 1 {
                splits[number % 2].push(one_by_one(set, *first, last)?);
            } else {
                let context = set.select(&(0..*first).collect::<Vec<_>>());
                let task = |number: usize| Task {
                    context: context.clone(),
                    target: set.select(&[number]),
                };
                let middle = usize::midpoint(*first, set.len());
                splits[0].push((*first..middle).map(task).collect());
                splits[1].push((middle..set.len()).map(task).collect());
            }
        }
        let [choose, report] = splits;
        Self::new(&choose, &report, source, None)
    }

    /// Pixels of validation and of test pictures, given as many others as in training.
    pub(super) fn of_pictures(
        experiment: &CalibrationExperiment,
        model: &Model,
        pictures: &PictureModel,
    ) -> Result<Self> {
        let Data::Pictures(data) = Data::load(model.settings())? else {
            return Err(Error::failed("the data of a model of pictures are of another kind"));
        };
        let tasks = &pictures.settings().tasks;
        let sequences = |images: &Images, name: &str| -> Result<Vec<Sequence>> {
            let stream = Stream::new(experiment.seed, name);
            let num_places = images.width * images.height;
            let sequence = |number: usize| {
                let stream = stream.child(number as u64);
                let most =
                    tasks.max_context.min(num_places - experiment.num_elements.min(num_places));
                let span = most.saturating_sub(tasks.min_context) + 1;
                let known = tasks.min_context.min(most) + number * 37 % span;
                let order = stream.permutation(num_places);
                let mut mask = vec![false; num_places];
                order[..known].iter().for_each(|&place| mask[place] = true);
                let mut found = Vec::new();
                for &place in order[known..].iter().take(experiment.num_elements) {
                    let task = picture_task(images, number, &mask, stream.child(1))?;
                    let index = (0..place).filter(|&before| !mask[before]).count();
                    found.push(Task { target: task.target.select(&[index]), ..task });
                    mask[place] = true;
                }
                Ok(found)
            };
            (0..experiment.num_sets.min(images.len())).map(sequence).collect()
        };
        let choose = sequences(&data.validation, "calibration to choose")?;
        let report = sequences(&data.test, "calibration to report")?;
        Self::new(&choose, &report, format!("test pictures of {}", model.settings().source()), None)
    }
}
