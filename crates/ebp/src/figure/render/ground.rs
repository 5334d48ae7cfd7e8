//! The ground under a scene: for each place the share of the light of the sky, and of the lamp, that
//! reaches it, on a square grid.
//!
//! A sphere of radius r, its centre h above the ground, shades against light from ω the ellipse around
//! p − h ω_xy/ω_z that is r wide and r/ω_z long, along ω_xy. For each of some hundred directions the union
//! of these ellipses is counted; the directions are spread so that each carries the same light, so
//! that counts are whole numbers and their order is free.

use rayon::prelude::*;

use super::scene::Scene;
use super::space::{Vector, spread};

/// Directions that are counted together by one thread.
const DIRECTIONS_PER_TASK: usize = 16;
/// Half the side of the grid, in radii of the scene.
const EXTENT: f32 = 3.2;
/// From this share of the way to the grid's edge on, shade fades to nothing.
const FADE_FROM: f32 = 0.75;
/// Light from lower than this comes from beyond the grid and is left out.
const LOWEST: f32 = 0.08;

/// Unoccluded shares of light on the ground.
pub(super) struct Ground {
    side: usize,
    extent: f32,
    /// Of the sky and of the lamp, at every cell.
    light: Vec<[f32; 2]>,
}

impl Ground {
    /// `lamp` are directions towards the lamp.
    pub(super) fn new(scene: &Scene, side: usize, num_sky: usize, lamp: &[Vector]) -> Self {
        let extent = EXTENT * scene.reach;
        // By the cosine: each direction brings the ground the same light.
        let sky: Vec<Vector> =
            spread([0.0, 0.0, 1.0], num_sky, |share| (1.0 - share).sqrt()).collect();
        let sky = counts(scene, side, extent, &sky);
        let lamp_counts = counts(scene, side, extent, lamp);
        let share = |count: u16, all: usize| 1.0 - f32::from(count) / all.max(1) as f32;
        let mut light: Vec<[f32; 2]> = sky
            .iter()
            .zip(&lamp_counts)
            .map(|(&sky, &shade)| [share(sky, num_sky), share(shade, lamp.len())])
            .collect();
        for (cell, light) in light.iter_mut().enumerate() {
            let away = |place: usize| ((place as f32 + 0.5) / side as f32 * 2.0 - 1.0).abs();
            let distance = away(cell % side).hypot(away(cell / side));
            let fade = ((distance - FADE_FROM) / (1.0 - FADE_FROM)).clamp(0.0, 1.0);
            let fade = fade * fade * (3.0 - 2.0 * fade);
            *light = light.map(|share| share + fade * (1.0 - share));
        }
        Self { side, extent, light }
    }

    /// The shares at a place, cubic between cells (B-splines, which never overshoot).
    pub(super) fn at(&self, x: f32, y: f32) -> [f32; 2] {
        let place = |number: f32| (number / self.extent + 1.0) * 0.5 * self.side as f32 - 0.5;
        let (x, y) = (place(x), place(y));
        let end = self.side as f32 - 3.0;
        if !(x >= 1.0 && y >= 1.0 && x < end && y < end) {
            return [1.0; 2];
        }
        let weights = |place: f32| {
            let t = place - place.floor();
            let s = 1.0 - t;
            let sixth = 1.0 / 6.0;
            [
                s * s * s * sixth,
                (4.0 + t * t * (3.0 * t - 6.0)) * sixth,
                (4.0 + s * s * (3.0 * s - 6.0)) * sixth,
                t * t * t * sixth,
            ]
        };
        let (across, along) = (weights(x), weights(y));
        let corner = (y as usize - 1) * self.side + x as usize - 1;
        let mut sum = [0.0; 2];
        for (row, weight) in along.into_iter().enumerate() {
            let cells = &self.light[corner + row * self.side..][..4];
            for (cell, share) in cells.iter().zip(across) {
                sum[0] += weight * share * cell[0];
                sum[1] += weight * share * cell[1];
            }
        }
        sum
    }

    /// The nearest cell's shares.
    pub(super) fn near(&self, x: f32, y: f32) -> [f32; 2] {
        let place = |number: f32| (number / self.extent + 1.0) * 0.5 * self.side as f32;
        let (x, y) = (place(x), place(y));
        let end = self.side as f32;
        if !(x >= 0.0 && y >= 0.0 && x < end && y < end) {
            return [1.0; 2];
        }
        self.light[y as usize * self.side + x as usize]
    }
}

/// From how many of the directions every cell is shaded.
fn counts(scene: &Scene, side: usize, extent: f32, directions: &[Vector]) -> Vec<u16> {
    let parts: Vec<Vec<u16>> = directions
        .par_chunks(DIRECTIONS_PER_TASK)
        .map(|directions| {
            let mut counts = vec![0; side * side];
            // The number of the direction that shaded a cell last.
            let mut last = vec![0_u16; side * side];
            for (number, &direction) in (1..).zip(directions) {
                shade(scene, side, extent, direction, |cell| {
                    if last[cell] != number {
                        last[cell] = number;
                        counts[cell] += 1;
                    }
                });
            }
            counts
        })
        .collect();
    let mut sum = vec![0; side * side];
    for part in parts {
        for (sum, count) in sum.iter_mut().zip(part) {
            *sum += count;
        }
    }
    sum
}

/// Every cell whose middle a sphere shades.
fn shade(scene: &Scene, side: usize, extent: f32, light: Vector, mut mark: impl FnMut(usize)) {
    if light[2] < LOWEST {
        return;
    }
    let cell = 2.0 * extent / side as f32;
    let slope = [light[0] / light[2], light[1] / light[2]];
    // |q|² − (q·ω_xy)² ≤ r² for q from the ellipse's middle: what is within r of the line along ω.
    let reach = [0, 1].map(|axis| scene.radius * (1.0 + slope[axis] * slope[axis]).sqrt());
    let squared = scene.radius * scene.radius;
    for centre in &scene.centres {
        let high = centre[2] - scene.floor;
        let middle = [centre[0] - high * slope[0], centre[1] - high * slope[1]];
        let range = |axis: usize| {
            let bound = |place: f32| ((place + extent) / cell - 0.5).clamp(0.0, side as f32);
            bound(middle[axis] - reach[axis]).ceil() as usize
                ..((bound(middle[axis] + reach[axis]) + 1.0) as usize).min(side)
        };
        let columns = range(0);
        for row in range(1) {
            let y = (row as f32 + 0.5) * cell - extent - middle[1];
            for column in columns.clone() {
                let x = (column as f32 + 0.5) * cell - extent - middle[0];
                let along = x * light[0] + y * light[1];
                if x * x + y * y - along * along <= squared {
                    mark(row * side + column);
                }
            }
        }
    }
}
