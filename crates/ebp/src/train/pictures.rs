//! Training on pictures: random parts are given, the rest is learned.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::tasks::{TaskTraining, Tasks};
use crate::batch::{SetBatch, TaskBatch};
use crate::data::image::{Images, KnownPart};
use crate::process::{Learner, cut_picture};
use crate::rng::Stream;
use crate::{Error, Result};

/// What a step learns from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PictureTaskConfig {
    /// Pictures per step.
    pub num_pictures: usize,
    /// The fewest known pixels; their number is uniform on a logarithmic scale.
    pub min_context: usize,
    /// The most.
    pub max_context: usize,
    /// The share of pictures whose known part is a half or surrounds a hole; half of these have
    /// the upper half.
    pub contiguous: f64,
    /// At most so many unknown pixels are asked for; 0 for all of them. For models that cannot
    /// choose a part themselves.
    pub max_target: usize,
    /// Whether every other picture, by a coin, is mirrored: left becomes right. Twice as many
    /// faces, but no digits.
    pub mirrors: bool,
}

impl Default for PictureTaskConfig {
    /// 64 pictures, from 10 known pixels to about half of 28 × 28; of three in ten the known part
    /// is contiguous.
    fn default() -> Self {
        Self {
            num_pictures: 64,
            min_context: 10,
            max_context: 400,
            contiguous: 0.3,
            max_target: 0,
            mirrors: false,
        }
    }
}

impl PictureTaskConfig {
    fn check(&self, num_pixels: usize) -> Result<()> {
        if self.num_pictures == 0 {
            return Err(Error::invalid("num_pictures", "at least 1", self.num_pictures));
        }
        if self.min_context == 0 || self.min_context > self.max_context {
            let expected = format!("from 1 to max_context = {}", self.max_context);
            return Err(Error::invalid("min_context", expected, self.min_context));
        }
        if self.max_context >= num_pixels {
            let expected = format!("below the {num_pixels} pixels of a picture");
            return Err(Error::invalid("max_context", expected, self.max_context));
        }
        if !(0.0..=1.0).contains(&self.contiguous) {
            return Err(Error::invalid("contiguous", "between 0 and 1", self.contiguous));
        }
        Ok(())
    }

    /// Which part of a picture is given; a function of three uniforms.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number between two counts is a count"
    )]
    fn part(&self, [kind, which, size]: [f32; 3], side: usize) -> KnownPart {
        if f64::from(kind) < self.contiguous {
            return match (which * 8.0) as u32 {
                0..=3 => KnownPart::TopHalf,
                4 => KnownPart::BottomHalf,
                5 => KnownPart::LeftHalf,
                6 => KnownPart::RightHalf,
                _ => KnownPart::AroundHole(side / 4 + (size * (side / 2) as f32) as usize),
            };
        }
        let (low, high) = ((self.min_context as f64).ln(), ((self.max_context + 1) as f64).ln());
        let count = (low + f64::from(size) * (high - low)).exp() as usize;
        KnownPart::Random(count.clamp(self.min_context, self.max_context))
    }
}

/// A process and the pictures it learns from.
pub type Pictures<L = dyn Learner> = TaskTraining<L, PictureTasks>;

/// Tasks of pictures, as f32 numbers from the pixels on.
#[derive(Debug)]
pub struct PictureTasks {
    images: Arc<Images>,
    config: PictureTaskConfig,
}

impl<L: Learner + ?Sized> Pictures<L> {
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range or there is no picture.
    pub fn new(process: Box<L>, images: Arc<Images>, config: PictureTaskConfig) -> Result<Self> {
        config.check(images.width * images.height)?;
        if images.is_empty() {
            return Err(Error::invalid("images", "at least one", 0));
        }
        Ok(Self::of(process, PictureTasks { images, config }))
    }
}

impl Tasks for PictureTasks {
    fn batch(&self, stream: Stream) -> Result<TaskBatch> {
        let tasks = (0..self.config.num_pictures as u64)
            .into_par_iter()
            .map(|number| self.task(stream.child(number)))
            .collect::<Result<Vec<_>>>()?;
        TaskBatch::joined(tasks)
    }
}

impl PictureTasks {
    /// A batch of one picture.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times a count is one of the numbers below it"
    )]
    fn task(&self, stream: Stream) -> Result<TaskBatch> {
        let mut uniforms = [0.0; 5];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let [picture, kind, which, size, coin] = uniforms;
        let count = self.images.len();
        let index = ((f64::from(picture) * count as f64) as usize).min(count - 1);
        let (width, height) = (self.images.width, self.images.height);
        let part = self.config.part([kind, which, size], width.min(height));
        let mask = part.mask(width, height, stream.child(1));
        let mut task = cut_picture(&self.images, index, &mask, stream.child(2))?;
        let (most, found) = (self.config.max_target, task.target.num_elements());
        if most > 0 && found > most {
            let mut order = stream.child(3).permutation(found);
            order.truncate(most);
            task.target = task.target.select(0, &order);
        }
        if self.config.mirrors && coin < 0.5 {
            task = TaskBatch { context: mirrored(&task.context)?, target: mirrored(&task.target)? };
        }
        Ok(task)
    }
}

/// The same pixels of a picture with left and right exchanged.
fn mirrored(picture: &SetBatch) -> Result<SetBatch> {
    let pairs = picture.all_locations().chunks_exact(2);
    let locations: Vec<f32> = pairs.flat_map(|t| [-t[0], t[1]]).collect();
    let mut mirrored = SetBatch::new(2, picture.value_dim());
    mirrored.push(&locations, picture.all_values())?;
    Ok(mirrored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_reach_both_ends_and_every_kind() {
        let config = PictureTaskConfig { min_context: 3, max_context: 50, ..Default::default() };
        config.check(64).unwrap();
        assert_eq!(config.part([0.9, 0.0, 0.0], 8), KnownPart::Random(3));
        assert_eq!(config.part([0.9, 0.0, 0.999_999], 8), KnownPart::Random(50));
        assert_eq!(config.part([0.0, 0.1, 0.0], 8), KnownPart::TopHalf);
        assert_eq!(config.part([0.0, 0.9, 0.0], 8), KnownPart::AroundHole(2));
        assert!(config.check(50).is_err());
        assert!(PictureTaskConfig { contiguous: 1.5, ..config }.check(64).is_err());
    }

    #[test]
    fn a_mirrored_picture_has_its_pixels_on_the_other_side() {
        let mut set = SetBatch::new(2, 1);
        set.push(&[-1.0, 0.5, 0.25, 1.0], &[0.1, 0.2]).unwrap();
        let found = mirrored(&set).unwrap();
        assert_eq!(found.locations(0), [1.0, 0.5, -0.25, 1.0]);
        assert_eq!(found.values(0), set.values(0));
        assert_eq!(mirrored(&found).unwrap(), set);
    }
}
