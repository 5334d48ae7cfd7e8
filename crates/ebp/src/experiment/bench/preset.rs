//! Whole training steps of presets over random data of their sizes.
//!
//! What trains is what `ebp train PRESET` builds, with the numbers of the preset; only the data are
//! drawn. Where `BenchSizes` is smaller than the preset, it is cut to as many sets and as many points
//! (or pixels) in each, with no more proposals, draws and elements of a block than points.
//!
//! Every step reads a batch of its own. On the CPU it is made before the clock starts, because making
//! it takes the step's own cores. On a GPU it is made during the step before, as in training, so that
//! the time of a step is everything between two steps.

use std::sync::Arc;

use super::case::Runner;
use super::size::BenchSizes;
use super::step::FEWEST_PROPOSALS;
use crate::data::image::Images;
use crate::data::{CloudSource, Clouds};
use crate::model::{
    CloudScale, CloudSettings, Device, PictureSettings, Settings, cloud_training, picture_training,
};
use crate::rng::Stream;
use crate::train::{Step, Trainable};
use crate::{Error, Result, SetOffsets};

/// Coordinates of a point: shapes lie in space.
const SPACE: usize = 3;
/// The smallest side of a picture, so that one pixel is known and others are not.
const LEAST_SIDE: usize = 2;

/// A preset in training.
#[derive(Debug)]
pub(super) struct PresetStep {
    training: Box<dyn Trainable>,
    settings: Settings,
    stream: Stream,
    next: u64,
    is_gpu: bool,
}

impl PresetStep {
    pub(super) fn new(
        preset: &str,
        sizes: &BenchSizes,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let mut settings = Settings::preset(preset, &[format!("seed={seed}")])?;
        let stream = Stream::new(seed, preset);
        let training: Box<dyn Trainable> = match &mut settings {
            Settings::Clouds(settings) => {
                cut_clouds(settings, sizes);
                Box::new(clouds(settings, stream, device)?)
            }
            Settings::Pictures(settings) => {
                cut_pictures(settings, sizes);
                Box::new(pictures(settings, stream, device)?)
            }
            other => {
                let message = format!("there is no benchmark of presets of {}", other.kind());
                return Err(Error::refused(message));
            }
        };
        Ok(Self { training, settings, stream, next: 0, is_gpu: device.gpu().is_some() })
    }

    fn step(&self, number: u64) -> Step {
        let (num_steps, stream) = (self.settings.trainer().num_steps, self.stream.child(number));
        Step { number, num_steps, stream, learning_rate_factor: 1.0 }
    }
}

impl Runner for PresetStep {
    fn prepare(&mut self) -> Result<()> {
        let step = self.step(self.next);
        if self.is_gpu { Ok(()) } else { self.training.prepare(&step) }
    }

    fn run(&mut self) -> Result<()> {
        let (this, next) = (self.step(self.next), self.step(self.next + 1));
        if self.is_gpu {
            self.training.foresee(&next);
        }
        self.training.step(&this)?;
        self.next += 1;
        Ok(())
    }

    fn settings(&self) -> Option<&Settings> {
        Some(&self.settings)
    }
}

/// At most so many sets of so many points.
fn cut_clouds(settings: &mut CloudSettings, sizes: &BenchSizes) {
    let model = &mut settings.model;
    for (number, most) in [
        (&mut settings.batch_size, sizes.sets),
        (&mut settings.data.num_points, sizes.points),
        (&mut model.num_proposals, sizes.points.max(FEWEST_PROPOSALS)),
        (&mut model.sampler.num_draws, sizes.points),
        (&mut model.sampler.block_elements, sizes.points),
    ] {
        *number = (*number).min(most);
    }
    // Every component of a mixture is drawn as often.
    let sampler = &mut model.sampler;
    sampler.num_components = sampler.num_components.min(sampler.num_draws);
    sampler.num_draws -= sampler.num_draws % sampler.num_components;
}

/// At most so many pictures of so many pixels.
fn cut_pictures(settings: &mut PictureSettings, sizes: &BenchSizes) {
    let (data, tasks) = (&mut settings.data, &mut settings.tasks);
    data.side = data.side.min(sizes.points.isqrt().max(LEAST_SIDE));
    tasks.num_pictures = tasks.num_pictures.min(sizes.sets);
    tasks.max_context = tasks.max_context.min(data.side * data.side - 1);
    tasks.min_context = tasks.min_context.min(tasks.max_context);
}

/// Standard normal points.
fn clouds(
    settings: &CloudSettings,
    stream: Stream,
    device: &Device,
) -> Result<impl Trainable + use<>> {
    let (sets, points) = (settings.batch_size, settings.data.num_points);
    let mut values = vec![0.0; sets * points * SPACE];
    stream.fill_normal(0, 0, &mut values);
    let names = (0..sets).map(|set| set.to_string()).collect();
    let clouds = Clouds::new(SPACE, values, SetOffsets::uniform(sets, points)?, names)?;
    let clouds = CloudSource::from(clouds);
    let scale = CloudScale::of(clouds.statistics()?, false);
    cloud_training(settings, &clouds.standardised(scale.affine.clone())?, &scale, device)
}

/// Pictures of uniform levels.
fn pictures(
    settings: &PictureSettings,
    stream: Stream,
    device: &Device,
) -> Result<impl Trainable + use<>> {
    let (count, side) = (settings.tasks.num_pictures, settings.data.side);
    let channels = if settings.data.is_grey { 1 } else { 3 };
    let mut levels = vec![0.0; count * side * side * channels];
    stream.fill_uniform(0, 0, &mut levels);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, 256)")]
    let pixels = levels.iter().map(|level| (level * 256.0) as u8).collect();
    let names = (0..count).map(|number| number.to_string()).collect();
    let images = Arc::new(Images::new(side, side, channels, pixels, names)?);
    picture_training(settings, &images, device)
}

#[cfg(test)]
mod tests {
    use super::super::BenchCase;
    use super::*;

    /// At the size of the paper nothing of a preset is changed.
    #[test]
    fn the_numbers_are_those_of_the_preset() {
        let sizes = BenchSizes::paper_cloud();
        for preset in BenchCase::ALL.into_iter().filter_map(BenchCase::preset) {
            let settings = Settings::preset(preset, &["seed=1"]).unwrap();
            let mut cut = settings.clone();
            match &mut cut {
                Settings::Clouds(settings) => cut_clouds(settings, &sizes),
                Settings::Pictures(settings) => cut_pictures(settings, &sizes),
                other => panic!("{preset} is of {}", other.kind()),
            }
            assert_eq!(cut, settings, "{preset}");
        }
    }

    #[test]
    fn every_preset_of_a_case_takes_a_step_at_a_tiny_size() {
        let sizes = BenchSizes { sets: 2, points: 5, ..BenchSizes::small() };
        for preset in BenchCase::ALL.into_iter().filter_map(BenchCase::preset) {
            let mut step = PresetStep::new(preset, &sizes, 1, &Device::cpu()).unwrap();
            for _ in 0..2 {
                step.prepare().unwrap();
                step.run().unwrap();
            }
        }
    }

    #[test]
    fn a_preset_of_curves_is_refused() {
        let step = PresetStep::new("sines", &BenchSizes::small(), 1, &Device::cpu());
        let error = step.unwrap_err().to_string();
        assert_eq!(error, "there is no benchmark of presets of curves");
    }
}
