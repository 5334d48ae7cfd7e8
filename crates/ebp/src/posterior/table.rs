//! A vector per place of a grid, and one per unit of brightness there, summed over the elements:
//!
//! ```text
//! h = silu( Σᵢ (a[tᵢ] + xᵢ b[tᵢ]) √(places / n) + c )
//! ```
//!
//! As a product with rows that are zero but at the known places it is one dense layer.

use rayon::prelude::*;

use super::PosteriorRows;
use crate::batch::SetBatch;
use crate::data::Grid;
use crate::energy::known_places;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::point::Activation;
use crate::recipe::{EnergyBasedConfig, Space};
use crate::tape::{Group, Tape, Var};
use crate::{Result, SetOffsets};

#[derive(Clone, Debug)]
pub(super) struct Table {
    grid: Grid,
    channels: usize,
    width: usize,
    layer: Dense,
}

impl Table {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        grid: Grid,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (channels, width) = (space.value_dim, config.encoder_widths[0]);
        let table = DenseConfig {
            inputs: grid.num_places() * (1 + channels),
            hidden: &[],
            outputs: width,
            activation: Activation::Silu,
            weights: Initialiser::He,
            output_scale: 1.0,
        };
        Ok(Self { grid, channels, width, layer: Dense::new(group, "table", &table)? })
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn rows(&self, sets: &SetBatch) -> Result<PosteriorRows> {
        let (places, channels) = (self.grid.num_places(), self.channels);
        let columns = places * (1 + channels);
        let mut rows = vec![0.0; sets.num_sets() * columns];
        rows.par_chunks_mut(columns).enumerate().try_for_each(|(set, row)| -> Result<()> {
            let scale = (places as f32 / sets.size(set).max(1) as f32).sqrt();
            let known = known_places(self.grid, sets.locations(set))?;
            for (place, value) in known.iter().zip(sets.values(set).chunks_exact(channels)) {
                let cell = &mut row[place * (1 + channels)..][..=channels];
                cell[0] = scale;
                for (to, x) in cell[1..].iter_mut().zip(value) {
                    // Brightness, between 0 and 1.
                    *to = scale * 0.5 * (x + 1.0);
                }
            }
            Ok(())
        })?;
        let sizes: Vec<usize> = (0..sets.num_sets()).map(|set| sets.size(set)).collect();
        let found = PosteriorRows::new(rows, &sizes, columns)?;
        // One row per set.
        Ok(PosteriorRows { offsets: SetOffsets::uniform(sizes.len(), 1)?, ..found })
    }

    /// The sum, and the same after the activation.
    pub(super) fn read(&self, tape: &mut Tape, rows: Var) -> Result<(Var, Var)> {
        let sum = self.layer.forward(tape, rows)?;
        Ok((sum, tape.silu(sum)?))
    }
}
