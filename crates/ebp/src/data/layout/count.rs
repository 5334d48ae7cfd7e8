//! Counting what a copy of a data set holds, from headers and lists where they are enough.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::data::cloud::files_below;
use crate::data::file::{Archive, extension, name_of, read_bytes};
use crate::data::image::is_image;
use crate::data::npy::npy_shape;
use crate::data::pattern::read_pattern;
use crate::{Error, Result};

use super::Count;

/// How many there are in a place that exists.
pub(super) fn count(place: &Path, count: Count) -> Result<usize> {
    match count {
        Count::Files(ending) => Ok(files_below(place, &|file| extension(file) == ending)?.len()),
        Count::FilesIn(folder, ending) => {
            let is_wanted = |file: &Path| {
                extension(file) == ending && file.iter().any(|part| part.to_str() == Some(folder))
            };
            Ok(files_below(place, &is_wanted)?.len())
        }
        Count::Rows => {
            let files = if place.is_dir() {
                files_below(place, &|file| extension(file) == "npy")?
            } else {
                vec![place.to_path_buf()]
            };
            let mut rows = 0;
            for file in files {
                rows += npy_shape(&file)?.first().copied().unwrap_or(0);
            }
            Ok(rows)
        }
        Count::Items => items_of_idx(place),
        Count::Pictures => pictures(place),
        Count::Lines => {
            let bytes = read_bytes(place)?;
            Ok(bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count())
        }
        Count::Points => Ok(read_pattern(place)?.points.len()),
    }
}

/// The first axis in an IDX file's header.
fn items_of_idx(path: &Path) -> Result<usize> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    let mut head = [0; 8];
    let read = if extension(path) == "gz" {
        flate2::read::GzDecoder::new(file).read_exact(&mut head)
    } else {
        BufReader::new(file).read_exact(&mut head)
    };
    read.map_err(Error::io("read", path))?;
    Ok(u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize)
}

/// Pictures of a folder, and of zip archives in it.
fn pictures(place: &Path) -> Result<usize> {
    let files = if place.is_dir() {
        files_below(place, &|file| is_image(file) || extension(file) == "zip")?
    } else {
        vec![place.to_path_buf()]
    };
    let mut number = 0;
    for path in files {
        if extension(&path) != "zip" {
            number += 1;
            continue;
        }
        let name = name_of(&path);
        let file = File::open(&path).map_err(Error::io("read", &path))?;
        let archive = Archive::open(&name, BufReader::new(file))?;
        let entries = (0..archive.len()).filter_map(|index| archive.name(index));
        number += entries.filter(|entry| is_image(Path::new(entry))).count();
    }
    Ok(number)
}
