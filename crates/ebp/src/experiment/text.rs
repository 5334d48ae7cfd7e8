//! Tables as text, and what ± means in them.

/// Lines of cells, each column as wide as its widest cell: the first to the left, the others to
/// the right.
pub fn table(rows: &[Vec<String>]) -> String {
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

/// A number and half of its 95 % interval: what ± means in every table and page. What the interval is
/// over (sets, elements, draws) stands with the table.
pub fn with_interval(value: f64, std_error: f64, decimals: usize) -> String {
    format!("{value:.decimals$} ± {:.decimals$}", 1.96 * std_error)
}

/// A line of a table from words.
pub(super) fn cells<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(String::from).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [cells(["name", "nats"]), cells(["ebp", "-0.25 ± 0.01"])];
        assert_eq!(table(&rows), "name          nats\nebp   -0.25 ± 0.01\n");
    }
}
