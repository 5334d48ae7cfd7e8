//! A convolutional view of the context: what stands anywhere in a picture reaches every place of it.
//!
//! ```text
//! [known, known · x] at every place → residual convolutions, down to the coarsest grid
//!                    codes z of the second level join there
//! features at every place ← residual convolutions, back up past what was seen on the way down
//! ```
//!
//! θ alone must carry everything in one vector, and a window sees what lies next to a target. Given θ,
//! z and the context, targets are still independent. The way down is the same for all draws of z.

use std::sync::Arc;

use super::canvas::interpolation;
use super::surroundings::Observed;
use crate::Result;
use crate::data::Grid;
use crate::nn::{Ascent, Dense, DenseConfig, Descent, GridConfig, Initialiser, Size, coarsest};
use crate::recipe::EnergyBasedConfig;
use crate::tape::{Choice, Group, Interpolation, Tape, Var};

#[derive(Clone, Debug)]
pub(crate) struct View {
    size: Size,
    width: usize,
    down: Descent,
    up: Ascent,
    /// How codes join on the coarsest grid; `None` without a second level.
    codes: Option<Codes>,
}

#[derive(Clone, Debug)]
struct Codes {
    layer: Dense,
    local_dim: usize,
    num_cells: usize,
    /// From the cells of the codes to the places of the coarsest grid, where these are others.
    interpolation: Option<Arc<Interpolation>>,
    num_places: usize,
}

/// What was seen on the way down: on every grid, the finest first.
#[derive(Clone, Debug)]
pub(crate) struct Seen(Vec<(Var, Size)>);

impl View {
    /// `None` where there is no view; codes lie on a grid of `cells`.
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        (grid, channels): (Grid, usize),
        cells: Size,
        group: &mut Group<'_>,
    ) -> Result<Option<Self>> {
        let widths = &config.grid_widths[..];
        let (Some(&width), Some(&lowest)) = (widths.first(), widths.last()) else {
            return Ok(None);
        };
        let size = (grid.width(), grid.height());
        let network = GridConfig {
            inputs: 1 + channels,
            widths,
            blocks: config.grid_blocks,
            side: config.grid_side,
        };
        let codes = if config.local_dim > 0 {
            let layer = DenseConfig::linear(config.local_dim, lowest, Initialiser::Xavier);
            let places = coarsest(size, widths.len());
            Some(Codes {
                layer: Dense::new(group, "codes", &layer)?,
                local_dim: config.local_dim,
                num_cells: cells.0 * cells.1,
                interpolation: (cells != places).then(|| Arc::new(interpolation(places, cells))),
                num_places: places.0 * places.1,
            })
        } else {
            None
        };
        let (down, up) = (Descent::new(group, &network)?, Ascent::new(group, &network)?);
        Ok(Some(Self { size, width, down, up, codes }))
    }

    /// Numbers that a target reads.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// What the way down finds in contexts; `grids` has the rows of each, see [`push_grid`].
    pub(crate) fn see(&self, tape: &mut Tape, grids: Var) -> Result<Seen> {
        self.down.forward(tape, grids, self.size).map(Seen)
    }

    /// What targets read; `rows` are set · places + place of each.
    pub(crate) fn read(
        &self,
        tape: &mut Tape,
        (seen, codes): (&Seen, Option<Var>),
        rows: &Arc<Choice>,
    ) -> Result<Var> {
        let Some(((lowest, _), finer)) = seen.0.split_last() else {
            return Err(crate::Error::invalid("view", "at least one grid", "none"));
        };
        let mut lowest = *lowest;
        if let (Some(own), Some(codes)) = (&self.codes, codes) {
            let sets = tape.shape(codes).0;
            let mut at_places = tape.reshape(codes, (sets * own.num_cells, own.local_dim))?;
            if let Some(interpolation) = &own.interpolation {
                let all = Arc::new(Choice::tiled(sets * own.num_places, 1)?);
                at_places = tape.interpolate(at_places, interpolation, &all)?;
            }
            let change = own.layer.forward(tape, at_places)?;
            lowest = tape.add(lowest, change)?;
        }
        let all = self.up.forward(tape, finer, lowest)?;
        tape.gather(all, rows)
    }
}

impl Seen {
    /// The same for `count` draws, one after the other; the numbers of one set.
    pub(crate) fn repeated(&self, tape: &mut Tape, count: usize) -> Result<Self> {
        let repeat = |&(var, size): &(Var, Size)| Ok((tape.tile(var, count)?, size));
        self.0.iter().map(repeat).collect::<Result<Vec<_>>>().map(Self)
    }
}

/// Adds [known, known · x] of every place, `[places, 1 + channels]`; x on [−1, 1].
pub(crate) fn push_grid(context: &Observed, into: &mut Vec<f32>) {
    let channels = context.brightness.len() / context.is_known.len().max(1);
    for (known, brightness) in
        context.is_known.iter().zip(context.brightness.chunks_exact(channels.max(1)))
    {
        let known = f32::from(u8::from(*known));
        into.push(known);
        into.extend(brightness.iter().map(|x| known * (2.0 * x - 1.0)));
    }
}
