//! Points as text, one a line: `.xyz`, `.txt`, `.pts`, `.asc`.
//!
//! Blanks, commas or semicolons separate. The first three columns are the coordinates, or both
//! where there are two; normals and colours behind them are left out. A first line with a single
//! whole number says how many points follow, as in `.pts`.

use std::io::Write;

use crate::Result;
use crate::data::cloud::Cloud;
use crate::data::file::{Lines, Real};

/// Coordinates of a point at most.
const MOST_DIMS: usize = 3;

/// Reads a cloud of two or three dimensions.
pub(crate) fn parse(bytes: &[u8], file: &str) -> Result<Cloud> {
    let mut lines = Lines::new(file, bytes, Some("#"));
    let mut line = lines.expect("a point such as `0.5 1 -0.5`")?;
    let mut claimed = None;
    if line.words().count() == 1 {
        let word = line.words().next();
        claimed = Some((line, line.count(word, "a point, or the number of points")?));
        line = lines.expect("the first point")?;
    }
    let num_columns = line.words().count();
    if num_columns < 2 {
        return Err(line.error("two or three coordinates", format!("`{}`", line.text)));
    }
    let dim = num_columns.min(MOST_DIMS);
    let mut points: Vec<f32> = Vec::new();
    loop {
        let mut num_words = 0;
        for word in line.words() {
            if num_words < dim {
                points.push(f32::nearest(line.number(word)?));
            }
            num_words += 1;
        }
        if num_words != num_columns {
            let expected = format!("{num_columns} numbers as before");
            return Err(line.error(expected, num_words.to_string()));
        }
        match lines.next_line()? {
            Some(next) => line = next,
            None => break,
        }
    }
    if let Some((line, claimed)) = claimed
        && claimed != points.len() / dim
    {
        let found = format!("{} in the file", points.len() / dim);
        return Err(line.error(format!("{claimed} points, as this line says"), found));
    }
    Ok(Cloud { dim, points })
}

/// Writes a cloud, one point a line.
pub(crate) fn write(cloud: &Cloud, out: &mut impl Write) -> std::io::Result<()> {
    for point in cloud.points.chunks_exact(cloud.dim.max(1)) {
        let words: Vec<String> = point.iter().map(ToString::to_string).collect();
        writeln!(out, "{}", words.join(" "))?;
    }
    Ok(())
}
