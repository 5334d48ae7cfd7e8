//! Sets to learn from, sets to be judged by, and what a model without interaction would draw.

use std::path::Path;

use super::SetEnergySettings;
use crate::data::shapes::{ShapeClass, shape_cloud};
use crate::data::{PlanarFamily, read_clouds};
use crate::rng::Stream;
use crate::train::SetSource;
use crate::{Error, Result};

/// Points of a cloud that are kept to draw sets from.
const CLOUD_POINTS: usize = 1024;
/// Seed of the built-in shapes.
const SHAPE_SEED: u64 = 1;

/// Where sets come from.
#[derive(Clone, Debug)]
pub struct SetEnergyData {
    /// d.
    pub(crate) dim: usize,
    /// What is learned from.
    pub(crate) source: SetSource,
    held_out: SetSource,
    size: usize,
}

impl SetEnergyData {
    /// Draws or reads what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such sets or too few; otherwise what the file is wrong about.
    pub fn load(settings: &SetEnergySettings) -> Result<Self> {
        let data = &settings.data;
        let size = data.set_size;
        if let Some(family) = PlanarFamily::named(&data.source) {
            let source = SetSource::Planar(family);
            return Ok(Self { dim: 2, source: source.clone(), held_out: source, size });
        }
        let (dim, mut clouds) = match ShapeClass::named(&data.source) {
            Ok(class) => (3, built_in(class, data.num_training)?),
            Err(_) if !Path::new(&data.source).exists() => {
                return Err(Error::refused(format!(
                    "`data.source` must name sets, found `{}`",
                    data.source
                ))
                .with_help(
                    "rings, sticks, airplane, chair, car, table, lamp, or a file or folder",
                ));
            }
            Err(_) => {
                let all = read_clouds(Path::new(&data.source))?;
                let cloud = |number| normalised(all.dim(), all.cloud(number));
                (all.dim(), (0..all.num_clouds()).map(cloud).collect())
            }
        };
        if data.num_training == 0 || data.num_training >= clouds.len() {
            return Err(Error::refused(format!(
                "`{}` must hold more than {} clouds, found {}",
                data.source,
                data.num_training,
                clouds.len()
            ))
            .with_help("some clouds must be left to judge by: lower `data.num_training`"));
        }
        let held_out = SetSource::Clouds(clouds.split_off(data.num_training));
        Ok(Self { dim, source: SetSource::Clouds(clouds), held_out, size })
    }

    /// Sets that were not learned from.
    pub(crate) fn held_out(&self, count: usize) -> Vec<f32> {
        self.held_out.draw(count, self.size, self.dim, Stream::new(0, "held out"))
    }

    /// Sets of the kind that was learned from: the best a model can hope for.
    pub(crate) fn training(&self, count: usize) -> Vec<f32> {
        self.source.draw(count, self.size, self.dim, Stream::new(0, "training sets"))
    }

    /// Sets whose elements are independent draws from all elements of all training sets: the best
    /// that a model without interaction can do.
    pub(crate) fn independent(&self, count: usize) -> Vec<f32> {
        let stream = Stream::new(0, "independent");
        let pool = self.source.draw(4 * count, self.size, self.dim, stream.child(0));
        let order = stream.child(1).permutation(pool.len() / self.dim);
        let chosen = order.iter().take(count * self.size);
        chosen.flat_map(|&row| pool[row * self.dim..][..self.dim].iter().copied()).collect()
    }
}

fn built_in(class: ShapeClass, num_training: usize) -> Result<Vec<Vec<f32>>> {
    let count = num_training as u64 + 200;
    let cloud = |number| -> Result<Vec<f32>> {
        let cloud = shape_cloud(class, SHAPE_SEED, number, CLOUD_POINTS)?;
        Ok(normalised(cloud.dim, &cloud.points))
    };
    (0..count).map(cloud).collect()
}

/// Centred, with mean square radius 1.
fn normalised(dim: usize, points: &[f32]) -> Vec<f32> {
    let count = (points.len() / dim.max(1)).max(1) as f32;
    let mut centre = vec![0.0_f32; dim];
    for point in points.chunks_exact(dim) {
        centre.iter_mut().zip(point).for_each(|(sum, x)| *sum += x / count);
    }
    let mut moved: Vec<f32> = points
        .chunks_exact(dim)
        .flat_map(|point| point.iter().zip(&centre).map(|(x, c)| x - c).collect::<Vec<_>>())
        .collect();
    let scale = (moved.iter().map(|x| x * x).sum::<f32>() / count).sqrt().max(1e-6);
    for x in &mut moved {
        *x /= scale;
    }
    moved
}
