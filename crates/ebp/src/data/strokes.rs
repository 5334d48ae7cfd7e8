//! Sets of points from pictures of strokes, as "spatial MNIST" has them: a pixel is drawn with a
//! probability proportional to its intensity, and the point is uniform within it.
//!
//! ```text
//! x = 2 (column + u)/width − 1,   y = 1 − 2 (row + u′)/height,   both in [−1, 1], y up
//! ```

use crate::rng::Stream;
use crate::{Error, Result, SetOffsets};

use super::Clouds;
use super::image::Images;

/// `num_points` points of every picture; picture i has the same points wherever it stands among others
/// if `stream` and its number `first` + i are the same.
///
/// # Errors
///
/// [`Error::InvalidValue`] if the pictures are not grey, one is all black, or there are no points.
pub fn stroke_clouds(
    images: &Images,
    first: u64,
    num_points: usize,
    stream: Stream,
) -> Result<Clouds> {
    if images.channels != 1 {
        return Err(Error::invalid("channels", "1: pictures of strokes are grey", images.channels));
    }
    let mut points = Vec::with_capacity(images.len() * num_points * 2);
    for index in 0..images.len() {
        let stream = stream.child(first + index as u64);
        let drawn = stroke_points(images.image(index), images.width, num_points, stream);
        points.extend(drawn.ok_or_else(|| {
            Error::invalid(format!("picture `{}`", images.names[index]), "not all black", "black")
        })?);
    }
    let offsets = SetOffsets::uniform(images.len(), num_points)?;
    Clouds::new(2, points, offsets, images.names.clone())
}

/// Points of one picture of levels; `None` if all are 0.
fn stroke_points(
    levels: &[u8],
    width: usize,
    num_points: usize,
    stream: Stream,
) -> Option<Vec<f32>> {
    let mut total = 0_u32;
    let sums: Vec<u32> = levels
        .iter()
        .map(|&level| {
            total += u32::from(level);
            total
        })
        .collect();
    let height = levels.len() / width.max(1);
    let (mut picks, mut places) = (vec![0.0; num_points], vec![0.0; 2 * num_points]);
    stream.child(0).fill_uniform(0, 0, &mut picks);
    stream.child(1).fill_uniform(0, 0, &mut places);
    let mut points = Vec::with_capacity(2 * num_points);
    for (pick, place) in picks.iter().zip(places.chunks_exact(2)) {
        let level = f64::from(*pick) * f64::from(total);
        // The first pixel whose running sum is above the level has an intensity of its own.
        let pixel = sums.partition_point(|&sum| f64::from(sum) <= level);
        if pixel == sums.len() {
            return None;
        }
        let (row, column) = (pixel / width, pixel % width);
        points.push(2.0 * (column as f32 + place[0]) / width as f32 - 1.0);
        points.push(1.0 - 2.0 * (row as f32 + place[1]) / height as f32);
    }
    Some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(pixels: Vec<u8>) -> Images {
        let names = (0..pixels.len() / 4).map(|i| i.to_string()).collect();
        Images { width: 2, height: 2, channels: 1, pixels, names }
    }

    /// Levels 0, 3 above and 1, 0 below: three quarters of the points at the upper right.
    #[test]
    fn points_follow_the_intensity_and_fill_their_pixels() {
        let stream = Stream::new(1, "strokes");
        let clouds = stroke_clouds(&images(vec![0, 3, 1, 0]), 0, 4000, stream).unwrap();
        let (mut right, mut sum) = (0, 0.0);
        for point in clouds.cloud(0).chunks_exact(2) {
            assert!((point[0] > 0.0) == (point[1] > 0.0), "{point:?}");
            right += i32::from(point[0] > 0.0);
            sum += f64::from(point[0].abs());
        }
        // Standard errors √(0.75 · 0.25/4000) and √(1/12/4000): four of each.
        assert!((f64::from(right) / 4000.0 - 0.75).abs() < 0.0274);
        assert!((sum / 4000.0 - 0.5).abs() < 0.0183);
    }

    #[test]
    fn a_picture_keeps_its_points_and_a_black_one_is_refused() {
        let stream = Stream::new(1, "strokes");
        let both = stroke_clouds(&images(vec![0, 3, 1, 0, 9, 9, 1, 2]), 5, 20, stream).unwrap();
        let second = stroke_clouds(&images(vec![9, 9, 1, 2]), 6, 20, stream).unwrap();
        assert_eq!(both.cloud(1), second.cloud(0));
        let error = stroke_clouds(&images(vec![0; 4]), 0, 20, stream).unwrap_err().to_string();
        assert!(error.contains("not all black"), "{error}");
        let colour = Images { channels: 3, pixels: vec![1; 12], ..images(vec![1; 4]) };
        assert!(stroke_clouds(&colour, 0, 20, stream).is_err());
        assert!(stroke_clouds(&images(vec![1; 4]), 0, 0, stream).is_err());
    }
}
