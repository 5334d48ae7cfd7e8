//! Clouds to learn from and to choose by, in units of their own spread, and what reports see.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use super::settings::{CloudDataSettings, CloudSettings};
use crate::data::normalise::Affine;
use crate::data::shapes::{ShapeClass, shape_clouds};
use crate::data::{CloudSource, CloudStatistics, Clouds, Parts, PartsRule, ReportSets};
use crate::recipe::Turns;
use crate::{Error, Result};

/// Room around the data, in standard deviations, where points may lie too.
const MARGIN: f32 = 0.4;

/// Standardised clouds, which stay where they are: in memory, or in the cache they come from.
#[derive(Clone, Debug)]
pub struct CloudData {
    /// What is learned from.
    pub(crate) train: CloudSource,
    /// What is not, and what everything is chosen by.
    pub(crate) choose: CloudSource,
    /// How numbers of the data become numbers of the model.
    pub(crate) scale: CloudScale,
}

/// What a model must know of its data.
#[derive(Clone, Debug)]
pub(crate) struct CloudScale {
    /// PointFlow's: the mean of every axis, and one standard deviation for all.
    pub(crate) affine: Affine,
    /// Points of the model live in [−b, b]ᵈ.
    pub(crate) half_width: f32,
}

impl CloudData {
    /// Reads or draws what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such clouds or too few; otherwise what the file is wrong
    /// about.
    pub fn load(settings: &CloudSettings) -> Result<Self> {
        Self::of_parts(settings, parts(&settings.data)?)
    }

    /// Clouds that were given, fallen apart by the same rule.
    pub(in crate::model) fn of_clouds(
        settings: &CloudSettings,
        clouds: &CloudSource,
    ) -> Result<Self> {
        Self::of_parts(settings, clouds.parts(&rule(&settings.data))?)
    }

    fn of_parts(settings: &CloudSettings, parts: Parts) -> Result<Self> {
        let Parts { train, choose, report: _ } = parts;
        choose.check_finite()?;
        let turns = settings.model.augmentation.turns != Turns::None;
        let (train, statistics) = train.standardised_by_itself()?;
        let scale = CloudScale::of(statistics, turns);
        Ok(Self { train, choose: choose.standardised(scale.affine.clone())?, scale })
    }

    /// The first `count` sets to choose by.
    pub(crate) fn choice_sets(&self, count: usize) -> Vec<Cow<'_, [f32]>> {
        self.choose.first_sets(count)
    }
}

/// Other clouds than a model's, fallen apart by the same rule and standardised as its own are.
pub(super) fn other_parts(
    path: &Path,
    settings: &CloudDataSettings,
    scale: &CloudScale,
) -> Result<Parts> {
    let Parts { train, choose, report } = CloudSource::open(path)?.parts(&rule(settings))?;
    let affine = || scale.affine.clone();
    let report = report.map(|report| report.standardised(affine())).transpose()?;
    Ok(Parts {
        train: train.standardised(affine())?,
        choose: choose.standardised(affine())?,
        report,
    })
}

/// The sets that neither training nor a choice has seen, standardised by what a model has learned from.
pub(super) fn report_sets(settings: &CloudDataSettings, scale: &CloudScale) -> Result<ReportSets> {
    let Some(report) = parts(settings)?.report else {
        return Err(Error::refused("the model was trained without setting sets aside for reports")
            .with_help(
                "train with `--set data.report=100`, from data with a test split, or by `ebp \
                 reproduce`, which sets some aside; `--on choose` measures on the sets that settings \
                 are chosen by, and says so",
            ));
    };
    report.standardised(scale.affine.clone())
}

fn parts(settings: &CloudDataSettings) -> Result<Parts> {
    source(settings)?.parts(&rule(settings))
}

fn rule(settings: &CloudDataSettings) -> PartsRule {
    PartsRule {
        choose: settings.held_out,
        report: settings.report,
        report_part: settings.report_part,
        report_on: settings.report_on,
        seed: settings.split_seed,
    }
}

impl CloudScale {
    /// Of clouds to learn from; where they are turned, two coordinates can become one.
    pub(crate) fn of(statistics: CloudStatistics, turns: bool) -> Self {
        let CloudStatistics { affine, largest } = statistics;
        let largest = if turns { std::f32::consts::SQRT_2 * largest } else { largest };
        Self { affine, half_width: largest + MARGIN }
    }

    /// For checkpoints.
    pub(crate) fn numbers(&self) -> BTreeMap<String, Vec<f64>> {
        let wide = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).collect();
        BTreeMap::from([
            ("centre".to_owned(), wide(&self.affine.centre)),
            ("scale".to_owned(), wide(&[self.affine.scale])),
            ("half_width".to_owned(), wide(&[self.half_width])),
        ])
    }

    /// From a checkpoint.
    #[expect(clippy::cast_possible_truncation, reason = "they were f32")]
    pub(crate) fn from_numbers(numbers: &BTreeMap<String, Vec<f64>>) -> Result<Self> {
        let read = |name: &str| -> Result<Vec<f32>> {
            let found = numbers.get(name).filter(|numbers| !numbers.is_empty());
            let found = found.ok_or_else(|| {
                Error::failed(format!("the checkpoint has no `{name}`: is it a model of clouds?"))
            })?;
            Ok(found.iter().map(|&x| x as f32).collect())
        };
        let affine = Affine { centre: read("centre")?, scale: read("scale")?[0] };
        affine.check(affine.centre.len())?;
        Ok(Self { affine, half_width: read("half_width")?[0] })
    }
}

/// All clouds in the units of their source.
fn source(settings: &CloudDataSettings) -> Result<CloudSource> {
    let source = settings.source.as_str();
    let classes: Vec<ShapeClass> = match source {
        "all" => ShapeClass::ALL.to_vec(),
        name => ShapeClass::named(name).into_iter().collect(),
    };
    if !classes.is_empty() {
        let each = settings.num_shapes.div_ceil(classes.len());
        let parts =
            classes.iter().map(|&class| shape_clouds(class, 0, 0, each, settings.num_points));
        return Ok(Clouds::concatenate(parts.collect::<Result<Vec<_>>>()?)?.into());
    }
    let path = Path::new(source);
    if !path.exists() {
        return Err(Error::refused(format!("there are no clouds `{source}`")).with_help(
            "name airplane, chair, car, table, lamp or all, or the path of a file or folder",
        ));
    }
    CloudSource::open(path)
}
