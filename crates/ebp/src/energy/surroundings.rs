//! What a target of a picture sees: its location, and the context around it.
//!
//! ```text
//! [t, sin ωⱼt, cos ωⱼt]   [known, x] of every place of the window   [log density, mean] of 3 blurs
//! ```
//!
//! Given θ and these numbers the targets are independent, so the law of any targets follows from
//! that of more of them, and neither their order nor the context's matters. θ alone must carry
//! everything in one vector; what lies next to a target need not take that way.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use super::features::{known_places, push_features};
use crate::data::Grid;
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
use crate::recipe::{EnergyBasedConfig, Space};
use crate::{Error, Result};

/// Standard deviations of the blurs, in pixels.
const BLURS: [f32; 3] = [2.0, 4.0, 8.0];
/// Added to densities of known pixels before the logarithm.
const FEW: f32 = 1e-3;

/// A part of a picture: which places are known, and how bright they are.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) is_known: Vec<bool>,
    /// Between 0 and 1, 0 where nothing is known, `[places, channels]`.
    pub(crate) brightness: Vec<f32>,
}

impl Observed {
    pub(crate) fn nothing(grid: Grid, channels: usize) -> Self {
        let places = grid.num_places();
        Self { is_known: vec![false; places], brightness: vec![0.0; places * channels] }
    }

    /// Values `[n, channels]` on [−1, 1] at locations `[n, 2]`.
    pub(crate) fn new(
        grid: Grid,
        channels: usize,
        locations: &[f32],
        values: &[f32],
    ) -> Result<Self> {
        let mut observed = Self::nothing(grid, channels);
        let places = known_places(grid, locations)?;
        for (place, value) in places.into_iter().zip(values.chunks_exact(channels)) {
            if observed.is_known[place] {
                let found = format!("{:?} twice", grid.location(place));
                return Err(Error::invalid("set", "one element per place", found));
            }
            observed.is_known[place] = true;
            let to = &mut observed.brightness[place * channels..][..channels];
            to.iter_mut().zip(value).for_each(|(to, x)| *to = 0.5 * (x + 1.0));
        }
        Ok(observed)
    }

    pub(crate) fn is_nothing(&self) -> bool {
        !self.is_known.iter().any(|&known| known)
    }
}

/// Rows of targets of pictures.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) grid: Grid,
    pub(crate) channels: usize,
    window: usize,
    smooths: bool,
    /// Location features of every place.
    locations: Vec<f32>,
    num_locations: usize,
}

impl Surroundings {
    pub(crate) fn new(config: &EnergyBasedConfig, space: &Space, grid: Grid) -> Self {
        let mut locations = Vec::new();
        for place in 0..grid.num_places() {
            #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
            let location = grid.location(place).map(|t| t as f32);
            push_features(&location, config.location_frequencies, &mut locations);
        }
        Self {
            grid,
            channels: space.value_dim,
            window: config.window,
            smooths: config.smooths,
            num_locations: locations.len() / grid.num_places(),
            locations,
        }
    }

    /// Numbers of a row.
    pub(crate) fn num_features(&self) -> usize {
        let side = 2 * self.window + 1;
        let blurs = if self.smooths { BLURS.len() } else { 0 };
        self.num_locations + (1 + self.channels) * (side * side - 1 + blurs)
    }

    /// The location features of every place, `[places, width]`.
    pub(crate) fn locations(&self) -> (&[f32], usize) {
        (&self.locations, self.num_locations)
    }

    /// Rows of the targets at `places`.
    pub(crate) fn rows(&self, context: &Observed, places: &[usize]) -> Vec<f32> {
        let blurred: Vec<Blurred> = if self.smooths {
            BLURS.iter().map(|&std_dev| self.blur(context, std_dev)).collect()
        } else {
            Vec::new()
        };
        let mut rows = Vec::with_capacity(places.len() * self.num_features());
        for &place in places {
            let own = &self.locations[place * self.num_locations..][..self.num_locations];
            rows.extend_from_slice(own);
            self.push_window(context, place, &mut rows);
            for blurred in &blurred {
                blurred.push(place, &mut rows);
            }
        }
        rows
    }

    fn push_window(&self, context: &Observed, place: usize, rows: &mut Vec<f32>) {
        if self.window == 0 {
            return;
        }
        let (width, height) = (self.grid.width().cast_signed(), self.grid.height().cast_signed());
        let (column, row) = (place.cast_signed() % width, place.cast_signed() / width);
        let reach = self.window.cast_signed();
        for y in row - reach..=row + reach {
            for x in column - reach..=column + reach {
                if (x, y) == (column, row) {
                    continue;
                }
                let is_inside = (0..width).contains(&x) && (0..height).contains(&y);
                let other = (y * width + x).cast_unsigned();
                if is_inside && context.is_known[other] {
                    rows.push(1.0);
                    let channels = self.channels;
                    rows.extend_from_slice(&context.brightness[other * channels..][..channels]);
                } else {
                    rows.resize(rows.len() + 1 + self.channels, 0.0);
                }
            }
        }
    }

    fn blur(&self, context: &Observed, std_dev: f32) -> Blurred {
        let (grid, channels) = (self.grid, self.channels);
        let weights = gaussian(std_dev, grid.width().max(grid.height()));
        let size = (grid.width(), grid.height());
        let known: Vec<f32> = context.is_known.iter().map(|&k| f32::from(u8::from(k))).collect();
        let means = (0..channels)
            .map(|channel| {
                let plane = context.brightness.iter().skip(channel).step_by(channels);
                blur_plane(&plane.copied().collect::<Vec<f32>>(), size, &weights)
            })
            .collect();
        Blurred { density: blur_plane(&known, size, &weights), means }
    }
}

/// The blurred density of known places, and their blurred values of every channel.
struct Blurred {
    density: Vec<f32>,
    means: Vec<Vec<f32>>,
}

impl Blurred {
    /// log of the density at a place, and the mean of the values around it.
    fn push(&self, place: usize, rows: &mut Vec<f32>) {
        let density = self.density[place] + FEW;
        rows.push(density.ln() / 3.0 + 1.0);
        rows.extend(self.means.iter().map(|mean| mean[place] / density));
    }
}

/// Weights of a Gaussian by distance, of sum one on both sides together.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozen")]
fn gaussian(std_dev: f32, longest: usize) -> Vec<f32> {
    let reach = ((3.0 * std_dev).ceil() as usize).min(longest - 1);
    let weights: Vec<f32> =
        (0..=reach).map(|k| (-0.5 * (k as f32 / std_dev).powi(2)).exp()).collect();
    let sum = 2.0 * weights.iter().sum::<f32>() - weights[0];
    weights.iter().map(|weight| weight / sum).collect()
}

/// A plane blurred along both axes.
fn blur_plane(plane: &[f32], (width, height): (usize, usize), weights: &[f32]) -> Vec<f32> {
    debug_assert_eq!(plane.len(), width * height);
    let reach = weights.len() - 1;
    // Weights by place, from `reach` before to `reach` behind.
    let around: Vec<f32> = (0..=2 * reach).map(|at| weights[at.abs_diff(reach)]).collect();
    let mut across = vec![0.0; plane.len()];
    let mut down = vec![0.0; plane.len()];
    let blur = Blur { plane, width, around: &around, reach, across: &mut across, down: &mut down };
    Vectoriser::new().run(blur);
    down
}

/// The loops of a blur: along the rows to `across`, then along the columns to `down`.
struct Blur<'a> {
    plane: &'a [f32],
    width: usize,
    around: &'a [f32],
    reach: usize,
    across: &'a mut [f32],
    down: &'a mut [f32],
}

impl VectorLoop for Blur<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { plane, width, around, reach, across, down } = self;
        for (from, to) in plane.chunks_exact(width).zip(across.chunks_exact_mut(width)) {
            for (column, &value) in from.iter().enumerate() {
                // Contexts are sparse: most places add nothing.
                if value != 0.0 {
                    let first = column.saturating_sub(reach);
                    let near = &mut to[first..(column + reach + 1).min(width)];
                    add_scaled(near, value, &around[first + reach - column..]);
                }
            }
        }
        for (row, from) in across.chunks_exact(width).enumerate() {
            if from.iter().all(|&value| value == 0.0) {
                continue;
            }
            let first = row.saturating_sub(reach);
            let near = down[first * width..].chunks_exact_mut(width);
            for (to, &weight) in near.zip(&around[first + reach - row..]) {
                add_scaled(to, weight, from);
            }
        }
    }
}

#[inline(always)]
fn add_scaled(to: &mut [f32], scale: f32, from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}
