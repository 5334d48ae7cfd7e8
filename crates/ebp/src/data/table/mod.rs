//! Tables of one's own: sets from CSV files, and tables of numbers to CSV files.
//!
//! A table has a header and one element per row:
//!
//! ```text
//! set,t,x
//! monday,0.0,17.2
//! monday,1.5,18.0
//! tuesday,0.0,16.4
//! ```
//!
//! The column `set` is optional and holds any text; without it the file is one set. Locations are
//! in `t`, or in `t1`, `t2`, …; values in `x`, or in `x1`, `x2`, …; or in columns chosen by name.
//! Other columns are ignored. Commas, semicolons and tabs separate; quotes, byte order marks and
//! Windows line ends are understood (RFC 4180). Whatever is not a number where one should stand is
//! an error that names line and column; nothing is ever filled in.

mod columns;
mod locations;
mod records;
mod rows;
mod write;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::{Error, IndexedSet, Result};

pub use columns::ColumnChoice;
pub use locations::{Locations, parse_locations, read_locations};
pub use rows::{Rows, parse_rows, read_rows};
pub use write::{quoted, write_sets, write_table};

use columns::Columns;
use records::{Record, Records};

/// The name of the only set of a table without a `set` column.
const ONLY_SET: &str = "all";

/// A set and what the table calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSet {
    /// The text in the `set` column, or `all`.
    pub name: String,
    /// Its elements, in the order of the rows.
    pub set: IndexedSet,
}

/// Reads the sets of a CSV file, in the order in which they first appear.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, otherwise as [`parse_table`].
pub fn read_table(path: &Path, choice: &ColumnChoice) -> Result<Vec<NamedSet>> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(Error::io("read", path))?;
    parse_table(BufReader::new(file), &name, choice)
}

/// Reads the sets of a CSV text; `file` is how errors call it. The rows are read one at a time, so
/// what is held in memory is the numbers.
///
/// ```
/// use ebp::data::{ColumnChoice, table::parse_table};
///
/// let text = "set;t;x\nmonday;0;17.2\ntuesday;0;16.4\nmonday;1.5;18\n";
/// let sets = parse_table(text.as_bytes(), "weather.csv", &ColumnChoice::default())?;
/// assert_eq!(sets[0].name, "monday");
/// assert_eq!(sets[0].set.values(), [17.2, 18.0]);
///
/// let error = parse_table("t,x\n0,\n".as_bytes(), "weather.csv", &ColumnChoice::default());
/// assert_eq!(
///     error.unwrap_err().to_string(),
///     "weather.csv, line 2, column `x` (2): expected a number, found nothing"
/// );
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Parse`] with line and column if the text is not such a table, [`Error::Io`] if
/// reading fails half way.
pub fn parse_table(text: impl BufRead, file: &str, choice: &ColumnChoice) -> Result<Vec<NamedSet>> {
    let mut records = Records::new(text, file)?;
    let Some(header) = records.next_record()? else {
        return Err(parse_error(file, 1, "1", "a header such as `set,t,x`", "nothing"));
    };
    let columns = Columns::find(file, &header, choice)?;
    let mut tables: Vec<Table> = Vec::new();
    let mut numbers_of_names: HashMap<String, usize> = HashMap::new();
    while let Some(record) = records.next_record()? {
        columns.check_count(file, &record)?;
        let name = columns.set_name(&record).unwrap_or(ONLY_SET);
        let number = if let Some(&number) = numbers_of_names.get(name) {
            number
        } else {
            numbers_of_names.insert(name.to_owned(), tables.len());
            tables.push(Table { name: name.to_owned(), ..Table::default() });
            tables.len() - 1
        };
        columns.read_numbers(file, &record, &columns.locations, &mut tables[number].locations)?;
        columns.read_numbers(file, &record, &columns.values, &mut tables[number].values)?;
    }
    if tables.is_empty() {
        let line = records.line();
        return Err(parse_error(file, line, "1", "at least one row of numbers", "nothing"));
    }
    let (location_dim, value_dim) = (columns.locations.len(), columns.values.len());
    tables
        .into_iter()
        .map(|table| {
            let set = IndexedSet::new(location_dim, value_dim, table.locations, table.values)?;
            Ok(NamedSet { name: table.name, set })
        })
        .collect()
}

/// A set that is being read.
#[derive(Default)]
struct Table {
    name: String,
    locations: Vec<f64>,
    values: Vec<f64>,
}

fn parse_error(
    file: &str,
    line: usize,
    column: impl Into<String>,
    expected: impl Into<String>,
    found: &str,
) -> Error {
    const LONGEST: usize = 40;
    let mut found: String = found.escape_debug().collect();
    if let Some((cut, _)) = found.char_indices().nth(LONGEST) {
        found.truncate(cut);
        found.push('…');
    }
    Error::Parse {
        file: file.to_owned(),
        line,
        column: column.into(),
        expected: expected.into(),
        found,
    }
}
