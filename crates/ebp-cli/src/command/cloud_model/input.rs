//! Clouds that a user hands to a trained model.

use std::path::{Path, PathBuf};

use ebp::data::{Cache, Clouds, read_clouds};
use ebp::{SetOffsets, data::normalise::Affine};
use miette::miette;

use super::TrainedCloud;
use crate::failure::Failure;

/// Reads files, folders and caches, and brings all clouds into the units of the model.
pub(crate) fn read_inputs(paths: &[PathBuf], trained: &TrainedCloud) -> Result<Clouds, Failure> {
    let parts: Vec<Clouds> = paths.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let clouds = Clouds::concatenate(parts)?;
    if clouds.dim() != trained.dim() {
        return Err(Failure::Usage(miette!(
            "the model's points have {} numbers, found {}",
            trained.dim(),
            clouds.dim()
        )));
    }
    clouds.check_finite()?;
    standardised(&clouds, &trained.scale.affine)
}

fn read(path: &Path) -> Result<Clouds, Failure> {
    if path.is_file()
        && let Ok(cache) = Cache::open(path)
    {
        let names = (0..cache.len()).map(|set| {
            let class = cache.label(set).and_then(|label| cache.meta().classes.get(label as usize));
            match class {
                Some(class) => format!("{class}/{}", cache.names()[set]),
                None => cache.names()[set].clone(),
            }
        });
        let sizes = (0..cache.len()).map(|set| cache.offsets().size(set));
        let offsets = SetOffsets::from_sizes(sizes)?;
        let points = (0..cache.len()).flat_map(|set| cache.normalised(set)).collect();
        return Ok(Clouds::new(cache.meta().dim, points, offsets, names.collect())?);
    }
    read_clouds(path).map_err(|error| Failure::Usage(miette!("{error}")))
}

/// (x − c)/s of every point.
pub(super) fn standardised(clouds: &Clouds, affine: &Affine) -> Result<Clouds, Failure> {
    let mut points = clouds.points().to_vec();
    affine.apply(&mut points);
    Ok(Clouds::new(clouds.dim(), points, clouds.offsets().clone(), clouds.names().to_vec())?)
}

/// The sets of a collection.
pub(crate) fn sets(clouds: &Clouds) -> Vec<&[f32]> {
    (0..clouds.num_clouds()).map(|set| clouds.cloud(set)).collect()
}
