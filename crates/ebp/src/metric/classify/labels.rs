//! Classes of items, from whole numbers in a `.npy` file or from names in a text file.

use std::cmp::Ordering;
use std::path::Path;

use crate::data::npy::read_npy;
use crate::{Error, Result};

/// The class of each item by its place in the sorted list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// All names that occur; whole numbers by size, others by letter.
    pub names: Vec<String>,
    /// `[n]`.
    pub labels: Vec<usize>,
}

impl Classes {
    /// The classes that occur in `all`, which was read from `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are fewer than two.
    pub fn of(all: &[String], path: &Path) -> Result<Self> {
        let mut names = all.to_vec();
        names.sort_by(|a, b| by_size_or_letter(a, b));
        names.dedup();
        if names.len() < 2 {
            return Err(Error::refused(format!(
                "`{}` must hold at least two different classes, found {}",
                path.display(),
                names.len()
            )));
        }
        let place = |name: &String| names.binary_search_by(|known| by_size_or_letter(known, name));
        // Every name is in the list that was made of them.
        let labels = all.iter().filter_map(|name| place(name).ok()).collect();
        Ok(Self { names, labels })
    }
}

fn by_size_or_letter(a: &str, b: &str) -> Ordering {
    match (a.parse::<i64>(), b.parse::<i64>()) {
        (Ok(x), Ok(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        _ => a.cmp(b),
    }
}

/// The class of every item: whole numbers of a `.npy` file, or lines of a text.
///
/// # Errors
///
/// [`Error::Refused`] if the file cannot be read or holds something else.
pub fn read_labels(path: &Path) -> Result<Vec<String>> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy")) {
        return whole_numbers(path);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::refused(format!("cannot read `{}`: {error}", path.display())))?;
    let mut names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    match names.iter().position(String::is_empty) {
        None => Ok(names),
        Some(line) => Err(Error::refused(format!(
            "`{}`, line {}: expected the name of a class, found nothing",
            path.display(),
            line + 1
        ))),
    }
}

fn whole_numbers(path: &Path) -> Result<Vec<String>> {
    // Whole numbers below 2⁵³ are exact.
    let array = read_npy::<f64>(path).map_err(|error| Error::refused(error.to_string()))?;
    if array.shape.iter().filter(|&&axis| axis != 1).count() > 1 {
        return Err(Error::refused(format!(
            "`{}` must hold one whole number per item, found shape {:?}",
            path.display(),
            array.shape
        )));
    }
    let name = |(index, &value): (usize, &f64)| {
        if value.fract() == 0.0 && value.abs() < 9e15 {
            return Ok(format!("{value}"));
        }
        Err(Error::refused(format!(
            "`{}` must hold whole numbers, found {value} at index {index}",
            path.display()
        )))
    };
    array.values.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sorted_by_size_and_names_by_letter() {
        let all = ["10", "9", "-1", "9"].map(str::to_owned);
        let classes = Classes::of(&all, Path::new("labels.npy")).unwrap();
        assert_eq!(classes.names, ["-1", "9", "10"]);
        assert_eq!(classes.labels, [2, 1, 0, 1]);
        let all = ["table", "chair", "2"].map(str::to_owned);
        let classes = Classes::of(&all, Path::new("labels.txt")).unwrap();
        assert_eq!(classes.names, ["2", "chair", "table"]);
        assert!(Classes::of(&all[..1], Path::new("labels.txt")).is_err());
    }
}
