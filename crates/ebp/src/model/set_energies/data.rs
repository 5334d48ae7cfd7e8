//! Sets to learn from, sets to be judged by, and what a model without interaction would draw.

use std::ops::Range;
use std::path::Path;

use super::{SetEnergyDataSettings, SetEnergySettings, SetSizes};
use crate::data::shapes::{ShapeClass, shape_clouds};
use crate::data::{CloudSource, PlanarFamily};
use crate::process::SizeLaw;
use crate::rng::Stream;
use crate::train::SetSource;
use crate::{Error, Result};

/// Points of a cloud that are kept to draw sets from.
const CLOUD_POINTS: usize = 1024;
/// Built-in shapes beside those that are learned from.
const BUILT_IN_HELD_OUT: usize = 200;
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
    /// Of the sets that are learned from.
    pub(crate) sizes: SizeLaw,
}

/// The law of n that the settings name; `own` are the sizes of clouds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive bound of a count"
)]
fn sizes(data: &SetEnergyDataSettings, own: Option<&[usize]>) -> Result<SizeLaw> {
    let (least, size) = (data.least_size, data.set_size);
    match (data.sizes, own) {
        (SetSizes::Fixed, _) => SizeLaw::fixed(size),
        (SetSizes::Uniform, _) => SizeLaw::from_shares((least..=size).map(|n| (n, 1.0))),
        (SetSizes::Poisson, _) => {
            let mean = size as f64;
            // Beyond ten standard deviations nothing is left.
            let last = (mean + 10.0 * mean.sqrt()).ceil() as usize;
            let log_share = |n: usize| n as f64 * mean.ln() - mean - libm::lgamma(n as f64 + 1.0);
            SizeLaw::from_shares((least..=last).map(|n| (n, log_share(n).exp())))
        }
        (SetSizes::Own, Some(own)) => SizeLaw::fitted(own.iter().copied()),
        (SetSizes::Own, None) => {
            let expected =
                "fixed, uniform or poisson: built-in sets of the plane have no size of their own";
            Err(Error::invalid("data.sizes", expected, "own"))
        }
    }
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
            let sizes = sizes(data, None)?;
            return Ok(Self { dim: 2, source: source.clone(), held_out: source, size, sizes });
        }
        let clouds: CloudSource = match ShapeClass::named(&data.source) {
            Ok(class) => {
                let count = data.num_training + BUILT_IN_HELD_OUT;
                shape_clouds(class, SHAPE_SEED, 0, count, CLOUD_POINTS)?.into()
            }
            Err(_) if !Path::new(&data.source).exists() => {
                return Err(Error::refused(format!(
                    "`data.source` must name sets, found `{}`",
                    data.source
                ))
                .with_help(
                    "rings, sticks, airplane, chair, car, table, lamp, or a file or folder",
                ));
            }
            Err(_) => CloudSource::open(Path::new(&data.source))?,
        };
        Self::of_clouds(settings, &clouds)
    }

    /// Clouds that were read or given, the first ones to learn from.
    pub(in crate::model) fn of_clouds(
        settings: &SetEnergySettings,
        clouds: &CloudSource,
    ) -> Result<Self> {
        let data = &settings.data;
        let size = data.set_size;
        let (count, num_training) = (clouds.num_sets(), data.num_training);
        if num_training == 0 || num_training >= count {
            return Err(Error::refused(format!(
                "`{}` must hold more than {num_training} clouds, found {count}",
                data.source
            ))
            .with_help("some clouds must be left to judge by: lower `data.num_training`"));
        }
        let part = |members: Range<usize>| -> Result<SetSource> {
            let clouds = clouds.select(&members.collect::<Vec<_>>())?;
            Ok(match data.sizes {
                SetSizes::Own => SetSource::Whole(clouds),
                _ => SetSource::Clouds(clouds),
            })
        };
        let own: Vec<usize> = (0..num_training).map(|cloud| clouds.size(cloud)).collect();
        let sizes = sizes(data, Some(&own))?;
        let (source, held_out) = (part(0..num_training)?, part(num_training..count)?);
        Ok(Self { dim: clouds.dim(), source, held_out, size, sizes })
    }

    /// Sets that were not learned from.
    pub(crate) fn held_out(&self, count: usize) -> Vec<f32> {
        self.held_out.draw_each(count, self.size, self.dim, Stream::new(0, "held out"))
    }

    /// Sets of the kind that was learned from.
    pub(crate) fn training(&self, count: usize) -> Vec<f32> {
        self.source.draw_each(count, self.size, self.dim, Stream::new(0, "training sets"))
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
