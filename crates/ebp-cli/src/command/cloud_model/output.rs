//! Clouds to files and pictures.

use std::path::Path;

use ebp::data::Cloud;
use ebp::data::cloud::write_cloud;
use ebp::data::normalise::Affine;
use ebp::data::npy::{Array, Precision, write_npy};
use miette::miette;

use crate::failure::Failure;
use ebp::figure::contact_sheet;
use ebp::figure::save;

/// Clouds `[n, d]` of equal sizes cut out of one array, in the units of the data.
pub(crate) fn standardised_sets(points: &[f32], size: usize, affine: &Affine) -> Vec<Vec<f32>> {
    points
        .chunks_exact(size)
        .map(|cloud| {
            let mut cloud = cloud.to_vec();
            affine.invert(&mut cloud);
            cloud
        })
        .collect()
}

/// One array `[sets, n, d]` to a file ending in .npy, or a file per cloud into a folder.
pub(crate) fn write_clouds(
    path: &Path,
    clouds: &[Vec<f32>],
    dim: usize,
    ending: &str,
) -> Result<(), Failure> {
    let is_array = path.extension().is_some_and(|ending| ending == "npy");
    let size = clouds.first().map_or(0, |cloud| cloud.len() / dim);
    if is_array {
        if clouds.iter().any(|cloud| cloud.len() != size * dim) {
            return Err(Failure::Usage(miette!(
                help = "name a folder: it gets one file per cloud",
                "clouds of different sizes do not fit into one array"
            )));
        }
        let array = Array::new(vec![clouds.len(), size, dim], clouds.concat())?;
        write_npy(path, &array, Precision::Single)?;
        return Ok(());
    }
    std::fs::create_dir_all(path).map_err(|error| Failure::cannot("create", path, &error))?;
    for (number, cloud) in clouds.iter().enumerate() {
        let file = path.join(format!("{number:05}.{ending}"));
        write_cloud(&file, &Cloud { dim, points: cloud.clone() })?;
    }
    Ok(())
}

/// Rows of clouds below each other, as a PNG file.
pub(crate) fn draw_rows(path: &Path, rows: &[&[Vec<f32>]], dim: usize) -> Result<(), Failure> {
    Ok(save(&contact_sheet::draw_rows(rows, dim), path)?)
}
