//! Residual convolutions over the places of a grid, from the finest to the coarsest, and there the mean:
//!
//! ```text
//! [known, known · x] at every place → cells of the coarsest grid,   h = mean over cells of σ(cell)
//! ```
//!
//! The cells say where something is: the second level of the latent has a code for each of them.

use rayon::prelude::*;
use std::sync::Arc;

use super::PosteriorRows;
use crate::batch::SetBatch;
use crate::data::Grid;
use crate::energy::{Observed, push_grid};
use crate::nn::{Descent, GridConfig, Size, coarsest};
use crate::recipe::{EnergyBasedConfig, Space};
use crate::tape::{Group, Tape, Var};
use crate::{Result, SetOffsets};

#[derive(Clone, Debug)]
pub(super) struct GridPosterior {
    grid: Grid,
    channels: usize,
    width: usize,
    /// Columns and rows of the coarsest grid.
    pub(super) cells: Size,
    network: Descent,
}

impl GridPosterior {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        grid: Grid,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (channels, widths) = (space.value_dim, &config.encoder_widths[..]);
        let network = GridConfig {
            inputs: 1 + channels,
            widths,
            blocks: config.grid_blocks,
            side: config.grid_side,
        };
        Ok(Self {
            grid,
            channels,
            width: widths[widths.len() - 1],
            cells: coarsest((grid.width(), grid.height()), widths.len()),
            network: Descent::new(group, &network)?,
        })
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn rows(&self, sets: &SetBatch) -> Result<PosteriorRows> {
        let grids = (0..sets.num_sets()).into_par_iter().map(|set| -> Result<Vec<f32>> {
            let (locations, values) = (sets.locations(set), sets.values(set));
            let seen = Observed::new(self.grid, self.channels, locations, values)?;
            let mut rows = Vec::with_capacity(self.grid.num_places() * (1 + self.channels));
            push_grid(&seen, &mut rows);
            Ok(rows)
        });
        let rows = grids.collect::<Result<Vec<_>>>()?.concat();
        let sizes: Vec<usize> = sets.sizes().collect();
        let found = PosteriorRows::new(rows, &sizes, 1 + self.channels)?;
        let offsets = SetOffsets::uniform(sizes.len(), self.grid.num_places())?;
        Ok(PosteriorRows { offsets, ..found })
    }

    /// The mean of the cells of every set, and all cells, `[sets · cells, width]`.
    pub(super) fn read(&self, tape: &mut Tape, rows: Var) -> Result<(Var, Var)> {
        let found = self.network.forward(tape, rows, (self.grid.width(), self.grid.height()))?;
        let lowest = found[found.len() - 1].0;
        let cells = tape.silu(lowest)?;
        let count = self.cells.0 * self.cells.1;
        let offsets = SetOffsets::uniform(tape.shape(cells).0 / count, count)?;
        let sums = tape.set_sums(cells, &Arc::new(offsets))?;
        Ok((tape.affine(sums, 1.0 / count as f64, 0.0)?, cells))
    }
}
