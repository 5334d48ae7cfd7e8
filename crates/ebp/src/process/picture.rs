//! A picture as the set of its pixels: t on [−1, 1]², x on [−1, 1].

use super::Task;
use crate::data::Grid;
use crate::data::image::Images;
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// The width of a cell of 8-bit levels on [−1, 1].
pub const LEVEL_CELL: f64 = 2.0 / 256.0;

/// Picture `index` cut into its known pixels and the others, every level uniform within its cell:
///
/// ```text
/// x = 2 (level + u) / 256 − 1,   u ~ U[0, 1)
/// ```
///
/// so that Gaussian outputs have a density to learn. Levels are found again exactly. `mask` says
/// which pixels are known.
///
/// # Errors
///
/// [`Error::InvalidValue`] if there is no such picture or the mask has another size or leaves
/// nothing to predict.
pub fn picture_task(images: &Images, index: usize, mask: &[bool], stream: Stream) -> Result<Task> {
    if index >= images.len() {
        return Err(Error::invalid("index", format!("below {}", images.len()), index));
    }
    let grid = Grid::new(images.width, images.height)?;
    if mask.len() != grid.num_places() {
        return Err(Error::invalid("mask", format!("{} pixels", grid.num_places()), mask.len()));
    }
    let pixels = images.image(index);
    let mut within = vec![0.0; pixels.len()];
    stream.fill_uniform(0, 0, &mut within);
    let part = |is_known: bool| {
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        for place in (0..grid.num_places()).filter(|&place| mask[place] == is_known) {
            locations.extend(grid.location(place));
            let numbers = place * images.channels..(place + 1) * images.channels;
            values.extend(numbers.map(|number| {
                (f64::from(pixels[number]) + f64::from(within[number])) / 128.0 - 1.0
            }));
        }
        IndexedSet::new(2, images.channels, locations, values)
    };
    let (context, target) = (part(true)?, part(false)?);
    if target.is_empty() {
        return Err(Error::invalid("mask", "at least one unknown pixel", "none"));
    }
    Ok(Task { context, target })
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
}
