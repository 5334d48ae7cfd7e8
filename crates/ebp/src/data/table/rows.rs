//! A table as plain rows of numbers, with a column of labels if there is one.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::columns::Columns;
use super::records::Records;
use super::{Error, Result, parse_error};

/// Rows of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Names of the columns of numbers.
    pub names: Vec<String>,
    /// Row-major `[n, d]`.
    pub values: Vec<f64>,
    /// What each row is called; empty if the table has no such column.
    pub labels: Vec<String>,
}

/// Reads a CSV file in which every column holds numbers but the one called `label`, which may be missing.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, otherwise as [`parse_rows`].
pub fn read_rows(path: &Path, label: &str) -> Result<Rows> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    parse_rows(BufReader::new(file), &path.display().to_string(), label)
}

/// Reads a CSV text; `file` is how errors call it.
///
/// ```
/// let text = "width,label,height\n1,a,2\n3,b,4\n";
/// let rows = ebp::data::table::parse_rows(text.as_bytes(), "boxes.csv", "label")?;
/// assert_eq!((rows.values, rows.labels), (vec![1.0, 2.0, 3.0, 4.0], vec!["a".into(), "b".into()]));
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Parse`] with line and column if the text is not such a table, [`Error::Io`] if reading fails
/// half way.
pub fn parse_rows(text: impl BufRead, file: &str, label: &str) -> Result<Rows> {
    let mut records = Records::new(text, file)?;
    let Some(header) = records.next_record()? else {
        return Err(parse_error(file, 1, "1", "a header of names", "nothing"));
    };
    let columns = Columns::all_but(file, &header, label)?;
    let names = columns.values.iter().map(|&place| header.fields[place].clone()).collect();
    let mut rows = Rows { names, values: Vec::new(), labels: Vec::new() };
    while let Some(record) = records.next_record()? {
        columns.check_count(file, &record)?;
        columns.read_numbers(file, &record, &columns.values, &mut rows.values)?;
        rows.labels.extend(columns.set_name(&record).map(str::to_owned));
    }
    if rows.values.is_empty() {
        let line = records.line();
        return Err(parse_error(file, line, "1", "at least one row of numbers", "nothing"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_anything_else_is_named() {
        let parse = |text: &str| parse_rows(text.as_bytes(), "a.csv", "kind");
        let rows = parse("a;b\n1;2\n").unwrap();
        assert_eq!((rows.names.len(), rows.labels.len()), (2, 0));
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("a,kind\nx,1\n").contains("line 2, column `a`"));
        assert!(message("a,kind\nnan,1\n").contains("a finite number"));
        assert!(message("a,b\n1\n").contains("2 fields as in the header"));
        assert!(message("kind\nx\n").contains("beside `kind`"));
        assert!(message("a\n").contains("at least one row"));
        assert!(message("").contains("a header"));
    }
}
