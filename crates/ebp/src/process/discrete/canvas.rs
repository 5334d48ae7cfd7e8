//! What a latent paints: numbers for every place, which the targets there read.
//!
//! ```text
//! c = ψ([θ, h]) ∈ R^{places × canvas_dim},    z̄ = M z,    a target at t reads [c[t], z̄[t]]
//! ```
//!
//! ψ is a dense network with its own weights for every place. A network over (t, θ) alone must
//! build strokes out of waves of t; here the last layer's rows are pictures already. h is the
//! pooled context, 0 where targets may see nothing but θ. z are the codes of `local.rs`, one per
//! cell of a coarse grid, and M interpolates between cells.

use candle_core::{Device, Tensor};

use super::config::DiscreteConfig;
use super::posterior::dense;
use crate::Result;
use crate::nn::{Initialiser, Linear, Parameters, linear};

#[derive(Clone, Debug)]
pub(super) struct Canvas {
    config: DiscreteConfig,
    /// ψ: linear layers with SiLU between them; none without a canvas.
    layers: Vec<Linear>,
    /// M, `[places, cells]`.
    interpolation: Option<Tensor>,
}

impl Canvas {
    /// `num_pooled` is the size of h.
    pub(super) fn new(
        config: &DiscreteConfig,
        num_pooled: usize,
        group: &Parameters,
    ) -> Result<Self> {
        let mut layers = Vec::new();
        if config.canvas_dim > 0 {
            let mut inputs = config.latent_dim + num_pooled;
            for (number, &width) in config.canvas_widths.iter().enumerate() {
                layers.push(linear(
                    &group.group(&number.to_string()),
                    inputs,
                    width,
                    Initialiser::He,
                )?);
                inputs = width;
            }
            let outputs = config.grid.num_places() * config.canvas_dim;
            layers.push(linear(&group.group("places"), inputs, outputs, Initialiser::FanIn)?);
        }
        let interpolation = if config.local_dim > 0 { Some(interpolation(config)?) } else { None };
        Ok(Self { config: config.clone(), layers, interpolation })
    }

    /// What targets at the `places` of every set read, `[total, num_painted]`; `None` if nothing
    /// is painted. `theta`: `[sets, k]`, `pooled`: `[sets, num_pooled]`, `codes`: `[sets, cells ×
    /// local_dim]`.
    pub(super) fn read(
        &self,
        theta: &Tensor,
        pooled: &Tensor,
        codes: Option<&Tensor>,
        places: &[&[usize]],
    ) -> Result<Option<Tensor>> {
        let num_places = self.config.grid.num_places();
        let sets = theta.dim(0)?;
        let mut parts = Vec::new();
        if !self.layers.is_empty() {
            let painted = dense(&self.layers, Tensor::cat(&[theta, pooled], 1)?)?;
            parts.push(painted.reshape((sets * num_places, self.config.canvas_dim))?);
        }
        if let (Some(interpolation), Some(codes)) = (&self.interpolation, codes) {
            // One product for all sets: [places, cells] × [cells, sets · d].
            let (cells, width) = (interpolation.dim(1)?, self.config.local_dim);
            let columns = codes.reshape((sets, cells, width))?.transpose(0, 1)?;
            let columns = columns.reshape((cells, sets * width))?;
            let spread = interpolation.matmul(&columns)?.reshape((num_places, sets, width))?;
            let spread = spread.transpose(0, 1)?.reshape((sets * num_places, width))?;
            parts.push(spread);
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let rows = places.iter().enumerate().flat_map(|(set, places)| {
            places.iter().map(move |place| u32::try_from(set * num_places + place).unwrap_or(0))
        });
        let rows = Tensor::new(rows.collect::<Vec<u32>>(), &Device::Cpu)?;
        let parts = parts
            .iter()
            .map(|part| Ok(part.index_select(&rows, 0)?))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Tensor::cat(&parts, 1)?))
    }
}

/// Weights of the four cells around every place; beyond the outermost centres the nearest counts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position on the grid of cells is small and not negative"
)]
fn interpolation(config: &DiscreteConfig) -> Result<Tensor> {
    let (grid, side) = (config.grid, config.local_side);
    let mut weights = vec![0.0_f32; grid.num_places() * side * side];
    let around = |index: usize, count: usize| {
        let position =
            ((index as f32 + 0.5) / count as f32 * side as f32 - 0.5).clamp(0.0, (side - 1) as f32);
        let low = (position as usize).min(side.saturating_sub(2));
        [(low, 1.0 - (position - low as f32)), ((low + 1).min(side - 1), position - low as f32)]
    };
    for (place, row) in weights.chunks_exact_mut(side * side).enumerate() {
        for (y, down) in around(place / grid.width(), grid.height()) {
            for (x, across) in around(place % grid.width(), grid.width()) {
                row[y * side + x] += down * across;
            }
        }
    }
    Ok(Tensor::from_vec(weights, (grid.num_places(), side * side), &Device::Cpu)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Grid;

    #[test]
    fn every_place_reads_a_mean_of_cells_and_its_own_at_the_centre() {
        for (side, cells) in [(9, 3), (8, 1), (5, 2)] {
            let grid = Grid::new(side, side).unwrap();
            let config = DiscreteConfig { grid, local_side: cells, ..DiscreteConfig::default() };
            let rows = interpolation(&config).unwrap().to_vec2::<f32>().unwrap();
            assert!(rows.iter().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6));
            assert!(rows.iter().flatten().all(|weight| (0.0..=1.0).contains(weight)));
            if side == 9 {
                // The middle of the second cell of the first row of cells.
                assert_eq!(rows[9 + 4][..3], [0.0, 1.0, 0.0]);
            }
        }
    }
}
