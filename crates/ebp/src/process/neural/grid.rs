//! Convolutional paths for elements at the places of a grid (Gordon et al., 2020; Foong et al., 2020).
//!
//! ```text
//! [known, known · x] at every place → residual convolutions → r at every place      conditional
//!                                   → q(z | C) at every place, z → convolutions → r     latent
//! ```
//!
//! The density channel `known` tells an unknown pixel from a black one. The latent one draws z of every
//! place; the convolutions behind it make a whole of them. Decoders read r alone: nothing here knows
//! where on the grid a target stands, but for the border.

use std::sync::Arc;

use super::config::{GridPathConfig, NetworkConfig};
use super::gaussian::latent_law;
use crate::batch::SetBatch;
use crate::energy::{Observed, known_places, push_grid};
use crate::nn::{Ascent, Dense, DenseConfig, Descent, GridConfig, Initialiser};
use crate::tape::{Choice, Gaussian, Group, Tape, Var};
use crate::{Error, Result};

/// Down to the coarsest grid and back.
#[derive(Clone, Debug)]
struct Convolutions {
    down: Descent,
    up: Ascent,
}

impl Convolutions {
    fn new(group: &mut Group<'_>, config: &GridPathConfig, inputs: usize) -> Result<Self> {
        let GridPathConfig { widths, blocks, side, .. } = config;
        let sizes = GridConfig { inputs, widths, blocks: *blocks, side: *side };
        Ok(Self { down: Descent::new(group, &sizes)?, up: Ascent::new(group, &sizes)? })
    }

    fn forward(&self, tape: &mut Tape, x: Var, size: (usize, usize)) -> Result<Var> {
        let found = self.down.forward(tape, x, size)?;
        match found.split_last() {
            Some(((lowest, _), finer)) => self.up.forward(tape, finer, *lowest),
            None => Err(Error::invalid("widths", "at least one", 0)),
        }
    }
}

/// From a context on its grid to what decoders read at every place.
#[derive(Clone, Debug)]
pub(super) struct GridPath {
    config: GridPathConfig,
    /// Numbers of a place of a context.
    num_inputs: usize,
    convolutions: Convolutions,
    field: Option<Field>,
}

/// A latent of every place, and what makes a whole of them.
#[derive(Clone, Debug)]
struct Field {
    head: Dense,
    convolutions: Convolutions,
}

impl GridPath {
    /// With `latent_dim` numbers of z at every place; 0 for none.
    pub(super) fn new(
        group: &mut Group<'_>,
        sizes: &NetworkConfig,
        config: GridPathConfig,
        latent_dim: usize,
    ) -> Result<Self> {
        let Some(&width) = config.widths.first() else {
            return Err(Error::invalid("widths", "at least one", 0));
        };
        let num_inputs = 1 + sizes.value_dim;
        let convolutions = Convolutions::new(group, &config, num_inputs)?;
        let field = if latent_dim > 0 {
            let head = DenseConfig::linear(width, 2 * latent_dim, Initialiser::Xavier);
            let head = Dense::new(group, "head", &head)?;
            let mut group = group.group("field");
            Some(Field { head, convolutions: Convolutions::new(&mut group, &config, latent_dim)? })
        } else {
            None
        };
        Ok(Self { config, num_inputs, convolutions, field })
    }

    /// Numbers that decoders read.
    pub(super) fn width(&self) -> usize {
        self.config.widths[0]
    }

    /// What is read of every place of contexts, one after the other, `[sets · places, 1 + d_x]`.
    pub(super) fn grids(&self, contexts: &SetBatch) -> Result<Vec<f32>> {
        let (grid, channels) = (self.config.grid, contexts.value_dim());
        let mut rows = Vec::new();
        for set in 0..contexts.num_sets() {
            let (locations, values) = (contexts.locations(set), contexts.values(set));
            push_grid(&Observed::new(grid, channels, locations, values)?, &mut rows);
        }
        Ok(rows)
    }

    /// The places of targets: set · places + place of each.
    pub(super) fn places(&self, targets: &SetBatch) -> Result<Vec<u32>> {
        let mut rows = Vec::with_capacity(targets.num_elements());
        for set in 0..targets.num_sets() {
            let first = set * self.config.grid.num_places();
            let places = known_places(self.config.grid, targets.locations(set))?;
            rows.extend(places.iter().map(|p| u32::try_from(first + p).unwrap_or(u32::MAX)));
        }
        Ok(rows)
    }

    fn size(&self) -> (usize, usize) {
        (self.config.grid.width(), self.config.grid.height())
    }

    /// What convolutions make of contexts, and q(z | C) of every place if there are latents.
    pub(super) fn read(&self, tape: &mut Tape, grids: Vec<f32>) -> Result<(Var, Option<Gaussian>)> {
        let columns = self.num_inputs;
        let rows = grids.len() / columns;
        let grids = tape.upload(grids, (rows, columns))?;
        let found = self.convolutions.forward(tape, grids, self.size())?;
        let law = match &self.field {
            Some(field) => {
                let raw = field.head.forward(tape, found)?;
                Some(latent_law(tape, raw)?)
            }
            None => None,
        };
        Ok((found, law))
    }

    /// What decoders read at all places: what was found, or what is made of draws of z.
    pub(super) fn represent(&self, tape: &mut Tape, found: Var, z: Option<Var>) -> Result<Var> {
        match (&self.field, z) {
            (Some(field), Some(z)) => field.convolutions.forward(tape, z, self.size()),
            _ => Ok(found),
        }
    }

    /// Every set's places `count` times side by side, as rows of a matrix `[sets · places, …]`.
    pub(super) fn repeated(&self, sets: usize, count: usize) -> Result<Arc<Choice>> {
        let places = self.config.grid.num_places();
        let number = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
        let of_set = |set: usize| {
            (0..count).flat_map(move |_| (set * places..(set + 1) * places).map(number))
        };
        Ok(Arc::new(Choice::new(sets * places, (0..sets).flat_map(of_set).collect())?))
    }

    /// Whether there is a latent of every place.
    pub(super) fn has_latents(&self) -> bool {
        self.field.is_some()
    }

    /// Places of a grid.
    pub(super) fn num_places(&self) -> usize {
        self.config.grid.num_places()
    }
}
