//! What a latent paints: numbers for every place, which the targets at the places read.
//!
//! ```text
//! c = ψ([θ, h]) ∈ R^{places × canvas_dim},    z̄ = M z,    a target at t reads [c[t], z̄[t]]
//! ```
//!
//! ψ is a dense network with its own weights for every place. A network over (t, θ) alone must
//! build strokes out of waves of t; here the last layer's rows are pictures already. h is the
//! pooled context, 0 where targets may see nothing but θ. z are the codes of the second level, one
//! per cell of a coarse grid, and M interpolates between cells.

use std::sync::Arc;

use crate::Result;
use crate::data::Grid;
use crate::nn::{Dense, DenseConfig, Initialiser, Size};
use crate::recipe::EnergyBasedConfig;
use crate::tape::{Choice, Group, Interpolation, Tape, Var};

#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    num_places: usize,
    width: usize,
    local_dim: usize,
    layers: Option<Dense>,
    interpolation: Option<Arc<Interpolation>>,
}

impl Canvas {
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        (grid, cells): (Grid, Size),
        num_pooled: usize,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (num_places, size) = (grid.num_places(), (grid.width(), grid.height()));
        let layers = if config.canvas_dim > 0 {
            let layers = DenseConfig {
                inputs: config.latent_dim + num_pooled,
                hidden: &config.canvas_widths,
                outputs: num_places * config.canvas_dim,
                activation: config.head_activation,
                weights: Initialiser::He,
                output_scale: 1.0,
            };
            Some(Dense::new(group, "places", &layers)?)
        } else {
            None
        };
        let interpolation = (config.local_dim > 0).then(|| Arc::new(interpolation(size, cells)));
        let (width, local_dim) = (config.canvas_dim, config.local_dim);
        Ok(Self { num_places, width, local_dim, layers, interpolation })
    }

    /// Numbers that a target reads.
    pub(crate) fn num_painted(&self) -> usize {
        self.width + self.local_dim
    }

    /// What targets read; `rows` are set · places + place of each. `None` where nothing is painted.
    pub(crate) fn read(
        &self,
        tape: &mut Tape,
        (theta, pooled, codes): (Var, Var, Option<Var>),
        rows: &Arc<Choice>,
    ) -> Result<Option<Var>> {
        let sets = tape.shape(theta).0;
        let mut parts = Vec::new();
        if let Some(layers) = &self.layers {
            let both = tape.concat(&[theta, pooled])?;
            let painted = layers.forward(tape, both)?;
            let places = tape.reshape(painted, (sets * self.num_places, self.width))?;
            parts.push(tape.gather(places, rows)?);
        }
        if let (Some(interpolation), Some(codes)) = (&self.interpolation, codes) {
            let cells = interpolation.num_cells();
            let cells = tape.reshape(codes, (sets * cells, self.local_dim))?;
            parts.push(tape.interpolate(cells, interpolation, rows)?);
        }
        if parts.is_empty() { Ok(None) } else { tape.concat(&parts).map(Some) }
    }
}

/// Bilinear weights of the nearest four of some cells, for every place of a grid.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position on the grid of cells is small and not negative"
)]
pub(super) fn interpolation((width, height): Size, (across, down): Size) -> Interpolation {
    let around = |index: usize, count: usize, cells: usize| {
        let position = ((index as f32 + 0.5) / count as f32 * cells as f32 - 0.5)
            .clamp(0.0, (cells - 1) as f32);
        let low = (position as usize).min(cells.saturating_sub(2));
        [(low, 1.0 - (position - low as f32)), ((low + 1).min(cells - 1), position - low as f32)]
    };
    let mut weights = Vec::with_capacity(width * height);
    for place in 0..width * height {
        let rows = around(place / width, height, down);
        let columns = around(place % width, width, across);
        let cell = |below: usize, right: usize| {
            let ((y, a), (x, b)) = (rows[below], columns[right]);
            ((y * across + x) as u32, a * b)
        };
        weights.push([cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]);
    }
    Interpolation::new(across * down, weights)
}
