//! What a target sees: its location, and the context around it.
//!
//! ```text
//! [t, sin ωⱼt, cos ωⱼt]   [known, x] of every place of the window   [log density, mean] of 3 blurs
//! ```
//!
//! Given θ and these numbers the targets are independent, so the law of any targets follows from
//! that of more of them, and neither their order nor the context's matters. θ alone must carry
//! everything in one vector; what lies next to a target need not take that way.

use super::config::DiscreteConfig;
use super::observed::Observed;
use crate::process::energy_based::push_features;

/// Standard deviations of the blurs, in places.
const BLURS: [f32; 3] = [2.0, 4.0, 8.0];
/// A share of known places that counts as none.
const FEW: f32 = 1e-3;

#[derive(Debug)]
pub(super) struct Surroundings {
    config: DiscreteConfig,
    /// Location features of every place, `[places, features]`.
    locations: Vec<f32>,
    num_locations: usize,
}

impl Surroundings {
    pub(super) fn new(config: &DiscreteConfig) -> Self {
        let mut locations = Vec::new();
        for place in 0..config.grid.num_places() {
            let location = config.grid.location(place);
            push_features(&location, config.location_frequencies, &mut locations);
        }
        let num_locations = locations.len() / config.grid.num_places();
        Self { config: config.clone(), locations, num_locations }
    }

    /// Numbers per target.
    pub(super) fn num_features(&self) -> usize {
        let per_place = 1 + self.config.channels;
        let side = 2 * self.config.window + 1;
        let blurs = if self.config.smooths { BLURS.len() } else { 0 };
        self.num_locations + per_place * (side * side - 1 + blurs)
    }

    /// Location features of a place.
    pub(super) fn location(&self, place: usize) -> &[f32] {
        &self.locations[place * self.num_locations..][..self.num_locations]
    }

    /// The rows of targets at `places`, `[m, num_features]`.
    pub(super) fn rows(&self, context: &Observed, places: &[usize]) -> Vec<f32> {
        let config = &self.config;
        let brightness = context.brightness(config);
        let blurred: Vec<Vec<f32>> = if config.smooths {
            BLURS.iter().map(|&std_dev| self.blur(context, &brightness, std_dev)).collect()
        } else {
            Vec::new()
        };
        let per_place = 1 + config.channels;
        let mut rows = Vec::with_capacity(places.len() * self.num_features());
        for &place in places {
            rows.extend_from_slice(self.location(place));
            self.push_window(context, &brightness, place, &mut rows);
            for blurred in &blurred {
                rows.extend_from_slice(&blurred[place * per_place..][..per_place]);
            }
        }
        rows
    }

    /// [known, x] of every other place of the window; zeros beyond the edge.
    fn push_window(
        &self,
        context: &Observed,
        brightness: &[f32],
        place: usize,
        rows: &mut Vec<f32>,
    ) {
        let (grid, channels) = (self.config.grid, self.config.channels);
        let (width, height) = (grid.width().cast_signed(), grid.height().cast_signed());
        let (column, row) = (place.cast_signed() % width, place.cast_signed() / width);
        let reach = self.config.window.cast_signed();
        for y in row - reach..=row + reach {
            for x in column - reach..=column + reach {
                if (x, y) == (column, row) {
                    continue;
                }
                let is_inside = (0..width).contains(&x) && (0..height).contains(&y);
                let other = (y * width + x).cast_unsigned();
                if is_inside && context.is_known[other] {
                    rows.push(1.0);
                    rows.extend_from_slice(&brightness[other * channels..][..channels]);
                } else {
                    rows.resize(rows.len() + 1 + channels, 0.0);
                }
            }
        }
    }

    /// [log share of known places, mean x of them] around every place, `[places, 1 + channels]`.
    fn blur(&self, context: &Observed, brightness: &[f32], std_dev: f32) -> Vec<f32> {
        let grid = self.config.grid;
        let weights = gaussian(std_dev, grid.width().max(grid.height()));
        let size = (grid.width(), grid.height());
        let known: Vec<f32> = context.is_known.iter().map(|&k| f32::from(u8::from(k))).collect();
        let density = blur_plane(&known, size, &weights);
        let channels = self.config.channels;
        let means: Vec<Vec<f32>> = (0..channels)
            .map(|channel| {
                let plane: Vec<f32> =
                    brightness.iter().skip(channel).step_by(channels).copied().collect();
                blur_plane(&plane, size, &weights)
            })
            .collect();
        let mut rows = Vec::with_capacity(density.len() * (1 + channels));
        for (place, density) in density.iter().enumerate() {
            let density = density + FEW;
            rows.push(density.ln() / 3.0 + 1.0);
            rows.extend(means.iter().map(|mean| mean[place] / density));
        }
        rows
    }
}

/// exp(−k²/2σ²) for k = 0, 1, …, 3σ, such that the two-sided sum is 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozen")]
fn gaussian(std_dev: f32, longest: usize) -> Vec<f32> {
    let reach = ((3.0 * std_dev).ceil() as usize).min(longest - 1);
    let weights: Vec<f32> =
        (0..=reach).map(|k| (-0.5 * (k as f32 / std_dev).powi(2)).exp()).collect();
    let sum = 2.0 * weights.iter().sum::<f32>() - weights[0];
    weights.iter().map(|weight| weight / sum).collect()
}

/// Rows, then columns.
fn blur_plane(plane: &[f32], (width, height): (usize, usize), weights: &[f32]) -> Vec<f32> {
    let mut across = vec![0.0; plane.len()];
    for row in 0..height {
        let (from, to) = (&plane[row * width..][..width], &mut across[row * width..][..width]);
        for (column, &value) in from.iter().enumerate() {
            // Contexts are sparse: most places add nothing.
            if value != 0.0 {
                for (other, to) in to.iter_mut().enumerate() {
                    if let Some(weight) = weights.get(other.abs_diff(column)) {
                        *to += weight * value;
                    }
                }
            }
        }
    }
    let mut down = vec![0.0; plane.len()];
    for row in 0..height {
        for other in 0..height {
            let Some(weight) = weights.get(other.abs_diff(row)) else { continue };
            let from = &across[row * width..][..width];
            for (to, from) in down[other * width..][..width].iter_mut().zip(from) {
                *to += weight * from;
            }
        }
    }
    down
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Grid;

    #[test]
    fn a_blur_keeps_the_mass_inside_and_a_window_shows_the_neighbours() {
        let weights = gaussian(1.0, 20);
        let mut plane = vec![0.0; 400];
        plane[10 * 20 + 10] = 2.0;
        let blurred = blur_plane(&plane, (20, 20), &weights);
        assert!((blurred.iter().sum::<f32>() - 2.0).abs() < 1e-5);
        assert!((blurred[10 * 20 + 11] - blurred[9 * 20 + 10]).abs() < 1e-7);

        let grid = Grid::new(3, 3).unwrap();
        let config = DiscreteConfig {
            grid,
            window: 1,
            smooths: false,
            location_frequencies: 0,
            ..DiscreteConfig::default()
        };
        let surroundings = Surroundings::new(&config);
        let mut context = Observed::nothing(&config);
        (context.is_known[5], context.symbols[5]) = (true, 255);
        let row = surroundings.rows(&context, &[4]);
        assert_eq!(row.len(), surroundings.num_features());
        // Two coordinates, then eight neighbours: the fifth, to the right, is known and white.
        let neighbours: Vec<f32> = row[2..].iter().step_by(2).copied().collect();
        assert_eq!(neighbours, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert!(row[2 + 9] > 0.99);
    }
}
