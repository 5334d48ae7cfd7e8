//! Tables of locations, with or without values.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::columns::Columns;
use super::records::Records;
use super::{ColumnChoice, parse_error};
use crate::{Error, IndexedSet, Result};

/// Where something is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Locations {
    /// The names of the location columns.
    pub names: Vec<String>,
    /// d_t.
    pub location_dim: usize,
    /// `[m, d_t]`, in the order of the rows.
    pub locations: Vec<f64>,
    /// The rows with their values, if the table has the value columns.
    pub targets: Option<IndexedSet>,
}

/// Reads the locations of a CSV file, and the values if there are any.
///
/// # Errors
///
/// As [`read_table`](super::read_table), except that value columns may be missing.
pub fn read_locations(path: &Path, choice: &ColumnChoice) -> Result<Locations> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    parse_locations(BufReader::new(file), &path.display().to_string(), choice)
}

/// Reads the locations of a CSV text; `file` is how errors call it.
///
/// ```
/// use ebp::data::{ColumnChoice, table::parse_locations};
///
/// let found = parse_locations("t\n0\n1.5\n".as_bytes(), "where.csv", &ColumnChoice::default())?;
/// assert_eq!(found.locations, [0.0, 1.5]);
/// assert!(found.targets.is_none());
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// As [`read_locations`].
pub fn parse_locations(text: impl BufRead, file: &str, choice: &ColumnChoice) -> Result<Locations> {
    let mut records = Records::new(text, file)?;
    let Some(header) = records.next_record()? else {
        return Err(parse_error(file, 1, "1", "a header such as `t`", "nothing"));
    };
    let columns = Columns::find_locations(file, &header, choice)?;
    let (mut locations, mut values) = (Vec::new(), Vec::new());
    while let Some(record) = records.next_record()? {
        columns.check_count(file, &record)?;
        columns.read_numbers(file, &record, &columns.locations, &mut locations)?;
        columns.read_numbers(file, &record, &columns.values, &mut values)?;
    }
    if locations.is_empty() {
        let line = records.line();
        return Err(parse_error(file, line, "1", "at least one row of numbers", "nothing"));
    }
    let location_dim = columns.locations.len();
    let targets = match columns.values.len() {
        0 => None,
        value_dim => Some(IndexedSet::new(location_dim, value_dim, locations.clone(), values)?),
    };
    let names = columns.locations.iter().map(|&place| header.fields[place].clone()).collect();
    Ok(Locations { names, location_dim, locations, targets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_where_there_are_any() {
        let choice = ColumnChoice::default();
        let found = parse_locations("t1,note,t2\n0,a,1\n".as_bytes(), "a.csv", &choice).unwrap();
        assert_eq!((found.location_dim, found.targets), (2, None));
        assert_eq!(found.names, ["t1", "t2"]);
        let found = parse_locations("x,t\n5,1\n6,2\n".as_bytes(), "a.csv", &choice).unwrap();
        assert_eq!(found.targets.unwrap().values(), [5.0, 6.0]);
        let named = ColumnChoice { values: vec!["rain".into()], ..choice.clone() };
        assert_eq!(parse_locations("t\n1\n".as_bytes(), "a.csv", &named).unwrap().targets, None);
        let error = parse_locations("t\n".as_bytes(), "a.csv", &choice).unwrap_err().to_string();
        assert!(error.contains("at least one row"), "{error}");
        let error = parse_locations("x\n1\n".as_bytes(), "a.csv", &choice).unwrap_err().to_string();
        assert!(error.contains("`t` or `t1`"), "{error}");
    }
}
