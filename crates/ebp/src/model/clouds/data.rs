//! Clouds to learn from and clouds that are held out, in units of their own spread.

use std::collections::BTreeMap;
use std::path::Path;

use super::settings::{CloudDataSettings, CloudSettings};
use crate::SetOffsets;
use crate::data::normalise::Affine;
use crate::data::shapes::{ShapeClass, shape_clouds};
use crate::data::{Cache, Clouds, Split, read_clouds};
use crate::rng::Stream;
use crate::{Error, Result};

/// Room around the data, in standard deviations, where points may lie too.
const MARGIN: f32 = 0.4;

/// Standardised clouds.
#[derive(Clone, Debug)]
pub struct CloudData {
    /// What is learned from.
    pub(crate) train: Clouds,
    /// What is not.
    pub(crate) held_out: Clouds,
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
        let (train, held_out) = split_clouds(&settings.data)?;
        for clouds in [&train, &held_out] {
            clouds.check_finite()?;
        }
        let affine = Affine::of_all((0..train.num_clouds()).map(|i| train.cloud(i)), train.dim());
        let (train, held_out) = (standardised(&train, &affine)?, standardised(&held_out, &affine)?);
        let scale = CloudScale { affine, half_width: half_width(&train) };
        Ok(Self { train, held_out, scale })
    }

    /// The first `count` held-out sets.
    pub(crate) fn held_out_sets(&self, count: usize) -> Vec<&[f32]> {
        (0..self.held_out.num_clouds().min(count)).map(|i| self.held_out.cloud(i)).collect()
    }

    /// All training sets.
    pub(crate) fn training_sets(&self) -> Vec<&[f32]> {
        sets(&self.train)
    }
}

impl CloudScale {
    /// Of clouds that are standardised as they are.
    pub(crate) fn of_standardised(clouds: &Clouds) -> Self {
        let affine = Affine { centre: vec![0.0; clouds.dim()], scale: 1.0 };
        Self { affine, half_width: half_width(clouds) }
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

/// Training and held-out clouds in the units of their source.
fn split_clouds(settings: &CloudDataSettings) -> Result<(Clouds, Clouds)> {
    let source = settings.source.as_str();
    let classes: Vec<ShapeClass> = match source {
        "all" => ShapeClass::ALL.to_vec(),
        name => ShapeClass::named(name).into_iter().collect(),
    };
    if !classes.is_empty() {
        let each = settings.num_shapes.div_ceil(classes.len());
        let parts =
            classes.iter().map(|&class| shape_clouds(class, 0, 0, each, settings.num_points));
        let all = Clouds::concatenate(parts.collect::<Result<Vec<_>>>()?)?;
        return random_split(&all, settings);
    }
    let path = Path::new(source);
    if !path.exists() {
        return Err(Error::refused(format!("there are no clouds `{source}`")).with_help(
            "name airplane, chair, car, table, lamp or all, or the path of a file or folder",
        ));
    }
    if path.is_file()
        && let Ok(cache) = Cache::open(path)
    {
        let part = |splits: &[Split]| -> Vec<usize> {
            splits.iter().flat_map(|&split| cache.members(split)).collect()
        };
        let of = |members: &[usize]| -> Result<Clouds> {
            let points = members.iter().flat_map(|&set| cache.normalised(set)).collect();
            let sizes = members.iter().map(|&set| cache.offsets().size(set));
            let names = members.iter().map(|&set| cache.names()[set].clone()).collect();
            Clouds::new(cache.meta().dim, points, SetOffsets::from_sizes(sizes)?, names)
        };
        let held_out = part(&[Split::Validation, Split::Test]);
        if held_out.is_empty() {
            return random_split(&of(&part(&[Split::Train]))?, settings);
        }
        return Ok((of(&part(&[Split::Train]))?, of(&held_out)?));
    }
    random_split(&read_clouds(path)?, settings)
}

/// The first of a drawn order are held out.
fn random_split(all: &Clouds, settings: &CloudDataSettings) -> Result<(Clouds, Clouds)> {
    let (count, held_out) = (all.num_clouds(), settings.held_out);
    if held_out == 0 || held_out >= count {
        return Err(Error::refused(format!(
            "of {count} clouds at least one must be held out and one learned from, found {held_out}"
        ))
        .with_help("set `data.held_out`"));
    }
    let order = Stream::new(settings.split_seed, "split").permutation(count);
    Ok((select(all, &order[held_out..])?, select(all, &order[..held_out])?))
}

fn select(all: &Clouds, members: &[usize]) -> Result<Clouds> {
    let points = members.iter().flat_map(|&set| all.cloud(set).iter().copied()).collect();
    let sizes = members.iter().map(|&set| all.offsets().size(set));
    let names = members.iter().map(|&set| all.names()[set].clone()).collect();
    Clouds::new(all.dim(), points, SetOffsets::from_sizes(sizes)?, names)
}

/// b of the domain [−b, b]ᵈ of standardised clouds.
fn half_width(clouds: &Clouds) -> f32 {
    clouds.points().iter().fold(0.0_f32, |largest, x| largest.max(x.abs())) + MARGIN
}

/// (x − c)/s of every point.
pub(super) fn standardised(clouds: &Clouds, affine: &Affine) -> Result<Clouds> {
    let mut points = clouds.points().to_vec();
    affine.apply(&mut points);
    Clouds::new(clouds.dim(), points, clouds.offsets().clone(), clouds.names().to_vec())
}

/// The sets of a collection.
pub(crate) fn sets(clouds: &Clouds) -> Vec<&[f32]> {
    (0..clouds.num_clouds()).map(|set| clouds.cloud(set)).collect()
}
