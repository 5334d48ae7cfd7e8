//! Classes of items, from whole numbers in a `.npy` file or from names in a text file.

use std::cmp::Ordering;
use std::path::Path;

use ebp::data::npy::read_npy;
use miette::miette;

use super::unreadable;
use crate::failure::Failure;

/// The class of each item by its place in the sorted list of names.
#[derive(Debug)]
pub(super) struct Classes {
    /// All names that occur; whole numbers by size, others by letter.
    pub(super) names: Vec<String>,
    /// `[n]`.
    pub(super) labels: Vec<usize>,
}

impl Classes {
    /// The classes that occur in `all`, which was read from `path`.
    pub(super) fn of(all: &[String], path: &Path) -> Result<Self, Failure> {
        let mut names = all.to_vec();
        names.sort_by(|a, b| by_size_or_letter(a, b));
        names.dedup();
        if names.len() < 2 {
            return Err(Failure::Usage(miette!(
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

/// One name per item.
pub(super) fn read_labels(path: &Path) -> Result<Vec<String>, Failure> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy")) {
        return whole_numbers(path);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(miette!("cannot read `{}`: {error}", path.display())))?;
    let mut names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    match names.iter().position(String::is_empty) {
        None => Ok(names),
        Some(line) => Err(Failure::Usage(miette!(
            "`{}`, line {}: expected the name of a class, found nothing",
            path.display(),
            line + 1
        ))),
    }
}

fn whole_numbers(path: &Path) -> Result<Vec<String>, Failure> {
    // Whole numbers below 2⁵³ are exact.
    let array = read_npy::<f64>(path).map_err(unreadable)?;
    if array.shape.iter().filter(|&&axis| axis != 1).count() > 1 {
        return Err(Failure::Usage(miette!(
            "`{}` must hold one whole number per item, found shape {:?}",
            path.display(),
            array.shape
        )));
    }
    let name = |(index, &value): (usize, &f64)| {
        if value.fract() == 0.0 && value.abs() < 9e15 {
            return Ok(format!("{value}"));
        }
        Err(Failure::Usage(miette!(
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
