//! `ebp data strokes`: pictures of strokes as sets of points.

use ebp::data::image::{ImageOptions, read_images};
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::strokes::stroke_clouds;
use ebp::rng::Stream;
use serde::Serialize;

use super::arguments::StrokesArguments;
use crate::failure::Failure;
use crate::{output, progress};

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    out: String,
    pictures: usize,
    /// Of each.
    points: usize,
}

pub(super) fn run(arguments: &StrokesArguments) -> Result<(), Failure> {
    let options = ImageOptions { is_grey: true, ..ImageOptions::default() };
    let read = || read_images(&arguments.source, &options);
    let mut images = progress::during(false, "reading", read)?;
    if let Some(count) = arguments.count.filter(|&count| count < images.len()) {
        drop(images.split_off(count));
    }
    let stream = Stream::new(arguments.seed, "strokes");
    let draw = || stroke_clouds(&images, 0, arguments.points, stream);
    let clouds = progress::during(false, "drawing points", draw)?;
    let shape = vec![clouds.num_clouds(), arguments.points, 2];
    let array = Array::new(shape, clouds.points().to_vec())?;
    write_npy(&arguments.out, &array, Precision::Single)?;
    let report = Report {
        out: arguments.out.display().to_string(),
        pictures: clouds.num_clouds(),
        points: arguments.points,
    };
    if arguments.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    let Report { out, pictures, points } = &report;
    output::print(&format!("{pictures} pictures, {points} points each, in {out}\n"))
}
