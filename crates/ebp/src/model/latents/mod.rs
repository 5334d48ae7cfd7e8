//! Processes with latents that the paper has as special cases: rows of a table at latent locations, and
//! sets of vectors that share a latent.
//!
//! The path: [`LatentSettings`] → [`LatentData`] → `learn` → [`LatentModel`]. Which of the three processes
//! is behind a model is said by `process`.

mod known;
mod map;
mod sets;
mod settings;
mod table;
mod training;

use std::sync::Arc;

use self::map::{Map, MapTraining};
pub use self::sets::LatentSets;
use self::sets::SetScale;
pub use self::settings::{
    GplvmSettings, LatentDataSettings, LatentEvaluation, LatentProcessName, LatentSettings,
    MapKernel, TableScale,
};
use self::table::ColumnScale;
pub use self::table::RowData;
pub(crate) use self::training::SetProcess;
use self::training::SetsTraining;
use super::{Device, Lesson};
use crate::checkpoint::Checkpoint;
use crate::data::CloudSource;
use crate::process::gplvm::Embedding;
use crate::process::{LatentCodes, Process};
use crate::rng::Stream;
use crate::train::{Evaluation, Finished, Step};
use crate::{Error, Result, SetOffsets};

/// Held-out sets of the quick looks during training, and the draws they get.
const QUICK_SETS: usize = 20;
const QUICK_DRAWS: [usize; 2] = [16, 4];
/// Sets that are encoded at once.
const ENCODED_AT_ONCE: usize = 64;

/// What a model learns from and what is held out.
#[derive(Clone, Debug)]
pub enum LatentData {
    /// Rows of a table.
    Rows(RowData),
    /// Sets of vectors.
    Sets(Arc<LatentSets>),
}

impl LatentData {
    /// Reads or draws what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such data or too few; otherwise what a file is wrong about.
    pub fn load(settings: &LatentSettings) -> Result<Self> {
        Ok(match settings.process {
            LatentProcessName::Gplvm => Self::Rows(RowData::load(settings)?),
            _ => Self::Sets(Arc::new(LatentSets::load(settings)?)),
        })
    }
}

/// A trained process with latents.
#[derive(Debug)]
pub struct LatentModel {
    settings: LatentSettings,
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Map(Map, ColumnScale),
    Sets(Box<SetProcess>, SetScale),
}

/// Trains the process that the settings describe.
pub(super) fn learn(
    settings: &LatentSettings,
    data: &LatentData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let every = settings.evaluation.every;
    match data {
        LatentData::Rows(rows) => {
            let mut model = MapTraining::new(settings, &rows.train, rows.dim())?;
            let look = |training: &mut MapTraining, _: &Step| {
                let map = training.best();
                let places = map.in_length_scales(map.latents());
                let error = one_nn_error(&places, map.latent_dim(), &rows.labels);
                Ok(error.map(|error| ("one_nn_error".to_owned(), error)).into_iter().collect())
            };
            lesson.run(&mut model, Evaluation::new(every, look)?, rows.scale.numbers())
        }
        LatentData::Sets(sets) => {
            let process = SetProcess::new(settings, sets.dim(), lesson.device.tape())?;
            let (num_sets, set_size) = (settings.data.num_sets, settings.data.set_size);
            let mut model = SetsTraining { process, sets: Arc::clone(sets), num_sets, set_size };
            let look = |training: &mut SetsTraining, _: &Step| {
                training.process.parametric_mut().use_average(true);
                let found = held_out_nats(&training.process, sets, set_size);
                training.process.parametric_mut().use_average(false);
                Ok(vec![("held_out_nats".to_owned(), found?)])
            };
            lesson.run(&mut model, Evaluation::new(every, look)?, sets.scale.numbers())
        }
    }
}

/// −log p per element of a few held-out sets, in the units of the data.
fn held_out_nats(process: &SetProcess, sets: &LatentSets, size: usize) -> Result<f64> {
    let drawn = sets.held_out(QUICK_SETS);
    let stream = Stream::new(0, "quick look");
    let scores = process.score(&drawn.values, size, QUICK_DRAWS, stream)?;
    let count = scores.len() * size;
    let total = scores.iter().zip(&drawn.corrections).map(|(s, c)| s.log_density.value + c);
    Ok(-total.sum::<f64>() / count as f64)
}

/// The share of rows whose nearest neighbour among the latents has another label; `None` without labels.
pub(crate) fn one_nn_error(latents: &[f64], dim: usize, labels: &[String]) -> Option<f64> {
    let n = labels.len();
    if n < 2 || latents.len() != n * dim {
        return None;
    }
    let row = |i: usize| &latents[i * dim..][..dim];
    let far = |i: usize, j: usize| -> f64 {
        row(i).iter().zip(row(j)).map(|(a, b)| (a - b).powi(2)).sum()
    };
    let is_wrong = |i: usize| {
        let others = (0..n).filter(|&j| j != i);
        let nearest = others.min_by(|&a, &b| far(i, a).total_cmp(&far(i, b)));
        nearest.is_none_or(|j| labels[j] != labels[i])
    };
    Some((0..n).filter(|&i| is_wrong(i)).count() as f64 / n as f64)
}

/// As [`known::recovered`].
pub(crate) fn recovered(latents: &[f64], dim: usize, angles: &[f64]) -> Result<f64> {
    known::recovered(latents, dim, angles)
}

impl LatentModel {
    /// The model that a checkpoint holds.
    pub(super) fn restore(
        settings: &LatentSettings,
        checkpoint: &Checkpoint,
        device: &Device,
    ) -> Result<Self> {
        let (state, numbers) = (checkpoint.model_state()?, &checkpoint.meta.numbers);
        let inner = if settings.process == LatentProcessName::Gplvm {
            let map = Map::from_state(settings, &state)?;
            Inner::Map(map, ColumnScale::from_numbers(numbers)?)
        } else {
            let scale = SetScale::from_numbers(numbers)?;
            let dim = scale.affine.centre.len();
            let mut process = SetProcess::new(settings, dim, device.tape())?;
            process.parametric_mut().restore(&state)?;
            process.parametric_mut().use_average(true);
            Inner::Sets(Box::new(process), scale)
        };
        Ok(Self { settings: settings.clone(), inner })
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &LatentSettings {
        &self.settings
    }

    /// The process by itself, in standardised units: of values at latent locations (the point estimate
    /// only), or of elements without locations.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for the Bayesian model of rows, whose law given further rows is not closed.
    pub fn process(&self) -> Result<&dyn Process> {
        match &self.inner {
            Inner::Map(Map::Point(model), _) => Ok(model),
            Inner::Map(Map::Bayesian(_), _) => {
                let message = "the Bayesian model of rows cannot be conditioned on further rows";
                Err(Error::refused(message).with_help("train it with `gplvm.is_bayesian=false`"))
            }
            Inner::Sets(process, _) => Ok(process.process()),
        }
    }

    /// The latent location of a new row in the units of the data, and how likely the row is there.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if this is a model of sets; otherwise as
    /// [`Conditional::embed`](crate::process::gplvm::Conditional::embed).
    pub fn embed(&self, row: &[f64]) -> Result<Embedding> {
        let (map, scale) = self.map()?;
        if row.len() != scale.means.len() {
            let expected = format!("{} numbers, as the table's columns", scale.means.len());
            return Err(Error::invalid("row", expected, row.len()));
        }
        let mut standard = row.to_vec();
        scale.apply(&mut standard);
        let mut found = map.conditional()?.embed(&standard)?;
        found.log_density -= scale.log_volume();
        Ok(found)
    }

    /// `count` new sets of `size` elements, `[count, size, d]`, in the units of the data; levels of 0 to
    /// 255 where elements are pictures.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if this is a model of rows, [`Error::InvalidValue`] if a count is 0.
    pub fn sample(&self, count: usize, size: usize, stream: Stream) -> Result<Vec<f32>> {
        let (process, scale) = self.sets()?;
        Ok(scale.restored(process.sample(count, size, stream)?))
    }

    /// Contexts of clouds in the units of the data: the mean of q(c | set), as features and as code.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the process has no latent of a set, [`Error::InvalidValue`] if the clouds do not
    /// fit.
    pub fn encode(&self, clouds: &CloudSource) -> Result<LatentCodes> {
        type Encode<'a> = Box<dyn Fn(&[f32], &SetOffsets) -> Result<[Vec<f32>; 2]> + 'a>;
        let (process, scale) = self.sets()?;
        let (latent_dim, encode): (usize, Encode<'_>) = match process {
            SetProcess::Statistician(process) => {
                let encode = |set: &[f32], offsets: &SetOffsets| process.encode(set, offsets);
                (process.config().context_dim, Box::new(encode))
            }
            SetProcess::HiddenLocations(process) => {
                let encode = |set: &[f32], offsets: &SetOffsets| process.encode(set, offsets);
                (process.config().latent_dim, Box::new(encode))
            }
            SetProcess::Bruno(_) => {
                let message =
                    "BRUNO has no code of a set: its sets are described by all their elements";
                let help = "`ebp train statistician` embeds sets";
                return Err(Error::refused(message).with_help(help));
            }
        };
        if clouds.dim() != process.dim() {
            let expected = format!("of {} numbers an element", process.dim());
            return Err(Error::invalid("clouds", expected, clouds.dim()));
        }
        let clouds = clouds.clone().standardised(scale.affine.clone())?;
        let (mut mean, mut log_std_dev) = (Vec::new(), Vec::new());
        for start in (0..clouds.num_sets()).step_by(ENCODED_AT_ONCE) {
            let members = start..(start + ENCODED_AT_ONCE).min(clouds.num_sets());
            let offsets = SetOffsets::from_sizes(members.clone().map(|set| clouds.size(set)))?;
            let elements: Vec<f32> = members.flat_map(|set| clouds.set(set).into_owned()).collect();
            let [means, log_std_devs] = encode(&elements, &offsets)?;
            mean.extend(means);
            log_std_dev.extend(log_std_devs);
        }
        Ok(LatentCodes { latent_dim, pooled: mean.clone(), log_std_dev, mean })
    }

    /// The numbers of an element, or of a row.
    pub fn dim(&self) -> usize {
        match &self.inner {
            Inner::Map(_, scale) => scale.means.len(),
            Inner::Sets(process, _) => process.dim(),
        }
    }

    /// Columns of a picture, where elements are pictures.
    pub fn picture_width(&self) -> Option<usize> {
        match &self.inner {
            Inner::Map(..) => None,
            Inner::Sets(_, scale) => scale.picture_width,
        }
    }

    pub(crate) fn map(&self) -> Result<(&Map, &ColumnScale)> {
        match &self.inner {
            Inner::Map(map, scale) => Ok((map, scale)),
            Inner::Sets(..) => Err(Error::refused("this is a model of sets, not of rows")
                .with_help("`ebp train gplvm` makes models of rows")),
        }
    }

    pub(crate) fn sets(&self) -> Result<(&SetProcess, &SetScale)> {
        match &self.inner {
            Inner::Sets(process, scale) => Ok((process, scale)),
            Inner::Map(..) => Err(Error::refused("this is a model of rows, not of sets")
                .with_help("`ebp train bruno` and `ebp train statistician` make models of sets")),
        }
    }
}
