//! How many cells of the terminal a picture gets.
//!
//! A cell is taken for twice as high as wide: true of most fonts to a tenth, and kitty and iTerm2 keep a
//! picture's shape by themselves.

use console::Term;

/// Pixels of a cell's width that sixels are made for. Terminals with larger cells show them smaller; with
/// more they would leave narrow ones.
pub(super) const CELL_WIDTH: u32 = 8;
/// Pixels of a cell's width on the finest screens.
pub(super) const FINEST_CELL_WIDTH: u32 = 20;
/// On wide screens a picture need not fill the row.
const MOST_COLUMNS: u32 = 120;
/// Rows that stay for what was printed before it.
const ROWS_LEFT: u32 = 4;
/// Of a low screen a picture may take more than there is.
const LEAST_ROWS: u32 = 10;

/// The size of a terminal in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) columns: u32,
    pub(super) rows: u32,
}

/// What a picture gets of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cells {
    pub(super) columns: u32,
    pub(super) rows: u32,
}

impl Screen {
    /// That of stdout; 80 × 24 where it does not tell.
    pub(super) fn of_stdout() -> Self {
        let (rows, columns) = Term::stdout().size_checked().unwrap_or((24, 80));
        Self { columns: columns.into(), rows: rows.into() }
    }

    /// The cells of a picture: all that it fits into, none wider than `pixels` of it ask for.
    pub(super) fn cells(self, (width, height): (u32, u32), pixels: u32) -> Cells {
        let (width, height) = (width.max(1), height.max(1));
        // In the last column some terminals begin a new line.
        let most_columns = self.columns.saturating_sub(1).clamp(1, MOST_COLUMNS);
        let most_rows = self.rows.saturating_sub(ROWS_LEFT).max(LEAST_ROWS);
        let columns = most_columns.min(width.div_ceil(pixels));
        let rows = rounded(columns, height, 2 * u64::from(width));
        if rows <= most_rows {
            return Cells { columns, rows };
        }
        let columns = rounded(2 * most_rows, width, height.into()).min(columns);
        Cells { columns, rows: most_rows }
    }
}

/// a·b/c to the nearest whole number, at least 1.
fn rounded(a: u32, b: u32, c: u64) -> u32 {
    let product = u64::from(a) * u64::from(b);
    super::to_u32((product + c / 2) / c).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_keep_their_shape_within_the_screen() {
        let screen = Screen { columns: 81, rows: 24 };
        let cells = |size, pixels| {
            let Cells { columns, rows } = screen.cells(size, pixels);
            (columns, rows)
        };
        // 800 × 400 over 80 columns: 80 × 40 cells' widths, 20 rows.
        assert_eq!(cells((800, 400), 1), (80, 20));
        // A square is bounded by the rows: 20 rows are 40 columns.
        assert_eq!(cells((800, 800), 1), (40, 20));
        // Small pictures are not enlarged.
        assert_eq!(cells((28, 28), 1), (28, 14));
        assert_eq!(cells((28, 28), 8), (4, 2));
        assert_eq!(cells((1, 5000), 1), (1, 20));
        assert_eq!(cells((5000, 1), 1), (80, 1));
        assert_eq!(cells((0, 0), 1), (1, 1));
        let narrow = Screen { columns: 1, rows: 1 };
        assert_eq!(narrow.cells((50, 50), 1), Cells { columns: 1, rows: 1 });
        let wide = Screen { columns: 500, rows: 100 };
        assert_eq!(wide.cells((2000, 1000), 1), Cells { columns: 120, rows: 30 });
    }
}
