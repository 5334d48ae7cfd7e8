//! Results on stdout: text, JSON, and tables whose columns line up.

use std::io::{Write, stdout};

use miette::miette;
use serde::Serialize;

use crate::failure::Failure;

/// Prints text as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints one JSON object, indented.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Failed(miette!("cannot write the result as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}

/// Lines of cells, each column as wide as its widest cell: the first to the left, the others to
/// the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let num_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..num_columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let space = " ".repeat(width - cell.chars().count());
                if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["name", "nats"], ["ebp", "-0.25 ± 0.01"]];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(table(&rows), "name          nats\nebp   -0.25 ± 0.01\n");
    }
}
