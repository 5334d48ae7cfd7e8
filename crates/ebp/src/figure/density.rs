//! Predictive densities on grids, for pictures.

use crate::figure::heat_map::Panel;
use crate::process::Predictive;
use crate::{IndexedSet, Result};

/// Cells along the location and the value of a picture.
const NUM_COLUMNS: usize = 120;
const NUM_ROWS: usize = 140;

/// The rectangle of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// From left to right.
    pub locations: (f64, f64),
    /// From bottom to top.
    pub values: (f64, f64),
}

impl Window {
    /// The middles of the cells, row by row from the lowest value.
    fn cells(self) -> impl Iterator<Item = (f64, f64)> {
        let middle = |(low, high): (f64, f64), cell: usize, count: usize| {
            low + (high - low) * (cell as f64 + 0.5) / count as f64
        };
        (0..NUM_ROWS).flat_map(move |row| {
            let x = middle(self.values, row, NUM_ROWS);
            (0..NUM_COLUMNS).map(move |column| (middle(self.locations, column, NUM_COLUMNS), x))
        })
    }

    /// A panel of any density p(x | t).
    pub fn panel(
        self,
        title: &str,
        points: Vec<[f64; 2]>,
        density: impl Fn(f64, f64) -> f64,
    ) -> Panel {
        let values = self.cells().map(|(t, x)| density(t, x)).collect();
        Panel { title: title.to_owned(), values, num_columns: NUM_COLUMNS, points }
    }

    /// A panel of what a process predicts.
    ///
    /// # Errors
    ///
    /// Whatever the process says.
    pub fn predicted(
        self,
        title: &str,
        points: Vec<[f64; 2]>,
        predictive: &dyn Predictive,
    ) -> Result<Panel> {
        let (locations, values): (Vec<f64>, Vec<f64>) = self.cells().unzip();
        let answers = predictive.log_density(&IndexedSet::new(1, 1, locations, values)?)?;
        let values = answers.iter().map(|answer| answer.value.exp()).collect();
        Ok(Panel { title: title.to_owned(), values, num_columns: NUM_COLUMNS, points })
    }
}

/// The elements of a set as points of a picture.
pub fn points(set: &IndexedSet) -> Vec<[f64; 2]> {
    set.locations().iter().zip(set.values()).map(|(&t, &x)| [t, x]).collect()
}
