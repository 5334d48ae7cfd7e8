//! Planar point patterns: points in a window of the plane, as Ripley's data sets are stored.
//!
//! ```text
//! 62                     number of points
//! REDWOODS               title
//! 0 1 -1 0 1             x from, x to, y from, y to, scale
//! 0.36 -0.08             x y, one or more points a line
//! ```
//!
//! Window and points are divided by the scale.

use std::fmt::Write;
use std::path::Path;

use crate::Result;

use super::file::{Lines, name_of, read_bytes};

/// Points in a rectangle.
#[derive(Clone, Debug, PartialEq)]
pub struct PointPattern {
    /// What it is called.
    pub title: String,
    /// From and to, of x and of y.
    pub window: [[f64; 2]; 2],
    /// The points, all inside.
    pub points: Vec<[f64; 2]>,
}

/// Reads a point pattern.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) if it cannot be read, otherwise as [`parse_pattern`].
pub fn read_pattern(path: &Path) -> Result<PointPattern> {
    parse_pattern(&read_bytes(path)?, &name_of(path))
}

/// Reads the bytes of a point pattern; `file` is how errors call it.
///
/// # Errors
///
/// [`Error::Malformed`](crate::Error::Malformed) with the line, also for points outside the window.
pub fn parse_pattern(bytes: &[u8], file: &str) -> Result<PointPattern> {
    let mut lines = Lines::new(file, bytes, None);
    let first = lines.expect("the number of points")?;
    let count = first.count(first.words().next(), "the number of points")?;
    let title = lines.expect("a title")?.text.to_owned();
    let line = lines.expect("the window, `x from, x to, y from, y to, scale`")?;
    let bounds: Vec<f64> = line.words().map(|word| line.number(word)).collect::<Result<_>>()?;
    let ([x0, x1, y0, y1, scale], true) =
        (<[f64; 5]>::try_from(bounds).unwrap_or_default(), line.words().count() == 5)
    else {
        return Err(line.error("five numbers: the window and the scale", line.text));
    };
    let is_window = x0 < x1 && y0 < y1 && [x0, x1, y0, y1].iter().all(|bound| bound.is_finite());
    if !(is_window && scale > 0.0 && scale.is_finite()) {
        return Err(line.error("rising bounds and a positive scale", line.text));
    }
    let window = [[x0 / scale, x1 / scale], [y0 / scale, y1 / scale]];
    let mut numbers = Vec::new();
    while let Some(line) = lines.next_line()? {
        for word in line.words() {
            let number = line.number(word)? / scale;
            let [from, to] = window[numbers.len() % 2];
            if !(from..=to).contains(&number) {
                return Err(line.error(format!("a point inside {from} to {to}"), word));
            }
            numbers.push(number);
        }
    }
    if numbers.len() % 2 != 0 || numbers.len() / 2 != count || count == 0 {
        let found = format!("{} numbers", numbers.len());
        return Err(first.error(format!("{count} points, as this line says"), found));
    }
    let points = numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    Ok(PointPattern { title, window, points })
}

/// The pattern as text, with scale 1.
pub fn pattern_bytes(pattern: &PointPattern) -> Vec<u8> {
    let [[x0, x1], [y0, y1]] = pattern.window;
    let mut text = format!("{}\n{}\n{x0} {x1} {y0} {y1} 1\n", pattern.points.len(), pattern.title);
    for [x, y] in &pattern.points {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{x} {y}");
    }
    text.into_bytes()
}
