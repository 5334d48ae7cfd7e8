//! `ebp data strokes`: pictures of strokes as sets of points.

use std::io::{Write, stdout};

use ebp::data::image::{ImageOptions, read_images};
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::strokes::stroke_clouds;
use ebp::rng::Stream;

use super::arguments::StrokesArguments;
use crate::failure::Failure;

pub(super) fn run(arguments: &StrokesArguments) -> Result<(), Failure> {
    let options = ImageOptions { is_grey: true, ..ImageOptions::default() };
    let mut images = read_images(&arguments.source, &options)?;
    if let Some(count) = arguments.count.filter(|&count| count < images.len()) {
        drop(images.split_off(count));
    }
    let stream = Stream::new(arguments.seed, "strokes");
    let clouds = stroke_clouds(&images, 0, arguments.points, stream)?;
    let shape = vec![clouds.num_clouds(), arguments.points, 2];
    let array = Array::new(shape, clouds.points().to_vec())?;
    write_npy(&arguments.out, &array, Precision::Single)?;
    writeln!(
        stdout(),
        "{} pictures, {} points each, in {}",
        clouds.num_clouds(),
        arguments.points,
        arguments.out.display()
    )?;
    Ok(())
}
