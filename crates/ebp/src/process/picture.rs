//! A picture as the set of its pixels: t on [−1, 1]², x on [−1, 1].

use super::Task;
use crate::batch::{SetBatch, TaskBatch};
use crate::data::Grid;
use crate::data::image::Images;
use crate::energy::Alphabet;
use crate::rng::Stream;
use crate::{Error, Result};

/// The width of a cell of 8-bit levels on [−1, 1].
pub const LEVEL_CELL: f64 = 2.0 / 256.0;

/// Picture `index` cut into its known pixels and the others, every level uniform within its cell:
///
/// ```text
/// x = 2 (level + u) / 256 − 1,   u ~ U[0, 1)
/// ```
///
/// so that Gaussian outputs have a density to learn. Levels are found again exactly. `mask` says
/// which pixels are known. The batch has one set.
///
/// # Errors
///
/// [`Error::InvalidValue`] if there is no such picture or the mask has another size or leaves
/// nothing to predict.
pub fn cut_picture(
    images: &Images,
    index: usize,
    mask: &[bool],
    stream: Stream,
) -> Result<TaskBatch> {
    if index >= images.len() {
        return Err(Error::invalid("index", format!("below {}", images.len()), index));
    }
    let grid = Grid::new(images.width, images.height)?;
    if mask.len() != grid.num_places() {
        return Err(Error::invalid("mask", format!("{} pixels", grid.num_places()), mask.len()));
    }
    if mask.iter().all(|&is_known| is_known) {
        return Err(Error::invalid("mask", "at least one unknown pixel", "none"));
    }
    let (pixels, channels) = (images.image(index), images.channels);
    let mut within = vec![0.0; pixels.len()];
    stream.fill_uniform(0, 0, &mut within);
    let part =
        |is_known: bool| -> Result<SetBatch> {
            let (mut locations, mut values) = (Vec::new(), Vec::new());
            for place in (0..grid.num_places()).filter(|&place| mask[place] == is_known) {
                #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
                locations.extend(grid.location(place).map(|t| t as f32));
                let numbers = place * channels..(place + 1) * channels;
                values.extend(numbers.map(|number| {
                    Alphabet::PIXELS.spread(u32::from(pixels[number]), within[number])
                }));
            }
            let mut part = SetBatch::new(2, channels);
            part.push(&locations, &values)?;
            Ok(part)
        };
    Ok(TaskBatch { context: part(true)?, target: part(false)? })
}

/// The same in f64, as single predictions are asked for.
///
/// # Errors
///
/// As [`cut_picture`].
pub fn picture_task(images: &Images, index: usize, mask: &[bool], stream: Stream) -> Result<Task> {
    Task::of_batch(&cut_picture(images, index, mask, stream)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_in_one_part_and_keeps_its_level() {
        let pixels: Vec<u8> = (0..=255).collect();
        let images = Images::new(16, 16, 1, pixels, vec!["ramp".into()]).unwrap();
        let mask: Vec<bool> = (0..256).map(|place| place % 3 == 0).collect();
        let task = picture_task(&images, 0, &mask, Stream::new(1, "u")).unwrap();
        let all = task.union().unwrap();
        let grid = Grid::new(16, 16).unwrap();
        for index in 0..all.len() {
            let place = grid.place(all.location(index)).unwrap();
            let level = ((all.value(index)[0] + 1.0) * 128.0).floor();
            assert!((level - place as f64).abs() < 1e-9);
        }
        assert_eq!(task.context.len(), 86);
        assert!(picture_task(&images, 1, &mask, Stream::new(1, "u")).is_err());
        assert!(picture_task(&images, 0, &[true; 256], Stream::new(1, "u")).is_err());
        assert!(picture_task(&images, 0, &[true; 4], Stream::new(1, "u")).is_err());
    }

    /// The largest share below 1 of a high level rounds to the end of its cell, which is not in it.
    #[test]
    fn no_share_of_a_cell_rounds_into_the_next() {
        for level in 0..=255_u32 {
            for share in [0.0, 0.5, 1.0_f32.next_down()] {
                let found =
                    ((f64::from(Alphabet::PIXELS.spread(level, share)) + 1.0) * 128.0).floor();
                assert!((found - f64::from(level)).abs() < 1e-9, "{level} {share}: {found}");
            }
        }
    }
}
