//! Training on pictures: random parts are given, the rest is learned.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::ahead::{Ahead, Lesson};
use super::{Record, Step, Trainable};
use crate::data::image::{Images, KnownPart};
use crate::process::{Learner, Preparation, Task, picture_task};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, IndexedSet, Result};

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
#[derive(Debug)]
pub struct Pictures<L: ?Sized = dyn Learner> {
    tasks: Arc<Tasks>,
    process: Box<L>,
    ahead: Ahead<Lesson>,
}

/// Where tasks come from, and who makes batches of them.
#[derive(Debug)]
struct Tasks {
    images: Arc<Images>,
    config: PictureTaskConfig,
    preparation: Option<Preparation>,
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
        let preparation = process.preparation();
        let ahead = Ahead::new(process.learns_on_gpu());
        Ok(Self { process, tasks: Arc::new(Tasks { images, config, preparation }), ahead })
    }

    /// The process.
    pub fn process(&self) -> &L {
        &self.process
    }

    /// The process, to be changed.
    pub fn process_mut(&mut self) -> &mut L {
        &mut self.process
    }

    /// The process alone.
    pub fn into_process(self) -> Box<L> {
        self.process
    }
}

impl Tasks {
    fn lesson(&self, step: &Step) -> Result<Lesson> {
        Lesson::new(self.draw(step.stream.child(0))?, self.preparation.as_ref(), step)
    }

    fn draw(&self, stream: Stream) -> Result<Vec<Task>> {
        (0..self.config.num_pictures as u64)
            .into_par_iter()
            .map(|number| self.task(stream.child(number)))
            .collect()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times a count is one of the numbers below it"
    )]
    fn task(&self, stream: Stream) -> Result<Task> {
        let mut uniforms = [0.0; 5];
        stream.child(0).fill_uniform(0, 0, &mut uniforms);
        let [picture, kind, which, size, coin] = uniforms;
        let count = self.images.len();
        let index = ((f64::from(picture) * count as f64) as usize).min(count - 1);
        let (width, height) = (self.images.width, self.images.height);
        let part = self.config.part([kind, which, size], width.min(height));
        let mask = part.mask(width, height, stream.child(1));
        let mut task = picture_task(&self.images, index, &mask, stream.child(2))?;
        let most = self.config.max_target;
        if most > 0 && task.target.len() > most {
            let mut order = stream.child(3).permutation(task.target.len());
            order.truncate(most);
            task.target = task.target.select(&order);
        }
        if self.config.mirrors && coin < 0.5 {
            task = Task { context: mirrored(&task.context)?, target: mirrored(&task.target)? };
        }
        Ok(task)
    }
}

/// The same pixels with left and right exchanged.
fn mirrored(set: &IndexedSet) -> Result<IndexedSet> {
    let locations = set.locations().chunks_exact(2).flat_map(|t| [-t[0], t[1]]).collect();
    IndexedSet::new(2, set.value_dim(), locations, set.values().to_vec())
}

impl<L: Learner + ?Sized> Trainable for Pictures<L> {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let lesson = match self.ahead.take(step) {
            Some(lesson) => lesson?,
            None => self.tasks.lesson(step)?,
        };
        lesson.learn(self.process.as_mut(), step)
    }

    fn foresee(&mut self, next: &Step) {
        let (tasks, next) = (Arc::clone(&self.tasks), *next);
        self.ahead.begin(next, move || tasks.lesson(&next));
    }

    fn prepare(&mut self, step: &Step) -> Result<()> {
        let lesson = self.tasks.lesson(step)?;
        self.ahead.keep(*step, lesson);
        Ok(())
    }

    fn state(&self) -> Result<Tensors> {
        self.process.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.restore(state)
    }
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
        let set = IndexedSet::new(2, 1, vec![-1.0, 0.5, 0.25, 1.0], vec![0.1, 0.2]).unwrap();
        let found = mirrored(&set).unwrap();
        assert_eq!(found.locations(), [1.0, 0.5, -0.25, 1.0]);
        assert_eq!(found.values(), set.values());
        assert_eq!(mirrored(&found).unwrap(), set);
    }
}
